"""What can be guessed where it is random how many others hide a report, as in network shuffling.

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

from typing import Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw, crowd_delta
from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.poisson_binomial import survival_levels
from shuffledp.core.numerics.rounding import round_up
from shuffledp.leakage.channels.responses import Truth
from shuffledp.leakage.informed.blanket_vulnerability import blanket_vulnerability_upper
from shuffledp.leakage.informed.response import Response
from shuffledp.leakage.uninformed.closed_forms import shuffled_vulnerability

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
