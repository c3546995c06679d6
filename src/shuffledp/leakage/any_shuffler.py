"""Beyond the uniform shuffle: what a guarantee, a random crowd, or some order leaves to guess.

*Any mechanism.* With Q_j the sum of the j largest prior probabilities, any (epsilon, delta)
guarantee leaves

    V <= delta + (1 - delta) max_j Q_j / (1 + (j - 1) e^-epsilon),

which some mechanism attains. Where coins that do not depend on the data say which N others hide a
report, V <= r + (p - r) E[V_S(N + 1)] for k-RR and a uniform prior; for whoever knows the others'
values each of the N counts with probability k r only. V_S does not rise with n, so bounds on how
rarely N misses some sizes are enough, and err upwards. Proofs: docs/results/leakage-general.md. For
delta = 0 and a uniform prior the first is the bound of Alvim, Andres, Chatzikokolakis, Degano,
Palamidessi, FAST 2011, arXiv:1103.5188, for one individual.

*Some order.* The target's report is released at place j with probability M_j, by a permutation that
does not look at reports; A_xy = q_x R_xy / s_y, and C is the mass of outcomes that only the target
sends. Then

    V = C + E[max_x sum_j M_j A_{x z_j}],   z_j independent of law s,   (1)

enclosed by listing, by samples, or by Samuelson's (2), Scarf's and Goldstein's (3) inequalities:
docs/results/leakage-general.md. For two laws of the place V differs by at most V_N times the sum of
(M_j - M'_j)_+, V_N being that without a shuffler.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw, crowd_delta
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_extended, require_finite
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.numerics.poisson_binomial import survival_levels
from shuffledp.core.reports import read_only
from shuffledp.groups.hamming import HammingMallows
from shuffledp.groups.kendall import displacement_law
from shuffledp.groups.mallows import MallowsModel
from shuffledp.leakage.blanket import blanket_vulnerability_upper
from shuffledp.leakage.builders import Truth
from shuffledp.leakage.matrices import SUM_TOLERANCE, checked_prior
from shuffledp.leakage.multinomial import (
    BUT_FOR_FAILURE,
    DEFAULT_FAILURE,
    MultinomialForm,
    SampleMoments,
    histogram_blocks,
    histogram_windows,
    multinomial_form,
)
from shuffledp.leakage.others import Response
from shuffledp.leakage.uninformed import exchangeable_vulnerability, shuffled_vulnerability

if TYPE_CHECKING:
    from shuffledp.leakage.channel import Channel


_ULP = math.ulp(1.0)


def vulnerability_from_guarantee(
    prior: ArrayLike, epsilon: SupportsFloat, delta: SupportsFloat = 0.0
) -> float:
    """Bound how often one person's value is guessed right, from a central guarantee alone.

    Parameters
    ----------
    prior : array_like of float, shape (k,)
        What the adversary believes of the person's value beforehand; sums to 1.
    epsilon : float
        Of the guarantee, in [0, inf]; neighbouring data differ in that person's value.
    delta : float
        Of the guarantee, in [0, 1].

    Returns
    -------
    float
        At least the success probability of every adversary; at most 1. Errs upwards, by some
        k 1e-16 above the least number that the guarantee proves.

    Raises
    ------
    ParameterError
        If the prior is no law, or epsilon or delta is out of range.

    Notes
    -----
    It holds for any mechanism with the guarantee, whatever the adversary knows about the other
    people, their values included, as long as that does not depend on the person's own value. It
    does not hold where their values follow his: then they give him away without any release of
    his. Cost: O(k log k).

    Source: ours; docs/results/leakage-general.md, also that no smaller number holds for all of
    them.

    Examples
    --------
    Randomized response among four values attains it, as e^ln(3) = 3.

    >>> round(vulnerability_from_guarantee([0.25] * 4, math.log(3.0)), 12)
    0.5
    >>> round(vulnerability_from_guarantee([0.9, 0.1], 0.5), 12)  # the prior guess is still best
    0.9
    >>> round(vulnerability_from_guarantee([0.5, 0.5], 0.0, 0.02), 12)  # (1 + delta) / 2
    0.51
    """
    heads = _largest_sums(prior)
    loss = require_extended("epsilon", epsilon, "give a number >= 0")
    missed = _require_probability(delta)
    # A smaller e^-epsilon gives a larger bound.
    kept = math.exp(-loss) * (1.0 - 2.0 * _ULP)
    pure = float(np.max(heads / (1.0 + np.arange(heads.size) * kept)))
    return min(round_up(missed + (1.0 - missed) * pure, operations=heads.size + 16), 1.0)


def telling_losses(prior: ArrayLike) -> tuple[float, ...]:
    """Return the epsilons at which the number of values worth guessing changes, ascending.

    The only place to look for k = 2; for more values a good start of a search.
    """
    heads = _largest_sums(prior)
    following = np.diff(heads)  # q_2, q_3, ... in descending order
    ranks = np.arange(following.size)
    rest = heads[:-1] - ranks * following
    possible = following > 0.0
    ratios = rest[possible] / following[possible]
    return tuple(sorted({max(math.log(ratio), 0.0) for ratio in ratios.tolist()}))


def _largest_sums(prior: ArrayLike) -> NDArray[np.float64]:
    """Return the sums of the 1, 2, ..., k largest probabilities of a law."""
    size = np.size(np.asarray(prior, dtype=np.object_))
    law = np.sort(checked_prior(prior, max(size, 1)))[::-1]
    heads: NDArray[np.float64] = np.cumsum(law / law.sum())
    return heads


def _require_probability(delta: SupportsFloat) -> float:
    """Return delta if it lies in [0, 1], else raise."""
    missed = require_extended("delta", delta, "give a probability")
    if missed > 1.0:
        raise ParameterError(f"delta = {missed} is above 1: it is a probability; try 1e-8")
    return missed


Adversary = Literal["uninformed", "strong"]

# How rarely the crowd misses the sizes that it is cut at. Vulnerabilities fall slowly with the
# size, so this many are enough; what is lost to the last tail is far below their excess over 1/k.
_MISSES = (
    *(0.9999, 0.999, 0.99, 0.97, 0.93, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
    *(0.05, 0.02, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10),
)

# A product of two doubles is off by less, relative to itself.
_ROUNDED_DOWN = 1.0 - 2.0**-51


def crowd_vulnerability_upper(
    domain_size: SupportsIndex,
    truth: Truth,
    crowd: CrowdLaw | ArrayLike,
    *,
    adversary: Adversary = "uninformed",
    missed: SupportsFloat = 0.0,
) -> float:
    """Bound how often one person's value is guessed right, where a random crowd hides him.

    Parameters
    ----------
    domain_size : int
        k >= 2; all values are equally likely beforehand.
    truth : float or Fraction
        Chance p in [1/k, 1] that a report is true; each other value is reported with
        (1 - p)/(k - 1).
    crowd : CrowdLaw or array_like of float, shape (n - 1,)
        How rarely the crowd, target included, misses some sizes; or the chance of each other user
        to hide him, by coins of their own that do not depend on values: `Hiding.overlaps` of a
        network.
    adversary : {"uninformed", "strong"}
        What he knows beforehand: nobody's value, all values being uniform and independent; or any
        values of the others.
    missed : float
        Chance in [0, 1] that nobody hides the target; then the crowd is that given the contrary.

    Returns
    -------
    float
        In [1/k, p]; at least the success probability of every such adversary. Errs upwards.

    Raises
    ------
    OutOfRegimeError
        If p is below 1/k: then the best guess is a value that was not reported.
    ParameterError
        If another argument is out of range.

    Notes
    -----
    Cost: some twenty maximum loads, each of milliseconds; for "strong" and a `CrowdLaw` as many
    blanket bounds as it has sizes. O(n) besides.

    Source: ours; docs/results/leakage-general.md.

    Examples
    --------
    Everybody hides the target: a uniform shuffle of two, V_S = 3/4.

    >>> crowd = CrowdLaw(sizes=(2,), misses=(0.0,))
    >>> round(crowd_vulnerability_upper(2, 1.0, crowd), 12)
    0.75
    >>> crowd_vulnerability_upper(2, 1.0, crowd, adversary="strong")  # he sees who is left
    1.0
    """
    k = require_at_least("domain_size", domain_size, 2)
    response = Response.of(truth, k)
    share = require_finite("missed", missed)
    if not 0.0 <= share <= 1.0:
        raise ParameterError(f"missed = {share} is not in [0, 1]: it is a probability")
    if adversary not in get_args(Adversary):
        raise ParameterError(f"adversary = {adversary!r} is not one of {get_args(Adversary)}")
    if isinstance(crowd, CrowdLaw):
        law = crowd
    else:
        overlaps = np.asarray(crowd, dtype=np.float64)
        if not np.all((overlaps >= 0.0) & (overlaps <= 1.0)):  # NaN fails
            raise ParameterError("crowd has an entry outside [0, 1]: its entries are chances")
        if adversary == "strong":
            overlaps = overlaps * (float(response.noise) * _ROUNDED_DOWN)
        law = _law_of(overlaps)

    def hidden(size: int) -> float:
        """Bound what is guessed right in a crowd of so many."""
        if adversary == "strong" and isinstance(crowd, CrowdLaw):
            return blanket_vulnerability_upper(size, k, response.truth)
        return shuffled_vulnerability(size, k, response.truth).upper

    alone = round_up(float(response.truth), operations=1)
    found = crowd_delta(law, hidden, alone)
    return min(round_up((1.0 - share) * found + share * alone), alone, 1.0)


def _law_of(overlaps: NDArray[np.float64]) -> CrowdLaw:
    """Return how rarely the crowd misses some sizes, finely cut around the middle."""
    # Of equal sizes the last one counts, with the smallest miss.
    best = {1 + count: miss for count, miss in survival_levels(overlaps, _MISSES)}
    sizes = tuple(sorted(best, reverse=True))
    return CrowdLaw(sizes=sizes, misses=tuple(best[size] for size in sizes))


# Masses of places that agree to this, relative to themselves, are taken to be the same.
_SAME = 1e-12

# Places that hold the target this seldom in all are left out of the samples.
_RARE = 1e-6

# Histograms times guesses that are listed at most: some seconds, some 100 MB.
_MOST_LISTED = 1e7
_LEFT_ROWS = 1 << 11

# Draws of single reports: in all, and at once. Samples: fewest and most.
_MOST_DRAWS, _DRAWS_AT_ONCE = 2e7, 1 << 20
_FEWEST_SAMPLES, _MOST_SAMPLES = 10_000, 200_000

_SOURCE = "derived in the shuffledp documentation, results/leakage-general"
_INDEPENDENT = (
    "The permutation is drawn without looking at reports, and the adversary does not see it.",
    "All other reports are independent, with one law.",
)
_SAMPLED = f"Both ends come from random samples, and hold {BUT_FOR_FAILURE}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Masses of places by falling mass, with how many places have each."""

    masses: NDArray[np.float64]
    counts: NDArray[np.int64]
    moved: float  # the sum of all changes that made masses equal
    collision: float  # the chance that two independent copies of the target's place agree
    threefold: float  # the chance that three do


