"""States that are on or off: one column, the state itself."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import DomainError
from shuffledp.monitoring.encodings.codes import (
    fingerprint_of,
    per_column,
    require_column,
)


@dataclass(frozen=True, slots=True)
class BooleanEncoding:
    """A state is 0 or 1, and nothing is 0.

    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, Section 3. See `Encoding` for the attributes.

    Examples
    --------
    >>> encoding = BooleanEncoding()
    >>> [encoding.code(value) for value in (None, False, True, 1)]
    [0, 0, 1, 1]
    >>> encoding.decode([[5.0], [-2.0]]).tolist()
    [[5.0], [-2.0]]
    """

    name: ClassVar[str] = "boolean"
    labels: ClassVar[tuple[Hashable, ...]] = (True,)
    num_columns: ClassVar[int] = 1
    num_values: ClassVar[int] = 1
    alternating: ClassVar[bool] = True
    changing_share: ClassVar[float] = 1.0  # there is one column
    nothing: ClassVar[int] = 0
    largest_code: ClassVar[int] = 1
    variance_factor: ClassVar[float] = 1.0
    fingerprint: ClassVar[str] = fingerprint_of("boolean", (True,))

    def code(self, value: Any) -> int:
        """Return 0 for False, 0 and None, 1 for True and 1. See `Encoding`."""
        if value is None:
            return 0
        if isinstance(value, (bool, np.bool_, int, np.integer)) and 0 <= int(value) <= 1:
            return int(value)
        raise DomainError(
            f"value = {value!r} is not a state: give True, False, 1, 0, or None for a user without "
            "one; other values need a domain"
        )

    def bit(self, column: int, code: int | None) -> int:
        """Return the state. See `Encoding`."""
        require_column(column, 1)
        return int(code == 1)

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[np.int8]:  # noqa: ARG002  # one column
        """Return the states as int8. See `Encoding`."""
        states: NDArray[np.int8] = (np.asarray(codes) == 1).astype(np.int8)
        return states

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return the sums, which are estimates. See `Encoding`."""
        return per_column(sums, 1, "sums")

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return the number of reports. See `Encoding`."""
        return per_column(counts, 1, "counts")
