"""The expected maximum of weighted loads, E[max_x w_x h_x], for balls with any law.

Loads j of bin x are allowed one after the other in the order of w_x j; E[max] is the integral over
u of the chance that some load with w_x j > u occurs, each an integral of a product of truncated
characteristic functions, of which one step changes one.

*Bins that hardly matter.* Let bin 1 have the largest w_x s_x. Leaving out bin x lowers the maximum
by at most (w_x h_x - w_1 h_1)_+, whose mean is at most n w_x (1 + s_x (e^(t w_x) - 1) +
s_1 (e^(-t w_1) - 1))^n for each t >= 0. Where that is below 1e-16 of the answer it goes to the
upper end. *Loads that hardly matter.* Bernstein's inequality leaves loads with 1e-19 outside.
*Round-off.* A chance is off by at most 1e-14 (bins + 1) / Pr[Po(n) = n], about 2.5e-14 (bins + 1)
sqrt(n). *Equal weights.* With many loads only those of a `LatticeRule` are looked at, whose
truncation is an estimate.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.contour import NodeSet, contour_period, largest_mass, log_sum_mass
from shuffledp.leakage.fullest_bin import LARGEST_NUM_BALLS, lattice_rule, maximum_load, num_panels

# Steps of the sum over nodes at most: ten seconds, or one where weights are equal.
_MOST_STEPS = 2.0e8

# Natural logarithms of what is neglected.
_LOG_NEGLIGIBLE = math.log(1e-19)
_LOG_BIN_NEGLIGIBLE = math.log(1e-16)

_MASS_ERROR = 1e-14
_ROUNDING = 16.0 * math.ulp(1.0)
_LAW_TOLERANCE = 1e-9
_SMALLEST_UNIT = 1e-200


class _Bins(NamedTuple):
    """Bins that matter: their weights and means, the mean of the rest, and what that may add."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    rest: float
    left_out: float


class _Loads(NamedTuple):
    """For each bin the least and the greatest load that is looked at, and where they begin."""

    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    low: float
    next: NDArray[np.int64]