def positions_vulnerability(
    place_law: ArrayLike,
    channel: "ArrayLike | Channel",
    *,
    prior: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
    entropy: Entropy | None = None,
    num_samples: SupportsIndex | None = None,
) -> Bound:
    """Enclose how often the target is guessed right, who knows the law of his report's place.

    Parameters
    ----------
    place_law : array_like of float, shape (n,)
        M_j, the chance that the target's report is released at place j.
    channel : Channel or array_like, shape (k, m)
        R; row x is the law of the target's report where his value is x; k >= 2.
    prior : array_like, shape (k,), optional
        q; uniform if not given.
    crowd : array_like, shape (m,), optional
        s, of every other report; that of a user with the same prior if not given.
    entropy : Entropy, optional
        Where samples come from; from the operating system if not given.
    num_samples : int, optional
        How many samples; 10,000 to 200,000 by the number of places if not given, and none above
        some 2,000 likely places. 0 for bounds without chance; else at least 2.

    Returns
    -------
    Bound
        Of V. ``method`` is "positions-listed" where everything was listed (then its width is
        round-off), "positions-sampled" where an average of samples entered (``assumptions`` says
        how often that fails), "positions-bounded" where there are closed bounds only, and that of
        `exchangeable_vulnerability` where all places are equally likely.

    Raises
    ------
    ParameterError
        If a law is none, or sizes do not fit.

    Notes
    -----
    Listed where the places have few different masses, or are few: at most 1e7 histograms times
    guesses. Else O(num_samples n), about a second, or O(n k m) where (3) is all. ``place_law`` is
    taken as it is given: one that is off by t in total variation moves V by at most t V_N.

    Source: ours; docs/results/leakage-general.md.

    Examples
    --------
    Two places, the target in the first three times out of four: V = 1/2 + 3/8 for true reports.

    >>> found = positions_vulnerability([0.75, 0.25], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(found.lower, 9), round(found.upper, 9), found.method
    (0.875, 0.875, 'positions-listed')
    """
    wanted = None if num_samples is None else require_at_least("num_samples", num_samples, 0)
    if wanted == 1:
        raise ParameterError("num_samples = 1 has no limits: give 0, or some 10,000")
    places = _places(place_law)
    if places.masses.size == 1:
        uniform = exchangeable_vulnerability(
            int(places.counts[0]),
            channel,
            prior=prior,
            crowd=crowd,
            entropy=entropy,
            num_samples=wanted,
        )
        return replace(
            uniform,
            lower=max((uniform.lower or 0.0) - places.moved, 0.0),
            upper=min(uniform.upper + places.moved, 1.0),
        )
    form = multinomial_form(min(int(places.counts.sum()), 10**9), channel, prior=prior, crowd=crowd)
    closed = _closed(form, places)
    listed = _listed(form, places)
    if listed is not None:
        return _bound(form, places, _within(listed, closed), "positions-listed")
    sampled = _sampled(form, places, entropy, wanted)
    if sampled is None:
        return _bound(form, places, closed, "positions-bounded")
    return _bound(form, places, _within(sampled, closed), "positions-sampled")


