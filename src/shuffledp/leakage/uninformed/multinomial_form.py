"""One target in an exchangeable crowd, as the mean of a maximum over one multinomial histogram.

The target's value x has law q and is reported by a channel R; the other n - 1 reports are
independent with law s. A histogram h of all n reports then has, together with x, the probability

    q_x sum_y R_xy Mult_{n-1}(h - e_y; s) = Mult_n(h; s) (1/n) sum_y A_xy h_y,

    A_xy = q_x R_xy / s_y,

because Mult_{n-1}(h - e_y; s) = Mult_n(h; s) h_y / (n s_y). The best guess takes the largest x, so

    V = C + (1/n) E[max_x sum_y A_xy h_y],   h ~ Multinomial(n, s).

An outcome y that the crowd never sends, s_y = 0, gives the target away: nobody else can have sent
it. Such outcomes add C = sum_y max_x q_x R_xy, and are left out of the histogram.

*Made smaller.* Columns of A that are equal can be merged: only their sum counts. A guess whose row
is nowhere above another's is never needed.

*Rounding.* Let every entry of q, R and s be right to a relative error of a. The law of (x, h) moves
in total variation by at most 2 a for the target and, by Pinsker's inequality with a relative
entropy of at most a^2 for each other report, a sqrt(n / 2) for the crowd; V moves by no more.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.matrices import checked_matrix
from shuffledp.leakage.channels.rationals import (
    SUM_TOLERANCE,
    as_numbers,
    is_exact_array,
    to_floats,
)
from shuffledp.leakage.priors import checked_prior

_ULP = math.ulp(1.0)

#: More users than this are refused: counts are sampled as 64-bit integers, and rounded to doubles.
MOST_USERS = 10**15

# A report that is rarer than this in the crowd would overflow the weights.
_RAREST = 1e-200

# Equal columns that were computed differently agree to so many digits.
_DIGITS = 13

# Rows squared times columns up to which rows that are never needed are looked for.
_MOST_COMPARISONS = 3e8


@dataclass(frozen=True, kw_only=True)
class MultinomialForm:
    """What is left of a single-target problem after reduction; see the module for the formula.

    Parameters
    ----------
    num_users : int
        n, the target included.
    law : ndarray of float64, shape (m,)
        s, positive, of the outcomes that the crowd can send, after merging.
    gains : ndarray of float64, shape (k, m)
        A, >= 0, for the guesses that are needed.
    certain : float
        C, the probability that the target's report gives the target away and is guessed right.
    unshuffled : float
        Success where reports are not shuffled: sum_y max_x q_x R_xy.
    slack : float
        Absolute error of V by the rounding of q, R, s, and by merging.
    """

    num_users: int
    law: NDArray[np.float64]
    gains: NDArray[np.float64]
    certain: float
    unshuffled: float
    slack: float

    @cached_property
    def means(self) -> NDArray[np.float64]:
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
    def differences(self) -> NDArray[np.float64]:
        """Rows of A less the best constant guess's, without that one; shape (k - 1, m)."""
        return np.delete(self.gains - self.gains[self.best], self.best, axis=0)


def dense_channel(channel: Any, *, exact: bool = False) -> NDArray[Any]:
    """Return the matrix of a `Channel` or array_like as dense doubles, or as fractions.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        Rows sum to one; at least two.
    exact : bool, optional
        Return fractions, and refuse doubles.

    Raises
    ------
    ParameterError
        If it is no channel, or has one row only.
    """
    matrix, _ = checked_matrix(getattr(channel, "matrix", channel), None)
    if matrix.shape[0] < 2:
        raise ParameterError(
            "the channel has 1 row: with one value there is nothing to guess; give at least 2"
        )
    if is_exact_array(matrix):
        return matrix if exact else to_floats(matrix)
    if exact:
        raise ParameterError("the channel holds floats where exact fractions are needed")
    dense: NDArray[np.float64] = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense


