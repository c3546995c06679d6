"""Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3: shuffling within groups, as published and with the exact sensitivity.

Panels 4 (a, c) need discharge data of Texan hospitals, which may not be passed on. Figures 4 and 8
need data. Run it with ``python papers/meehan_2022.py --data FOLDER --out FOLDER``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from charts import Chart, Figure, Line, new_drawing, save
from paper import Settings, main
from people import (
    LABELS,
    coarser,
    draw_crescents,
    graph_coordinates,
    groups_of_nearest,
    nearest_in_graph,
)
from public_data import load_adult, load_twitch
from releases import (
    ALPHA,
    ENDS,
    EPSILON0,
    OURS,
    PUBLISHED,
    STROKES,
    UNIFORM,
    class_accuracies,
    learned_errors,
    model_trials,
    over_alpha,
    paper_sensitivity,
    resamplings,
    vulnerable_shares,
    within_groups,
)
from shuffledp import Entropy
from shuffledp.groups import Groups, MallowsModel
from shuffledp.groups.attacks.adversaries import attack_by_gaussian_process, gaussian_process_guess
from shuffledp.groups.attacks.survey import AttackedSurvey, Traits
from shuffledp.groups.reference_orders import sensitivity
from shuffledp.randomizers import KRandomizedResponse

_WAYS = (8, 4, 2)
_MERGED = {f"{ways}": coarser(np.arange(len(LABELS)), ways) for ways in _WAYS}


# ---------------------------------------------------------------- Fig. 1 and 5: crescents


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of Fig. 1: what is released, and what the attack makes of it."""

    title: str
    kind: str = "truth"
    released: NDArray[Any]  # label in each person's place
    guessed: NDArray[Any] | None = None  # None for the truth
    accuracy: dict[int, float] = field(default_factory=dict)  # by number of labels told apart
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """People as dots on maps, coloured by label."""

    caption: str
    trials: int
    points: NDArray[np.float64]
    columns: tuple[Column, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one line an attack and granularity."""
        for column in self.columns:
            for ways, share in column.accuracy.items():
                yield {
                    "figure": "1",
                    "kind": column.kind,
                    "title": column.title,
                    "labels_told_apart": ways,
                    "attack_accuracy": share,
                    "trials": self.trials,
                    "people": self.points.shape[0],
                    "settings": column.note,
                }

    def draw(self, path: Path) -> None:
        """Draw what is released above what the attack makes of it."""
        drawing = new_drawing((1.9 * len(self.columns), 6.2))
        axes = drawing.subplots(2, len(self.columns), squeeze=False, sharex=True, sharey=True)
        for top, bottom, column in zip(*axes, self.columns, strict=True):
            self._draw_map(top, column.released)
            top.set_title(column.title, fontsize=9)
            if column.guessed is None:
                bottom.set_axis_off()
                continue
            self._draw_map(bottom, column.guessed)
            shares = " / ".join(f"{share:.0%}" for share in column.accuracy.values())
            bottom.set_title(f"8 / 4 / 2-way right:\n{shares}", fontsize=8)
        axes[0, 0].set_ylabel("released labels")
        axes[1, 1].set_ylabel("attacker's guesses")
        handles = [
            Line2D([], [], marker="o", linestyle="", color=colour, label=name)
            for name, colour in zip(LABELS, _LABEL_COLOURS, strict=True)
        ]
        axes[1, 0].legend(handles=handles, loc="center", fontsize=8, frameon=False)
        save(drawing, path)

    def _draw_map(self, axis: Any, codes: NDArray[Any]) -> None:
        """Draw one map, of some 5,000 people."""
        axis.set(xticks=[], yticks=[], aspect="equal")
        step = max(1, codes.size // 5_000)
        x, y = self.points[::step].T
        axis.scatter(x, y, c=np.array(_LABEL_COLOURS)[codes[::step]], s=1.5, linewidths=0)


# Warm cluster: reds and oranges; cool cluster: blues and greens; dark and light halves.
_LABEL_COLOURS = (
    *("#9E1B0A", "#F0776B", "#C77700", "#FFC857"),
    *("#08458C", "#6FB1F0", "#00634B", "#5FD0AE"),
)
_MAP_EPSILON0 = 2.55


def figure_1(settings: Settings, entropy: Entropy) -> Maps:
    """Eight labels on crescents: what is released, and what a Gaussian process makes of it."""
    points, labels = draw_crescents(400 if settings.quick else 20_000, entropy)
    radii = (0.2, 0.6) if settings.quick else (0.045, 0.08)
    randomizer = KRandomizedResponse(domain_size=len(LABELS), epsilon0=_MAP_EPSILON0)
    reports = randomizer.randomize(labels, entropy).data
    wanted = [("local reports", ENDS[0])]
    for name, radius in zip(("r_a", "r_b"), radii, strict=True):
        groups = Groups.from_distance(points, radius)
        pair = within_groups(groups, [(1.0, radius)], points)
        wanted += zip((f"{name}, as published", f"{name}, exact"), pair, strict=True)
    wanted.append((UNIFORM, ENDS[1]))
    trials = 1 if settings.quick else 5
    survey = AttackedSurvey(
        codes=labels,
        randomizer=randomizer,
        neighbourhoods=Groups.from_distance(points, radii[0]),
        public=points,
    )
    accuracy = attack_by_gaussian_process(
        survey,
        [placed.arrangement for _, placed in wanted],
        label_maps=_MERGED,
        num_trials=trials,
        entropy=entropy,
    )
    found = {(each.arrangement, each.measure): each.mean for each in accuracy}
    columns = [Column(title="truth", released=labels)]
    for title, placed in wanted:
        released = placed.arrangement.arranged(reports, entropy)
        guess = gaussian_process_guess(points, released, domain_size=len(LABELS), entropy=entropy)
        columns.append(
            Column(
                kind=placed.kind,
                title=title,
                released=released,
                guessed=guess,
                accuracy={
                    ways: found[placed.arrangement.name, f"accuracy, {ways}"] for ways in _WAYS
                },
                note=placed.note,
            )
        )
    caption = f"""\
Fig. 1. {labels.size:,} people on two pairs of crescents (the public position), eight private labels
at three granularities: halves (8-way), crescents (4-way), clusters (2-way). Above: the label in
each person's place, in truth; as reported with k-ary randomized response, epsilon0 =
{_MAP_EPSILON0}; shuffled within groups of radius r_a = {radii[0]:g} and r_b = {radii[1]:g} with
alpha = 1, as published and with the exact sensitivity; shuffled uniformly. Below: the guesses of a
Gaussian-process correlation attack on one release, with the mean share of right ones over {trials}
further releases. Where nothing is left, guesses are an arbitrary smooth map, which may be right in
many places by chance: 1/8, 1/4 and 1/2 on average. Set and radii are ours: the paper does not give
its own. At the same alpha the exact sensitivity moves reports less far, so more of the map remains;
the guarantee alpha is the same."""
    return Maps(caption=caption, trials=trials, points=points, columns=tuple(columns))


def figure_5(settings: Settings, entropy: Entropy) -> Figure:
    """Crescents: accuracy of 8-, 4- and 2-way classifiers over the radius of the groups."""
    num_users = 400 if settings.quick else 20_000
    radii = (0.3,) if settings.quick else (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4)
    points, labels = draw_crescents(num_users, entropy)
    others = draw_crescents(num_users, entropy)
    placed = [*ENDS]
    for radius in radii:
        placed += within_groups(Groups.from_distance(points, radius), [(ALPHA, radius)], points)
    survey = AttackedSurvey(
        codes=labels,
        randomizer=KRandomizedResponse(domain_size=len(LABELS), epsilon0=EPSILON0),
        neighbourhoods=Groups.from_distance(points, radii[0]),
        public=points,
    )
    trials = model_trials(settings)
    lines = class_accuracies(survey, placed, settings, entropy, others=others, label_maps=_MERGED)
    charts = tuple(
        Chart(
            title=f"{ways}-way classification",
            x_label="radius of the groups (crescents have radius 1)",
            y_label="accuracy on other people",
            lines=lines[f"{ways}"],
            x_scale="log",
            trials=trials,
        )
        for ways in _WAYS
    )
    caption = f"""\
Fig. 5. Accuracy of gradient-boosted trees that are trained on the release of {num_users:,} people
of the crescents (epsilon0 = 2.5, alpha = 4, Kendall) and tested on as many others, who took no
part: 8-way, 4-way and 2-way, over the radius of the groups. Error bars: one standard deviation over
{trials} trials (reports, shuffles and models; the people stay). The largest label alone would be
right for 1/8, 1/4 and 1/2."""
    return Figure(name="5", caption=caption, charts=charts, strokes=STROKES)


# ---------------------------------------------------------------- Fig. 4 and 8: real people


def figure_4(settings: Settings, entropy: Entropy) -> Figure:
    """Twitch, with friendships public: attack and learnability over group size and alpha."""
    edges, mature = load_twitch(settings)
    if settings.quick:
        edges, mature = edges[(edges < 600).all(axis=1)], mature[:600]
    num_users, columns = mature.size, 16
    sizes = (5, 40) if settings.quick else (2, 5, 10, 20, 50, 100, 200, 500)
    alphas = (4.0, 1e4) if settings.quick else (4.0, 40.0, 400.0, 4e3, 4e4, 4e5, 4e6)
    public = graph_coordinates(edges, num_users, columns)
    nearest = nearest_in_graph(edges, num_users, max(sizes))
    survey = AttackedSurvey(
        codes=mature,
        randomizer=KRandomizedResponse(domain_size=2, epsilon0=EPSILON0),
        neighbourhoods=Groups.from_graph(edges, num_users=num_users),
        public=public,
    )
    placed = [*ENDS]
    for size in sizes:
        placed += within_groups(groups_of_nearest(nearest, size), [(ALPHA, size)])
    varied = over_alpha(groups_of_nearest(nearest, sizes[1]), alphas)
    by_size = {"x_label": "group size (people)", "x_scale": "log"}
    by_alpha = {"x_label": "alpha (nats)", "x_scale": "log"}
    attacked = vulnerable_shares(survey, placed, settings, entropy)
    learned = learned_errors(survey, placed, settings, entropy)
    over = learned_errors(survey, varied, settings, entropy)
    charts = (
        Chart(name="b", title="Twitch, attack", **by_size, **attacked),
        Chart(name="d", title="Twitch, learnability", **by_size, **learned),
        Chart(name="d'", title=f"over alpha, groups of {sizes[1]}", **by_alpha, **over),
    )
    caption = f"""\
Fig. 4 (b, d). Twitch Germany ({num_users:,} streamers): friendships are public, whether a streamer
uses explicit language is private. k-ary randomized response with epsilon0 = 2.5, alpha = 4,
Kendall. A group is a streamer and the nearest others in the graph (fewest hops, then most common
friends). (b) Share of streamers whose answer a majority vote over 25 random people among themselves
and their friends gets right in at least 90 % of {resamplings(settings)} resamplings of reports and
shuffle (the paper keeps one shuffle for all of them, which gives other shares). (d) lambda:
error of the law of answers among friends that a calibrated model learns, corrected for the
randomizer's noise, over that of the uniform guess; the model sees {columns} leading eigenvectors of
the graph instead of rows of its adjacency matrix. (d') The same over alpha, groups of {sizes[1]}.
Error bars: one standard deviation over {settings.trials} trials, {model_trials(settings)} of
models. The graph is well connected and has hubs, so no order keeps all groups together. At alpha =
4 theta is so small that a report moves across the whole order, and both mechanisms nearly shuffle
uniformly, although the exact sensitivity gives a theta of 20 to 1,400 times the published one; (d')
shows from which alpha on that difference is seen."""
    return Figure(name="4", caption=caption, charts=charts, strokes=STROKES)


def figure_8(settings: Settings, entropy: Entropy) -> Figure:
    """UCI Adult, with age public: attack and learnability over the radius, attack over alpha."""
    census = load_adult(settings)
    if settings.quick:
        census = census.head(1_500)
    ages = census["age"].to_numpy()
    radii = (0, 5) if settings.quick else (0, 1, 2, 3, 5, 8, 12)
    alphas = (1.0, 1e4) if settings.quick else (1.0, 4.0, 1e2, 1e3, 1e4, 1e5, 1e6)
    survey = AttackedSurvey(
        codes=(census["income"] == ">50K").to_numpy().astype(np.uint8),
        randomizer=KRandomizedResponse(domain_size=2, epsilon0=EPSILON0),
        neighbourhoods=_of_an_age(ages, 1),
        privileged=Traits(
            census["marital_status"].rank("dense").cast(pl.Float64).to_numpy()[:, None],
            is_category=np.array([True]),
        ),
        public=ages.astype(np.float64),
    )
    public = survey.require_public()
    placed = [*ENDS]
    for radius in radii:
        placed += within_groups(_of_an_age(ages, radius), [(ALPHA, radius)], public)
    varied = over_alpha(_of_an_age(ages, radii[1]), alphas, public)
    years = "radius r of the groups (years)"
    attacked = vulnerable_shares(survey, placed, settings, entropy)
    over = vulnerable_shares(survey, varied, settings, entropy)
    learned = learned_errors(survey, placed, settings, entropy)
    fixed = f"Adult, attack, r = {radii[1]}"
    charts = (
        Chart(name="a", title="Adult, attack", x_label=years, **attacked),
        Chart(name="b", title=fixed, x_label="alpha (nats)", x_scale="log", **over),
        Chart(name="c", title="Adult, learnability", x_label=years, **learned),
    )
    caption = f"""\
Fig. 8. UCI Adult census ({ages.size:,} people): age is public, whether the income exceeds 50,000
dollars is private, marital status is the attacker's privileged knowledge. k-ary randomized response
with epsilon0 = 2.5; groups are the people within r years of each other; Kendall. (a) Share of
people whose income a majority vote over 25 people within 1 year(s) of the same age, those of the
same marital status first, gets right in at least 90 % of {resamplings(settings)} resamplings of
reports and shuffle (the paper keeps one shuffle for all of them); alpha = 4. (b) The same over
alpha, r = {radii[1]}. (c) lambda: error of the law of incomes by age that a calibrated model
learns, corrected for the randomizer's noise, over that of the uniform guess; alpha = 4. Error bars:
one standard deviation over {settings.trials} trials, {model_trials(settings)} of models. A share
above that of the uniform shuffle is what the order gives away: most people earn little, so some
guesses are right anyway. One age alone has up to 900 people, so at alpha = 4 theta is so small that
both mechanisms nearly shuffle uniformly; (b) shows from where on they do not, and by how much the
exact sensitivity keeps more."""
    return Figure(name="8", caption=caption, charts=charts, strokes=STROKES)


def _of_an_age(ages: NDArray[np.int64], radius: float) -> Groups:
    """Return the people within so many years of each other; people of one age share a group."""
    return Groups.from_distance(ages, float(radius), metric="absolute")


# ---------------------------------------------------------------- Fig. 7: preservation

_FIXED_ALPHA, _WIDTHS, _SHARES = 3.0, (30, 100, 300), (0.1, 0.25, 0.5, 0.8)


def figure_7(settings: Settings, entropy: Entropy) -> Figure:
    """Share of a set of reports that stays in place, over alpha, width and size."""
    num_items, trials = (400, 5) if settings.quick else (10_000, 50)
    alphas = (0.3, 3.0, 30.0) if settings.quick else tuple(np.geomspace(0.1, 100.0, 13).tolist())
    widths = (10, 100) if settings.quick else (5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
    shares = (0.1, 0.5) if settings.quick else (0.02, 0.05, *np.arange(0.1, 1.0, 0.1).tolist())
    panels: dict[str, list[Line]] = {"a": [], "b": [], "c": []}

    def etas(theta: float, of_shares: Sequence[float]) -> list[float]:
        """Draw permutations and return eta for each size of S."""
        kept = preserved_shares(num_items, theta, of_shares, trials=trials, entropy=entropy)
        return [largest_eta(column, 0.01) for column in kept.T]

    for kind in (PUBLISHED, OURS):
        for width in _WIDTHS:
            thetas = [theta_for(kind, width, alpha) for alpha in alphas]
            values = [etas(theta, (0.25,))[0] for theta in thetas]
            panels["a"].append(_eta_line(kind, f"width {width}", alphas, values, thetas))
    for kind in (PUBLISHED, OURS):
        thetas = [theta_for(kind, width, _FIXED_ALPHA) for width in widths]
        columns = zip(*(etas(theta, _SHARES) for theta in thetas), strict=True)
        for share, column in zip(_SHARES, columns, strict=True):
            panels["b"].append(_eta_line(kind, f"S = {share:.0%}", widths, column, thetas))
    for kind in (PUBLISHED, OURS):
        for width in _WIDTHS:
            theta = theta_for(kind, width, _FIXED_ALPHA)
            line = _eta_line(
                kind, f"width {width}", shares, etas(theta, shares), [theta] * len(shares)
            )
            panels["c"].append(line)
    words = {
        "a": ("S = 25% of the reports", "alpha (nats)", "log"),
        "b": (f"alpha = {_FIXED_ALPHA:g}", "width of the widest group (places)", "log"),
        "c": (f"alpha = {_FIXED_ALPHA:g}", "size of S (share of the reports)", "linear"),
    }
    charts = tuple(
        Chart(
            name=name,
            title=title,
            x_label=x_label,
            y_label="eta: share of S preserved",
            lines=tuple(panels[name]),
            x_scale=x_scale,
            trials=trials,
        )
        for name, (title, x_label, x_scale) in words.items()
    )
    caption = f"""\
(eta, delta)-preservation of Mallows permutations under Kendall's distance: n = {num_items:,}
reports, delta = 0.01. S is the middle of the reference order. For each point {trials} permutations
are drawn; eta is the largest share of S that stays in S in at least 99 % of them (below 100 draws:
in all). (a) against alpha, S = 25 % of the reports; (b) against the width of the widest group,
alpha = 3; (c) against the size of S, alpha = 3. The published sensitivity w(w+1)/2 depends on the
width w alone; for a group that fills its places it is exact, so both mechanisms are then the same
(solid). Where the members take every fifth place of the width only, the exact sensitivity is about
a quarter of it, and more is preserved at the same alpha (dashed)."""
    return Figure(name="7", caption=caption, charts=charts, strokes=STROKES)


def preserved_shares(
    num_items: int, theta: float, shares: Sequence[float], *, trials: int, entropy: Entropy
) -> NDArray[np.float64]:
    """Draw Kendall-Mallows permutations; return the shares of the middle that stay there."""
    model = MallowsModel(distance="kendall", num_items=num_items, theta=theta)
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

    >>> largest_eta(np.array([0.9, 0.5, 0.7]), 0.01), largest_eta(np.arange(200.0), 0.01)
    (0.5, 2.0)
    """
    return float(np.sort(kept)[math.floor(delta * kept.size)])


def theta_for(kind: str, width: int, alpha: float) -> float:
    """Return the dispersion that gives alpha to a group that spans ``width + 1`` places.

    The published rule looks at the width only; ours at a group of every fifth of these places:
    such gaps are what reference orders of overlapping groups have.
    """
    places = np.arange(width + 1)
    alone = [[place] for place in places.tolist()]
    groups = Groups.from_sets([places[::5].tolist(), *alone], num_users=width + 1)
    if kind == PUBLISHED:
        return alpha / paper_sensitivity(groups, places)
    return alpha / sensitivity("kendall", groups, places)


def _eta_line(
    kind: str, variant: str, x: Sequence[float], y: Sequence[float], thetas: Sequence[float]
) -> Line:
    """Return a line with theta as its note; these are quantiles, so there are no deviations."""
    notes = tuple(f"theta={theta:.6g}" for theta in thetas)
    return Line(kind=kind, variant=variant, x=tuple(map(float, x)), y=tuple(y), notes=notes)


FIGURES = {
    "1": figure_1,
    "4": figure_4,
    "5": figure_5,
    "7": figure_7,
    "8": figure_8,
}

if __name__ == "__main__":
    main(FIGURES)
