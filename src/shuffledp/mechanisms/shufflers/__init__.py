"""Shufflers: reports in, shuffled reports out."""
