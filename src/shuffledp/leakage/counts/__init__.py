"""Counts of shuffled reports: exact laws, and bounds on success probabilities given them."""
