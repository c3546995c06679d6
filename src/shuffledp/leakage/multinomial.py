"""One target in an exchangeable crowd: the mean of a maximum over one multinomial histogram.

The target's value has law q and is reported by a channel R; the other n - 1 reports are independent
with law s. With A_xy = q_x R_xy / s_y and C the mass of outcomes that only the target sends,

    V = C + (1/n) E[max_x sum_y A_xy h_y],   h ~ Multinomial(n, s).

Columns of A that are equal are merged, and rows that are nowhere above another's left out. Proofs:
docs/results/leakage-uninformed.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.contour import Floats
from shuffledp.leakage.matrices import as_numbers, check_law, checked_prior, float_channel

_ULP = math.ulp(1.0)

#: More users than this are refused: doubles skip numbers beyond.
MOST_USERS = 10**15

# A report that is rarer than this in the crowd would overflow the weights.
_RAREST = 1e-200

# Equal columns that were computed differently agree to so many digits.
_DIGITS = 13

# Rows squared times columns up to which rows that are never needed are looked for.
_MOST_COMPARISONS = 3e8


@dataclass(frozen=True, kw_only=True)
class MultinomialForm:
    """What is left of a single-target problem after reduction; see the module for the formula."""

    num_users: int  # n, the target included
    # Shape (m,); s, positive, of the outcomes that the crowd can send, after merging.
    law: Floats
    gains: Floats  # shape (k, m); A, >= 0, for the guesses that are needed
    # C, the probability that the target's report gives the target away and is guessed right.
    certain: float
    unshuffled: float  # Success where reports are not shuffled: sum_y max_x q_x R_xy
    slack: float  # Absolute error of V by the rounding of q, R, s, and by merging

    @cached_property
    def means(self) -> Floats:
        """Success of each constant guess, less C; shape (k,)."""
        return np.array([math.fsum(row) for row in self.gains * self.law])

    @cached_property
    def best(self) -> int:
        """Number of the row that is the best guess before anything is seen."""
        return int(self.means.argmax())

    @property
    def without_release(self) -> float:
        """Success of the best constant guess, C included: no release goes below it."""
        return self.certain + float(self.means[self.best])

    @cached_property
    def differences(self) -> Floats:
        """Rows of A less the best constant guess's, without that one; shape (k - 1, m)."""
        return np.delete(self.gains - self.gains[self.best], self.best, axis=0)


def multinomial_form(
    num_users: SupportsIndex,
    channel: Any,
    *,
    prior: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
) -> MultinomialForm:
    """Return the reduced form of a single-target problem, O(k^2 m).

    And O(k m) where that is above 3e8.

    Laws that are off one by at most 1e-9 are divided by their sums.
    """
    users = require_at_least("num_users", num_users, 1)
    if users > MOST_USERS:
        raise ParameterError(f"num_users = {users} is above {MOST_USERS:.0e}: give at most that")
    rows = float_channel(channel)
    if len(rows) < 2:
        raise ParameterError(
            "the channel has 1 row: with one value there is nothing to guess; give at least 2"
        )
    rows = rows / _sums(rows)[:, None]
    weights = checked_prior(prior, len(rows))
    joint = (weights / math.fsum(weights))[:, None] * rows
    joint = joint[joint.any(axis=1)]
    if crowd is None:
        law = _sums(joint.T)
    else:
        law = as_numbers("crowd", crowd, 1).astype(np.float64)
        if len(law) != rows.shape[1]:
            raise ParameterError(
                f"crowd has {len(law)} entries, not {rows.shape[1]}: give one probability for each "
                "outcome of the channel"
            )
        check_law("crowd", law)
        law = law / math.fsum(law)
    seen = law > 0.0
    if law[seen].min() < _RAREST:
        raise ParameterError(
            f"crowd has an entry of {law[seen].min()}, below {_RAREST}: set it to 0, or to more"
        )
    largest = joint.max(axis=0)
    gains, law, spread = _merged(joint[:, seen] / law[seen], law[seen])
    return MultinomialForm(
        num_users=users,
        law=law,
        gains=_needed(gains),
        certain=math.fsum(largest[~seen]),
        unshuffled=math.fsum(largest),
        # Each entry comes from at most eight roundings.
        slack=8.0 * _ULP * (2.0 + math.sqrt(0.5 * users)) + spread,
    )


def _sums(rows: Floats) -> Floats:
    """Return the sum of each row, right to one rounding."""
    return np.array([math.fsum(row) for row in rows])


def grouped_law(law: Floats, groups: NDArray[np.intp]) -> Floats:
    """Return the sum of each group's entries, right to one rounding."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order]))
    return np.array([math.fsum(part.tolist()) for part in np.split(law[order], starts + 1)])


def _merged(gains: Floats, law: Floats) -> tuple[Floats, Floats, float]:
    """Return gains and law with equal columns merged, and what V may lose or win by that."""
    fractions, exponents = np.frexp(gains)
    keys = np.ldexp(np.round(fractions, _DIGITS), exponents)
    _, firsts, groups = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    groups = groups.reshape(-1)
    moved = np.abs(gains - gains[:, firsts[groups]]).max(axis=0)
    return gains[:, firsts], grouped_law(law, groups), float(moved @ law)


def _needed(gains: Floats) -> Floats:
    """Return the rows that are somewhere above each other row; of equal rows one."""
    if float(len(gains)) ** 2 * gains.shape[1] > _MOST_COMPARISONS:
        return gains
    kept = gains
    for row in gains:
        if np.count_nonzero((kept >= row).all(axis=1)) > 1:  # one of them is the row itself
            kept = np.delete(kept, np.argmax((kept == row).all(axis=1)), axis=0)
    return kept


# Exponentials of tilts times weights stay finite, and so do their sums.
_LARGEST_EXPONENT = 500.0

_LEAST_MOMENT = 1e-12

# Nothing that is positive is rounded to 0.
_SMALLEST = 1e-290


def excess_means(num_users: int, law: Floats, parts: Floats) -> Floats:
    """Bound E[(sum_y parts_xy h_y / n)_+] for each row x from above.

    h ~ Multinomial(n, law). For every t > 0, s_+ <= e^(t s) / (e t), so with kappa the cumulant
    function of one report's weight the mean is at most e^(n kappa(t)) / (e n t).
    """
    means = parts @ law
    variances = np.maximum(np.square(parts - means[:, None]) @ law, _SMALLEST)
    tilts = np.maximum(-means / variances, 1.0 / np.sqrt(num_users * variances))
    tilts = np.minimum(tilts, _LARGEST_EXPONENT / max(float(np.abs(parts).max()), _SMALLEST))
    moments = np.expm1(tilts[:, None] * parts) @ law
    # A moment that is too large is safe, and one this small is all but lost to rounding.
    exponents = num_users * np.log1p(np.maximum(moments, _LEAST_MOMENT - 1.0)) - 1.0
    with np.errstate(under="ignore", over="ignore"):
        bounds = np.exp(exponents) / (num_users * tilts)
    # An average is above zero by no more than its terms are, on average (Jensen).
    least: Floats = 1.01 * np.minimum(bounds, np.maximum(parts, 0.0) @ law) + _SMALLEST
    return least
