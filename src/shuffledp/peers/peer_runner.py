"""Peers at work: many users in one process, from drawing their reports to handing in.

The order of steps makes it safe to stop at any moment. A report is drawn once and saved before
anything else; a batch is saved before it is sent; received mail is saved before the next round,
without the keys that opened it. A message that was on its way is asked for, or sent, again.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shuffledp.collection.questions import open_column
from shuffledp.collection.questions.question import Question, has_parts
from shuffledp.collection.source.edge_files import read_ids
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.remote import RefusedError
from shuffledp.network.graph import Graph
from shuffledp.peers import relay_client
from shuffledp.peers.keys import Roster
from shuffledp.peers.peer import Peer
from shuffledp.peers.relay_client import RelayClient, RelayStatus
from shuffledp.peers.terms import LIMITS, Limits, Terms

#: Values by node, each as a row of the array that a randomizer takes.
NodeValues: TypeAlias = Mapping[int, Any]


def read_node_values(
    question: Question,
    table: Path,
    column: str | None,
    *,
    graph: Graph,
    id_column: str | None = None,
    **ways: Any,
) -> NodeValues:
    """Read the values of a graph's nodes from a table in which each row is one user.

    Without a column of labels the row number, from 0, is the node's number, so that there must be
    one row per node. ``ways`` of reading as in `open_column`.
    """
    opened = open_column(table, column, question, **ways)
    nodes: Sequence[int] = range(graph.num_users)
    if id_column is not None:
        number_of = {graph.name_of(node): node for node in nodes}
        ids = read_ids(table, id_column, **ways)
        for label in ids:
            if label not in number_of:
                named = f"{label!r} in column {id_column!r}, who is no node of the graph"
                raise DataError(
                    f"{table.name} names {named}: leave the row out, or see its spelling"
                )
        nodes = [number_of[label] for label in ids]
    elif opened.num_users != graph.num_users:
        raise DataError(
            f"{table.name} has {opened.num_users:,} rows and the graph {graph.num_users:,} nodes: "
            "name the column of labels with --id, or give one row a node, in the nodes' order"
        )
    return dict(zip(nodes, np.concatenate(list(opened.blocks())), strict=True))


def value_of_one(question: Question, node: int, answer: str) -> NodeValues:
    """Return the value of a single user, given as text."""
    if has_parts(question):
        raise ParameterError(f"an answer to {question.kind} is no single text: give a table")
    return {node: question.value_of_one(answer)[0]}


_TABLES = (
    "CREATE TABLE peers (collection BLOB, node INTEGER, state BLOB NOT NULL, "
    "PRIMARY KEY (collection, node))",
    "CREATE TABLE answers (question BLOB, user TEXT, law BLOB, epsilon0 REAL NOT NULL, "
    "report BLOB NOT NULL, PRIMARY KEY (question, user, law))",
)
_PEERS = Layout(kind="file of peers", mark=b"sdpp", version=3, tables=_TABLES)


class Answer(NamedTuple):
    """A report that was drawn from a user's value."""

    # The user; named alike in all collections of a file.
    user: str
    # Digest of all that determines the distribution of the report.
    law: bytes
    # Its local epsilon, in nats.
    epsilon0: float
    # The randomized report.
    report: bytes


