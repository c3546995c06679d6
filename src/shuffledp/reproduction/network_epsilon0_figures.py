"""Fig. 6, 7 and 8 of Liew et al.: the amplified epsilon against epsilon0, when walks have mixed."""

from collections.abc import Iterable
from typing import TypeAlias, get_args

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.network.curves import point_epsilons
from shuffledp.network.graphs.graph import Graph
from shuffledp.network.hiding import ReportingProtocol
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.spectra.spectral_bounds import rounds_to_mix
from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure
from shuffledp.reproduction.network_graphs import GRAPHS, load_graph
from shuffledp.reproduction.network_stationary import (
    law_with_irregularity,
    printed_epsilon,
    stationary_epsilon,
)
from shuffledp.reproduction.settings import Settings

_DELTA = 1e-6
_SEPARATION = 0.01
_EPSILON0 = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
_QUICK = (0.2, 1.0)
_TOP = 8.0
_X_LABEL = "local epsilon0 (nats)"
_Y_LABEL = "central epsilon (nats)"

_IRREGULARITIES = (1.0, 10.0, 50.0)
_MIDDLE = 10**5

Case: TypeAlias = tuple[str, int, float, ReportingProtocol]
"""Name of a line, number of users, Gamma, protocol."""

_GRAPHS_CAPTION = """\
Fig. 6. Central epsilon against epsilon0 on real graphs, protocol "all", delta = {delta:g} in all,
after as many rounds as are proved to bring each report's law within {separation:.0%} of the
stationary one: {graphs}. Ours (solid) is within about one percent of a uniform shuffler of as many
users, so it depends on the number of users alone. Published (dashed): Theorem 5.3, corrected for
the remaining distance; it amplifies at small epsilon0 only. web-Google, the fifth graph of the
paper, is not to be had here. The thin line is epsilon0 itself."""

_PROTOCOLS_CAPTION = """\
Fig. 7. Protocols "all" and "single" on the Twitch graph ({n:,} users) after {rounds} rounds, delta
= {delta:g} in all, against epsilon0. Ours (solid), published theorems, corrected (dashed): 5.3 for
"all", 5.5 for "single", which needs dummies that look like reports; ours does not. By ours
"single" hides somewhat better at every epsilon0: only about {held:,.0f} reports are handed in,
each user's with probability {share:.2f} or so on average, which weighs more than the smaller
crowd. The analyst pays for it (Fig. 9). The paper's other graph, web-Google, is not to be had
here."""

_STATIONARY_CAPTION = """\
Fig. 8. Central epsilon at stationarity against epsilon0, delta = {delta:g} in all; no graph. (a)
number of users n, regular graph, protocol "all"; (b) irregularity Gamma = n sum pi^2, n = {n:,},
protocol "all": ours does not depend on it; (c) protocol, n = {n:,}, Gamma = {gamma:g}. Ours
(solid), published theorems as printed (dotted), which at stationarity are bounds. Where only Gamma
is given we take the law in which one of Gamma users holds all reports evenly; ours for "single"
depends on the whole law. n and Gamma are ours: the text that we have of the paper has lost
them."""


