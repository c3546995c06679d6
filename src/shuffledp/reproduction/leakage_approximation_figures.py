"""Fig. 6 and 7 of Jurado et al.: approximations of what an uninformed adversary guesses."""

from collections.abc import Sequence
from dataclasses import replace

from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.leakage.curves import spread_sizes
from shuffledp.leakage.loads.maximum_load import (
    asymptotic_excess,
    maximum_load_excess,
    published_approximation,
)
from shuffledp.leakage.uninformed.closed_forms import shuffled_vulnerability
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    line_of_bounds,
)
from shuffledp.reproduction.settings import Settings

_NUMBERS_OF_VALUES = (3, 4, 5)
_SIZES = (10, 1000)
_POINTS = 41
_RATIO_SIZES = (10, 10**6)

_FOUR = 4
_TRUTHS = (1.0, 0.8, 0.6)
_NOISY_SIZES = range(6, 201)  # Eq. (14) asks for n >= k ln k, that is 5.5

_USERS = "number of users n"
_GUESSED = "probability of a right guess"

_OURS = """\
Ours (dashed) is 1/k + mu/sqrt(k n) + (s - 1)/(6 n), where mu and s are the means of the maximum of
k standard normals and of its square"""

_SHUFFLE_CAPTION = """\
Fig. 6. Probability that an uninformed adversary who sees shuffled values without noise (S) guesses
one person's in one try; uniform prior. Exact (solid), and the published approximation (dotted):
1/k + f sqrt(ln k / (k n)) with f = 1. {ours}. The right chart is ours: the approximate excess over
1/k by the exact one. The published one does not come closer as n grows, since f tends to mu /
sqrt(ln k), which is 0.81, 0.87 and 0.92 for k = 3, 4 and 5. The text that we have leaves the range
of n out: it is ours."""

_NOISE_CAPTION = """\
Fig. 7. Probability that an uninformed adversary guesses one person's value in one try under k-RR
and shuffle (NS), k = 4 values, uniform prior. Exact (solid; S alone at p = 1), and the published
approximation (dotted): Theorem 22 with f = 1. {ours}, its excess over 1/k times (k p - 1)/(k - 1).
The text that we have leaves the range of n out: it is ours, from n >= k ln k on, as the theorem
asks."""


def shuffle_approximation_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 6.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    LeakageFigure
        The paper's chart, and one of ratios.
    """
    points = 3 if settings.quick else _POINTS
    lines: list[Line] = []
    ratios: list[Line] = []
    for index, num_values in enumerate(_NUMBERS_OF_VALUES):
        name = f"k = {num_values}"
        sizes = spread_sizes(*_SIZES, points)
        lines += _compared(num_values, 1.0, sizes, Seen.SHUFFLER, name)
        ratios += _ratios(num_values, spread_sizes(*_RATIO_SIZES, points), name)
        settings.progress("figure 6: numbers of values", index + 1, len(_NUMBERS_OF_VALUES))
    chart = _chart("a", "shuffle alone", lines)
    ratio = replace(
        chart,
        name="b",
        title="excess over 1/k, approximate by exact",
        y_label="ratio",
        lines=tuple(ratios),
    )
    caption = _SHUFFLE_CAPTION.format(ours=_OURS)
    return LeakageFigure(name="6", caption=caption, charts=(chart, ratio))


def noise_approximation_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 7.

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
    sizes = [_NOISY_SIZES[0], 20, _NOISY_SIZES[-1]] if settings.quick else list(_NOISY_SIZES)
    lines: list[Line] = []
    for index, truth in enumerate(_TRUTHS):
        lines += _compared(_FOUR, truth, sizes, Seen.BOTH, f"p = {truth:g}")
        settings.progress("figure 7: truth probabilities", index + 1, len(_TRUTHS))
    chart = replace(_chart("", "k-RR and shuffle, k = 4 values", lines), x_scale="linear")
    return LeakageFigure(name="7", caption=_NOISE_CAPTION.format(ours=_OURS), charts=(chart,))


def _chart(name: str, title: str, lines: Sequence[Line]) -> Chart:
    """Return a chart over the number of users."""
    return Chart(
        name=name,
        title=title,
        x_label=_USERS,
        y_label=_GUESSED,
        lines=tuple(lines),
        x_scale="log",
    )


def _compared(
    num_values: int, truth: float, sizes: Sequence[int], seen: Seen, name: str
) -> list[Line]:
    """Return the exact numbers and both approximations."""
    xs = tuple(map(float, sizes))
    kept = (num_values * truth - 1.0) / (num_values - 1.0)  # of the excess over 1/k, Eq. (17)
    bounds: list[Bound] = [shuffled_vulnerability(size, num_values, truth) for size in sizes]
    return [
        line_of_bounds(seen, name, xs, bounds),
        *(
            Line(
                seen=formula,
                variant=name,
                x=xs,
                y=tuple(1.0 / num_values + kept * each for each in excesses),
            )
            for formula, excesses in _approximations(num_values, sizes)
        ),
    ]


def _ratios(num_values: int, sizes: Sequence[int], name: str) -> list[Line]:
    """Return the excess by each approximation over the exact excess."""
    exact = [maximum_load_excess(size, num_values).upper / size for size in sizes]
    return [
        Line(
            seen=seen,
            variant=name,
            x=tuple(map(float, sizes)),
            y=tuple(each / true for each, true in zip(excesses, exact, strict=True)),
        )
        for seen, excesses in _approximations(num_values, sizes)
    ]


def _approximations(num_values: int, sizes: Sequence[int]) -> list[tuple[Seen, list[float]]]:
    """Return approximate excesses of the vulnerability of S over 1/k."""
    return [
        (
            Seen.PUBLISHED,
            [published_approximation(size, num_values) - 1.0 / num_values for size in sizes],
        ),
        (Seen.APPROXIMATION, [asymptotic_excess(size, num_values) / size for size in sizes]),
    ]
