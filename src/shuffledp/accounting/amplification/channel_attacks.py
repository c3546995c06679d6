"""What no analysis of a channel can go below: all other users hold one input.

For every choice of the victim's two inputs and the others' one, the divergence is (Z) of
`channel_gains` with omega the row of the others, exactly. All choices are ranked by its
central-limit value, and the first few are evaluated. The ranking proves nothing and need not: any
data are a bound from below.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.channel_gains import attack_delta as delta_of_rows
from shuffledp.accounting.amplification.channel_rows import ChannelRows, rows_of
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# The victim's input, what it is mistaken for, and the input of all others.
Triple: TypeAlias = tuple[int, int, int]

# Of inversions.
_TOLERANCE = 1e-7

# How many choices of data are evaluated.
_MOST_EVALUATED = 24

# Entries that the ranking may look at; beyond, it leaves out pairs that the blanket finds close.
_MOST_RANKED = 2 * 10**7


def attack_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return a delta that explicit data prove unavoidable.

    Parameters
    ----------
    profile : LocalProfile
        One with a channel.
    num_users : int
        Number n of users, 1 to 1e15.
    epsilon : float
        In [0, inf).

    Returns
    -------
    float
        Rounded down; 0 if nothing is proved.

    Raises
    ------
    ParameterError
        If the profile has no channel matrix.

    Notes
    -----
    Cost: a pass over at most 2e7 entries for the ranking, then 24 evaluations.

    Examples
    --------
    Binary randomized response, one user: (p - e) / (p + 1).

    >>> from shuffledp.accounting.amplification.channel_rows import channel_profile
    >>> binary = channel_profile([[0.75, 0.25], [0.25, 0.75]])
    >>> round(attack_delta(binary, 1, math.log(2.0)), 9)
    0.25
    """
    channel = rows_of(profile)
    if epsilon >= channel.epsilon0:
        # The others hold what never sends the output: the victim stands out, whatever n.
        return channel.delta0 * (1.0 - 1e-9)
    best = 0.0
    for triple in _ranked(channel, num_users, epsilon)[:_MOST_EVALUATED]:
        best = max(best, _delta(channel, triple, num_users, epsilon))
    return best


def attack_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
    """Return an epsilon that explicit data prove unavoidable.

    Parameters
    ----------
    profile, num_users
        As for `attack_delta`.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Rounded down; 0 if nothing is proved.

    Raises
    ------
    ParameterError
        If the profile has no channel matrix.
    OutOfRegimeError
        If delta is below the channel's delta0: then no epsilon is enough.

    Notes
    -----
    Cost: two rankings, 48 evaluations and some inversions of a dozen each.
    """
    channel = rows_of(profile)
    if delta < channel.delta0 * (1.0 - 1e-9):
        raise OutOfRegimeError(
            f"delta = {delta:.6g} is below {channel.delta0:.6g}, the chance that some input sends "
            "what another never does: no epsilon is enough; use a larger delta"
        )
    found = 0.0
    for _ in range(2):  # ranked first for epsilon = 0, then near the answer
        for triple in _ranked(channel, num_users, found)[:_MOST_EVALUATED]:
            found = _raised(channel, triple, num_users, delta, found)
    return found


def _raised(
    channel: ChannelRows, triple: Triple, num_users: int, delta: float, epsilon: float
) -> float:
    """Return a larger epsilon if these data prove it, else ``epsilon``."""
    above, _ = last_above_first_below(
        lambda point: _delta(channel, triple, num_users, point),
        delta,
        epsilon,
        channel.epsilon0,
        relative_tolerance=_TOLERANCE,
    )
    return above


def _delta(channel: ChannelRows, triple: Triple, num_users: int, epsilon: float) -> float:
    """Return a lower bound on the divergence of these data."""
    first, second, others = (channel.rows[number] for number in triple)
    return delta_of_rows(first, second, others, num_users=num_users, epsilon=epsilon)


def _ranked(channel: ChannelRows, num_users: int, epsilon: float) -> list[Triple]:
    """Return choices of data, those of the largest central-limit delta first."""
    pairs = _pairs(channel)
    scores = np.array([_scores(channel.rows, pair, num_users, epsilon) for pair in pairs])
    size = channel.num_inputs
    order = np.argsort(-scores, axis=None, kind="stable")[: 4 * _MOST_EVALUATED]
    return [(*pairs[int(flat) // size], int(flat) % size) for flat in order]


def _pairs(channel: ChannelRows) -> list[tuple[int, int]]:
    """Return the ordered pairs to rank: all, or those that differ most relative to the blanket."""
    size, num_outputs = channel.rows.shape
    affordable = max(_MOST_RANKED // (size * num_outputs), 2 * _MOST_EVALUATED)
    inside = channel.hidden > 0.0
    weighted = channel.rows[:, inside] / np.sqrt(channel.hidden[inside])
    products = weighted @ weighted.T
    squares = np.diag(products)
    distances = squares[:, None] + squares[None, :] - 2.0 * products
    # Whatever stands out counts most.
    outside = channel.rows[:, ~inside]
    for number, row in enumerate(outside):
        distances[number] += 1e6 * np.abs(row - outside).sum(axis=1)
    np.fill_diagonal(distances, -math.inf)
    order = np.argsort(-distances, axis=None, kind="stable")[: size * (size - 1)]
    return [divmod(int(flat), size) for flat in order[:affordable]]


def _scores(
    rows: NDArray[np.float64], pair: tuple[int, int], num_users: int, epsilon: float
) -> NDArray[np.float64]:
    """Return logarithms of about the delta of a pair, for each input that all others may hold."""
    ratio = math.exp(epsilon)
    first, second = rows[pair[0]], rows[pair[1]]
    difference = first - ratio * second
    inside = rows > 0.0
    omega = np.where(inside, rows, 1.0)
    mean = np.where(inside, difference, 0.0).sum(axis=1)
    ratios = np.minimum(np.abs(difference) / omega, 1e100)
    variance = np.where(inside, np.abs(difference) * ratios, 0.0).sum(axis=1) - mean * mean
    standing_out = np.where(inside, 0.0, np.maximum(difference, 0.0)).sum(axis=1)
    deviation = np.sqrt(np.maximum(variance, 1e-300) * num_users)
    bar = num_users * mean / deviation
    # E (bar + N)_+ for a standard normal N, nearly: bar_+ + phi(bar) / (1 + bar^2).
    with np.errstate(divide="ignore", over="ignore"):
        tail = -0.5 * bar * bar - np.log(2.5 * (1.0 + bar * bar))
        crowded = np.logaddexp(np.log(np.maximum(bar, 0.0)), tail) + np.log(deviation / num_users)
        scores: NDArray[np.float64] = np.logaddexp(crowded, np.log(standing_out))
    return scores
