"""Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative
Information Flow", CSF 2023, hal-04349295v1: guesses of an adversary, and channels of three people.

Fig. 1, 8 and 9 are diagrams of which channels are equivalent; the package's tests check these
relations. Nothing is random here. Run it with ``python papers/jurado_2023.py --out FOLDER``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from channel_tables import TABLES, channel_table
from charts import Chart, Figure, Line, line_of_bounds, spread
from paper import Settings, main
from shuffledp import Entropy, leakage

BOTH, SHUFFLER, RANDOMIZER = "k-RR and shuffle (NS)", "shuffle alone (S)", "k-RR alone (N)"
PUBLISHED, APPROXIMATION = "published approximation, f = 1", "our approximation"
NOTHING = "nothing (blind guess)"
STROKES: dict[str, dict[str, Any]] = {
    BOTH: {"linestyle": "-", "linewidth": 1.9},
    SHUFFLER: {"linestyle": "-", "linewidth": 1.9},
    RANDOMIZER: {"linestyle": ":", "linewidth": 1.5},
    PUBLISHED: {"linestyle": ":", "linewidth": 1.6},
    APPROXIMATION: {"linestyle": "--", "linewidth": 1.2, "zorder": 5},
    NOTHING: {"linestyle": "-", "linewidth": 0.8},
}

_USERS, _GUESSED = "number of users n", "probability of a right guess"
_BINARY_TRUTHS = (1.0, 0.9, 0.8, 0.7, 0.6)


def figure_2(settings: Settings, _entropy: Entropy) -> Figure:
    """Two values, over the number of users."""
    # The text's values at n = 200; at p = 1 it has .5282 and, a paragraph later, .5286.
    printed = {1.0: {200.0: "0.5286"}, 0.9: {200.0: "0.5225"}, 0.6: {200.0: "0.5056"}}
    lines = _noisy_lines(2, _BINARY_TRUTHS, _up_to_200(settings), printed)
    chart = Chart(
        name="a",
        title="k = 2 values, uninformed adversary",
        x_label=_USERS,
        y_label=_GUESSED,
        lines=tuple(replace(line, printed={}) for line in lines),
        y_limits=(0.5, 1.02),
    )
    close = replace(
        chart,
        name="b",
        title="close to 1/2",
        lines=tuple(line for line in lines if line.kind == BOTH),
        y_limits=(0.5, 0.56),
    )
    correction = "at n = 200 and p = 1 the text prints 0.5286; it is 0.5282, as a paragraph before"
    caption = (
        "Fig. 2. Probability that an uninformed adversary guesses one person's value in one try; k "
        "= 2 values, uniform prior, n = 1 to 200 users. Dotted: k-RR alone (N). Solid: k-RR and "
        "shuffle (NS), which is the shuffle alone (S) at p = 1. The steps are real: Theorem 19 "
        "gives the same for an even n and the next. The right chart is ours. "
        f"Corrected: {correction}."
    )
    return _figure("2", caption, chart, close, correction=correction)


def figure_3(settings: Settings, _entropy: Entropy) -> Figure:
    """Strong adversary, over the share of the 200 others that hold one value."""
    counts = range(0, 201, 50 if settings.quick else 1)
    shares = [count / 2.0 for count in counts]
    lines: list[Line] = []
    for truth in _BINARY_TRUTHS:
        bounds = [leakage.strong_vulnerability(truth, (count, 200 - count)) for count in counts]
        lines.append(line_of_bounds(BOTH, f"p = {truth:g}", shares, bounds))
        lines.append(Line(kind=RANDOMIZER, variant=f"p = {truth:g}", y=(truth,)))
    chart = Chart(
        name="a",
        title="strong adversary, k = 2, n = 201",
        x_label="a's among the 200 others (%)",
        y_label=_GUESSED,
        lines=tuple(lines),
        y_limits=(0.5, 1.02),
    )
    detail = next(line for line in lines if (line.kind, line.variant) == (BOTH, "p = 0.8"))
    detail = replace(detail, printed={0.0: "0.52111", 50.0: "0.52116"}, is_scattered=True)
    close = replace(
        chart, name="b", title="p = 0.8 close up", lines=(detail,), y_limits=(None, None)
    )
    correction = (
        "Eq. (10) is evaluated as (1/2) sum_y max_x NS[x, y]; it is printed with max over y inside "
        f"the sum over x, which would be {printed_equation(100, 0.8):.4f} at p = 0.8 and 50 %, "
        "below a blind guess"
    )
    caption = (
        "Fig. 3. Probability that a strong adversary, who knows the values of 200 users, guesses "
        "the value of the 201st in one try, over the share of a's among the 200; k = 2 values, "
        "uniform prior on the one. Solid: k-RR and shuffle (NS), which is the shuffle alone (S) at "
        "p = 1. Dotted: k-RR alone (N). The right chart is ours. Knowledge matters in the fourth "
        "digit at most, by jumps: the vulnerability depends on how close the mean number of a's "
        f"among the reports of the 200 others comes to a whole number. Corrected: {correction}."
    )
    return _figure("3", caption, chart, close, correction=correction)


def figure_4(settings: Settings, _entropy: Entropy) -> Figure:
    """Five values, over the number of users."""
    lines = _noisy_lines(5, (1.0, 0.8, 0.6, 0.4), _up_to_200(settings))
    chart = Chart(
        title="k = 5 values, uninformed adversary",
        x_label=_USERS,
        y_label=_GUESSED,
        lines=(*lines, Line(kind=NOTHING, y=(1 / 5,))),
        y_limits=(0.15, 1.02),
    )
    caption = """\
