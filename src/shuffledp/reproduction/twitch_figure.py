"""Fig. 4 (b, d) of Meehan et al.: Twitch, with friendships as the public value."""

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.datasets.twitch import MATURE, load_twitch
from shuffledp.groups.attacks.attacked_survey import AttackedSurvey
from shuffledp.groups.formation.groups import Groups
from shuffledp.randomizers.categories.k_randomized_response import KRandomizedResponse
from shuffledp.reproduction.experiments import (
    ENDS,
    learned_errors,
    over_alpha,
    vulnerable_shares,
    within_groups,
)
from shuffledp.reproduction.figure_data import ChartFigure, Panel
from shuffledp.reproduction.graph_groups import (
    graph_coordinates,
    groups_of_nearest,
    nearest_in_graph,
)
from shuffledp.reproduction.settings import Settings

_NUM_COORDINATES = 16

_ERROR_LABEL = "lambda (0 perfect, 1 uniform guess)"

_CAPTION = """\
Fig. 4 (b, d). Twitch Germany ({n:,} streamers): friendships are public, whether a streamer uses
explicit language is private. k-ary randomized response with epsilon0 = 2.5, alpha = 4, Kendall. A
group is a streamer and the nearest others in the graph (fewest hops, then most common friends). (b)
Share of streamers whose answer a majority vote over 25 random people among themselves and their
friends gets right in at least 90 % of {resamplings} resamplings. (d) lambda: error of the law of
answers among friends that a calibrated model learns, corrected for the randomizer's noise, over
that of the uniform guess; the model sees {columns} leading eigenvectors of the graph instead of
rows of its adjacency matrix. (d') The same over alpha, groups of {size}. Error bars: one standard
deviation over {trials} trials, {models} of models. The graph is well connected and has hubs, so no
order keeps all groups together. At alpha = 4 theta is so small that a report moves across the whole
order, and both mechanisms nearly shuffle uniformly, although the exact sensitivity gives a theta of
20 to 1,400 times the published one; (d') shows from which alpha on that difference is seen."""


def twitch_figure(settings: Settings, entropy: Entropy) -> ChartFigure:
    """Compute Fig. 4, panels b and d, and d over alpha.

    Parameters
    ----------
    settings : Settings
        Where the graph is, and how much to compute.
    entropy : Entropy
        Seeded for a figure that can be drawn again.

    Returns
    -------
    ChartFigure
        Panels b, d and d'.

    Raises
    ------
    ParameterError
        If no folder with data was given.
    DataError
        If the graph is not there.
    """
    if settings.data is None:
        raise ParameterError("figure 4 needs the Twitch graph: give --data FOLDER")
    friends = load_twitch(settings.data, fetch=settings.fetch, on_progress=settings.on_progress)
    if settings.quick:
        friends = friends.first(600)
    sizes = (5, 40) if settings.quick else (2, 5, 10, 20, 50, 100, 200, 500)
    public = graph_coordinates(friends.edges, friends.num_users, _NUM_COORDINATES)
    nearest = nearest_in_graph(friends.edges, friends.num_users, max(sizes))
    survey = AttackedSurvey(
        codes=friends.mature,
        randomizer=KRandomizedResponse(k=len(MATURE), epsilon0=settings.epsilon0),
        neighbourhoods=Groups.from_graph(friends.edges, num_users=friends.num_users),
        public=public,
    )
    placed = [*ENDS]
    for index, size in enumerate(sizes):
        placed += within_groups(groups_of_nearest(nearest, size), settings.alpha, size)
        settings.progress("figure 4: reference orders", index + 1, len(sizes))
    alphas = (4.0, 1e4) if settings.quick else (4.0, 40.0, 400.0, 4e3, 4e4, 4e5, 4e6)
    varied = over_alpha(groups_of_nearest(nearest, sizes[1]), alphas)
    caption = _CAPTION.format(
        n=friends.num_users,
        resamplings=settings.resamplings,
        columns=_NUM_COORDINATES,
        trials=settings.trials,
        models=settings.model_trials,
        size=sizes[1],
    )
    attack = Panel(
        name="b",
        title="Twitch, attack",
        x_label="group size (people)",
        y_label="share of vulnerable people, rho",
        curves=vulnerable_shares(survey, placed, settings, entropy, "figure 4b"),
        x_scale="log",
    )
    learned = Panel(
        name="d",
        title="Twitch, learnability",
        x_label="group size (people)",
        y_label=_ERROR_LABEL,
        curves=learned_errors(survey, placed, settings, entropy, "figure 4d"),
        x_scale="log",
        trials=settings.model_trials,
    )
    learned_over_alpha = Panel(
        name="d'",
        title=f"over alpha, groups of {sizes[1]}",
        x_label="alpha (nats)",
        y_label=_ERROR_LABEL,
        curves=learned_errors(survey, varied, settings, entropy, "figure 4d'"),
        x_scale="log",
        trials=settings.model_trials,
    )
    panels = (attack, learned, learned_over_alpha)
    return ChartFigure(name="4", caption=caption, trials=settings.trials, panels=panels)
