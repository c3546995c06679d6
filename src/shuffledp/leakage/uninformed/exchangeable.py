"""How well one target is guessed where all other reports are independent with one law.

The adversary sees the histogram of all n reports, knows the law q of the target's value, the
channel R that reports it, and the law s of every other report, and guesses once. This is the
uninformed adversary for any i.i.d. prior (s = q R), and the strong one who knows that all others
have one value (s is a row of R). `shuffledp.leakage.uninformed.multinomial` proves

    V = C + (1/n) E[max_x sum_y A_xy h_y],   h ~ Multinomial(n, s),   A_xy = q_x R_xy / s_y.

With L_x the x-th form over n, and x* the best guess before anything is seen,

    V = C + E[L_x*] + E[max_x (L_x - L_x*)_+].                                                (1)

The last term is found in the first of these ways that applies.

- *One guess*: only one row of A is needed; the term is 0.
- *One user*: nothing to hide in; V is that without a shuffle.
- *Two guesses*: a mean positive part of a sum of n i.i.d. terms, at any n.
- *Few histograms*: all are listed, at most 5000.
- *Load*: in each column all rows agree but at most one, which is another one in each: then the
  maximum is a constant plus that of weighted counts. So it is for k-RR with a uniform prior and any
  crowd, and for a shuffler alone with any prior.
- *Histograms*: all are listed, at most 2e7.
- *Pairs*: (1) lies between the largest and the sum of E[(L_x - L_x*)_+], each as for two guesses,
  or by Chernoff's bound where that is negligible. Where one guess is best beforehand all of them
  fall exponentially with n, and nothing more is needed.
- *Sampled*: Monte Carlo, with limits that fail with probability 1e-9, within those of the pairs.

Always C + E[L_x*] <= V <= sum_y max_x q_x R_xy: seeing nothing, and seeing the target's own report.

*The fullest of weighted bins, and what k-ary randomized response with very many values leaks.*

With r = (1 - p)/(k - 1), t = p - r and s = r + t q the law of a report, h ~ Multinomial(n, s) and
H = sum over y of h_y / s_y, the best guess is right with probability (see `multinomial_form`)

    V = (1/n) E max_x q_x (t h_x / s_x + r H),   E H = n k.

*Upper end.* The maximum of a sum is at most the sum of the maxima:

    V <= (t/n) E[max_x (q_x / s_x) h_x] + k r max q.

*Lower end.* Guess the value of a set S for which (q_x / s_x) h_x is largest: with H >= 0,

    V >= (t/n) E[max over S of (q_x / s_x) h_x] + k r min over S of q.

Without noise both are E[max_x h_x] / n, what a shuffler alone gives away.
Proof: docs/results/leakage-uninformed.md.
"""

import math
from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.numerics.positive_part import mean_positive_part
from shuffledp.leakage.loads.weighted import weighted_maximum
from shuffledp.leakage.monte_carlo import BUT_FOR_FAILURE
from shuffledp.leakage.priors import checked_prior
from shuffledp.leakage.uninformed.multinomial import (
    HistogramWindows,
    MultinomialForm,
    default_num_samples,
    excess_means,
    grouped_law,
    histogram_blocks,
    histogram_windows,
    multinomial_form,
    sampled_vulnerability,
)

_ULP = math.ulp(1.0)

# The moments tried: every parameter gives a bound, so a grid loses a little and risks nothing.
_PARAMETERS = np.geomspace(1e-10, 40.0, 160)

# Values up to which the likelier half is a set S too, for some tenths of a second.
_MOST_HALVED = 2_000


