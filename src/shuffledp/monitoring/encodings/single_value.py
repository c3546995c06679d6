"""What all encodings of one value out of a domain share: labels and their codes."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from shuffledp.monitoring.encodings.codes import (
    code_of_label,
    fingerprint_of,
    require_labels,
)
from shuffledp.monitoring.encodings.encoding import NOTHING


@dataclass(frozen=True, slots=True)
class SingleValueEncoding:
    """The domain of an encoding in which a user has one value at a time, or nothing yet.

    Parameters
    ----------
    labels : tuple
        The K >= 2 values of the domain; a value's code is its place.

    Raises
    ------
    DomainError
        If there are fewer than two values, or one comes twice.
    """

    name: ClassVar[str]
    alternating: ClassVar[bool] = False
    nothing: ClassVar[int] = NOTHING

    labels: tuple[Hashable, ...]
    fingerprint: str = field(init=False, repr=False, compare=False)
    _numbers: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = require_labels(self.labels, what="domain", fewest=2)
        object.__setattr__(self, "labels", tuple(numbers))
        object.__setattr__(self, "fingerprint", fingerprint_of(self.name, self.labels))
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Self:
        """Return the encoding of any iterable of values."""
        return cls(tuple(labels))

    @property
    def num_values(self) -> int:
        """Number of values."""
        return len(self.labels)

    @property
    def largest_code(self) -> int:
        """The place of the last value."""
        return len(self.labels) - 1

    def code(self, value: Any) -> int:
        """Return the place of a value, -1 for None. See `Encoding`."""
        return code_of_label(value, self._numbers)
