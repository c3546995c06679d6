"""Counts of shuffled reports: exact laws and bounds of what an adversary guesses from them."""
