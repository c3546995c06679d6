"""Shuffling within overlapping groups: reports stay near their users (Meehan et al.)."""
