"""How private an exchange along a graph is: ours, the published theorem, and a trusted shuffler."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress
from shuffledp.network.graph import Graph
from shuffledp.network.hiding import Hiding, ReportingProtocol
from shuffledp.network.mixing import Method, NetworkMixing

Components = Literal["connected", "largest", "each"]
Users = Literal["worst", "all"]

#: Shares of the users for whom an epsilon of their own is given, beside that of the worst.
SHARES = (0.5, 0.9, 0.99)

#: The share that rounds are counted for beside everybody.
MOST = 0.99

#: Ask for the fewest rounds that are nearly as private as endless ones.
AUTO: Literal["auto"] = "auto"

# The printed ones hold at stationarity only, or for other dummies; docs/results/network.md.
_PUBLISHED = {
    "all": "Liew et al. 2022, Theorem 5.3, for those who share the worst user's law",
    "single": "Liew et al. 2022, Theorems 5.5 and 5.6, if dummies look like reports",
}

# From here on reports count as mixed, where only the graph is asked for.
_MIXED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAccount:
    """The central guarantee of an exchange, with what it rests on.

    Parameters
    ----------
    num_users, num_edges : int
        Of the graph, or of the component that has the worst guarantee.
    num_components : int
        Of the graph that was asked about.
    rounds : int
        Of the exchange.
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one.
    laziness : float
        Chance that a report stays where it is in a round.
    delta : float
        Central failure probability.
    epsilon : Bound
        For every user; ``upper`` is safe to publish.
    uniform_epsilon : Bound
        What a trusted shuffler would give the same users.
    published_epsilon : float or None
        What the published theorem gives, in its corrected form; None where it says nothing.
    published_source : str
        Which theorem that is.
    spectral_gap : float
        1 - lambda, rounded down.
    irregularity : float
        Gamma = n sum pi^2, at least 1; 1 for regular graphs.
    is_bipartite, is_regular : bool
        Of the graph.
    separation : float
        How far the worst law is from the stationary one after these rounds; 0 is perfectly mixed.
    rounds_to_mix : int
        Rounds after which eigenvalues show that to be below 0.01.
    worst_user : str
        Label of a user whose position tells most, as far as the bounds say.
    method : str
        ``"exact"`` or ``"spectral"``.
    num_dishonest : int
        Users who hide nobody.
    num_colluding : int
        Users who tell the adversary all that passes through their hands.
    epsilon_of_shares : tuple of (float, float)
        Shares of the users, and an epsilon that holds for at least as many of them: quantiles over
        users, rounded up. Empty unless asked for.
    rounds_for_most : int or None
        For rounds that were chosen: how few are proved to be enough for 99 % of the users.
    """

    num_users: int
    num_edges: int
    num_components: int
    rounds: int
    protocol: ReportingProtocol
    laziness: float
    delta: float
    epsilon: Bound
    uniform_epsilon: Bound
    published_epsilon: float | None
    published_source: str
    spectral_gap: float
    irregularity: float
    is_bipartite: bool
    is_regular: bool
    separation: float
    rounds_to_mix: int
    worst_user: str
    method: str
    num_dishonest: int
    num_colluding: int
    epsilon_of_shares: tuple[tuple[float, float], ...] = ()
    rounds_for_most: int | None = None

    def to_json_dict(self) -> dict[str, Any]:
        """Return plain values for a program."""
        return {
            "num_users": self.num_users,
            "num_edges": self.num_edges,
            "num_components": self.num_components,
            "num_dishonest": self.num_dishonest,
            "num_colluding": self.num_colluding,
            "rounds": self.rounds,
            "protocol": self.protocol,
            "laziness": self.laziness,
            "delta": self.delta,
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "epsilon_of_shares": [list(pair) for pair in self.epsilon_of_shares],
            "rounds_for_most": self.rounds_for_most,
            "uniform_epsilon": self.uniform_epsilon.upper,
            "paper_epsilon": self.published_epsilon,
            "paper_source": self.published_source,
            "spectral_gap": self.spectral_gap,
            "gamma": self.irregularity,
            "is_bipartite": self.is_bipartite,
            "is_regular": self.is_regular,
            "separation": self.separation,
            "rounds_to_mix": self.rounds_to_mix,
            "worst_user": self.worst_user,
            "positions": self.method,
            "method": self.epsilon.method,
            "source": self.epsilon.source,
            "assumptions": list(self.epsilon.assumptions),
        }


def account_network(  # noqa: PLR0913  # one keyword an option
    graph: Graph,
    profile: LocalProfile,
    *,
    rounds: SupportsIndex | Literal["auto"],
    delta: SupportsFloat,
    protocol: ReportingProtocol = "all",
    laziness: SupportsFloat = 0.0,
    within: float = 0.01,
    method: Method = "auto",
    components: Components = "connected",
    num_dishonest: SupportsIndex = 0,
    colluding: Collection[str] = (),
    users: Users = "worst",
    with_lower: bool = True,
    on_progress: Progress | None = None,
) -> NetworkAccount:
    """Bound the central epsilon of reports that walk along a graph before they are handed in.

    Parameters
    ----------
    graph : Graph
        Who may send reports to whom; its users are those who take part.
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    rounds : int or "auto"
        Of the exchange, >= 0; "auto" for the fewest whose epsilon is near that of endless ones.
    delta : float
        Central failure probability, in [0, 1).
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one of them, drawn uniformly.
    laziness : float
        Chance that a report stays where it is in a round, by a coin of its own; in [0, 1).
    within : float
        For "auto": how near, relative to the limit.
    method : {"auto", "exact", "spectral"}
        See `NetworkMixing`.
    components : {"connected", "largest", "each"}
        A graph in several pieces is refused, or its largest piece is taken, or each piece
        exchanges on its own; then the guarantee is that of the worst.
    num_dishonest : int
        So many users may tell the adversary their own reports; they hide nobody.
    colluding : collection of str
        Labels of users who may tell him, besides, all that passes through their hands; every
        report that reaches one of them counts as revealed. Positions are exact then.
    users : {"worst", "all"}
        "all" gives, beside the epsilon of the worst user, those that 50, 90 and 99 % of the users
        have at most, and with rounds "auto" how few are enough for 99 %.
    with_lower : bool
        False saves the time for the lower ends.
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.

    Returns
    -------
    NetworkAccount
        Its epsilon holds for every user.

    Raises
    ------
    ParameterError
        If an argument is out of range, or reports cannot mix on the graph; the message says what
        can be done.

    Notes
    -----
    Source: docs/results/network.md, for the model of Liew et al., arXiv:2204.03919. Eigenvalues
    take some seconds for a million edges; exact laws num_users * rounds * 2 num_edges
    multiply-adds.

    Examples
    --------
    >>> from shuffledp.network.families import complete_graph
    >>> found = account_network(
    ...     complete_graph(100), LocalProfile(epsilon0=1.0), rounds="auto", delta=1e-6
    ... )
    >>> found.rounds, found.epsilon.upper <= 1.01 * found.uniform_epsilon.upper
    (2, True)
    """
    if components not in get_args(Components):
        raise ParameterError(f"components = {components!r} is not one of {get_args(Components)}")
    if protocol not in get_args(ReportingProtocol):
        raise ParameterError(f"protocol = {protocol!r} is not one of {get_args(ReportingProtocol)}")
    if users not in get_args(Users):
        raise ParameterError(f"users = {users!r} is not one of {get_args(Users)}")
    allowed = require_delta(delta)
    asked = None if rounds == AUTO else require_at_least("rounds", rounds, 0)
    dishonest = require_at_least("num_dishonest", num_dishonest, 0)
    wanted = frozenset(colluding)
    _require_known(graph, wanted)
    pieces = [
        NetworkMixing(
            piece,
            laziness=laziness,
            method=method,
            colluding=_mask(piece, wanted),
            on_progress=on_progress,
        )
        for piece in _pieces(graph, components)
    ]
    number, for_most = asked, None
    if number is None:
        search = partial(
            _fewest_rounds,
            pieces,
            profile,
            delta=allowed,
            within=within,
            protocol=protocol,
            num_dishonest=dishonest,
        )
        number = search()
        for_most = min(search(share=MOST), number) if users == "all" else None
    accounts = [
        _account(
            each,
            profile,
            rounds=number,
            delta=allowed,
            protocol=protocol,
            num_dishonest=dishonest,
            shares=SHARES if users == "all" else (),
            with_lower=with_lower,
        )
        for each in pieces
    ]
    worst = max(accounts, key=lambda each: each.epsilon.upper)
    by_share = zip(*(each.epsilon_of_shares for each in accounts), strict=True)
    return replace(
        worst,
        num_components=graph.num_components,
        epsilon_of_shares=tuple(max(pairs, key=lambda pair: pair[1]) for pairs in by_share),
        rounds_for_most=for_most,
    )


def _fewest_rounds(pieces: Sequence[NetworkMixing], profile: LocalProfile, **asked: Any) -> int:
    """Return the fewest rounds that are enough in each piece."""
    return max(each.fewest_rounds(profile, **asked) for each in pieces)


def _names(graph: Graph) -> tuple[str, ...]:
    """Return the labels of all users."""
    return graph.labels or tuple(map(str, range(graph.num_users)))


def _require_known(graph: Graph, colluding: frozenset[str]) -> None:
    """Raise unless all of these are labels of users."""
    unknown = sorted(colluding.difference(_names(graph))) if colluding else []
    if unknown:
        raise ParameterError(
            f"colluding names {len(unknown):,} who are not in the graph, such as {unknown[0]!r}: "
            "look for another spelling"
        )


def _mask(graph: Graph, colluding: frozenset[str]) -> NDArray[np.bool_] | None:
    """Return which users of a piece collude; None if nobody does."""
    if not colluding:
        return None
    return np.array([name in colluding for name in _names(graph)])


def _pieces(graph: Graph, components: Components) -> Iterator[Graph]:
    """Yield the connected graphs to be accounted for."""
    if components == "connected":
        yield graph
    elif components == "largest":
        yield graph.largest_component()[0]
    else:
        labels = graph.components()
        order = labels.argsort(kind="stable")
        bounds = labels[order].searchsorted(range(graph.num_components + 1))
        for start, end in pairwise(bounds):
            yield graph.subgraph(order[start:end])


def _account(
    mixing: NetworkMixing,
    profile: LocalProfile,
    *,
    rounds: int,
    delta: float,
    protocol: ReportingProtocol,
    num_dishonest: int,
    shares: Sequence[float],
    with_lower: bool,
) -> NetworkAccount:
    """Return the account of a connected graph."""
    from shuffledp.network.spectral_bounds import rounds_to_mix

    graph, hiding = mixing.graph, mixing.hiding(rounds)
    mask = mixing.walk.colluding
    num_colluding = 0 if mask is None else int(np.count_nonzero(mask))
    published, source = published_epsilon(profile, hiding, delta, protocol, num_dishonest)
    epsilon = mixing.epsilon(
        profile,
        rounds=rounds,
        delta=delta,
        protocol=protocol,
        num_dishonest=num_dishonest,
        with_lower=with_lower,
    )
    of_share = partial(hiding.epsilon_of_share, profile, delta=delta, num_dishonest=num_dishonest)
    return NetworkAccount(
        num_users=graph.num_users,
        num_edges=graph.num_edges,
        num_components=1,
        rounds=rounds,
        protocol=protocol,
        laziness=mixing.walk.laziness,
        delta=delta,
        epsilon=epsilon,
        uniform_epsilon=account_epsilon(
            profile,
            num_users=max(graph.num_users - num_dishonest - num_colluding, 1),
            delta=delta,
            with_lower=with_lower,
        ),
        published_epsilon=published,
        published_source=source,
        spectral_gap=mixing.spectrum.spectral_gap,
        irregularity=graph.irregularity,
        is_bipartite=graph.is_bipartite(),
        is_regular=graph.is_regular,
        separation=hiding.separation,
        rounds_to_mix=rounds_to_mix(mixing.spectrum, _MIXED),
        worst_user=_names(graph)[hiding.worst_user],
        method=mixing.position_bounds(rounds).method,
        num_dishonest=num_dishonest,
        num_colluding=num_colluding,
        epsilon_of_shares=tuple(
            (each, min(of_share(each), epsilon.upper) if rounds else epsilon.upper)
            for each in shares
        ),
    )


def published_epsilon(
    profile: LocalProfile,
    hiding: Hiding,
    delta: float,
    protocol: ReportingProtocol,
    num_dishonest: int = 0,
) -> tuple[float | None, str]:
    """Return what the published theorem gives in its corrected form, and which one that is.

    Rounded up; None where the theorem says nothing. It may exceed epsilon0.
    """
    from shuffledp.network.published import published_all_thinned_epsilon, published_single_epsilon

    source = _PUBLISHED[protocol]
    if delta == 0.0 or profile.delta0 > 0.0 or hiding.missed > 0.0:
        return None, source
    if protocol == "all":
        bound = published_all_thinned_epsilon(
            profile.epsilon0,
            overlaps=hiding.overlaps[: max(hiding.overlaps.size - num_dishonest, 0)],
            collision=hiding.collision,
            delta=delta,
            constant="printed",
        )
    else:
        bound = published_single_epsilon(
            profile.epsilon0,
            collision=hiding.collision,
            delta=delta,
            dummies_are_reports=True,
            constant="printed",
        )
    return bound.upper if math.isfinite(bound.upper) else None, source


# Multiply-adds of an exact pass that nobody has to ask for: one or two minutes.
_UNASKED_CURVE_WORK = 2e11

#: A curve looks smooth with so many points.
MOST_POINTS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCurve:
    """What an exchange guarantees after some numbers of rounds: every epsilon is rounded up.

    ``published`` is the published theorem in its corrected form, None where it says nothing;
    ``epsilon_of_most`` is for 99 % of the users, and empty unless asked for.
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
        """Return the first of `rounds` with an epsilon at most that share above the uniform one."""
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
    """Compute epsilon after each of some numbers of rounds; the options are those of the account.

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
    """Compute the same on a graph that is prepared."""
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
    """Return at most ``most`` whole numbers from first to last, both included.

    All of them, or about evenly many a decade.
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
    return "exact" if work <= _UNASKED_CURVE_WORK else "spectral"


def point_epsilons(
    profile: LocalProfile,
    mixing: NetworkMixing,
    rounds: int,
    *,
    delta: float,
    protocol: ReportingProtocol = "all",
) -> tuple[float, float | None]:
    """Return the epsilon for every user, and the published theorem's or None; rounded up."""
    hiding = mixing.hiding(rounds)
    ours = hiding.epsilon(profile, delta=delta, protocol=protocol, with_lower=False)
    published, _ = published_epsilon(profile, hiding, delta, protocol)
    return ours.upper, published
