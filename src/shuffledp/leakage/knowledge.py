"""Which knowledge of the others helps an adversary most, and which least.

Two values and k-RR: half of the others for each value is the worst case where n - 1 is even; all
knowledge is compared up to 20,000 others, and lies between computed ends beyond. More values: all
multisets (any prior or channel: all counts) are compared where they are few; else ends that hold
for every knowledge: the blanket, the worst case of fewer users, the uninformed adversary below, and

    V >= 1/k + (p - r) / (k sqrt(1 + 12 v)),   v = (n - 1) (p (1 - p) + (k - 1) r (1 - r)) / k.

Proof of that one: some value's count among the reports has variance at most v, the mean over all
values. With an independent uniform number added, a whole-valued variable of largest mass M has a
density of at most M and a variance larger by 1/12; no density below M has less variance than 1/(12
M^2). That count alone gives 1/k + (p - r) M / k. Other proofs: docs/results/leakage-strong.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.blanket import (
    blanket_vulnerability_upper,
    excess_share,
)
from shuffledp.leakage.builders import Truth
from shuffledp.leakage.others import (
    NEGLIGIBLE,
    SERIES_ANGLE,
    TAIL,
    Coins,
    Kind,
    Nodes,
    Response,
    bernstein_window,
    checked_num_users,
    histogram_box,
    mode_mass,
    phase_remainder,
    sum_nodes,
)
from shuffledp.leakage.strong import ASSUMPTIONS, SOURCE, strong_vulnerability

_ULP = math.ulp(1.0)

# Numbers of ones looked at in one go.
_BLOCK = 4096


def _common_nodes(num_others: int, truth: Fraction) -> Nodes:
    """Return nodes with a period that is long enough for every c."""
    variance = num_others * float(truth) * float(1 - truth)
    # Around any other mean the window is as long, but for rounding and for the ends of 0 ... N.
    first, last = bernstein_window(Fraction(num_others, 2), variance, num_others)
    length = min(last - first + 4, num_others + 1)
    nodes, _ = sum_nodes([Coins(num_others, truth)], period=length + 1 - length % 2)
    return nodes


def balanced_mode(num_others: int, truth: Fraction) -> Enclosure:
    """Return the largest mode there is for even N; for odd N, that of N - 1, above all."""
    half = num_others // 2
    return mode_mass([Coins(half, truth), Coins(half, 1 - truth)])


def least_mode_lower(num_others: int, truth: Fraction) -> float:
    """Return a lower bound of the mode for every c, at least 0; for N >= 1 and 1/2 < p < 1."""
    nodes = _common_nodes(num_others, truth)
    chance = float(1 - truth)
    phase = 0.5 * nodes.angles + num_others * np.abs(phase_remainder(chance, nodes.angles))
    terms = nodes.moduli * (1.0 - 0.5 * phase * phase)
    size = nodes.moduli * (1.0 + 0.5 * phase * phase)
    value = (1.0 + 2.0 * float(terms.sum())) / nodes.period
    error = 2.0 * float((size * 1e-12 + nodes.errors * (1.0 + phase)).sum()) + 4.0 * _ULP
    return max(value - 1.01 * (error / nodes.period + TAIL + NEGLIGIBLE), 0.0)


def modes(
    num_others: int, truth: Fraction, counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Return the mode for each c in ``counts``, and a bound on the error of each."""
    nodes = _common_nodes(num_others, truth)
    chance = float(1 - truth)
    skew = phase_remainder(chance, nodes.angles)
    means = counts * float(truth) + (num_others - counts) * chance
    centers = np.rint(means)
    order = np.where(nodes.angles <= SERIES_ANGLE, nodes.angles**3, nodes.angles)
    doubt = 16.0 * _ULP * (num_others * chance * order + nodes.angles)
    doubt += 4.0 * _ULP * num_others * nodes.angles  # of the means
    found = np.empty(counts.size)
    for first in range(0, counts.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        phases = np.outer(num_others - 2 * counts[block], skew)
        phases += np.outer(means[block] - centers[block], nodes.angles)
        waves = nodes.moduli * np.exp(1j * phases)
        turns = np.exp(-1j * np.outer([-1.0, 0.0, 1.0], nodes.angles))
        found[block] = (1.0 + 2.0 * (waves @ turns.T).real.max(axis=1)) / nodes.period
    error = 2.0 * float((nodes.errors + nodes.moduli * (doubt + 400.0 * _ULP)).sum()) + 4.0 * _ULP
    return found, 1.01 * (error / nodes.period + TAIL + NEGLIGIBLE)


# Binary: numbers of others up to which every c is looked at, and how many are beyond.
_MOST_SCANNED = 20_000
_SCANNED_BEYOND = 2_000

# Multisets times cells of a box, and multisets, up to which all are compared.
_MOST_WORK = 2e7
_MOST_MULTISETS = 2_000
_MOST_VALUES = 8

# Counts that are compared where names matter.
_MOST_COUNTS = 1_000

# The worst case of fewer users is looked at up to this times as many others.
_FEWER = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known of the others, and what the target's guesser makes of it.

    Parameters
    ----------
    counts : tuple of int
        How many of the others have each value: the extreme knowledge, or the most extreme that is
        known where ``is_extreme`` is false.
    vulnerability : Bound
        How often the best guess is right in the extreme case. It holds for the extreme case whether
        or not ``counts`` is it.
    is_extreme : bool
        Whether ``counts`` is extreme, up to round-off.
    proof : str
        Why, in one sentence.

    Examples
    --------
    >>> extreme_knowledge(3, 2, 0.75).worst.counts
    (1, 1)
    """

    counts: tuple[int, ...]
    vulnerability: Bound
    is_extreme: bool
    proof: str


class Extremes(NamedTuple):
    """The knowledge that is worst for the target, and the best."""

    worst: Knowledge
    best: Knowledge


def extreme_knowledge(
    num_users: SupportsIndex, domain_size: SupportsIndex, truth: Truth
) -> Extremes:
    """Return the knowledge of the others that is worst for the target, and the best.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e10, target included.
    domain_size : int
        k >= 2.
    truth : float, int or Fraction
        p in [1/k, 1] of k-ary randomized response.

    Returns
    -------
    Extremes
        ``worst`` and ``best``, whose ``vulnerability`` encloses the largest, and the smallest, V
        over all knowledge of everybody else.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range.

    Notes
    -----
    Milliseconds for k = 2 (0.1 s for odd n - 1 near 20 000); up to seconds where multisets are
    compared; up to a second otherwise.

    Source: ours; docs/results/leakage-strong.md. For k = 2, 2 V - 1 at the worst knowledge is delta
    at epsilon = 0 of the shuffled collection.

    Examples
    --------
    >>> found = extreme_knowledge(201, 2, 0.8)
    >>> found.worst.counts, round(found.worst.vulnerability.upper, 5)
    ((100, 100), 0.52116)
    >>> extreme_knowledge(3, 2, 0.75).best.counts
    (0, 2)
    """
    users = checked_num_users(num_users)
    response = Response.of(truth, require_at_least("domain_size", domain_size, 2))
    others, values = users - 1, response.domain_size
    if others == 0 or response.kept in (0, 1):
        counts = (0,) * (values - 1) + (others,)
        same = Knowledge(
            counts=counts,
            vulnerability=strong_vulnerability(response.truth, counts),
            is_extreme=True,
            proof="all knowledge is worth the same: nobody else, no information or no noise",
        )
        return Extremes(same, same)
    if values == 2:
        return _binary_extremes(others, response)
    if _can_compare(others, response):
        return _compared(_multisets(others, values), response.truth, None)
    return _enclosed(others, response)


def _binary_extremes(others: int, response: Response) -> Extremes:
    """Return both for two values."""
    return Extremes(_binary(others, response, worst=True), _binary(others, response, worst=False))


def _binary(others: int, response: Response, *, worst: bool) -> Knowledge:
    """Return it for two values."""
    if worst and others % 2 == 0:
        mode = balanced_mode(others, response.truth)
        return Knowledge(
            counts=(others // 2, others // 2),
            vulnerability=_from_mode(response, mode.lower, mode.upper, "balanced"),
            is_extreme=True,
            proof="all characteristic functions have the same modulus, and here the phase is 0",
        )
    choose = np.argmax if worst else np.argmin
    middle = others // 2
    all_scanned = others <= _MOST_SCANNED
    first = max(middle + 1 - _SCANNED_BEYOND, 0) if worst and not all_scanned else 0
    last = middle if worst or all_scanned else _SCANNED_BEYOND - 1
    counts = np.arange(first, last + 1)
    found, error = modes(others, response.truth, counts)
    place = int(choose(found))
    lower, upper = float(found[place]) - error, float(found[place]) + error
    proof = "all knowledge was compared; mirrored counts are worth the same"
    if not all_scanned:
        proof = "not known: the mode of every knowledge lies between computed ends"
        if worst:
            upper = max(upper, balanced_mode(others, response.truth).upper)
        else:
            lower = min(lower, least_mode_lower(others, response.truth))
    return Knowledge(
        counts=(int(counts[place]), others - int(counts[place])),
        vulnerability=_from_mode(response, lower, upper, "mode of all knowledge"),
        is_extreme=all_scanned,
        proof=proof,
    )


def _from_mode(response: Response, lower: float, upper: float, method: str) -> Bound:
    """Return 1/2 + (p - 1/2) times an enclosed mode."""
    half = 0.5 * float(response.kept)
    return Bound(
        lower=(0.5 + half * max(lower, 0.0)) * (1.0 - 4.0 * _ULP),
        upper=min((0.5 + half * upper) * (1.0 + 4.0 * _ULP), 1.0),
        method=method,
        source=SOURCE,
        assumptions=ASSUMPTIONS,
    )


def _multisets(total: int, parts: int, least: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield ascending tuples of ``parts`` numbers >= ``least`` with this sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(least, total // parts + 1):
        for rest in _multisets(total - first, parts - 1, first):
            yield (first, *rest)


def _can_compare(others: int, response: Response) -> bool:
    """Whether all multisets can be compared in a few seconds."""
    if response.domain_size > _MOST_VALUES:
        return False
    number = 0
    for number, _ in enumerate(_multisets(others, response.domain_size), start=1):
        if number > _MOST_MULTISETS:
            return False
    return _is_quick(number, others, response.matrix())


def _is_quick(number: int, others: int, rows: NDArray[np.float64]) -> bool:
    """Whether so many counts of others are not too many for the histograms that each takes."""
    spread = _even(others, len(rows))
    box = histogram_box([Kind(c, row) for c, row in zip(spread, rows, strict=True) if c > 0])
    return number * box.num_cells <= _MOST_WORK


def _even(others: int, domain_size: int) -> tuple[int, ...]:
    """Return counts that differ by one at most, ascending."""
    share, rest = divmod(others, domain_size)
    return (share,) * (domain_size - rest) + (share + 1,) * rest


def _most_comparable(others: int, is_comparable: Callable[[int], bool]) -> int:
    """Return how many of the others, at most, leave few enough counts to be compared."""
    low, high = 0, others
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_comparable(middle) else (low, middle - 1)
    return low


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of ``parts`` numbers >= 0 with this sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def compared_knowledge(
    num_users: int, randomizer: Any, prior: NDArray[np.float64]
) -> tuple[int, Extremes]:
    """Return the extremes for any randomizer and prior, and of how many users, at most n.

    The worst case of n users is no worse than that of fewer.
    """
    values = prior.size
    is_response = isinstance(randomizer, Real)
    rows = np.asarray(randomizer, dtype=np.float64) if not is_response else None
    if rows is None:
        rows = Response.of(float(randomizer), values).matrix()

    def is_comparable(others: int) -> bool:
        number = math.comb(others + values - 1, values - 1)
        return number <= _MOST_COUNTS and (others == 0 or _is_quick(number, others, rows))

    others = _most_comparable(num_users - 1, is_comparable)
    return others + 1, _compared(_compositions(others, values), randomizer, prior)


def _compared(
    candidates: Iterator[tuple[int, ...]], randomizer: Any, prior: NDArray[np.float64] | None
) -> Extremes:
    """Return both among all of these."""
    found = [
        (counts, strong_vulnerability(randomizer, counts, prior=prior, num_samples=0))
        for counts in candidates
    ]
    by_value = sorted(found, key=lambda pair: pair[1].upper)
    ways: list[tuple[Callable[..., float], int]] = [(max, -1), (min, 0)]
    worst, best = (
        Knowledge(
            counts=by_value[place][0],
            vulnerability=_claim(
                choose(_lower(bound) for _, bound in found),
                choose(bound.upper for _, bound in found),
                "all knowledge",
            ),
            is_extreme=True,
            proof="all knowledge was compared, up to the names of values where all are alike",
        )
        for choose, place in ways
    )
    return Extremes(worst, best)


def _lower(bound: Bound) -> float:
    """Return the lower end, which `strong_vulnerability` always has."""
    return 0.0 if bound.lower is None else bound.lower


def _claim(lower: float, upper: float, method: str) -> Bound:
    """Return the bound."""
    return Bound(lower=lower, upper=upper, method=method, source=SOURCE, assumptions=ASSUMPTIONS)


def _enclosed(others: int, response: Response) -> Extremes:
    """Return ends for every knowledge, and the most extreme candidates."""
    values, truth, answer = response.domain_size, response.truth, response.answer
    concentrated = (0,) * (values - 1) + (others,)
    candidates = {
        counts: strong_vulnerability(truth, counts, num_samples=0)
        for counts in (concentrated, _even(others, values))
    }
    blanket = blanket_vulnerability_upper(others + 1, values, truth)
    fewer = _most_comparable(others, lambda number: _can_compare(number, response))
    if 0 < others <= _FEWER * fewer:
        worst_of_fewer = _compared(_multisets(fewer, values), truth, None).worst
        blanket = min(blanket, worst_of_fewer.vulnerability.upper)
    most = max(candidates, key=lambda each: _lower(candidates[each]))
    lower = _lower(candidates[most])
    if candidates[most].method == "ends":
        # Of no use, wherever it was tried, beside what is exact where all have one value.
        uninformed = 1.0 / values + float(response.kept) * excess_share(others + 1, values)[0]
        lower = max(lower, uninformed * (1.0 - 8.0 * _ULP))
    worst = _between(most, lower, blanket)
    least = min(candidates, key=lambda each: candidates[each].upper)
    spread = others * (truth * (1 - truth) + (values - 1) * answer * (1 - answer)) / values
    mode = 1.0 / math.sqrt(1.0 + 12.0 * float(Fraction(spread)))
    lower = (1.0 + float(response.kept) * mode) / values * (1.0 - 16.0 * _ULP)
    return Extremes(worst, _between(least, lower, min(candidates[least].upper, blanket)))


def _between(counts: tuple[int, ...], lower: float, upper: float) -> Knowledge:
    """Return ends of all knowledge, and a candidate."""
    return Knowledge(
        counts=counts,
        vulnerability=_claim(min(lower, upper), upper, "ends of all knowledge"),
        is_extreme=False,
        proof="not known: ends that hold for every knowledge, and two candidates",
    )
