"""Leakage beyond the uniform shuffle: from a guarantee, in a random crowd, or in some order.

*Any guarantee*, whatever the mechanism. With Q_j the sum of the j largest prior probabilities,
V <= delta + (1 - delta) max_j Q_j / (1 + (j - 1) e^-epsilon), which some mechanism attains. For
delta = 0 and a uniform prior it is the bound of Alvim, Andres, Chatzikokolakis, Degano,
Palamidessi, FAST 2011, arXiv:1103.5188, for one individual.

*Proof.* Let S_x be where x is guessed, v_x = P_x(S_x), w_x = (v_x - delta)_+. For y other than x,
P_y(S_x) >= e^-epsilon w_x; the sets are disjoint, so v_y + e^-epsilon sum_{x != y} w_x <= 1. If no
w_x is positive, V <= delta. Else raise each v_x below delta to delta; a positive w_x has
(1 - e^-epsilon) w_x + e^-epsilon sum w <= 1 - delta, so nothing is violated. With v = delta + w,
w = (1 - delta) u, m = max u: 0 <= u_x <= m, (1 - e^-epsilon) m + e^-epsilon sum u <= 1. At a vertex
j of the u_x are m = 1/(1 + (j - 1) e^-epsilon), the others 0. *Attained*: for x among the j
likeliest release x with probability delta + (1 - delta) m, each other of the j with
(1 - delta) m e^-epsilon; for any other x release x with probability delta, each of the j with
(1 - delta)/j.

*Random crowds.* Where coins that do not depend on the data select the N others who hide a
report, V <= r + (p - r) E[V_S(N + 1)] for k-RR and a uniform prior; against an adversary who knows
the others' values each of the N counts with probability k r only. V_S does not rise with n, so
lower quantiles of N are enough, and err upwards. Proofs: docs/results/leakage.md.

*Some order.* The target's report is released at place j with probability M_j, by a permutation that
does not look at reports; A_xy = q_x R_xy / s_y, and C is the mass of outcomes that only the target
sends. Then

    V = C + E[max_x sum_j M_j A_{x z_j}],   z_j independent of law s,   (1)

enclosed by Samuelson's (2), Scarf's and Goldstein's (3) inequalities: docs/results/leakage.md. For
two laws of the place V differs by at most V_N times the sum of (M_j - M'_j)_+, V_N being V without
a shuffler.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.leakage import uninformed
from shuffledp.leakage.channel import Channel, check_law, checked_prior
from shuffledp.leakage.counts.blanket import blanket_vulnerability_upper
from shuffledp.leakage.counts.others import Response

if TYPE_CHECKING:
    from shuffledp.amplification.random_crowd import CrowdLaw

#: Source of the results that are not from the literature.
SOURCE = "derived in the shuffledp documentation, results/leakage"

_GUARANTEED = "The guarantee of this run holds, with all its assumptions."

_ULP = math.ulp(1.0)


def vulnerability_from_guarantee(
    prior: ArrayLike, epsilon: SupportsFloat, delta: SupportsFloat = 0.0
) -> float:
    """Bound the success probability of guessing one person's value, from a guarantee alone.

    Parameters
    ----------
    prior : array_like of float, shape (k,)
        Prior of the adversary on the person's value; sums to 1.
    epsilon : float
        Epsilon of the guarantee, in [0, inf]; neighbouring data differ in that person's value.
    delta : float
        Delta of the guarantee, in [0, 1].

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
    does not hold where their values follow the target's: then they reveal it without any release.
    Cost: O(k log k).

    Source: ours; the proof, also that no smaller number holds for all of them, is in the module.

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
    missed = require_extended("delta", delta, "give a probability")
    if missed > 1.0:
        raise ParameterError(f"delta = {missed} is above 1: it is a probability; try 1e-8")
    # A smaller e^-epsilon gives a larger bound.
    kept = math.exp(-loss) * (1.0 - 2.0 * _ULP)
    pure = float(np.max(heads / (1.0 + np.arange(heads.size) * kept)))
    return min(round_up(missed + (1.0 - missed) * pure, operations=heads.size + 16), 1.0)


def telling_losses(prior: ArrayLike) -> tuple[float, ...]:
    """Return the epsilons at which the number of values worth guessing changes, ascending.

    The only candidates of a search for k = 2; for more values a good start of one.
    """
    heads = _largest_sums(prior)
    following = np.diff(heads)  # q_2, q_3, ... in descending order
    rest = heads[:-1] - np.arange(following.size) * following
    ratios = rest[following > 0.0] / following[following > 0.0]
    return tuple(sorted({max(math.log(ratio), 0.0) for ratio in ratios.tolist()}))


def _largest_sums(prior: ArrayLike) -> Floats:
    """Return the sums of the 1, 2, ..., k largest probabilities of a law."""
    size = np.size(np.asarray(prior, dtype=np.object_))
    law = np.sort(checked_prior(prior, max(size, 1)))[::-1]
    return np.cumsum(law / law.sum())


def at_most(bound: Bound, *others: tuple[str, float]) -> Bound:
    """Return a bound with the least of several upper ends, named after its origin."""
    method, upper = min(others, key=lambda pair: pair[1], default=("", bound.upper))
    assumptions = (*bound.assumptions, _GUARANTEED)
    return bound.at_most(upper, method=method, source=SOURCE, assumptions=assumptions)


