"""One target in an exchangeable crowd in exact fractions, by listing all histograms."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import as_channel, checked_prior

#: Histograms times entries of the channel, at most: about ten seconds.
MOST_EXACT_WORK = 10_000_000


def exact_exchangeable_vulnerability(
    num_users: SupportsIndex,
    channel: Any,
    *,
    prior: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
) -> Fraction:
    """Return what `exchangeable_vulnerability` encloses, for few users.

    Parameters
    ----------
    num_users : int
        n >= 1, the target included.
    channel : Channel or array_like of Fraction or int, shape (k, m)
        R; k >= 2.
    prior : array_like of Fraction or int, shape (k,), optional
        q; uniform if not given.
    crowd : array_like of Fraction or int, shape (m,), optional
        s; q R if not given.

    Returns
    -------
    Fraction
        V, exactly.

    Raises
    ------
    ParameterError
        If a law is none or holds floats, sizes do not fit, or there are too many histograms.

    Notes
    -----
    Sum over all histograms g of the others' reports and what the target adds to them: C(n+m-1, m-1)
    histograms times k m; above 1e7 of these it refuses.

    Source: the definition; Jurado, Gonze, Alvim, Palamidessi, CSF 2023, hal-04349295v1, Props. 16,
    18, 20 and 21, for k-RR and uniform priors.

    Examples
    --------
    >>> exact_exchangeable_vulnerability(3, [[1, 0], [0, 1]])
    Fraction(3, 4)
    """
    users = require_at_least("num_users", num_users, 1)
    found = as_channel(channel)
    if not found.is_exact:
        raise ParameterError("the channel holds floats where exact fractions are needed")
    rows = found.matrix.tolist()
    size = len(rows[0])
    weights = checked_prior(prior, len(rows), exact=True).tolist()
    work = math.comb(users + size - 1, size - 1) * len(rows) * size
    if work > MOST_EXACT_WORK:
        raise ParameterError(
            f"num_users = {users} with {size} outcomes has {work // (len(rows) * size)} "
            f"histograms, {work} steps with {len(rows)} values, above {MOST_EXACT_WORK}: use "
            "exchangeable_vulnerability, which does not need them"
        )
    joint = [[weight * entry for entry in row] for weight, row in zip(weights, rows, strict=True)]
    if crowd is None:
        law = [sum(column, Fraction(0)) for column in zip(*joint, strict=True)]
    else:
        law = checked_prior(crowd, size, exact=True).tolist()
    others = dict(_histograms(users - 1, law))
    total = Fraction(0)
    for histogram, _ in _histograms(users, [Fraction(1)] * size):
        # Chance of the others' reports where the target sent y.
        chances = [others.get(_without(histogram, y), Fraction(0)) for y in range(size)]
        total += max(sum(map(_product, row, chances), Fraction(0)) for row in joint)
    return total


def _product(first: Fraction, second: Fraction) -> Fraction:
    return first * second


def _without(histogram: tuple[int, ...], outcome: int) -> tuple[int, ...]:
    """Return the histogram with one report of ``outcome`` less."""
    return (*histogram[:outcome], histogram[outcome] - 1, *histogram[outcome + 1 :])


def _histograms(
    num_reports: int, law: list[Fraction]
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Yield all histograms of independent reports with their probabilities."""
    if len(law) == 1:
        yield (num_reports,), law[0] ** num_reports
        return
    for count in range(num_reports + 1):
        chance = math.comb(num_reports, count) * law[0] ** count
        for rest, mass in _histograms(num_reports - count, law[1:]):
            yield (count, *rest), chance * mass
