"""Fig. 2, 4 and 5 of Jurado et al.: what an uninformed adversary guesses, over the users."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shuffledp.core.entropy import Entropy
from shuffledp.leakage.curves import spread_sizes
from shuffledp.leakage.uninformed.closed_forms import (
    shuffled_vulnerability,
    shuffler_vulnerability,
)
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    line_of_bounds,
)
from shuffledp.reproduction.settings import Settings

_BINARY_TRUTHS = (1.0, 0.9, 0.8, 0.7, 0.6)
_BINARY_SIZES = range(1, 201)
# What the text gives at n = 200; at p = 1 it gives .5282 and, a paragraph later, .5286.
_BINARY_PRINTED = {1.0: "0.5286", 0.9: "0.5225", 0.6: "0.5056"}
_CLOSE_UP = (0.5, 0.56)
_CLOSE_UP_FROM = 100

_FIVE = 5
_FIVE_TRUTHS = (1.0, 0.8, 0.6, 0.4)
_FIVE_SIZES = range(1, 201)

_NUMBERS_OF_VALUES = (2, 3, 4, 5, 10, 20)
_MANY_SIZES = (10, 1000)
_MANY_POINTS = 41
_MANY_PRINTED = {3: {100.0: "0.3826", 1000.0: "0.3488"}}

_USERS = "number of users n"
_GUESSED = "probability of a right guess"

_BINARY_CAPTION = """\
Fig. 2. Probability that an uninformed adversary guesses one person's value in one try; k = 2
values, uniform prior, n = 1 to 200 users. Dotted: k-RR alone (N). Solid: k-RR and shuffle (NS),
which is the shuffle alone (S) at p = 1. The steps are real: Theorem 19 gives the same for an even
n and the next. The right chart is ours: the same curves close to 1/2, which do not coincide at n =
200.{corrected}"""

_BINARY_CORRECTION = """\
at n = 200 and p = 1 the text prints 0.5282 and, a paragraph later, 0.5286; it is 0.5282"""

_FIVE_CAPTION = """\
Fig. 4. Probability that an uninformed adversary guesses one person's value in one try; k = 5
values, uniform prior. Dotted: k-RR alone (N). Solid: k-RR and shuffle (NS), which is the shuffle
alone (S) at p = 1. The grey line is the blind guess, 1/5. p = 1 and 0.8 are the paper's; the text
that we have leaves the other p and the range of n out: they are ours."""

_MANY_CAPTION = """\
Fig. 5. Probability that an uninformed adversary who sees shuffled values without noise (S) guesses
one person's in one try; uniform prior, k values, n = 10 to 1,000 users. Thin lines: the blind
guess, 1/k. The paper has a subset of these n, since its formula sums over partitions; each point
here is enclosed to eleven digits. k = 3 is the paper's; the text that we have leaves the
other k out: they are ours."""


def binary_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 2.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    LeakageFigure
        The paper's chart, and a close-up.
    """
    sizes = _some(_BINARY_SIZES, settings)
    printed = {truth: {200.0: text} for truth, text in _BINARY_PRINTED.items()}
    lines = noisy_lines(
        2, _BINARY_TRUTHS, sizes, settings=settings, stage="figure 2", printed=printed
    )
    chart = _chart("a", "k = 2 values, uninformed adversary", lines, (0.5, 1.02))
    close = replace(
        chart,
        name="b",
        title="close to 1/2",
        lines=tuple(_from(line, _CLOSE_UP_FROM) for line in lines if line.seen is Seen.BOTH),
        y_limits=_CLOSE_UP,
    )
    # The left chart has no room for what is printed.
    left = replace(chart, lines=tuple(replace(line, printed={}) for line in lines))
    caption = _BINARY_CAPTION.format(corrected=f" Corrected: {_BINARY_CORRECTION}.")
    return LeakageFigure(
        name="2", caption=caption, charts=(left, close), correction=_BINARY_CORRECTION
    )


def five_values_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 4.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    LeakageFigure
        One chart.
    """
    sizes = _some(_FIVE_SIZES, settings)
    lines = noisy_lines(_FIVE, _FIVE_TRUTHS, sizes, settings=settings, stage="figure 4")
    blind = Line(seen=Seen.NOTHING, y=(1.0 / _FIVE,))
    chart = _chart("", "k = 5 values, uninformed adversary", (*lines, blind), (0.15, 1.02))
    return LeakageFigure(name="4", caption=_FIVE_CAPTION, charts=(chart,))


def many_values_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 5.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    LeakageFigure
        One chart.
    """
    points = 3 if settings.quick else _MANY_POINTS
    sizes = spread_sizes(*_MANY_SIZES, points, also=100)
    lines: list[Line] = []
    for index, num_values in enumerate(_NUMBERS_OF_VALUES):
        bounds = [shuffler_vulnerability(size, num_values) for size in sizes]
        name = f"k = {num_values}"
        printed = _MANY_PRINTED.get(num_values)
        lines.append(line_of_bounds(Seen.SHUFFLER, name, sizes, bounds, printed))
        lines.append(Line(seen=Seen.NOTHING, variant=name, y=(1.0 / num_values,)))
        settings.progress("figure 5: numbers of values", index + 1, len(_NUMBERS_OF_VALUES))
    chart = replace(
        _chart("", "shuffle alone, uninformed adversary", lines, (0.0, 0.75)), x_scale="log"
    )
    return LeakageFigure(name="5", caption=_MANY_CAPTION, charts=(chart,))


def noisy_lines(
    num_values: int,
    truths: Sequence[float],
    sizes: Sequence[int],
    *,
    settings: Settings,
    stage: str,
    printed: Mapping[float, Mapping[float, str]] | None = None,
) -> tuple[Line, ...]:
    """Return N as a level and NS over the number of users, for each truth probability.

    Parameters
    ----------
    num_values : int
        k >= 2.
    truths : sequence of float
        Truth probabilities p, in [1/k, 1].
    sizes : sequence of int
        Numbers of users.
    settings : Settings
        Told how far this is.
    stage : str
        Name of the figure, for that.
    printed : mapping of float to mapping, optional
        For some p what the paper's text gives at some n.

    Returns
    -------
    tuple of Line
        Two for each truth probability.
    """
    lines: list[Line] = []
    for index, truth in enumerate(truths):
        bounds = [shuffled_vulnerability(size, num_values, truth) for size in sizes]
        known = (printed or {}).get(truth)
        lines.append(line_of_bounds(Seen.BOTH, f"p = {truth:g}", sizes, bounds, known))
        lines.append(Line(seen=Seen.RANDOMIZER, variant=f"p = {truth:g}", y=(truth,)))
        settings.progress(f"{stage}: truth probabilities", index + 1, len(truths))
    return tuple(lines)


def _chart(
    name: str, title: str, lines: Sequence[Line], limits: tuple[float, float] | None
) -> Chart:
    """Return a chart over the number of users."""
    return Chart(
        name=name,
        title=title,
        x_label=_USERS,
        y_label=_GUESSED,
        lines=tuple(lines),
        y_limits=limits,
    )


def _some(sizes: range, settings: Settings) -> list[int]:
    """Return all sizes, or a few with both ends."""
    return [sizes[0], 2, 20, sizes[-1]] if settings.quick else list(sizes)


def _from(line: Line, first: float) -> Line:
    """Return the part of a line from some x on."""
    start = sum(x < first for x in line.x)
    return replace(
        line,
        x=line.x[start:],
        y=line.y[start:],
        lower=line.lower[start:],
        notes=line.notes[start:],
    )
