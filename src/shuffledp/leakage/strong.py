"""How well one target is guessed by whoever knows the values of some or all other users.

n users report through one randomizer R and are shuffled. All that matters of the others is the law
G of their histogram, and with q the target's prior

    V = sum over histograms h of max_x q_x sum_y R_xy G(h - e_y).                              (1)

`strong_vulnerability` takes the first of these ways that applies.

- *One user*, *no noise* (reports of known users drop out), *no information*.
- *Mode*: k-RR, two values of equal prior: V = 1/2 + (p - 1/2) max_h G(h), at any n. This is eq. 10
  of the source with the maximum inside the sum, where it belongs.
- *Count*: two different reports: (1) over the numbers of one of them, at any n.
- *Uniform crowd*: nobody is known, all uniform: eq. 17 of the source.
- *Histograms*: (1) over all histograms within reach, up to 2e6 of them.
- *Exchangeable*: all others have one law: as `exchangeable_vulnerability`.
- *Ends*: a lower end from two guesses and one count, and the blanket bound.
- *Coarse lattice*, up to five different reports: to about 1 % of what is leaked, at any n.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Section V; what is beyond
it is ours, docs/results/leakage-strong.md.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.leakage.blanket import (
    blanket_vulnerability_upper,
    channel_blanket_upper,
    noise_load_excess,
)
from shuffledp.leakage.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.fullest_bin import excess_share
from shuffledp.leakage.others import (
    MOST_AXES,
    Box,
    HistogramLaw,
    Response,
    Situation,
    best_guess,
    by_histograms,
    checked_situation,
    mode_mass,
    report_law,
)
from shuffledp.leakage.uninformed import quick_ends

_ULP = math.ulp(1.0)

# Pairs of values that are tried, those of the largest prior first.
_MOST_TRIED = 5


def two_outcome_law(situation: Situation, outcomes: np.ndarray) -> HistogramLaw:
    """Return the law of how many of the others report one of ``outcomes``."""
    law = report_law(situation.coins(outcomes))
    return HistogramLaw(Box(0, (law.first,), (law.masses.size,)), law.masses, law.error)


def vulnerability_ends(situation: Situation) -> Enclosure:
    """Enclose how often the best guess is right, at any size."""
    response = situation.response
    if response is not None and situation.uniform_target:
        lower = _count_lower(situation, response)
        upper = blanket_vulnerability_upper(
            situation.num_others + 1, response.domain_size, response.truth
        )
    else:
        lower = _pair_lower(situation)
        users = situation.num_others + 1
        if response is None:
            upper = channel_blanket_upper(users, situation.rows(), prior=situation.prior)
        else:
            upper = blanket_vulnerability_upper(
                users, response.domain_size, response.truth, situation.prior
            )
    return Enclosure(min(max(lower, situation.guess_before), upper), upper)


def _count_lower(situation: Situation, response: Response) -> float:
    """Return the lower end from the number of reports of one value, for a uniform target."""
    # The value whose count varies least tells most. Of equal counts one is enough.
    truth, answer = response.truth, response.answer
    choose = min if truth * (1 - truth) >= answer * (1 - answer) else max
    value = situation.counts.index(choose(situation.counts))
    mode = mode_mass(situation.coins(np.array([value])))
    lower = (1.0 + float(response.kept) * mode.lower) / response.domain_size
    if max(situation.counts) == situation.num_others:
        lower = max(lower, concentrated_lower(situation.num_others + 1, response))
    return lower * (1.0 - 8.0 * _ULP)


def concentrated_lower(num_users: int, response: Response) -> float:
    """Return a lower end where all others are known to have one value: guess none but the others.

    0 where it would take long.
    """
    found = None
    if 0 < response.answer < response.truth and response.domain_size > 2:
        found = noise_load_excess(num_users, response.domain_size - 1, response.answer)
    if found is None:
        return 0.0
    leaked = float(response.kept) * found.lower / (num_users * float(response.answer))
    return (1.0 + leaked) / response.domain_size * (1.0 - 16.0 * _ULP)


def _pair_lower(situation: Situation) -> float:
    """Return the best lower end from two guesses and one count."""
    likely = np.argsort(-situation.prior, kind="stable")[:_MOST_TRIED].tolist()
    rows = None if situation.response is not None else situation.rows()
    best = 0.0
    for x, other in combinations(likely, 2):
        if rows is None:
            sets = [np.array([x]), np.array([other])]
        else:
            better = situation.prior[x] * rows[x] > situation.prior[other] * rows[other]
            sets = [np.flatnonzero(better)]
        for outcomes in sets:
            best = max(best, _pair_value(situation, x, other, outcomes))
    return best


def _pair_value(situation: Situation, x: int, other: int, outcomes: np.ndarray) -> float:
    """Return how often the better of two guesses is right, at least."""
    if outcomes.size in (0, situation.num_outcomes):
        return 0.0
    chances = situation.report_chances(outcomes)
    pair = np.array([[float(1 - chances[v]), float(chances[v])] for v in (x, other)])
    law = two_outcome_law(situation, outcomes)
    return best_guess(law, situation.prior[[x, other], None] * pair).lower


def rounded_out(value: float, *, operations: int = 8) -> Enclosure:
    """Return the ends around a number that some roundings, and no cancellation, led to."""
    return Enclosure(
        max(value * (1.0 - operations * _ULP), 0.0),
        min(round_up(value, operations=operations), 1.0),
    )


SOURCE = (
    "Jurado, Gonze, Alvim, Palamidessi, CSF 2023, hal-04349295v1, Section V, corrected and "
    "extended in the shuffledp documentation, results/leakage-strong"
)
ASSUMPTIONS = (
    "The adversary guesses one target's value once, and knows its prior law.",
    "Only the histogram of the reports is released.",
    "Known values of the others are true, and unknown ones are independent with one known law.",
)

# Entries of a channel up to which others of one law are looked at as exchangeable.
_MOST_ENTRIES = 250_000

# Ends closer than this, relative to what is leaked, are close enough.
_ENOUGH = 1e-6


def strong_vulnerability(
    randomizer: Any,
    known_counts: Sequence[SupportsIndex],
    *,
    prior: ArrayLike | None = None,
    num_unknown: SupportsIndex = 0,
    unknown_prior: ArrayLike | None = None,
) -> Bound:
    """Return how often the best adversary guesses the target's value, knowing others' values.

    Parameters
    ----------
    randomizer : float, int, Fraction, Channel or array_like of shape (k, m)
        A number is the truth p in [1/k, 1] of k-ary randomized response; 1 for a shuffler alone.
        Row x of a channel is the law of the report of value x.
    known_counts : sequence of int, length k
        How many of the others are known to have each value, all but the target and
        ``num_unknown``. n is one more than the sum of all, at most 1e10.
    prior : array_like of float, shape (k,), optional
        Of the target's value; uniform if not given.
    num_unknown : int
        Further users, whose values are not known.
    unknown_prior : array_like of float, shape (k,), optional
        Of each of their values; that of the target if not given.

    Returns
    -------
    Bound
        ``lower <= V <= upper``, outwards by the stated round-off. ``method`` is the way above that
        was taken.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a law is none, sizes do not fit, or a number is out of range.

    Notes
    -----
    Under a millisecond for k-RR with two values of equal prior, 0.1 s for two different reports at
    n = 1e9; at most two seconds for histograms: k = 3 up to n of about 25 000, k = 4 up to 200,
    k = 5 up to 35. Beyond that, at any n, 0.2 s for k = 3, one or two for k = 4 and three to five
    for k = 5. Rows of a channel are divided by their sums; of two reports, the probabilities
    of the second are taken as exact.

    Source: docs/results/leakage-strong.md.

    Examples
    --------
    Of 200 others all have value 1, or half of them (the source's Figure 3).

    >>> round(strong_vulnerability(0.8, [0, 200]).upper, 5)
    0.52111
    >>> round(strong_vulnerability(0.8, [100, 100]).upper, 5)
    0.52116
    """
    situation = checked_situation(
        randomizer,
        known_counts,
        prior=prior,
        num_unknown=num_unknown,
        unknown_prior=unknown_prior,
    )
    bound = _best_bound(situation)
    return replace(bound, upper=min(bound.upper + situation.slack, 1.0))


def _best_bound(situation: Situation) -> Bound:
    """Return what the first way gives that applies."""
    response = situation.response
    if response is not None and response.truth == 1 and situation.num_unknown > 0:
        # What known users report is known: without them the histogram says as much.
        situation = replace(situation, counts=(0,) * situation.domain_size)
    exact = _trivial(situation) or _exact(situation)
    if exact is not None:
        return _bound(*exact)
    bound = _bound("ends", vulnerability_ends(situation))
    kinds, rows = situation.kinds(), situation.rows()
    if len(kinds) == 1 and rows.size <= _MOST_ENTRIES:
        users, (kind,) = situation.num_others + 1, kinds
        bound = _narrower(bound, quick_ends(users, rows, prior=situation.prior, crowd=kind.law))
    if bound.upper - (bound.lower or 0.0) > _ENOUGH * (bound.upper - situation.guess_before):
        blocks = coarse_vulnerability(kinds, _joint(situation))
        if blocks is not None:
            bound = _narrower(bound, _bound("coarse lattice", _clipped(situation, blocks)))
    return bound


def _bound(method: str, found: Enclosure) -> Bound:
    """Return the claim."""
    return Bound(
        lower=found.lower,
        upper=found.upper,
        method=method,
        source=SOURCE,
        assumptions=ASSUMPTIONS,
    )


def _narrower(first: Bound, second: Bound) -> Bound:
    """Return what both say together; the first alone where the second says no more."""
    lower = max(first.lower or 0.0, second.lower or 0.0)
    upper = min(first.upper, second.upper)
    if lower > upper or (lower, upper) == (first.lower, first.upper):
        return first
    return replace(second, lower=lower, upper=upper)


def _trivial(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return what needs no law of the others."""
    response = situation.response
    if situation.num_others == 0:
        found = rounded_out(situation.unshuffled, operations=8 + situation.num_outcomes)
        return "one user", found
    silent = situation.num_outcomes == 1 if response is None else response.kept == 0
    if silent:
        return "no information", rounded_out(situation.guess_before)
    if response is not None and response.truth == 1 and situation.num_unknown == 0:
        return "no noise", Enclosure(1.0, 1.0)
    return None


def _exact(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return what is known to round-off, and by which way, if one is quick enough."""
    response = situation.response
    if response is not None and situation.uniform_target:
        if response.domain_size == 2:
            mode = mode_mass(situation.coins(np.array([1])))
            return "mode", _leaked(situation, response, 0.5 * mode.lower, 0.5 * mode.upper)
        if situation.uniform_unknown and situation.num_unknown == situation.num_others:
            share = excess_share(situation.num_others + 1, situation.domain_size)
            return "uniform crowd", _leaked(situation, response, share.lower, share.upper)
    if situation.num_outcomes == 2:
        law = two_outcome_law(situation, np.array([1]))
        return "count", _clipped(situation, best_guess(law, _joint(situation)))
    if situation.num_outcomes > MOST_AXES:
        return None
    found = by_histograms(situation.kinds(), _joint(situation))
    return None if found is None else ("histograms", _clipped(situation, found))


def _joint(situation: Situation) -> NDArray[np.float64]:
    """Return the law of the target's value and report."""
    return situation.prior[:, None] * situation.rows()


def _leaked(situation: Situation, response: Response, low: float, high: float) -> Enclosure:
    """Return 1/k + (p - r) times an enclosed number, for a uniform target."""
    even, kept = 1.0 / situation.domain_size, float(response.kept)
    lower, upper = rounded_out(even + kept * low), rounded_out(even + kept * high)
    return Enclosure(lower.lower, upper.upper)


def _clipped(situation: Situation, found: Enclosure) -> Enclosure:
    """Return an enclosure within what always holds."""
    least = rounded_out(situation.guess_before).lower
    most = rounded_out(situation.unshuffled, operations=8 + situation.num_outcomes).upper
    upper = min(found.upper, most)
    return Enclosure(min(max(found.lower, least), upper), upper)
