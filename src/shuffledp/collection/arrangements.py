"""Arrangements: in which order the analyst sees the reports, and what that guarantees.

One of them is chosen for a run; all else, the randomizer, the estimates and the report, is the
same for each.
"""

from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Protocol, TypeAlias

from numpy.typing import DTypeLike

from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.collection.shuffling import InMemoryShuffle
from shuffledp.core.entropy import Entropy
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.profile import LocalProfile

Stage: TypeAlias = ExternalShuffle | InMemoryShuffle
"""Takes reports block by block, then yields them shuffled; a context manager."""

Description: TypeAlias = tuple[dict[str, Any], tuple[str, ...]]
"""Facts about a shuffle, by field of the `Result`, and cautions, one sentence each."""


class Order(Protocol):
    """An order of the reports, and its guarantee; whoever shuffled."""

    @property
    def name(self) -> str:
        """What results call it."""

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee for so many users of one randomizer."""


class Arrangement(Order, Protocol):
    """An `Order` that a run can give to its reports."""

    @property
    def remedy(self) -> str:
        """What makes it hide more, as advice to who asked for too much."""

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return what shuffles the reports of one run."""

    def described(self, profile: LocalProfile, guarantee: Guarantee, **run: Any) -> Description:
        """Return what a result says of the shuffle.

        Of the run it is given ``num_released`` (reports), ``on_progress``, and ``entropy`` for
        simulated shuffles, none of which is released.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformArrangement:
    """All reports in uniformly random order."""

    name: ClassVar[str] = "uniform"
    remedy: ClassVar[str] = ""  # nothing hides more

    guarantee = staticmethod(guarantee_for)

    def stage(self, **how: Any) -> Stage:
        """Return a shuffle that goes through a scratch file where memory is short."""
        return ExternalShuffle(**how)

    def described(self, *_: Any, **__: Any) -> Description:
        """Return nothing: there are no particulars."""
        return {}, ()


UNIFORM = UniformArrangement()


def is_uniform(order: Order) -> bool:
    """Tell whether reports are in uniformly random order, whoever shuffled them."""
    return isinstance(order, UniformArrangement)