def _checked(law: ArrayLike, weights: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return law (adding up to 1) and weights of the same length."""
    chances = np.asarray(law, dtype=np.float64)
    values = np.asarray(weights, dtype=np.float64)
    if chances.ndim != 1 or chances.size == 0 or chances.shape != values.shape:
        raise ParameterError(
            f"law of shape {chances.shape} and weights of shape {values.shape}: give two flat "
            "lists of the same length, one entry a bin"
        )
    if not (np.all(chances >= 0.0) and abs(math.fsum(chances) - 1.0) <= _LAW_TOLERANCE):
        raise ParameterError(
            f"law has the sum {math.fsum(chances)}, or a negative entry: give probabilities "
            "that add up to 1"
        )
    if not (np.all(values >= 0.0) and np.all(np.isfinite(values))):
        raise ParameterError("weights have an entry outside [0, inf): give finite numbers >= 0")
    largest = float(np.max(values))
    if largest > 0.0 and not _SMALLEST_UNIT <= largest <= 1.0 / _SMALLEST_UNIT:
        raise ParameterError(f"weights have the maximum {largest}, outside [1e-200, 1e200]: scale")
    return chances / math.fsum(chances), values


def _relevant_bins(
    num_balls: int, chances: NDArray[np.float64], weights: NDArray[np.float64]
) -> _Bins:
    """Return the bins that may hold the maximum."""
    products = chances * weights
    top = int(np.argmax(products))
    possible = np.flatnonzero(products > 0.0)
    ratios = np.log(products[top]) - np.log(products[possible])
    tilt = ratios / (weights[possible] + weights[top])
    exponent = chances[possible] * np.expm1(tilt * weights[possible])
    exponent += chances[top] * np.expm1(-tilt * weights[top])
    # Some roundings of both terms are given back.
    slack = _ROUNDING * (chances[possible] * np.exp(tilt * weights[possible]) + chances[top])
    log_added = num_balls * (exponent + slack)  # ln(1 + x) <= x
    log_added += np.log(num_balls * weights[possible])
    limit = _LOG_BIN_NEGLIGIBLE + math.log(num_balls * products[top] / len(possible))
    dropped = log_added < limit
    dropped[possible == top] = False
    kept = possible[~dropped]
    others = np.setdiff1d(np.arange(len(chances)), kept)
    return _Bins(
        weights[kept],
        num_balls * chances[kept],
        num_balls * math.fsum(chances[others]),
        float(np.exp(log_added[dropped]).sum()),
    )


def _relevant_loads(num_balls: int, bins: _Bins, log_sum: float) -> _Loads:
    """Return the loads outside which Poisson and binomial laws are negligible."""
    log_rare = _LOG_NEGLIGIBLE + log_sum - math.log(len(bins.means))
    below = np.sqrt(-2.0 * log_rare * bins.means)
    firsts = np.maximum(np.floor(bins.means - below), 0.0).astype(np.int64)
    third = -log_rare / 3.0
    above = third + np.sqrt(third * third - 2.0 * log_rare * bins.means)
    lasts = np.minimum(np.ceil(bins.means + above), num_balls).astype(np.int64)
    low = float(np.max(bins.weights * firsts))
    following = np.floor(low / bins.weights).astype(np.int64)
    # The division may have been rounded over a whole number.
    following -= bins.weights * following > low
    following += bins.weights * (following + 1) <= low
    return _Loads(firsts, lasts, low, np.clip(following + 1, firsts, lasts + 1))


def _weighted_nodes(num_balls: int, bins: _Bins, log_sum: float) -> NodeSet:
    """Return the nodes that matter to a product of truncated characteristic functions."""
    period = contour_period(num_balls)
    total = (period + 1) // 2
    heights = np.array([largest_mass(float(mean)) for mean in bins.means])

    def matters(node: int) -> bool:
        sine = math.sin(math.pi * node / period)
        log_size = float(np.log(np.minimum(heights / sine, 1.0)).sum())
        return log_size - 2.0 * bins.rest * sine**2 > _LOG_NEGLIGIBLE + log_sum

    low, high = 1, total
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if matters(middle) else (low, middle)
    return NodeSet(period, low)


def _check_steps(nodes: NodeSet, loads: _Loads) -> None:
    """Refuse what would take more than ten seconds or so."""
    steps = float(nodes.num_nodes) * float((loads.lasts - loads.firsts + 1).sum())
    if steps > _MOST_STEPS:
        raise OutOfRegimeError(
            f"the weighted maximum needs {steps:.3g} steps ({nodes.num_nodes} nodes of a contour "
            f"times the loads of {len(loads.firsts)} bins), above {_MOST_STEPS:.0e}: estimate it "
            "by Monte Carlo, or take fewer balls"
        )


def _chances(
    num_balls: int,
    bins: _Bins,
    loads: _Loads,
    nodes: NodeSet,
    *,
    events: NDArray[np.int64],
    outputs: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the chance that some load is not allowed after each event that has an output."""
    from shuffledp.leakage.load_kernels import (
        add_weighted_nodes,
        poisson_masses,
    )

    sizes = loads.lasts - loads.firsts + 1
    masses = np.concatenate(
        [
            poisson_masses(float(mean), int(first), int(size))
            for mean, first, size in zip(bins.means, loads.firsts, sizes, strict=True)
        ]
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    sums = np.zeros(int(outputs.max()) + 1)
    shift = num_balls - math.fsum([*bins.means.tolist(), bins.rest])
    add_weighted_nodes(
        bins.means,
        bins.rest,
        shift,
        nodes.angle,
        nodes.num_nodes,
        masses,
        offsets,
        loads.firsts,
        loads.next - loads.firsts,
        events,
        outputs,
        sums,
    )
    scale = math.exp(-log_sum_mass(num_balls)) / nodes.period
    return np.clip(1.0 - sums * scale, 0.0, 1.0)


class _Steps(NamedTuple):
    """What is allowed one after the other: ``values`` w j in order, and the bin of each."""

    values: NDArray[np.float64]
    events: NDArray[np.int64]


def _steps(weights: NDArray[np.float64], loads: _Loads, start: float) -> _Steps:
    """Return all loads that are not allowed from the start, in the order of their weight."""
    values, events = [np.array([start])], [np.array([-1], dtype=np.int64)]
    for x, (following, last) in enumerate(zip(loads.next, loads.lasts, strict=True)):
        values.append(weights[x] * np.arange(following, last + 1))
        events.append(np.full(last + 1 - following, x, dtype=np.int64))
    flat = np.concatenate(values)
    order = np.argsort(flat, kind="stable")
    return _Steps(flat[order], np.concatenate(events)[order])


def _by_all_loads(
    num_balls: int, bins: _Bins, loads: _Loads, nodes: NodeSet
) -> tuple[float, float, float]:
    """Return the expectation, the sum of all gaps and a truncation error, load by load."""
    steps = _steps(bins.weights, loads, loads.low)
    outputs = np.arange(len(steps.values))
    chances = _chances(num_balls, bins, loads, nodes, events=steps.events, outputs=outputs)
    value = loads.low + math.fsum(np.diff(steps.values) * chances[:-1])
    return value, float(steps.values[-1]) - loads.low, 0.0


def _by_common_loads(
    num_balls: int, bins: _Bins, loads: _Loads, nodes: NodeSet
) -> tuple[float, float, float]:
    """Return the same where all weights are equal, at the loads of a rule."""
    weight = float(bins.weights[0])
    first = start = int(loads.firsts.max())
    if bins.rest == 0.0:
        first = max(first, -(-num_balls // len(bins.means)))
    last = int(loads.lasts.max())
    rule = lattice_rule(last - first + 1, num_panels(len(bins.means)))
    steps = _steps(np.ones(len(bins.means)), loads, float(start))
    reads = np.searchsorted(steps.values, first + rule.nodes, side="right") - 1
    places, inverse = np.unique(reads, return_inverse=True)
    outputs = np.full(len(steps.values), -1, dtype=np.int64)
    outputs[places] = np.arange(len(places))
    chances = _chances(num_balls, bins, loads, nodes, events=steps.events, outputs=outputs)
    total, truncation = rule.total(chances[inverse])
    return weight * (first + total), weight * rule.amplification, weight * truncation


def weighted_maximum(num_balls: int, law: ArrayLike, weights: ArrayLike) -> Enclosure:
    """Enclose E[max_x w_x h_x], where n independent balls fall into bins with the given law.

    Parameters
    ----------
    num_balls : int
        n, 1 to 1e15.
    law : (k,) array_like of float
        Probabilities of the bins, adding up to 1 within 1e-9 (they are scaled to do so).
    weights : (k,) array_like of float
        Weights w_x >= 0, the largest of them 0 or from 1e-200 to 1e200.

    Returns
    -------
    Enclosure
        Mostly within 1e-9 of the answer; the error budget is the module's.

    Raises
    ------
    ParameterError
        If an argument is not as above.
    OutOfRegimeError
        If above 2e8 steps would be needed; the message says how many.

    Notes
    -----
    Cost: nodes times the loads that matter, at most 6 sqrt(n) times 20 sqrt(n k): k = 50 and
    n = 2000 take some 10 ms. Where no bin is behind, k = 5 goes to about n = 5e5, in ten seconds
    (in one with equal weights). Bins that are clearly behind cost
    nothing, and their balls make nodes fewer.

    Source: ours; the module.

    Examples
    --------
    A single ball, which weighs 3 in the first bin and 1 in the second:

    >>> found = weighted_maximum(1, [0.25, 0.75], [3.0, 1.0])
    >>> round(found.lower, 9), round(found.upper, 9)
    (1.5, 1.5)
    """
    balls = require_at_least("num_balls", num_balls, 1)
    if balls > LARGEST_NUM_BALLS:
        raise ParameterError(f"num_balls = {balls} is above 1e15, where doubles skip numbers")
    chances, values = _checked(law, weights)
    unit = float(np.max(values))
    if not np.any(chances * values > 0.0):
        return Enclosure(0.0, 0.0)
    found = _unit_maximum(balls, chances, values / unit)
    return Enclosure(unit * found.lower * (1.0 - _ROUNDING), unit * found.upper * (1.0 + _ROUNDING))


def _unit_maximum(
    balls: int, chances: NDArray[np.float64], values: NDArray[np.float64]
) -> Enclosure:
    """Return the same for weights of which the largest is 1."""
    if len(chances) > 1 and np.all(chances == chances[0]) and np.all(values == values[0]):
        return maximum_load(balls, len(chances))
    bins = _relevant_bins(balls, chances, values)
    mean = balls * float(
        np.max(chances * values)
    )  # of the top bin alone: no maximum of several has a smaller one
    if len(bins.means) == 1:
        return Enclosure(mean * (1.0 - _ROUNDING), mean * (1.0 + _ROUNDING) + 1.001 * bins.left_out)
    log_sum = log_sum_mass(balls)
    loads = _relevant_loads(balls, bins, log_sum)
    nodes = _weighted_nodes(balls, bins, log_sum)
    _check_steps(nodes, loads)
    common = np.all(bins.weights == bins.weights[0])
    by = _by_common_loads if common else _by_all_loads
    value, amplification, truncation = by(balls, bins, loads, nodes)
    chance_error = _MASS_ERROR * (len(bins.means) + 1) * math.exp(-log_sum)
    ends = 1e-18 * float((bins.weights * (loads.lasts + 1)).sum())
    slack = truncation + amplification * chance_error + ends + _ROUNDING * value
    upper = value + slack + 1.001 * bins.left_out
    return Enclosure(max(value - slack, mean * (1.0 - _ROUNDING)), max(upper, mean))
