"""What a chart of information leakage shows, as numbers: drawing and CSV are made of this."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from shuffledp.core.bound import Bound


class Seen(StrEnum):
    """What the adversary sees, or how it is approximated; each has one stroke in all charts."""

    BOTH = "k-RR and shuffle (NS)"
    SHUFFLER = "shuffle alone (S)"
    RANDOMIZER = "k-RR alone (N)"
    PUBLISHED = "published approximation, f = 1"
    APPROXIMATION = "our approximation"
    NOTHING = "nothing (blind guess)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart, or a level across it.

    Parameters
    ----------
    seen : Seen
        What the adversary sees.
    variant : str
        What tells it from other lines of the same kind (a truth probability p, a number of values
        k); may be empty.
    x : tuple of float
        Empty for a level that depends on nothing.
    y : tuple of float
        One for each x, one for a level. Of an enclosure its upper end.
    lower : tuple of float
        Lower ends; empty where the values are no enclosures.
    notes : tuple of str
        How each value was computed, for the CSV; may be empty.
    printed : mapping of float to str
        What the paper's text gives at some x.
    is_scattered : bool
        Whether the values jump from one x to the next: then they are drawn as dots.
    """

    seen: Seen
    variant: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float, ...]
    lower: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    printed: Mapping[float, str] = field(default_factory=dict)
    is_scattered: bool = False


def line_of_bounds(
    seen: Seen,
    variant: str,
    x: Sequence[float],
    bounds: Sequence[Bound],
    printed: Mapping[float, str] | None = None,
) -> Line:
    """Return a line through enclosures, whose methods become notes.

    Parameters
    ----------
    seen : Seen
        What the adversary sees.
    variant : str
        What tells it from other lines.
    x : sequence of float
        Where the enclosures are.
    bounds : sequence of Bound
        One for each x, with both ends.
    printed : mapping of float to str, optional
        What the paper's text gives at some x.

    Returns
    -------
    Line
        Through the upper ends.
    """
    return Line(
        seen=seen,
        variant=variant,
        x=tuple(map(float, x)),
        y=tuple(each.upper for each in bounds),
        lower=tuple(0.0 if each.lower is None else each.lower for each in bounds),
        notes=tuple(each.method for each in bounds),
        printed=printed or {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines on one pair of axes.

    Parameters
    ----------
    name : str
        The panel's letter, or empty.
    title, x_label, y_label : str
        Words for the drawing.
    lines : tuple of Line
        What it shows.
    x_scale, y_scale : {"linear", "log"}
        Of the axes.
    y_limits : pair of float, or None
        Where the vertical axis starts and ends; by default around the lines.
    mark : float or None
        An x that a thin vertical line marks, such as the number of users of a collection.
    mark_label : str
        What the marked x is.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: str = "linear"
    y_scale: str = "linear"
    y_limits: tuple[float, float] | None = None
    mark: float | None = None
    mark_label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageFigure:
    """Charts side by side.

    Parameters
    ----------
    name : str
        Its number in the paper; empty for a figure of the user's own.
    caption : str
        What it shows, with which settings, and how that differs from the paper.
    charts : tuple of Chart
        From left to right.
    correction : str
        What the paper has otherwise, in one sentence; empty if nothing.
    """

    name: str
    caption: str
    charts: tuple[Chart, ...]
    correction: str = ""

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping a point, all with the same keys; levels have no x."""
        for chart in self.charts:
            for line in chart.lines:
                yield from self._rows_of(chart, line)

    def _rows_of(self, chart: Chart, line: Line) -> Iterator[dict[str, object]]:
        """Yield the points of one line."""
        xs: Sequence[float | str] = line.x or ("",)
        blank = ("",) * len(xs)
        lowers: Sequence[float | str] = line.lower or blank
        for x, value, lower, note in zip(xs, line.y, lowers, line.notes or blank, strict=True):
            printed = line.printed.get(x, "") if isinstance(x, float) else ""
            yield {
                "figure": self.name + chart.name,
                "seen": line.seen.value,
                "variant": line.variant,
                "x": x,
                "value": value,
                "lower": lower,
                "printed": printed,
                "mark": "corrected" if printed and not rounds_to(value, printed) else "",
                "x_label": chart.x_label,
                "y_label": chart.y_label,
                "settings": note,
            }


def rounds_to(value: float, printed: str) -> bool:
    """Return whether a number has the digits that a paper prints.

    Parameters
    ----------
    value : float
        As computed.
    printed : str
        Decimal number.

    Examples
    --------
    >>> rounds_to(0.52817, "0.5282"), rounds_to(0.52817, "0.5286")
    (True, False)
    """
    return f"{value:.{num_decimals(printed)}f}" == printed


def num_decimals(printed: str) -> int:
    """Return how many digits a decimal number has behind its point.

    Examples
    --------
    >>> num_decimals("0.5286")
    4
    """
    return len(printed.partition(".")[2])