def largest_share_upper(
    num_balls: SupportsIndex, law: ArrayLike, weights: ArrayLike | None = None
) -> float:
    r"""Bound E[max_x w_x h_x] / n, where n independent balls fall into bins with the given law.

    Parameters
    ----------
    num_balls : int
        n >= 1.
    law : array_like of float, shape (k,)
        Probabilities q of the bins, adding up to 1.
    weights : array_like of float, shape (k,), optional
        w, in [0, 1]; all 1 if not given.

    Returns
    -------
    float
        At most 1; errs upwards.

    Raises
    ------
    ParameterError
        If ``num_balls`` is below 1, or the law is none.

    Notes
    -----
    For t > 0, by Jensen and as the largest term is below the sum,

    .. math:: E \max_x w_x h_x \le \frac1t \ln E \sum_x e^{t w_x h_x}
              = \frac1t \ln \sum_x (1 + q_x (e^{t w_x} - 1))^n.

    The least of 160 values of t is returned. Cost: O(160 k) at any n. `weighted_maximum` is sharp,
    at a cost that grows with n. Source: standard; Boucheron, Lugosi, Massart, "Concentration
    Inequalities", 2013, Theorem 2.5.

    Examples
    --------
    >>> 0.5 <= largest_share_upper(10**9, [0.5, 0.5]) <= 0.50004
    True
    """
    balls = require_at_least("num_balls", num_balls, 1)
    chances = checked_prior(law, np.size(np.asarray(law)))
    chances = chances / chances.sum()
    values = np.ones(chances.size) if weights is None else np.asarray(weights, dtype=np.float64)
    best = 1.0
    for parameter in _PARAMETERS.tolist():
        powers = balls * np.log1p(chances * np.expm1(parameter * values))
        most = float(powers.max())
        total = most + math.log(float(np.exp(powers - most).sum()))
        best = min(best, round_up(total / (balls * parameter), operations=64))
    return best


def response_ends(num_users: SupportsIndex, truth: SupportsFloat, prior: ArrayLike) -> Enclosure:
    """Enclose how often one of n values is guessed right from all reports of k-RR, shuffled.

    Parameters
    ----------
    num_users : int
        n >= 1; all values are independent with the law ``prior``, and none is known.
    truth : float
        p in [1/k, 1]; 1 for a shuffler alone, whose ends agree up to round-off.
    prior : array_like of float, shape (k,)
        q.

    Returns
    -------
    Enclosure
        Ends k r (max q - min q) apart, or less; by moments above where the load takes long.

    Raises
    ------
    ParameterError
        If a number is out of range, or the law is none.

    Notes
    -----
    Tens of milliseconds at n = 1e9 and k = 257, a second or two at k = 1e4; seconds at the most.
    Source: ours; the module.

    Examples
    --------
    >>> found = response_ends(2, 1.0, [0.5, 0.5])  # two of one value, half of the time
    >>> round(found.lower, 9), round(found.upper, 9)
    (0.75, 0.75)
    """
    users = require_at_least("num_users", num_users, 1)
    law = checked_prior(prior, np.size(np.asarray(prior)))
    law = law / math.fsum(law)
    chance = float(truth)
    answer = (1.0 - chance) / (law.size - 1)
    kept = max(chance - answer, 0.0)
    reports = answer + kept * law
    weights = np.divide(law, reports, out=np.zeros(law.size), where=reports > 0.0)
    spare = law.size * answer
    load = _weighted_share(users, reports, weights)
    lower = kept * load.lower + spare * float(law.min())
    if answer > 0.0 and law.size <= _MOST_HALVED:
        likely = law >= np.median(law)
        half = _weighted_share(users, reports, np.where(likely, weights, 0.0))
        lower = max(lower, kept * half.lower + spare * float(law[likely].min()))
    upper = round_up(kept * load.upper + spare * float(law.max()), operations=8)
    # As in `multinomial_form`: each entry of the laws comes from at most eight roundings.
    slack = 8.0 * _ULP * (4.0 + math.sqrt(0.5 * users))
    return Enclosure(max(lower - slack, float(law.max()) - slack), min(upper + slack, 1.0))


def _weighted_share(
    num_balls: int, law: NDArray[np.float64], weights: NDArray[np.float64]
) -> Enclosure:
    """Enclose E[max_x w_x h_x] / n."""
    law = law / math.fsum(law)
    unit = float(weights.max())
    try:
        found = weighted_maximum(num_balls, law, weights / unit)
        lower, upper = found.lower / num_balls, found.upper / num_balls
    except OutOfRegimeError:
        lower = float((law * weights).max()) / unit
        upper = largest_share_upper(num_balls, law, weights / unit)
    return Enclosure(unit * lower * (1.0 - 4.0 * _ULP), unit * upper * (1.0 + 4.0 * _ULP))