def _places(place_law: ArrayLike) -> _Places:
    """Return the positive masses of a law over places, equal ones together."""
    law = np.asarray(place_law, dtype=np.float64)
    if law.ndim != 1 or law.size == 0:
        raise ParameterError(
            f"place_law has shape {law.shape}: give the chance of each place, in a flat list"
        )
    if not np.all(law >= 0.0):  # NaN fails
        raise ParameterError("place_law has an entry that is not in [0, 1]: it is a law")
    total = math.fsum(law)
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ParameterError(f"place_law sums to {total:.12g}, not 1: divide it by its sum")
    masses = np.sort(law[law > 0.0])[::-1] / total
    is_first = np.ones(masses.size, dtype=np.bool_)
    is_first[1:] = masses[1:] < masses[:-1] * (1.0 - _SAME)
    groups = np.cumsum(is_first) - 1
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=masses) / counts
    moved = float(np.abs(masses - means[groups]).sum())
    return _Places(
        masses=means,
        counts=counts,
        moved=moved,
        collision=float((counts * means**2).sum()),
        threefold=float((counts * means**3).sum()),
    )


def _within(found: Enclosure, closed: Enclosure) -> Enclosure:
    """Return what both allow; the closed bounds alone where limits have failed."""
    lower, upper = max(found.lower, closed.lower), min(found.upper, closed.upper)
    return Enclosure(lower, upper) if lower <= upper else closed


