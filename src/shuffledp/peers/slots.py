"""Number of messages per user and round: enough for all reports that a user will ever hold.

The number of reports that user u holds after r rounds is a sum of independent indicators, one a
report, with mean load_u(r) = sum_i P_i(u). With P(S >= k) for such a sum S of mean m:

- for k >= m + 1 it is at most the tail of a binomial count of the same mean (Hoeffding, "On the
  distribution of the number of successes in independent trials", 1956, Theorem 4), which is at most
  the tail of a Poisson one (Anderson and Samuels, "Some inequalities among binomial and Poisson
  probabilities", 1967, Theorem 2.1);
- the same holds with a Poisson number of reports more, as dummies are: the law of a sum of many
  indicators tends to it;
- for a Poisson count it is at most e^-m m^k / k! * (k + 1) / (k + 1 - m): the terms after the
  first fall at least as fast as powers of m / (k + 1).

A union bound over users and rounds gives a number of slots that no user exceeds, except with a
probability t; delta grows by (1 + e^epsilon) t at most. Cost of each bound: O(rounds (n + m)).
"""

import math
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.network.graph import Graph
from shuffledp.network.walk import LEAST_PROBABILITY, RandomWalk, move_laws

# Sums of n products, each with a relative error of some units in the last place, over all rounds:
# far below this for any graph in memory and fewer than 10^5 rounds.
_ROUNDING = 1e-9


def messages_for(
    graph: Graph,
    *,
    rounds: SupportsIndex,
    laziness: float = 0.0,
    even_traffic: bool = False,
    failure: float = 1e-9,
    reports_each: float = 1.0,
) -> tuple[Integers, int]:
    """Return the number of messages that each user sends a round, and to each neighbour.

    Both are at least 1; the latter is 0 unless traffic is even: then all users send each neighbour
    the same number, and the traffic that the relay sees does not depend on the paths of reports.

    No user ever holds more reports, nor has more for one neighbour, except with probability
    ``failure``, if all users register and nobody is absent; otherwise see `overload_probability`.
    Each user begins with one report, or with dummies ``reports_each`` on average.

    >>> pair = Graph.from_edges([(0, 1)])
    >>> messages_for(pair, rounds=1)  # 1 report at each, always, but the bound cannot see it
    (array([12, 12]), 0)
    """
    number = require_at_least("rounds", rounds, 1)
    allowed = require_open_unit("failure", failure) / (2 if even_traffic else 1)
    loads = mean_loads(RandomWalk(graph, laziness=laziness), number).max(axis=0)
    loads *= reports_each * (1.0 + _ROUNDING)
    slots = _smallest_slots(loads, allowed / (graph.num_users * (number + 1)))
    if not even_traffic:
        return slots, 0
    to_each = (loads / np.maximum(graph.degrees, 1)).max()
    return slots, int(_smallest_slots(to_each, allowed / (max(2 * graph.num_edges, 1) * number)))


def overload_probability(
    walk: RandomWalk,
    loads: Floats,
    slots: ArrayLike,
    *,
    per_neighbour: int,
    handed_in: NDArray[np.bool_],
) -> float:
    """Return an upper bound on the probability that dropped reports affect the privacy guarantee.

    1 + e^epsilon times it must be added to delta: surplus reports are dropped, and their
    destinations are then no longer drawn independently. A user drops them when drawing a batch,
    from the reports held after the round before, or a hand-in. A batch that the relay refused was
    drawn as well, so rounds that a user missed count, too; but reports that users drop after their
    last accepted batch are lost with them, unless they hand in.

    ``walk`` has the absences of each round, ``loads`` are its `mean_loads`, and ``handed_in`` marks
    the users whose hand-ins came.
    """
    sent_later = np.vstack([~np.array(walk.absences), handed_in])[::-1]
    draws = np.maximum.accumulate(sent_later)[::-1]
    tails = np.exp(_log_tails(loads, np.add(slots, 1.0)))
    total = math.fsum(tails[draws])
    if per_neighbour:
        degrees = walk.graph.degrees
        to_each = np.exp(_log_tails(loads[:-1] / np.maximum(degrees, 1), per_neighbour + 1.0))
        total += math.fsum((to_each * degrees)[draws[:-1]])
    return min(total * (1.0 + _ROUNDING), 1.0)


def loss_probability(load: Floats, missing: int) -> float:
    """Return an upper bound on the probability that users of these loads hold ``missing`` reports.

    Each report is at one of them or not, independently of the others, so that the tail bound of
    this module applies to their number.
    """
    return float(np.exp(_log_tails(load.sum() * (1.0 + _ROUNDING), float(missing))))


def mean_loads(walk: RandomWalk, rounds: int) -> Floats:
    """Return upper bounds on the mean number of reports at each user after 0, ..., rounds rounds.

    Each user begins with one report.
    """
    loads, flushed = np.ones((rounds + 1, walk.num_users)), 0
    for number in range(rounds):
        loads[number + 1] = loads[number]
        flushed += move_laws(walk, loads[number + 1], number, number + 1)
    return loads * (1.0 + _ROUNDING) + flushed * LEAST_PROBABILITY


def _log_tails(means: Any, least: Any) -> Floats:
    """Return logs of upper bounds on P(sum of independent indicators of a mean >= least)."""
    from scipy.special import gammaln

    means = np.asarray(means, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # there the bound is 1
        logs = least * np.log(means) - means - gammaln(least + 1.0)
        logs += np.log((least + 1.0) / (least + 1.0 - means))
    rounded = np.minimum(logs * (1.0 - _ROUNDING) + _ROUNDING, 0.0)
    return np.where(least < means + 1.0, 0.0, rounded)


def _smallest_slots(means: Any, allowed: float) -> Integers:
    """Return the smallest number of slots, >= 1, that suffices for these means."""
    slots = np.ones(np.shape(means), dtype=np.int64)
    while (lacks := _log_tails(means, slots + 1.0) > math.log(allowed)).any():
        slots += lacks
    return slots
