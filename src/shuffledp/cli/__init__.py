"""The command line: it parses, calls and prints. Everything it does is a few lines in Python."""
