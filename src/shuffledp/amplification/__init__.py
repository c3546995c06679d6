"""Amplification by shuffling: one file a result, and the registry that picks the smallest."""
