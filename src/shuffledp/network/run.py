"""Collections whose reports travel through a network: graphs from files, plans, and facts."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.amplification.registry import account_epsilon
from shuffledp.collection.plan import Plan
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.questions.question import Question, chosen_candidates
from shuffledp.collection.shuffling import Concealment, Stage
from shuffledp.collection.source import edge_files
from shuffledp.collection.source.tables import PARQUET
from shuffledp.collection.uniform_shuffler import InMemoryShuffle
from shuffledp.core.arrays import Integers
from shuffledp.core.bound import Guarantee
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.lazy import pl
from shuffledp.core.profile import LocalProfile
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import Hiding, NetworkMixing, ReportingProtocol
from shuffledp.network.shuffler import NetworkShuffler


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """Graph, walk and mixing of one exchange of reports.

    Epsilons are proved upper bounds; the spectral gap is rounded down and the separation up.
    """

    kind: ClassVar[str] = "network"

    graph: str
    num_users: int
    num_edges: int
    fewest_neighbours: int
    most_neighbours: int
    num_self_loops: int
    num_duplicates: int
    irregularity: float
    rounds: int
    are_rounds_chosen: bool
    protocol: str
    laziness: float
    spectral_gap: float
    separation: float
    worst_user: str
    method: str
    uniform_epsilon: float
    most_held: float
    num_released: int
    num_dummies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFacts(NetworkFacts):
    """Facts of an exchange that took place, beyond the facts of a simulated one.

    Its users are the registered users, of whom ``num_dishonest`` are assumed to hide nobody.
    ``overload`` is an upper bound on the probability that a user ever held more reports than
    messages; 1 + e^epsilon times it is taken off delta.
    """

    num_invited: int
    num_handed_in: int
    num_absences: int
    num_dishonest: int
    is_traffic_even: bool
    overload: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkShuffling:
    """Shuffling by a walk through a network; reports stay in the order of hand-ins.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> from shuffledp.network import Graph, NetworkMixing
    >>> ring = Graph.from_edges([(user, (user + 1) % 51) for user in range(51)])
    >>> shuffling = NetworkShuffling(mixing=NetworkMixing(ring), rounds=20)
    >>> asked = {"num_users": 51, "epsilon0": 1.0, "delta": 1e-6, "shuffling": shuffling}
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), **asked)
    >>> plan.guarantee.epsilon_upper < 2.0
    True
    """

    name: ClassVar[str] = "network"
    remedy: ClassVar[str] = "let reports travel more rounds"
    dummy_senders: ClassVar[tuple[str, ...]] = ("users",)
    #: The terms of an exchange limit the messages of a user; here they are not known.
    most_records: ClassVar[float] = math.inf

    mixing: NetworkMixing
    rounds: int
    protocol: ReportingProtocol = "all"
    #: For reports: name of the graph, and whether rounds were left to `NetworkPlan`.
    graph_name: str = "given graph"
    are_rounds_chosen: bool = False

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, **asked: Any
    ) -> Guarantee:
        """Return the central guarantee of the hand-ins, if all users answered."""
        users = self.mixing.walk.num_users
        if asked.get("dummies") is not None and self.protocol == "single":
            raise ParameterError(
                f"dummies = {asked['dummies']} with protocol = 'single' would displace answers, "
                "since every user hands in one report: use protocol 'all'"
            )
        if num_users != users:
            raise DataError(
                f"{num_users:,} people answered and the network has {users:,} users: give every "
                "user one row with an answer, and leave out of the graph whoever has none"
            )
        asked |= {"rounds": self.rounds, "protocol": self.protocol}
        bound = self.mixing.epsilon(profile, delta=delta, **asked)
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)

    @property
    def expected_released(self) -> int:
        """Number of reports to expect at the analyzer once the walk has mixed."""
        is_single = self.protocol == "single"  # a holder of several hands in one
        return self.mixing.expected_holders if is_single else self.mixing.graph.num_users

    def stage(self, *, entropy: Entropy, **_: Any) -> Stage:
        """Return a shuffle in memory, which carries each report along its walk."""
        return InMemoryShuffle(self, entropy)

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the reports that are handed in, by ascending number of their holder."""
        walk = NetworkShuffler(walk=self.mixing.walk, rounds=self.rounds, protocol=self.protocol)
        return walk.shuffle(reports, entropy).reports

    def facts(self, profile: LocalProfile, guarantee: Guarantee, **run: Any) -> NetworkFacts:
        """Return facts about graph and walk."""
        graph, hiding = self.mixing.graph, self.mixing.hiding(self.rounds)
        num_released = run["num_released"]
        return NetworkFacts(
            graph=self.graph_name,
            rounds=self.rounds,
            protocol=self.protocol,
            laziness=self.mixing.walk.laziness,
            num_self_loops=graph.num_self_loops,
            num_duplicates=graph.num_duplicates,
            are_rounds_chosen=self.are_rounds_chosen,
            spectral_gap=self.mixing.spectrum.spectral_gap,
            worst_user=graph.name_of(hiding.worst_user),
            most_held=graph.num_users * float(graph.stationary_law().max()),
            num_released=num_released,
            num_dummies=graph.num_users - num_released,
            **facts_of_walk(graph, hiding, profile, guarantee),
        )

    def cautions(
        self, profile: LocalProfile, guarantee: Guarantee, facts: NetworkFacts
    ) -> tuple[str, ...]:
        """Return warnings about reports that have not mixed, and about a merely local guarantee."""
        return (*network_cautions(facts), *local_cautions(profile, guarantee))

    def leakage(self) -> Concealment:
        """Return the law that hides the report of the user whose position reveals most."""
        return Concealment(
            crowd=lambda: self.mixing.hiding(self.rounds).overlaps,
            is_complete=self.protocol == "all",
        )


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")

