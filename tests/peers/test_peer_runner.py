"""Peers against a relay: whole collections, absences, lost answers, restarts at any step."""

import itertools
import time

import pytest

from peers.link import ANY_SIZE
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.core.errors import DataError
from shuffledp.deploy.remote import RefusedError
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers import peer_runner
from shuffledp.peers.collecting import collection_result, fetch
from shuffledp.peers.peer_runner import NodeValues
from shuffledp.peers.relay_client import RelayClient

EVERYBODY = [0, 1, 2, 3, 4, 5]


def fetched(collection, http):
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    return fetch(collection.terms, collection.keys, client, wait_seconds=0.0)


def result_of(collection, found):
    return collection_result(
        collection.terms, collection.graph, found,
        delta=1e-2, options=EstimateOptions(),
    )  # fmt: skip


def status(runner):
    return runner.client.status()


def test_everybody_hands_in_every_report_once(collection):
    _, http = collection.relay()
    outcome = collection.runner(http, EVERYBODY).run()
    assert outcome.nodes == {"handed in": EVERYBODY, "short": []}
    assert outcome.counts.keys() == {"report", "cover"}
    found = fetched(collection, http)
    assert len(found.collected.reports) == 6
    assert found.collected.rejected == {}
    assert found.record.num_absences == 0
    assert found.record.nodes.tolist() == EVERYBODY


def test_one_report_a_holder(make_collection):
    collection = make_collection(protocol="single")
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    found = fetched(collection, http)
    holders = found.collected.holders
    assert len(set(holders)) == len(holders) <= 6
    result = result_of(collection, found)
    assert result.num_users == 6
    assert result.guarantee.epsilon_upper <= collection.asked.epsilon0


def test_who_is_away_for_two_rounds_comes_back(collection):
    service, http = collection.relay(is_eager=False)
    there = collection.runner(http, [0, 1, 2, 3, 4], "there.db")
    away = collection.runner(http, [5], "away.db")
    there.step(status(there))
    away.step(status(away))
    assert status(there).phase == "round"  # all registered
    for _ in range(2):
        there.step(status(there))
        assert service.relay.go_on()
    for _ in range(2):
        there.step(status(there))
        away.step(status(away))
        service.relay.go_on()
    assert status(there).phase == "over"
    found = fetched(collection, http)
    assert found.record.absences[:, 5].tolist() == [True, True, False]
    assert found.record.num_absences == 2
    assert len(found.collected.reports) == 6
    result = result_of(collection, found)
    assert any("absent 2 times" in warning for warning in result.warnings)
    assert away.run().counts["absent"] == 2


def test_who_never_returns_takes_the_reports_along(collection):
    service, http = collection.relay(is_eager=False)
    there = collection.runner(http, [0, 1, 2, 3, 4], "there.db")
    gone = collection.runner(http, [5], "gone.db")
    there.step(status(there))
    gone.step(status(gone))
    for _ in range(5):
        service.relay.go_on()
        there.step(status(there))
    assert status(there).phase == "over"
    found = fetched(collection, http)
    assert found.collected.num_hand_ins == 5
    assert len(found.collected.reports) <= 5  # the own report of user 5, at least, is missing
    result = result_of(collection, found)
    assert any("are missing" in warning for warning in result.warnings)
    assert any("1 users handed in nothing" in warning for warning in result.warnings)
    outcome = gone.run()
    assert outcome.nodes == {"lost": [5], "handed in": [], "short": []}


def test_whom_the_relay_refuses_in_every_round_hands_in_nothing(collection, monkeypatch):
    service, http = collection.relay(is_eager=False)
    accept = service.relay.accept_batch

    def refusing(body, *, round_number, node):
        if node == 5:
            raise ProtocolError("too late", fault=Fault.PEER, reason=Reason.LATE)
        return accept(body, round_number=round_number, node=node)

    monkeypatch.setattr(service.relay, "accept_batch", refusing)
    runner = collection.runner(http, EVERYBODY, most_absences=2)
    shown = []
    runner.on_roster = shown.append
    runner.step(status(runner))
    for _ in range(3):
        runner.step(status(runner))
        service.relay.go_on()
    outcome = runner.run()
    assert outcome.nodes["withheld"] == [5]
    assert (len(outcome.nodes["handed in"]), outcome.counts["absent"]) == (5, 3)
    assert shown == [service.relay.roster.digest().hex()]
    service.relay.go_on()
    found = fetched(collection, http)
    assert 5 not in found.collected.holders
    assert [found.roster_digest.hex()] == shown