class PeerStore(Database):
    """States of peers in a file; saved states are durable before `save` returns.

    `rewrite` leaves no trace of replaced states.

    One file serves several collections, and stores the answers in each. It holds the users'
    private keys and reports, so it is made readable by its owner only.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        self._collection = terms.digest()
        super().__init__(path, _PEERS)
        self.rows("PRAGMA temp_store = MEMORY")  # `rewrite` must not write keys elsewhere

    def states(self) -> dict[int, bytes]:
        """Return the state of each peer of the collection, by rising node."""
        query = "SELECT node, state FROM peers WHERE collection = ? ORDER BY node"
        return dict(self.rows(query, (self._collection,)))

    def save(
        self,
        states: Iterable[tuple[int, bytes]],
        *,
        question: bytes = b"",
        answers: Iterable[Answer] = (),
    ) -> None:
        """Store the state of some peers, and their answers to a question: all or nothing."""
        rows = [(self._collection, node, state) for node, state in states]
        kept = [(question, *each) for each in answers]
        with self.transaction():
            self.change_many("INSERT OR REPLACE INTO peers VALUES (?, ?, ?)", rows)
            self.change_many("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", kept)

    def bury(self, ends: Iterable[tuple[int, str]]) -> None:
        """Forget keys and reports of peers whose part is over, and keep only its outcome.

        Their answers stay, for the next collection with the same question.
        """
        self.save((node, end.encode()) for node, end in ends)
        self.rewrite()

    def answers(self, question: bytes) -> list[Answer]:
        """Return all answers to a question, in any collection."""
        query = "SELECT user, law, epsilon0, report FROM answers WHERE question = ?"
        return [Answer(*row) for row in self.rows(query, (question,))]

    def spent(self, user: str) -> float:
        """Return the sum of epsilon0 over all reports of a user, whatever the question."""
        query = "SELECT total(epsilon0) FROM answers WHERE user = ?"
        return float(self.value(query, (user,)))


def spending_facts(store: PeerStore, asked: AskedTerms, user: str) -> list[tuple[str, str]]:
    """Earlier answers of a user by a file, and the cost of answering now."""
    before = [each for each in store.answers(asked.question_digest) if each.user == user]
    spent = sum(each.epsilon0 for each in before)
    told = "nothing on this question"
    if any(each.law == asked.law for each in before):
        told = "this question was answered: the same report is sent again, at no more epsilon0; "
        told += "who sees it in two collections may recognise it"
    elif before:
        after = spent + asked.epsilon0
        told = f"epsilon0 {spent:.6g} on this question: another report makes {after:.6g}"
    return [("spent before", f"{told}; {store.spent(user):.6g} on all questions in this file")]


_LATE = 410
_ENDS = (b"handed in", b"late", b"lost", b"withheld")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersOutcome:
    """Outcome for the users of one process."""

    # Number of these users.
    num_users: int
    # Nodes by outcome. "handed in"; "late": they came after registration had ended and took no
    # part; "lost": they came after handing in had ended, and the reports they held are missing;
    # "withheld": they were absent too often, by their limits, and handed in nothing. And "short":
    # nodes that missed messages sent to them, or heard of others who did.
    nodes: Mapping[str, Sequence[int]]
    # Sum over all users of `PeerState.counts`.
    counts: Counter[str]
    # Digests of absences by round, as the relay showed it to users who handed in: one digest, the
    # same for all users, unless the relay showed them different records.
    transcripts: tuple[str, ...]


def _in_time(request: Callable[..., None], *arguments: object) -> bool:
    """Make a request; return False if it came too late, True if it was taken."""
    try:
        request(*arguments)
    except RefusedError as error:
        if error.status != _LATE:
            raise
        return False
    return True


@dataclass(slots=True, kw_only=True)
class PeerRunner:
    """Runs the peers of a store against a relay, once `draw` has their reports."""

    terms: Terms
    graph: Graph
    store: PeerStore
    # Names of the users by node, the same in all collections of the store.
    names: Mapping[int, str]
    client: RelayClient
    entropy: Entropy
    limits: Limits = LIMITS
    on_progress: Progress = no_progress
    on_roster: Callable[[str], None] = lambda _: None
    _peers: dict[int, Peer] = field(default_factory=dict, init=False)
    _registered: set[int] = field(default_factory=set, init=False)
    _sent: set[tuple[int, int]] = field(default_factory=set, init=False)
    _ends: dict[int, str] = field(default_factory=dict, init=False)  # outcome by node
    _roster: str = field(default="", init=False)

    def draw(self, values: Callable[[], NodeValues]) -> None:
        """Randomize the values of users who have no report of that law yet, and save the reports.

        Users in the store have a report already, whatever the table has now. If a user has a report
        of the same law on the same question, from another collection, it is sent again: a second
        one, drawn anew, would reveal more. ``values`` is called only if a report must be drawn.
        """
        terms, asked, states = self.terms, self.terms.asked, self.store.states()
        new = {node: name for node, name in self.names.items() if node not in states}
        before: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.store.answers(asked.question_digest):
            before[answer.user].append(answer)
        reports = {}
        for node, name in new.items():
            self.limits.require_terms(terms, self.graph, node)
            same = [answer.report for answer in before[name] if answer.law == asked.law]
            if same:
                reports[node] = same[0]
            else:
                spent = sum(answer.epsilon0 for answer in before[name])
                self.limits.require_epsilon0(asked.epsilon0, spent=spent)
        fresh = [node for node in new if node not in reports]
        if fresh:
            known = values()
            rows = np.array([known[node] for node in fresh])
            drawn = asked.randomizer.randomize(rows, self.entropy)
            reports |= zip(fresh, asked.codec.encode(drawn), strict=True)
        for node in new:
            own = () if terms.dummies is None else asked.dummies(terms.dummies, self.entropy)
            how: Any = {"limits": self.limits, "dummies": own}
            peer = Peer.create(terms, self.graph, node, reports[node], self.entropy, **how)
            states[node] = peer.state.to_bytes()
        self.store.save(
            [(node, states[node]) for node in new],
            question=asked.question_digest,
            answers=[Answer(new[node], asked.law, asked.epsilon0, reports[node]) for node in fresh],
        )
        for node in self.names:
            if (state := states[node]) in _ENDS:
                self._ends[node] = state.decode()
            else:
                how = {"limits": self.limits}
                self._peers[node] = Peer.from_bytes(state, terms, self.graph, self.entropy, **how)

    def run(self) -> PeersOutcome:
        """Take part until all have handed in, or the collection is over; then forget the peers."""
        wait = 0.0
        while len(self._ends) < len(self.names):
            time.sleep(wait)
            status = self.client.status()
            status.require_terms(self.terms)
            if status.phase == "over":
                break
            wait = 0.0 if self.step(status) else 1.5 * wait
            wait = min(max(wait, relay_client.SHORTEST_WAIT), relay_client.LONGEST_WAIT)
        self._end("lost", (node for node in self.names if node not in self._ends))
        outcome = self._outcome()
        self.store.bury(self._ends.items())
        return outcome

    def _end(self, how: str, nodes: Iterable[int]) -> None:
        """Note the outcome of some users."""
        self._ends.update(dict.fromkeys(nodes, how))

    def step(self, status: RelayStatus) -> bool:
        """Do the next step of the present phase; `run` repeats this until all is done."""
        self.on_progress("rounds", status.round, status.rounds)
        if status.phase == "registration":
            return self._register()
        self._begin()
        if status.phase == "round":
            has_received = self._receive_through(status.round - 1)
            return self._send(status.round) or has_received
        has_received = self._receive_through(status.rounds)
        return self._hand_in() or has_received

    def _register(self) -> bool:
        """Register the peers that this process has not registered yet."""
        new = [node for node in self._peers if node not in self._registered]
        for node in new:
            # If registration ended just now, the roster will show it.
            _in_time(self.client.register, node, self._peers[node].state.registration)
            self._registered.add(node)
        return bool(new)

    def _begin(self) -> None:
        """Take the roster, once a process: checking it costs a signature a user."""
        if self._roster:
            return
        roster = Roster.from_bytes(self.client.roster(), self.terms)
        self._end("late", (node for node in self._peers if node not in roster))
        self._peers = {node: peer for node, peer in self._peers.items() if node in roster}
        for peer in self._peers.values():
            peer.begin(roster)
        self._roster = roster.digest().hex()
        self.on_roster(self._roster)

    def _receive_through(self, last: int) -> bool:
        """Take the mail of all rounds up to ``last``, one round after the other."""
        peers = self._peers
        first = min((peer.state.received_through for peer in peers.values()), default=last) + 1
        for number in range(first, last + 1):
            behind = {node: p for node, p in peers.items() if p.state.received_through < number}
            for node, peer in behind.items():
                # Find out now whether the batch of the round reached the relay.
                is_open = peer.state.sent_in == number and (number, node) not in self._sent
                if is_open and not _in_time(self.client.send, number, node, peer.outgoing(number)):
                    peer.take_back(number)
                peer.receive(number, self.client.mail(number, node, peer.mail_token(number)))
            self._save(behind)
            self.store.rewrite()  # the file still has the keys of that round
        return first <= last

    def _send(self, number: int) -> bool:
        """Send batches in the open round, saved first."""
        new = {n: peer for n, peer in self._peers.items() if (number, n) not in self._sent}
        batches = {node: peer.outgoing(number) for node, peer in new.items()}
        self._save(new)
        for node, batch in batches.items():
            if not _in_time(self.client.send, number, node, batch):
                return True  # the round ended just now: the batch is taken back then
            self._sent.add((number, node))
        return bool(new)

    def _hand_in(self) -> bool:
        """Hand in reports, saved first."""
        self._end("withheld", (node for node, peer in self._peers.items() if peer.withholds))
        new = {node: peer for node, peer in self._peers.items() if node not in self._ends}
        handed = {node: peer.hand_in() for node, peer in new.items()}
        self._save(new)
        for node, data in handed.items():
            if not _in_time(self.client.hand_in, node, data):
                return True  # handing in is over: the outcome counts these users as lost
            self._end("handed in", (node,))
        return bool(new)

    def _save(self, peers: dict[int, Peer]) -> None:
        """Save some peers together."""
        self.store.save([(node, peer.state.to_bytes()) for node, peer in peers.items()])

    def _outcome(self) -> PeersOutcome:
        """Outcome for all users."""
        ends: defaultdict[str, list[int]] = defaultdict(list)
        for node, how in sorted(self._ends.items()):
            ends[how].append(node)
        said = {node: peer.confirmation for node, peer in self._peers.items()}
        there = said.keys() & set(ends["handed in"])
        ends["short"] = [node for node, each in said.items() if each.short_since]
        return PeersOutcome(
            num_users=len(self.names),
            nodes=ends,
            counts=sum((peer.state.counts for peer in self._peers.values()), Counter()),
            transcripts=tuple(sorted({said[each].transcript.hex() for each in there})),
        )
