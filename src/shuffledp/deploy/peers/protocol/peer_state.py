"""All that a peer must not forget, and its snapshot as bytes."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Self

from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.errors import Fault, Reason
from shuffledp.deploy.peers.protocol.keys import PeerKeys
from shuffledp.deploy.peers.protocol.sealing import SHARED_KEY_BYTES
from shuffledp.deploy.peers.protocol.terms import Terms

_MAGIC: Final = b"SPS\x03"


@dataclass(slots=True, kw_only=True)
class PeerState:
    """The state of a peer; secret.

    Parameters
    ----------
    terms_digest : bytes
        Of the collection.
    node : int
        The user.
    keys : PeerKeys
        Private keys that are still needed.
    registration : bytes
        As it was sent.
    held : list of bytes
        Reports that the user holds, in their inner seals; with onion routing, after the roster was
        taken, the next holder and the onion for him.
    secrets : dict of int to bytes
        By registered neighbour, for the round after ``received_through``; see `Pairs`. Empty before
        the roster is taken.
    roster_digest : bytes
        Empty before the roster is taken.
    received_through, sent_in : int
        See `Peer`.
    batch : bytes
        The batch of round ``sent_in``, until the mail of this round is taken; empty if there is
        none.
    moving : list of bytes
        What travels of reports in that batch, while it may still be taken back.
    handed_in : bytes
        Empty before handing in.
    counts : Counter
        How many envelopes of which kind.
    transcript : bytes
        Of the rounds whose mail was taken; empty before the roster is taken.
    short_since : int
        Round in which something was first found missing; 0 if nothing was.
    """

    terms_digest: bytes
    node: int
    keys: PeerKeys
    registration: bytes
    held: list[bytes]
    secrets: dict[int, bytes] = field(default_factory=dict)
    roster_digest: bytes = b""
    received_through: int = 0
    sent_in: int = 0
    batch: bytes = b""
    moving: list[bytes] = field(default_factory=list)
    handed_in: bytes = b""
    counts: Counter[str] = field(default_factory=Counter)
    transcript: bytes = b""
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
        parts.append(self.keys.to_bytes())
        parts += [
            wire.counted(value)
            for value in (
                self.registration,
                self.roster_digest,
                self.batch,
                self.handed_in,
                self.transcript,
            )
        ]
        parts.append(wire.number(len(self.secrets)))
        parts += [wire.number(node) + secret for node, secret in self.secrets.items()]
        for reports in (self.held, self.moving):
            parts.append(wire.number(len(reports)))
            parts += [wire.counted(report) for report in reports]
        parts.append(wire.number(len(self.counts)))
        for name, count in sorted(self.counts.items()):
            parts += [wire.counted(name.encode()), wire.number(count)]
        body = b"".join(parts)
        return body + wire.digest(b"snapshot", body)

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return the state that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            The snapshot.
        terms : Terms
            Of the collection.

        Returns
        -------
        PeerState

        Raises
        ------
        ProtocolError
            If it is damaged, of another version, or of other terms.
        """
        reader = wire.Reader(data, "snapshot", Fault.CALLER)
        body_size = max(len(data) - wire.DIGEST_BYTES, 0)
        if data[body_size:] != wire.digest(b"snapshot", data[:body_size]):
            raise reader.error("its checksum does not fit: it is damaged")
        reader.expect(_MAGIC, "it is of another version")
        reader.expect(terms.digest(), "it is of other terms", Reason.MISMATCH)
        node, received_through, sent_in, short_since = (reader.number() for _ in range(4))
        keys = PeerKeys.take(reader)
        registration, roster_digest, batch, handed_in, transcript = (
            reader.counted() for _ in range(5)
        )
        secrets = {reader.number(): reader.take(SHARED_KEY_BYTES) for _ in range(reader.number())}
        held, moving = ([reader.counted() for _ in range(reader.number())] for _ in range(2))
        counts = Counter(
            {reader.counted().decode(): reader.number() for _ in range(reader.number())}
        )
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
