"""Success probability of an uninformed adversary, and in any crowd of reports of one law.

With a uniform prior and k-ary randomized response of truth p, r = (1 - p)/(k - 1): 1/k if nothing
is released (Prop. 14), p for reports without a shuffle (Prop. 15), V_S = E[largest of k counts] / n
for a shuffle alone (Props. 16 and 20, Theorem 17), and V_NS = r + (p - r) V_S for both (Props. 18
and 21, Theorem 19, eq. 17). For any prior, channel and crowd see `exchangeable_vulnerability`; for
randomized response with very many values `many_values_ends`. Proofs: docs/results/leakage.md.

*An exchangeable crowd* is the mean of a maximum over one multinomial histogram: the target's value
has law q and is reported by a channel R; the other n - 1 reports are independent with law s. With
A_xy = q_x R_xy / s_y and C the mass of outcomes that only the target sends,

    V = C + (1/n) E[max_x sum_y A_xy h_y],   h ~ Multinomial(n, s).

*Proof.* x and h have the joint probability q_x sum_y R_xy Mult_(n-1)(h - e_y; s), and
Mult_(n-1)(h - e_y; s) = Mult_n(h; s) h_y/(n s_y). Sum the largest over h. An outcome that nobody
else sends gives the target away.

Columns of A that are equal are merged, and rows that are nowhere above another's left out.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.core.numerics.positive_part import mean_positive_part
from shuffledp.leakage.channel import Truth, as_numbers, check_law, checked_prior, float_channel
from shuffledp.leakage.counts.coarse_lattice import MOST_WORK, coarse_vulnerability
from shuffledp.leakage.counts.fullest_bin import excess_share, uneven_maximum
from shuffledp.leakage.counts.others import MOST_USERS as MOST_LISTED_USERS
from shuffledp.leakage.counts.others import Kind, Response, by_histograms

_ULP = math.ulp(1.0)

#: More users than this are refused: doubles skip numbers beyond.
MOST_USERS = 10**15

# A report that is rarer than this in the crowd would overflow the weights.
_RAREST = 1e-200

# Decimal digits to which equal columns agree that were computed differently.
_DIGITS = 13

# Most rows squared times columns for which rows that are never needed are looked for.
_MOST_COMPARISONS = 3e8


@dataclass(frozen=True, kw_only=True)
class MultinomialForm:
    """A single-target problem after reduction; see the module for the formula."""

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
    """Return the reduced form of a single-target problem.

    Cost: O(k^2 m), or O(k m) where that is above 3e8, and rows that are never needed are kept. Laws
    that are off one by at most 1e-9 are divided by their sums.
    """
    users = require_at_least("num_users", num_users, 1, MOST_USERS)
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
                f"crowd has {len(law)} entries, not {rows.shape[1]}: give one for each outcome"
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
    """Return gains and law with equal columns merged, and a bound on the change of V."""
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


PAPER = (
    'Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of '
    'Quantitative Information Flow", CSF 2023, hal-04349295v1'
)
UNINFORMED = (
    "All users' values are independent and uniform, and the adversary knows no more.",
    "The adversary guesses one target's value once.",
)


def shuffled_vulnerability(
    num_users: SupportsIndex, domain_size: SupportsIndex, truth: Truth
) -> Bound:
    """Return the success probability of an adversary who sees the shuffled reports of k-RR.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    domain_size : int
        k >= 2.
    truth : float or Fraction
        p, the probability that a report is true, in [1/k, 1]; 1 where true values are shuffled.

    Returns
    -------
    Bound
        V_NS = 1/k + (k p - 1)/(k - 1) (V_S - 1/k), where V_S is the expected largest count over n,
        1/2 + 2^-n C(n - 1, floor((n - 1)/2)) for k = 2; p = 1 gives V_S itself. Outwards by the
        error budget of `shuffledp.leakage.counts.fullest_bin`, and a few roundings more.

    Raises
    ------
    ParameterError
        If a number is out of range.
    OutOfRegimeError
        If ``truth`` is below 1/k: the best guess would not be the most frequent report.

    Notes
    -----
    O(1) for k = 2. Source: Jurado et al. 2023, Theorems 17 and 19, Prop. 20 and eq. 17.

    Examples
    --------
    >>> shuffled_vulnerability(200, 2, 0.9)
    Bound(upper=0.522539392, lower=0.522539392, method='closed form')
    """
    users = require_at_least("num_users", num_users, 1, MOST_USERS)
    values = require_at_least("domain_size", domain_size, 2)
    found = Response.of(truth, values).leaked(excess_share(users, values))
    if values == 2:
        return found.bound("closed form", f"{PAPER}, Theorems 17 and 19", UNINFORMED)
    return found.bound("maximum load", f"{PAPER}, Prop. 21, eq. 17", UNINFORMED)


# The moments tried: every parameter gives a bound, so a grid loses a little and risks nothing.
_PARAMETERS = np.geomspace(1e-10, 40.0, 160)


def largest_share_upper(num_balls: int, law: Floats) -> float:
    """Bound E[max_x h_x] / n from above, in O(160 k) at any n.

    By Jensen, and as the largest term is below the sum, E max_x h_x <= ln(sum_x (1 + q_x (e^t -
    1))^n) / t for t > 0 (Boucheron, Lugosi, Massart, "Concentration Inequalities", 2013, Theorem
    2.5).
    """
    powers = num_balls * np.log1p(np.expm1(_PARAMETERS)[:, None] * law)
    most = powers.max(axis=1)
    totals = most + np.log(np.exp(powers - most[:, None]).sum(axis=1))
    best = float((totals / (num_balls * _PARAMETERS)).min())
    return min(round_up(best, operations=64), 1.0)


def many_values_ends(num_users: int, truth: float, prior: Floats) -> Enclosure:
    """Enclose the success probability on one of n values, given all reports of k-RR, shuffled.

    However many values there are. Closest where weights q_x / s_x, s the law of a report, are much
    the same: then V = k r q + (p - r) E[max_x w_x h_x] / n. In general sum_y A_xy h_y =
    q_x ((p - r) h_x/s_x + r H) with H = sum_y h_y/s_y >= 0, E H = n k. Above: maximum of a sum.
    Below: guess the x of the largest w_x h_x.
    """
    law = prior / math.fsum(prior)
    answer = (1.0 - truth) / (law.size - 1)
    kept, spare = max(truth - answer, 0.0), law.size * answer
    if answer == 0.0:
        law = law[law > 0.0]
    reports = answer + kept * law
    weights = law / reports
    best = float(law.max())
    load = uneven_maximum(num_users, reports)
    if load is None:
        least, share = 0.0, largest_share_upper(num_users, reports / math.fsum(reports))
    else:
        least, share = load.lower / num_users, load.upper / num_users
    lower = kept * float(weights.min()) * least + spare * float(law.min())
    upper = round_up(kept * float(weights.max()) * share + spare * best, operations=8)
    # As in `multinomial_form`: each entry of the laws comes from at most eight roundings.
    slack = 8.0 * _ULP * (4.0 + math.sqrt(0.5 * num_users))
    return Enclosure(max(lower, best) - slack, min(max(upper, best) + slack, 1.0))


SOURCE = f"derived in the shuffledp documentation, results/leakage, after {PAPER}"
ASSUMPTIONS = (
    "The adversary guesses one target's value once, and knows its prior law.",
    "All other reports are independent of it and of one another, with one known law.",
    "Only the histogram of the reports is released.",
)

# Most guesses times columns that are compared in pairs.
_MOST_PAIRED = 4_000

# A guess that gains less on average than this share of V, over their number, is no rival.
_NO_RIVAL = 1e-12

# Ends this close together, relative to the upper one, are as good as equal.
_ENOUGH = 1e-9

# Entries of a column agree, and weights are equal, to this.
_EQUAL = 1e-13


def exchangeable_vulnerability(
    num_users: SupportsIndex,
    channel: Any,
    *,
    prior: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
    work: float = MOST_WORK,
) -> Bound:
    """Return the probability that the best adversary guesses the target's value.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    channel : Channel or array_like, shape (k, m)
        R: row x is the law of the report of value x; k >= 2. The identity for a shuffler alone.
    prior : array_like, shape (k,), optional
        q, the law of the target's value; uniform if not given.
    crowd : array_like, shape (m,), optional
        s, the law of every other report. If not given, others are like the target: s = q R.
    work : float
        Blocks of histograms times guesses at most: fewer are quicker and coarser, 0 for none.

    Returns
    -------
    Bound
        ``lower <= V <= upper``, outwards by the stated round-off. ``method`` is "one guess", "one
        user", "two guesses", "load", "histograms", "coarse lattice" or "pairs".

    Raises
    ------
    ParameterError
        If a law is invalid, sizes do not fit, or a number is out of range.

    Notes
    -----
    Milliseconds at any n for k = 2, and for k-RR with a uniform prior; up to a second for true
    values, and where histograms are listed (2e6 at most); some seconds where they are put into
    blocks: to 1 % of the leakage for up to four different reports, and 6 % for five, less closely
    where hardly anything leaks, up to 1e10 users. Beyond that guesses are compared in pairs, which
    may be off by half of the leakage; by Chernoff's bound alone where the guesses that may change
    the outcome, times m, are above 4000. Error budget, beyond that of the way taken: 8 roundings of
    each probability, 2e-15 (2 + sqrt(n / 2)).

    Source: docs/results/leakage.md; eq. 17 of Jurado et al. where the prior is uniform.

    Examples
    --------
    Ninety per cent have value 0, and say so. Fifty users hide the target among them completely.

    >>> found = exchangeable_vulnerability(50, [[1, 0], [0, 1]], prior=[0.9, 0.1])
    >>> round(found.lower, 9), round(found.upper, 9), found.method
    (0.9, 0.9, 'two guesses')
    """
    form = multinomial_form(num_users, channel, prior=prior, crowd=crowd)
    alone, guesses = form.without_release, len(form.gains)
    if guesses == 1:
        method, found = "one guess", Enclosure(alone, alone)
    elif form.num_users == 1:
        method, found = "one user", Enclosure(form.unshuffled, form.unshuffled)
    elif guesses == 2:
        gained = _positive_part(form, form.differences[0])
        method, found = "two guesses", Enclosure(alone + gained.lower, alone + gained.upper)
    else:
        method, found = "pairs", _by_pairs(form)
        if found.upper - found.lower > _ENOUGH * found.upper:
            closer = _closer(form, work)
            if closer is not None:
                method, found = closer[0], closer[1].clipped(found.lower, found.upper)
    found = Enclosure(found.lower - form.slack, found.upper + form.slack)
    # Within the ends that always hold.
    found = found.clipped(round_down(alone), min(round_up(form.unshuffled), 1.0))
    return found.bound(method, SOURCE, ASSUMPTIONS)


def _closer(form: MultinomialForm, work: float) -> tuple[str, Enclosure] | None:
    """Return the closest enclosure that is quick enough, and its method."""
    load = _by_load(form)
    if load is not None:
        return "load", load
    if form.num_users > MOST_LISTED_USERS:
        return None
    kinds, joint = [Kind(form.num_users - 1, form.law)], form.gains * form.law
    method, found = "histograms", by_histograms(kinds, joint)
    if found is None and work > 0.0:
        method, found = "coarse lattice", coarse_vulnerability(kinds, joint, work=work)
    if found is None:
        return None
    return method, Enclosure(form.certain + found.lower, form.certain + found.upper)


def _positive_part(form: MultinomialForm, parts: Floats) -> Enclosure:
    """Enclose E[(sum_y parts_y h_y)_+] / n."""
    values, groups = np.unique(parts, return_inverse=True)
    masses = grouped_law(form.law, groups.reshape(-1))
    base = int(masses.argmax())
    steps = np.delete(values - values[base], base)
    return mean_positive_part(form.num_users, float(values[base]), np.delete(masses, base), steps)


def _by_load(form: MultinomialForm) -> Enclosure | None:
    """Enclose V where each column favours one row, all differ and gain alike; else return None."""
    ascending = np.sort(form.gains, axis=0)
    others, favoured = ascending[0], ascending[-1]
    weights = favoured - others
    low, high = float(weights.min()), float(weights.max())
    spread = ascending[-2] - others
    is_alike = high - low <= _EQUAL * high and not np.any(spread > _EQUAL * favoured)
    if not is_alike or len(np.unique(form.gains.argmax(axis=0))) < len(favoured):
        return None
    law = form.law
    if float(np.ptp(law)) <= _EQUAL * float(law.max()):
        law = np.full(len(law), 1.0 / len(law))
    largest = uneven_maximum(form.num_users, law)
    if largest is None:
        return None
    fixed = form.certain + math.fsum(others * form.law)
    error = 2.0 * float(spread @ form.law) + _EQUAL + 16.0 * _ULP
    low, high = low * largest.lower / form.num_users, high * largest.upper / form.num_users
    return Enclosure(fixed + low - error, fixed + high + error)


def _by_pairs(form: MultinomialForm) -> Enclosure:
    """Enclose V by comparing each guess with the best constant one."""
    alone, parts = form.without_release, form.differences
    bounds = excess_means(form.num_users, form.law, parts)
    rivals = parts[bounds > _NO_RIVAL * alone / len(bounds)]
    if rivals.size > _MOST_PAIRED:
        return Enclosure(alone, min(alone + math.fsum(bounds), form.unshuffled))
    gained = [_positive_part(form, each) for each in rivals]
    lower = alone + max((each.lower for each in gained), default=0.0)
    upper = alone + math.fsum(each.upper for each in gained) + _NO_RIVAL * alone
    return Enclosure(min(lower, form.unshuffled), min(upper, form.unshuffled))
