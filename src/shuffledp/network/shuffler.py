"""Network shuffling: users pass reports on to random neighbours, without a trusted shuffler.

Each report starts at its user and walks for some rounds. Its last holder then hands it in, so that
the analyst sees each report beside its last holder, and not beside the user it came from.

The analyst's view has no order of its own: each holder hands in a set. So the reports of one holder
are put into uniformly random order. In the order of their users they would reveal which of two
reports came from the user with the smaller number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.uniform_shuffler import UniformShuffler, require_plain_rows
from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.network.walk import RandomWalk, simulate_positions

#: Hand-ins of holders: all their reports, or one of them and nothing of the others.
PROTOCOLS = ("all", "single")

# Most steps of a simulation: hours. A round takes as long as this number of steps, and its own.
_MOST_STEPS, _STEPS_OF_A_ROUND = 10**12, 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkBatch:
    """All that the analyst receives.

    Parameters
    ----------
    reports : ndarray
        Reports handed in, one a row, by ascending number of their holder. Read-only.
    holders : ndarray of int32, shape (len(reports),)
        Holder who handed in each report. Read-only.
    num_dummies : int
        For protocol "single" the number of users who held no report and sent a dummy, which the
        analyst recognises after decryption. 0 for "all".
    """

    reports: NDArray[Any]
    holders: NDArray[np.int32]
    num_dummies: int

    def __post_init__(self) -> None:
        for name in ("reports", "holders"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkShuffler:
    """Carries reports along a random walk, then hands them in by holder.

    Parameters
    ----------
    walk : RandomWalk
        Edges along which users may pass reports. Report i starts at user i.
    rounds : int
        Number of times that every report is passed on, >= 0; 0 leaves each with its user.
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one of them, drawn uniformly, and drop
        the rest.

    Raises
    ------
    ParameterError
        If ``rounds`` is negative, or the protocol is unknown.

    Notes
    -----
    Source: Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy
    Amplification via Random Walks", SIGMOD 2022, arXiv:2204.03919, section 4.3
    (protocols A_all and A_single). Exact: walks take uniform neighbours and the order within a
    holder is uniform, by bounded integers without rounding. Cost: one random access a report and
    round, and a sort of the reports by holder; memory: the reports twice, and 20 bytes a report.

    Examples
    --------
    >>> from shuffledp.network.graph import Graph
    >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> shuffler = NetworkShuffler(walk=RandomWalk(square), rounds=0)
    >>> batch = shuffler.shuffle(np.array([7, 8, 9, 7]), Entropy.from_operating_system())
    >>> batch.reports.tolist(), batch.holders.tolist(), batch.num_dummies
    ([7, 8, 9, 7], [0, 1, 2, 3], 0)
    """

    walk: RandomWalk
    rounds: int
    protocol: str = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", require_at_least("rounds", self.rounds, 0))
        if self.protocol not in PROTOCOLS:
            raise ParameterError(
                f"protocol = {self.protocol!r} is not one of {', '.join(PROTOCOLS)}"
            )
        most = _MOST_STEPS // (self.walk.num_users + _STEPS_OF_A_ROUND)
        if self.rounds > most:
            raise ParameterError(
                f"rounds = {self.rounds:,} is not in [0, {most:,}]: a simulation for "
                f"{self.walk.num_users:,} users would take hours; take fewer rounds, or auto"
            )

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NetworkBatch:
        """Return the reports handed in after all rounds.

        Parameters
        ----------
        reports : ndarray
            Row i is the report of user i; any number of axes may follow. Rows beyond the users are
            dummies, which begin at uniformly random users, as dummies of Poisson laws do. Not
            changed.
        entropy : Entropy
            Source of the walks and of the order within holders; from the operating system
            unless this is a simulation.

        Returns
        -------
        NetworkBatch
            Every report for protocol "all", for "single" one for each user who held any.

        Raises
        ------
        ParameterError
            If there is not a report for each user of the walk, if there are dummies with "single",
            or rows hold Python objects.
        """
        require_plain_rows(reports)
        num_users, most = self.walk.num_users, len(reports)
        if most < num_users or (most > num_users and self.protocol == "single"):
            raise ParameterError(
                f"reports has {most:,} rows and the graph {num_users:,} users: give one report for "
                "each user, in their order, and dummies, if any, after them, with protocol 'all'"
            )
        extra = draw_below(entropy, most - num_users, num_users).astype(np.int64)
        starts = np.concatenate([np.arange(num_users), extra])
        holders = simulate_positions(self.walk, self.rounds, entropy, starts=starts)
        order = _order_by_holder(holders, entropy)
        sorted_holders = holders[order]
        if self.protocol == "single":
            # The first of a holder's reports is a uniform one of them, for their order is uniform.
            is_first = np.ones(most, dtype=np.bool_)
            np.not_equal(sorted_holders[1:], sorted_holders[:-1], out=is_first[1:])
            order, sorted_holders = order[is_first], sorted_holders[is_first]
        return NetworkBatch(
            reports=np.ascontiguousarray(reports)[order],
            holders=sorted_holders,
            num_dummies=most - len(order),
        )


def _order_by_holder(holders: NDArray[np.int32], entropy: Entropy) -> Integers:
    """Return reports by ascending holder, each holder's in uniformly random order.

    A stable sort keeps the order of the shuffle before. Given all holders, each order of the
    reports inside the holders comes from equally many permutations of all of them, so it is
    uniform, and independent from holder to holder.
    """
    shuffled = UniformShuffler().shuffle(np.arange(len(holders), dtype=np.int64), entropy)
    result: Integers = shuffled[np.argsort(holders[shuffled], kind="stable")]
    return result
