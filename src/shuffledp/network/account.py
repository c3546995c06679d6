"""Central privacy of an exchange along a graph, compared with a trusted shuffler."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsFloat, SupportsIndex, Unpack, get_args, overload

from shuffledp.amplification.registry import account_epsilon
from shuffledp.collection.counting import Engine
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress, logger
from shuffledp.core.shown import Frames, Shown
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import NetworkMixing, Positions, ReportingProtocol, Terms

Components = Literal["connected", "largest"]

#: Ask for the smallest number of rounds that is nearly as private as endless rounds.
AUTO: Literal["auto"] = "auto"

# Names of fields in JSON.
_JSON_NAMES = {"irregularity": "gamma", "method": "positions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAccount(Shown):
    """The central guarantee of an exchange, with the facts on which it rests.

    Parameters
    ----------
    num_users, num_edges : int
        Of the graph, or of its largest component if only this was accounted for.
    num_components : int
        Of the given graph.
    rounds : int
        Of the exchange.
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one.
    laziness : float
        Probability that a report stays where it is in a round.
    delta : float
        Central delta.
    epsilon : Bound
        For every user; ``upper`` is proved.
    uniform_epsilon : Bound
        Epsilon of a trusted shuffler for the same users.
    spectral_gap : float
        1 - lambda, rounded down.
    irregularity : float
        Gamma = n sum pi^2, at least 1; 1 for regular graphs.
    separation : float
        Distance of the worst law from the stationary one after these rounds; 0 is perfectly mixed.
    worst_user : str
        Label of a user whose position reveals most, as far as the bounds show.
    method : str
        ``"exact"`` or ``"spectral"``.
    num_dishonest : int
        Users who hide nobody.
    dummies : DummyLaw or None
        Dummies that each honest user sends beside the report.
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
    spectral_gap: float
    irregularity: float
    separation: float
    worst_user: str
    method: str
    num_dishonest: int
    dummies: DummyLaw | None = None

    def to_json_dict(self) -> dict[str, Any]:
        """Return plain values for a program."""
        plain = {_JSON_NAMES.get(name, name): value for name, value in asdict(self).items()}
        law = plain.pop("dummies")
        return plain | {
            **({} if law is None else {"dummies": str(self.dummies)}),
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "uniform_epsilon": self.uniform_epsilon.upper,
            "method": self.epsilon.method,
            "source": self.epsilon.source,
            "assumptions": list(self.epsilon.assumptions),
        }


@dataclass(frozen=True, slots=True, eq=False)
class NetworkAccounts(Frames):
    """Accounts of one exchange after several numbers of rounds, one a row."""

    rows: tuple[NetworkAccount, ...]

    def columns(self) -> dict[str, list[Any]]:
        """Return both ends of epsilon after the rounds, and the epsilon of a uniform shuffle."""
        return {
            "rounds": [each.rounds for each in self.rows],
            "epsilon_lower": [each.epsilon.lower for each in self.rows],
            "epsilon_upper": [each.epsilon.upper for each in self.rows],
            "uniform_epsilon": [each.uniform_epsilon.upper for each in self.rows],
        }

    def to_json_dict(self) -> dict[str, Any]:
        """Return plain values for a program: ``accounts``, one for each number of rounds."""
        return {"accounts": [each.to_json_dict() for each in self.rows]}


class _Asked(Terms, total=False):
    """Keywords of `account_network` besides the rounds."""

    laziness: SupportsFloat
    within: float
    positions: Positions
    components: Components
    on_progress: Progress | None
    engine: Engine | None


@overload
def account_network(
    graph: Graph,
    profile: LocalProfile,
    *,
    rounds: SupportsIndex | Literal["auto"],
    **asked: Unpack[_Asked],
) -> NetworkAccount: ...


@overload
def account_network(
    graph: Graph,
    profile: LocalProfile,
    *,
    rounds: Collection[SupportsIndex],
    **asked: Unpack[_Asked],
) -> NetworkAccounts: ...


