"""The expected number of balls in the fullest bin, at any size."""
