"""The terms of one collection, on which all must agree, and the limits of a user."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Self

import numpy as np

from shuffledp.core.checks import require_at_least, require_positive, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy import wire
from shuffledp.deploy.asked_terms import MOST_OWN_DUMMIES, AskedTerms, json_bytes
from shuffledp.deploy.wire import Fault, Reason, is_mail_key, require_whole
from shuffledp.network.graph import Graph
from shuffledp.network.walk import require_laziness

#: Version of this layout of the terms and of all messages.
VERSION: Final = 5

COLLECTION_ID_BYTES: Final = 16

#: Bytes that HPKE (RFC 9180, DHKEM X25519, AES-128-GCM) adds to a text: a public key and a tag.
SEAL_BYTES: Final = 48

#: Bytes that AES in SIV mode (RFC 5297) adds to a text.
TAG_BYTES: Final = 16

#: Size of a code over the messages to a neighbour, truncated HMAC-SHA256: a relay guesses one with
#: probability 2^-128.
CODE_BYTES: Final = 16

#: Size of a registration: its kind, the user, two keys, a signature.
REGISTRATION_BYTES: Final = 2 * wire.NUMBER_BYTES + 2 * wire.KEY_BYTES + wire.SIGNATURE_BYTES

#: Probabilities of coins are multiples of one over this number.
COIN_SIDES: Final = 1 << 16

# Largest number of rounds and of slots, and size of a report in bytes: envelopes all have one size,
# so that one large report makes all large.
_MOST = 1 << 20

_BYTE_FIELDS = {
    "collection_id": COLLECTION_ID_BYTES,
    "graph_digest": wire.DIGEST_BYTES,
    "analyzer_mail_key": wire.KEY_BYTES,
    "analyzer_identity_key": wire.KEY_BYTES,
}


def new_collection_id(entropy: Entropy) -> bytes:
    """Return a fresh name for a collection: 16 random bytes."""
    return entropy.words(COLLECTION_ID_BYTES // 8).tobytes()


def graph_digest(graph: Graph) -> bytes:
    """Return SHA-256 of the edges of the graph, which does not depend on labels."""
    starts, neighbours = graph.starts.astype("<i8"), graph.neighbours.astype("<i4")
    return wire.digest(b"graph", starts.tobytes(), neighbours.tobytes())


def nearest_laziness(laziness: float) -> float:
    """Return the multiple of 2^-16 in [0, 1) nearest to a probability, as coins need it."""
    sides = round(require_laziness(laziness) * COIN_SIDES)
    return min(sides, COIN_SIDES - 1) / COIN_SIDES


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of one collection; `digest` binds them all."""

    # 16 random bytes; see `new_collection_id`. No two collections share them.
    collection_id: bytes
    # See `graph_digest`: 32 bytes.
    graph_digest: bytes
    # Users of the graph, in [1, 2^31).
    num_users: int
    # Rounds of exchange, in [1, 2^20].
    rounds: int
    # Number of messages that each user sends in every round, >= 1; see `messages_for`.
    slots: tuple[int, ...]
    # The question, and the randomizer of each user.
    asked: AskedTerms
    # X25519 public key to which reports are sealed.
    analyzer_mail_key: bytes
    # Ed25519 public key with which the relay verifies the analyzer.
    analyzer_identity_key: bytes
    # Whether a holder hands in all the reports they hold, or one of them.
    protocol: Literal["all", "single"] = "all"
    # Probability that a report stays with its holder: a multiple of 2^-16 in [0, 1), so that the
    # coin is exact.
    laziness: float = 0.0
    # If it is 0, the messages of a round go to independent uniform neighbours, so that the relay
    # learns to which neighbours a report cannot have gone. If it is c >= 1, exactly c go to each
    # registered neighbour instead of ``slots``, so that destinations of messages reveal nothing;
    # see `messages_for`. At most 2^20.
    per_neighbour: int = 0
    # Smallest number of registered users with whom a peer takes part, in [1, num_users]: protects
    # from a relay that leaves users out.
    least_registered: int = 1
    # Law of the dummies that each user sends along with the report, if any. They are drawn once, in
    # each collection, and walk like the report.
    dummies: DummyLaw | None = None

    def __post_init__(self) -> None:
        for name, size in _BYTE_FIELDS.items():
            value = getattr(self, name)
            if not isinstance(value, bytes) or len(value) != size:
                raise ParameterError(f"{name} is not {size} bytes: take it as it was made")
        if not is_mail_key(self.analyzer_mail_key):
            raise ParameterError(
                "nothing can be sealed to analyzer_mail_key: take the terms as they were published"
            )
        for name, first, end in (
            ("num_users", 1, 1 << 31),
            ("rounds", 1, _MOST + 1),
            ("report_bytes", 1, _MOST + 1),
            ("per_neighbour", 0, _MOST + 1),
        ):
            require_whole(name, getattr(self, name), first, end)
        require_whole("least_registered", self.least_registered, 1, self.num_users + 1)
        if (number := len(self.slots)) != self.num_users:
            raise ParameterError(
                f"slots has {number} items, not num_users = {self.num_users}: give one a user"
            )
        for user, number in enumerate(self.slots):
            require_whole(f"slots[{user}]", number, 1, _MOST + 1)
        if self.laziness != (nearest := nearest_laziness(self.laziness)):
            raise ParameterError(
                f"laziness = {self.laziness} is not a multiple of 2^-16: the nearest is {nearest}"
            )
        if self.protocol not in ("all", "single"):
            raise ParameterError(f"protocol = {self.protocol!r} is neither 'all' nor 'single'")
        set_fields(self, slots=tuple(self.slots), laziness=float(self.laziness))
        self._require_dummies()

    def _require_dummies(self) -> None:
        """Raise for dummies that users of the protocol cannot send."""
        if self.dummies is None:
            return
        self.asked.require_dummies(self.dummies, MOST_OWN_DUMMIES)
        if self.dummies.sender != "users":
            raise ParameterError(
                f"dummies = {self.dummies} are not users': give a law such as poisson:0.05"
            )
        if self.protocol != "all":
            raise ParameterError(
                f"dummies = {self.dummies} do not go with protocol = {self.protocol!r}, which "
                "hands in one report a holder: take protocol 'all', or leave dummies out"
            )

    @property
    def report_bytes(self) -> int:
        """Size of a randomized report."""
        return self.asked.codec.num_report_bytes

    @property
    def randomizer(self) -> dict[str, object]:
        """Question and randomizer, as in the JSON text."""
        return self.asked.to_json_dict()

    @property
    def dummies_each(self) -> float:
        """Mean number of dummies of a user, of all answers together."""
        return 0.0 if self.dummies is None else self.dummies.mean * self.asked.num_answers

    @property
    def coin(self) -> int:
        """Laziness in units of 1 / 65536."""
        return int(self.laziness * COIN_SIDES)

    @property
    def inner_bytes(self) -> int:
        """Size of a report sealed to the analyzer."""
        return self.report_bytes + SEAL_BYTES

    @property
    def envelope_bytes(self) -> int:
        """Size of a sealed envelope, whatever is in it."""
        return 1 + self.inner_bytes + TAG_BYTES

    def batch_size(self, node: int, num_neighbours: int) -> int:
        """Return the number of envelopes a user sends each round: none without neighbours."""
        if self.per_neighbour:
            return self.per_neighbour * num_neighbours
        return self.slots[node] if num_neighbours else 0

    def most_records(self, degrees: Sequence[int]) -> int:
        """Return the largest number of reports of their own making that one user can hand in.

        They may be in every envelope of every round, and in every place of the hand-in.
        """
        return max(
            self.rounds * self.batch_size(node, degree) + self.slots[node]
            for node, degree in enumerate(degrees)
        )

    def digest(self) -> bytes:
        """Return the digest of all terms: 32 bytes that every message is bound to."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        """Digest of all terms; see `digest`."""
        numbers = (self.num_users, self.rounds, self.coin, self.report_bytes)
        return wire.digest(
            b"terms",
            wire.uint(VERSION),
            self.collection_id,
            self.graph_digest,
            wire.numbers(*numbers, self.per_neighbour, self.least_registered),
            np.array(self.slots, dtype=">u4").tobytes(),
            self.asked.to_json(),
            self.analyzer_mail_key,
            self.analyzer_identity_key,
            self.protocol.encode(),
            *([str(self.dummies).encode()] if self.dummies else []),
        )

    def to_json(self) -> str:
        """Return the terms as JSON text, for publishing; bytes are written in hexadecimal."""
        written = {"version": VERSION} | {name: getattr(self, name) for name in _NAMES}
        if self.dummies:
            written["dummies"] = str(self.dummies)
        return json.dumps(written, default=bytes.hex)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the terms that `to_json` wrote; raise for anything else."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise ParameterError("the terms are not JSON: take the published file") from None
        wanted = {"version", *_NAMES}
        if not isinstance(given, dict) or set(given) - {"dummies"} != wanted:
            names = ", ".join(sorted(wanted))
            raise ParameterError(
                f"the terms do not have the fields {names}: take the published file"
            )
        version = given.pop("version")
        if version != VERSION:
            raise ParameterError(
                f"the terms have version {version!r}, this program {VERSION}: use the shuffledp "
                "that wrote them"
            )
        try:
            given |= {name: bytes.fromhex(given[name]) for name in _BYTE_FIELDS}
            given["slots"] = tuple(given["slots"])
        except (ValueError, TypeError):
            names = ", ".join(_BYTE_FIELDS)
            raise ParameterError(f"slots is no list, or not hexadecimal: {names}") from None
        size, described = given.pop("report_bytes"), given.pop("randomizer")
        named = given.pop("dummies", None)
        law = None if named is None else DummyLaw.from_text(named)
        made = cls(asked=AskedTerms.from_json_dict(described), dummies=law, **given)
        ours = made.report_bytes, made.randomizer, law and str(law)
        if json_bytes(ours) != json_bytes((size, described, named)):
            raise ParameterError(
                "the terms say what is asked in another way than it is said here, or another size "
                "of reports: take the published file, and the version that wrote it"
            )
        return made

    def require_graph(self, graph: Graph) -> None:
        """Raise `ProtocolError` unless the graph is the one of the terms."""
        if graph_digest(graph) != self.graph_digest:
            what = f"the graph of {graph.num_users} users and {graph.num_edges} edges"
            remedy = "is not the one of the terms: use the file that they were made from"
            raise Fault.CALLER.error(f"{what} {remedy}", Reason.MISMATCH)


# Names in the JSON text, in its order; the field ``asked`` has two there.
_NAMES = (
    "collection_id", "graph_digest", "num_users", "rounds", "slots", "report_bytes", "randomizer",
    "analyzer_mail_key", "analyzer_identity_key", "protocol", "laziness", "per_neighbour",
    "least_registered",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that a user agrees to; a `Peer` keeps to them."""

    # Largest epsilon0 in nats, of all reports about one question together; > 0.
    most_epsilon0: float = 4.0
    # Smallest number of registered users to take part with, >= 1.
    least_users: int = 10
    # Largest traffic of a whole collection, sent and received, in 10^6 bytes; > 0.
    most_megabytes: float = 100.0
    # Largest probability that the report stays with its user in all rounds, in [0, 1].
    most_unmoved: float = 0.1
    # Take part only by the terms with this digest.
    terms_digest: bytes | None = None
    # Hand in nothing after more rounds than this in which the relay took no batch of the user; by
    # default a quarter of the rounds, rounded down. The relay decides who is absent: refusing all
    # batches of a user would otherwise get it the user's own report, which never moved.
    most_absences: int | None = None
    # Take only the roster with this digest.
    roster_digest: bytes | None = None

    def __post_init__(self) -> None:
        for name in ("most_epsilon0", "most_megabytes"):
            if getattr(self, name) != math.inf:
                require_positive(name, getattr(self, name))
        require_at_least("least_users", self.least_users, 1)
        if self.most_absences is not None:
            require_at_least("most_absences", self.most_absences, 0)

    def require_terms(self, terms: Terms, graph: Graph, node: int) -> None:
        """Raise `ProtocolError` unless a user agrees to the terms."""
        if not 0 <= node < terms.num_users:
            raise ParameterError(f"node = {node} is not in [0, {terms.num_users})")
        if self.terms_digest not in (None, terms.digest()):
            what = f"the terms have the digest {terms.digest().hex()}, not the one that is required"
            raise Fault.ANALYZER.error(what, Reason.MISMATCH)
        self.require_epsilon0(terms.asked.epsilon0)
        unmoved = terms.laziness**terms.rounds
        megabytes = traffic_bytes(terms, graph, node) / 1e6
        refused = {
            f"are for {terms.num_users} users, fewer than least_users = {self.least_users}": (
                terms.num_users < self.least_users
            ),
            f"say that a report stays with its user with probability {unmoved:.6g}, more than "
            f"most_unmoved = {self.most_unmoved:g}": unmoved > self.most_unmoved,
            f"ask for about {megabytes:.6g} MB of traffic, more than max_megabytes = "
            f"{self.most_megabytes:g}": megabytes > self.most_megabytes,
        }
        for what, applies in refused.items():
            if applies:
                raise Fault.ANALYZER.error(f"the terms {what}", Reason.LIMIT)

    def require_epsilon0(self, epsilon0: float, *, spent: float = 0.0) -> None:
        """Raise unless a user agrees to a report after other reports that cost ``spent``."""
        if not epsilon0 + spent <= self.most_epsilon0:
            earlier = f" after {spent:.6g} spent on this question before" if spent else ""
            what = f"a report with epsilon0 = {epsilon0:.6g}{earlier}, more than max_epsilon0 = "
            what += f"{self.most_epsilon0:g}"
            raise Fault.ANALYZER.error(f"the terms ask for {what}", Reason.LIMIT)

    def allowed_absences(self, terms: Terms) -> int:
        """Return the largest number of absences after which the user still hands in."""
        return terms.rounds // 4 if self.most_absences is None else self.most_absences

    def require_roster(self, number: int, digest: bytes) -> None:
        """Raise `ProtocolError` unless the user agrees to a roster of this size and digest."""
        if number < self.least_users:
            what = f"{number} users have registered, fewer than least_users = {self.least_users}"
            raise Fault.RELAY.error(what, Reason.LIMIT)
        if self.roster_digest not in (None, digest):
            what = f"the relay shows a roster with the digest {digest.hex()}, not the one that is "
            raise Fault.RELAY.error(f"{what}required: do not trust the relay", Reason.MISMATCH)


def traffic_bytes(terms: Terms, graph: Graph, node: int) -> float:
    """Return the expected bytes that a user sends and receives if no user is ever absent.

    They are envelopes, their codes and the roster; heads and tokens, some 100 bytes a message, are
    not counted.
    """
    row, degrees = graph.neighbours_of(node).tolist(), graph.degrees
    came = sum(terms.slots[other] / int(degrees[other]) for other in row)
    envelopes: float = terms.slots[node] + came
    if terms.per_neighbour:
        envelopes = 2.0 * terms.per_neighbour * len(row)
    of_rounds = terms.rounds * (envelopes * terms.envelope_bytes + 2 * CODE_BYTES * len(row))
    return of_rounds + terms.num_users * REGISTRATION_BYTES


#: Limits of a user who sets none.
LIMITS: Final = Limits()