Fig. 4. Probability that an uninformed adversary guesses one person's value in one try; k = 5
values, uniform prior. Dotted: k-RR alone (N). Solid: k-RR and shuffle (NS), which is the shuffle
alone (S) at p = 1. The grey line is the blind guess, 1/5. p = 1 and 0.8 are the paper's; the text
that we have leaves the other p and the range of n out: they are ours."""
    return _figure("4", caption, chart)


def figure_5(settings: Settings, _entropy: Entropy) -> Figure:
    """The shuffle alone for 2 to 20 values."""
    sizes = sorted({100, *spread(10, 1000, 3 if settings.quick else 41)})
    printed = {3: {100.0: "0.3826", 1000.0: "0.3488"}}
    lines = []
    for k in (2, 3, 4, 5, 10, 20):
        bounds = [leakage.shuffled_vulnerability(size, k, 1) for size in sizes]
        lines.append(line_of_bounds(SHUFFLER, f"k = {k}", sizes, bounds, printed.get(k)))
        lines.append(Line(kind=NOTHING, variant=f"k = {k}", y=(1.0 / k,)))
    chart = Chart(
        title="shuffle alone, uninformed adversary",
        x_label=_USERS,
        y_label=_GUESSED,
        lines=tuple(lines),
        x_scale="log",
        y_limits=(0.0, 0.75),
    )
    caption = """\
Fig. 5. Probability that an uninformed adversary who sees shuffled values without noise (S) guesses
one person's in one try; uniform prior, k values, n = 10 to 1,000 users. Thin lines: the blind
guess, 1/k. The paper has a subset of these n, since its formula sums over partitions; each point
here is enclosed to eleven digits. k = 3 is the paper's; the text that we have leaves the
other k out: they are ours."""
    return _figure("5", caption, chart)


_OURS = """\
Ours (dashed) is 1/k + mu/sqrt(k n) + (s - 1)/(6 n), where mu and s are the means of the maximum of
k standard normals and of its square"""


def figure_6(settings: Settings, _entropy: Entropy) -> Figure:
    """The shuffle alone: exact and approximated, and the ratios of the excess."""
    points = 3 if settings.quick else 41
    lines, ratios = [], []
    for k in (3, 4, 5):
        lines += _compared(k, 1.0, spread(10, 1000, points), SHUFFLER, f"k = {k}")
        sizes = spread(10, 10**6, points)
        exact = [leakage.maximum_load_excess(size, k).upper / size for size in sizes]
        for kind, excesses in _approximations(k, sizes):
            y = tuple(each / true for each, true in zip(excesses, exact, strict=True))
            x = tuple(map(float, sizes))
            ratios.append(Line(kind=kind, variant=f"k = {k}", x=x, y=y))
    chart = Chart(
        name="a",
        title="shuffle alone",
        x_label=_USERS,
        y_label=_GUESSED,
        lines=tuple(lines),
        x_scale="log",
    )
    ratio = replace(
        chart,
        name="b",
        title="excess over 1/k, approximate by exact",
        y_label="ratio",
        lines=tuple(ratios),
    )
    caption = f"""\
Fig. 6. Probability that an uninformed adversary who sees shuffled values without noise (S) guesses
one person's in one try; uniform prior. Exact (solid), and the published approximation (dotted):
1/k + f sqrt(ln k / (k n)) with f = 1. {_OURS}. The right chart is ours: the approximate excess over
1/k by the exact one. The published one does not come closer as n grows, since f tends to mu /
sqrt(ln k), which is 0.81, 0.87 and 0.92 for k = 3, 4 and 5. The text that we have leaves the range
of n out: it is ours."""
    return _figure("6", caption, chart, ratio)


def figure_7(settings: Settings, _entropy: Entropy) -> Figure:
    """k-RR and shuffle: exact and approximated."""
    sizes = [6, 20, 200] if settings.quick else range(6, 201)  # Eq. (14): n >= k ln k = 5.5
    lines = [
        line
        for truth in (1.0, 0.8, 0.6)
        for line in _compared(4, truth, sizes, BOTH, f"p = {truth:g}")
    ]
    chart = Chart(
        title="k-RR and shuffle, k = 4 values", x_label=_USERS, y_label=_GUESSED, lines=tuple(lines)
    )
    caption = f"""\
