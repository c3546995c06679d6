"""All that a peer must not forget, and its snapshot as bytes."""

import json
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.keys import PrivateKeys
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.wire import Fault, Reason

_MAGIC: Final = b"SPS\x05"

# Fields that are bytes, and lists of them.
_TEXTS: Final = (
    "terms_digest", "registration", "roster_digest", "batch", "handed_in", "transcript",
)  # fmt: skip
_LISTS: Final = ("held", "moving")


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
    # The last round whose mail has been taken, and for which a batch was drawn; 0 at first.
    received_through: int = 0
    sent_in: int = 0
    # The batch of round ``sent_in``, until the mail of this round is taken; empty if there is
    # none.
    batch: bytes = b""
    # What travels of reports in that batch, while it may still be taken back.
    moving: list[bytes] = field(default_factory=list)
    # Empty before handing in.
    handed_in: bytes = b""
    # Envelopes taken with a "report" and as "cover", reports "dropped" for want of room, rounds
    # "absent" of those whose mail was taken, and envelopes refused, by the name of the `Refusal`;
    # nobody but the user is to see it.
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
        """Return private keys and reports, unencrypted, with a checksum; keep it secret."""
        plain: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["keys"] = self.keys.to_bytes()
        plain["secrets"] = [[node, secret.hex()] for node, secret in self.secrets.items()]
        plain |= {name: plain[name].hex() for name in ("keys", *_TEXTS)}
        plain |= {name: [each.hex() for each in plain[name]] for name in _LISTS}
        body = _MAGIC + self.terms_digest + json.dumps(plain).encode()
        return body + wire.digest(b"snapshot", body)

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return the state that `to_bytes` wrote; raise if it is damaged or of other terms."""
        reader = wire.Reader(data, "snapshot", Fault.CALLER)
        body = data[: -wire.DIGEST_BYTES]
        if data[len(body) :] != wire.digest(b"snapshot", body):
            raise reader.error("its checksum does not fit: it is damaged")
        reader.expect(_MAGIC, "it is of another version")
        reader.expect(terms.digest(), "it is of other terms", Reason.MISMATCH)
        plain = json.loads(body[len(reader.read_so_far()) :])
        plain["keys"] = PrivateKeys.from_bytes(bytes.fromhex(plain["keys"]))
        plain["secrets"] = {node: bytes.fromhex(secret) for node, secret in plain["secrets"]}
        plain["counts"] = Counter(plain["counts"])
        plain |= {name: bytes.fromhex(plain[name]) for name in _TEXTS}
        plain |= {name: [bytes.fromhex(each) for each in plain[name]] for name in _LISTS}
        return cls(**plain)
