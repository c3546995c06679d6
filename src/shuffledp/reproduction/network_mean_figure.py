"""Fig. 9 of Liew et al.: the mean of vectors, against the central epsilon that it costs."""

from collections.abc import Callable, Iterator
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.network.hiding import ReportingProtocol
from shuffledp.randomizers.vectors.privunit import PrivUnit
from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure
from shuffledp.reproduction.network_graphs import load_graph
from shuffledp.reproduction.network_mean_estimation import (
    SquaredErrors,
    expected_empty_users,
    heterogeneous_vectors,
    squared_errors,
)
from shuffledp.reproduction.network_stationary import (
    printed_epsilon,
    stationary_epsilon,
)
from shuffledp.reproduction.settings import Settings

_DELTA = 1e-6
_EPSILON0 = (0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
_QUICK = (0.5, 2.0)

# As in the paper; for other graphs the expected number itself.
_TWITCH_USERS = 9_498
_PAPER_DUMMIES = 7_080

# Where the published theorem gives more, nobody would use it, and the axis would be stretched.
_MOST_EPSILON = 10.0

_CAPTION = """\
Fig. 9. Squared error of the mean of {d}-dimensional unit vectors against the central epsilon, on
the Twitch graph ({n:,} users) at stationarity, delta = {delta:g} in all; PrivUnit with the best
parameters, epsilon0 from {first:g} to {last:g}. Dotted: accounted by the published theorems as
printed, up to epsilon = {most:g}. Solid: by ours, with PrivUnit's own law. "single, dummies
counted" is the published estimate: {dummies:,} dummies, reports of the zero vector, are taken for
answers, so that the mean is drawn to zero however large epsilon is. "single, empty answers
recognised" leaves them out: {held:,.0f} reports or so remain. Error bars: one standard deviation
over {trials} trials. The paper finds "all" better throughout its region. Here that is so where
epsilon is large; where it is small, counted dummies help, but an error above {norm:.2f} is worse
than answering zero. Recognised empty answers come close to "all" by our account. The paper's 7,080
is its expected number of users without a report; from its graph we find {empty:,.0f}. Data in the
manner of Chen, Kairouz and Ozgur, arXiv:2007.11707, which the paper follows: coordinates normal
around 1 for half of the users and around 10 for the others, variance 1, then each vector has norm
1; centres, dummies and delta are ours, since the text that we have of the paper has lost them."""

Run: TypeAlias = tuple[PrivUnit, SquaredErrors]
"""A randomizer, and how far off its estimates were."""

_RECOGNISED = "single, empty answers recognised"

_VARIANTS: tuple[
    tuple[str, ReportingProtocol, Callable[[SquaredErrors], NDArray[np.float64]]], ...
] = (
    ("all", "all", lambda errors: errors.all_reports),
    ("single, dummies counted", "single", lambda errors: errors.with_dummies),
    (_RECOGNISED, "single", lambda errors: errors.without_dummies),
)


def mean_figure(settings: Settings, entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 9.

    Parameters
    ----------
    settings : Settings
        Where the Twitch graph is, and how much to compute.
    entropy : Entropy
        Draws the vectors and their reports.

    Returns
    -------
    NetworkFigure
        One chart.

    Raises
    ------
    ParameterError
        If no folder with data was given.
    DataError
        If the graph is not there.
    """
    law = load_graph("twitch", settings).stationary_law()
    epsilon0s, dimension = (_QUICK, 10) if settings.quick else (_EPSILON0, 200)
    empty = expected_empty_users(law, law.size)
    dummies = _PAPER_DUMMIES if law.size == _TWITCH_USERS else round(empty)
    vectors = heterogeneous_vectors(law.size, dimension, entropy.spawn())
    runs = _runs(
        law,
        epsilon0s,
        vectors=vectors,
        num_dummies=dummies,
        settings=settings,
        entropy=entropy,
    )
    caption = _CAPTION.format(
        d=dimension,
        n=law.size,
        delta=_DELTA,
        first=epsilon0s[0],
        last=epsilon0s[-1],
        most=_MOST_EPSILON,
        dummies=dummies,
        held=law.size - empty,
        trials=settings.trials,
        empty=empty,
        norm=float(np.sum(vectors.mean(axis=0) ** 2)),
    )
    chart = Chart(
        name="",
        title=f"PrivUnit, d = {dimension}, Twitch",
        x_label="central epsilon (nats)",
        y_label="squared error of the mean",
        lines=tuple(line for line in _lines(law, runs) if line.x),
        x_scale="log",
    )
    return NetworkFigure(name="9", caption=caption, charts=(chart,), trials=settings.trials)


def _runs(
    law: NDArray[np.float64],
    epsilon0s: tuple[float, ...],
    *,
    vectors: NDArray[np.float64],
    num_dummies: int,
    settings: Settings,
    entropy: Entropy,
) -> list[Run]:
    """Return what was found with PrivUnit at each epsilon0, for the same vectors."""
    runs = []
    for index, epsilon0 in enumerate(epsilon0s):
        randomizer = PrivUnit(dimension=vectors.shape[1], epsilon0=epsilon0)
        errors = squared_errors(
            randomizer,
            vectors,
            law,
            num_dummies=num_dummies,
            trials=settings.trials,
            entropy=entropy.spawn(),
        )
        runs.append((randomizer, errors))
        settings.progress("figure 9: means", index + 1, len(epsilon0s))
    return runs


def _lines(law: NDArray[np.float64], runs: list[Run]) -> Iterator[Line]:
    """Yield each way to estimate, by both accounts."""
    profiles = [randomizer.profile for randomizer, _ in runs]
    accounts = {
        protocol: (
            [stationary_epsilon(each, law, delta=_DELTA, protocol=protocol) for each in profiles],
            [
                printed_epsilon(each, law.size, float(law @ law), delta=_DELTA, protocol=protocol)
                for each in profiles
            ],
        )
        for protocol in get_args(ReportingProtocol)
    }
    for name, protocol, of_variant in _VARIANTS:
        samples = [of_variant(errors) for _, errors in runs]
        notes = [f"{protocol}, epsilon0 = {each.epsilon0:.6g}" for each in profiles]
        for claim, epsilons in zip((Claim.OURS, Claim.PRINTED), accounts[protocol], strict=True):
            if claim is Claim.PRINTED and name == _RECOGNISED:
                continue  # the theorem is about dummies that look like reports
            yield _line(claim, name, epsilons, samples, notes)


def _line(
    claim: Claim,
    name: str,
    epsilons: list[float],
    samples: list[NDArray[np.float64]],
    notes: list[str],
) -> Line:
    """Return errors over the central epsilon, as far as the axis goes."""
    kept = [index for index, epsilon in enumerate(epsilons) if epsilon <= _MOST_EPSILON]
    return Line(
        claim=claim,
        variant=name,
        x=tuple(epsilons[index] for index in kept),
        y=tuple(float(samples[index].mean()) for index in kept),
        deviation=tuple(float(samples[index].std(ddof=1)) for index in kept),
        notes=tuple(notes[index] for index in kept),
    )
