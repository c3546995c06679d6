"""Channels as a user may give them: any rows, with zeros, asymmetric; and (Z) summed at length.

(Z) of `channel_rows`: omega any measure on the outputs; where it is 0 the victim's output stands
out, and elsewhere it hides among draws from omega. Here by listing all numbers of outputs.
"""

import math
from collections.abc import Sequence

import numpy as np
from mpmath import mp, mpf

from oracles.multiprecision import blanket_delta
from shuffledp.core.entropy import Entropy


def random_channel(seed: int, *, zeros: bool, largest: int = 4) -> np.ndarray:
    """Two or three inputs, two to ``largest`` outputs, entries over several orders of magnitude."""
    generator = Entropy.from_seed(seed).generator()
    shape = (int(generator.integers(2, 4)), int(generator.integers(2, largest + 1)))
    rows = generator.gamma(0.7, size=shape) + 1e-6
    if zeros:
        rows *= generator.uniform(size=shape) > 0.3
        rows[:, 0] += 1e-3  # no two inputs without an output in common
    return rows / rows.sum(axis=1, keepdims=True)


def listed(
    first: Sequence[float],
    second: Sequence[float],
    omega: Sequence[float],
    epsilon: float,
    num_users: int,
) -> mpf:
    """(Z) at sixty digits, for few outputs and users."""
    e = mp.exp(mpf(epsilon))
    atoms, outside = [], mpf(0)
    for p, q, w in zip(first, second, omega, strict=True):
        if w == 0:
            outside += max(mpf(p) - e * mpf(q), mpf(0))
        else:
            atoms.append((mpf(w), mpf(p) / mpf(w), mpf(q) / mpf(w)))
    total = sum(atom[0] for atom in atoms)
    if total > 1:  # rows of doubles sum to 1 nearly
        atoms = [(w / total, r0, r1) for w, r0, r1 in atoms]
    return blanket_delta(atoms, epsilon, num_users) + outside


def randomized_response(k: int, epsilon0: float) -> np.ndarray:
    """k-RR."""
    rows = np.ones((k, k))
    np.fill_diagonal(rows, math.exp(epsilon0))
    return rows / rows.sum(axis=1, keepdims=True)