def graphs_figure(settings: Settings, _entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 6.

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
    lines: list[Line] = []
    words = []
    for index, (key, file) in enumerate(GRAPHS.items()):
        graph = load_graph(key, settings)
        mixing, rounds = _mixed(graph)
        words.append(f"{file.title} ({graph.num_users:,} users), {rounds:,} rounds")
        lines += _lines_on(mixing, rounds, "all", file.title, settings)
        settings.progress("figure 6: graphs", index + 1, len(GRAPHS))
    caption = _GRAPHS_CAPTION.format(delta=_DELTA, separation=_SEPARATION, graphs="; ".join(words))
    chart = _chart("", 'real graphs, protocol "all"', lines, settings)
    return NetworkFigure(name="6", caption=caption, charts=(chart,))


def protocols_figure(settings: Settings, _entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 7.

    Parameters
    ----------
    settings : Settings
        Where the Twitch graph is, and how many points to compute.
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
        If the graph is not there.
    """
    graph = load_graph("twitch", settings)
    mixing, rounds = _mixed(graph)
    lines = [
        line
        for protocol in get_args(ReportingProtocol)
        for line in _lines_on(mixing, rounds, protocol, protocol, settings)
    ]
    law = graph.stationary_law()
    held = float(-np.expm1(graph.num_users * np.log1p(-law)).sum())
    caption = _PROTOCOLS_CAPTION.format(
        n=graph.num_users,
        rounds=rounds,
        delta=_DELTA,
        held=held,
        share=held / graph.num_users,
    )
    chart = _chart("", f"Twitch, {rounds} rounds", lines, settings)
    return NetworkFigure(name="7", caption=caption, charts=(chart,))


def stationary_figure(settings: Settings, _entropy: Entropy) -> NetworkFigure:
    """Compute Fig. 8.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    NetworkFigure
        Panels a, b and c.
    """
    middle = 1_000 if settings.quick else _MIDDLE
    counts = (100, 1_000) if settings.quick else (10**4, 10**5, 10**6)
    gamma = _IRREGULARITIES[1]
    by_count: list[Case] = [(f"n = {count:,}", count, 1.0, "all") for count in counts]
    by_gamma: list[Case] = [(f"Gamma = {each:g}", middle, each, "all") for each in _IRREGULARITIES]
    by_protocol: list[Case] = [(each, middle, gamma, each) for each in get_args(ReportingProtocol)]
    charts = (
        _chart("a", 'users, protocol "all"', _stationary_lines(by_count, settings), settings),
        _chart(
            "b",
            f'irregularity, n = {middle:,}, "all"',
            _stationary_lines(by_gamma, settings),
            settings,
        ),
        _chart(
            "c", f"protocol, n = {middle:,}", _stationary_lines(by_protocol, settings), settings
        ),
    )
    caption = _STATIONARY_CAPTION.format(delta=_DELTA, n=middle, gamma=gamma)
    return NetworkFigure(name="8", caption=caption, charts=charts)


def _chart(name: str, title: str, lines: Iterable[Line], settings: Settings) -> Chart:
    """Return a chart over epsilon0, with epsilon0 itself as a line."""
    epsilon0s = _epsilon0s(settings)
    itself = Line(claim=Claim.LOCAL, x=epsilon0s, y=epsilon0s)
    return Chart(
        name=name,
        title=title,
        x_label=_X_LABEL,
        y_label=_Y_LABEL,
        lines=(*lines, itself),
        x_scale="log",
        top=_TOP,
    )


def _stationary_lines(cases: Iterable[Case], settings: Settings) -> list[Line]:
    """Return ours and the published theorem for each number of users, Gamma and protocol."""
    lines = []
    epsilon0s = _epsilon0s(settings)
    for name, num_users, gamma, protocol in cases:
        law = law_with_irregularity(num_users, gamma)
        notes = (f"n = {num_users}, Gamma = {num_users * float(law @ law):g}, {protocol}",)
        ours = tuple(
            stationary_epsilon(LocalProfile(epsilon0=each), law, delta=_DELTA, protocol=protocol)
            for each in epsilon0s
        )
        published = tuple(
            printed_epsilon(
                LocalProfile(epsilon0=each),
                num_users,
                float(law @ law),
                delta=_DELTA,
                protocol=protocol,
            )
            for each in epsilon0s
        )
        for claim, values in ((Claim.OURS, ours), (Claim.PRINTED, published)):
            lines.append(
                Line(
                    claim=claim,
                    variant=name,
                    x=epsilon0s,
                    y=values,
                    notes=notes * len(epsilon0s),
                )
            )
        settings.progress(f"figure 8: {name}", 1, 1)
    return lines


def _epsilon0s(settings: Settings) -> tuple[float, ...]:
    """Return the points of the horizontal axis."""
    return _QUICK if settings.quick else _EPSILON0


def _mixed(graph: Graph) -> tuple[NetworkMixing, int]:
    """Return the graph, prepared, and the fewest rounds that are proved to mix."""
    mixing = NetworkMixing(graph, method="spectral")
    return mixing, rounds_to_mix(mixing.spectrum, separation=_SEPARATION)


def _lines_on(
    mixing: NetworkMixing,
    rounds: int,
    protocol: ReportingProtocol,
    name: str,
    settings: Settings,
) -> list[Line]:
    """Return ours, the published theorem and, for "all", the uniform shuffler, on one graph."""
    epsilon0s = _epsilon0s(settings)
    points = [
        point_epsilons(LocalProfile(epsilon0=each), mixing, rounds, delta=_DELTA, protocol=protocol)
        for each in epsilon0s
    ]
    notes = (f"{rounds} rounds",) * len(epsilon0s)
    return [
        Line(
            claim=Claim.OURS,
            variant=name,
            x=epsilon0s,
            y=tuple(ours for ours, _ in points),
            notes=notes,
        ),
        Line(
            claim=Claim.CORRECTED,
            variant=name,
            x=epsilon0s,
            y=tuple(published for _, published in points),
            notes=notes,
        ),
    ]
