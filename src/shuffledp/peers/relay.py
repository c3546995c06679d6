"""The relay: a bulletin board of keys, a mailbox for each user, and the number of the round.

It opens nothing and decides nothing about reports. Every call may be repeated: an accepted message
is acknowledged again and kept once, also by a relay that starts again on its file. It forgets mail
when its recipient next sends or hands in, for a peer saves its mail before it does so; and hand-ins
when the analyzer confirms that they are stored there.

Over HTTP it has a clock, its endpoints and a socket. All bodies are bytes as the protocol makes
them; errors are one line of JSON, ``{"error": ...}``. Requests are handled one after the other,
each change on disk before it is acknowledged. Paths state the user of a request, and must name the
user and the round of the signed body.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy import wire
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.wire import Fault, Reason, is_signed, opaque
from shuffledp.network.graph import Graph
from shuffledp.peers import keys
from shuffledp.peers import mail as messages
from shuffledp.peers.keys import Registration, Roster
from shuffledp.peers.mail import Batch, Letter, Mail
from shuffledp.peers.terms import CODE_BYTES, REGISTRATION_BYTES, Terms

_TABLES = (
    "CREATE TABLE registrations (node INTEGER PRIMARY KEY, message BLOB NOT NULL)",
    # The digest of each batch: its content is kept in the mail, and only there.
    "CREATE TABLE batches (round INTEGER, sender INTEGER, digest BLOB NOT NULL, "
    "PRIMARY KEY (round, sender))",
    # Envelopes, and at place -1 the code over them. By recipient first, so that mail taken by one
    # of them is deleted in one stroke.
    "CREATE TABLE mail (round INTEGER, recipient INTEGER, sender INTEGER, place INTEGER, "
    "content BLOB NOT NULL, PRIMARY KEY (recipient, round, sender, place)) WITHOUT ROWID",
    "CREATE TABLE hand_ins (holder INTEGER PRIMARY KEY, message BLOB NOT NULL)",
)
_STORE = Layout(kind="relay store", mark=b"sdpr", version=5, tables=_TABLES)
_CODE_PLACE = -1


class Relay(Database):
    """A relay in a file of its own; each change is on disk before it is acknowledged.

    Every method that takes a message raises `ProtocolError`, changing nothing, unless the message
    is valid.
    """

    def __init__(self, path: Path, terms: Terms, graph: Graph) -> None:
        terms.require_graph(graph)
        super().__init__(path, _STORE, collection=terms.digest())
        self.terms, self.graph = terms, graph
        self._roster = self._read_roster() if self.round_number else None
        self._absent: dict[int, tuple[int, ...]] = {}  # of finished rounds

    # ------------------------------------------------------------ phases
    @property
    def round_number(self) -> int:
        """The open round; 0 before the first, one more than the last at the end."""
        return int(self.fact("round") or 0)

    @property
    def phase(self) -> str:
        """One of ``"registration"``, ``"round"``, ``"hand-in"``, ``"over"``."""
        number = self.round_number
        if number <= self.terms.rounds:
            return "round" if number else "registration"
        return "over" if self.fact("over") else "hand-in"

    def status(self) -> dict[str, object]:
        """Public status, as JSON values."""
        number = self.round_number
        return {
            "phase": self.phase,
            "round": min(number, self.terms.rounds),
            "rounds": self.terms.rounds,
            "num_users": self.terms.num_users,
            "num_registered": self._number("registrations"),
            "num_sent": len(self.senders(number)),
            "num_handed_in": self._number("hand_ins"),
            "terms_digest": self.terms.digest().hex(),
        }

    def is_complete(self) -> bool:
        """Return True if all registered users completed the present phase."""
        registered = self._number("registrations")
        if self.phase == "registration":
            return registered == self.terms.num_users
        if self.phase == "round":
            return len(self.senders(self.round_number)) == registered
        return self._number("hand_ins") == registered

    def _number(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(self.value(f"SELECT count(*) FROM {table}"))  # noqa: S608  # a name of ours

    def go_on(self) -> bool:
        """End the present phase; return False while fewer users registered than the terms need."""
        phase, roster = self.phase, self._roster
        if phase == "registration":
            roster = self._read_roster()
            if len(roster) < self.terms.least_registered:
                return False
        with self.transaction():
            if phase in ("registration", "round"):
                self.set_fact("round", self.round_number + 1)
            else:
                self.set_fact("over", 1)
                self.change("DELETE FROM mail")  # nobody fetches it any more
        self._roster = roster
        self.rewrite()  # the mail before that round is deleted except for absent users
        return True

    # ------------------------------------------------------------ registration
    def _read_roster(self) -> Roster:
        """Return the roster of the stored registrations."""
        kept = self.column("SELECT message FROM registrations")
        return Roster(self.terms, (Registration.from_bytes(data, self.terms) for data in kept))

    def register(self, data: bytes, *, node: int | None = None) -> bool:
        """Take a registration; return True if it is new."""
        registration = Registration.from_bytes(data, self.terms)
        _require_named("user", registration.node, node)
        query = "SELECT message FROM registrations WHERE node = ?"
        kept = self.value(query, (registration.node,))
        if _is_known(kept, data, f"user {registration.node} has registered with other keys"):
            return False
        if self._roster is not None:
            raise Fault.PEER.error("registration is closed", Reason.LATE)
        with self.transaction():
            self.change("INSERT INTO registrations VALUES (?, ?)", (registration.node, data))
        return True

    @property
    def roster(self) -> Roster:
        """Registered users; `ProtocolError` while users register."""
        if self._roster is None:
            raise Fault.PEER.error("the roster is not closed yet: ask again", Reason.EARLY)
        return self._roster

    # ------------------------------------------------------------ rounds
    def accept_batch(
        self, data: bytes, *, round_number: int | None = None, node: int | None = None
    ) -> bool:
        """Take the envelopes of a user in the open round; return True if they are new.

        The same bytes again are acknowledged also after the round; other bytes are then refused
        with `Reason.LATE`, and their sender must take them back.
        """
        batch = messages.decode_batch(data, self.roster)
        _require_named("user", batch.sender, node)
        _require_named("round", batch.round_number, round_number)
        digest = wire.digest(b"batch", data)
        where = f"of user {batch.sender} in round {batch.round_number}"
        query = "SELECT digest FROM batches WHERE round = ? AND sender = ?"
        kept = self.value(query, (batch.round_number, batch.sender))
        if _is_known(kept, digest, f"another batch {where} was accepted"):
            return False
        now = self.round_number
        if batch.round_number != now:
            reason = Reason.EARLY if batch.round_number > now else Reason.LATE
            raise Fault.PEER.error(f"the batch {where} came in round {now}", reason)
        neighbours = self.roster.neighbours_in(self.graph, batch.sender)
        self._require_allowed(batch, neighbours)
        mail = [(each.recipient, each.index, each.sealed) for each in batch.letters]
        codes = zip(neighbours, batch.codes, strict=True)
        mail += [(recipient, _CODE_PLACE, code) for recipient, code in codes]
        with self.transaction():
            self._forget_mail(batch.sender)
            self.change("INSERT INTO batches VALUES (?, ?, ?)", (now, batch.sender, digest))
            rows = [(now, recipient, batch.sender, *rest) for recipient, *rest in mail]
            self.change_many("INSERT INTO mail VALUES (?, ?, ?, ?, ?)", rows)
        return True

    def _forget_mail(self, recipient: int) -> None:
        """Forget a user's mail of all finished rounds, which the user has taken."""
        query = "DELETE FROM mail WHERE recipient = ? AND round < ?"
        self.change(query, (recipient, self.round_number))

    def _require_allowed(self, batch: Batch, neighbours: tuple[int, ...]) -> None:
        """Raise unless neighbours get all letters, each the terms' number, and one code each."""
        sender, each = batch.sender, self.terms.per_neighbour
        to = Counter(letter.recipient for letter in batch.letters)
        for what, number, expected in (
            ("envelopes", to.total(), self.terms.batch_size(sender, len(neighbours))),
            ("codes", len(batch.codes), len(neighbours)),
        ):
            if number != expected:
                raise Fault.PEER.error(f"user {sender} sent {number} {what}, not {expected}")
        for stranger in to.keys() - set(neighbours):
            what = f"user {stranger} is no registered neighbour of user {sender}"
            raise Fault.PEER.error(what, Reason.UNKNOWN)
        if each and not set(to.values()) <= {each}:
            raise Fault.PEER.error(f"user {sender} did not send each neighbour {each} envelopes")

    def senders(self, round_number: int) -> frozenset[int]:
        """Senders of a round."""
        return frozenset(self.column("SELECT sender FROM batches WHERE round = ?", (round_number,)))

    def absent(self, round_number: int) -> tuple[int, ...]:
        """Return the registered users who sent nothing in a round that is over, ascending."""
        now = self.round_number
        if not 1 <= round_number < now:
            raise Fault.PEER.error(f"round {round_number} is not over: now is {now}", Reason.EARLY)
        if round_number not in self._absent:
            senders = self.senders(round_number)
            self._absent[round_number] = tuple(node for node in self.roster if node not in senders)
        return self._absent[round_number]

    def mail(self, node: int, round_number: int, token: bytes) -> bytes:
        """Mail to a user in a finished round, and the round's absences.

        The same each time, until the user sends the next message: this shows that the mail was
        taken, and it is forgotten.
        """
        roster = self.roster
        if self.phase == "over":
            raise Fault.PEER.error("the collection is over, and its mail was deleted", Reason.LATE)
        if node not in roster:
            raise Fault.PEER.error(f"user {node} is not in the roster", Reason.UNKNOWN)
        absent = self.absent(round_number)
        text = keys.mail_token_text(self.terms, node, round_number)
        if not is_signed(token, roster[node].identity_key, text):
            raise Fault.PEER.error(f"the mail token of user {node} is not theirs", Reason.FORGED)
        query = "SELECT count(*) FROM batches WHERE sender = ? AND round > ?"
        if self._handed_in(node) is not None or self.value(query, (node, round_number)):
            what = f"user {node} has taken the mail of round {round_number}, for they went on, and "
            what += "it was deleted: is this a copy of their state, or an old one?"
            raise Fault.PEER.error(what, Reason.LATE)
        query = "SELECT sender, place, content FROM mail WHERE round = ? AND recipient = ? "
        rows = self.rows(query + "ORDER BY sender, place", (round_number, node))
        mail = Mail(
            absent=absent,
            letters=tuple(
                Letter(round_number, sender, place, node, content)
                for sender, place, content in rows
                if place != _CODE_PLACE
            ),
            codes={sender: content for sender, place, content in rows if place == _CODE_PLACE},
        )
        return messages.encode_mail(mail, roster, round_number=round_number, recipient=node)

    # ------------------------------------------------------------ hand-ins
    def _handed_in(self, holder: int) -> Any:
        """Hand-in of a user; None if there is none."""
        return self.value("SELECT message FROM hand_ins WHERE holder = ?", (holder,))

    def accept_hand_in(self, data: bytes, *, node: int | None = None) -> bool:
        """Take a holder's hand-in, after the last round; return True if it is new."""
        holder, _ = messages.decode_hand_in(data, self.roster)
        _require_named("user", holder, node)
        if self.phase == "over":
            what = "handing in has ended: this user's reports are lost, and counted as missing"
            raise Fault.PEER.error(what, Reason.LATE)
        if _is_known(self._handed_in(holder), data, f"user {holder} has handed in something else"):
            return False
        now = self.round_number
        if now <= self.terms.rounds:
            raise Fault.PEER.error(f"user {holder} hands in during round {now}", Reason.EARLY)
        with self.transaction():
            self._forget_mail(holder)
            self.change("INSERT INTO hand_ins VALUES (?, ?)", (holder, data))
        return True

    def hand_ins(self, token: bytes) -> tuple[bytes, ...]:
        """All hand-ins, holders ascending, to the analyzer once final."""
        self._require_analyzer(token)
        handed_in = tuple(self.column("SELECT message FROM hand_ins ORDER BY holder"))
        if not all(handed_in):
            what = "what was handed in was deleted here when the analyzer had stored it: "
            raise Fault.ANALYZER.error(f"{what}use the file beside the analyzer's key", Reason.LATE)
        return handed_in

    def record(self, token: bytes) -> list[list[int]]:
        """Absences of each round, to the analyzer once final.

        Users who never registered are absent in all rounds.
        """
        self._require_analyzer(token)
        users = range(self.terms.num_users)
        there = map(self.senders, range(1, self.terms.rounds + 1))
        return [[user for user in users if user not in senders] for senders in there]

    def forget_hand_ins(self, token: bytes) -> None:
        """Forget the content of hand-ins, not their holders; the analyzer has it; repeatable."""
        self._require_analyzer(token)
        with self.transaction():
            self.change("UPDATE hand_ins SET message = x''")
        self.rewrite()

    def _require_analyzer(self, token: bytes) -> None:
        """Raise unless a token is the analyzer's, and no hand-in can come any more."""
        if self.phase != "over":
            what = f"the collection is in its {self.phase} phase: ask again when it is over"
            raise Fault.ANALYZER.error(what, Reason.EARLY)
        text = keys.hand_ins_token_text(self.terms)
        if not is_signed(token, self.terms.analyzer_identity_key, text):
            raise Fault.ANALYZER.error("a token for hand-ins is not the analyzer's", Reason.FORGED)


