"""Collections across machines."""
