"""Curves of epsilon against rounds as a chart."""

from collections.abc import Iterator, Sequence

from shuffledp.network.curves import NetworkCurve
from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure

# A published bound may be far above epsilon0, where it says nothing.
_TOP = 4.0

_CAPTION = """\
Central epsilon against rounds of an exchange through a network, protocol "{protocol}", epsilon0 =
{epsilon0:g}, delta = {delta:g}. {graphs}. Ours: for every user, safe to publish. Published: Liew et
al., "Network Shuffling", arXiv:2204.03919, in the form that is proved after any number of rounds on
any graph; where it exceeds epsilon0 it says nothing."""


def curves_figure(curves: Sequence[NetworkCurve]) -> NetworkFigure:
    """Return one chart of curves of the same epsilon0, delta and protocol.

    Parameters
    ----------
    curves : sequence of NetworkCurve
        At least one; each graph has a colour.

    Returns
    -------
    NetworkFigure
        Without a number.
    """
    one = curves[0]
    graphs = "; ".join(
        f"{each.name}: {each.num_users:,} users, {each.num_edges:,} edges, {each.method} bounds"
        for each in curves
    )
    caption = _CAPTION.format(
        protocol=one.protocol, epsilon0=one.epsilon0, delta=one.delta, graphs=graphs
    )
    title = f'protocol "{one.protocol}", epsilon0 = {one.epsilon0:g}, delta = {one.delta:g}'
    return NetworkFigure(name="", caption=caption, charts=(rounds_chart(curves, title),))


def rounds_chart(curves: Sequence[NetworkCurve], title: str, further: Sequence[Line] = ()) -> Chart:
    """Return a chart of the curves, the uniform shuffler's levels, epsilon0, and further lines.

    Parameters
    ----------
    curves : sequence of NetworkCurve
        At least one.
    title : str
        Above the chart.
    further : sequence of Line
        Drawn besides.

    Returns
    -------
    Chart
        Over the number of rounds: on a logarithmic axis where the last is 50 times the first.
    """
    one = curves[0]
    last, first = max(each.rounds[-1] for each in curves), min(each.rounds[0] for each in curves)
    return Chart(
        name="",
        title=title,
        x_label="rounds",
        y_label="central epsilon (nats)",
        lines=(*_lines(curves), *further, Line(claim=Claim.LOCAL, y=(one.epsilon0,))),
        x_scale="log" if first > 0 and last >= 50 * first else "linear",
        top=_TOP * one.epsilon0,
    )


def _lines(curves: Sequence[NetworkCurve]) -> Iterator[Line]:
    """Yield the lines of all graphs; one level for all of them where they have as many users."""
    levels = {each.uniform_epsilon for each in curves}
    for each in curves:
        rounds = tuple(map(float, each.rounds))
        notes = (f"{each.method} bounds",) * len(rounds)
        yield Line(claim=Claim.OURS, variant=each.name, x=rounds, y=each.epsilon, notes=notes)
        if each.epsilon_of_most:
            name = f"{each.name}, 99 % of users"
            yield Line(claim=Claim.OURS, variant=name, x=rounds, y=each.epsilon_of_most)
        if any(value is not None for value in each.published):
            yield Line(claim=Claim.CORRECTED, variant=each.name, x=rounds, y=each.published)
        if len(levels) > 1:
            yield Line(claim=Claim.UNIFORM, variant=each.name, y=(each.uniform_epsilon,))
    if len(levels) == 1:
        yield Line(claim=Claim.UNIFORM, y=tuple(levels))
