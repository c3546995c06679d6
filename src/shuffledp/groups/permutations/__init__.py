"""Permutations near a reference order: distances, Mallows models, groups and sensitivities."""
