"""Adversaries who know nothing of the others but how common values are."""
