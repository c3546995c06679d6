"""Graphs of who can pass reports on to whom: read from files, or made."""
