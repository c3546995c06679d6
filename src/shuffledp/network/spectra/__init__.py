"""Certified eigenvalues of random walks, and the bounds made of them."""
