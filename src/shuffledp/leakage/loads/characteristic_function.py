r"""How often no bin has more than m balls, by Poisson bins and a contour integral.

Let X_1, ..., X_k be independent Poisson variables of mean lambda = n / k. Given that their sum is n
they are the loads of n balls, so

    Pr[max > m] = Pr[max X > m, sum X = n] / Pr[sum X = n].

With phi(t) = E[e^(i t (X - lambda))] and phi_m(t) = E[e^(i t (X - lambda)); X <= m], the numerator
is the integral of (phi^k - phi_m^k) / (2 pi) over a period. (lambda may be rounded: what is missing
from n = k lambda turns the phase, and all else is exact for the rounded lambda.)

*Trapezoids.* M equal nodes give the sum over all whole l of Pr[max X > m, sum X = n + l M]: too
much by at most Pr[abs(Po(n) - n) >= M], which Chernoff bounds; M is chosen so that this is 1e-19
of Pr[Po(n) = n].

*Nodes left out.* The masses p_0, ..., p_m have total variation at most 2 max p (they rise, then
fall, then stop), so summation by parts gives abs(phi_m(t)) <= max p / sin(t / 2). Nodes beyond one
where this to the power k is below 1e-19 of what matters are left out; with k above about 16 some
hundred are left, whatever n.

*Round-off.* phi is known in closed form and phi - phi_m is a sum over the few loads above m, so
phi^k - phi_m^k = phi^k (1 - (1 - (phi - phi_m) / phi)^k) comes without cancellation, by log1p and
expm1. The kernel adds up the first-order effect of a relative error of each mass (1e-14: a mass is
off by some ulps and the rounding of its exponent and its phase; twice that further out, where the
mass is below 1e-11) beside the sum.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LOG_NEGLIGIBLE = math.log(1e-19)

# Relative error of a mass times its phase.
_MASS_ERROR = 1e-14

# Errors of truncation, relative to Pr[sum = n].
_TRUNCATION = 1e-18

# Seconds for a mass, and for a load, at one node, about.
_SECONDS_A_MASS, _SECONDS_A_LOAD = 3e-9, 1e-7


class NodeSet(NamedTuple):
    """The first ``num_nodes`` of nodes 2 pi / ``period`` apart, from 0 up."""

    period: int
    num_nodes: int

    @property
    def angle(self) -> float:
        """Distance of two nodes."""
        return 2.0 * math.pi / self.period


def log_sum_mass(num_balls: int) -> float:
    """Return ln Pr[Po(n) = n], to some ulps."""
    if num_balls <= 20:
        return math.log(num_balls**num_balls / math.factorial(num_balls)) - num_balls
    n = float(num_balls)
    square = n * n
    # Stirling's series; the next term is below 1e-14 at n = 20.
    series = 1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square
    return -0.5 * math.log(2.0 * math.pi * n) - series / n


def contour_period(num_balls: int) -> int:
    """Return an odd M with Pr[abs(Po(n) - n) >= M] <= 1e-19 Pr[Po(n) = n], by Bernstein."""
    needed = math.log(2.0) - _LOG_NEGLIGIBLE - log_sum_mass(num_balls)
    # M solves: M^2 is twice what is needed, times n + M / 3.
    third = needed / 3.0
    distance = third + math.sqrt(third * third + 2.0 * needed * num_balls)
    return 2 * (math.ceil(distance) // 2) + 1


def largest_mass(mean: float) -> float:
    """Return an upper bound of the largest mass of the Poisson law."""
    # A mass at x is at most 1 / sqrt(2 pi x), and the mode is above mean - 1.
    return min(1.0, 1.0 / math.sqrt(2.0 * math.pi * (mean - 1.0))) if mean > 2.0 else 1.0


def node_set(num_balls: int, num_bins: int) -> NodeSet:
    """Return the nodes for ``num_balls`` in ``num_bins`` bins, from the bounds of the module."""
    period = contour_period(num_balls)
    total = (period + 1) // 2
    log_limit = (_LOG_NEGLIGIBLE + log_sum_mass(num_balls)) / num_bins
    sine = largest_mass(num_balls / num_bins) * math.exp(-log_limit)
    if sine >= 1.0:
        return NodeSet(period, total)
    reach = 2.0 * math.asin(sine)
    # e^(-n (1 - cos t)) bounds the modulus of phi^k, which is subtracted from.
    free = math.sqrt(-log_limit * num_bins / (2.0 * num_balls))
    reach = max(reach, 2.0 * math.asin(min(free, 1.0)))
    return NodeSet(period, min(total, math.floor(reach * period / (2.0 * math.pi)) + 2))


def _top_load(mean: float, log_mass: float) -> int:
    """Return a load with Pr[Po(mean) > load] <= e^log_mass, by Bernstein's inequality."""
    third = -log_mass / 3.0
    return math.ceil(mean + third + math.sqrt(third * third - 2.0 * log_mass * mean))


def characteristic_seconds(num_balls: int, num_bins: int, loads: NDArray[np.int64]) -> float:
    """Return about how long `characteristic_tails` takes."""
    nodes = node_set(num_balls, num_bins).num_nodes
    masses = 12.0 * math.sqrt(num_balls / num_bins) + 40.0
    return nodes * (masses * _SECONDS_A_MASS + len(loads) * _SECONDS_A_LOAD)


def characteristic_tails(
    num_balls: int, num_bins: int, loads: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load] by the characteristic function, with bounds on the absolute errors.

    Parameters
    ----------
    num_balls, num_bins : int
        n >= 1 and k >= 2.
    loads : (l,) array of int64
        Increasing, each at least n / k.

    Returns
    -------
    tails, errors : (l,) arrays of float64
        ``errors`` covers aliases, nodes left out and round-off.

    Notes
    -----
    With N nodes and W masses O(N (W + l)). W is about 12 sqrt(n / k); N is some hundred from
    k = 16 on, and up to 6 sqrt(n) for k = 2.
    """
    from shuffledp.leakage.loads.characteristic_function_kernels import (
        add_nodes,
        poisson_masses,
    )

    mean = num_balls / num_bins
    numerator, denominator = mean.as_integer_ratio()
    shift = (num_balls * denominator - num_bins * numerator) / denominator
    nodes = node_set(num_balls, num_bins)
    log_sum = log_sum_mass(num_balls)
    first = int(loads[0]) + 1
    top = max(_top_load(mean, _LOG_NEGLIGIBLE + log_sum - math.log(num_bins)), first)
    masses = poisson_masses(mean, first, top - first + 1)
    sums, sizes = np.zeros(len(loads)), np.zeros(len(loads))
    downwards = np.ascontiguousarray(loads[::-1])
    add_nodes(
        mean,
        float(num_bins),
        shift,
        nodes.angle,
        nodes.num_nodes,
        masses,
        first,
        downwards,
        sums,
        sizes,
    )
    scale = math.exp(-log_sum) / nodes.period
    tails = np.clip(sums[::-1] * scale, 0.0, 1.0)
    errors = sizes[::-1] * (scale * _MASS_ERROR) + 4.0 * _TRUNCATION
    return tails, errors
