"""Sums of a smooth function over many whole numbers from its values at few.

Let f be given at W consecutive whole numbers, mapped to the midpoints x of W equal cells of
[-1, 1]. The polynomial that agrees with f at 48 of them, near Chebyshev's points, has an exact sum:
that of each Chebyshev polynomial is known, by the Euler-Maclaurin formula (which is an identity for
polynomials) or term by term where W is small. Longer ranges are cut into panels of equal sizes.

The error is that of the polynomial, W times, and falls geometrically with the number of nodes where
f is analytic. How far it has fallen is read off the last coefficients of each panel, 16-fold; that
is an estimate, not a proof.
"""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# A panel of more whole numbers has this many nodes; in others each number is one.
_NODES_A_PANEL = 48
_MOST_ONE_BY_ONE = 256

# Bernoulli numbers B_2, B_4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)

# Coefficients from which the truncation is read, and by how much it may be more.
_LAST_COEFFICIENTS = 8
_SAFETY = 16.0


def num_panels(num_bins: int) -> int:
    """Return into how many panels the loads of a maximum are cut.

    The more bins, the sharper the chance to exceed a load falls with the load.
    """
    if num_bins <= 3:
        return 2
    return 3 if num_bins <= 6 else 5


class LatticeRule(NamedTuple):
    """Where to evaluate, and how to add up.

    ``nodes`` are offsets from the first number, increasing; ``weights`` those of the values there;
    ``checks`` takes the values to the last coefficients, shape (panels, 8, nodes), times the size
    of the panel (no panels if every number is a node).
    """

    nodes: NDArray[np.int64]
    weights: NDArray[np.float64]
    checks: NDArray[np.float64]

    def total(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the sum over all numbers, and an estimate of its truncation error."""
        last = np.abs(self.checks @ values)
        truncation = _SAFETY * float(last.max(axis=1, initial=0.0).sum())
        return math.fsum(self.weights * values), truncation

    @property
    def amplification(self) -> float:
        """How much an error of 1 of every value, at most, becomes in the sum."""
        return float(np.abs(self.weights).sum())


@functools.lru_cache(maxsize=64)
def lattice_rule(size: int, panels: int) -> LatticeRule:
    """Return the rule for ``size`` >= 1 whole numbers in ``panels`` panels of 48 nodes.

    Every number is a node where a panel has at most 256.

    Examples
    --------
    The sum of the squares below 1000:

    >>> rule = lattice_rule(1000, 1)
    >>> total, _ = rule.total(rule.nodes.astype(float) ** 2)
    >>> round(total) == sum(i * i for i in range(1000)), len(rule.nodes) <= 48
    (True, True)
    """
    if size <= panels * _MOST_ONE_BY_ONE:
        return LatticeRule(np.arange(size), np.ones(size), np.empty((0, _LAST_COEFFICIENTS, size)))
    edges = [size * panel // panels for panel in range(panels + 1)]
    rules = [_panel_rule(right - left) for left, right in itertools.pairwise(edges)]
    nodes = np.concatenate(
        [left + rule.nodes for left, rule in zip(edges[:-1], rules, strict=True)]
    )
    checks = np.zeros((panels, _LAST_COEFFICIENTS, len(nodes)))
    at = 0
    for panel, rule in enumerate(rules):
        checks[panel, :, at : at + len(rule.nodes)] = rule.checks[0]
        at += len(rule.nodes)
    return LatticeRule(nodes, np.concatenate([rule.weights for rule in rules]), checks)


@functools.lru_cache(maxsize=64)
def _panel_rule(size: int) -> LatticeRule:
    """Return the rule of one panel of more than 256 numbers."""
    angles = (np.arange(_NODES_A_PANEL) + 0.5) * (np.pi / _NODES_A_PANEL)
    nodes = np.unique(np.floor(0.5 * size * (1.0 - np.cos(angles))).astype(np.int64))
    places = (2.0 * nodes + 1.0) / size - 1.0
    values = np.polynomial.chebyshev.chebvander(places, len(nodes) - 1)
    solver = np.asarray(np.linalg.inv(values), dtype=np.float64)
    sums = np.array([_sum_of_polynomial(degree, size) for degree in range(len(nodes))])
    checks = size * solver[None, -_LAST_COEFFICIENTS:, :]
    return LatticeRule(nodes, sums @ solver, checks)


def _sum_of_polynomial(degree: int, size: int) -> float:
    """Return the sum of a Chebyshev polynomial over the midpoints of ``size`` cells of [-1, 1]."""
    if degree % 2:
        return 0.0
    if size < _NODES_A_PANEL**2:
        places = (2.0 * np.arange(size) + 1.0) / size - 1.0
        return math.fsum(np.cos(degree * np.arccos(places)))
    step = 2.0 / size
    total = size / (1.0 - degree**2)  # the integral is 2 / (1 - degree^2)
    derivative = float(degree**2)  # at 1; the one at -1 has the opposite sign
    power = step
    for index, bernoulli in enumerate(_BERNOULLI, start=1):
        order = 2 * index
        midpoint = -(1.0 - 2.0 ** (1 - order)) * bernoulli
        total += midpoint / math.factorial(order) * power * 2.0 * derivative
        # T^(p+1)(1) = T^(p)(1) (degree^2 - p^2) / (2 p + 1)
        for p in (order - 1, order):
            derivative *= (degree**2 - p**2) / (2 * p + 1)
        power *= step**2
    return total
