"""Keys of a user with each neighbour: new ones in each round, from which the last do not follow.

Two neighbours u < v make the first secret k_1 from their mail keys by X25519 and HKDF-SHA256, with
the context as salt, and then forget these keys. In round r both expand k_r (HKDF-SHA256, under the
context, r, u and v) to the next secret k_(r+1), a key for envelopes from u to v, one from v to u,
and one for codes. Whoever has taken the mail of round r keeps k_(r+1) only: what was sent to him or
by him until then cannot be opened any more by what he has, nor by what his neighbours have who have
come as far.
"""

from typing import Final, NamedTuple

from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.keys import PeerKeys, Roster
from shuffledp.deploy.peers.protocol.sealing import new_keys, shared_key


class RoundKeys(NamedTuple):
    """What two neighbours have in one round; to and from are as one of them sees it."""

    next_secret: bytes
    to: bytes
    from_: bytes
    code: bytes


_NUM_KEYS: Final = len(RoundKeys._fields)


def first_secrets(keys: PeerKeys, neighbours: tuple[int, ...], roster: Roster) -> dict[int, bytes]:
    """Return a user's secret with each neighbour before round 1, and forget what made them.

    Cost: 0.04 ms a neighbour.
    """
    mail = keys.mail[0]
    found = {
        neighbour: shared_key(mail, roster[neighbour].mail_keys[0], roster.context)
        for neighbour in neighbours
    }
    keys.forget(0)
    return found


class Pairs:
    """The keys of one round with each neighbour, and those of the next once these are forgotten.

    Parameters
    ----------
    secrets : dict of int to bytes
        By neighbour, of the round; `forget` changes it in place.
    node : int
        The user.
    round_number : int
        The round, from 1.
    context : bytes
        Of the roster.

    Notes
    -----
    Cost: 0.01 ms a neighbour and round.
    """

    __slots__ = ("_context", "_made", "_node", "_round_number", "_secrets")

    def __init__(
        self, secrets: dict[int, bytes], *, node: int, round_number: int, context: bytes
    ) -> None:
        self._secrets, self._node, self._context = secrets, node, context
        self._round_number = round_number
        self._made: dict[int, RoundKeys] = {}

    def __getitem__(self, neighbour: int) -> RoundKeys:
        """Return the keys with a neighbour in this round."""
        if neighbour not in self._made:
            low, high = sorted((self._node, neighbour))
            place = wire.numbers(self._round_number, low, high)
            info = wire.digest(b"pair", self._context, place)
            after, up, down, code = new_keys(self._secrets[neighbour], _NUM_KEYS, info)
            to, from_ = (up, down) if self._node == low else (down, up)
            self._made[neighbour] = RoundKeys(after, to, from_, code)
        return self._made[neighbour]

    def forget(self) -> None:
        """Go on to the next round: the keys of this one cannot be made any more."""
        for neighbour in self._secrets:
            self._secrets[neighbour] = self[neighbour].next_secret
        self._made = {}
        self._round_number += 1
