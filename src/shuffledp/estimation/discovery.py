"""Counts above which noise does not explain the support of a bin, and the shares that reach them.

A bin without users has the support Bin(n, q). If a share f of all users has it, of whom n, drawn
without replacement, answer, its support is a sum of independent coins of mean n (q + f (p - q)):
the number of holders among the n is such a sum (the roots of its generating function are real;
Vatutin, Mikhailov, "Limit theorems for the number of empty cells in an equiprobable scheme for
group allocation of particles", 1982), and the reports of holders and of others do not change that.
The lower tail of such a sum, below its mean less one, is at most the tail of equal coins
(Hoeffding, "On the distribution of the number of successes in independent trials", 1956,
theorem 4). With dummies everybody answers, so that the number of holders is known.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.dummies import DummyLaw
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import (
    binomial_law,
    normal_quantile,
    simultaneous_confidence,
)

#: Upper bound on the probability that any text without users is reported.
FALSE_PROBABILITY = 0.05

#: Probability of finding a text of the stated share.
FOUND_WITH = 0.95

# Mean number of prefixes due to noise alone, except in the last round, for each of the most kept.
_SPURIOUS = 0.125

# Relative tolerance of a share, and a share too small to be found.
_TOLERANCE, _LEAST_SHARE = 1e-4, 1e-12


class BinLaw(NamedTuple):
    """Law of the support of one bin: p and q of the reports of n users, and its dummies."""

    p: float
    q: float
    num_users: int
    dummies: DummyLaw | None = None

    def at_least(self, count: int, share: float = 0.0) -> float:
        """Return a lower bound on Pr[support >= count] where it is above a half.

        Exact for a bin without users, except for probabilities below 1e-20.
        """
        first, law = self._law(share)
        return float(law[max(count - first, 0) :].sum())

    def least_count(self, tail: float) -> int:
        """Return the least count that a bin without users reaches with at most this probability."""
        first, law = self._law(0.0)
        at_least = np.cumsum(law[::-1])  # of the last outcome, of the last two, ...
        return first + law.size - int(np.searchsorted(at_least, tail, side="right"))

    def least_liars(self, count: int, chance: float) -> int:
        """Return the least number of users whose support makes a bin reach a count.

        With at least this probability, if no other user has it; above n if all are too few.
        """

        def suffices(number: int) -> bool:
            others = self._replace(num_users=self.num_users - number)
            return others.at_least(count - number) >= chance

        return bisect_left(range(self.num_users + 1), True, key=suffices)

    def _law(self, share: float) -> tuple[int, NDArray[np.float64]]:
        """Return the first number of reports, and the probabilities from there on."""
        if self.dummies is None:
            return binomial_law(self.num_users, self.q + share * (self.p - self.q))
        holders = int(share * self.num_users)
        first, law = binomial_law(holders, self.p)
        more, others = binomial_law(self.num_users - holders, self.q)
        dummies = np.array(self.dummies.table, dtype=np.float64) / 2.0**64
        return first + more, np.convolve(np.convolve(law, others), dummies)


class Round(NamedTuple):
    """One round: its users and bins, the least count of a kept prefix, and the number kept.

    ``num_dropped`` more prefixes had a count above noise, but there was no room for them.
    """

    num_users: int
    num_bins: int
    least_count: int
    num_left: int = 0
    num_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Facts of a search for texts, done or planned.

    Parameters
    ----------
    rounds : tuple of Round
        In order; in a plan with all bins in use, and no prefixes kept.
    found_share : float
        Share of the users from which on a text is found with probability 0.95; infinite if there
        is none. In a plan, for rounds of equal size with room for every prefix above the noise:
        prefixes of fewer users can crowd it out.
    false_probability : float
        Upper bound on the probability that any text without users is reported.
    left : tuple of str
        Prefixes that are kept, in hexadecimal digits, in a search with rounds to come.
    """

    rounds: tuple[Round, ...]
    found_share: float
    false_probability: float = FALSE_PROBABILITY
    left: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rounds: Sequence[tuple["BinLaw", Round]], left: tuple[str, ...] = ()
    ) -> "Discovery":
        """Return the facts of rounds with these laws of a bin.

        The sum of the rounds' failure probabilities is an upper bound, whatever their dependence.
        If prefixes were dropped, their counts are treated as fixed.
        """
        apart = Counter((law, each.least_count) for law, each in rounds)

        def failure(share: float) -> float:
            chances = ((law.at_least(count, share), often) for (law, count), often in apart.items())
            return sum(often * (1.0 - chance) for chance, often in chances)

        share, allowed = float("inf"), 1.0 - FOUND_WITH
        if failure(1.0) <= allowed:
            _, share = last_above_first_below(
                failure, allowed, _LEAST_SHARE, 1.0, relative_tolerance=_TOLERANCE
            )
        return cls(rounds=tuple(each for _, each in rounds), found_share=share, left=left)

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name, rounds as objects."""
        return {
            "found_share": self.found_share,
            "false_probability": self.false_probability,
            "rounds": [each._asdict() for each in self.rounds],
            **({"left": list(self.left)} if self.left else {}),
        }


def least_count(law: BinLaw, num_bins: int, most: int, *, is_last: bool) -> int:
    """Return the least count of a kept prefix.

    In the last round any bins without users reach it with total probability at most
    `FALSE_PROBABILITY`; before, noise keeps an eighth of the ``most`` prefixes on average.
    """
    return law.least_count((FALSE_PROBABILITY if is_last else _SPURIOUS * most) / num_bins)


def forcing(rounds: Sequence[tuple[BinLaw, Round]]) -> tuple[int, ...]:
    """Return for each round the number of dishonest users who can have a text of theirs found.

    With probability at least `FOUND_WITH`: rounds are independent given the set of liars.
    """
    least, chance = cache(BinLaw.least_liars), FOUND_WITH ** (1.0 / len(rounds))
    return tuple(least(law, each.least_count, chance) for law, each in rounds)


def share_despite(rounds: Sequence[tuple[BinLaw, Round]], num_dishonest: int) -> float:
    """Return the share from which on a text is found despite a number of dishonest users.

    Each of them raises the least count of a round by at most one, or lowers the support of the text
    by one, in any round that they choose; see docs/guides/popular-texts.md.
    """
    harder = (
        (law, each._replace(least_count=each.least_count + num_dishonest)) for law, each in rounds
    )
    return Discovery.of(list(harder)).found_share


def left_by(
    support: NDArray[np.int64], law: BinLaw, most: int, *, is_last: bool
) -> tuple[NDArray[np.int64], Round]:
    """Return the places of the prefixes that a round keeps, most users first, and its facts."""
    least = least_count(law, support.size, most, is_last=is_last)
    order = np.argsort(-support, kind="stable")
    reached = order[support[order] >= least]
    kept, dropped = reached[:most], reached[most:]
    if dropped.size:  # noise rarely keeps this many: raise the least count
        least = int(support[dropped[0]]) + 1
    return kept, Round(law.num_users, support.size, least, kept.size, dropped.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundTexts(FrequencyEstimates):
    """Shares of texts that were found; intervals hold for all bins of the last round at once.

    Parameters
    ----------
    texts : tuple of str
        Texts that were found; prefixes in a search with rounds to come.
    num_compared : int
        Number of these bins. The intervals account for the selection of texts by size.
    discovery : Discovery
        Facts of the search.
    """

    texts: tuple[str, ...]
    num_compared: int
    discovery: Discovery

    @property
    def quantile(self) -> float:
        """Half width of a normal interval in standard errors."""
        return normal_quantile(simultaneous_confidence(self.confidence, self.num_compared))

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about the search: prefixes of many users for which there was no room."""
        dropped = sum(each.num_dropped for each in self.discovery.rounds)
        if not dropped:
            return ()
        return (
            f"{dropped:,} prefixes, in all rounds together, had more reports than noise explains "
            "and were dropped for others that had more still: a larger most keeps them.",
        )

    @property
    def findings(self) -> dict[str, object]:
        """Further particulars of a result in JSON."""
        return {"discovery": self.discovery.to_json_dict()}
