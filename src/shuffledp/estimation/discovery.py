"""Counts above which the support of a bin is no accident, and the shares that reach them.

Nobody has a bin: its support is Bin(n, q). A share f of all users has it, of whom n, drawn without
replacement, answer: then it is a sum of independent coins of mean n (q + f (p - q)) in all, because
the number of holders among the n is such a sum (the roots of its generating function are real;
Vatutin, Mikhailov, "Limit theorems for the number of empty cells in an equiprobable scheme for
group allocation of particles", 1982), and the reports of holders and of others do not change that.
The lower tail of such a sum, below its mean less one, is at most that of equal coins (Hoeffding,
"On the distribution of the number of successes in independent trials", 1956, theorem 4). Where
there are dummies everybody answers, so that the number of holders is known.
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

#: Upper bound on the probability that any text is reported that nobody has.
FALSE_PROBABILITY = 0.05

#: Probability with which a text of the stated share is found.
FOUND_WITH = 0.95

# Prefixes that noise alone leaves in a round but the last, in the mean, for each of the most kept.
_SPURIOUS = 0.125

# Relative width to which a share is found, and one that nothing is found at.
_TOLERANCE, _LEAST_SHARE = 1e-4, 1e-12


class BinLaw(NamedTuple):
    """Law of the support of one bin: p and q of the reports of n users, and its dummies."""

    p: float
    q: float
    num_users: int
    dummies: DummyLaw | None = None

    def at_least(self, count: int, share: float = 0.0) -> float:
        """Return a lower bound on Pr[support >= count] where it is above a half.

        Exact for a bin that nobody has, but for probabilities below 1e-20.
        """
        first, law = self._law(share)
        return float(law[max(count - first, 0) :].sum())

    def least_count(self, tail: float) -> int:
        """Return the least count that a bin which nobody has reaches with at most this chance."""
        first, law = self._law(0.0)
        at_least = np.cumsum(law[::-1])  # of the last outcome, of the last two, ...
        return first + law.size - int(np.searchsorted(at_least, tail, side="right"))

    def least_liars(self, count: int, chance: float) -> int:
        """Return the least number of users whose support makes a bin reach a count.

        With at least this chance, where nobody else has it; more than all if they are too few.
        """

        def suffices(number: int) -> bool:
            others = self._replace(num_users=self.num_users - number)
            return others.at_least(count - number) >= chance

        return bisect_left(range(self.num_users + 1), True, key=suffices)

    def _law(self, share: float) -> tuple[int, NDArray[np.float64]]:
        """Return the first number of reports, and the probabilities from there."""
        if self.dummies is None:
            return binomial_law(self.num_users, self.q + share * (self.p - self.q))
        holders = int(share * self.num_users)
        first, law = binomial_law(holders, self.p)
        more, others = binomial_law(self.num_users - holders, self.q)
        dummies = np.array(self.dummies.table, dtype=np.float64) / 2.0**64
        return first + more, np.convolve(np.convolve(law, others), dummies)


class Round(NamedTuple):
    """One round: its users and bins, the least count that leaves a prefix, and what it left.

    ``num_dropped`` more prefixes had a count that noise does not reach, and were too many.
    """

    num_users: int
    num_bins: int
    least_count: int
    num_left: int = 0
    num_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """How texts were found, or will be.

    Parameters
    ----------
    rounds : tuple of Round
        One after another; of a plan with all bins in use, and nothing left.
    found_share : float
        Share of the users from which on a text is found with probability 0.95; infinite if none
        is. Of a plan, where no more than ``most`` prefixes have more users.
    false_probability : float
        Upper bound on the probability that any text is reported that nobody has.
    left : tuple of str
        Prefixes that are left, in hexadecimal digits, of a search with rounds to come.
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

        The sum of the rounds' chances of failure is an upper bound, however they depend on each
        other. Where prefixes were dropped, their counts are taken for fixed.
        """
        apart = Counter((law, each.least_count) for law, each in rounds)

        def failure(share: float) -> float:
            chances = ((law.at_least(count, share), often) for (law, count), often in apart.items())
            return sum(often * (1.0 - chance) for chance, often in chances)

        share, allowed = float("inf"), 1.0 - FOUND_WITH
        if failure(1.0) <= allowed:
            ends = _LEAST_SHARE, 1.0
            share = last_above_first_below(failure, allowed, *ends, relative_tolerance=_TOLERANCE)[
                1
            ]
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
    """Return the count from which on a prefix is left.

    In the last round so that any of the bins without users reaches it with `FALSE_PROBABILITY` at
    most; before, so that they leave an eighth of the ``most`` prefixes in the mean.
    """
    return law.least_count((FALSE_PROBABILITY if is_last else _SPURIOUS * most) / num_bins)


def forcing(rounds: Sequence[tuple[BinLaw, Round]]) -> tuple[int, ...]:
    """Return for each round the dishonest users with whom a text of theirs is found.

    With probability `FOUND_WITH` at least: rounds are independent of each other, given who lies.
    """
    least, chance = cache(BinLaw.least_liars), FOUND_WITH ** (1.0 / len(rounds))
    return tuple(least(law, each.least_count, chance) for law, each in rounds)


def share_despite(rounds: Sequence[tuple[BinLaw, Round]], num_dishonest: int) -> float:
    """Return the share from which on a text is found despite a number of dishonest users.

    Each of them raises the least count of a round by one at most, or lowers the support of the text
    by one, whichever round they choose; see docs/guides/popular-texts.md.
    """
    harder = (
        (law, each._replace(least_count=each.least_count + num_dishonest)) for law, each in rounds
    )
    return Discovery.of(list(harder)).found_share


def left_by(
    support: NDArray[np.int64], law: BinLaw, most: int, *, is_last: bool
) -> tuple[NDArray[np.int64], Round]:
    """Return the places of the prefixes that a round leaves, most users first, and its facts."""
    least = least_count(law, support.size, most, is_last=is_last)
    order = np.argsort(-support, kind="stable")
    reached = order[support[order] >= least]
    kept, dropped = reached[:most], reached[most:]
    if dropped.size:  # so many would not have been left by noise, and the next count not by most
        least = int(support[dropped[0]]) + 1
    return kept, Round(law.num_users, support.size, least, kept.size, dropped.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundTexts(FrequencyEstimates):
    """Shares of texts that were found; intervals hold for all bins of the last round at once.

    Parameters
    ----------
    texts : tuple of str
        What was found; of a search with rounds to come prefixes.
    num_compared : int
        Number of these bins. That texts were picked for their size is accounted for.
    discovery : Discovery
        How they were found.
    """

    texts: tuple[str, ...]
    num_compared: int
    discovery: Discovery

    @property
    def quantile(self) -> float:
        """How many standard errors a normal interval reaches to either side."""
        return normal_quantile(simultaneous_confidence(self.confidence, self.num_compared))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to know of the search: where there was no room for prefixes that many users have."""
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
