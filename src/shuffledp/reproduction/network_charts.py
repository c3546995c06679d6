"""What a chart of network shuffling shows, as numbers: the drawing and the CSV are made of this."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Claim(StrEnum):
    """Who claims what a line shows; each has one style in all charts."""

    OURS = "ours"
    CORRECTED = "published theorem, corrected"
    PRINTED = "published theorem, as printed"
    UNIFORM = "trusted uniform shuffler"
    LOCAL = "local reports, epsilon0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart, or a level across it.

    Parameters
    ----------
    claim : Claim
        Whose numbers.
    variant : str
        What tells it from other lines of the same claim (a graph, a protocol); may be empty.
    x : tuple of float
        Empty for a level that depends on nothing.
    y : tuple of float or None
        One for each x, one for a level; None leaves a gap.
    deviation : tuple of float
        Standard deviations over the trials; empty where the values are no means.
    notes : tuple of str
        Settings behind each value, for the CSV.
    """

    claim: Claim
    variant: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float | None, ...]
    deviation: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines on one pair of axes.

    Parameters
    ----------
    name : str
        The panel's letter, or empty.
    title, x_label, y_label : str
        Words for the drawing; labels name the unit.
    lines : tuple of Line
        What it shows.
    x_scale, y_scale : {"linear", "log"}
        Of the axes.
    top : float or None
        Where the vertical axis ends; higher values leave the chart, but stay in the CSV.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: str = "linear"
    y_scale: str = "log"
    top: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFigure:
    """Charts side by side.

    Parameters
    ----------
    name : str
        Its number in the paper; empty for a figure of the user's own.
    caption : str
        What it shows, with which settings, and how that differs from the paper.
    charts : tuple of Chart
        From left to right.
    trials : int
        How many trials each mean is of; 0 where there is no simulation.
    """

    name: str
    caption: str
    charts: tuple[Chart, ...]
    trials: int = 0

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping a point, all with the same keys; levels have no x."""
        for chart in self.charts:
            for line in chart.lines:
                yield from self._rows_of(chart, line)

    def _rows_of(self, chart: Chart, line: Line) -> Iterator[dict[str, object]]:
        """Yield the points of one line."""
        xs: Sequence[float | str] = line.x or ("",)
        notes = line.notes or ("",) * len(xs)
        deviations: Sequence[float | str] = line.deviation or ("",) * len(xs)
        for x, value, deviation, note in zip(xs, line.y, deviations, notes, strict=True):
            yield {
                "figure": self.name + chart.name,
                "claim": line.claim.value,
                "variant": line.variant,
                "x": x,
                "value": "" if value is None else value,
                "standard_deviation": deviation,
                "trials": self.trials or "",
                "x_label": chart.x_label,
                "y_label": chart.y_label,
                "settings": note,
            }
