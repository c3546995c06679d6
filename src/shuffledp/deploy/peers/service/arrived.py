"""What arrived of an exchange, and whether what did not can only have been lost with its holder."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.deploy.peers.protocol.analyzer import Collected
from shuffledp.deploy.peers.protocol.slots import loss_probability
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.network.graph import Graph

# Losses that are less likely than this had another cause than the holders who handed in nothing.
_UNLIKELY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What came to the analyzer, and what the holders say of the delivery to them.

    Parameters
    ----------
    num_reports : int
        Reports that opened and are valid, each counted once.
    handed_in : ndarray of int64
        Nodes whose hand-ins opened, rising.
    short_since : tuple of int
        Of each holder who missed something that was sent: the round in which that was noticed.
    num_contradicting : int
        Holders to whom the relay showed another record of absences than to the analyzer.
    """

    num_reports: int
    handed_in: NDArray[np.int64]
    short_since: tuple[int, ...] = ()
    num_contradicting: int = 0

    @classmethod
    def of(cls, collected: Collected, transcript: bytes, *, num_reports: int) -> "Arrived":
        """Return what arrived.

        Parameters
        ----------
        collected : Collected
            What was handed in.
        transcript : bytes
            Of the relay's record; see `final_transcript`.
        num_reports : int
            How many of the reports are valid.
        """
        said = collected.confirmations.values()
        short = tuple(each.short_since for each in said if each.short_since)
        return cls(
            num_reports=num_reports,
            handed_in=np.array(sorted(collected.confirmations), dtype=np.int64),
            short_since=short,
            num_contradicting=sum(
                not each.short_since and each.transcript != transcript for each in said
            ),
        )

    @classmethod
    def everything(cls, nodes: Iterable[int]) -> "Arrived":
        """Return what arrives if all that these nodes hold does."""
        found = np.array(sorted(nodes), dtype=np.int64)
        return cls(num_reports=found.size, handed_in=found)

    @property
    def num_confirmed(self) -> int:
        """How many holders confirm that all came to them, and the relay's record."""
        return self.handed_in.size - len(self.short_since) - self.num_contradicting

    def doubts(
        self,
        terms: Terms,
        graph: Graph,
        *,
        registered: NDArray[np.bool_],
        absences: NDArray[np.bool_],
    ) -> tuple[str, ...]:
        """Return why losses may depend on whose reports they are; nothing if they cannot.

        Parameters
        ----------
        terms, graph
            Of the collection.
        registered : ndarray of bool, shape (num_users,)
            Who took part.
        absences : ndarray of bool, shape (rounds, num_users)
            The relay's record.

        Notes
        -----
        Source: docs/results/delivery.md. Cost: O(rounds (n + m)).
        """
        found = []
        if self.short_since:
            found.append(
                f"{len(self.short_since):,} users report that mail to them or to users before "
                f"them was missing, since round {min(self.short_since)}"
            )
        if self.num_contradicting:
            found.append(
                f"the relay showed {self.num_contradicting:,} users another record of absences "
                "than the analyzer"
            )
        missing = int(np.count_nonzero(registered)) - self.num_reports
        if missing < 0:
            found.append(f"there are {-missing:,} reports more than users, made up by somebody")
        if terms.protocol == "all" and missing > 0:
            silent = registered.copy()
            silent[self.handed_in] = False
            chance = loss_probability(
                graph,
                rounds=terms.rounds,
                missing=missing,
                silent=silent,
                laziness=terms.laziness,
                absences=absences,
                registered=registered,
            )
            if chance < _UNLIKELY:
                found.append(
                    f"{missing:,} reports are missing, more than the "
                    f"{np.count_nonzero(silent):,} users held who handed in nothing"
                )
        return tuple(found)
