"""All that a peer must not forget, and its snapshot as bytes."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Self

from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.keys import PrivateKeys
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.sealing import SHARED_KEY_BYTES
from shuffledp.deploy.wire import Fault, Reason

_MAGIC: Final = b"SPS\x04"


@dataclass(slots=True, kw_only=True)
class PeerState:
    """The state of a peer; secret."""

    # Of the collection.
    terms_digest: bytes
    # The user.
    node: int
    # Private keys that are still needed.
    keys: PrivateKeys
    # As it was sent.
    registration: bytes
    # Reports that the user holds, in their inner seals.
    held: list[bytes]
    # By registered neighbour, for the round after ``received_through``; see `Pairs`. Empty before
    # the roster is taken.
    secrets: dict[int, bytes] = field(default_factory=dict)
    # Empty before the roster is taken.
    roster_digest: bytes = b""
    # See `Peer`.
    received_through: int = 0
    sent_in: int = 0
    # The batch of round ``sent_in``, until the mail of this round is taken; empty if there is
    # none.
    batch: bytes = b""
    # What travels of reports in that batch, while it may still be taken back.
    moving: list[bytes] = field(default_factory=list)
    # Empty before handing in.
    handed_in: bytes = b""
    # How many envelopes of which kind.
    counts: Counter[str] = field(default_factory=Counter)
    # Of the rounds whose mail was taken; empty before the roster is taken.
    transcript: bytes = b""
    # Round in which something was first found missing; 0 if nothing was.
    short_since: int = 0

    @property
    def shown_transcript(self) -> bytes:
        """What codes are made with: one that fits nobody's once something was missing."""
        return b"" if self.short_since else self.transcript

    @property
    def moving_is_open(self) -> bool:
        """Whether a batch is out whose round may not be over."""
        return bool(self.batch) and self.sent_in > self.received_through

    def to_bytes(self) -> bytes:
        """Return the state as bytes, with a checksum."""
        parts = [_MAGIC, self.terms_digest]
        parts.append(wire.numbers(self.node, self.received_through, self.sent_in, self.short_since))
        parts.append(wire.opaque(self.keys.to_bytes()))
        parts += [
            wire.opaque(value)
            for value in (
                self.registration,
                self.roster_digest,
                self.batch,
                self.handed_in,
                self.transcript,
            )
        ]
        parts.append(wire.uint(len(self.secrets)))
        parts += [wire.uint(node) + secret for node, secret in self.secrets.items()]
        for reports in (self.held, self.moving):
            parts.append(wire.uint(len(reports)))
            parts += [wire.opaque(report) for report in reports]
        parts.append(wire.uint(len(self.counts)))
        for name, count in sorted(self.counts.items()):
            parts += [wire.opaque(name.encode()), wire.uint(count)]
        body = b"".join(parts)
        return body + wire.digest(b"snapshot", body)

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return the state that `to_bytes` wrote; raise if it is damaged or of other terms."""
        reader = wire.Reader(data, "snapshot", Fault.CALLER)
        body_size = max(len(data) - wire.DIGEST_BYTES, 0)
        if data[body_size:] != wire.digest(b"snapshot", data[:body_size]):
            raise reader.error("its checksum does not fit: it is damaged")
        reader.expect(_MAGIC, "it is of another version")
        reader.expect(terms.digest(), "it is of other terms", Reason.MISMATCH)
        node, received_through, sent_in, short_since = (reader.uint() for _ in range(4))
        keys = PrivateKeys.from_bytes(reader.opaque())
        registration, roster_digest, batch, handed_in, transcript = (
            reader.opaque() for _ in range(5)
        )
        secrets = {reader.uint(): reader.take(SHARED_KEY_BYTES) for _ in range(reader.uint())}
        held, moving = ([reader.opaque() for _ in range(reader.uint())] for _ in range(2))
        counts = Counter({reader.opaque().decode(): reader.uint() for _ in range(reader.uint())})
        return cls(
            terms_digest=terms.digest(),
            node=node,
            keys=keys,
            registration=registration,
            held=held,
            secrets=secrets,
            roster_digest=roster_digest,
            received_through=received_through,
            sent_in=sent_in,
            batch=batch,
            moving=moving,
            handed_in=handed_in,
            counts=counts,
            transcript=transcript,
            short_since=short_since,
        )
