"""Keys of two neighbours: the same for both in every round, and made as the page says."""

import hashlib
import hmac

import pytest

from peers.exercises import Scene
from shuffledp.deploy import wire
from shuffledp.deploy.wire import lock, new_keys, shared_key, unlock
from shuffledp.peers.keys import Pairs


def expanded(key, length, info):
    """HKDF-Expand by RFC 5869, with nothing but HMAC."""
    data = block = b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([number]), hashlib.sha256)
        data += block
    return data[:length]


def documented(scene, low, high, secret, number):
    """Return next secret, key up, key down and key of codes."""
    place = wire.numbers(number, low, high)
    data = expanded(secret, 128, wire.digest(b"pair", scene.roster.context, place))
    return [data[at : at + 32] for at in range(0, 128, 32)]


def test_neighbours_have_the_documented_keys_in_every_round():
    scene = Scene()
    zero, one = scene.pairs_of(0), scene.pairs_of(1)
    states = [scene.peers[node].state for node in (0, 1)]
    secret = states[0].secrets[1]
    used = {secret}
    for number in (1, 2, 3):
        assert states[0].secrets[1] == states[1].secrets[0] == secret
        after, up, down, code = documented(scene, 0, 1, secret, number)
        assert (zero[1].to, zero[1].from_, zero[1].code) == (up, down, code)
        assert (one[0].to, one[0].from_, one[0].code) == (down, up, code)
        zero.forget()
        one.forget()
        secret = after
        used |= {after, up, down, code}
    assert len(used) == 13
    assert zero[1] != zero[2]


def test_the_first_secret_is_made_of_both_mail_keys_and_the_context():
    scene = Scene()
    assert all(peer.state.keys._mail is None for peer in scene.peers.values())
    registered = scene.restore(0, scene.registered[0])
    assert registered.state.secrets == scene.peers[0].state.secrets
    assert set(registered.state.secrets) == {1, 2, 6, 7}
    # X25519 is the library's; HKDF is not.
    key = scene.peers[0].state.keys.generate()._mail
    other = scene.roster[1].mail_key
    drawn = hmac.digest(b"context", key.exchange(_public(other)), hashlib.sha256)
    assert shared_key(key, other, b"context") == expanded(drawn, 32, b"shuffledp pair")
    assert b"".join(new_keys(drawn, 3, b"i")) == expanded(drawn, 96, b"i")


def _public(data):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return X25519PublicKey.from_public_bytes(data)


def test_who_is_a_round_behind_still_has_the_keys_of_that_round():
    scene = Scene()
    scene.send(1)
    scene.relay.go_on()
    scene.receive(1, nodes=range(1, 8))
    behind, ahead = scene.peers[0], scene.peers[1]
    _, up, _, _ = documented(scene, 0, 1, behind.state.secrets[1], 1)
    assert scene.pairs_of(0)[1].to == up
    assert scene.pairs_of(1)[0].from_ != up
    scene.receive(1, nodes=[0])
    assert behind.state.secrets[1] == ahead.state.secrets[0]
    for node in (0, 1):
        state = scene.peers[node].state
        again = Pairs(dict(state.secrets), node, 2, scene.roster.context)
        assert again[1 - node] == scene.pairs_of(node)[1 - node]


@pytest.mark.parametrize("text", [b"x", bytes(100)])
def test_what_is_locked_opens_with_its_key_and_place_only(text):
    key, other = bytes(32), bytes([1] * 32)
    locked = lock(text, key, b"here")
    assert len(locked) == len(text) + 16
    assert unlock(locked, key, b"here") == text
    changed = bytes([locked[0] ^ 1]) + locked[1:]
    for found in (
        unlock(locked, other, b"here"), unlock(locked, key, b"there"),
        unlock(changed, key, b"here"), unlock(b"", key, b"here"), unlock(b"x" * 15, key, b"here"),
    ):  # fmt: skip
        assert found is None
