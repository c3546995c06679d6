"""Reports on their way through a network: the walk, the laws of their positions, a simulation."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from threading import Event, local
from typing import SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.network.graph import Graph

#: Laziness is a multiple of 2 to minus this: a float, and the exact rational of the coins.
LAZINESS_BITS = 53

#: Smaller probabilities become 0 on the way, so that none is ever denormal, which is slow.
LEAST_PROBABILITY = 1e-280

# Limits on the laws moved together, which share one read of memory and must fit a cache.
_MOST_COLUMNS = 64
_FEWEST_COLUMNS = 8
_BLOCK_BYTES = 1 << 23

# Laws that are the same to the last digit after this number of rounds are the same ever after.
_CYCLE = 64

# Tells laws in a thread that their caller was interrupted.
_OF_THREAD = local()

# Number of walkers moved with one draw of words: 64 Ki, 512 KiB of coins.
_WALKERS_AT_A_TIME = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class RandomWalk:
    """Walk of reports: each moves independently to a uniformly random neighbour of its holder.

    Parameters
    ----------
    graph : Graph
        Edges along which users can send reports, in every round.
    laziness : float
        Probability that a report stays in a round, by a coin of its own. In [0, 1); it is rounded
        to a multiple of 2^-53, so that the float is exactly the probability of the coin.
    absences : sequence of array-like of bool, each of shape (num_users,)
        ``absences[r][u]``: user u does nothing in round r. All reports held stay together; reports
        sent to the user wait. Empty: nobody is ever absent.

    Raises
    ------
    ParameterError
        If ``laziness`` is out of range, or a mask has a wrong shape or type.

    Notes
    -----
    Source: Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy
    Amplification via Random Walks", SIGMOD 2022, arXiv:2204.03919, Section 4. There, users who
    are away make the walk lazy. Here laziness is a coin of each report, and an absence stops all
    reports of a user: reports that stay together do not move independently, and bounds that
    assume so would be too small. Given all absences, they do move independently.

    A report at a user without neighbours stays.

    Examples
    --------
    >>> triangle = Graph.from_edges(np.array([[0, 1], [1, 2], [0, 2]]))
    >>> walk = RandomWalk(triangle, laziness=0.5)
    >>> laws = point_laws(walk, np.array([0]))
    >>> move_laws(walk, laws, 0, 1), laws[:, 0].tolist()
    (0, [0.5, 0.25, 0.25])
    """

    graph: Graph
    laziness: float = field(default=0.0, kw_only=True)
    absences: Sequence[NDArray[np.bool_]] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        laziness, scale = require_laziness(self.laziness), 2.0**LAZINESS_BITS
        object.__setattr__(self, "laziness", round(laziness * scale) / scale)
        masks = tuple(np.array(mask) for mask in self.absences)  # copies that nobody can change
        for number, mask in enumerate(masks):
            if mask.shape != (self.num_users,) or mask.dtype != np.bool_:
                raise ParameterError(
                    f"absences[{number}] has shape {mask.shape} and dtype {mask.dtype}: give a "
                    f"boolean for each of the {self.num_users} users"
                )
        object.__setattr__(self, "absences", tuple(read_only(mask) for mask in masks))

    @property
    def num_users(self) -> int:
        """Number of users, who are the nodes."""
        return self.graph.num_users

    def require_rounds(self, rounds: SupportsIndex) -> int:
        """Return a number of rounds >= 0 if absences are known for all of them; raise otherwise."""
        number = require_at_least("rounds", rounds, 0)
        if self.absences and number > len(self.absences):
            raise ParameterError(
                f"rounds = {number} is above {len(self.absences)}, for which absences are given: "
                "take fewer rounds, or give more of them"
            )
        return number

    def stay_and_move(self, round_number: int) -> tuple[Floats, Floats]:
        """Return the probabilities that a report stays, and that it goes to a given neighbour.

        By holder, in a round counted from 0. ``stay`` is exact, ``move`` rounded once.
        """
        degrees = self.graph.degrees
        still = degrees == 0
        if self.absences:
            still |= self.absences[round_number]
        stay = np.where(still, 1.0, self.laziness)
        # 1 - laziness is exact, as laziness is a multiple of 2^-53.
        move = np.where(still, 0.0, (1.0 - self.laziness) / np.maximum(degrees, 1))
        return stay, move


def require_laziness(laziness: SupportsFloat) -> float:
    """Return the probability that a report stays in a round if it lies in [0, 1), else raise."""
    value = require_finite("laziness", laziness)
    if not 0.0 <= value < 1.0:
        raise ParameterError(
            f"laziness = {value} is not in [0, 1): it is the probability to stay; try 0.2"
        )
    return value


def point_laws(walk: RandomWalk, starts: Integers) -> Floats:
    """Return the laws before the first round, one a column: shape (num_users, len(starts))."""
    laws = np.zeros((walk.num_users, starts.size))
    laws[starts, np.arange(starts.size)] = 1.0
    return laws


def move_laws(walk: RandomWalk, laws: Floats, first: int, last: int) -> int:
    """Move laws, one a column, from after ``first`` rounds to after ``last`` rounds, in place.

    Returns the number of times that a probability below 1e-280 was set to 0: the probability lost
    thereby, over all places of a column, is less than this number times 1e-280. Otherwise the
    relative error is at most `relative_error`.
    """
    from shuffledp.network import walk_kernels as kernels

    columns = laws.reshape(walk.num_users, -1)  # a view: one law is a single column
    moving = np.empty_like(columns)
    flushed, round_number, kept, then = 0, first, columns[:0], 0
    ended = getattr(_OF_THREAD, "ended", None)
    while round_number < last:
        if ended is not None and ended.is_set():
            raise KeyboardInterrupt
        if round_number == first or walk.absences:
            stay, move = walk.stay_and_move(round_number)
        np.multiply(columns, move[:, None], out=moving)
        fixed = walk.graph.starts, walk.graph.neighbours, stay, columns, moving
        step = partial(kernels.step_laws, *fixed)
        flushed += sum(over_blocks(walk.num_users, step))
        round_number += 1
        if (round_number - first) % _CYCLE == 0 and not walk.absences:
            if np.array_equal(kept, columns):  # as laws do once they have mixed
                cycles = (last - round_number) // _CYCLE
                flushed += cycles * (flushed - then)
                round_number += cycles * _CYCLE
            kept, then = columns.copy(), flushed
    return flushed


def relative_error(walk: RandomWalk, rounds: int) -> float:
    """Return the relative round-off error of a probability after some rounds.

    An e such that both computed / exact and exact / computed are in [1 - e, 1 + e] at each place,
    except for probabilities set to 0. All terms are non-negative, so relative errors do not grow by
    cancellation. In a round a term is multiplied by a number that was rounded once, is rounded
    itself, and goes through at most max degree additions, in whatever order: at most max degree + 2
    factors within [1 - u, 1 + u], u = 2^-53. (No product is denormal: each
    is at least 1e-280 * 2^-53 / 2^31.) With k factors in all and k u <= 1/4, their product is in
    [1 - k u, e^(k u)], which is in [1 - 2 k u, 1 + 2 k u] together with its inverse.
    """
    greatest = int(walk.graph.degrees.max())
    error = rounds * (greatest + 3) * 2.0**-52
    if error > 0.5:
        raise ParameterError(
            f"rounds = {rounds} with degrees up to {greatest} leave no correct digit: "
            "take fewer rounds"
        )
    return error * (1.0 + 2.0**-50)


def columns_at_a_time(num_users: int) -> int:
    """Return the number of laws to move together within the cache: 8 to 64."""
    fitting = _BLOCK_BYTES // (8 * num_users)
    return min(_MOST_COLUMNS, max(_FEWEST_COLUMNS, 1 << max(fitting, 1).bit_length() - 1))


def simulate_positions(
    walk: RandomWalk, rounds: SupportsIndex, entropy: Entropy, *, starts: Integers | None = None
) -> NDArray[np.int32]:
    """Simulate the walk of reports; return their holders, by default from one report at each user.

    Positions are independent, and exactly of the intended law, given uniform words: among d
    neighbours each has probability exactly 1/d, and the coin of a lazy walk exactly
    ``walk.laziness``: the upper 53 bits of a word of its own are compared with laziness * 2^53, a
    whole number. Source: Lemire, "Fast random integer generation in an interval", ACM Transactions
    on Modeling and Computer Simulation 29(1), 2019, arXiv:1805.10941v4, Algorithm 5. Cost: 8 to
    10 ns a report and round.
    """
    from shuffledp.network import walk_kernels as kernels

    number = walk.require_rounds(rounds)
    holders = (np.arange(walk.num_users) if starts is None else starts).astype(np.int32)
    threshold = np.uint64(walk.laziness * 2.0**LAZINESS_BITS)  # exact
    rows, nobody = (walk.graph.starts, walk.graph.neighbours), read_only(np.zeros(0, np.bool_))
    for round_number in range(number):
        away = walk.absences[round_number] if walk.absences else nobody
        for first in range(0, holders.size, _WALKERS_AT_A_TIME):
            group = holders[first : first + _WALKERS_AT_A_TIME]
            coins, done = entropy.words(group.size if threshold else 0), 0
            while done < group.size:
                half_words = entropy.words((group.size - done + 1) // 2).view(np.uint32)
                done = kernels.step_walkers(*rows, away, threshold, coins, half_words, group, done)
    return holders


# Compiled loops run outside the interpreter's lock. More threads would share the cache that the
# laws of a block are meant to fill.
_NUM_THREADS = 2

# Number of rows that are worth another thread.
_ROWS_AT_A_TIME = 1 << 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def threads(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
    """Yield the result of the function for each item, on two threads if there are several."""
    if len(items) == 1:
        yield function(items[0])
        return
    ended = Event()
    told = _OF_THREAD, "ended", ended
    with ThreadPoolExecutor(_NUM_THREADS, initializer=setattr, initargs=told) as pool:
        try:
            yield from pool.map(function, items)
        finally:
            ended.set()


def over_blocks(size: int, work: Callable[[int, int], _Result]) -> Iterator[_Result]:
    """Yield work(first, last) of blocks of rows.

    The blocks depend on ``size`` alone, so that sums over blocks do not depend on the number of
    threads.
    """
    ends = [*range(_ROWS_AT_A_TIME, size, _ROWS_AT_A_TIME), size]
    return threads(lambda block: work(*block), [*pairwise([0, *ends])])
