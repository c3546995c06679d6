"""Noise on public places, and who hides whom there."""
