"""What can be guessed at most, whatever is known of the others: their noise alone must hide.

For a uniform target and k-RR, whatever the adversary knows of the n - 1 others,

    V <= r + (p - r) E[V_S(B + 1)],   B ~ Bin(n - 1, k r),

V_S(m) being the share of m balls in the fullest of k bins. For any prior q it is at most k max(q)
times that; for any randomizer the blanket min_x R_xy takes the place of the uniform noise. V(m)
does not rise with m, so the law of B may be cut into ranges that stand at their left ends. Proofs:
docs/results/leakage-strong.md.

*The fullest of some bins where most balls may fall beside them, or into one heavier bin.* n
independent balls fall into each of b bins with chance r, and with p = 1 - b r into the rest. As in
`fullest_bin` the counts are Poisson variables that must add up to n; here the factor of the rest
falls like a normal density, so that some forty nodes are enough for any n, unless p is small. Where
the rest is a bin of weight r / p, nothing of its count has to be rounded: its masses count with the
weights min(max(g - m, 0), 1), g = h_0 r / p (docs/results/leakage-strong.md, eq. 3).

*Left out.* Below the first load, by negative association of the counts (Joag-Dev and Proschan
1983), Pr[max <= m] <= Pr[h_1 <= m]^b, which Chernoff bounds by e^-80; the heavier bin begins at n
r, the least that is possible. Above the last one Bernstein's inequality and the union of all bins
leave e^-48. *Round-off.* First-order effects of an error of 1e-14 of each mass and phase are added
up. With many loads only those of a `LatticeRule` are looked at; its truncation is an estimate.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.leakage.builders import Truth
from shuffledp.leakage.channel import Channel, as_channel
from shuffledp.leakage.fullest_bin import (
    contour_period,
    largest_mass,
    lattice_rule,
    log_sum_mass,
    maximum_load_excess,
)
from shuffledp.leakage.matrices import checked_prior
from shuffledp.leakage.others import Coins, Response, checked_num_users, mode_mass, report_law

_ULP = math.ulp(1.0)
_LOG_NEGLIGIBLE = math.log(1e-19)
_LOG_BELOW = -80.0
_LOG_ABOVE = -48.0
_TRUNCATION = 5e-18
_MASS_ERROR = 1e-14

# Steps of the sums over nodes: about 0.7 s. A load is worth so many masses.
_MOST_STEPS = 2e8
_STEPS_A_LOAD = 30.0

# A panel of a lattice rule is some four deviations wide: loads begin ten below the mean, or at it.
_NUM_PANELS = 5
_NUM_HEAVY_PANELS = 4

# Nodes that are worked on in one go.
_BLOCK = 256

# Below e^-30 a characteristic function is nothing beside the round-off of what is taken from it.
_LOG_SMALL = -30.0
_LARGEST_EXPONENT = 50.0


_Values = NDArray[np.float64]


class _Setting(NamedTuple):
    """n balls, b bins of mean ``mean``, the rest with the mean ``rest``; ``shift`` is missing."""

    balls: int
    bins: int
    mean: float
    rest: float
    shift: float
    slope: float


class _Tail(NamedTuple):
    """Sums over what is above each load: waves, shape (nodes, loads), and masses, (loads,)."""

    waves: NDArray[np.complex128]
    masses: NDArray[np.float64]


def noise_load_excess(num_balls: int, num_bins: int, chance: Fraction) -> Enclosure | None:
    """Enclose E[max h_x] - n r for n balls of which each of b bins gets one with chance r.

    B r <= 1.

    To some 1e-12 of it; None where it would take above 0.7 s.
    """
    return _excess(num_balls, num_bins, chance, is_heavy=False)


def heavy_load_excess(num_balls: int, num_bins: int, chance: Fraction) -> Enclosure | None:
    """Enclose E[max(max h_x, h_0 r / p)] - n r, h_0 the balls beside the bins, p = 1 - b r >= r.

    Some sqrt(n) nodes: up to n = 1e6 for three values, 1e9 for a hundred; else None.
    """
    return _excess(num_balls, num_bins, chance, is_heavy=True)


def _excess(balls: int, bins: int, chance: Fraction, *, is_heavy: bool) -> Enclosure | None:
    """Return either, or None where it takes long."""
    mean = float(balls * chance)
    exact = Fraction(mean)
    rest = float(max(balls - bins * exact, Fraction(0)))
    setting = _Setting(
        balls=balls,
        bins=bins,
        mean=mean,
        rest=rest,
        shift=float(balls - bins * exact - Fraction(rest)),
        slope=float(chance / (1 - bins * chance)) if is_heavy else 0.0,
    )
    first, last = _load_window(setting)
    rule = lattice_rule(last - first, _NUM_HEAVY_PANELS if is_heavy else _NUM_PANELS)
    angles = _angles(setting)
    counted = max(last - mean, 1.0) * (1.0 + (1.0 / setting.slope if is_heavy else 0.0))
    if angles.size * (counted + _STEPS_A_LOAD * rule.nodes.size) > _MOST_STEPS:
        return None
    # The chance at the first load may be on the other side of a bend.
    loads = np.append(first, first + 1 + rule.nodes)
    tails, errors = _tails(setting, loads, last, angles)
    total, truncation = rule.total(tails[1:])
    value = float(first - exact) + float(tails[0]) + total
    # The law is that of the rounded mean: balls whose bin differs, and r / p.
    slack = 4.0 * _ULP * (balls + abs(value)) + truncation
    slack += (1.0 + rule.amplification) * float(errors.max()) + math.exp(_LOG_ABOVE)
    slack += max(first, 1) * math.exp(_LOG_BELOW)
    return Enclosure(max(value - slack, 0.0), value + slack)


def _load_window(setting: _Setting) -> tuple[int, int]:
    """Return the first and the last load that matter."""
    needed = math.log(setting.bins + 1.0) + math.log(setting.balls) - _LOG_ABOVE
    third = needed / 3.0
    reach = third + math.sqrt(third * third + 2.0 * needed * setting.mean)
    last = max(min(math.ceil(setting.mean + reach), setting.balls), 1)
    if setting.slope > 0.0:
        # Of the numbers whose maximum it is n r is a mean: none is smaller.
        return min(math.floor(setting.mean), last - 1), last
    reach = math.sqrt(-2.0 * _LOG_BELOW * setting.mean / setting.bins)
    return min(max(math.floor(setting.mean - reach), 0), last - 1), last


def _angles(setting: _Setting) -> NDArray[np.float64]:
    """Return the nodes that matter, from 0 up."""
    period = contour_period(setting.balls)
    limit = _LOG_NEGLIGIBLE + log_sum_mass(setting.balls)
    height = math.log(largest_mass(setting.mean))
    heavy = math.log(largest_mass(setting.rest))

    def matters(node: int) -> bool:
        sine = math.sin(math.pi * node / period)
        size = setting.bins * min(height - math.log(sine), 0.0)
        if setting.slope > 0.0:
            size += min(heavy - math.log(sine), 0.0)
        else:
            size -= 2.0 * setting.rest * sine * sine
        return max(size, -2.0 * setting.balls * sine * sine) > limit

    low, high = 1, (period + 1) // 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if matters(middle) else (low, middle)
    return np.arange(low, dtype=np.float64) * np.float64(2.0 * math.pi / period)


def _tails(
    setting: _Setting, loads: NDArray[np.int64], last: int, angles: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load], and bounds of the errors."""
    from shuffledp.leakage.load_kernels import (
        poisson_masses,
    )

    first = int(loads[0]) + 1
    masses = poisson_masses(setting.mean, first, last + 1 - first + 1)
    heavy = np.empty(0)
    heavy_first = 0
    if setting.slope > 0.0:
        heavy_first = math.floor(loads[0] / setting.slope)
        heavy_last = math.ceil((last + 1) / setting.slope)
        heavy = poisson_masses(setting.rest, heavy_first, heavy_last - heavy_first + 1)
    sums, sizes = np.zeros(loads.size), np.zeros(loads.size)
    for block, terms_of in _blocks(setting, angles):
        shares = np.where(block > 0.0, 2.0, 1.0)
        light = _tail(masses, first, setting.mean, block, loads + 1)
        found = None
        if setting.slope > 0.0:
            found = _heavy_tail(heavy, heavy_first, setting, block, loads)
        terms, errors = terms_of(setting, block, light, found)
        sums += shares @ terms
        sizes += shares @ errors
    scale = math.exp(-log_sum_mass(setting.balls)) / contour_period(setting.balls)
    return np.clip(sums * scale, 0.0, 1.0), sizes * (scale * _MASS_ERROR) + _TRUNCATION