def account_network(  # noqa: PLR0913  # one keyword an option
    graph: Graph,
    profile: LocalProfile,
    *,
    rounds: Any,
    delta: SupportsFloat,
    protocol: ReportingProtocol = "all",
    laziness: SupportsFloat = 0.0,
    within: float = 0.01,
    positions: Positions = "auto",
    components: Components = "connected",
    num_dishonest: SupportsIndex = 0,
    dummies: DummyLaw | None = None,
    on_progress: Progress | None = None,
    engine: Engine | None = None,
) -> NetworkAccount | NetworkAccounts:
    """Bound the central epsilon of reports that walk along a graph before they are handed in.

    Parameters
    ----------
    graph : Graph
        Edges along which users may send reports; its users are the participants.
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    rounds : int, collection of int, or "auto"
        Of the exchange, >= 0; "auto" for the smallest number whose epsilon is near the limit.
        Several numbers share one pass over the graph.
    delta : float
        Central delta, in [0, 1).
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one of them, drawn uniformly.
    laziness : float
        Probability that a report stays where it is in a round, by a coin of its own; in [0, 1).
    within : float
        For "auto": largest relative distance to the limit.
    positions : {"auto", "exact", "spectral"}
        See `NetworkMixing`.
    components : {"connected", "largest"}
        A graph in several pieces is refused, or its largest piece is taken.
    num_dishonest : int
        Number of users who may reveal their own reports to the adversary; they hide nobody.
    dummies : DummyLaw, optional
        Law of the dummies that each honest user sends beside the report; they walk like reports.
    on_progress, engine : callable, optional
        See `NetworkMixing`.

    Returns
    -------
    NetworkAccount, or NetworkAccounts
        Each epsilon holds for every user. For several numbers of rounds a table, one row each, that
        has ``to_dict()``, ``to_polars()`` and ``to_pandas()``.

    Raises
    ------
    ParameterError
        If an argument is out of range, or reports cannot mix on the graph; the message states a
        remedy.

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
    ):
        if value not in allowed_values:
            raise ParameterError(f"{name} = {value!r} is not one of {allowed_values}")
    several = rounds != AUTO and isinstance(rounds, Collection)
    given = [] if rounds == AUTO else rounds if several else [rounds]
    numbers = [require_at_least("rounds", each, 0) for each in given]
    if several and not numbers:
        raise ParameterError("rounds is empty: give at least one number of rounds, for example 10")
    walked = graph.largest_component()[0] if components == "largest" else graph
    dishonest = require_at_least("num_dishonest", num_dishonest, 0, walked.num_users - 1)
    mixing = NetworkMixing(
        walked,
        laziness=laziness,
        positions=positions,
        on_progress=on_progress,
        engine=engine,
    )
    terms: Terms = {
        "delta": require_delta(delta),
        "protocol": protocol,
        "num_dishonest": dishonest,
        "dummies": dummies,
    }
    numbers = numbers or [mixing.fewest_rounds(profile, within=within, **terms)]
    mixing.position_bounds_at(numbers)  # one pass for all, which are kept
    uniform = account_epsilon(
        profile, num_users=walked.num_users - dishonest, delta=terms["delta"], dummies=dummies
    )
    rows = []
    for number in numbers:
        hiding, epsilon = mixing.hiding(number), mixing.epsilon(profile, rounds=number, **terms)
        logger.info("network: %d rounds, epsilon about %.4g", number, epsilon.upper)
        row = NetworkAccount(
            num_users=walked.num_users,
            num_edges=walked.num_edges,
            num_components=graph.num_components if components == "largest" else 1,
            rounds=number,
            laziness=mixing.walk.laziness,
            epsilon=epsilon,
            uniform_epsilon=uniform,
            spectral_gap=mixing.spectrum.spectral_gap,
            irregularity=walked.irregularity,
            separation=hiding.separation,
            worst_user=walked.name_of(hiding.worst_user),
            method=hiding.bounds.method,
            **terms,
        )
        rows.append(row)
    return NetworkAccounts(tuple(rows)) if several else rows[0]
