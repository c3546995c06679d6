"""Composition of several releases: privacy losses on a lattice, and Renyi divergences."""
