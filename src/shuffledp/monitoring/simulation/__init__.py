"""A whole longitudinal collection, simulated and kept on disk."""
