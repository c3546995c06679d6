"""Inference attacks on a release, and learning from it, on plain arrays."""
