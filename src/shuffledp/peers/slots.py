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
probability that is added to delta. Cost of each bound: O(rounds (n + m)).
"""

import math
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_non_negative, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph

# Sums of n products, each with a relative error of some units in the last place, over all rounds:
# far below this for any graph in memory and fewer than 10^5 rounds.
_ROUNDING = 1e-9


def slots_for(
    graph: Graph,
    *,
    rounds: SupportsIndex,
    laziness: SupportsFloat = 0.0,
    failure: SupportsFloat = 1e-9,
    reports_each: float = 1.0,
) -> NDArray[np.int64]:
    """Return the number of messages that each user sends a round, at least 1.

    No user ever holds more reports, except with probability ``failure``, if all users register and
    nobody is absent; otherwise see `overload_probability`. Each user begins with one report, or
    with dummies ``reports_each`` on average.

    >>> pair = Graph.from_edges([(0, 1)])
    >>> slots_for(pair, rounds=1).tolist()  # 1 report at each, always, but the bound cannot see it
    [12, 12]
    """
    number = require_at_least("rounds", rounds, 1)
    allowed = require_open_unit("failure", failure) / (graph.num_users * (number + 1))
    return _smallest_slots(_most_loads(graph, number, laziness, reports_each), allowed)


def overload_probability(
    graph: Graph,
    loads: NDArray[np.float64],
    slots: ArrayLike,
    *,
    per_neighbour: int,
    absences: NDArray[np.bool_],
    registered: NDArray[np.bool_],
    handed_in: NDArray[np.bool_],
) -> float:
    """Return an upper bound on the probability that dropped reports affect the privacy guarantee.

    It must be added to delta: surplus reports are dropped, and their destinations are then no
    longer drawn independently. A user drops them when drawing a batch, from the reports held after
    the round before, or a hand-in. A batch that the relay refused was drawn as well, so rounds that
    a user missed count, too; but reports that users drop after their last accepted batch are lost
    with them, unless they hand in.

    ``loads`` are `mean_loads`; ``absences`` marks users who sent nothing, a row a round,
    ``registered`` the users who take part, ``handed_in`` the users whose hand-ins came.
    """
    draws = np.maximum.accumulate(np.vstack([~absences, handed_in])[::-1])[::-1] & registered
    tails = np.exp(_log_tails(loads, np.add(slots, 1.0)))
    total = math.fsum(tails[draws])
    if per_neighbour:
        _, _, degrees = _pairs(graph, registered)
        to_each = np.exp(_log_tails(loads[:-1] / np.maximum(degrees, 1), per_neighbour + 1.0))
        total += math.fsum((to_each * degrees)[draws[:-1]])
    return min(total * (1.0 + _ROUNDING), 1.0)


def per_neighbour_for(
    graph: Graph,
    *,
    rounds: SupportsIndex,
    laziness: SupportsFloat = 0.0,
    failure: SupportsFloat = 1e-9,
    reports_each: float = 1.0,
) -> int:
    """Return the number of messages, >= 1, that all users send each neighbour in each round.

    If each neighbour is sent the same number, the traffic that the relay sees does not depend on
    the paths of reports. From means load_u(r) / degree_u; ``failure`` is the probability of ever
    having more reports for one neighbour.
    """
    number = require_at_least("rounds", rounds, 1)
    allowed = require_open_unit("failure", failure) / (max(2 * graph.num_edges, 1) * number)
    loads = _most_loads(graph, number, laziness, reports_each)
    return int(_smallest_slots((loads / np.maximum(graph.degrees, 1)).max(), allowed))


def _most_loads(
    graph: Graph, rounds: int, laziness: SupportsFloat, reports_each: float
) -> NDArray[np.float64]:
    """Return the largest mean load of each user if no user is ever absent."""
    there = np.ones((rounds + 1, graph.num_users), dtype=bool)
    loads = mean_loads(graph, rounds, checked_laziness(laziness), ~there, there[0])
    return np.asarray(loads.max(axis=0)) * (reports_each * (1.0 + _ROUNDING))


def loss_probability(load: NDArray[np.float64], missing: int) -> float:
    """Return an upper bound on the probability that users of these loads hold ``missing`` reports.

    Each report is at one of them or not, independently of the others, so that the tail bound of
    this module applies to their number.
    """
    return float(np.exp(_log_tails(load.sum() * (1.0 + _ROUNDING), float(missing))))


def checked_laziness(laziness: SupportsFloat) -> float:
    """Return the laziness if it lies in [0, 1), otherwise raise `ParameterError`."""
    value = require_non_negative("laziness", laziness)
    if value >= 1.0:
        raise ParameterError(f"laziness = {value} is not in [0, 1): give 0 for a walk that moves")
    return value


def _pairs(
    graph: Graph, registered: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
    """Return senders and recipients who both take part, and the number of recipients of each."""
    sender, recipient = np.repeat(np.arange(graph.num_users), graph.degrees), graph.neighbours
    both = registered[sender] & registered[recipient]
    sender, recipient = sender[both], recipient[both]
    return sender, recipient, np.bincount(sender, minlength=graph.num_users)


def mean_loads(
    graph: Graph,
    rounds: int,
    laziness: float,
    absences: NDArray[np.bool_],
    registered: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return upper bounds on the mean number of reports at each user after 0, ..., rounds rounds.

    ``absences`` marks users who sent nothing, one row a round; ``registered`` users who take part.
    Users without a (registered) neighbour keep their report.
    """
    sender, recipient, degrees = _pairs(graph, registered)
    load = registered.astype(np.float64)
    loads = [load]
    for r in range(rounds):
        moving = load * (1.0 - laziness)
        moving[(degrees == 0) | absences[r]] = 0.0
        to_each = moving / np.maximum(degrees, 1)
        load = load - moving
        load += np.bincount(recipient, weights=to_each[sender], minlength=graph.num_users)
        loads.append(load)
    return np.stack(loads) * (1.0 + _ROUNDING)


def _log_tails(means: Any, least: Any) -> NDArray[np.float64]:
    """Return logs of upper bounds on P(sum of independent indicators of a mean >= least)."""
    from scipy.special import gammaln

    means = np.asarray(means, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # there the bound is 1
        logs = least * np.log(means) - means - gammaln(least + 1.0)
        logs += np.log((least + 1.0) / (least + 1.0 - means))
    rounded = np.minimum(logs * (1.0 - _ROUNDING) + _ROUNDING, 0.0)
    return np.where(least < means + 1.0, 0.0, rounded)


def _smallest_slots(means: Any, allowed: float) -> NDArray[np.int64]:
    """Return the smallest number of slots, >= 1, that suffices for these means."""
    slots = np.ones(np.shape(means), dtype=np.int64)
    while (lacks := _log_tails(means, slots + 1.0) > math.log(allowed)).any():
        slots += lacks
    return slots
