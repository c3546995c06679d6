"""Who is guessed, who else takes part, and what is known of them, checked.

*k-ary randomized response in exact fractions, and how often it is guessed right unshuffled.*
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.builders import Truth, checked_truth
from shuffledp.leakage.channels.channel import as_channel
from shuffledp.leakage.informed.histogram_law import Coins, Kind
from shuffledp.leakage.priors import checked_prior

#: Number of users up to which everything here is tested.
MOST_USERS = 10**10


class Response(NamedTuple):
    """k-ary randomized response: ``num_values`` k, ``truth`` p in [1/k, 1]."""

    num_values: int
    truth: Fraction

    @classmethod
    def of(cls, truth: Truth, num_values: int) -> "Response":
        """Return it for checked numbers; a double is taken as exact, but the nearest to 1/k.

        Examples
        --------
        >>> Response.of(0.5, 3).answer, Response.of(1 / 3, 3).kept
        (Fraction(1, 4), Fraction(0, 1))
        """
        number = Fraction(checked_truth(truth, num_values))
        return cls(num_values, max(number, Fraction(1, num_values)))

    @property
    def answer(self) -> Fraction:
        """Probability r = (1 - p) / (k - 1) of any one wrong report."""
        return (1 - self.truth) / (self.num_values - 1)

    @property
    def kept(self) -> Fraction:
        """Probability p - r of a report in earnest, all others being uniform."""
        return self.truth - self.answer

    @property
    def noise(self) -> Fraction:
        """Probability k r of a uniform report."""
        return 1 - self.kept

    def matrix(self) -> NDArray[np.float64]:
        """Return the channel matrix, shape (k, k)."""
        matrix = np.full((self.num_values, self.num_values), float(self.answer))
        np.fill_diagonal(matrix, float(self.truth))
        return matrix

    def report_law(self, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the law of the report of a value with law ``prior``."""
        law: NDArray[np.float64] = float(self.answer) + float(self.kept) * prior
        return law

    def unshuffled(self, prior: NDArray[np.float64]) -> float:
        """Return how often the value is guessed right from its own report, in O(k)."""
        best = int(prior.argmax())
        others = np.full(prior.size, prior[best])
        others[best] = np.delete(prior, best).max()
        chances = np.maximum(float(self.truth) * prior, float(self.answer) * others)
        return min(float(chances.sum()), 1.0)


