"""Randomizers of one answer out of k; one file a randomizer, its loops in files beside it."""
