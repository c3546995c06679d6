"""Plots on axes of matplotlib, an optional dependency: one for each kind of result."""

from functools import singledispatch
from typing import Any

from shuffledp.accounting.compare import BoundComparison
from shuffledp.collection.plan import Plan
from shuffledp.collection.result import Result
from shuffledp.monitoring.running_counts import RunningCounts

_COLOUR, _GREY = "#0b61a4", "#6b7280"


@singledispatch
def plot(subject: object, ax: Any = None) -> Any:
    """Draw a subject, on given or new axes, and return the axes."""
    del ax
    drawn = ", ".join(each.__name__ for each in plot.registry if each is not object)
    raise TypeError(f"nothing is drawn of a {type(subject).__name__}: give one of {drawn}")


def _axes(ax: Any) -> Any:
    """Return the given axes, or new ones."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(layout="constrained")[1]


@plot.register
def _(subject: Result, ax: Any = None) -> Any:
    axes, columns = _axes(ax), subject.columns()
    about = "population_" if subject.interval_about == "population" else ""
    what = "mean" if "mean" in columns else "frequency"
    places = range(len(subject.domain))
    axes.hlines(places, columns[f"{about}lower"], columns[f"{about}upper"], color=_COLOUR)
    axes.plot(columns[what], places, "o", color=_COLOUR)
    axes.set_yticks(places, subject.domain)
    axes.invert_yaxis()
    whose = "a population" if about else "these users"
    axes.set_xlabel(f"{what}, with {100 * subject.estimates.confidence:g}% intervals about {whose}")
    return axes


@plot.register
def _(subject: Plan, ax: Any = None) -> Any:
    axes, errors = _axes(ax), subject.errors_by_epsilon()
    others = () if subject.runner_up is None else (subject.runner_up,)
    for place, each in enumerate((subject, *others)):
        points = [(epsilon, found[place]) for epsilon, found in errors]
        axes.plot(*zip(*points, strict=True), marker="o", label=each.randomizer.name)
    axes.set(xscale="log", yscale="log", xlabel="central epsilon", ylabel="standard error")
    axes.legend()
    return axes


@plot.register
def _(subject: BoundComparison, ax: Any = None) -> Any:
    axes = _axes(ax)
    axes.barh(
        [each.method.name for each in subject.useful], [each.value for each in subject.useful]
    )
    axes.invert_yaxis()
    if subject.lower is not None:
        axes.axvline(subject.lower, color=_GREY, linestyle="--", label="unavoidable")
        axes.legend()
    axes.set(xscale="log", xlabel=f"proved upper bound on {subject.scenario.asked}")
    return axes


@plot.register
def _(subject: RunningCounts, ax: Any = None) -> Any:
    axes, shape = _axes(ax), (len(subject), -1)
    for place, label in enumerate(subject.labels or ("",)):
        counts, lower, upper = (
            each.reshape(shape)[:, place] for each in (subject.counts, subject.lower, subject.upper)
        )
        (line,) = axes.plot(subject.periods, counts, label=str(label))
        axes.fill_between(subject.periods, lower, upper, color=line.get_color(), alpha=0.2)
    if subject.labels:
        axes.legend()
    axes.set(xlabel="period", ylabel="users")
    return axes
