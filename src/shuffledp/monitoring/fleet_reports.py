"""What a fleet reports in a period: signs drawn for many clients at once, and their sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import read_only
from shuffledp.monitoring.reports import MonitorReports

_WORD_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeriodSums:
    """What the clients of a fleet report in one period, summed.

    Parameters
    ----------
    period : int
        When the reports fall due.
    levels : range
        The levels with a node that ends then: 1 up to some level.
    sums, counts : ndarray of int64, shape (len(levels), num_columns)
        Sum of the signs, and number of the reports, for each level and column. Read-only.
    reports : MonitorReports or None
        The reports, if asked for: level by level, and within a level always in the same order of
        clients, so that they can be linked over time until they are shuffled.
    """

    period: int
    levels: range
    sums: NDArray[np.int64]
    counts: NDArray[np.int64]
    reports: MonitorReports | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", read_only(self.sums))
        object.__setattr__(self, "counts", read_only(self.counts))


def coin_signs(stream: Entropy, size: int) -> NDArray[np.int8]:
    """Return independent uniform signs: bit i mod 64 of word i div 64, 1 for +1."""
    words = stream.words(-(-size // _WORD_BITS)).astype("<u8", copy=False)
    bits = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
    signs = bits.view(np.int8)
    signs *= 2
    signs -= 1
    return signs


def sums_and_counts(
    signs: NDArray[np.int8], columns: NDArray[np.int64] | None, num_columns: int
) -> NDArray[np.int64]:
    """Return sum of the signs and number of reports for each column, shape (2, num_columns)."""
    if columns is None:
        return np.array([[signs.sum(dtype=np.int64)], [signs.size]], dtype=np.int64)
    cells = 2 * columns + (signs > 0)
    minus, plus = np.bincount(cells, minlength=2 * num_columns).reshape(num_columns, 2).T
    return np.stack((plus - minus, plus + minus))


def as_reports(
    level: int, period: int, signs: NDArray[np.int8], columns: NDArray[np.int64] | None
) -> MonitorReports:
    """Return the reports of one level."""
    size = signs.size
    return MonitorReports(
        levels=np.full(size, level, dtype=np.uint8),
        periods=np.full(size, period, dtype=np.int64),
        signs=signs,
        columns=np.zeros(size, dtype=np.int64) if columns is None else columns,
    )


def concatenated(parts: list[MonitorReports]) -> MonitorReports:
    """Return reports of several levels, level by level."""
    names = ("levels", "periods", "signs", "columns")
    return MonitorReports(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    )
