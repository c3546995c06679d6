"""Proofs of single numbers in ball arithmetic, by sums that share no code with the accountant."""
