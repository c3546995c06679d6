"""Longitudinal monitoring: histories in, a private running statistic out."""