def _require_named(what: str, named: int, wanted: int | None) -> None:
    """Raise if a message names another user or round than the request."""
    if wanted is not None and named != wanted:
        raise Fault.PEER.error(f"it is of {what} {named}, and was sent as of {what} {wanted}")


def _is_known(kept: bytes | None, data: bytes, conflict: str) -> bool:
    """Return True if the same data is kept; raise if other data is."""
    if kept is not None and kept != data:
        raise Fault.PEER.error(f"{conflict}: it stands", Reason.CONFLICT)
    return kept is not None


# --------------------------------------------------------------------- over HTTP
# Size of seal, signature, digests and numbers around the messages of a batch or hand-in.
_MOST_HEAD_BYTES = 1024
_TICK_SECONDS = 0.05

# Time for handing in, in rounds.
_ROUNDS_OF_HAND_IN = 10.0


@dataclass
class RelayService:
    """A relay with a clock: it opens and closes rounds as time goes by.

    A relay that was stopped and started anew begins its phase from the start: users who could not
    reach it meanwhile have the whole time again.
    """

    relay: Relay
    _: KW_ONLY
    # True to end a round as soon as all have sent, not only on time.
    is_eager: bool = False
    round_seconds: float = 60.0
    # Without it the relay waits for all users.
    register_seconds: float | None = None
    now: Callable[[], float] = time.monotonic
    # Called when the analyzer has confirmed that it has stored everything.
    on_collected: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        require_positive("round_seconds", self.round_seconds)
        if self.register_seconds is not None:
            require_positive("register_seconds", self.register_seconds)
        self._since, self._is_halfway = self.now(), False

    def advance(self) -> bool:
        """Move on to the next phase if the present one is over; return True if it was.

        While a disk is so full that a phase began and the mail before it could not be wiped, its
        time does not run: hardly anybody can send then.
        """
        before = phase, _ = self.relay.phase, self.relay.round_number
        if phase == "over" or self._is_halfway:
            return False
        limits = {"registration": self.register_seconds, "round": self.round_seconds}
        limit = limits.get(phase, _ROUNDS_OF_HAND_IN * self.round_seconds)
        is_over = limit is not None and self.now() - self._since >= limit
        if phase != "round" or self.is_eager:  # otherwise the pace would reveal fast users
            is_over = is_over or self.relay.is_complete()
        try:
            if not is_over or not self.relay.go_on():
                return False
        except ShuffledpError:
            self._is_halfway = before != (self.relay.phase, self.relay.round_number)
            raise
        self._since = self.now()
        return True

    def catch_up(self) -> None:
        """Wipe what could not be wiped when the present phase began, which begins now."""
        if self._is_halfway:
            self.relay.rewrite()
            self._since, self._is_halfway = self.now(), False

    def most_batch_bytes(self, node: int) -> int:
        """Return an upper bound on the size of a batch of a node in bytes."""
        terms, degree = self.relay.terms, int(self.relay.graph.degrees[node])
        envelopes = terms.batch_size(node, degree) * (terms.envelope_bytes + 4)
        return envelopes + degree * CODE_BYTES + _MOST_HEAD_BYTES

    def most_hand_in_bytes(self, node: int) -> int:
        """Return an upper bound on the size of a hand-in of a node in bytes."""
        terms = self.relay.terms
        return terms.slots[node] * (terms.inner_bytes + 1) + _MOST_HEAD_BYTES

    def done(self) -> Response:
        """Move on if the phase waited for this request only; return an empty answer."""
        self.advance()
        return Response(status_code=204)

    def node_of(self, request: Request) -> int:
        """Return the node of a request."""
        node = int(request.path_params["node"])
        if node >= self.relay.terms.num_users:
            raise HTTPException(404, f"node {node} is not in [0, {self.relay.terms.num_users})")
        return node

    async def run(self) -> None:
        """Move on whenever a phase is over, until cancelled."""
        while True:
            try:
                self.catch_up()
                self.advance()
            except ShuffledpError as error:  # a full disk, for example, which may get room again
                http.print_error(error)
                await asyncio.sleep(1.0)
            await asyncio.sleep(_TICK_SECONDS)