def _blocks(
    setting: _Setting, angles: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.float64], Callable[..., tuple[_Values, _Values]]]]:
    """Yield nodes in blocks, with how their terms are to be found."""
    largest = max(setting.mean, setting.rest if setting.slope > 0.0 else 0.0)
    near = int(np.count_nonzero(2.0 * largest * np.sin(0.5 * angles) ** 2 < -_LOG_SMALL))
    for first, last, terms_of in ((0, near, _terms_near), (near, angles.size, _terms_far)):
        for start in range(first, last, _BLOCK):
            yield angles[start : min(start + _BLOCK, last)], terms_of


def _tail(
    masses: NDArray[np.float64],
    first: int,
    mean: float,
    angles: NDArray[np.float64],
    edges: NDArray[np.int64],
) -> _Tail:
    """Return sums over all numbers from each edge up; edges ascend."""
    from shuffledp.leakage.informed_kernels import group_waves

    starts = np.minimum(edges - first, masses.size)
    stops = np.append(starts[1:], masses.size)
    waves = group_waves(masses, first - mean, angles, starts, stops)
    above = np.cumsum(waves[::-1], axis=0)[::-1].T
    totals = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    return _Tail(above, totals[starts])


def _heavy_tail(
    masses: NDArray[np.float64],
    first: int,
    setting: _Setting,
    angles: NDArray[np.float64],
    loads: NDArray[np.int64],
) -> _Tail:
    """Return sums over the rest's numbers with the weights of the module."""
    from shuffledp.leakage.informed_kernels import group_waves

    begins = np.floor(loads / setting.slope).astype(np.int64)
    ends = np.ceil((loads + 1) / setting.slope).astype(np.int64)
    edges, places = np.unique(ends, return_inverse=True)
    whole = _tail(masses, first, setting.rest, angles, edges)
    # Each load has weights of its own: the groups are laid side by side.
    waves, sizes = whole.waves[:, places], whole.masses[places]
    for i, (load, begin, end) in enumerate(zip(loads, begins, ends, strict=True)):
        numbers = np.arange(begin, end)
        weighted = masses[begin - first : end - first] * np.clip(
            numbers * setting.slope - load, 0.0, 1.0
        )
        one = np.array([weighted.size])
        part = group_waves(weighted, begin - setting.rest, angles, np.zeros_like(one), one)
        waves[:, i] += part[0]
        sizes[i] += weighted.sum()
    return _Tail(waves, sizes)


