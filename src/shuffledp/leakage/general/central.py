"""What a central guarantee says about guessing: the best bound there is, for any mechanism.

P_x is the law of the release where the target has value x, everything else fixed; q is what the
adversary believes of x beforehand. He guesses right with probability V, the sum over releases h of
max_x q_x P_x(h). The laws are (epsilon, delta)-indistinguishable in pairs: for all x, y and every
set S, P_x(S) <= e^epsilon P_y(S) + delta. Let Q_j be the sum of the j largest q_x. Then

    V <= delta + (1 - delta) max_j Q_j / (1 + (j - 1) e^-epsilon),   j = 1, ..., k,

and some mechanism attains it, for every q, epsilon and delta.

*Proof.* Let S_x be where he guesses x, v_x = P_x(S_x) and w_x = (v_x - delta)_+. For y <> x,
P_y(S_x) >= e^-epsilon w_x. The S_x partition all releases, so

    v_y + e^-epsilon sum over x <> y of w_x <= 1   for all y.                                    (1)

Raising all v_x below delta to delta changes no w_x and keeps (1): for some w_x > 0, (1) for x
itself says w_x + e^-epsilon (sum of the other w) <= 1 - delta, hence e^-epsilon (sum of all w) <=
1 - delta, which is (1) for y. (If no w_x is positive, then V <= delta.) So v_x = delta + w_x, and
with w = (1 - delta) u (if delta < 1) and m = max u,

    V <= delta + (1 - delta) sum q_x u_x,   (1 - e^-epsilon) m + e^-epsilon sum u_x <= 1.        (2)

This linear programme in (u, m), 0 <= u_x <= m, is largest at a vertex: k + 1 constraints are tight
there. If (2) is not, all u_x and m are 0. So (2) is, and so is for each x just one of u_x = 0 and
u_x = m. With j values at m, m = 1 / (1 + (j - 1) e^-epsilon), and the j most likely are best. ∎

*Attained.* Let J be the j most likely values, with j the best. Release a value: for x in J, x
itself with probability delta + (1 - delta) m, any other of J with (1 - delta) m e^-epsilon; for x
not in J, x itself with probability delta and each of J with (1 - delta) / j. Guessing what is
released gives the right-hand side. As m >= 1/j and j <= e^epsilon + j - 1, in each pair only the
release of the value itself exceeds e^epsilon times the other's probability, by at most delta. ∎

Source: ours; docs/results/leakage-general.md. For delta = 0 and uniform q it is the bound of Alvim,
Andres, Chatzikokolakis, Degano, Palamidessi, "Differential privacy: on the trade-off between
utility and information leakage", FAST 2011, arXiv:1103.5188, for one individual.

*What can be guessed where it is random how many others hide a report, as in network shuffling.*

A crowd is the target and those who hide him, N + 1 in all: coins that do not depend on the data say
who does, and given the coins, the N + 1 reports are in uniformly random order for the adversary,
whatever else he sees. With k-ary randomized response, truth p, r = (1 - p)/(k - 1), a uniform
prior of the target, and V_S(n) the share of n balls that the fullest of k bins holds on average,

    V <= r + (p - r) E[V_S(N + 1)].                                                              (1)

*Proof.* Reveal the coins, and report and place of everybody outside the crowd. That is more than
the adversary sees, so V does not fall (data processing). If he knows nobody's value, and these are
independent of the target's, what is revealed of the others says nothing about the N + 1 reports,
which are a uniform shuffle of so many uninformed ones: r + (p - r) V_S(N + 1) given N (Jurado,
Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative Information
Flow", CSF 2023, hal-04349295v1, eq. 17, which needs uniform values). Then average over N. ∎

*Who knows everybody else's value.* k-ary randomized response with probability k r answers at random
and with 1 - k r truly. Reveal, moreover, who of the crowd answered at random and what the others
answered. Those who answered at random are left, N' of the N, by coins of their own: (1) holds with
N' for N, whatever the adversary knows of the others.

V_S does not rise with n, for one more random ball can be revealed. So bounds on how rarely N misses
some sizes are enough, and err upwards.

Source: ours; docs/results/leakage-general.md. Coins of network shuffling: docs/results/network.md.
"""

