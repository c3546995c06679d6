"""What a straightforward program would do: one report at a time in Python, or all in NumPy."""
