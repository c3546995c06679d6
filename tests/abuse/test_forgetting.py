"""Somebody who seizes all stores, has the analyzer's key, and has copied all mail on its way."""

from contextlib import ExitStack

import pytest

from graph_families import complete_graph
from peers.conftest import Collection
from peers.link import no_limits
from shuffledp import Categories
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.peers.collecting import FetchedStore, fetch, prepare_terms
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.mail import Letter, Mail, encode_mail, open_report
from shuffledp.peers.peer import Peer
from shuffledp.peers.peer_runner import PeerStore

EVERYBODY = list(range(6))
ENTROPY = Entropy.from_seed(3)


@pytest.fixture
def collection(tmp_path):
    graph = complete_graph(6)
    asked = AskedTerms.of(Categories(domain=("no", "yes")), "k-rr", 2.0)
    keys = PrivateKeys.generate()
    with ExitStack() as stack:
        terms = prepare_terms(graph, asked, keys, rounds=3)
        yield Collection(tmp_path, graph, asked, keys, terms, stack)


class Remembered:
    """All bytes of all files, and what they spell in hexadecimal."""

    def __init__(self, folder):
        self.data = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))

    def __contains__(self, secret):
        return secret in self.data or secret.hex().encode() in self.data


def step(runner):
    runner.step(runner.client.status())


def seized(collection, state):
    limits = no_limits(collection.terms)
    return Peer.from_bytes(state, collection.terms, collection.graph, ENTROPY, limits=limits)


def mail_of(service, number):
    """Return what a relay can copy of a round: all letters, by recipient and sender."""
    copied = {}
    query = (
        "SELECT round, sender, place, recipient, content FROM mail WHERE round = ? AND place >= 0"
    )
    for row in service.relay.rows(query, (number,)):
        letter = Letter(*row)
        copied.setdefault((letter.recipient, letter.sender), []).append(letter)
    return copied


def authors(collection, roster, copied, states):
    """Return whose reports are known from the mail of round 1, which has everybody's own."""
    found = {}
    for (node, sender), letters in copied.items():
        peer = seized(collection, states[node])
        peer.state.received_through, peer.state.held = 0, []  # as if none had been taken
        peer.begin(roster)
        mail = Mail(absent=(), letters=tuple(letters), codes={})
        peer.receive(1, encode_mail(mail, roster, round_number=1, recipient=node))
        for held in peer.state.held:
            found[sender] = open_report(held, collection.terms, collection.keys)
    return found


def test_copied_mail_opens_with_what_peers_have_before_they_take_it_and_never_after(collection):
    service, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    registered = runner.store.states()
    step(runner)
    step(runner)  # all have sent in round 1, and round 2 is open
    copied, roster = mail_of(service, 1), service.relay.roster
    before = runner.store.states()
    assert set(authors(collection, roster, copied, before)) == set(EVERYBODY)
    assert None not in authors(collection, roster, copied, before).values()
    step(runner)  # the mail is taken
    after = runner.store.states()
    assert authors(collection, roster, copied, after) == {}
    # Nor with the states before, which are overwritten: no key of that round is in any file.
    kept = Remembered(collection.folder)
    for node in EVERYBODY:
        first, old, new = (
            seized(collection, states[node]).state for states in (registered, before, after)
        )
        gone = [*old.secrets.values(), first.keys._mail.private_bytes_raw()]
        assert len(gone) == 6
        assert all(secret not in kept for secret in gone)
        assert all(secret in kept for secret in new.secrets.values())


def test_the_relay_keeps_mail_no_longer_than_until_its_recipient_goes_on(collection):
    service, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    step(runner)
    earlier = []
    for number in (1, 2, 3):
        step(runner)  # takes the mail of the round before, and sends
        sealed = [each.sealed for all_ in mail_of(service, number).values() for each in all_]
        assert all(each in Remembered(collection.folder) for each in sealed)
        assert number == 1 or mail_of(service, number - 1) == {}
        assert not [each for each in earlier if each in Remembered(collection.folder)]
        earlier = sealed
    answer = http.get(
        "/rounds/1/mail/0",
        headers={"authorization": f"Signature {runner._peers[0].mail_token(1).hex()}"},
    )
    assert answer.status_code == 410
    assert "has taken the mail of round 1" in answer.json()["error"]


def test_when_it_is_over_keys_reports_mail_and_hand_ins_are_gone(collection):
    service, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    secrets = [
        secret
        for state in runner.store.states().values()
        for secret in (
            seized(collection, state).state.keys.to_bytes()[4:36],
            seized(collection, state).state.held[0],
        )
    ]
    step(runner)
    step(runner)
    mail = [each.sealed for all_ in mail_of(service, 1).values() for each in all_]
    before = Remembered(collection.folder)
    assert all(secret in before for secret in secrets[::2])
    assert any(sealed in before for sealed in mail)
    runner.run()
    assert runner.client.status().phase == "over"
    handed = [data for (data,) in service.relay.rows("SELECT message FROM hand_ins")]
    assert len(handed) == 6
    fetched_at = collection.folder.parent / f"{collection.folder.name}.fetched"
    with FetchedStore(fetched_at, collection.terms) as store:
        found = fetch(collection.terms, collection.keys, runner.client, store=store)
    assert len(found.collected.reports) == 6
    assert found.not_forgotten == ""
    after = Remembered(collection.folder)
    assert not [secret for secret in [*secrets, *mail, *handed] if secret in after]
    runner.store.close()
    again = collection.runner(http, EVERYBODY).run()
    assert again.nodes == {"handed in": list(range(6)), "short": []}
    assert (
        http.get("/rounds/1/mail/0", headers={"authorization": "Signature 00"}).status_code == 410
    )


def test_who_was_late_lost_or_withheld_is_forgotten_too(collection):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    runner.store.bury([(4, "lost"), (5, "lost")])
    runner.store.bury([(0, "handed in"), (1, "handed in"), (2, "late"), (3, "withheld")])
    runner.store.close()
    outcome = collection.runner(http, EVERYBODY).run()
    ends = {"handed in": [0, 1], "late": [2], "withheld": [3], "lost": [4, 5], "short": []}
    assert outcome.nodes == ends


def test_what_was_answered_stays(collection):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    before = runner.store.answers(collection.asked.question_digest)
    runner.run()
    runner.store.close()
    with PeerStore(collection.folder / "peers.db", collection.terms) as store:
        assert store.answers(collection.asked.question_digest) == before