SOURCE = (
    "derived in the shuffledp documentation, results/leakage-uninformed, after Jurado, Gonze, "
    "Alvim, Palamidessi, "
    '"Analyzing the Shuffle Model through the Lens of Quantitative Information Flow", CSF 2023, '
    "hal-04349295v1"
)
ASSUMPTIONS = (
    "The adversary guesses one target's value once, and knows its prior law.",
    "All other reports are independent of it and of one another, with one known law.",
    "Only the histogram of the reports is released.",
)

#: Histograms that are listed at most, and histograms times entries of the weights.
MOST_HISTOGRAMS = 20_000_000
_MOST_WORK = 2e9

# So few are quicker, and closer, than a load.
_FEW_HISTOGRAMS = 5_000

# Guesses times columns up to which they are compared in pairs.
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
    entropy: Entropy | None = None,
    num_samples: SupportsIndex | None = None,
) -> Bound:
    """Return the probability that the best adversary guesses the target's value.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    channel : Channel or array_like, shape (k, m)
        R: row x is the law of the report of value x; k >= 2. The identity for a shuffler alone.
    prior : array_like, shape (k,), optional
        q, of the target's value; uniform if not given.
    crowd : array_like, shape (m,), optional
        s, of every other report. If not given, other users are like the target: s = q R.
    entropy : Entropy, optional
        For Monte Carlo; the operating system's if not given.
    num_samples : int, optional
        Histograms that are sampled where nothing exact is quick: 0, or at least 2. What a second or
        so is enough for if not given; with 0 nothing is sampled and the ends are further apart.

    Returns
    -------
    Bound
        ``lower <= V <= upper``, outwards by the stated round-off; if sampled, but for a probability
        of 1e-9, which ``assumptions`` then say. ``method`` is the way above that was taken.

    Raises
    ------
    ParameterError
        If a law is none, sizes do not fit, or a number is out of range.

    Notes
    -----
    Milliseconds at any n for k = 2, and for k-RR with a uniform prior; up to seconds where
    histograms are listed (2e7 at most, and 2e9 products) or sampled. Where the guesses that may
    change the outcome, times m, are above 4000, pairs are taken by Chernoff's bound alone. Error
    budget, beyond that of the way taken: 8 roundings of each probability, 2e-15 (2 + sqrt(n / 2)).

    Source: the module; eq. 17 of Jurado et al. where the prior is uniform.

    Examples
    --------
    Ninety per cent have value 0, and say so. Fifty users hide the target among them completely.

    >>> found = exchangeable_vulnerability(50, [[1, 0], [0, 1]], prior=[0.9, 0.1])
    >>> round(found.lower, 9), round(found.upper, 9), found.method
    (0.9, 0.9, 'two guesses')
    """
    form = multinomial_form(num_users, channel, prior=prior, crowd=crowd)
    if num_samples is not None and num_samples != 0:
        num_samples = require_at_least("num_samples", num_samples, 2)
    exact = _exact(form)
    if exact is not None:
        method, found = exact
        return _bound(form, method, found)
    paired = _by_pairs(form)
    if paired.upper - paired.lower <= _ENOUGH * paired.upper or num_samples == 0:
        return _bound(form, "pairs", paired)
    source = Entropy.from_operating_system() if entropy is None else entropy
    count = default_num_samples(form) if num_samples is None else int(num_samples)
    sampled = sampled_vulnerability(form, entropy=source, num_samples=count)
    lower, upper = max(sampled.lower, paired.lower), min(sampled.upper, paired.upper)
    said = (
        f"Monte Carlo over {count} histograms: both ends hold {BUT_FOR_FAILURE}.",
        "Drawn from a seed." if source.is_simulation else "Drawn from the operating system's key.",
    )
    if lower > upper:  # the limits have failed, which they may
        return _bound(form, "pairs", paired)
    return _bound(form, "sampled", Enclosure(lower, upper), said)


def _bound(
    form: MultinomialForm, method: str, found: Enclosure, said: tuple[str, ...] = ()
) -> Bound:
    """Return the claim, within what always holds."""
    least = max(found.lower - form.slack, form.without_release * (1.0 - 8.0 * _ULP))
    upper = min(found.upper + form.slack, form.unshuffled * (1.0 + 8.0 * _ULP), 1.0)
    return Bound(
        lower=min(least, upper),
        upper=upper,
        method=method,
        source=SOURCE,
        assumptions=(*ASSUMPTIONS, *said),
    )


