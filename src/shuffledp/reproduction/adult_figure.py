"""Fig. 8 of Meehan et al.: the UCI Adult census, with age as the public value."""

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.datasets.adult import INCOMES, AdultCensus, load_adult
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
from shuffledp.reproduction.settings import Settings

_ATTACK_RADIUS = 1.0  # years

_CAPTION = """\
Fig. 8. UCI Adult census ({n:,} people): age is public, whether the income exceeds 50,000 dollars is
private, marital status is the attacker's privileged knowledge. k-ary randomized response with
epsilon0 = 2.5; groups are the people within r years of each other; Kendall. (a) Share of people
whose income a majority vote over 25 people within {radius:g} year(s) of the same age, those of the
same marital status first, gets right in at least 90 % of {resamplings} resamplings; alpha = 4. (b)
The same over alpha, r = {fixed:g}. (c) lambda: error of the law of incomes by age that a
calibrated model learns, corrected for the randomizer's noise, over that of the uniform guess;
alpha = 4. Error bars: one standard deviation over {trials} trials, {models} of models. A
share above that of the uniform shuffle is what the order gives away: most people earn little, so
some guesses are right anyway.
One age alone has up to 900 people, so at alpha = 4 theta is so small that both mechanisms nearly
shuffle uniformly; (b) shows from where on they do not, and by how much the exact sensitivity keeps
more."""


def adult_figure(settings: Settings, entropy: Entropy) -> ChartFigure:
    """Compute Fig. 8.

    Parameters
    ----------
    settings : Settings
        Where the census is, and how much to compute.
    entropy : Entropy
        Seeded for a figure that can be drawn again.

    Returns
    -------
    ChartFigure
        Panels a, b and c.

    Raises
    ------
    ParameterError
        If no folder with data was given.
    DataError
        If the census is not there.
    """
    if settings.data is None:
        raise ParameterError("figure 8 needs the UCI Adult census: give --data FOLDER")
    census = load_adult(settings.data, fetch=settings.fetch, on_progress=settings.on_progress)
    if settings.quick:
        census = census.first(1_500)
    survey = _survey(census, settings)
    radii = (0, 5) if settings.quick else (0, 1, 2, 3, 5, 8, 12)
    alphas = (1.0, 1e4) if settings.quick else (1.0, 4.0, 1e2, 1e3, 1e4, 1e5, 1e6)
    fixed = float(radii[1])
    over_radius = [*ENDS]
    for radius in radii:
        groups = _groups(census, radius)
        over_radius += within_groups(
            groups, settings.alpha, radius, coordinates=survey.require_public()
        )
    varied = over_alpha(_groups(census, fixed), alphas, coordinates=survey.require_public())
    years, share_label = "radius r of the groups (years)", "share of vulnerable people, rho"
    panels = (
        Panel(
            name="a",
            title="Adult, attack",
            x_label=years,
            y_label=share_label,
            curves=vulnerable_shares(survey, over_radius, settings, entropy, "figure 8a"),
        ),
        Panel(
            name="b",
            title=f"Adult, attack, r = {fixed:g}",
            x_label="alpha (nats)",
            y_label=share_label,
            curves=vulnerable_shares(survey, varied, settings, entropy, "figure 8b"),
            x_scale="log",
        ),
        Panel(
            name="c",
            title="Adult, learnability",
            x_label=years,
            y_label="lambda (0 perfect, 1 uniform guess)",
            curves=learned_errors(survey, over_radius, settings, entropy, "figure 8c"),
            trials=settings.model_trials,
        ),
    )
    caption = _CAPTION.format(
        n=census.num_users,
        radius=_ATTACK_RADIUS,
        resamplings=settings.resamplings,
        fixed=fixed,
        trials=settings.trials,
        models=settings.model_trials,
    )
    return ChartFigure(name="8", caption=caption, trials=settings.trials, panels=panels)


def _survey(census: AdultCensus, settings: Settings) -> AttackedSurvey:
    """Return the people as attacks see them."""
    return AttackedSurvey(
        codes=census.incomes,
        randomizer=KRandomizedResponse(k=len(INCOMES), epsilon0=settings.epsilon0),
        neighbourhoods=_groups(census, _ATTACK_RADIUS),
        privileged=census.marital_statuses,
        is_category=np.array([True]),
        public=census.ages.astype(np.float64),
    )


def _groups(census: AdultCensus, radius: float) -> Groups:
    """Return the people within so many years of each other; people of one age share a group."""
    return Groups.from_distance(census.ages, radius, metric="absolute")