def _bound(form: MultinomialForm, places: _Places, found: Enclosure, method: str) -> Bound:
    """Return what is claimed, with C and all rounding added."""
    slack = form.slack + places.moved + 64.0 * _ULP * (found.upper + form.certain)
    lower = max(found.lower - slack, 0.0)
    upper = min(form.certain + found.upper, form.unshuffled) + slack
    is_sampled = method == "positions-sampled"
    return Bound(
        lower=min(form.certain + lower, upper, 1.0),
        upper=min(upper, 1.0),
        method=method,
        source=_SOURCE,
        assumptions=(*_INDEPENDENT, _SAMPLED) if is_sampled else _INDEPENDENT,
    )


def _closed(form: MultinomialForm, places: _Places) -> Enclosure:
    """Return what (2), Scarf's inequality and (3) say of the mean of the maximum, without C."""
    rows, law = form.gains, form.law
    k, best = len(rows), float(form.means[form.best])
    # Rounding may make a sum of squares smaller; this is more than it can.
    second = places.collision * (1.0 + places.masses.size * _ULP) + places.moved
    variances = ((rows - form.means[:, None]) ** 2) @ law
    spread = math.sqrt((k - 1) / k * second * float(variances.sum()))
    parts = [_positive_part(row, law, places) for row in form.differences]
    most = min(spread, math.fsum(part.upper for part in parts))
    least = max((part.lower for part in parts), default=0.0)
    doubt = (k + 64.0) * _ULP
    lower = best + least * (1.0 - doubt)
    return Enclosure(lower, max((best + most) * (1.0 + doubt), lower))


