"""What a reproduced figure shows, as numbers: the drawing and the CSV are made of this."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Series(StrEnum):
    """Whose reports a curve is about; each has one colour and one mark in all figures."""

    RAW = "local reports, not shuffled"
    PUBLISHED = "within groups, as published"
    OURS = "within groups, exact sensitivity"
    UNIFORM = "uniform shuffle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a chart, or a level across it.

    Parameters
    ----------
    series : Series
        Whose reports.
    variant : str
        What tells it from other curves of the same series; may be empty.
    x : sequence of float
        Empty for a level that depends on nothing.
    mean, deviation : sequence of float
        Mean and standard deviation over the trials, one for each x; one for a level. No
        deviations where the values are no means.
    notes : sequence of str
        Settings behind each value, for the CSV (such as theta).
    """

    series: Series
    variant: str = ""
    x: tuple[float, ...] = ()
    mean: tuple[float, ...]
    deviation: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart.

    Parameters
    ----------
    name : str
        Its letter in the paper, or empty.
    title, x_label, y_label : str
        Words for the drawing; labels name the unit.
    curves : sequence of Curve
        What it shows.
    x_scale : {"linear", "log", "symlog"}
        Of the horizontal axis.
    trials : int, optional
        Behind each mean, where that differs from the figure's.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_scale: str = "linear"
    trials: int | None = None


class FigureData(Protocol):
    """A figure of numbers."""

    @property
    def name(self) -> str:
        """Its number in the paper."""
        ...

    @property
    def caption(self) -> str:
        """What it shows, with which settings, and how that differs from the paper."""
        ...

    @property
    def trials(self) -> int:
        """How many trials each mean is of."""
        ...

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping a line of the CSV; all have the same keys."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFigure:
    """Charts side by side.

    Parameters
    ----------
    name, caption : str
        See `FigureData`.
    trials : int
        See `FigureData`.
    panels : sequence of Panel
        From left to right.
    """

    name: str
    caption: str
    trials: int
    panels: tuple[Panel, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one line a point; levels have no x."""
        for panel in self.panels:
            for curve in panel.curves:
                xs: Sequence[float | str] = curve.x or ("",)
                notes = curve.notes or ("",) * len(xs)
                deviations: Sequence[float | str] = curve.deviation or ("",) * len(xs)
                for x, mean, deviation, note in zip(xs, curve.mean, deviations, notes, strict=True):
                    yield {
                        "figure": self.name + panel.name,
                        "series": curve.series.value,
                        "variant": curve.variant,
                        "x": x,
                        "mean": mean,
                        "standard_deviation": deviation,
                        "trials": panel.trials or self.trials,
                        "x_label": panel.x_label,
                        "y_label": panel.y_label,
                        "settings": note,
                    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPanel:
    """One column of a map figure: what is released, and what the attack makes of it.

    Parameters
    ----------
    series : Series or None
        Whose reports; None for the truth.
    title : str
        Above the maps.
    released : ndarray of uint8, shape (n,)
        Label in each person's place.
    guessed : ndarray of uint8, shape (n,), or None
        The attack's guess of each person's label; None for the truth.
    accuracy : dict
        Mean share of right guesses by the number of labels told apart.
    note : str
        Settings, for the CSV.
    """

    series: Series | None
    title: str
    released: NDArray[np.uint8] = field(repr=False)
    guessed: NDArray[np.uint8] | None = field(default=None, repr=False)
    accuracy: dict[int, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFigure:
    """People as dots on a map, coloured by label.

    Parameters
    ----------
    name, caption : str
        See `FigureData`.
    trials : int
        Of the accuracies; the maps show one more.
    points : ndarray of float64, shape (n, 2)
        Where people are.
    label_names : sequence of str
        What the codes mean.
    panels : sequence of MapPanel
        The truth first.
    """

    name: str
    caption: str
    trials: int
    points: NDArray[np.float64] = field(repr=False)
    label_names: tuple[str, ...]
    panels: tuple[MapPanel, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one line an attack and granularity."""
        for panel in self.panels:
            for ways, share in panel.accuracy.items():
                yield {
                    "figure": self.name,
                    "series": panel.series.value if panel.series else "truth",
                    "title": panel.title.replace("\n", " "),
                    "labels_told_apart": ways,
                    "attack_accuracy": share,
                    "trials": self.trials,
                    "people": self.points.shape[0],
                    "settings": panel.note,
                }
