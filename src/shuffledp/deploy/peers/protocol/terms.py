"""What everybody who takes part must agree on: the terms of one collection."""

import json
import math
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, Self, TypeGuard

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.draws import COIN_SIDES
from shuffledp.deploy.peers.protocol.errors import Fault, ProtocolError, Reason
from shuffledp.deploy.peers.protocol.slots import checked_laziness
from shuffledp.network.graph import Graph

#: Of this layout of the terms and of all messages.
VERSION: Final = 3

COLLECTION_ID_BYTES: Final = 16

#: What HPKE (RFC 9180, DHKEM X25519, AES-128-GCM) adds to a text: a public key and a tag.
SEAL_BYTES: Final = 48

#: What AES in SIV mode (RFC 5297) adds to a text.
TAG_BYTES: Final = 16

#: What a layer of an onion adds to what is in it: a seal, and the number of the next holder.
LAYER_BYTES: Final = SEAL_BYTES + wire.NUMBER_BYTES

#: Largest size of a report: envelopes all have one size, so one large report makes all large.
MOST_REPORT_BYTES: Final = 1 << 20

_MOST_ROUNDS = 1 << 20
_MOST_SLOTS = 1 << 20
_MOST_EPSILON0 = 1e6

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
    """Return SHA-256 of who is joined to whom, whatever the users are called.

    Parameters
    ----------
    graph : Graph
        Its labels do not count.

    Returns
    -------
    bytes
        Of length 32; the same on every machine.
    """
    return wire.digest(
        b"graph",
        graph.starts.astype("<i8").tobytes(),
        graph.neighbours.astype("<i4").tobytes(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of one collection; `digest` binds them all.

    Parameters
    ----------
    collection_id : bytes
        16 random bytes; see `new_collection_id`. No two collections share them.
    graph_digest : bytes
        See `graph_digest`: 32 bytes.
    num_users : int
        Users of the graph, in [1, 2^31).
    rounds : int
        Rounds of exchange, in [1, 2^20].
    laziness : float
        Probability that a report stays with its holder: a multiple of 2^-16 in [0, 1), so that
        the coin is exact.
    slots : tuple of int, length num_users
        How many messages each user sends in every round, >= 1; see `slots_for`.
    report_bytes : int
        Size of a randomized report, in [1, 2^20].
    randomizer : str
        JSON text that says how reports are made; of it only a number ``epsilon0`` is read here.
        Kept in canonical form.
    analyzer_mail_key : bytes
        X25519 public key to which reports are sealed.
    analyzer_identity_key : bytes
        Ed25519 public key by which the relay knows the analyzer.
    protocol : {"all", "single"}
        Whether a holder hands in all reports he holds, or one of them.
    routing : {"hop", "onion"}
        Whether each holder of a report draws where it goes next, or its user draws the whole way
        beforehand and wraps the report in a layer for each round, so that it looks different at
        every hop. Where reports end has the same law; but see `OnionRouting` for absences.
    per_neighbour : int
        If it is 0, the messages of a round go to independent uniform neighbours, so that the
        relay learns which neighbours a report cannot have gone to. If it is c >= 1, exactly c go to
        each registered neighbour instead of ``slots``, so that where messages go carries nothing;
        see `per_neighbour_for`. At most 2^20.
    least_registered : int
        Fewest registered users with whom a peer takes part, in [1, num_users]: protects from a
        relay that leaves users out.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    collection_id: bytes
    graph_digest: bytes
    num_users: int
    rounds: int
    slots: tuple[int, ...]
    report_bytes: int
    randomizer: str
    analyzer_mail_key: bytes
    analyzer_identity_key: bytes
    protocol: Literal["all", "single"] = "all"
    routing: Literal["hop", "onion"] = "hop"
    laziness: float = 0.0
    per_neighbour: int = 0
    least_registered: int = 1
    _digest: bytes = field(init=False, repr=False, compare=False)
    _epsilon0: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, size in _BYTE_FIELDS.items():
            value = getattr(self, name)
            if not isinstance(value, bytes) or len(value) != size:
                raise ParameterError(f"{name} is not {size} bytes: take it as it was made")
        for name, end in (
            ("num_users", 1 << 31),
            ("rounds", _MOST_ROUNDS + 1),
            ("report_bytes", MOST_REPORT_BYTES + 1),
            ("least_registered", self.num_users + 1 if _is_whole(self.num_users) else 1),
        ):
            _require_whole(name, getattr(self, name), end)
        _require_whole("per_neighbour", self.per_neighbour, _MOST_SLOTS + 1, first=0)
        _require_slots(self.slots, self.num_users)
        _require_laziness(self.laziness)
        if self.protocol not in ("all", "single"):
            raise ParameterError(f"protocol = {self.protocol!r} is neither 'all' nor 'single'")
        if self.routing not in ("hop", "onion"):
            raise ParameterError(f"routing = {self.routing!r} is neither 'hop' nor 'onion'")
        object.__setattr__(self, "slots", tuple(self.slots))
        object.__setattr__(self, "laziness", float(self.laziness))
        description = _parsed(self.randomizer)
        object.__setattr__(self, "randomizer", _canonical(description))
        object.__setattr__(self, "_epsilon0", _stated_epsilon0(description))
        object.__setattr__(self, "_digest", self._compute_digest())

    @property
    def stated_epsilon0(self) -> float | None:
        """What the terms say of the randomizer's epsilon0, in nats; None if nothing."""
        return self._epsilon0

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
        """Size of a sealed envelope in round 1, whatever is in it: in no round is it larger."""
        return self.envelope_bytes_in(1)

    def content_bytes(self, round_number: int) -> int:
        """Return the size of what travels in a round in [1, rounds], in its envelope.

        Each round takes a layer off an onion; hop by hop it is the report, sealed to the analyzer.
        """
        if self.routing == "hop":
            return self.inner_bytes
        return self.inner_bytes + (self.rounds + 1 - round_number) * LAYER_BYTES

    def envelope_bytes_in(self, round_number: int) -> int:
        """Return the size of a sealed envelope of a round in [1, rounds], whatever is in it."""
        return 1 + self.content_bytes(round_number) + TAG_BYTES

    def digest(self) -> bytes:
        """Return the digest of all terms: 32 bytes that every message is bound to."""
        return self._digest

    def _compute_digest(self) -> bytes:
        """Return what `digest` keeps."""
        return wire.digest(
            b"terms",
            wire.number(VERSION),
            self.collection_id,
            self.graph_digest,
            wire.numbers(
                self.num_users,
                self.rounds,
                self.coin,
                self.report_bytes,
                self.per_neighbour,
                self.least_registered,
            ),
            np.array(self.slots, dtype=">u4").tobytes(),
            self.randomizer.encode(),
            self.analyzer_mail_key,
            self.analyzer_identity_key,
            self.protocol.encode(),
            self.routing.encode(),
        )

    def to_json(self) -> str:
        """Return the terms as JSON text, for publishing; bytes are written in hexadecimal."""
        written: dict[str, Any] = {"version": VERSION}
        for name in _names(self):
            value = getattr(self, name)
            written[name] = value.hex() if name in _BYTE_FIELDS else value
        written["randomizer"] = json.loads(self.randomizer)
        return json.dumps(written)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the terms that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        Terms

        Raises
        ------
        ParameterError
            If it is no such JSON, or a value is out of range.
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise ParameterError(
                "the terms are not JSON: take the file that was published"
            ) from None
        wanted = {"version", *_names(cls)}
        if not isinstance(given, dict) or set(given) != wanted:
            raise ParameterError(
                f"the terms do not have the fields {', '.join(sorted(wanted))}: take the file that "
                "was published"
            )
        version = given.pop("version")
        if version != VERSION:
            raise ParameterError(f"the terms have version {version!r}, this program {VERSION}")
        for name in _BYTE_FIELDS:
            given[name] = _from_hexadecimal(name, given[name])
        if not isinstance(given["slots"], list):
            raise ParameterError("slots is not a list of whole numbers, one a user")
        given["slots"] = tuple(given["slots"])
        given["randomizer"] = _canonical(given["randomizer"])
        return cls(**given)

    def require_graph(self, graph: Graph) -> None:
        """Raise `ProtocolError` unless the graph is the one of the terms.

        Parameters
        ----------
        graph : Graph
            That the caller has. Cost: a digest, O(n + m).

        Raises
        ------
        ProtocolError
            If its digest is another.
        """
        if graph_digest(graph) != self.graph_digest:
            raise ProtocolError(
                f"the graph of {graph.num_users} users and {graph.num_edges} edges is not the one "
                "of the terms: use the file that they were made from",
                fault=Fault.CALLER,
                reason=Reason.MISMATCH,
            )


def _names(terms: Terms | type[Terms]) -> tuple[str, ...]:
    """Return the names of what terms are made of."""
    return tuple(item.name for item in fields(terms) if item.init)


def _is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _require_whole(name: str, value: object, end: int, *, first: int = 1) -> None:
    """Raise unless a value is a whole number in [first, end)."""
    if not _is_whole(value) or not first <= value < end:
        raise ParameterError(f"{name} = {value!r} is not a whole number in [{first}, {end})")


def _require_slots(slots: tuple[int, ...], num_users: int) -> None:
    """Raise unless there is a number of slots for each user."""
    if len(slots) != num_users:
        raise ParameterError(f"slots has {len(slots)} entries, not num_users = {num_users}")
    for user, value in enumerate(slots):
        _require_whole(f"slots[{user}]", value, _MOST_SLOTS + 1)


def _require_laziness(laziness: float) -> None:
    """Raise unless the laziness is a multiple of 2^-16 in [0, 1)."""
    value = checked_laziness(laziness)
    sides = value * COIN_SIDES
    if not sides.is_integer():
        nearest = min(round(sides), COIN_SIDES - 1) / COIN_SIDES
        raise ParameterError(
            f"laziness = {value} is not a multiple of 2^-16: the nearest is {nearest}"
        )


def _parsed(text: str) -> object:
    """Return what JSON text says."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ParameterError("randomizer is not JSON text: describe it as a JSON object") from None


def _canonical(value: object) -> str:
    """Return JSON in the one form that is digested."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise ParameterError("randomizer is nested too deeply: describe it as a flat one") from None


def _stated_epsilon0(description: object) -> float | None:
    """Return the epsilon0 that a description names, if that is a number."""
    found = description.get("epsilon0") if isinstance(description, dict) else None
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return float(found) if abs(found) <= _MOST_EPSILON0 else math.inf


def _from_hexadecimal(name: str, text: object) -> bytes:
    """Return the bytes that a field of the terms spells."""
    try:
        return bytes.fromhex(text)  # type: ignore[arg-type]  # what is no text is caught
    except (ValueError, TypeError):
        raise ParameterError(f"{name} = {text!r} is not hexadecimal") from None