# A gain by the walk below this part of epsilon0 counts as none.
_NOTHING = 1e-3

# Below this separation estimates do not show that holders' laws differ between users.
_VISIBLE_SEPARATION = 0.01


def read_graph(path: str | PathLike[str], *, ids: Sequence[str] | None = None) -> Graph:
    r"""Read a graph from an edge list.

    Parameters
    ----------
    path : str or path-like
        A Parquet file of two columns, or text: two fields a line, separated by commas, tabs,
        semicolons or spaces; with a header or without; lines that start with ``#`` or ``%`` are
        comments.
    ids : sequence of str, optional
        The label of each person in the order of the survey, as `read_ids` gives them. Without it,
        the people are all who are named in the file.

    Returns
    -------
    Graph
        With ``ids``, user u is the person of label ``ids[u]``; a person in no edge has no
        neighbours. Without ``ids``:

        - if all names are whole numbers, users are in increasing order of these, whatever numbers
          are left out: people 5, 7 and 30 are users 0, 1 and 2. "007" is no number but a name;
        - otherwise users are in the order in which their names first appear, line by line.

        ``labels`` holds the names, unless they are exactly 0, 1, ..., n - 1.

    Raises
    ------
    DataError
        If the file cannot be read, names somebody by a text for a missing name such as ``nan`` or
        ``NA``, has weights or other further columns or a negative number, or, with ``ids``, has
        an edge of somebody unknown; the message counts them.
    ParameterError
        If ``ids`` holds a label twice.

    Notes
    -----
    Without ``ids``, the first line of text is taken for a header if neither of its fields is a
    whole number, or occurs anywhere else. An edge of a connected graph of more than two people is
    never taken for one. With ``ids``, see `read_edges`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.csv")
    ...     _ = path.write_text("from,to\nann,bob\nbob,eve\n")
    ...     read_graph(path).labels
    ('ann', 'bob', 'eve')
    """
    location = Path(path)
    if ids is None:
        return _graph_of_labels(edge_files.read_two_columns(location), location)
    names = tuple(str(name) for name in ids)
    labels = None if all(name == str(row) for row, name in enumerate(names)) else names
    return Graph.from_edges(
        edge_files.read_edges(location, ids), num_users=len(names), labels=labels
    )


def _graph_of_labels(table: "pl.DataFrame", location: Path) -> Graph:
    """Return the graph of edges between names that are text; see `read_graph`."""
    if location.suffix.lower() not in PARQUET and _starts_with_header(table, location.name):
        table = table[1:]
    for name in ("first", "second"):
        edge_files.require_named(table[name], location.name)
    columns = [edge_files.numbers_of(table[name], None) for name in ("first", "second")]
    if all(is_known.all() for _, is_known in columns):
        return _graph_of_numbers(np.stack([found for found, _ in columns], axis=1), location.name)
    both = table.select(pl.concat_list("first", "second").explode()).to_series()
    names = both.unique(maintain_order=True).to_list()  # line by line
    ends = [edge_files.numbers_of(table[name], names)[0] for name in ("first", "second")]
    return Graph.from_edges(np.stack(ends, axis=1), num_users=len(names), labels=names)


def _starts_with_header(table: "pl.DataFrame", origin: str) -> bool:
    """Return True if the first line is a header: see the Notes of `read_graph`."""
    fields = table.row(0)
    if any(_WHOLE_NUMBER.fullmatch(field) for field in fields):
        return False
    if any(sum((column == field).sum() for column in table) > 1 for field in fields):
        return False
    if table.height == 1:
        raise DataError(
            f"{origin} has one line, {fields[0]!r} and {fields[1]!r}, which may be a header: if "
            "it is an edge, put a header before it"
        )
    return True


def _graph_of_numbers(pairs: Integers, origin: str) -> Graph:
    """Return the graph of edges between numbers, in increasing order of these."""
    if pairs.size == 0:
        raise DataError(f"{origin} has no rows: give an edge a row")
    if (lowest := int(pairs.min())) < 0:
        raise DataError(
            f"{origin} names somebody by {lowest}: people are numbered from 0; if it stands for "
            "a missing answer, leave such edges out"
        )
    names, edges = np.unique(pairs, return_inverse=True)
    labels = None if names[-1] == names.size - 1 else tuple(map(str, names.tolist()))
    return Graph.from_edges(edges.reshape(-1, 2), num_users=names.size, labels=labels)


