"""Which knowledge of the others helps an adversary most.

Two values and k-RR: half of the others for each value is the worst case where n - 1 is even; else
all knowledge is compared up to 500 others, and lies between computed ends beyond. More values: all
multisets (any prior or channel: all counts) are compared where they are few; else ends that hold
for every knowledge: the blanket, the worst case of fewer users, and the uninformed adversary below.
Proofs: docs/results/leakage-strong.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.blanket import blanket_vulnerability_upper
from shuffledp.leakage.builders import Truth
from shuffledp.leakage.fullest_bin import excess_share
from shuffledp.leakage.others import (
    Coins,
    Kind,
    Response,
    checked_num_users,
    histogram_box,
    mode_mass,
)
from shuffledp.leakage.strong import (
    ASSUMPTIONS,
    SOURCE,
    concentrated_lower,
    strong_vulnerability,
)

_ULP = math.ulp(1.0)


def balanced_mode(num_others: int, truth: Fraction) -> Enclosure:
    """Return the largest mode there is for even N; for odd N, that of N - 1, above all."""
    half = num_others // 2
    return mode_mass([Coins(half, truth), Coins(half, 1 - truth)])


# Binary: numbers of others up to which every c is looked at.
_MOST_SCANNED = 500

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

    Examples
    --------
    >>> worst_knowledge(3, 2, 0.75).counts
    (1, 1)
    """

    counts: tuple[int, ...]
    vulnerability: Bound
    is_extreme: bool


def worst_knowledge(
    num_users: SupportsIndex, domain_size: SupportsIndex, truth: Truth
) -> Knowledge:
    """Return the knowledge of the others that is worst for the target.

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
    Knowledge
        Its ``vulnerability`` encloses the largest V over all knowledge of everybody else.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range.

    Notes
    -----
    Milliseconds for k = 2 (0.1 s for odd n - 1 near 500, and ends 1e-3 of what is leaked apart
    beyond); up to seconds where multisets are compared; up to a second otherwise.

    Source: ours; docs/results/leakage-strong.md. For k = 2, 2 V - 1 at the worst knowledge is delta
    at epsilon = 0 of the shuffled collection.

    Examples
    --------
    >>> found = worst_knowledge(201, 2, 0.8)
    >>> found.counts, round(found.vulnerability.upper, 5)
    ((100, 100), 0.52116)
    """
    users = checked_num_users(num_users)
    response = Response.of(truth, require_at_least("domain_size", domain_size, 2))
    others, values = users - 1, response.domain_size
    if others == 0 or response.kept in (0, 1):
        # All knowledge is worth the same: nobody else, no information or no noise.
        counts = (0,) * (values - 1) + (others,)
        same = strong_vulnerability(response.truth, counts)
        return Knowledge(counts=counts, vulnerability=same, is_extreme=True)
    if values == 2:
        return _binary(others, response)
    if _can_compare(others, response):
        return _compared(_multisets(others, values), response.truth, None)
    return _enclosed(others, response)


def _binary(others: int, response: Response) -> Knowledge:
    """Return it for two values; mirrored counts are worth the same."""
    half = others // 2
    if others % 2 == 0:
        # All characteristic functions have the same modulus, and here the phase is 0.
        mode = balanced_mode(others, response.truth)
        return Knowledge(
            counts=(half, half),
            vulnerability=_from_mode(response, mode.lower, mode.upper, "balanced"),
            is_extreme=True,
        )
    if others <= _MOST_SCANNED:
        return _compared(_multisets(others, 2), response.truth, None)
    lower = mode_mass([Coins(half, response.truth), Coins(others - half, 1 - response.truth)]).lower
    # The worst case does not get worse with more users.
    upper = balanced_mode(others, response.truth).upper
    return Knowledge(
        counts=(half, others - half),
        vulnerability=_from_mode(response, lower, upper, "nearly balanced"),
        is_extreme=False,
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
) -> tuple[int, Knowledge]:
    """Return the worst for any randomizer and prior, and of how many users, at most n.

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
) -> Knowledge:
    """Return the worst of all of these."""
    found = [
        (counts, strong_vulnerability(randomizer, counts, prior=prior)) for counts in candidates
    ]
    counts, worst = max(found, key=lambda pair: pair[1].upper)
    lower = max(bound.lower or 0.0 for _, bound in found)
    claim = _claim(lower, worst.upper, "all knowledge")
    return Knowledge(counts=counts, vulnerability=claim, is_extreme=True)


def _claim(lower: float, upper: float, method: str) -> Bound:
    """Return the bound."""
    return Bound(lower=lower, upper=upper, method=method, source=SOURCE, assumptions=ASSUMPTIONS)


def _enclosed(others: int, response: Response) -> Knowledge:
    """Return ends for every knowledge; the lower from the most even, the most uneven, and none."""
    values, truth = response.domain_size, response.truth
    counts = _even(others, values)
    upper = blanket_vulnerability_upper(others + 1, values, truth)
    fewer = _most_comparable(others, lambda number: _can_compare(number, response))
    if 0 < others <= _FEWER * fewer:
        worst = _compared(_multisets(fewer, values), truth, None)
        upper = min(upper, worst.vulnerability.upper)
    # Who knows others' values guesses no worse than who knows nobody's.
    uninformed = 1.0 / values + float(response.kept) * excess_share(others + 1, values).lower
    lower = max(
        strong_vulnerability(truth, counts).lower or 0.0,
        concentrated_lower(others + 1, response),
        uninformed * (1.0 - 8.0 * _ULP),
    )
    claim = _claim(min(lower, upper), upper, "ends of all knowledge")
    return Knowledge(counts=counts, vulnerability=claim, is_extreme=False)
