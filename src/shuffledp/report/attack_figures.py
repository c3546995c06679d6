"""Figures of what attacks and models find, with error bars, as static images."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.report.drawing import require_matplotlib

if TYPE_CHECKING:
    from shuffledp.groups.attacks.survey import Measured

# Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#d55e00", "#009e73", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9")
_PANEL_WIDTH, _PANEL_HEIGHT = 3.4, 3.4
_RESOLUTION = 150


def write_measured_figure(results: "Sequence[Measured]", path: Path) -> None:
    """Draw one panel a measure: means with error bars, and bounds where there are some.

    Parameters
    ----------
    results : sequence of Measured
        At least one.
    path : Path
        The PNG file.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    tools = require_matplotlib()
    panels = list(dict.fromkeys((result.task, result.measure) for result in results))
    figure = tools.figure(figsize=(_PANEL_WIDTH * len(panels), _PANEL_HEIGHT), layout="constrained")
    tools.canvas(figure)
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        found = [result for result in results if (result.task, result.measure) == panel]
        _draw_panel(axes, found)
        axes.set_title(panel[0], fontsize=10)
        axes.set_ylabel(_broken(panel[1]))
    figure.savefig(path, dpi=_RESOLUTION, format="png", metadata={"Software": None})


def _draw_panel(axes: Any, results: "Sequence[Measured]") -> None:
    """Draw the arrangements side by side."""
    for index, result in enumerate(each.of_better() for each in results):
        axes.errorbar(
            [index],
            [result.mean],
            yerr=_error_bar(result),
            fmt="o",
            capsize=5,
            clip_on=False,  # a point at 0 stays whole
            color=_COLOURS[index % len(_COLOURS)],
        )
        if result.bound is not None:
            axes.hlines(result.bound, index - 0.3, index + 0.3, colors="0.4", linestyles="dashed")
    names = [
        each.arrangement if each.better == each.task else f"{each.arrangement}\n({each.better})"
        for each in results
    ]
    axes.set_xticks(range(len(results)), names)
    axes.set_xlim(-0.5, len(results) - 0.5)
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y", alpha=0.3)
    note = "95% limits; dashed: bound" if results[0].lower is not None else "1 standard deviation"
    axes.set_xlabel(f"reports (bars: {note})", fontsize=8)


def _error_bar(result: "Measured") -> list[list[float]]:
    """Return how far the bar goes down and up: exact limits, else one standard deviation."""
    if result.lower is not None and result.upper is not None:
        return [[result.mean - result.lower], [result.upper - result.mean]]
    deviation = result.standard_deviation or 0.0
    return [[min(deviation, result.mean)], [deviation]]


def _broken(text: str) -> str:
    """Return a label on two lines where it has a comma."""
    return text.replace(", ", ",\n")
