"""Several targets at once in a crowd of users who are all alike.

Given the histogram of all reports, those of the targets are some of them, drawn without
replacement; the order of a guess does not matter, so multisets are tried. Formulas and proofs:
docs/results/leakage-uninformed.md.
"""

import math
from collections.abc import Callable
from itertools import combinations_with_replacement, permutations
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.multinomial import (
    MultinomialForm,
    histogram_blocks,
    histogram_windows,
    multinomial_form,
)
from shuffledp.leakage.uninformed import (
    MOST_HISTOGRAMS,
    SOURCE,
    exchangeable_vulnerability,
)

_ULP = math.ulp(1.0)

GAINS = ("all", "any", "expected")

_ASSUMPTIONS = (
    "All users' values are independent with one known law, and reported by one channel.",
    "Only the histogram of the reports is released.",
)

# Products of weights and counts that are summed, and entries of their table.
_MOST_WORK = 2e10
_MOST_TABLE = 2e6

# A weight this close to 0 or 1 is that of a report which gives the value away.
_EXACT = 1e-13


class _Score(NamedTuple):
    """What the best guess gains given each of some histograms, and what that takes."""

    of: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    steps: float
    roundings: float


def several_targets_vulnerability(
    num_users: SupportsIndex,
    channel: Any,
    num_targets: SupportsIndex,
    *,
    prior: ArrayLike | None = None,
    gain: str = "all",
) -> Bound:
    """Return what the best adversary gains by one guess of several targets' values.

    Parameters
    ----------
    num_users : int
        n, the targets included.
    channel : Channel or array_like, shape (k, m)
        R: row x is the law of the report of value x; k >= 2. The identity for a shuffler alone.
    num_targets : int
        t, 1 to n.
    prior : array_like, shape (k,), optional
        q, of every user's value; uniform if not given.
    gain : {"all", "any", "expected"}
        The probability that all guesses are right, or at least one; or how many are right on
        average, in [0, t].

    Returns
    -------
    Bound
        Outwards by the stated round-off.

    Raises
    ------
    ParameterError
        If a law is none, sizes do not fit, a number is out of range, or the gain is unknown.
    OutOfRegimeError
        If there are too many histograms or guesses to list; the message has the numbers.

    Notes
    -----
    For "expected" like `exchangeable_vulnerability`, at any n. Otherwise all C(n+m-1, m-1)
    histograms within windows of a few standard deviations are listed, 2e7 at most; each costs t k
    steps for a shuffler alone and "all", else C(m+t-1, t) C(k+t-1, t), 2e10 in all. Error budget:
    that of the histograms' probabilities, some hundred roundings, and 2e-15 t (2 + sqrt(n / 2)).

    Source: docs/results/leakage-uninformed.md.

    Examples
    --------
    Two users' bits, shuffled: with probability 1/2 they are equal, and known; else a guess of both
    is right half of the time, and so is either of its halves.

    >>> identity = [[1, 0], [0, 1]]
    >>> found = several_targets_vulnerability(2, identity, 2)
    >>> round(found.lower, 12), round(found.upper, 12)
    (0.75, 0.75)
    >>> found = several_targets_vulnerability(2, identity, 2, gain="any")
    >>> round(found.lower, 12), round(found.upper, 12)
    (1.0, 1.0)
    >>> found = several_targets_vulnerability(2, identity, 2, gain="expected")
    >>> round(found.lower, 12), round(found.upper, 12)
    (1.5, 1.5)
    """
    users = require_at_least("num_users", num_users, 1)
    targets = require_at_least("num_targets", num_targets, 1)
    if targets > users:
        raise ParameterError(f"num_targets = {targets} is above num_users = {users}")
    if gain not in GAINS:
        raise ParameterError(f"gain = {gain!r} is not one of {', '.join(GAINS)}")
    if gain == "expected":
        return _expected(users, channel, targets, prior)
    form = multinomial_form(users, channel, prior=prior)
    return _listed(form, targets, gain, _score_of(form, targets, gain))


def _expected(num_users: int, channel: Any, num_targets: int, prior: ArrayLike | None) -> Bound:
    """Return t times the single target's vulnerability."""
    single = exchangeable_vulnerability(num_users, channel, prior=prior)
    lower = 0.0 if single.lower is None else single.lower
    return Bound(
        lower=num_targets * lower * (1.0 - _ULP),
        upper=min(num_targets * single.upper * (1.0 + _ULP), float(num_targets)),
        method=single.method,
        source=SOURCE,
        assumptions=(*_ASSUMPTIONS, *single.assumptions[3:]),
    )


