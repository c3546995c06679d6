"""Somebody who seizes all stores when a collection is over, and has the analyzer's key."""

from contextlib import ExitStack

import pytest

from deploy.peers.service.conftest import Collection
from shuffledp.collection.questions.frequencies import FrequencyQuestion
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.peers.protocol.keys import AnalyzerKeys
from shuffledp.deploy.peers.protocol.peer import Peer
from shuffledp.deploy.peers.service.asked_terms import AskedTerms
from shuffledp.deploy.peers.service.peer_store import PeerStore
from shuffledp.deploy.peers.service.preparing import prepare_terms
from shuffledp.network.graphs.families import complete_graph

EVERYBODY = list(range(6))


@pytest.fixture
def collection(tmp_path):
    graph = complete_graph(6)
    asked = AskedTerms.of(FrequencyQuestion(domain=("no", "yes")), "k-rr", 2.0)
    keys = AnalyzerKeys.generate()
    with ExitStack() as stack:
        terms = prepare_terms(graph, asked, keys, rounds=3)
        yield Collection(tmp_path, graph, asked, keys, terms, stack)


def remembered(folder):
    """Return all bytes of all files."""
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def test_when_it_is_over_keys_reports_and_mail_are_gone(collection):
    service, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    states = runner.store.states()
    entropy = Entropy.from_operating_system()
    secrets = []
    for state in states.values():
        peer = Peer.from_bytes(state, collection.terms, collection.graph, entropy)
        secrets += [peer._state.keys.to_bytes()[4:36], peer._state.held[0]]
    runner.step(runner.client.status())
    runner.step(runner.client.status())
    mail = [letter.sealed for node in EVERYBODY for letter in service._store.mail(1, node)]
    before = remembered(collection.folder)
    assert all(secret in before for secret in secrets)
    assert any(sealed in before for sealed in mail)
    runner.run()
    assert runner.client.status().phase == "over"
    after = remembered(collection.folder)
    # What each hands in is sealed to the analyzer, and comes from anybody: only that is left.
    assert not [secret for secret in secrets[::2] if secret in after]
    assert not [sealed for sealed in mail if sealed in after]
    runner.store.close()
    again = collection.runner(http, EVERYBODY).run()
    assert (again.num_handed_in, again.lost, again.late) == (6, (), ())
    assert (
        http.get("/rounds/1/mail/0", headers={"authorization": "Signature 00"}).status_code == 410
    )


def test_who_was_late_lost_or_withheld_is_forgotten_too(collection):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    runner._handed_in, runner._late, runner._withheld = {0, 1}, {2}, {3}
    runner.store.bury([(4, "lost"), (5, "lost")])
    runner.store.bury([(0, "handed in"), (1, "handed in"), (2, "late"), (3, "withheld")])
    runner.store.close()
    outcome = collection.runner(http, EVERYBODY).run()
    assert (outcome.late, outcome.withheld, outcome.lost) == ((2,), (3,), (4, 5))
    assert outcome.num_handed_in == 2


def test_what_was_answered_stays(collection):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    before = runner.store.answers(collection.asked.question_digest)
    runner.run()
    runner.store.close()
    with PeerStore(collection.folder / "peers.db", collection.terms) as store:
        assert store.answers(collection.asked.question_digest) == before
