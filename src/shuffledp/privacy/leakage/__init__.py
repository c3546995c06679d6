"""Quantitative information flow: what an adversary can guess, exactly."""
