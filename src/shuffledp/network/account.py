"""How private an exchange along a graph is: ours, the published theorem, and a trusted shuffler."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np

from shuffledp.amplification.registry import account_epsilon
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.core.frames import Frames
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress, logger, no_progress
from shuffledp.core.shown import Shown
from shuffledp.network.anonymity import Hiding, ReportingProtocol, Terms
from shuffledp.network.graph import Graph
from shuffledp.network.walk_accountant import NetworkMixing, Positions

Components = Literal["connected", "largest"]
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

# What fields are called in JSON.
_JSON_NAMES = {
    "published_epsilon": "paper_epsilon",
    "published_source": "paper_source",
    "irregularity": "gamma",
    "method": "positions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAccount(Shown):
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
        For every user; ``upper`` is proved.
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
    epsilon_of_shares: tuple[tuple[float, float], ...] = ()
    rounds_for_most: int | None = None

    def to_json_dict(self) -> dict[str, Any]:
        """Return plain values for a program."""
        plain = {_JSON_NAMES.get(name, name): value for name, value in asdict(self).items()}
        return plain | {
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "epsilon_of_shares": [list(pair) for pair in self.epsilon_of_shares],
            "uniform_epsilon": self.uniform_epsilon.upper,
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
    positions: Positions = "auto",
    components: Components = "connected",
    num_dishonest: SupportsIndex = 0,
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
    positions : {"auto", "exact", "spectral"}
        See `NetworkMixing`.
    components : {"connected", "largest"}
        A graph in several pieces is refused, or its largest piece is taken.
    num_dishonest : int
        So many users may tell the adversary their own reports; they hide nobody.
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
    >>> everybody = Graph.from_edges([(i, j) for j in range(100) for i in range(j)])
    >>> found = account_network(everybody, LocalProfile(epsilon0=1.0), rounds="auto", delta=1e-6)
    >>> found.rounds, found.epsilon.upper <= 1.01 * found.uniform_epsilon.upper
    (2, True)
    """
    for name, value, allowed_values in (
        ("components", components, get_args(Components)),
        ("protocol", protocol, get_args(ReportingProtocol)),
        ("users", users, get_args(Users)),
    ):
        if value not in allowed_values:
            raise ParameterError(f"{name} = {value!r} is not one of {allowed_values}")
    allowed = require_delta(delta)
    asked = None if rounds == AUTO else require_at_least("rounds", rounds, 0)
    dishonest = require_at_least("num_dishonest", num_dishonest, 0)
    mixing = NetworkMixing(
        graph.largest_component()[0] if components == "largest" else graph,
        laziness=laziness,
        positions=positions,
        on_progress=on_progress,
    )
    of_walk: Terms = {"delta": allowed, "protocol": protocol, "num_dishonest": dishonest}
    number, for_most = asked, None
    if number is None:
        number = mixing.fewest_rounds(profile, within=within, **of_walk)
        if users == "all":
            for_most = mixing.fewest_rounds(profile, within=within, share=MOST, **of_walk)
            for_most = min(for_most, number)
    left, walk, hiding = mixing.graph, mixing.walk, mixing.hiding(number)
    epsilon = mixing.epsilon(profile, rounds=number, with_lower=with_lower, **of_walk)
    honest, least, of_shares = max(left.num_users - dishonest, 1), epsilon.upper, []
    for share in reversed(SHARES) if users == "all" else ():
        if number:  # what holds for more of the users holds for fewer
            least = min(least, hiding.epsilon_of_share(profile, share, **of_walk))
        of_shares.append((share, least))
    logger.info("network: %d rounds, epsilon about %.4g", number, epsilon.upper)
    return NetworkAccount(
        num_users=left.num_users,
        num_edges=left.num_edges,
        num_components=graph.num_components if components == "largest" else 1,
        rounds=number,
        protocol=protocol,
        laziness=walk.laziness,
        delta=allowed,
        epsilon=epsilon,
        uniform_epsilon=account_epsilon(
            profile, num_users=honest, delta=allowed, with_lower=with_lower
        ),
        published_epsilon=hiding.published_epsilon(profile, **of_walk),
        published_source=_PUBLISHED[protocol],
        spectral_gap=mixing.spectrum.spectral_gap,
        irregularity=left.irregularity,
        # Without laziness a bipartite graph was refused.
        is_bipartite=walk.laziness > 0.0 and left.is_bipartite(),
        is_regular=left.is_regular,
        separation=hiding.separation,
        rounds_to_mix=mixing.rounds_to_mix,
        worst_user=left.name_of(hiding.worst_user),
        method=hiding.bounds.method,
        num_dishonest=dishonest,
        epsilon_of_shares=tuple(reversed(of_shares)),
        rounds_for_most=for_most,
    )


#: A curve looks smooth with so many points.
MOST_POINTS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCurve(Frames):
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

    def columns(self) -> dict[str, Any]:
        """Return the numbers of rounds, and the epsilons after them."""
        names = ("rounds", "epsilon", "published", "epsilon_of_most")
        return {name: value for name in names if (value := getattr(self, name))}

    def to_json_dict(self) -> dict[str, object]:
        """Return the curve as JSON values."""
        pairs = asdict(self).items()
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in pairs}
        values["paper_epsilon"] = values.pop("published")
        return values


def network_curve(
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
    """Compute epsilon after each of some numbers of rounds; the options are those of the account.

    Cost: that of the positions, once for all numbers; then each point about a second.
    """
    delta, graph = require_open_unit("delta", delta), mixing.graph
    asked = tuple(sorted({require_at_least("rounds", each, 0) for each in rounds}))
    if not asked:
        raise ParameterError("rounds is empty: give at least one number of rounds, for example 10")
    terms, methods = Terms(delta=delta, protocol=protocol), set[str]()
    ours, published, most = [], [], []
    stage = f"{name}: epsilon" if on_progress else "epsilon by rounds"  # no names in logs
    for bounds in mixing.position_bounds_at(asked):  # one pass for all
        hiding = Hiding.of(bounds)
        methods.add(bounds.method)
        ours.append(hiding.epsilon(profile, with_lower=False, **terms).upper)
        published.append(hiding.published_epsilon(profile, **terms))
        if users == "all":
            most.append(min(hiding.epsilon_of_share(profile, MOST, delta=delta), ours[-1]))
        (on_progress or no_progress)(stage, len(ours), len(asked))
    uniform = account_epsilon(profile, num_users=graph.num_users, delta=delta, with_lower=False)
    return NetworkCurve(
        name=name,
        num_users=graph.num_users,
        num_edges=graph.num_edges,
        protocol=protocol,
        epsilon0=profile.epsilon0,
        delta=delta,
        rounds=asked,
        epsilon=tuple(ours),
        published=tuple(published),
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