Fig. 7. Probability that an uninformed adversary guesses one person's value in one try under k-RR
and shuffle (NS), k = 4 values, uniform prior. Exact (solid; S alone at p = 1), and the published
approximation (dotted): Theorem 22 with f = 1. {_OURS}, its excess over 1/k times (k p - 1)/(k - 1).
The text that we have leaves the range of n out: it is ours, from n >= k ln k on, as the theorem
asks."""
    return _figure("7", caption, chart)


def printed_equation(num_a: int, truth: float) -> float:
    """Return what Eq. (10) would give as it is printed: the mean of the rows' largest entries.

    It is no vulnerability, since it falls below the blind guess 1/2.

    >>> printed_equation(100, 1.0)
    1.0
    """
    from scipy.stats import binom

    total = 0.0
    for own in (num_a, num_a + 1):  # people who hold a, of 201
        others = 201 - own
        law = np.convolve(
            binom.pmf(range(own + 1), own, truth),
            binom.pmf(range(others + 1), others, 1.0 - truth),
        )
        total += float(law.max()) / 2.0
    return total


def _figure(name: str, caption: str, *charts: Chart, correction: str = "") -> Figure:
    """Return a figure in the strokes of this paper; exact lines are pale below approximations."""
    strokes = dict(STROKES)
    if any(line.kind == APPROXIMATION for chart in charts for line in chart.lines):
        strokes |= {
            each: STROKES[each] | {"linewidth": 4.5, "alpha": 0.35} for each in (BOTH, SHUFFLER)
        }
    return Figure(name=name, caption=caption, charts=charts, strokes=strokes, correction=correction)


def _up_to_200(settings: Settings) -> Sequence[int]:
    """Return all numbers of users, or a few with both ends."""
    return [1, 2, 20, 200] if settings.quick else range(1, 201)


def _noisy_lines(
    domain_size: int,
    truths: Sequence[float],
    sizes: Sequence[int],
    printed: Mapping[float, Mapping[float, str]] | None = None,
) -> list[Line]:
    """Return N as a level and NS over the number of users, for each truth probability."""
    lines = []
    for truth in truths:
        bounds = [leakage.shuffled_vulnerability(size, domain_size, truth) for size in sizes]
        known = (printed or {}).get(truth)
        lines.append(line_of_bounds(BOTH, f"p = {truth:g}", sizes, bounds, known))
        lines.append(Line(kind=RANDOMIZER, variant=f"p = {truth:g}", y=(truth,)))
    return lines


def _compared(
    domain_size: int, truth: float, sizes: Sequence[int], kind: str, name: str
) -> list[Line]:
    """Return the exact numbers and both approximations."""
    kept = (domain_size * truth - 1.0) / (domain_size - 1.0)  # of the excess over 1/k, Eq. (17)
    bounds = [leakage.shuffled_vulnerability(size, domain_size, truth) for size in sizes]
    return [
        line_of_bounds(kind, name, sizes, bounds),
        *(
            Line(
                kind=formula,
                variant=name,
                x=tuple(map(float, sizes)),
                y=tuple(1.0 / domain_size + kept * each for each in excesses),
            )
            for formula, excesses in _approximations(domain_size, sizes)
        ),
    ]


def _approximations(k: int, sizes: Sequence[int]) -> list[tuple[str, list[float]]]:
    """Return approximate excesses of the vulnerability of S over 1/k; proof: the results' pages."""
    # Eq. (15) with f = 1.
    published = [math.sqrt(math.log(k) / (k * size)) for size in sizes]
    # Mean and mean square of the largest of k standard normal variables.
    z = np.arange(-12.0, 40.0, 1.0 / 128.0)
    density = np.exp((k - 1) * log_ndtr(z) - 0.5 * z * z) * (k / 128.0 / math.sqrt(2.0 * math.pi))
    mean, square = float(density @ z), float(density @ z**2)
    ours = [(mean * math.sqrt(size / k) + (square - 1.0) / 6.0) / size for size in sizes]
    return [(PUBLISHED, published), (APPROXIMATION, ours)]


FIGURES = {
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
    "6": figure_6,
    "7": figure_7,
    **{name: channel_table(name) for name in TABLES},
}

if __name__ == "__main__":
    main(FIGURES)
