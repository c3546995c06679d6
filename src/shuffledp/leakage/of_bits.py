"""Two mechanisms on bits that differential privacy does not tell apart, and what each leaks.

`last_bit_channel` and `masked_bit_channel` are M and M' in the introduction of Jurado, Gonze,
Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative Information Flow",
CSF 2023, hal-04349295v1: equal for differential privacy and for whoever knows all others, and as
different as can be for whoever knows nobody. `view_target` looks at any channel of bits so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.leakage.channels.channel import Channel

# Rows of the two example channels at most: 2^16.
_MOST_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """What a release of all bits together says about one person's bit.

    Parameters
    ----------
    odds : Fraction or float
        e^epsilon: by how much a change of this person's bit changes the probability of an output at
        most, as a factor; inf if an output becomes possible.
    uninformed : Fraction or float
        How often the bit is guessed right by who knows nobody's; bits are uniform, independent.
    strong : Fraction or float
        The same for who knows all others' bits, for the worst such bits.
    """

    odds: Fraction | float
    uninformed: Fraction | float
    strong: Fraction | float

    @property
    def epsilon(self) -> float:
        """The privacy loss, to nearest."""
        return math.log(self.odds)


def view_target(
    channel: "Channel", target: SupportsIndex, *, num_users: SupportsIndex
) -> TargetView:
    """Return what a channel of data sets of bits says about one person's.

    Parameters
    ----------
    channel : Channel
        2^n data sets, the first person's bit most significant, to any outputs.
    target : int
        The person, in [0, n - 1].
    num_users : int
        n >= 1.

    Returns
    -------
    TargetView
        In fractions where the channel is, else to nearest.

    Raises
    ------
    ParameterError
        If the channel has not 2^n rows, or the person is out of range.

    Notes
    -----
    Cost: O(2^n) times the number of outputs.

    Examples
    --------
    >>> view_target(last_bit_channel(3, Fraction(3, 4)), 2, num_users=3)
    TargetView(odds=Fraction(3, 1), uninformed=Fraction(3, 4), strong=Fraction(3, 4))
    >>> view_target(masked_bit_channel(3, Fraction(3, 4)), 2, num_users=3)
    TargetView(odds=Fraction(3, 1), uninformed=Fraction(1, 2), strong=Fraction(3, 4))
    """
    users = require_at_least("num_users", num_users, 1)
    person = require_at_least("target", target, 0)
    if person >= users:
        raise ParameterError(f"target = {person} is not in [0, {users - 1}]: count people from 0")
    if users > 60 or channel.num_inputs != 2**users:
        raise ParameterError(
            f"channel has {channel.num_inputs:,} rows for {users} people: give one for each data "
            "set of bits, 2^num_users of them"
        )
    table = channel.matrix if channel.is_exact else channel.to_dense()
    shaped = table.reshape(2**person, 2, -1, channel.num_outputs)
    # Axes: the person's bit, what all others have, the output.
    zero, one = (shaped[:, bit].reshape(-1, channel.num_outputs) for bit in (0, 1))
    right = np.maximum(zero, one).sum(axis=1)
    average = np.maximum(zero.sum(axis=0), one.sum(axis=0)).sum()
    return TargetView(
        odds=_largest_ratio(zero, one),
        uninformed=average / (2 * len(zero)),
        strong=right.max() / 2,
    )


def _largest_ratio(zero: NDArray[Any], one: NDArray[Any]) -> Fraction | float:
    """Return the largest ratio of two probabilities of one output; inf if one of them is 0."""
    possible = np.maximum(zero, one) > 0
    large, small = np.maximum(zero, one)[possible], np.minimum(zero, one)[possible]
    if (small == 0).any():
        return math.inf
    ratio: Fraction | float = (large / small).max()
    return ratio


def last_bit_channel(num_users: SupportsIndex, truth: Fraction | float) -> "Channel":
    """Return M: the last person's bit, true with a given chance.

    Parameters
    ----------
    num_users : int
        n, 1 to 16.
    truth : Fraction or float
        e^epsilon / (1 + e^epsilon), in [1/2, 1]. A fraction gives an exact channel.

    Returns
    -------
    Channel
        2^n data sets to 0 and 1.

    Raises
    ------
    ParameterError, OutOfRegimeError
        If an argument is out of range.

    Notes
    -----
    Source: Jurado et al. 2023, hal-04349295v1, Section I.

    Examples
    --------
    >>> last_bit_channel(2, 0.75).to_dense().tolist()
    [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25], [0.25, 0.75]]
    """
    return _noisy_bit(num_users, truth, lambda bits: bits[:, -1])


def masked_bit_channel(num_users: SupportsIndex, truth: Fraction | float) -> "Channel":
    """Return M': like M if the other bits have an even sum, else with the chances swapped.

    Parameters
    ----------
    num_users, truth
        As for `last_bit_channel`.

    Returns
    -------
    Channel
        2^n data sets to 0 and 1: the parity of *all* bits, true with that chance.

    Raises
    ------
    ParameterError, OutOfRegimeError
        If an argument is out of range.

    Notes
    -----
    Source: Jurado et al. 2023, hal-04349295v1, Section I. M' is equally private for everybody; M
    says nothing about anybody but the last person.

    Examples
    --------
    >>> masked_bit_channel(2, 0.75).to_dense().tolist()
    [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75], [0.75, 0.25]]
    """
    return _noisy_bit(num_users, truth, lambda bits: bits.sum(axis=1) % 2)


def _noisy_bit(
    num_users: SupportsIndex,
    truth: Fraction | float,
    bit_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> "Channel":
    """Return the channel of a bit of the data set through binary randomized response."""
    from shuffledp.leakage.channels.channel import Channel
    from shuffledp.leakage.channels.responses import response_channel

    users = require_at_least("num_users", num_users, 1)
    if users > _MOST_BITS:
        raise ParameterError(
            f"num_users = {users} would need 2^{users} rows: give at most {_MOST_BITS}"
        )
    response = response_channel(2, truth)
    bits = (np.arange(2**users)[:, None] >> np.arange(users - 1, -1, -1)) & 1
    return Channel.from_matrix(
        response.matrix[bit_of(bits)],
        inputs=[tuple(row) for row in bits.tolist()],
        outputs=(0, 1),
    )
