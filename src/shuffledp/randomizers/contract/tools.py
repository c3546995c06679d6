"""What all checks of the contract share: demands, the laws looked at, and their exact channels."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ShuffledpError
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.protocol import Channel

# The channel of 5 categories shows all there is to see of a law; 8 fill a byte of packed bits.
SMALL_K = (2, 3, 5)
LARGE_K = 1000
# From nothing over the least float to more than any law of 64-bit words can cost.
_ASKED = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3.0), 4.0, 60.0, 1e300)

Make: TypeAlias = Callable[[int, float], CategoryRandomizer]
"""Returns a randomizer of k categories for the epsilon0 asked for."""

Check: TypeAlias = Callable[[Make], bool]
"""Raises `ContractError`, or returns whether there was anything to check."""


class ContractError(ShuffledpError, AssertionError):
    """A randomizer breaks a promise; the message says which, and for which law."""


def demand(condition: bool, message: str) -> None:
    """Raise `ContractError` unless the condition holds."""
    if not condition:
        raise ContractError(message)


def demand_refusal(
    expected: type[Exception], action: Callable[[], object], what: str, *mentions: str
) -> None:
    """Raise `ContractError` unless the action raises as expected, and says certain things."""
    try:
        action()
    except expected as refusal:
        silent = [mention for mention in mentions if mention not in str(refusal)]
        demand(not silent, f"{what}: the message {str(refusal)!r} should say {silent}")
    except Exception as error:
        name = type(error).__name__
        raise ContractError(f"{what} raises {name} ({error}), not {expected.__name__}") from error
    else:
        raise ContractError(f"{what} is accepted, where {expected.__name__} should be raised")


def describe(randomizer: CategoryRandomizer) -> str:
    """Return what tells a law apart in a message."""
    return f"{randomizer.name} (k = {randomizer.k}, epsilon0 = {randomizer.epsilon0})"


def draw(
    randomizer: CategoryRandomizer, num_users: int, seed: int = 1, codes: Any = None
) -> Reports:
    """Return reports of users with all categories in turn, or with those given."""
    truth = np.arange(num_users) % randomizer.k if codes is None else codes
    return randomizer.randomize(truth, Entropy.from_seed(seed))


def aggregate_of(randomizer: CategoryRandomizer, data: NDArray[Any]) -> Counts:
    """Return the aggregate of some rows of reports."""
    return randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))


def laws(make: Make) -> Iterator[tuple[CategoryRandomizer, float]]:
    """Yield randomizers of few categories, and what epsilon0 each was asked for."""
    for k, asked in itertools.chain(itertools.product(SMALL_K, _ASKED), [(8, 1.0)]):
        yield make(k, asked), asked


@dataclass(frozen=True, slots=True, eq=False)
class ExactLaw:
    """A randomizer, its channel, the reports of the columns, and what these support."""

    randomizer: CategoryRandomizer
    channel: Channel
    columns: Reports
    supported: NDArray[np.bool_]

    @classmethod
    def of(cls, randomizer: CategoryRandomizer) -> "ExactLaw":
        """Return the exact law; raises `ParameterError` if the randomizer does not state it."""
        columns = randomizer.report_columns()
        return cls(randomizer, randomizer.channel(), columns, randomizer.supports(columns))

    def __str__(self) -> str:
        return describe(self.randomizer)

    def possible_columns(self) -> Iterator[tuple[int, tuple[Fraction, ...]]]:
        """Yield the columns that are not zero throughout, with their numbers."""
        for number, column in enumerate(zip(*self.channel, strict=True)):
            if any(column):
                yield number, column

    def support(self, truth: int, category: int) -> Fraction:
        """Return the exact probability that a report supports the category."""
        supports = self.supported[:, category].tolist()
        return sum(itertools.compress(self.channel[truth], supports), start=Fraction(0))


def exact_laws(make: Make) -> Iterator[ExactLaw]:
    """Yield the exact laws of those small randomizers that state them."""
    for randomizer, _ in laws(make):
        if randomizer.profile.channel is not None:
            yield ExactLaw.of(randomizer)


def on_exact_laws(check: Callable[[ExactLaw], None]) -> Check:
    """Return the check of one exact law as one of all of them; there may be none."""

    @wraps(check)
    def check_all(make: Make) -> bool:
        laws = list(exact_laws(make))
        for law in laws:
            check(law)
        return bool(laws)

    return check_all