def _exact(form: MultinomialForm) -> tuple[str, Enclosure] | None:
    """Return what is known to round-off, and by which way, if one is quick enough."""
    alone = form.without_release
    if len(form.gains) == 1:
        return "one guess", Enclosure(alone, alone)
    if form.num_users == 1:
        return "one user", Enclosure(form.unshuffled, form.unshuffled)
    if len(form.gains) == 2:
        gained = _positive_part(form, form.differences[0])
        return "two guesses", Enclosure(alone + gained.lower, alone + gained.upper)
    windows = histogram_windows(form.num_users, form.law)
    few = windows.num_histograms <= _FEW_HISTOGRAMS
    load = None if few else _by_load(form)
    if load is not None:
        return "load", load
    if few or windows.num_histograms <= min(MOST_HISTOGRAMS, _MOST_WORK / form.gains.size):
        gained = _by_histograms(form, windows)
        return "histograms", Enclosure(alone + gained.lower, alone + gained.upper)
    return None


def _positive_part(form: MultinomialForm, parts: NDArray[np.float64]) -> Enclosure:
    """Enclose E[(sum_y parts_y h_y)_+] / n."""
    values, groups = np.unique(parts, return_inverse=True)
    masses = grouped_law(form.law, groups.reshape(-1))
    base = int(masses.argmax())
    others = np.arange(len(values)) != base
    return mean_positive_part(
        form.num_users, float(values[base]), masses[others], values[others] - values[base]
    )


def _by_load(form: MultinomialForm) -> Enclosure | None:
    """Enclose V where columns favour at most one row each, no two the same; else return None."""
    ascending = np.sort(form.gains, axis=0)
    others, favoured = ascending[0], ascending[-1]
    spread = ascending[-2] - others
    weights = favoured - others
    weights[weights <= _EQUAL * favoured] = 0.0
    rows = form.gains.argmax(axis=0)[weights > 0.0]
    if np.any(spread > _EQUAL * favoured) or len(np.unique(rows)) < len(rows):
        return None
    largest = _largest_load(form, weights)
    if largest is None:
        return None
    fixed = form.certain + math.fsum(others * form.law)
    error = 2.0 * float(spread @ form.law) + _EQUAL + 16.0 * _ULP
    return Enclosure(
        fixed + largest.lower / form.num_users - error,
        fixed + largest.upper / form.num_users + error,
    )


def _largest_load(form: MultinomialForm, weights: NDArray[np.float64]) -> Enclosure | None:
    """Enclose E[max_y weights_y h_y], or return None where that takes too long."""
    from shuffledp.leakage.loads.maximum_load import maximum_load

    low, high = float(weights.min()), float(weights.max())
    if high - low <= _EQUAL * high:
        if float(np.ptp(form.law)) <= _EQUAL * float(form.law.max()):
            found = _or_none(maximum_load, form.num_users, len(weights))
        else:
            found = _weighted(form, np.ones(len(weights)))
    else:
        found = _weighted(form, weights)
        low = high = 1.0
    return None if found is None else Enclosure(low * found.lower, high * found.upper)


def _weighted(form: MultinomialForm, weights: NDArray[np.float64]) -> Enclosure | None:
    from shuffledp.leakage.loads.weighted import weighted_maximum

    return _or_none(weighted_maximum, form.num_users, form.law, weights)


def _or_none(method: Callable[..., Enclosure], *arguments: Any) -> Enclosure | None:
    """Return what a method finds, or None where it would take too long."""
    try:
        return method(*arguments)
    except OutOfRegimeError:
        return None


def _by_histograms(form: MultinomialForm, windows: HistogramWindows) -> Enclosure:
    """Enclose the gain over the best constant guess by listing histograms."""
    parts = form.differences.T
    terms = [
        float((np.maximum((counts @ parts).max(axis=1), 0.0) * masses).sum())
        for counts, masses in histogram_blocks(windows)
    ]
    mean = math.fsum(terms) / form.num_users
    # Sums in pairs within a block; weights, in absolute value, have a mean of at most 2.
    relative = windows.relative_error + 100.0 * _ULP
    error = relative * mean + 2.0 * (len(form.law) + 4.0) * _ULP
    return Enclosure(max(mean - error, 0.0), mean + error + 2.0 * windows.left_out)


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
