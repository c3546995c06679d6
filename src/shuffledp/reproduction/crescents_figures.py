"""Fig. 1 and Fig. 5 of Meehan et al.: what can be told from a release, at which granularity."""

from collections.abc import Iterable

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.datasets.crescents import LABELS, coarser, draw_crescents
from shuffledp.groups.attacks.attacked_survey import AttackedSurvey
from shuffledp.groups.attacks.attacking import attack_by_gaussian_process
from shuffledp.groups.attacks.gaussian_process import gaussian_process_guess
from shuffledp.groups.attacks.learning import learn_classes
from shuffledp.groups.attacks.trials import Measured
from shuffledp.groups.formation.groups import Groups
from shuffledp.randomizers.categories.k_randomized_response import KRandomizedResponse
from shuffledp.reproduction.experiments import (
    ENDS,
    Placed,
    arrangements_of,
    curves_of,
    within_groups,
)
from shuffledp.reproduction.figure_data import (
    ChartFigure,
    Curve,
    MapFigure,
    MapPanel,
    Panel,
)
from shuffledp.reproduction.settings import Settings

_WAYS = (8, 4, 2)

# Fig. 1: the paper's epsilon and alpha.
_MAP_EPSILON0, _MAP_ALPHA = 2.55, 1.0

_MAP_CAPTION = """\
Fig. 1. {n:,} people on two pairs of crescents (the public position), eight private labels at three
granularities: halves (8-way), crescents (4-way), clusters (2-way). Above: the label in each
person's place, in truth; as reported with k-ary randomized response, epsilon0 = 2.55; shuffled
within groups of radius r_a = {small:g} and r_b = {large:g} with alpha = 1, as published and with
the exact sensitivity; shuffled uniformly. Below: the guesses of a Gaussian-process correlation
attack on one release, with the mean share of right ones over {trials} further releases. Where
nothing is left, guesses are an arbitrary smooth map, which may be right in many places by chance:
1/8, 1/4 and 1/2 on average. Set and radii are ours: the paper does not give its own. At the same
alpha the exact sensitivity moves reports less far, so more of the map remains; the guarantee alpha
is the same."""

_CHART_CAPTION = """\
Fig. 5. Accuracy of gradient-boosted trees that are trained on the release of {n:,} people of the
crescents (epsilon0 = 2.5, alpha = 4, Kendall) and tested on as many others, who took no part:
8-way, 4-way and 2-way, over the radius of the groups. Error bars: one standard deviation over
{trials} trials (reports, shuffles and models; the people stay). The largest label alone would be
right for 1/8, 1/4 and 1/2."""


def map_figure(settings: Settings, entropy: Entropy) -> MapFigure:
    """Compute Fig. 1.

    Parameters
    ----------
    settings : Settings
        How many people.
    entropy : Entropy
        Seeded for a figure that can be drawn again.

    Returns
    -------
    MapFigure
        Truth, local reports, groups of two radii by both mechanisms, uniform.
    """
    people = draw_crescents(400 if settings.quick else 20_000, entropy)
    radii = (0.2, 0.6) if settings.quick else (0.045, 0.08)
    randomizer = KRandomizedResponse(k=len(LABELS), epsilon0=_MAP_EPSILON0)
    reports = randomizer.randomize(people.labels, entropy).data
    panels = [MapPanel(series=None, title="truth", released=people.labels)]
    columns: list[tuple[str, Placed]] = [("local reports", ENDS[0])]
    for name, radius in zip(("r_a", "r_b"), radii, strict=True):
        groups = Groups.from_distance(people.points, radius)
        pair = within_groups(groups, _MAP_ALPHA, radius, coordinates=people.points)
        columns += [(f"{name}, as published", pair[0]), (f"{name}, exact", pair[1])]
    columns.append(("uniform shuffle", ENDS[1]))
    trials = 1 if settings.quick else 5
    survey = AttackedSurvey(
        codes=people.labels,
        randomizer=randomizer,
        neighbourhoods=Groups.from_distance(people.points, radii[0]),
        public=people.points,
    )
    accuracy = attack_by_gaussian_process(
        survey,
        arrangements_of(placed for _, placed in columns),
        label_maps={f"{ways}": coarser(np.arange(len(LABELS)), ways) for ways in _WAYS},
        num_trials=trials,
        entropy=entropy,
        on_progress=settings.staged("figure 1"),
    )
    for title, placed in columns:
        released = placed.arrangement.arranged(reports, entropy)
        guess = gaussian_process_guess(
            people.points, released, num_values=len(LABELS), entropy=entropy
        )
        panels.append(
            MapPanel(
                series=placed.series,
                title=title,
                released=released,
                guessed=guess.guesses.astype(np.uint8),
                accuracy=_by_ways(accuracy, placed),
                note=placed.note,
            )
        )
    return MapFigure(
        name="1",
        caption=_MAP_CAPTION.format(
            n=people.labels.size, small=radii[0], large=radii[1], trials=trials
        ),
        trials=trials,
        points=people.points,
        label_names=LABELS,
        panels=tuple(panels),
    )


def accuracy_figure(settings: Settings, entropy: Entropy) -> ChartFigure:
    """Compute Fig. 5.

    Parameters
    ----------
    settings : Settings
        How many people and trials.
    entropy : Entropy
        Seeded for a figure that can be drawn again.

    Returns
    -------
    ChartFigure
        One panel a granularity.
    """
    num_users = 400 if settings.quick else 20_000
    radii = (0.3,) if settings.quick else (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4)
    people, others = (draw_crescents(num_users, entropy) for _ in range(2))
    placed = [*ENDS]
    for index, radius in enumerate(radii):
        groups = Groups.from_distance(people.points, radius)
        placed += within_groups(groups, settings.alpha, radius, coordinates=people.points)
        settings.progress("figure 5: reference orders", index + 1, len(radii))
    survey = AttackedSurvey(
        codes=people.labels,
        randomizer=KRandomizedResponse(k=len(LABELS), epsilon0=settings.epsilon0),
        neighbourhoods=Groups.from_distance(people.points, radii[0]),
        public=people.points,
    )
    results = learn_classes(
        survey,
        arrangements_of(placed),
        others.points,
        others.labels,
        label_maps={f"{ways}": coarser(np.arange(len(LABELS)), ways) for ways in _WAYS},
        num_trials=settings.model_trials,
        entropy=entropy,
        on_progress=settings.staged("figure 5"),
    )
    return ChartFigure(
        name="5",
        caption=_CHART_CAPTION.format(n=num_users, trials=settings.model_trials),
        trials=settings.model_trials,
        panels=tuple(
            _panel(ways, curves_of(placed, [r for r in results if r.measure == f"{ways}"]))
            for ways in _WAYS
        ),
    )


def _panel(ways: int, curves: tuple[Curve, ...]) -> Panel:
    """Return the chart of one granularity."""
    return Panel(
        name="",
        title=f"{ways}-way classification",
        x_label="radius of the groups (crescents have radius 1)",
        y_label="accuracy on other people",
        curves=curves,
        x_scale="log",
    )


def _by_ways(results: Iterable[Measured], placed: Placed) -> dict[int, float]:
    """Return the mean accuracy of an arrangement at each granularity."""
    return {
        ways: result.mean
        for result in results
        for ways in _WAYS
        if result.arrangement == placed.arrangement.name and result.measure == f"accuracy, {ways}"
    }
