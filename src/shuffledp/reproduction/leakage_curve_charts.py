"""What an adversary guesses of one collection, as charts."""

from dataclasses import replace

from shuffledp.leakage.curves import LeakageCurve
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    line_of_bounds,
)

_CAPTION = """\
Probability that the best adversary, {adversary}, guesses one person's value in one try; uniform
prior, k = {k:,} values, k-ary randomized response with truth probability p = {p:g}{users}. Against
{against}. Blind guess: {prior:.6g}."""

_SHADED = " Shaded: between proved ends, where only these are known."

_Y_LABEL = "probability of a right guess"
_EXCESS_LABEL = f"{_Y_LABEL} less 1/k"
_ADVERSARIES = {
    "uninformed": "who knows nothing of anybody",
    "strong": "who knows the values of all others",
}
# Values above the prior by a smaller share are rounding.
_NOTHING = 1e-12
# Values that differ by a smaller share are drawn as a level, enclosures as lines.
_FLAT = 1e-6
_X_LABELS = {
    "uninformed": "number of users n",
    "strong": "share of the other users that hold one value",
}


def curve_figure(curve: LeakageCurve) -> LeakageFigure:
    """Return a chart of a curve, and one that shows how far it is from a blind guess.

    Parameters
    ----------
    curve : LeakageCurve
        Of either adversary.

    Returns
    -------
    LeakageFigure
        Without a number.
    """
    is_uninformed = curve.adversary == "uninformed"
    chart = Chart(
        name="",
        title=f"{curve.adversary} adversary, k = {curve.num_values:,}, p = {curve.truth:g}",
        x_label=_X_LABELS[curve.adversary],
        y_label=_Y_LABEL,
        lines=(
            line_of_bounds(Seen.BOTH, "", curve.x, curve.both),
            line_of_bounds(Seen.SHUFFLER, "", curve.x, curve.shuffler),
            Line(seen=Seen.RANDOMIZER, y=(curve.randomizer,)),
            Line(seen=Seen.NOTHING, y=(curve.prior,)),
        ),
        x_scale="log" if is_uninformed else "linear",
        mark=float(curve.num_users) if is_uninformed else None,
        mark_label=f"n = {curve.num_users:,}",
    )
    caption = _CAPTION.format(
        adversary=_ADVERSARIES[curve.adversary],
        k=curve.num_values,
        p=curve.truth,
        users="" if is_uninformed else f", n = {curve.num_users:,} users",
        against=_X_LABELS[curve.adversary],
        prior=curve.prior,
    )
    bounds = (*curve.shuffler, *curve.both)
    if any(each.upper - (each.lower or 0.0) > _FLAT * each.upper for each in bounds):
        caption += _SHADED
    second = _excess(curve, chart) if is_uninformed else _close_up(curve, chart)
    return LeakageFigure(name="", caption=caption, charts=(chart, second))


def _excess(curve: LeakageCurve, chart: Chart) -> Chart:
    """Return the same lines less the blind guess, on logarithmic axes: they fall as 1/sqrt(n)."""
    return replace(
        chart,
        title="more than a blind guess",
        y_label=_EXCESS_LABEL,
        lines=tuple(
            replace(line, y=tuple(value - curve.prior for value in line.y), lower=())
            for line in chart.lines
            if max(line.y) > curve.prior * (1.0 + _NOTHING)
        ),
        y_scale="log",
    )


def _close_up(curve: LeakageCurve, chart: Chart) -> Chart:
    """Return k-RR and shuffle less the blind guess; two values jump with what is known."""
    both = chart.lines[0]
    line = replace(
        both,
        y=tuple(value - curve.prior for value in both.y),
        lower=tuple(max(value - curve.prior, 0.0) for value in both.lower),
        is_scattered=curve.num_values == 2,
    )
    least, most = min(line.lower), max(line.y)
    is_flat = most - least <= _FLAT * most
    return replace(
        chart,
        title=f"{both.seen.value}, more than a blind guess",
        y_label=_EXCESS_LABEL,
        lines=(line,),
        y_limits=(0.9 * most, 1.1 * most) if is_flat else None,
    )