def make_app(service: RelayService) -> Starlette:
    """Return the application: endpoints for peers, for the analyzer, and public ones."""
    relay = service.relay

    async def roster(_: Request) -> Response:
        return http.data_of(relay.roster.to_bytes())

    async def register(request: Request) -> Response:
        node = service.node_of(request)
        relay.register(await http.body_of(request, REGISTRATION_BYTES), node=node)
        return service.done()

    async def send(request: Request) -> Response:
        node, number = service.node_of(request), request.path_params["round"]
        body = await http.body_of(request, service.most_batch_bytes(node))
        relay.accept_batch(body, round_number=number, node=node)
        return service.done()

    async def mail(request: Request) -> Response:
        node, number = service.node_of(request), request.path_params["round"]
        return http.data_of(relay.mail(node, number, http.token_of(request)))

    async def hand_in(request: Request) -> Response:
        node = service.node_of(request)
        body = await http.body_of(request, service.most_hand_in_bytes(node))
        relay.accept_hand_in(body, node=node)
        return service.done()

    async def status(_: Request) -> Response:
        return JSONResponse(relay.status())

    async def hand_ins(request: Request) -> Response:
        return http.data_of(b"".join(map(opaque, relay.hand_ins(http.token_of(request)))))

    async def forget_hand_ins(request: Request) -> Response:
        relay.forget_hand_ins(http.token_of(request))
        service.on_collected()
        return service.done()

    async def record(request: Request) -> Response:
        return JSONResponse({"absent": relay.record(http.token_of(request))})

    endpoints: dict[tuple[str, str], http.Endpoint] = {
        ("GET", "/roster"): roster,
        ("PUT", "/registration/{node:number}"): register,
        ("PUT", "/rounds/{round:number}/batches/{node:number}"): send,
        ("GET", "/rounds/{round:number}/mail/{node:number}"): mail,
        ("PUT", "/hand-in/{node:number}"): hand_in,
        ("GET", "/status"): status,
        ("GET", "/hand-ins"): hand_ins,
        ("DELETE", "/hand-ins"): forget_hand_ins,
        ("GET", "/record"): record,
    }
    return http.application(endpoints, [service.run])


def serve_relay(
    terms: Terms,
    graph: Graph,
    store: Path,
    *,
    on_ready: Callable[[str], None],
    address: tuple[str, int] = ("127.0.0.1", 0),
    until_collected: bool = False,
    **clock: Any,
) -> None:
    """Serve a relay until the process is told to stop, or, if asked, until all was collected.

    HTTP only: beyond one machine a reverse proxy must add TLS, which hides from the network who
    sends requests to the relay, how often and with which signatures. It continues where the last
    relay with that file stopped; ``on_ready`` gets the URL once requests are taken. ``clock`` is as
    in `RelayService`.
    """

    def stop() -> None:
        server.should_exit = True

    with http.listen(*address) as listening, Relay(store, terms, graph) as relay:
        service = RelayService(relay, **clock)
        if until_collected:
            service.on_collected = stop
        nodes = range(terms.num_users)
        most = max(max(service.most_batch_bytes(n), service.most_hand_in_bytes(n)) for n in nodes)
        server = http.make_server(make_app(service), most_body=most)
        on_ready(http.url_of(listening))
        server.run(sockets=[listening])
