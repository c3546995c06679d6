"""Inference attacks on a release, and what a model can still learn from it, on plain arrays."""
