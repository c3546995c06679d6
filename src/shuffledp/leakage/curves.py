"""What an adversary can guess of one collection, against its size or against what is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.strong import strong_vulnerability
from shuffledp.leakage.uninformed import (
    shuffled_vulnerability,
    shuffler_vulnerability,
)

Adversary: TypeAlias = Literal["uninformed", "strong"]
"""Knows nothing but the uniform prior, or the values of all others."""

#: Largest number of users that the vulnerabilities are computed for.
MOST_USERS = 10**9
_POINTS = 30
# Steps of the share of the others that hold one value. Two values take a millisecond each, more
# than two up to a second.
_STEPS, _FEW_STEPS = 100, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageCurve:
    """Success probabilities of the best adversary, one try, uniform prior."""

    num_users: int  # Of the collection
    num_values: int  # Of the collection
    truth: float  # Probability that k-ary randomized response keeps a value
    adversary: Adversary  # What is known beforehand
    # For ``"uninformed"`` numbers of users, `num_users` among them; for ``"strong"`` shares of the
    # other users that hold one value, the rest being spread evenly over the other values.
    x: tuple[float, ...]
    prior: float  # Success probability of a blind guess
    randomizer: float  # Success probability of who sees the target's report, without a shuffler
    shuffler: tuple[Bound, ...]  # Shuffled values without noise, one for each x
    both: tuple[Bound, ...]  # Shuffled reports, one for each x

    def to_json_dict(self) -> dict[str, object]:
        """Return the curve as JSON values: upper ends, and lower ends beside them."""
        return {
            "num_users": self.num_users,
            "k": self.num_values,
            "p": self.truth,
            "adversary": self.adversary,
            "x": list(self.x),
            "prior": self.prior,
            "randomizer": self.randomizer,
            "shuffler": [each.upper for each in self.shuffler],
            "both": [each.upper for each in self.both],
            "both_lower": [each.lower for each in self.both],
        }


def leakage_curve(
    num_values: int, truth: float, num_users: int, adversary: Adversary = "uninformed"
) -> LeakageCurve:
    """Enclose what an adversary guesses under k-ary randomized response, uniform prior.

    Against numbers of users from 1 to ten times `num_users`, or, for a strong one, against the
    share of the others that holds one value.
    """
    if adversary not in get_args(Adversary):
        raise ParameterError(
            f"adversary = {adversary!r} is not one of {', '.join(get_args(Adversary))}"
        )
    require_at_least("num_values", num_values, 2)
    if require_at_least("num_users", num_users, 1) > MOST_USERS:
        raise ParameterError(f"num_users = {num_users} is above {MOST_USERS}: give fewer")
    if adversary == "strong":
        return _against_knowledge(num_values, truth, num_users)
    return _against_users(num_values, truth, num_users)


def _against_users(num_values: int, truth: float, num_users: int) -> LeakageCurve:
    """Return the curve of an adversary who knows nothing."""
    sizes = spread_sizes(1, min(10 * num_users, MOST_USERS), _POINTS, also=num_users)
    return LeakageCurve(
        num_users=num_users,
        num_values=num_values,
        truth=truth,
        adversary="uninformed",
        x=tuple(map(float, sizes)),
        prior=1.0 / num_values,
        randomizer=truth,
        shuffler=tuple(shuffler_vulnerability(size, num_values) for size in sizes),
        both=tuple(shuffled_vulnerability(size, num_values, truth) for size in sizes),
    )


def _against_knowledge(num_values: int, truth: float, num_users: int) -> LeakageCurve:
    """Return the curve of an adversary who knows all others."""
    if num_users == 1:
        raise ParameterError(
            "num_users = 1 leaves nobody whose value the strong adversary knows: give at least 2"
        )
    known = tuple(knowledge_counts(num_users - 1, num_values))
    return LeakageCurve(
        num_users=num_users,
        num_values=num_values,
        truth=truth,
        adversary="strong",
        x=tuple(counts[0] / (num_users - 1) for counts in known),
        prior=1.0 / num_values,
        randomizer=truth,
        shuffler=tuple(strong_vulnerability(1, counts) for counts in known),
        both=tuple(strong_vulnerability(truth, counts) for counts in known),
    )


def spread_sizes(first: int, last: int, num_points: int, *, also: int | None = None) -> list[int]:
    """Return whole numbers from `first` to `last`, evenly spread on a logarithmic axis."""
    ratio = last / first
    steps = num_points - 1
    inner = (round(first * ratio ** (step / steps)) for step in range(num_points))
    sizes = {min(max(size, first), last) for size in inner}
    return sorted(sizes | {first, last} | ({also} if also is not None else set()))


def knowledge_counts(num_others: int, num_values: int) -> Iterator[tuple[int, ...]]:
    """Yield what is known of the others, from nobody with the first value to all of them."""
    steps = _STEPS if num_values == 2 else _FEW_STEPS
    firsts = sorted({round(num_others * step / steps) for step in range(steps + 1)})
    for first in firsts:
        each, more = divmod(num_others - first, num_values - 1)
        rest: Sequence[int] = [each + (index < more) for index in range(num_values - 1)]
        yield (first, *rest)
