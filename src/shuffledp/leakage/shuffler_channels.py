"""Shufflers that are not uniform, as channels: Mallows permutations, and reports that walk.

Channels list all data sets and all releases, so they are for a handful of users. Beyond, the law of
the place of one person's report is enough where nobody's value is known beforehand:
`target_place_law` gives it at any size, and `positions_vulnerability` takes it.

Which report lies where: with sigma drawn by `MallowsShuffler`, the place of person i shows the
report of person sigma(i).
"""

import math
from itertools import permutations
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups.permutations.kendall_displacement import displacement_law
from shuffledp.groups.permutations.mallows import MallowsModel
from shuffledp.groups.permutations.permutation_arrays import require_permutation
from shuffledp.network.walk import RandomWalk, position_distribution

if TYPE_CHECKING:
    from shuffledp.leakage.channels.channel import Channel

#: All permutations are listed up to so many people: 40,320.
MOST_PEOPLE = 8

# Data sets that are permuted at most.
_MOST_MOVES = 20_000_000


def permutation_law(model: MallowsModel) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return all permutations of a model, with their probabilities.

    Parameters
    ----------
    model : MallowsModel
        Of at most `MOST_PEOPLE` items.

    Returns
    -------
    permutations : ndarray of int64, shape (n!, n)
        In lexicographic order; ``permutations[m, i]`` is the item at place i.
    probabilities : ndarray of float64, shape (n!,)
        Each to a relative error of about 1e-14; they are divided by their sum.

    Raises
    ------
    ParameterError
        If there are more items.

    Notes
    -----
    Cost: n! evaluations of the model's own probability, 20 microseconds each.

    Examples
    --------
    >>> from shuffledp.groups.permutations.mallows import mallows_model
    >>> table, law = permutation_law(mallows_model("kendall", 2, math.log(3.0)))
    >>> table.tolist(), law.round(12).tolist()
    ([[0, 1], [1, 0]], [0.75, 0.25])
    """
    if model.num_items > MOST_PEOPLE:
        raise ParameterError(
            f"model has {model.num_items:,} items: only up to {MOST_PEOPLE} can all permutations "
            "be listed; use target_place_law and positions_vulnerability"
        )
    table = np.array(list(permutations(range(model.num_items))), dtype=np.int64)
    law = np.array([math.exp(model.log_probability(row)) for row in table])
    return table, law / math.fsum(law)


def mallows_channel(
    model: MallowsModel, num_values: SupportsIndex, *, reference_order: ArrayLike | None = None
) -> "Channel":
    """Return the channel of a Mallows shuffler: all data sets to all orders of their reports.

    Parameters
    ----------
    model : MallowsModel
        The law of the permutation, in the coordinates of the reference order.
    num_values : int
        k >= 2, of which each report has one.
    reference_order : array_like of int, shape (n,), optional
        ``reference_order[j]`` is the person at place j, as in `ReferenceOrder.order`; by default
        people stand in the order of their numbers.

    Returns
    -------
    Channel
        k^n data sets to k^n sequences of reports, the i-th being what lies in the place of person
        i. Probabilities to a relative error of about 1e-13. For reports of a randomizer, cascade
        `randomizer_channel` or `product_channel` with it.

    Raises
    ------
    ParameterError
        If there are more than 8 people, or n! k^n is too large; the message has the size.

    Notes
    -----
    Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
    arXiv:2106.06603v3, Algorithm 1, in the corrected form of `MallowsShuffler`.

    Examples
    --------
    >>> from shuffledp.groups.permutations.mallows import mallows_model
    >>> channel = mallows_channel(mallows_model("kendall", 2, math.log(3.0)), 2)
    >>> channel.inputs[1], channel.to_dense()[1].round(12).tolist()
    ((0, 1), [0.0, 0.75, 0.25, 0.0])
    """
    from shuffledp.leakage.channels.builders import permutation_channel

    values = require_at_least("num_values", num_values, 2)
    order: NDArray[np.int64] = np.arange(model.num_items)
    if reference_order is not None:
        order = require_permutation("reference_order", reference_order, model.num_items)
    moves = math.factorial(model.num_items) * values**model.num_items
    if model.num_items <= MOST_PEOPLE and moves > _MOST_MOVES:
        raise ParameterError(
            f"the channel of {model.num_items} people and {values} values would take n! k^n = "
            f"{moves:.1e} moves, above {_MOST_MOVES:.0e}: use fewer, or target_place_law and "
            "positions_vulnerability"
        )
    table, law = permutation_law(model)
    # Person order[i] gets the report of person order[pi[i]].
    destinations = np.empty_like(table)
    np.put_along_axis(destinations, order[table], np.broadcast_to(order, table.shape), axis=1)
    return permutation_channel(destinations, law, values)


def network_channel(
    walk: RandomWalk, rounds: SupportsIndex, num_values: SupportsIndex
) -> "Channel":
    """Return the channel of network shuffling: all data sets to who holds which reports.

    Parameters
    ----------
    walk : RandomWalk
        How reports move, of a handful of users. Who is absent when is known to the adversary.
    rounds : int
        How often each report is passed on, >= 0.
    num_values : int
        k >= 2, of which each report has one.

    Returns
    -------
    Channel
        k^n data sets to tuples of one histogram for each holder: every holder hands in all reports
        he holds. Probabilities to a relative error of about n rounds (n + 4) 1e-16.

    Raises
    ------
    ParameterError
        If users collude, if the rounds are out of range, or if the channel would be too large; the
        message has the size.

    Notes
    -----
    Source: Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy
    Amplification via Random Walks", SIGMOD 2022, arXiv:2204.03919, protocol A_all.

    Examples
    --------
    >>> from shuffledp.network.graph import Graph
    >>> channel = network_channel(RandomWalk.on(Graph.from_edges([(0, 1)])), 1, 2)
    >>> channel.inputs[1], channel.outputs[int(channel.to_dense()[1].argmax())]
    ((0, 1), ((0, 1), (1, 0)))
    """
    from shuffledp.leakage.channels.builders import walk_channel

    values = require_at_least("num_values", num_values, 2)
    if walk.colluding is not None:
        raise ParameterError(
            "walk has colluding users, who see reports on their way: the channel of what is handed "
            "in does not show that; leave them out, and use crowd_vulnerability_upper"
        )
    laws = position_distribution(walk, np.arange(walk.num_users), rounds)
    return walk_channel(laws, values)


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
    >>> from shuffledp.groups.permutations.mallows import mallows_model
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
    if model.distance == "hamming":
        return 1.0 - model.mean_distance() / model.num_items
    # The last item is swapped or not, and all are like the last.
    return 1.0 / (1.0 + (model.num_items - 1) * math.exp(-model.theta))