def test_who_comes_after_registration_takes_no_part(make_collection):
    collection = make_collection(least_registered=5)
    service, http = collection.relay(register_seconds=10.0)
    there = collection.runner(http, [0, 1, 2, 3, 4], "there.db")
    there.step(status(there))
    assert not service.advance()
    collection.now = 10.0
    assert service.advance()
    late = collection.runner(http, [5], "late.db")
    late.step(status(late))
    there.run()
    outcome = late.run()
    assert outcome.nodes["late"] == [5]
    found = fetched(collection, http)
    assert found.record.nodes.tolist() == [0, 1, 2, 3, 4]
    result = result_of(collection, found)
    assert result.num_users == 5
    assert any("1 of 6 users never registered" in warning for warning in result.warnings)


def test_too_few_users_never_begin(make_collection):
    collection = make_collection(least_registered=5)
    service, http = collection.relay(register_seconds=10.0)
    runner = collection.runner(http, [0, 1, 2, 3])
    runner.step(status(runner))
    collection.now = 1e6
    assert not service.advance()
    assert status(runner).phase == "registration"


def test_a_batch_that_comes_too_late_is_taken_back(collection):
    service, http = collection.relay(is_eager=False)
    runner = collection.runner(http, EVERYBODY)
    runner.step(status(runner))
    seen = status(runner)
    assert service.relay.go_on()  # round 1 ends before anybody sends
    runner.step(seen)
    for _ in range(3):
        runner.step(status(runner))
        service.relay.go_on()
    outcome = runner.run()
    assert outcome.counts["absent"] == 6
    found = fetched(collection, http)
    assert len(found.collected.reports) == 6
    assert found.record.absences[0].all()
    assert not found.record.absences[1:].any()


class Crash(Exception):  # noqa: N818  # not an error, but the end of a process
    """The process is killed here."""


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(0, 50, 5))
def test_a_process_killed_at_any_request_goes_on(collection, monkeypatch, step, after):
    # Before or after the request took effect: the state on disk has to be enough.
    _, http = collection.relay()
    numbers = itertools.count()
    real = http.send

    def send(request, **options):
        dies = request.url.path.split("/")[-2] in {"registration", "batches", "mail", "hand-in"}
        dies = dies and next(numbers) == step
        if dies and not after:
            raise Crash
        response = real(request, **options)
        if dies:
            raise Crash
        return response

    monkeypatch.setattr(http, "send", send)
    runner = collection.runner(http, EVERYBODY)
    with pytest.raises(Crash):
        runner.run()
    runner.store.close()
    again = collection.runner(http, EVERYBODY, value=0)  # another answer changes nothing
    again.run()
    found = fetched(collection, http)
    assert len(found.collected.reports) == 6
    assert found.collected.rejected == {}
    assert found.record.num_absences == 0


def test_answers_are_drawn_once(collection):
    def never() -> NodeValues:
        raise AssertionError("no value is needed: all reports are drawn")

    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    before = runner.store.states()
    runner.draw(never)
    assert runner.store.states() == before
    assert list(before) == EVERYBODY


def test_two_programs_cannot_play_the_same_user(collection):
    _, http = collection.relay()
    first = collection.runner(http, [0], "first.db")
    first.step(status(first))
    second = collection.runner(http, [0], "second.db")
    with pytest.raises(RefusedError, match="registered with other keys") as caught:
        second.step(status(second))
    assert caught.value.status == 409


def test_a_relay_of_another_collection_is_refused(make_collection):
    collection, other = make_collection(), make_collection()
    _, http = other.relay("other.db")
    with pytest.raises(DataError, match="other terms"):
        collection.runner(http, EVERYBODY).run()
    with pytest.raises(DataError, match="other terms"):
        fetched(collection, http)


def test_damaged_mail_is_an_error_after_which_running_again_goes_on(collection, monkeypatch):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    with monkeypatch.context() as patch:
        patch.setattr(runner.client, "mail", lambda *_: b"nonsense")
        with pytest.raises(ProtocolError, match="mail"):
            runner.run()
    assert len(runner.run().nodes["handed in"]) == 6


def test_waiting_is_polite(collection, monkeypatch):
    # Nobody else registers: each wait is longer than the one before, up to two seconds.
    _, http = collection.relay()
    runner = collection.runner(http, [0])
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 15:
            raise Crash

    monkeypatch.setattr(peer_runner, "time", type("Time", (), {"sleep": staticmethod(sleep)}))
    with pytest.raises(Crash):
        runner.run()
    assert waits == sorted(waits)
    assert waits[-1] == 2.0
    assert time.sleep is not sleep