# Probabilities with which the crowd misses the sizes that it is cut at. Vulnerabilities fall slowly
# with the size, so these are enough; the loss by the last tail is far below their excess over 1/k.
_MISSES = (
    *(0.9999, 0.999, 0.99, 0.97, 0.93, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
    *(0.05, 0.02, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10),
)

# A product of two doubles is off by less, relative to itself.
_ROUNDED_DOWN = 1.0 - 2.0**-51


def crowd_vulnerability_upper(
    response: Response, crowd: "CrowdLaw | Floats", *, is_strong: bool = False
) -> float:
    """Bound the success probability on one person's value, hidden in a random crowd.

    All values are equally likely beforehand. ``crowd`` is the law of the crowd's size, target
    included, or the chance with which each other user hides the target, by independent coins. A
    strong adversary knows any values of the others. At least the success probability of every such
    adversary, in [1/k, p].
    """
    # Uniform shuffles have no random crowd.
    from shuffledp.amplification.random_crowd import CrowdLaw, crowd_delta
    from shuffledp.core.numerics.poisson_binomial import survival_levels

    k, truth = response
    if isinstance(crowd, CrowdLaw):
        law = crowd
    else:
        overlaps = crowd * (float(response.noise) * _ROUNDED_DOWN) if is_strong else crowd
        # Among equal sizes the last has the smallest miss.
        levels = survival_levels(overlaps, _MISSES)
        law = CrowdLaw.of((1 + count, miss) for count, miss in levels)

    def hidden(size: int) -> float:
        """Bound the success probability in a crowd of this size."""
        if is_strong and law is crowd:
            return blanket_vulnerability_upper(size, k, truth)
        return uninformed.shuffled_vulnerability(size, k, truth).upper

    alone = round_up(float(truth), operations=1)
    return min(round_up(crowd_delta(law, hidden, alone)), alone, 1.0)


# Masses of places that agree to this, relative to themselves, are taken to be the same.
_SAME = 1e-12

_INDEPENDENT = (
    "The permutation is drawn without looking at reports, and the adversary does not see it.",
    "All other reports are independent, with one law.",
)


class _Places(NamedTuple):
    """Distinct masses of places, falling, with the number of places of each."""

    masses: Floats
    counts: NDArray[np.int64]
    moved: float  # the sum of all changes that made masses equal
    collision: float  # the chance that two independent copies of the target's place agree
    threefold: float  # the chance that three do


def positions_vulnerability(
    place_law: ArrayLike, channel: ArrayLike | Channel, *, prior: ArrayLike | None = None
) -> Bound:
    """Enclose the success probability given the law of the place of the target's report.

    Parameters
    ----------
    place_law : array_like of float, shape (n,)
        M_j, the chance that the target's report is released at place j.
    channel : Channel or array_like, shape (k, m)
        R; row x is the law of the report of value x; k >= 2.
    prior : array_like, shape (k,), optional
        q, of every user's value; uniform if not given.

    Returns
    -------
    Bound
        Enclosure of V. ``method`` is "positions-bounded", or `exchangeable_vulnerability`'s
        where all places are equally likely.

    Raises
    ------
    ParameterError
        If a law is invalid, or sizes do not fit.

    Notes
    -----
    Closed bounds, in O(n + k m). They meet where the report may be at many places for two values;
    at few places, or for many values, they are up to twice the leakage apart. ``place_law`` is
    taken as it is given: one that is off by t in total variation moves V by at most t V_N.

    Source: ours; docs/results/leakage.md.

    Examples
    --------
    Two places, the target in the first three times out of four: V = 1/2 + 3/8 for true reports.

    >>> found = positions_vulnerability([0.75, 0.25], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.lower <= 0.875 <= found.upper
    True
    """
    places = _places(place_law)
    if places.masses.size == 1:
        uniform = uninformed.exchangeable_vulnerability(int(places.counts[0]), channel, prior=prior)
        lower = max((uniform.lower or 0.0) - places.moved, 0.0)
        return replace(uniform, lower=lower, upper=min(uniform.upper + places.moved, 1.0))
    form = uninformed.multinomial_form(min(int(places.counts.sum()), 10**9), channel, prior=prior)
    found = _closed(form, places)
    slack = form.slack + places.moved + 64.0 * _ULP * (found.upper + form.certain)
    upper = min(min(form.certain + found.upper, form.unshuffled) + slack, 1.0)
    lower = min(form.certain + max(found.lower - slack, 0.0), upper)
    return Enclosure(lower, upper).bound("positions-bounded", SOURCE, _INDEPENDENT)


def _places(place_law: ArrayLike) -> _Places:
    """Return the positive masses of a law over places, equal ones together."""
    law = np.asarray(place_law, dtype=np.float64)
    if law.ndim != 1 or law.size == 0:
        raise ParameterError(
            f"place_law has shape {law.shape}: give the chance of each place, in a flat list"
        )
    check_law("place_law", law)
    masses = np.sort(law[law > 0.0])[::-1] / math.fsum(law)
    groups = np.append(0, np.cumsum(masses[1:] < masses[:-1] * (1.0 - _SAME)))
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=masses) / counts
    moved = float(np.abs(masses - means[groups]).sum())
    return _Places(means, counts, moved, float(counts @ means**2), float(counts @ means**3))


def _closed(form: uninformed.MultinomialForm, places: _Places) -> Enclosure:
    """Return the bounds (2), Scarf's and (3) on the mean of the maximum, without C."""
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


def _positive_part(row: Floats, law: Floats, places: _Places) -> Enclosure:
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