# Reports whose probabilities are proportional to this, relatively, are merged.
_SAME = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One target among others of known and of unknown values.

    Parameters
    ----------
    response : Response or None
        The randomizer if it is k-ary randomized response.
    matrix : (k, m) array of float64
        The randomizer otherwise; rows sum to one. Empty for randomized response: see `rows`.
    prior : (k,) array of float64
        Of the target.
    counts : tuple of int
        How many of the others are known to have each value.
    num_unknown : int
        Further users.
    unknown_prior : (k,) array of float64
        Of each of them.
    uniform_target, uniform_unknown : bool
        Whether the two laws are uniform.
    slack : float
        What may be missing from an upper end because reports that tell almost the same were merged.
    """

    response: Response | None
    matrix: NDArray[np.float64]
    prior: NDArray[np.float64]
    counts: tuple[int, ...]
    num_unknown: int
    unknown_prior: NDArray[np.float64]
    uniform_target: bool
    uniform_unknown: bool
    slack: float = 0.0

    @property
    def num_others(self) -> int:
        """Number of users but the target."""
        return sum(self.counts) + self.num_unknown

    @property
    def num_values(self) -> int:
        """Number of values."""
        return len(self.counts)

    @property
    def num_outcomes(self) -> int:
        """Number of different reports."""
        return self.num_values if self.response is not None else self.matrix.shape[1]

    @property
    def num_kinds(self) -> int:
        """Number of groups of others with different knowledge about them."""
        return sum(count > 0 for count in self.counts) + (self.num_unknown > 0)

    @property
    def guess_before(self) -> float:
        """How often the best guess is right before anything is seen."""
        return float(self.prior.max())

    @property
    def unshuffled(self) -> float:
        """How often the best guess is right once the target's own report is seen."""
        if self.response is not None:
            return self.response.unshuffled(self.prior)
        return min(float((self.prior[:, None] * self.rows()).max(axis=0).sum()), 1.0)

    def rows(self) -> NDArray[np.float64]:
        """Return the channel matrix; k^2 numbers for randomized response."""
        return self.matrix if self.response is None else self.response.matrix()

    def report_chances(self, outcomes: NDArray[np.intp]) -> list[Fraction]:
        """Return, for each value, the probability that its report is one of ``outcomes``."""
        if self.response is not None:
            wrong = outcomes.size * self.response.answer
            inside = set(outcomes.tolist())
            return [wrong + (self.response.kept if x in inside else 0) for x in self.values()]
        chances = self.rows()[:, outcomes].sum(axis=1)
        return [min(Fraction(float(chance)), Fraction(1)) for chance in chances]

    def values(self) -> range:
        """Return 0, ..., k - 1."""
        return range(self.num_values)

    def coins(self, outcomes: NDArray[np.intp]) -> list[Coins]:
        """Return the others as coins that show one where the report is one of ``outcomes``."""
        groups: dict[Fraction, int] = {}
        if self.response is not None:
            # Two chances only: no need to go through all values.
            inside = sum(self.counts[x] for x in outcomes.tolist())
            wrong = outcomes.size * self.response.answer
            groups = {wrong: sum(self.counts) - inside}
            groups[wrong + self.response.kept] = inside
        chances: list[Fraction] = []
        if self.response is None or self.num_unknown > 0:
            chances = self.report_chances(outcomes)
        if self.response is None:
            for count, chance in zip(self.counts, chances, strict=True):
                groups[chance] = groups.get(chance, 0) + count
        if self.num_unknown > 0:
            if self.uniform_unknown:
                mean = sum(chances, Fraction(0)) / self.num_values
            else:
                laws = [Fraction(float(each)) for each in self.unknown_prior]
                total = sum(laws, Fraction(0))
                mean = sum((a * b for a, b in zip(laws, chances, strict=True)), Fraction(0)) / total
            groups[mean] = groups.get(mean, 0) + self.num_unknown
        return [Coins(count, chance) for chance, count in groups.items() if count > 0]

    def kinds(self) -> list[Kind]:
        """Return the others with the laws of their reports; those of equal law as one."""
        rows = self.rows()
        found: dict[bytes, Kind] = {}
        laws = [*zip(self.counts, rows, strict=True)]
        if self.num_unknown > 0:
            law = self.unknown_prior @ rows
            laws.append((self.num_unknown, law / math.fsum(law)))
        for count, law in laws:
            if count > 0:
                key = law.tobytes()
                before = found[key].number if key in found else 0
                found[key] = Kind(before + count, law)
        return list(found.values())


def checked_situation(
    randomizer: Any,
    known_counts: Sequence[SupportsIndex],
    *,
    prior: ArrayLike | None,
    num_unknown: SupportsIndex,
    unknown_prior: ArrayLike | None,
) -> Situation:
    """Return the situation for arguments as in `strong_vulnerability`, or raise."""
    counts = tuple(require_at_least("known_counts", count, 0) for count in known_counts)
    if len(counts) < 2:
        raise ParameterError(
            f"known_counts has {len(counts)} entries: give how many of the others are known to "
            "have each of at least two values"
        )
    unknown = require_at_least("num_unknown", num_unknown, 0)
    users = checked_num_users(1 + sum(counts) + unknown)
    response, matrix, slack = None, np.empty((0, 0)), 0.0
    if isinstance(randomizer, Real):
        response = Response.of(randomizer, len(counts))  # type: ignore[arg-type]  # checked there
    else:
        channel = as_channel(randomizer).to_float()
        reduced = channel.reduce(tolerance=_SAME)
        matrix = reduced.to_dense()
        # Each of the n reports would be as likely to within this factor if they told the same.
        slack = 4.0 * _SAME * users if reduced.num_outputs < channel.num_outputs else 0.0
        if len(matrix) != len(counts):
            raise ParameterError(
                f"known_counts has {len(counts)} entries, the channel {len(matrix)} rows: give one "
                "count for each value"
            )
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
    law = checked_prior(prior, len(counts))
    others = law if unknown_prior is None else checked_prior(unknown_prior, len(counts))
    return Situation(
        response=response,
        matrix=matrix,
        prior=law,
        counts=counts,
        num_unknown=unknown,
        unknown_prior=others,
        uniform_target=bool(np.all(law == law[0])),
        uniform_unknown=bool(np.all(others == others[0])),
        slack=slack,
    )


def checked_num_users(num_users: SupportsIndex) -> int:
    """Return ``num_users`` if it is in [1, 1e10], else raise `ParameterError`."""
    number = require_at_least("num_users", num_users, 1)
    if number > MOST_USERS:
        raise ParameterError(
            f"num_users = {number} is above {MOST_USERS}: give fewer, the bound falls with them"
        )
    return number