def _log_free(mean: float, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Return ln E[e^(i t (X - mean))] for a Poisson variable: mean (e^(it) - 1 - it)."""
    # sin t - t, by its series where it would cancel.
    square = np.minimum(angles, 0.5) ** 2
    series = np.ones_like(angles)
    for j in range(9, 1, -1):
        series = 1.0 - series * square / (2.0 * j * (2.0 * j + 1.0))
    defect = np.where(angles > 0.5, np.sin(angles) - angles, -angles * square / 6.0 * series)
    found: NDArray[np.complex128] = mean * (-2.0 * np.sin(0.5 * angles) ** 2 + 1j * defect)
    return found


class _Kept(NamedTuple):
    """What is left of a characteristic function phi once its tail T is taken away."""

    lost: NDArray[np.complex128]
    log: NDArray[np.complex128]
    doubt: NDArray[np.float64]


def _kept(log_free: NDArray[np.complex128], tail: _Tail) -> _Kept:
    """Return what is left for each node (rows) and load (columns), without cancellation."""
    gone = tail.waves * np.exp(-log_free)
    square = gone.real * (gone.real - 2.0) + gone.imag * gone.imag
    turned = np.arctan2(-gone.imag, 1.0 - gone.real)
    lost = 0.5 * np.log1p(np.maximum(square, -1.0 + _ULP)) + 1j * turned
    log = log_free + lost
    return _Kept(lost, log, tail.masses * np.exp(-log.real))


def _terms_near(
    setting: _Setting, angles: NDArray[np.float64], light: _Tail, heavy: _Tail | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the real parts of the integrand, and first-order sizes of their round-off."""
    free = _log_free(setting.mean, angles)[:, None]
    rest = _log_free(setting.rest, angles)[:, None]
    turn = (-1j * setting.shift * angles)[:, None]
    each = _kept(free, light)
    other = _Kept(0.0 * free, rest, 0.0 * free.real)
    if heavy is not None:
        other = _kept(rest, heavy)
    lost = setting.bins * each.lost + other.lost
    doubt = setting.bins * each.doubt + other.doubt
    whole = np.exp(setting.bins * free + rest + turn)
    remaining = np.exp(setting.bins * each.log + other.log + turn)
    is_small = lost.real < _LARGEST_EXPONENT
    share = -np.expm1(np.where(is_small, lost, 0.0))
    terms = np.where(is_small, whole * share, whole - remaining)
    roundings = np.abs(whole) * (1.0 - setting.bins * free.real - rest.real)
    roundings = np.where(is_small, 4.0 * np.minimum(np.abs(share), 2.0), 2.0) * roundings
    errors = roundings + np.abs(remaining) * (2.0 * doubt + np.where(is_small, 0.0, 4.0))
    return terms.real, errors


def _terms_far(
    setting: _Setting, angles: NDArray[np.float64], light: _Tail, heavy: _Tail | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same where some characteristic function is below that: all that is left counts."""
    free = _log_free(setting.mean, angles)[:, None]
    rest = _log_free(setting.rest, angles)[:, None]
    turn = np.exp((-1j * setting.shift * angles)[:, None])
    whole = np.exp(setting.bins * free + rest) * turn
    each = np.exp(free) - light.waves
    size = np.abs(each)
    doubt = setting.bins * (light.masses + np.exp(free.real)) * size ** (setting.bins - 1)
    remaining = _power(each, setting.bins)
    if heavy is None:
        other = np.exp(rest)
        doubt = doubt * np.abs(other)
    else:
        other = np.exp(rest) - heavy.waves
        doubt = doubt * np.abs(other)
        doubt += size**setting.bins * (heavy.masses + np.exp(rest.real))
    remaining = remaining * (other * turn)
    roundings = np.abs(whole) * (1.0 - setting.bins * free.real - rest.real)
    return (whole - remaining).real, 2.0 * roundings + 2.0 * doubt + 4.0 * np.abs(remaining)


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return a power by squaring, some log2 of the exponent roundings."""
    result, square = np.ones_like(base), base
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        square = square * square
    return result


# Up to so many outcomes each is a range of its own.
_MOST_SINGLE = 64

# A range is so wide, relative to the mean, that about half of it is lost of what is leaked; and at
# least this share of a deviation.
_RELATIVE_WIDTH = 1e-3
_NARROWEST = 0.3
_FAR = 7.4  # deviations; normal tails beyond are 1e-13

# Bounds that are kept: one question asks for the same one several times.
_REMEMBERED = 64


class NoiseRanges(NamedTuple):
    """A binomial law in ranges: first outcome and mass of each, and the error of all masses."""

    starts: list[int]
    masses: list[float]
    error: float


def noise_ranges(count: int, chance: Fraction, *, coarseness: float = 1.0) -> NoiseRanges:
    """Cut the law of Bin(count, chance) into ranges, finely enough for averages of smooth curves.

    Starts ascend; masses add up to 1 within ``error``.
    """
    law = report_law([Coins(count, chance)])
    last = min(law.first + law.masses.size - 1, count)
    size = last - law.first + 1
    if size <= _MOST_SINGLE / coarseness:
        starts = list(range(law.first, last + 1))
    else:
        mean = count * float(chance)
        deviation = math.sqrt(mean * float(1 - chance))
        step = max(_RELATIVE_WIDTH * mean / deviation, _NARROWEST) * coarseness * deviation
        far = math.floor(mean - _FAR * deviation)
        inner = np.arange(far, mean + _FAR * deviation, max(step, 1.0)).astype(np.int64)
        inside = {int(start) for start in inner if law.first < start <= last}
        starts = sorted({law.first} | inside)
    edges = np.array(starts) - law.first
    masses = np.add.reduceat(law.masses[:size], edges)
    return NoiseRanges(starts, masses.tolist(), law.error + 1e-15)


def excess_share(num_balls: int, num_bins: int) -> tuple[float, float]:
    """Enclose V_S(m) - 1/k: by how much the fullest bin's share is above an even one."""
    if num_bins == 2:
        # The fullest of two bins holds half of the balls, and half of the mode's mass more.
        found = mode_mass([Coins(num_balls - 1, Fraction(1, 2))])
        return 0.5 * found.lower, 0.5 * found.upper
    found = maximum_load_excess(num_balls, num_bins)
    return found.lower / num_balls, found.upper / num_balls


def blanket_vulnerability_upper(
    num_users: SupportsIndex,
    num_values: SupportsIndex,
    truth: Truth,
    prior: ArrayLike | None = None,
) -> float:
    """Bound how often a value is guessed right by whoever knows all others' values.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e10, target included.
    num_values : int
        k >= 2.
    truth : float, int or Fraction
        p in [1/k, 1] of k-ary randomized response.
    prior : array_like of float, shape (k,), optional
        Of the target's value; uniform if not given.

    Returns
    -------
    float
        At most 1. Errs upwards: by round-off, and what the bound loses; by a thousandth of what is
        leaked where n is large and p is within a hundredth or so of 1/k.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range, or the prior is none.

    Notes
    -----
    Milliseconds, 20 ms at n = 1e9; up to a second where p is that close to 1/k.

    Source: ours; docs/results/leakage-strong.md. The randomizer as in Jurado, Gonze, Alvim,
    Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative Information Flow",
    CSF 2023, hal-04349295v1, Definition 10.

    Examples
    --------
    Alone, the target's report is seen; with no noise, nothing hides it.

    >>> round(blanket_vulnerability_upper(1, 2, 0.75), 9), blanket_vulnerability_upper(9, 3, 1)
    (0.75, 1.0)
    >>> round(blanket_vulnerability_upper(2, 2, 0.75), 9)  # B is 0 or 1: (1 + 3/4) / 2 of the way
    0.6875
    """
    users = checked_num_users(num_users)
    response = Response.of(truth, require_at_least("num_values", num_values, 2))
    law = checked_prior(prior, response.num_values)
    uniform = _uniform_upper(users, response)
    if prior is None:
        return uniform
    unshuffled = round_up(response.unshuffled(law), operations=law.size + 4)
    scaled = round_up(response.num_values * float(law.max()) * uniform, operations=4)
    return min(unshuffled, scaled, 1.0)


@lru_cache(maxsize=_REMEMBERED)
def _uniform_upper(num_users: int, response: Response) -> float:
    """Return (1), rounded up: 1/k, and the mean excess times p - r."""
    if response.kept == 0:
        return round_up(1.0 / response.num_values, operations=1)
    if response.answer == 0:
        return 1.0
    found = noise_load_excess(num_users, response.num_values, response.answer)
    if found is None:
        excess = _excess_by_ranges(num_users, response)
    else:
        excess = round_up(found.upper / (num_users * float(response.noise)), operations=4)
    leaked = round_up(float(response.kept) * excess, operations=4)
    # r + (p - r)/k = 1/k.
    return min(round_up(1.0 / response.num_values + leaked, operations=4), 1.0, _up(response.truth))


def _excess_by_ranges(num_users: int, response: Response) -> float:
    """Return the mean of V_S(B + 1) - 1/k, rounded up, from ranges of B."""
    ranges = noise_ranges(num_users - 1, response.noise)
    excess = ranges.error
    for start, mass in zip(ranges.starts, ranges.masses, strict=True):
        share = 1.0 - 1.0 / response.num_values
        if start > 0:
            share = min(excess_share(start + 1, response.num_values)[1], share)
        excess += mass * share
    return round_up(excess, operations=2 * len(ranges.starts) + 4)


def _up(number: Fraction) -> float:
    """Return a double at or above a fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def channel_blanket_upper(
    num_users: SupportsIndex,
    channel: Channel | ArrayLike,
    *,
    prior: ArrayLike | None = None,
) -> float:
    """Bound how often a value is guessed right under any randomizer.

    Whatever is known of the others.

    Errs upwards; at most what the unshuffled report gives.
    """
    from shuffledp.leakage.uninformed import exchangeable_vulnerability

    users = checked_num_users(num_users)
    matrix = as_channel(channel).to_dense()
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    law = checked_prior(prior, len(matrix))
    unshuffled = float((law[:, None] * matrix).max(axis=0).sum())
    alone = min(round_up(unshuffled, operations=matrix.shape[1] + 4), 1.0)
    blanket: NDArray[np.float64] = matrix.min(axis=0)
    # A smaller chance of noise is a weaker blanket: this errs upwards.
    chance = min(float(blanket.sum()) * (1.0 - 1e-14), 1.0)
    if chance <= 0.0:
        return alone
    ranges = noise_ranges(users - 1, Fraction(chance), coarseness=4.0)
    total = ranges.error
    for start, mass in zip(ranges.starts, ranges.masses, strict=True):
        found = alone
        if start > 0:
            crowd = blanket / blanket.sum()
            found = exchangeable_vulnerability(
                start + 1, matrix, prior=law, crowd=crowd, num_samples=0
            ).upper
        total += mass * min(found, alone)
    return min(round_up(total, operations=2 * len(ranges.starts) + 4), alone)
