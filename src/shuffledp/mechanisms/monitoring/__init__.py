"""Longitudinal monitoring: clients that report on a changing value, and the server's tree."""
