"""Fig. 7 of Meehan et al.: how much of a set of reports stays in the set's own places."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.orders.sensitivity import paper_sensitivity, sensitivity
from shuffledp.groups.permutations.mallows import mallows_model
from shuffledp.reproduction.figure_data import ChartFigure, Curve, Panel, Series
from shuffledp.reproduction.settings import Settings

_DELTA = 0.01
_FIXED_ALPHA = 3.0
_WIDTHS = (30, 100, 300)
_SHARES = (0.1, 0.25, 0.5, 0.8)
_SHARE_OF_FIRST_PANEL = 0.25
# Of the places that a group spans, its members take every fifth: such gaps are what reference
# orders of overlapping groups have, and what the exact sensitivity makes use of.
_SPACING = 5

_Y_LABEL = "eta: share of S preserved"

_CAPTION = """\
(eta, delta)-preservation of Mallows permutations under Kendall's distance: n = {n:,} reports, delta
= 0.01. S is the middle of the reference order. For each point {trials} permutations are drawn; eta
is the largest share of S that stays in S in at least 99 % of them (below 100 draws: in all).
(a) against alpha, S = 25 % of the reports; (b) against the width of the widest group, alpha = 3;
(c) against the size of S, alpha = 3. The published sensitivity w(w+1)/2 depends on the width w
alone; for a group that fills its places it is exact, so both mechanisms are then the same (solid).
Where the members take every fifth place of the width only, the exact sensitivity is about a quarter
of it, and more is preserved at the same alpha (dashed)."""


def preservation_figure(settings: Settings, entropy: Entropy) -> ChartFigure:
    """Compute Fig. 7.

    Parameters
    ----------
    settings : Settings
        How many reports and trials.
    entropy : Entropy
        Seeded for a figure that can be drawn again.

    Returns
    -------
    ChartFigure
        Panels a, b and c.
    """
    num_items, trials = (400, 5) if settings.quick else (10_000, 50)
    alphas = (0.3, 3.0, 30.0) if settings.quick else tuple(np.geomspace(0.1, 100.0, 13).tolist())
    widths = (10, 100) if settings.quick else (5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
    shares = (0.1, 0.5) if settings.quick else (0.02, 0.05, *np.arange(0.1, 1.0, 0.1).tolist())
    done = 0

    def etas(theta: float, of_shares: Sequence[float]) -> list[float]:
        """Draw permutations and return eta for each size of S."""
        nonlocal done
        kept = preserved_shares(num_items, theta, of_shares, trials=trials, entropy=entropy)
        done += 1
        settings.progress("figure 7: permutations", done * trials, None)
        return [largest_eta(column, _DELTA) for column in kept.T]

    panels = (
        Panel(
            name="a",
            title=f"S = {_SHARE_OF_FIRST_PANEL:.0%} of the reports",
            x_label="alpha (nats)",
            y_label=_Y_LABEL,
            curves=tuple(_over_alpha(alphas, etas)),
            x_scale="log",
        ),
        Panel(
            name="b",
            title=f"alpha = {_FIXED_ALPHA:g}",
            x_label="width of the widest group (places)",
            y_label=_Y_LABEL,
            curves=tuple(_over_width(widths, etas)),
            x_scale="log",
        ),
        Panel(
            name="c",
            title=f"alpha = {_FIXED_ALPHA:g}",
            x_label="size of S (share of the reports)",
            y_label=_Y_LABEL,
            curves=tuple(_over_share(shares, etas)),
        ),
    )
    return ChartFigure(
        name="7",
        caption=_CAPTION.format(n=num_items, trials=trials),
        trials=trials,
        panels=panels,
    )


def preserved_shares(
    num_items: int, theta: float, shares: Sequence[float], *, trials: int, entropy: Entropy
) -> NDArray[np.float64]:
    """Draw Kendall-Mallows permutations; return how much of the middle stays in the middle.

    Parameters
    ----------
    num_items : int
        Length of the permutations, >= 1.
    theta : float
        Dispersion, in [0, inf].
    shares : sequence of float
        Sizes of the set S, as shares of all places; S is the middle of the order.
    trials : int
        Permutations to draw.
    entropy : Entropy
        Where they come from.

    Returns
    -------
    ndarray, shape (trials, len(shares))
        Share of the places of S whose report came from S.
    """
    model = mallows_model("kendall", num_items, theta)
    kept = np.empty((trials, len(shares)))
    for row in kept:
        came_from = model.sample(entropy)
        for column, share in enumerate(shares):
            size = max(1, round(share * num_items))
            first = (num_items - size) // 2
            inside = came_from[first : first + size]
            row[column] = np.mean((inside >= first) & (inside < first + size))
    return kept


def largest_eta(kept: NDArray[np.float64], delta: float) -> float:
    """Return the largest share that at least 1 - delta of the trials preserved.

    Examples
    --------
    >>> largest_eta(np.array([0.9, 0.5, 0.7]), 0.01), largest_eta(np.arange(200.0), 0.01)
    (0.5, 2.0)
    """
    return float(np.sort(kept)[math.floor(delta * kept.size)])


def theta_for(series: Series, width: int, alpha: float) -> float:
    """Return the dispersion that gives alpha to a group that spans ``width + 1`` places.

    The published rule looks at the width only; ours at a group of every fifth of these places.
    """
    places = np.arange(width + 1)
    alone = [[place] for place in places.tolist()]
    groups = Groups.from_sets([places[::_SPACING].tolist(), *alone], num_users=width + 1)
    if series is Series.PUBLISHED:
        return alpha / paper_sensitivity(groups, places)
    return alpha / sensitivity("kendall", groups, places)


_Etas = Callable[[float, Sequence[float]], list[float]]
_BOTH = (Series.PUBLISHED, Series.OURS)


def _over_alpha(alphas: Sequence[float], etas: _Etas) -> list[Curve]:
    """Return one curve a width and mechanism."""
    curves = []
    for series in _BOTH:
        for width in _WIDTHS:
            thetas = [theta_for(series, width, alpha) for alpha in alphas]
            values = [etas(theta, (_SHARE_OF_FIRST_PANEL,))[0] for theta in thetas]
            curves.append(_curve(series, f"width {width}", alphas, values, thetas))
    return curves


def _over_width(widths: Sequence[int], etas: _Etas) -> list[Curve]:
    """Return one curve a size of S and mechanism; the sizes share the draws."""
    curves = []
    for series in _BOTH:
        thetas = [theta_for(series, width, _FIXED_ALPHA) for width in widths]
        table = [etas(theta, _SHARES) for theta in thetas]
        for share, values in zip(_SHARES, zip(*table, strict=True), strict=True):
            curves.append(_curve(series, f"S = {share:.0%}", widths, values, thetas))
    return curves


def _over_share(shares: Sequence[float], etas: _Etas) -> list[Curve]:
    """Return one curve a width and mechanism; all sizes share the draws."""
    curves = []
    for series in _BOTH:
        for width in _WIDTHS:
            theta = theta_for(series, width, _FIXED_ALPHA)
            values = etas(theta, shares)
            curves.append(_curve(series, f"width {width}", shares, values, [theta] * len(shares)))
    return curves


def _curve(
    series: Series,
    variant: str,
    x: Sequence[float],
    values: Sequence[float],
    thetas: Sequence[float],
) -> Curve:
    """Return a curve with theta as its note; these are quantiles, so there are no deviations."""
    return Curve(
        series=series,
        variant=variant,
        x=tuple(map(float, x)),
        mean=tuple(values),
        notes=tuple(f"theta={theta:.6g}" for theta in thetas),
    )