def _score_of(form: MultinomialForm, num_targets: int, gain: str) -> _Score:
    """Return how to find what the best guess gains, or loses for "any"."""
    gains = form.gains
    if gain == "all" and _is_identity(gains):
        return _Score(
            lambda counts: _greedy(counts, form.num_users, num_targets),
            float(num_targets * gains.size),
            4.0 * num_targets,
        )
    guesses = math.comb(len(gains) + num_targets - 1, num_targets)
    seen = math.comb(gains.shape[1] + num_targets - 1, num_targets)
    if guesses * seen * math.factorial(min(num_targets, 20)) > _MOST_TABLE:
        raise OutOfRegimeError(
            f"num_targets = {num_targets} with {len(gains)} values and {gains.shape[1]} outcomes "
            f"has {guesses} guesses and {seen} multisets of reports in {num_targets}! orders, "
            f"above {_MOST_TABLE:.0e} together: ask for fewer targets, or for gain='expected'"
        )
    table, outcomes = _table(gains if gain == "all" else np.maximum(1.0 - gains, 0.0), num_targets)
    table /= math.prod(range(form.num_users, form.num_users - num_targets, -1))
    # Products of t factors, and sums over orders and multisets.
    roundings = 4.0 * num_targets + math.factorial(num_targets) + len(table)
    if gain == "all":
        return _Score(
            lambda counts: (_falling(counts, outcomes) @ table).max(axis=1),
            float(table.size),
            roundings,
        )
    return _Score(
        lambda counts: (_falling(counts, outcomes) @ table).min(axis=1),
        float(table.size),
        roundings,
    )


def _is_identity(gains: NDArray[np.float64]) -> bool:
    """Whether each report gives its own value away, and each value has a report."""
    if gains.shape[0] != gains.shape[1]:
        return False
    return bool(
        (np.sort(gains, axis=0)[:-1] == 0.0).all()
        and (np.abs(gains.max(axis=0) - 1.0) <= _EXACT).all()
        and len(np.unique(gains.argmax(axis=0))) == len(gains)
    )


def _greedy(counts: NDArray[np.float64], num_users: int, num_targets: int) -> NDArray[np.float64]:
    """Return the product of the t largest numbers h_x - j, over (n)_t, for each histogram."""
    left = counts.copy()
    rows = np.arange(len(left))
    product = np.ones(len(left))
    for guessed in range(num_targets):
        largest = left.argmax(axis=1)
        product *= left[rows, largest] / (num_users - guessed)
        left[rows, largest] -= 1.0
    return product


def _table(
    weights: NDArray[np.float64], num_targets: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what each multiset of reports adds to each guess, and its count of each outcome."""
    size = weights.shape[1]
    guesses = list(combinations_with_replacement(range(len(weights)), num_targets))
    columns = np.array(guesses)
    rows, outcomes = [], []
    for multiset in combinations_with_replacement(range(size), num_targets):
        orders = np.array(sorted(set(permutations(multiset))))
        # guesses x orders x targets
        products = weights[columns[:, None, :], orders[None, :, :]].prod(axis=2)
        rows.append(products.sum(axis=1))
        outcomes.append(np.bincount(multiset, minlength=size))
    return np.array(rows), np.array(outcomes)


def _falling(counts: NDArray[np.float64], outcomes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return prod_v (h_v)_{c_v} for each histogram and each multiset of reports."""
    product = np.ones((len(counts), len(outcomes)))
    for step in range(int(outcomes.max())):
        for column in range(outcomes.shape[1]):
            more = outcomes[:, column] > step
            product[:, more] *= np.maximum(counts[:, column] - step, 0.0)[:, None]
    return product


def _listed(form: MultinomialForm, num_targets: int, gain: str, score: _Score) -> Bound:
    """Return the mean of the score over all histograms."""
    windows = histogram_windows(form.num_users, form.law, num_targets=num_targets)
    most = min(MOST_HISTOGRAMS, _MOST_WORK / score.steps)
    if windows.num_histograms > most:
        raise OutOfRegimeError(
            f"num_users = {form.num_users} with {len(form.law)} outcomes has "
            f"{windows.num_histograms:.3g} histograms, above {most:.3g} for {num_targets} targets: "
            "ask for fewer users or targets, or for gain='expected', which is quick at any size"
        )
    mean = math.fsum(
        float((score.of(counts) * masses).sum()) for counts, masses in histogram_blocks(windows)
    )
    # A block is added up in pairs.
    error = (windows.relative_error + (score.roundings + 100.0) * _ULP) * mean
    slack = num_targets * form.slack + windows.left_out
    lower, upper = max(mean - error - slack, 0.0), min(mean + error + slack, 1.0)
    if gain == "any":
        lower, upper = 1.0 - upper, 1.0 - lower
    else:
        blind = form.without_release**num_targets * (1.0 - 16.0 * num_targets * _ULP)
        lower = max(lower, blind)
    return Bound(
        lower=min(lower, upper),
        upper=upper,
        method="histograms",
        source=SOURCE,
        assumptions=_ASSUMPTIONS,
    )
