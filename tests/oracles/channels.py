"""Random epsilon0-LDP channels, among them the extreme ones.

An epsilon0-LDP channel is a mixture of "staircase" channels: in every column all entries are the
same number or e^epsilon0 times it (Kairouz, Oh, Viswanath 2016, arXiv:1407.1338). Those are the
vertices of a polytope, found here by linear programs with random costs.
"""

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog


def staircase(num_inputs: int, p: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """A random vertex: columns with entries in {s, p s}, rows of mass one."""
    # The first and last pattern tell nothing; alone they would be a vertex.
    patterns = np.array(list(itertools.product((1.0, p), repeat=num_inputs)))[1:-1]
    solution = linprog(
        generator.exponential(size=len(patterns)) * patterns.sum(axis=1),
        A_eq=patterns.T,
        b_eq=np.ones(num_inputs),
        method="highs",
    )
    scales = np.maximum(solution.x, 0.0)
    channel = (patterns * scales[:, None])[scales > 1e-12].T
    return channel / channel.sum(axis=1, keepdims=True)


def inside(num_inputs: int, p: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """A channel with ratios anywhere in [1, p]: two staircases, and which one is published."""
    share = generator.uniform(0.2, 0.8)
    first = share * staircase(num_inputs, p, generator)
    second = (1.0 - share) * staircase(num_inputs, p ** generator.uniform(0.0, 1.0), generator)
    return np.concatenate([first, second], axis=1)


def largest_ratio(channel: NDArray[np.float64]) -> float:
    """e^epsilon0 of the channel."""
    return float((channel.max(axis=0) / channel.min(axis=0)).max())
