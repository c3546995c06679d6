"""The local loss of a channel matrix: which output tells which two inputs apart best.

Channel matrices in doubles: the rows, their blanket, and what no crowd can hide.

A channel is a local randomizer written out: rows are inputs, columns outputs, entries the
probabilities Pr[output | input]. Entries of `ChannelRows` are within eight roundings of the exact
law, relatively: an exact entry to a double, the sum of its row and the quotient are four, and rows
that were divided by their sums before have as many again. Minima are no worse. The laws of
`channel_gains` allow for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# A logarithm of a quotient of two entries, each within 8 roundings: 17, and its own.
_LOG_ERROR = 32.0 * 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRatio:
    """The largest ratio of two entries of a column.

    Parameters
    ----------
    likely, unlikely, output : int
        Numbers of the two inputs and of the output, from 0.
    ratio : float
        Pr[output | likely] / Pr[output | unlikely], to the nearest; may be ``inf``.
    finite_log_ratio : float
        Logarithm of the largest *finite* ratio of any two entries of a column, in nats, rounded
        up; 0 where there is none above 1.
    """

    likely: int
    unlikely: int
    output: int
    ratio: float
    finite_log_ratio: float


def worst_ratio(rows: Floats) -> WorstRatio:
    """Find the output with the largest ratio of probabilities between two inputs."""
    highest, lowest = rows.max(axis=0), rows.min(axis=0)
    positive = np.where(rows > 0.0, rows, np.inf).min(axis=0)
    occurs = highest > 0.0
    ratios = np.ones_like(highest)
    np.divide(highest, positive, out=ratios, where=occurs)
    largest = float(ratios.max())
    revealing = np.where(lowest == 0.0, highest, 0.0)
    output = int(np.argmax(revealing if revealing.max() > 0.0 else ratios))
    column = rows[:, output]
    return WorstRatio(
        likely=int(np.argmax(column)),
        unlikely=int(np.argmin(column)),
        output=output,
        ratio=math.inf if lowest[output] == 0.0 else float(ratios[output]),
        finite_log_ratio=0.0 if largest == 1.0 else math.log(largest) * (1.0 + 1e-15) + _LOG_ERROR,
    )


UNIT_ROUND_OFF = 2.0**-53

MOST_INPUTS = 200
MOST_CELLS = 2 * 10**7

# How far the sum of a row of rounded entries may be from 1.
SUM_TOLERANCE = 1e-9

# Below it the spacing of doubles is no longer relative; no randomizer draws an event so rare.
_SMALLEST_ENTRY = 1e-280

# Log-ratios of entries that differ by less than their round-off.
_ROUNDED_AWAY = 1e-14

# Where an input exceeds the rarest by this factor, the crowd is taken not to hide it at all:
# any blanket below the rows is legal, and products of ratios stay within doubles.
_LARGEST_RATIO = 1e12


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChannelRows:
    """The distinct rows of a channel, and their blanket.

    Parameters
    ----------
    rows : (k, m) array
        Probabilities of the outputs that occur, read-only. Equal rows stand once.
    hidden : (m,) array
        The blanket omega: the smallest entry of each column, or 0 where that is 0 or the ratio to
        it above 1e12.
    epsilon0 : float
        Largest *finite* log-ratio of two entries of a column, in nats, rounded up.
    delta0 : float
        Largest probability, over pairs of inputs, that the one sends what the other never does;
        rounded up. The channel is (epsilon0, delta0)-LDP, and no smaller delta0 holds at any
        finite epsilon0.
    unresolved : float
        An epsilon0 for pairs of inputs whose rows differ, but are the same doubles; 0 if there are
        none. Their total variation is below it, too.
    """

    rows: Floats
    hidden: Floats
    epsilon0: float
    delta0: float
    unresolved: float

    @property
    def num_inputs(self) -> int:
        """Number of distinct rows."""
        return int(self.rows.shape[0])


def channel_rows(matrix: object) -> ChannelRows:
    """Check a channel matrix and prepare it for accounting."""
    entries = _checked(matrix)
    sums = [math.fsum(row) for row in entries]
    for number, total in enumerate(sums):
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            raise ParameterError(
                f"row {number + 1} of the channel matrix sums to {total:.12g}, which is not 1 to "
                "within 1e-9: give the probability of every output"
            )
    normalised = entries / np.array(sums)[:, None]
    occurring = np.ascontiguousarray(normalised[:, normalised.max(axis=0) > 0.0])
    first_of = {row.tobytes(): number for number, row in reversed(list(enumerate(occurring)))}
    rows = np.ascontiguousarray(occurring[sorted(first_of.values())])
    lowest, highest = rows.min(axis=0), rows.max(axis=0)
    hidden = np.where(lowest * _LARGEST_RATIO >= highest, lowest, 0.0)
    for array in (rows, hidden):
        array.setflags(write=False)
    given: Any = matrix
    raw = isinstance(matrix, np.ndarray)
    num_different = len({row.tobytes() if raw else tuple(row) for row in given})
    unresolved = _ROUNDED_AWAY if num_different > rows.shape[0] else 0.0
    # Over ordered pairs, the mass of outputs that the second never sends.
    columns = rows[:, lowest == 0.0]
    shares = columns @ (columns == 0.0).T.astype(np.float64)
    return ChannelRows(
        rows=rows,
        hidden=hidden,
        epsilon0=max(worst_ratio(rows).finite_log_ratio, unresolved),
        unresolved=unresolved,
        delta0=min(float(shares.max()) * (1.0 + (columns.shape[1] + 16) * UNIT_ROUND_OFF), 1.0),
    )


def channel_profile(matrix: object) -> LocalProfile:
    """Return the profile of a randomizer given as a matrix.

    ``epsilon0`` and ``delta0`` are those of `ChannelRows`, rounded up: where no entry is 0, the
    least epsilon0 and no delta0.
    """
    channel = channel_rows(matrix)
    if channel.delta0 >= 1.0:
        raise OutOfRegimeError(
            "two inputs have no output in common, so every report tells them apart and no number "
            "of users hides it: let every input send some output of every other"
        )
    return LocalProfile(
        epsilon0=channel.epsilon0,
        delta0=channel.delta0,
        family=RandomizerFamily.OTHER,
        domain_size=channel.num_inputs if channel.num_inputs > 1 else None,
        channel=lambda: matrix,  # equal only to itself, so that it can be a cache's key
    )


def rows_of(profile: LocalProfile) -> ChannelRows:
    """Return the prepared channel of a profile that has one; the last few are remembered."""
    if profile.channel is None:
        raise ParameterError("the profile has no channel matrix")
    try:
        return _remembered(profile.channel)
    except TypeError:  # what cannot be hashed is prepared each time
        return channel_rows(profile.channel())


@lru_cache(maxsize=4)
def _remembered(channel: Callable[[], object]) -> ChannelRows:
    return channel_rows(channel())


def _checked(matrix: object) -> Floats:
    """Return the matrix as doubles, refused unless it is one of non-negative entries."""
    try:
        entries = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "a channel matrix needs rows of one length, of numbers: one column for each output"
        ) from None
    shape = entries.shape
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        raise ParameterError(
            f"a channel matrix of shape {shape} is none: give a row for each of two or more inputs "
            "and a column for each output"
        )
    if shape[0] > MOST_INPUTS or shape[0] * shape[1] > MOST_CELLS:
        raise ParameterError(
            f"a channel matrix of {shape[0]} by {shape[1]} is too large: at most {MOST_INPUTS} "
            f"inputs and {MOST_CELLS:.0e} entries; leave out inputs that others stand for"
        )
    usable = (entries == 0.0) | ((entries >= _SMALLEST_ENTRY) & (entries <= 1.0 + SUM_TOLERANCE))
    if not usable.all():  # NaN is not usable either
        row, column = (int(index) for index in np.argwhere(~usable)[0])
        raise ParameterError(
            f"entry {entries[row, column]} in row {row + 1}, column {column + 1} of the channel "
            f"matrix is neither 0 nor in [{_SMALLEST_ENTRY}, 1]: give probabilities"
        )
    return entries
