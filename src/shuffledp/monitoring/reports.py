"""What clients send to the server: a sign for a node of the tree, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import read_only

if TYPE_CHECKING:
    from shuffledp.monitoring.design import MonitorDesign

_LARGEST_LEVEL = 63


class MonitorReport(NamedTuple):
    """One report of one client.

    It names no user. Reports of one client are linked by nothing but what is here: see that the
    transport adds nothing, and shuffle the reports of each period and level.

    Parameters
    ----------
    level : int
        Level h of the node, from 1.
    period : int
        Last period of the node, when the report falls due.
    sign : int
        -1 or +1.
    column : int
        Column of the encoding that the client tracked during the node; 0 for booleans.
    """

    level: int
    period: int
    sign: int
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorReports:
    """Many reports as arrays of one length, one report an index.

    Parameters
    ----------
    levels : ndarray of uint8
        Levels of the nodes.
    periods : ndarray of int64
        Last periods of the nodes.
    signs : ndarray of int8
        -1 or +1.
    columns : ndarray of int64
        Columns of the encoding; zeros for booleans.

    Raises
    ------
    ParameterError
        If the arrays are not of those types, of one axis and of one length. What they say is
        checked against a design by `require_reports`.

    Notes
    -----
    The arrays are kept as read-only views, not copied. 18 bytes a report.

    Examples
    --------
    >>> reports = MonitorReports.from_reports([MonitorReport(level=2, period=4, sign=-1)])
    >>> len(reports), int(reports.signs[0]), int(reports.columns[0])
    (1, -1, 0)
    """

    levels: NDArray[np.uint8]
    periods: NDArray[np.int64]
    signs: NDArray[np.int8]
    columns: NDArray[np.int64]

    def __post_init__(self) -> None:
        expected = {"levels": np.uint8, "periods": np.int64, "signs": np.int8, "columns": np.int64}
        for name, dtype in expected.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                raise ParameterError(
                    f"{name} is {_described(array)}: give an array of {np.dtype(dtype)} with one "
                    "axis, or use MonitorReports.from_reports"
                )
            if array.size != self.levels.size:
                raise ParameterError(
                    f"{name} has {array.size} entries but levels has {self.levels.size}: give one "
                    "of each for each report"
                )
            object.__setattr__(self, name, read_only(array))

    def __len__(self) -> int:
        return int(self.levels.size)

    @classmethod
    def from_reports(cls, reports: Iterable[MonitorReport]) -> Self:
        """Return the arrays that hold some reports, in their order.

        Parameters
        ----------
        reports : iterable of MonitorReport
            May be empty.

        Raises
        ------
        DataError
            If a report is not four whole numbers that fit the arrays.

        Notes
        -----
        Cost: about a microsecond a report; make arrays directly where there are millions.
        """
        rows = list(reports)
        try:
            table = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
            exact = not rows or np.array_equal(table, np.array(rows))
        except (ValueError, TypeError, OverflowError):
            exact = False
        if not exact or (rows and not _fits(table)):
            raise DataError(
                "reports has an entry that is not (level, period, sign, column) in small whole "
                "numbers: drop what is no MonitorReport"
            )
        return cls(
            levels=table[:, 0].astype(np.uint8),
            periods=table[:, 1].copy(),
            signs=table[:, 2].astype(np.int8),
            columns=table[:, 3].copy(),
        )


def require_reports(design: "MonitorDesign", reports: MonitorReports) -> MonitorReports:
    """Return ``reports`` if a client of this design can have made each of them, else raise.

    Parameters
    ----------
    design : MonitorDesign
        What client and server agreed on.
    reports : MonitorReports
        Reports of any periods, in any order.

    Returns
    -------
    MonitorReports
        The same object.

    Raises
    ------
    DataError
        Naming the first report that has no such level, a period at which no node of its level
        ends, a sign that is not -1 or +1, or no such column.

    Notes
    -----
    Cost: some nanoseconds a report.
    """
    tree = design.tree
    if len(reports) == 0:
        return reports
    _require_range("level", reports.levels, 1, tree.num_levels)
    _require_range("period", reports.periods, 1, tree.periods)
    _require_range("column", reports.columns, 0, design.encoding.num_columns - 1)
    _refuse_first(
        np.abs(reports.signs) != 1, "sign", reports.signs, "a sign is -1 or +1", "drop it"
    )
    # Shifted as int64, for uint8 would overflow.
    rest = (np.int64(1) << (reports.levels.astype(np.int64) - 1)) - 1
    _refuse_first(
        (reports.periods & rest) != 0,
        "period",
        reports.periods,
        "no node of its level ends there",
        "check that client and server have the same design",
    )
    return reports


def _require_range(name: str, values: NDArray[Any], low: int, high: int) -> None:
    """Raise unless all values lie in [low, high]; two fast passes where they do."""
    if int(values.min()) < low or int(values.max()) > high:
        _refuse_first(
            (values < low) | (values > high),
            name,
            values,
            f"this design has {name}s {low} to {high}",
            "check that client and server have the same design",
        )


def _refuse_first(
    wrong: NDArray[np.bool_], name: str, values: NDArray[Any], why: str, way_out: str
) -> None:
    """Raise for the first report that is wrong, if there is one."""
    if wrong.any():
        position = int(np.argmax(wrong))
        raise DataError(
            f"report {position} has {name} = {values[position]}: {why}, so no client of it made "
            f"this report; {way_out}"
        )


def _fits(table: NDArray[np.int64]) -> bool:
    """Return whether levels and signs fit their narrow types."""
    levels, signs = table[:, 0], table[:, 2]
    return bool(
        levels.min() >= 0
        and levels.max() <= _LARGEST_LEVEL
        and signs.min() >= -1
        and signs.max() <= 1
    )


def _described(value: object) -> str:
    """Describe what was given in place of an array."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with {value.ndim} axes"
    return f"a {type(value).__name__}"