def _positive_part(
    row: NDArray[np.float64], law: NDArray[np.float64], places: _Places
) -> Enclosure:
    """Enclose E[D_+] for D = sum_j M_j row[z_j], whose mean is not positive."""
    mean = min(float(row @ law), 0.0)
    apart = np.abs(row - mean)
    second = places.collision * float(apart**2 @ law)
    if second == 0.0:
        return Enclosure(0.0, 0.0)
    deviation = math.sqrt(second)
    # (mu + sqrt(mu^2 + s^2)) / 2 without cancellation.
    scarf = second / (2.0 * (math.hypot(mean, deviation) - mean))
    step = mean / deviation
    density = math.exp(-0.5 * step * step) / math.sqrt(2.0 * math.pi)
    normal = deviation * density + mean * 0.5 * math.erfc(-step / math.sqrt(2.0))
    third = places.threefold * float(apart**3 @ law)
    widest = float(apart.max())
    rounding = (law.size + 64.0) * _ULP * (widest + abs(mean)) + places.moved * widest
    off = 0.5 * third / second * (1.0 + 1e-12) + rounding
    return Enclosure(max(normal - off, 0.0), max(min(scarf + rounding, normal + off), 0.0))


def _listed(form: MultinomialForm, places: _Places) -> Enclosure | None:
    """Return the mean of the maximum by listing histograms of all groups; None if too many."""
    rows = len(form.gains)
    windows, size = [], float(rows)
    for count in places.counts.tolist():
        # Each group has at least as many histograms as outcomes.
        size *= len(form.law)
        if size > _MOST_LISTED:
            return None
        windows.append(histogram_windows(count, form.law))
        size *= windows[-1].num_histograms / len(form.law)
        if size > _MOST_LISTED:
            return None
    tables = []
    for window, mass in zip(windows, places.masses.tolist(), strict=True):
        blocks = [
            (mass * (counts @ form.gains.T), chances.copy())
            for counts, chances in histogram_blocks(window)
        ]
        tables.append(tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
    tables.sort(key=lambda table: len(table[1]))
    left = (np.zeros((1, rows)), np.ones(1))
    while len(tables) > 1 and len(left[1]) * len(tables[0][1]) <= _LEFT_ROWS:
        left = _joined(left, tables.pop(0))
    right = tables[0]
    for table in tables[1:]:
        right = _joined(right, table)
    total = math.fsum(
        chance * float(((right[0] + scores).max(axis=1) * right[1]).sum())
        for scores, chance in zip(*left, strict=True)
    )
    error = sum(window.relative_error for window in windows) + (len(windows) + 64.0) * _ULP
    left_out = sum(window.left_out for window in windows) * float(form.gains.max())
    return Enclosure(total * (1.0 - error), total * (1.0 + error) + left_out)


def _joined(
    first: Sequence[NDArray[np.float64]], second: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums of scores and products of chances, for all pairs."""
    scores = first[0][:, None, :] + second[0][None, :, :]
    return scores.reshape(-1, scores.shape[2]), np.outer(first[1], second[1]).reshape(-1)


def _sampled(
    form: MultinomialForm, places: _Places, entropy: Entropy | None, wanted: int | None
) -> Enclosure | None:
    """Return limits of the mean of the maximum from samples; None if there would be too few."""
    ends = np.cumsum(places.counts * places.masses)
    last = int(np.searchsorted(ends, 1.0 - _RARE)) + 1
    masses, counts = places.masses[:last], places.counts[:last]
    rest = max(1.0 - float(ends[min(last, ends.size) - 1]), 0.0) + ends.size * _ULP
    if last == ends.size:
        rest = 0.0
    # Few reports are drawn one by one, many as a histogram.
    few = counts <= len(form.law)
    singles = np.repeat(masses[few], counts[few])
    shared = list(zip(masses[~few].tolist(), counts[~few].tolist(), strict=True))
    draws = singles.size + len(shared) * len(form.law)
    number = wanted
    if number is None:
        number = min(int(_MOST_DRAWS / draws), _MOST_SAMPLES)
        if number < _FEWEST_SAMPLES:  # limits would be further apart than (3)
            return None
    if number == 0:
        return None
    generator = (entropy or Entropy.from_operating_system()).generator()
    moments, width = SampleMoments(), max(int(_DRAWS_AT_ONCE / draws), 1)
    law = form.law / form.law.sum()
    ceilings = np.cumsum(law)[:-1]
    for first in range(0, number, width):
        size = min(width, number - first)
        weights = _weights(generator, ceilings, singles, size)
        for mass, count in shared:
            weights += mass * generator.multinomial(count, law, size=size)
        scores = weights @ form.gains.T + rest * form.means
        moments = moments.joined(SampleMoments.of(scores.max(axis=1)))
    # A maximum is at least the mean over guesses, and no score exceeds the largest gain.
    low = float(form.gains.mean(axis=0).min()) * (1.0 - rest) * (1.0 - 1e-12)
    high = float(form.gains.max()) * (1.0 + 1e-12)
    limits = moments.limits(min(low, high), high, DEFAULT_FAILURE)
    # By Jensen's inequality what was left out, at its mean, errs downwards, by at most its share.
    return Enclosure(limits.lower, limits.upper + rest * form.unshuffled)


def _weights(
    generator: np.random.Generator,
    ceilings: NDArray[np.float64],
    masses: NDArray[np.float64],
    size: int,
) -> NDArray[np.float64]:
    """Return what places of these masses weigh for each outcome in samples, shape (size, m)."""
    outcomes = np.searchsorted(ceilings, generator.random((size, masses.size)), side="right")
    num_outcomes = ceilings.size + 1
    keys = outcomes + num_outcomes * np.arange(size)[:, None]
    weights = np.bincount(
        keys.ravel(), weights=np.tile(masses, size), minlength=size * num_outcomes
    )
    return np.asarray(weights, dtype=np.float64).reshape(size, num_outcomes)


def target_place_law(model: MallowsModel, place: SupportsIndex) -> NDArray[np.float64]:
    """Return the law of the place at which one person's report is released.

    Parameters
    ----------
    model : MallowsModel
        The law of the permutation, in the coordinates of the reference order.
    place : int
        Where the person stands in the reference order, in [0, n - 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        Read-only, with sum 1. Right to 1e-12 in total variation for "hamming" and "cayley"; each to
        a relative n 1e-15 for "kendall", where what adds up to less than 1e-21 is 0.

    Raises
    ------
    ParameterError
        If the place is out of range, or it would take more than some seconds (see
        `displacement_law`).

    Notes
    -----
    All three distances are the same for a permutation and its inverse. So the place of an item has
    the law of the item at its place. Under "hamming" and "cayley" all permutations that come from
    one another by renaming are equally likely, so an item that moves is equally likely anywhere
    else. Under "kendall" it is near: people at the ends of the order move less than others.

    Examples
    --------
    >>> from shuffledp.groups.mallows import mallows_model
    >>> target_place_law(mallows_model("kendall", 2, math.log(3.0)), 0).round(12).tolist()
    [0.75, 0.25]
    """
    n = model.num_items
    start = require_at_least("place", place, 0)
    if start >= n:
        raise ParameterError(f"place = {start} is not in [0, {n - 1}]: give a place counted from 0")
    if model.distance == "kendall":
        law = np.zeros(n)
        steps, chances = displacement_law(n, model.theta, start)
        law[start + steps] = chances
        return read_only(law / math.fsum(law))
    stays = _stays(model)
    law = np.full(n, (1.0 - stays) / max(n - 1, 1))
    law[start] = stays
    return read_only(law)


def _stays(model: MallowsModel) -> float:
    """Return the chance that an item keeps its place, where all items are alike."""
    if isinstance(model, HammingMallows):
        return 1.0 - model.mean_distance() / model.num_items
    # The last item is swapped or not, and all are like the last.
    return 1.0 / (1.0 + (model.num_items - 1) * math.exp(-model.theta))
