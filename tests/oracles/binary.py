"""Shuffled binary randomized response by convolution, for every number of ones of the others."""

import math

import numpy as np
from scipy.stats import binom


class BinaryConvolution:
    """delta_j(epsilon) for all j = 0 .. n - 1; O(n^3) once, O(n^2) per epsilon: n up to 300."""

    def __init__(self, epsilon0: float, num_users: int) -> None:
        self._p, others = math.exp(epsilon0), num_users - 1
        q = 1.0 / (self._p + 1.0)
        self._f = np.zeros((num_users, num_users + 1))
        for ones in range(num_users):
            high = binom.pmf(np.arange(ones + 1), ones, 1.0 - q)
            low = binom.pmf(np.arange(others - ones + 1), others - ones, q)
            self._f[ones, :num_users] = np.convolve(high, low)
        self._q = q

    def deltas(self, epsilon: float) -> np.ndarray:
        """delta for each j: the victim's zero becomes a one."""
        f, q, e = self._f, self._q, math.exp(epsilon)
        shifted = np.concatenate([np.zeros((f.shape[0], 1)), f[:, :-1]], axis=1)
        # P - e Q with P = (1 - q) f(s) + q f(s - 1), Q the other way round
        gain, loss = (1.0 - q) - e * q, e * (1.0 - q) - q
        return np.maximum(gain * f - loss * shifted, 0.0).sum(axis=1)

    def delta(self, epsilon: float) -> float:
        """Largest over j; the other direction of j is the one of n - 1 - j."""
        return float(self.deltas(epsilon).max())