def read_network(
    graph: str | PathLike[str],
    table: str | PathLike[str],
    *,
    num_users: int,
    id_column: str | None = None,
    **ways: Any,
) -> Graph:
    """Read a graph whose user i is row i of a table of ``num_users`` rows.

    Edges name people by a column of the table, or by row numbers from 0. People without an edge are
    in it, without neighbours. ``ways`` of reading the table: see `open_column`.
    """
    if id_column is not None:
        return read_graph(graph, ids=edge_files.read_ids(table, id_column, **ways))
    found = read_graph(graph)
    name, rows = Path(graph).name, Path(table).name
    if found.labels is not None:
        raise DataError(
            f"{name} names people by labels such as {found.labels[0]!r}, not by row numbers from "
            f"0: name the column of {rows} that holds these labels: id_column=..."
        )
    if found.num_users != num_users:
        raise DataError(
            f"{name} has {found.num_users:,} users and {rows} {num_users:,} rows: give one row for "
            "each user of the graph, or name the column that holds their labels: id_column=..."
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkPlan:
    """Walk of reports and its rounds; None to choose rounds that bring epsilon near its limit."""

    name: str
    mixing: NetworkMixing
    rounds: int | None
    protocol: ReportingProtocol = "all"

    def shuffling(self, profile: LocalProfile, *, delta: float) -> NetworkShuffling:
        """Return the exchange for one randomizer; rounds are chosen for it if not given."""
        rounds = self.rounds
        if rounds is None:
            rounds = self.mixing.fewest_rounds(profile, delta=delta, protocol=self.protocol)
        return NetworkShuffling(
            mixing=self.mixing,
            rounds=rounds,
            protocol=self.protocol,
            graph_name=self.name,
            are_rounds_chosen=self.rounds is None,
        )

    def setting(
        self,
        question: Question,
        *,
        delta: float,
        randomizer: str | None = None,
        dummies: DummyLaw | None = None,
        **target: float | None,
    ) -> Plan:
        """Return a randomizer of a given epsilon0, or for a central target, and its exchange.

        ``target`` is ``epsilon`` or ``epsilon0``, and perhaps ``max_epsilon0``, as of `plan`. For a
        central target it is the randomizer that a plan for a uniform shuffle chooses, with somewhat
        more noise; with dummies, which do not change the number of rounds, k-RR.
        """
        if dummies is not None and question.has_one_label:
            randomizer = randomizer or next(iter(question.dummy_candidates()), None)
        about: Any = {"num_users": self.mixing.graph.num_users, "delta": delta, **target}
        planned = partial(make_plan, question, **about)
        if target.get("epsilon") is None:
            name = randomizer or next(iter(question.candidates()))
            near = chosen_candidates(question, name)[name](target.get("epsilon0") or 0.0)
        else:
            near = planned(randomizer=randomizer).randomizer
            name = near.name
        shuffling = self.shuffling(near.profile, delta=delta)
        return planned(shuffling=shuffling, randomizer=name, dummies=dummies or "none")


def facts_of_walk(
    users: Graph, hiding: Hiding, profile: LocalProfile, guarantee: Guarantee
) -> dict[str, Any]:
    """Return facts about an exchange between users, by field of `NetworkFacts`."""
    delta = guarantee.delta_upper
    uniform = guarantee_for(profile, guarantee.num_users, delta=delta, with_lower=False)
    return {
        "num_users": users.num_users,
        "num_edges": users.num_edges,
        "fewest_neighbours": int(users.degrees.min()),
        "most_neighbours": int(users.degrees.max()),
        "irregularity": users.irregularity,
        "separation": hiding.separation,
        "method": hiding.bounds.method,
        "uniform_epsilon": uniform.epsilon_upper,
    }


def local_cautions(
    profile: LocalProfile, guarantee: Guarantee, why: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a warning, with the reasons, if no more than the local guarantee is proved."""
    delta, epsilon = guarantee.delta_upper, guarantee.epsilon_upper
    alone = account_epsilon(profile, num_users=1, delta=delta, with_lower=False).upper
    if epsilon < alone * (1.0 - _NOTHING):
        return ()
    reasons = "; ".join(why or ["reports did not come far enough to hide among others"])
    upwards = Context(prec=6, rounding=ROUND_CEILING)
    shown = upwards.create_decimal(repr(float(epsilon))).normalize()
    return (f"Only the local guarantee is left, epsilon <= {shown:f}: {reasons}.",)


def network_cautions(facts: NetworkFacts) -> tuple[str, ...]:
    """Return warnings about the estimates, one sentence each."""
    if facts.protocol == "all" or facts.separation <= _VISIBLE_SEPARATION:
        return ()
    return (
        "With protocol single the estimates take every user's report to be equally likely to be "
        f"handed in. After {facts.rounds:,} rounds that holds only roughly (separation "
        f"{facts.separation:.2g}): add rounds, or use protocol all.",
    )
