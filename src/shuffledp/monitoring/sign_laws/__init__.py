"""Laws of the random signs that hide a client's changes, each accounted exactly."""
