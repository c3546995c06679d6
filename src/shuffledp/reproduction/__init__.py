"""Figures of published papers, computed again: data only, no drawing."""
