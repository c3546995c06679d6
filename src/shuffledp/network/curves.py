"""Epsilon against the number of rounds of an exchange through a network, on one graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress
from shuffledp.network.account import MOST, Users, published_epsilon
from shuffledp.network.graphs.graph import Graph
from shuffledp.network.hiding import ReportingProtocol
from shuffledp.network.mixing import Method, NetworkMixing

# Multiply-adds of an exact pass that nobody has to ask for: one or two minutes.
_UNASKED_WORK = 2e11

#: A curve looks smooth with so many points.
MOST_POINTS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCurve:
    """What an exchange guarantees after some numbers of rounds.

    Parameters
    ----------
    name : str
        Of the graph.
    num_users, num_edges : int
        Of the graph.
    protocol : {"all", "single"}
        Which reports holders hand in.
    epsilon0, delta : float
        Local privacy loss, and central failure probability.
    rounds : tuple of int
        Increasing.
    epsilon : tuple of float
        Central epsilon after each, for every user; safe to publish.
    published : tuple of float or None
        The published theorem in its corrected form; None where it says nothing. It may exceed
        epsilon0.
    uniform_epsilon : float
        Of a trusted uniform shuffler; safe to publish.
    method : str
        How the laws of positions were bounded: ``"exact"`` or ``"spectral"``.
    epsilon_of_most : tuple of float
        Central epsilon after each for 99 % of the users; empty unless asked for.
    """

    name: str
    num_users: int
    num_edges: int
    protocol: ReportingProtocol
    epsilon0: float
    delta: float
    rounds: tuple[int, ...]
    epsilon: tuple[float, ...]
    published: tuple[float | None, ...]
    uniform_epsilon: float
    method: str
    epsilon_of_most: tuple[float, ...] = ()

    def rounds_within(self, share: float) -> int | None:
        """Return the first of `rounds` whose epsilon exceeds the uniform one by that share at most.

        Examples
        --------
        >>> curve = NetworkCurve(
        ...     name="", num_users=3, num_edges=3, protocol="all", epsilon0=1.0, delta=0.1,
        ...     rounds=(1, 2), epsilon=(0.5, 0.2), published=(None, None), uniform_epsilon=0.2,
        ...     method="exact",
        ... )
        >>> curve.rounds_within(0.01), curve.rounds_within(-0.5)
        (2, None)
        """
        most = self.uniform_epsilon * (1.0 + share)
        pairs = zip(self.rounds, self.epsilon, strict=True)
        return next((rounds for rounds, epsilon in pairs if epsilon <= most), None)

    def to_json_dict(self) -> dict[str, object]:
        """Return the curve as JSON values."""
        return {
            "name": self.name,
            "num_users": self.num_users,
            "num_edges": self.num_edges,
            "protocol": self.protocol,
            "epsilon0": self.epsilon0,
            "delta": self.delta,
            "rounds": list(self.rounds),
            "epsilon": list(self.epsilon),
            "epsilon_of_most": list(self.epsilon_of_most),
            "paper_epsilon": list(self.published),
            "uniform_epsilon": self.uniform_epsilon,
            "method": self.method,
        }


def network_curve(  # noqa: PLR0913  # one keyword an option
    graph: Graph,
    profile: LocalProfile,
    *,
    name: str,
    rounds: Sequence[int],
    delta: float,
    protocol: ReportingProtocol = "all",
    laziness: float = 0.0,
    method: Method = "auto",
    users: Users = "worst",
    on_progress: Progress | None = None,
) -> NetworkCurve:
    """Compute epsilon after each of some numbers of rounds.

    Parameters
    ----------
    graph : Graph
        Connected, of at least 3 users, and not bipartite unless the walk is lazy.
    profile : LocalProfile
        The randomizer's law.
    name : str
        Of the graph.
    rounds : sequence of int
        At least one, each >= 0; sorted, each once.
    delta : float
        Central failure probability, in (0, 1).
    protocol : {"all", "single"}
        Which reports holders hand in.
    laziness : float
        Chance that a report stays for a round, by a coin of its own; in [0, 1).
    method : {"auto", "exact", "spectral"}
        How the laws of positions are bounded: exactly, from each user's start, or by eigenvalues.
        By default exactly where that takes a minute or two.
    users : {"worst", "all"}
        "all" for the epsilon of 99 % of the users, too.
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.

    Returns
    -------
    NetworkCurve
        All epsilons err upwards, and hold for every user.

    Raises
    ------
    ParameterError
        If the graph is not such a graph, or an argument is out of range.

    Notes
    -----
    Cost: an exact pass takes n * 2m * max(rounds) multiply-adds, the spectral bounds seconds; then
    each point about a second.
    """
    asked = _settled_rounds(rounds)
    how = _settled_method(graph, method, asked[-1])
    mixing = NetworkMixing(graph, laziness=laziness, method=how, on_progress=on_progress)
    return curve_of(
        mixing,
        profile,
        name=name,
        rounds=asked,
        delta=delta,
        protocol=protocol,
        users=users,
        on_progress=on_progress,
    )


def curve_of(
    mixing: NetworkMixing,
    profile: LocalProfile,
    *,
    name: str,
    rounds: Sequence[int],
    delta: float,
    protocol: ReportingProtocol = "all",
    users: Users = "worst",
    on_progress: Progress | None = None,
) -> NetworkCurve:
    """Compute the same on a graph that is prepared.

    Parameters
    ----------
    mixing : NetworkMixing
        The graph.
    profile, name, rounds, delta, protocol, users, on_progress
        As for `network_curve`.

    Returns
    -------
    NetworkCurve
        All epsilons err upwards, and hold for every user.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    """
    delta = require_open_unit("delta", delta)
    asked, graph = _settled_rounds(rounds), mixing.graph
    methods = {each.method for each in mixing.position_bounds_at(asked)}  # one pass for all
    points, most = [], []
    for index, each in enumerate(asked):
        points.append(point_epsilons(profile, mixing, each, delta=delta, protocol=protocol))
        if users == "all":
            found = mixing.hiding(each).epsilon_of_share(profile, MOST, delta=delta)
            most.append(min(found, points[-1][0]))
        if on_progress is not None:
            on_progress(f"{name}: epsilon", index + 1, len(asked))
    uniform = account_epsilon(profile, num_users=graph.num_users, delta=delta, with_lower=False)
    return NetworkCurve(
        name=name,
        num_users=graph.num_users,
        num_edges=graph.num_edges,
        protocol=protocol,
        epsilon0=profile.epsilon0,
        delta=delta,
        rounds=asked,
        epsilon=tuple(ours for ours, _ in points),
        published=tuple(theirs for _, theirs in points),
        uniform_epsilon=uniform.upper,
        method=", ".join(sorted(methods)),
        epsilon_of_most=tuple(most),
    )


def spread_rounds(first: int, last: int, most: int = MOST_POINTS) -> tuple[int, ...]:
    """Return whole numbers from first to last: all of them, or about evenly many a decade.

    Parameters
    ----------
    first, last : int
        0 <= first <= last; both are among the result.
    most : int
        How many at most, >= 2.

    Returns
    -------
    tuple of int
        Increasing.

    Examples
    --------
    >>> spread_rounds(1, 5)
    (1, 2, 3, 4, 5)
    >>> spread_rounds(0, 1000, 8)
    (0, 1, 3, 10, 32, 100, 316, 1000)
    """
    if not 0 <= first <= last:
        raise ParameterError(f"rounds from {first} to {last}: give 0 <= first <= last")
    if last - first < most:
        return tuple(range(first, last + 1))
    start = [0] if first == 0 else []
    steps = np.geomspace(max(first, 1), last, most - len(start))
    return tuple(sorted({*start, *np.rint(steps).astype(int).tolist(), last}))


def _settled_rounds(rounds: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of rounds in increasing order, each once."""
    asked = tuple(sorted({require_at_least("rounds", each, 0) for each in rounds}))
    if not asked:
        raise ParameterError("rounds is empty: give at least one number of rounds, for example 10")
    return asked


def _settled_method(graph: Graph, method: Method, most_rounds: int) -> Method:
    """Return "exact" or "spectral"."""
    if method != "auto":
        return method
    work = 2.0 * graph.num_edges * graph.num_users * most_rounds
    return "exact" if work <= _UNASKED_WORK else "spectral"


def point_epsilons(
    profile: LocalProfile,
    mixing: NetworkMixing,
    rounds: int,
    *,
    delta: float,
    protocol: ReportingProtocol = "all",
) -> tuple[float, float | None]:
    """Return the safe epsilon for every user, and what the published theorem gives.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law.
    mixing : NetworkMixing
        The graph.
    rounds : int
        Of the exchange, >= 0.
    delta : float
        Central failure probability, in (0, 1).
    protocol : {"all", "single"}
        Which reports holders hand in.

    Returns
    -------
    (float, float or None)
        Both err upwards. None where the theorem, in the form that is proved, says nothing.
    """
    hiding = mixing.hiding(rounds)
    ours = hiding.epsilon(profile, delta=delta, protocol=protocol, with_lower=False)
    published, _ = published_epsilon(profile, hiding, delta, protocol)
    return ours.upper, published
