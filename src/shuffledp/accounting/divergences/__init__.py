"""Divergences of pairs of laws, and the privacy loss between them, on arrays."""
