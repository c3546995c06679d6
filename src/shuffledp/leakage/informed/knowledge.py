"""Which knowledge of the others helps an adversary most, and which least, under k-RR.

All others' values are known, the target's is uniform. By symmetry only the multiset of the counts
c_1, ..., c_k matters, sum n - 1.

*Two values.* As below: exactly half of the others for
each value is the worst case for the target where n - 1 is even, at any n. All c are compared up to
n - 1 = 20 000; beyond that all lie between computed ends.

*More values, few users.* All multisets are compared, with V of each from all histograms. For any
other prior or randomizer, names matter, and all counts are compared (`compared_knowledge`).

*More values, more users.* Ends that hold for every knowledge:

- V <= `blanket_vulnerability_upper`;
- the worst V does not rise with n, so that of fewer users, all compared, is above it: whoever also
  learns one known user's report takes it out of the histogram, and guesses no worse;
- the worst V is at least that of the adversary who knows nobody (uniform values): the average over
  all knowledge of what the informed one guesses right is no less (data processing);
- every V >= 1/k + (p - r) / (k sqrt(1 + 12 v)), v = (n - 1) (p (1 - p) + (k - 1) r (1 - r)) / k.
  Proof: some value's count among the reports has variance at most v, the mean over all values.
  With an independent uniform number added, a whole-valued variable of largest mass M has a density
  of at most M and a variance larger by 1/12; no density below M has less variance than
  1/(12 M^2). So M >= 1 / sqrt(1 + 12 v); and that count alone gives 1/k + (p - r) M / k.

Between these, what is known of a few candidates: all others with one value, or spread evenly.

*Two values: which knowledge of the others helps most, and which least.*

N others, c of whom report a one with probability p and N - c with 1 - p, p > 1/2. What is guessed
right depends on the mode of their number of ones alone
(`shuffledp.leakage.informed.strong`). Since

    abs(1 - p + p e^(it)) = abs(p + (1 - p) e^(it)),

the modulus m(t) of the characteristic function is the same for every c: only its phase differs.

*Most.* Pr[S = s] <= (1 / 2 pi) integral of m(t)^N dt for every c and s, and for even N both are
equal at c = N/2, s = N/2, where the phase is 0. So **to know that exactly half of the others have
each value is the worst case for the target, if their number is even**. One more coin cannot raise
the mode of a sum, so for odd N that of N - 1 balanced others is above all.

*Least.* With z(t) what is left of the phase of a coin of chance 1 - p once its mean is taken out,
and s the whole number next to the mean, the phase of every c is at most t / 2 + N abs(z(t)) in
absolute value; and cos x >= 1 - x^2 / 2.

The two ends are within a relative 1 / (N p (1 - p)) or so of one another.
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
from shuffledp.leakage.channels.builders import Truth
from shuffledp.leakage.informed.blanket_vulnerability import (
    blanket_vulnerability_upper,
    excess_share,
)
from shuffledp.leakage.informed.histogram_law import (
    NEGLIGIBLE,
    SERIES_ANGLE,
    TAIL,
    Coins,
    Kind,
    Nodes,
    bernstein_window,
    histogram_box,
    mode_mass,
    phase_remainder,
    sum_nodes,
)
from shuffledp.leakage.informed.situation import Response, checked_num_users
from shuffledp.leakage.informed.strong import ASSUMPTIONS, SOURCE, strong_vulnerability

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
    """Return the largest mode there is for even N; for odd N, that of N - 1, above all.

    Examples
    --------
    >>> found = balanced_mode(2, Fraction(3, 4))  # 3/4 3/4 + 1/4 1/4
    >>> found.lower <= 0.625 <= found.upper <= 0.625 + 1e-12
    True
    """
    half = num_others // 2
    return mode_mass([Coins(half, truth), Coins(half, 1 - truth)])


def least_mode_lower(num_others: int, truth: Fraction) -> float:
    """Return a lower bound of the mode for every c, at least 0; for N >= 1 and 1/2 < p < 1.

    Examples
    --------
    >>> 0.0 <= least_mode_lower(100, Fraction(3, 4)) <= 0.1
    True
    """
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
    """Return the mode for each c in ``counts``, and a bound on the error of each.

    Notes
    -----
    Some sixty nodes each: 10 microseconds. See `histogram_law.mode_mass`.

    Examples
    --------
    >>> found, error = modes(2, Fraction(3, 4), np.array([0, 1]))
    >>> found.round(12).tolist(), error < 1e-12
    ([0.5625, 0.625], True)
    """
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
    >>> worst_knowledge(3, 2, 0.75).counts
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
    num_users: SupportsIndex, num_values: SupportsIndex, truth: Truth
) -> Extremes:
    """Return what `worst_knowledge` and `best_knowledge` do, for about the cost of one of them.

    Parameters
    ----------
    num_users, num_values, truth
        As for `worst_knowledge`.

    Returns
    -------
    Extremes
        Both.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range.

    Notes
    -----
    Cost and source as for `worst_knowledge`.

    Examples
    --------
    >>> found = extreme_knowledge(3, 2, 0.75)
    >>> found.worst.counts, found.best.counts
    ((1, 1), (0, 2))
    """
    users = checked_num_users(num_users)
    response = Response.of(truth, require_at_least("num_values", num_values, 2))
    others, values = users - 1, response.num_values
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


def worst_knowledge(num_users: SupportsIndex, num_values: SupportsIndex, truth: Truth) -> Knowledge:
    """Return the knowledge of the others that is worst for the target.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e10, target included.
    num_values : int
        k >= 2.
    truth : float, int or Fraction
        p in [1/k, 1] of k-ary randomized response.

    Returns
    -------
    Knowledge
        Its ``vulnerability`` encloses the largest V over all knowledge.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range.

    Notes
    -----
    Milliseconds for k = 2 (0.1 s for odd n - 1 near 20 000); up to seconds where multisets are
    compared; up to a second otherwise. `extreme_knowledge` finds both extremes at once.

    Source: ours; the module. For k = 2, 2 V - 1 is delta at epsilon = 0 of the shuffled collection.

    Examples
    --------
    >>> found = worst_knowledge(201, 2, 0.8)
    >>> found.counts, round(found.vulnerability.upper, 5)
    ((100, 100), 0.52116)
    """
    return extreme_knowledge(num_users, num_values, truth).worst


def best_knowledge(num_users: SupportsIndex, num_values: SupportsIndex, truth: Truth) -> Knowledge:
    """Return the knowledge of all others that tells least about the target.

    Parameters
    ----------
    num_users, num_values, truth
        As for `worst_knowledge`.

    Returns
    -------
    Knowledge
        Its ``vulnerability`` encloses the smallest V over all knowledge of everybody else.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range.

    Notes
    -----
    Cost as for `worst_knowledge`.

    Source: ours; the module.

    Examples
    --------
    >>> found = best_knowledge(3, 2, 0.75)
    >>> found.counts, round(found.vulnerability.upper, 9)
    ((0, 2), 0.640625)
    """
    return extreme_knowledge(num_users, num_values, truth).best


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
    if response.num_values > _MOST_VALUES:
        return False
    number = 0
    for number, _ in enumerate(_multisets(others, response.num_values), start=1):
        if number > _MOST_MULTISETS:
            return False
    return _is_quick(number, others, response.matrix())


def _is_quick(number: int, others: int, rows: NDArray[np.float64]) -> bool:
    """Whether so many counts of others are not too many for the histograms that each takes."""
    spread = _even(others, len(rows))
    box = histogram_box([Kind(c, row) for c, row in zip(spread, rows, strict=True) if c > 0])
    return number * box.num_cells <= _MOST_WORK


def _even(others: int, num_values: int) -> tuple[int, ...]:
    """Return counts that differ by one at most, ascending."""
    share, rest = divmod(others, num_values)
    return (share,) * (num_values - rest) + (share + 1,) * rest


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
    """Return the extremes for any randomizer and prior, of so many users as can be compared.

    Parameters
    ----------
    num_users : int
        n >= 1.
    randomizer : float or array_like of shape (k, m)
        The truth of k-ary randomized response, or the law of the report of each value.
    prior : (k,) array of float64
        Of the target's value.

    Returns
    -------
    num_compared : int
        At most n; the worst case of n users is no worse than that of fewer.
    extremes : Extremes
        Of so many users.

    Examples
    --------
    >>> found, extremes = compared_knowledge(3, 0.75, np.array([0.5, 0.5]))
    >>> found, extremes.worst.counts
    (3, (1, 1))
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
    values, truth, answer = response.num_values, response.truth, response.answer
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