def crowd_law(crowd: ArrayLike, num_outcomes: int, *, exact: bool = False) -> NDArray[Any]:
    """Return the law of another user's report, checked.

    Raises
    ------
    ParameterError
        If the length is wrong, an entry is NaN or negative, or the sum is not one.
    """
    law = as_numbers("crowd", crowd, 1)
    if len(law) != num_outcomes:
        raise ParameterError(
            f"crowd has {len(law)} entries, not {num_outcomes}: give one probability for each "
            "outcome of the channel"
        )
    if not all(entry >= 0 for entry in law):
        raise ParameterError("crowd has an entry that is not in [0, 1]: it is a law over outcomes")
    total = law.sum()
    if not abs(total - 1) <= (0 if is_exact_array(law) else SUM_TOLERANCE):
        raise ParameterError(f"crowd sums to {total}, not 1: divide it by its sum")
    if exact and not is_exact_array(law):
        raise ParameterError("crowd holds floats where exact fractions are needed")
    return law if exact or not is_exact_array(law) else to_floats(law)


def multinomial_form(
    num_users: SupportsIndex,
    channel: Any,
    *,
    prior: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
) -> MultinomialForm:
    """Return the reduced form of a single-target problem.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    channel : Channel or array_like, shape (k, m)
        R: row x is the law of the target's report where the value is x; k >= 2.
    prior : array_like, shape (k,), optional
        q, of the target's value; uniform if not given.
    crowd : array_like, shape (m,), optional
        s, of every other report; that of a user with the same prior if not given.

    Returns
    -------
    MultinomialForm
        Laws that are off one by at most 1e-9 are divided by their sums.

    Raises
    ------
    ParameterError
        If a law is none, sizes do not fit, or ``num_users`` is out of range.

    Notes
    -----
    O(k^2 m), and O(k m) where that is above 3e8.

    Examples
    --------
    Binary randomized response in a crowd like the target. Columns are sorted.

    >>> form = multinomial_form(10, [[0.75, 0.25], [0.25, 0.75]])
    >>> form.law.tolist(), form.gains.tolist()
    ([0.5, 0.5], [[0.25, 0.75], [0.75, 0.25]])
    """
    users = require_at_least("num_users", num_users, 1)
    if users > MOST_USERS:
        raise ParameterError(f"num_users = {users} is above {MOST_USERS:.0e}: give at most that")
    rows = dense_channel(channel)
    rows = rows / _sums(rows)[:, None]
    weights = checked_prior(prior, len(rows))
    joint = (weights / math.fsum(weights))[:, None] * rows
    joint = joint[joint.any(axis=1)]
    if crowd is None:
        law = _sums(joint.T)
    else:
        law = crowd_law(crowd, rows.shape[1])
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


def _sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each row, right to one rounding."""
    return np.array([math.fsum(row) for row in rows])


def grouped_law(law: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sum of each group's entries, right to one rounding.

    Parameters
    ----------
    law : ndarray of float64, shape (m,)
        Probabilities.
    groups : ndarray of int, shape (m,)
        Whose sum each of them is part of, 0 to g - 1, with none left out.

    Examples
    --------
    >>> grouped_law(np.array([0.25, 0.5, 0.25]), np.array([0, 1, 0])).tolist()
    [0.5, 0.5]
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    ends = np.append(starts[1:], len(law)).tolist()
    values = law[order].tolist()
    return np.array([math.fsum(values[i:j]) for i, j in zip(starts.tolist(), ends, strict=True)])


def _merged(
    gains: NDArray[np.float64], law: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return gains and law with equal columns merged, and what V may lose or win by that."""
    fractions, exponents = np.frexp(gains)
    keys = np.ldexp(np.round(fractions, _DIGITS), exponents)
    _, firsts, groups = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    groups = groups.reshape(-1)
    moved = np.abs(gains - gains[:, firsts[groups]]).max(axis=0)
    return gains[:, firsts], grouped_law(law, groups), float(moved @ law)


def _needed(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows that are somewhere above each other row; of equal rows one."""
    if float(len(gains)) ** 2 * gains.shape[1] > _MOST_COMPARISONS:
        return gains
    kept = gains
    for row in gains:
        dominates = (kept >= row).all(axis=1)
        if np.count_nonzero(dominates) > 1:  # one of them is the row itself
            equal = np.flatnonzero((kept == row).all(axis=1))
            kept = np.delete(kept, equal[0], axis=0)
    return kept