import math
from collections.abc import Iterable
from typing import Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw, crowd_delta
from shuffledp.core.checks import require_at_least, require_extended, require_finite
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.numerics.poisson_binomial import survival_levels
from shuffledp.leakage.channels.builders import Truth
from shuffledp.leakage.informed.blanket_vulnerability import blanket_vulnerability_upper
from shuffledp.leakage.informed.situation import Response
from shuffledp.leakage.priors import checked_prior
from shuffledp.leakage.uninformed.closed_forms import shuffled_vulnerability

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

    Source: ours; the module proves it, and that no smaller number holds for all such mechanisms.

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


def vulnerability_from_curve(
    prior: ArrayLike, points: Iterable[tuple[SupportsFloat, SupportsFloat]]
) -> float:
    """Bound how often one person's value is guessed right, from several guarantees of one release.

    Parameters
    ----------
    prior : array_like of float, shape (k,)
        As for `vulnerability_from_guarantee`.
    points : iterable of (float, float)
        Pairs (epsilon, delta), all true of the same release; at least one. `telling_losses` says
        which epsilons matter; for k = 2 the first of them is enough.

    Returns
    -------
    float
        The smallest of their bounds. Errs upwards.

    Raises
    ------
    ParameterError
        If there is no point, or an argument is out of range.

    Notes
    -----
    For k = 2 and q_1 >= q_2 it is exact where delta is the exact divergence at epsilon =
    ln(q_1 / q_2) of two laws, and the larger of the two directions is that of value 2 from value 1:
    V = q_1 + q_2 delta(ln(q_1 / q_2)). Cost: O(k log k) a point.

    Source: ours; the module.

    Examples
    --------
    >>> round(vulnerability_from_curve([0.5, 0.5], [(1.0, 0.0), (0.0, 0.3)]), 12)
    0.65
    """
    found = [vulnerability_from_guarantee(prior, epsilon, delta) for epsilon, delta in points]
    if not found:
        raise ParameterError("points is empty: give at least one pair (epsilon, delta)")
    return min(found)


def telling_losses(prior: ArrayLike) -> tuple[float, ...]:
    """Return the epsilons at which the number of values worth guessing changes.

    Parameters
    ----------
    prior : array_like of float, shape (k,)
        As for `vulnerability_from_guarantee`.

    Returns
    -------
    tuple of float
        Ascending, without repeats, at most k - 1: below the first, a release with delta = 0 never
        changes the best guess. The only place to look for k = 2; for more values a good start of a
        search.

    Raises
    ------
    ParameterError
        If the prior is no law.

    Examples
    --------
    >>> [round(each, 12) for each in telling_losses([0.2, 0.8])] == [round(math.log(4.0), 12)]
    True
    >>> telling_losses([0.25] * 4)
    (0.0,)
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
    num_values: SupportsIndex,
    truth: Truth,
    crowd: CrowdLaw | ArrayLike,
    *,
    adversary: Adversary = "uninformed",
    missed: SupportsFloat = 0.0,
) -> float:
    """Bound how often one person's value is guessed right, where a random crowd hides him.

    Parameters
    ----------
    num_values : int
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

    Source: ours; the module.

    Examples
    --------
    Everybody hides the target: a uniform shuffle of two, V_S = 3/4.

    >>> crowd = CrowdLaw(sizes=(2,), misses=(0.0,))
    >>> round(crowd_vulnerability_upper(2, 1.0, crowd), 12)
    0.75
    >>> crowd_vulnerability_upper(2, 1.0, crowd, adversary="strong")  # he sees who is left
    1.0
    """
    k = require_at_least("num_values", num_values, 2)
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
