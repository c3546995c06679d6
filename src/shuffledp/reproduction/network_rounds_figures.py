"""Fig. 4 and Fig. 5 of Liew et al.: epsilon against rounds, on real and on regular graphs."""

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.network.curves import (
    NetworkCurve,
    curve_of,
    network_curve,
    spread_rounds,
)
from shuffledp.network.graphs.families import random_regular_graph
from shuffledp.network.mixing import NetworkMixing
from shuffledp.reproduction.network_charts import Claim, Line, NetworkFigure
from shuffledp.reproduction.network_curve_charts import rounds_chart
from shuffledp.reproduction.network_graphs import GRAPHS, load_graph
from shuffledp.reproduction.network_stationary import printed_epsilon
from shuffledp.reproduction.settings import Settings

# The published theorem amplifies at small epsilon0 only, so this is where it can be compared.
_PROFILE = LocalProfile(epsilon0=0.5)
_DELTA = 1e-6

# The three of Table 4 with around the same number of users; web-Google has far more, Twitch less.
_SIMILAR = ("facebook", "deezer", "enron")

_DEGREES = (3, 5, 10, 20, 50)

_REAL_CAPTION = """\
Fig. 4. Central epsilon against rounds, protocol "all", epsilon0 = {epsilon0:g}, delta = {delta:g}
in all: {graphs}. Ours (solid): for every user, by eigenvalues, and never above epsilon0. Published
theorem as printed (dotted): Theorem 5.3 with Eq. (7), which is not a bound on these graphs before
the walk has mixed, since Eq. (7) holds on regular graphs only. Corrected (dashed): the same
theorem with what is proved after any number of rounds on any graph. Levels: a trusted uniform
shuffler of as many users, which ours reaches. epsilon0 and delta are ours: the text that we have
of the paper has lost its formulas. The graphs are the largest components."""

_REGULAR_CAPTION = """\
Fig. 5. Central epsilon against rounds on random k-regular graphs of {n:,} users, protocol "all",
epsilon0 = {epsilon0:g}, delta = {delta:g} in all. Ours (solid): exact laws of the positions from
each start, the worst user. Corrected (dashed): the published theorem with the collision
probability of the exact laws. Theorem 5.4, which the paper draws here, is not drawn: its proof
does not hold. After few rounds a walk is back near its start at even rounds more often than at odd
ones, and users that it cannot reach hide nobody. Degrees, n, epsilon0 and delta are ours: the text
that we have of the paper has lost them."""


def real_graphs_figure(settings: Settings, _entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 4.

    Parameters
    ----------
    settings : Settings
        Where the graphs are, and how many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    NetworkFigure
        One chart.

    Raises
    ------
    ParameterError
        If no folder with data was given.
    DataError
        If a graph is not there.
    """
    rounds = (1, 30, 1_000) if settings.quick else spread_rounds(100, 10_000, 28)
    curves, printed = [], []
    for key in _SIMILAR:
        report = settings.staged("figure 4")
        mixing = NetworkMixing(load_graph(key, settings), method="spectral", on_progress=report)
        curves.append(
            curve_of(
                mixing,
                _PROFILE,
                name=GRAPHS[key].title,
                rounds=rounds,
                delta=_DELTA,
                on_progress=report,
            )
        )
        printed.append(_printed_line(mixing, curves[-1]))
    caption = _REAL_CAPTION.format(
        epsilon0=_PROFILE.epsilon0,
        delta=_DELTA,
        graphs="; ".join(f"{each.name}, {each.num_users:,} users" for each in curves),
    )
    chart = rounds_chart(curves, "real graphs", printed)
    return NetworkFigure(name="4", caption=caption, charts=(chart,))


def regular_graphs_figure(settings: Settings, entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 5.

    Parameters
    ----------
    settings : Settings
        How large the graphs are.
    entropy : Entropy
        Draws the graphs.

    Returns
    -------
    NetworkFigure
        One chart.
    """
    num_users, degrees = (300, (3, 10)) if settings.quick else (10_000, _DEGREES)
    curves = [
        network_curve(
            random_regular_graph(num_users, degree, entropy.spawn()),
            _PROFILE,
            name=f"k = {degree}",
            rounds=_rounds_of(degree, quick=settings.quick),
            delta=_DELTA,
            method="exact",
            on_progress=settings.staged("figure 5"),
        )
        for degree in degrees
    ]
    caption = _REGULAR_CAPTION.format(n=num_users, epsilon0=_PROFILE.epsilon0, delta=_DELTA)
    chart = rounds_chart(curves, f"k-regular graphs, n = {num_users:,}")
    return NetworkFigure(name="5", caption=caption, charts=(chart,))


def _rounds_of(degree: int, *, quick: bool) -> tuple[int, ...]:
    """Return rounds until the walk has mixed; each is drawn while it still oscillates."""
    if quick:
        return (1, 2, 3, 10)
    last = {3: 100, 5: 60, 10: 30}.get(degree, 20)
    return tuple(sorted({*range(1, min(last, 16) + 1), *spread_rounds(16, last, 12), last}))


def _printed_line(mixing: NetworkMixing, curve: NetworkCurve) -> Line:
    """Return Theorem 5.3 with equation (7), as printed, at the same rounds."""
    limit = mixing.graph.irregularity / curve.num_users
    rate = mixing.spectrum.second_eigenvalue
    return Line(
        claim=Claim.PRINTED,
        variant=curve.name,
        x=tuple(map(float, curve.rounds)),
        y=tuple(
            printed_epsilon(
                _PROFILE,
                curve.num_users,
                min(limit + rate ** (2 * rounds), 1.0),
                delta=curve.delta,
                protocol="all",
            )
            for rounds in curve.rounds
        ),
    )
