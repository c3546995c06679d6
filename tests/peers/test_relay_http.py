"""A relay and whoever sends it what no honest peer would."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.deploy.wire import ProtocolError, opaque, split_messages
from shuffledp.peers import relay
from shuffledp.peers.keys import PrivateKeys, hand_ins_token_text
from shuffledp.peers.relay import make_app

EVERYBODY = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def opened(collection):
    """A collection in round 1, whose batches are drawn and not sent."""
    service, http = collection.relay(is_eager=False)
    runner = collection.runner(http, EVERYBODY)
    runner.step(runner.client.status())
    runner._begin()
    return collection, service, http, runner._peers


def send(http, batch, *, number=1, node=0):
    return http.put(f"/rounds/{number}/batches/{node}", content=batch)


def assert_refused(response, status, text):
    assert response.status_code == status
    assert list(response.json()) == ["error"]
    assert text in response.json()["error"]
    assert "\n" not in response.text


@pytest.mark.parametrize("digits", [11, 5_000])  # Python reads 4,300 at most
@pytest.mark.parametrize("path", ["/rounds/{}/mail/0", "/rounds/1/mail/{}"])
def test_numbers_of_too_many_digits_are_nowhere(opened, path, digits):
    response = opened[2].get(path.format("9" * digits), headers={"authorization": "Signature 00"})
    assert_refused(response, 404, "Not Found")


@pytest.mark.parametrize("token", [b"http", b"Signature", b"Signature 0", b"Signature zz",
                                   b"Signature \xff\xfe", b"Bearer 00", b"\xc3\xa9"])  # fmt: skip
@pytest.mark.parametrize("path", ["/hand-ins", "/record", "/rounds/1/mail/0"])
def test_malformed_tokens_are_refused(opened, path, token):
    assert_refused(opened[2].get(path, headers={b"authorization": token}), 401, "Signature HEX")


def test_status_says_how_far_it_is(opened):
    collection, _, http, peers = opened
    send(http, peers[0].outgoing(1))
    assert http.get("/status").json() == {
        "phase": "round",
        "round": 1,
        "rounds": 3,
        "num_users": 6,
        "num_registered": 6,
        "num_sent": 1,
        "num_handed_in": 0,
        "terms_digest": collection.terms.digest().hex(),
    }


def test_the_user_and_the_round_of_the_path_are_those_of_the_body(opened):
    _, _, http, peers = opened
    registration = peers[0].state.registration
    assert_refused(http.put("/registration/1", content=registration), 400, "sent as of user 1")
    assert_refused(http.put("/registration/6", content=registration), 404, "not in [0, 6)")
    batch = peers[0].outgoing(1)
    assert_refused(send(http, batch, node=1), 400, "of user 0, and was sent as of user 1")
    assert_refused(send(http, batch, number=2), 400, "of round 1, and was sent as of round 2")
    assert http.get("/status").json()["num_sent"] == 0
    assert send(http, batch).status_code == 204


def test_the_same_batch_again_is_acknowledged_and_kept_once(opened):
    _, service, http, peers = opened
    batch = peers[0].outgoing(1)
    assert send(http, batch).status_code == 204
    assert send(http, batch).status_code == 204
    service.relay.go_on()
    assert send(http, batch).status_code == 204  # also after the round
    token = {node: peers[node].mail_token(1).hex() for node in EVERYBODY}
    letters = 0
    for node in EVERYBODY:
        head = {"Authorization": f"Signature {token[node]}"}
        packet = http.get(f"/rounds/1/mail/{node}", headers=head).content
        peers[node].receive(1, packet)
        letters += peers[node].state.counts["report"] + peers[node].state.counts["cover"]
    assert letters == service.relay.terms.slots[0]


def test_another_batch_in_its_place_is_a_conflict(opened):
    _, _, http, peers = opened
    first = peers[0].outgoing(1)
    assert send(http, first).status_code == 204
    peers[0].state.sent_in = 0  # what a thief of the keys would do
    second = peers[0].outgoing(1)
    assert second != first
    assert_refused(send(http, second), 409, "another batch")


def test_changed_truncated_and_foreign_bytes_are_refused(opened):
    _, _, http, peers = opened
    batch = peers[0].outgoing(1)
    assert_refused(send(http, batch[:-1]), 400, "batch")
    assert_refused(send(http, batch + b"x"), 400, "batch")
    assert_refused(send(http, b""), 400, "batch")
    changed = bytearray(batch)
    changed[len(batch) // 2] ^= 1
    assert_refused(send(http, bytes(changed)), 403, "signed")
    other = bytearray(batch)
    other[10] ^= 1  # the digest of terms and roster
    assert_refused(send(http, bytes(other)), 412, "other terms")
    assert http.get("/status").json()["num_sent"] == 0


def test_a_batch_of_an_earlier_round_is_too_late(opened):
    _, service, http, peers = opened
    batch = peers[0].outgoing(1)
    service.relay.go_on()
    assert_refused(send(http, batch), 410, "round 2")


def test_bodies_beyond_the_limit_are_not_read(opened):
    _, service, http, _ = opened
    most = service.most_batch_bytes(0)
    assert_refused(send(http, bytes(most + 1)), 413, "more than")
    assert_refused(http.put("/registration/0", content=bytes(10_000)), 413, "more than")
    most = service.most_hand_in_bytes(0)
    assert_refused(http.put("/hand-in/0", content=bytes(most + 1)), 413, "more than")


def test_even_traffic_has_room_for_its_messages(make_collection):
    collection = make_collection(even_traffic=True)
    _, http = collection.relay()
    assert collection.runner(http, EVERYBODY).run().nodes["handed in"] == EVERYBODY
    assert collection.terms.per_neighbour > 0


def test_mail_is_for_its_owner_only(opened):
    _, service, http, peers = opened
    service.relay.go_on()
    own = {"Authorization": f"Signature {peers[0].mail_token(1).hex()}"}
    assert http.get("/rounds/1/mail/0", headers=own).status_code == 200
    assert_refused(http.get("/rounds/1/mail/1", headers=own), 403, "not theirs")
    assert_refused(http.get("/rounds/2/mail/0", headers=own), 425, "not over")
    assert_refused(http.get("/rounds/1/mail/0"), 401, "Authorization")
    for said in ("Signature zz", "Bearer 00", "Signature"):
        head = {"Authorization": said}
        assert_refused(http.get("/rounds/1/mail/0", headers=head), 401, "Authorization")
    forged = {"Authorization": "Signature " + "00" * 64}
    assert_refused(http.get("/rounds/1/mail/0", headers=forged), 403, "not theirs")


def test_what_was_handed_in_is_for_the_analyzer_when_all_is_over(collection):
    service, http = collection.relay(is_eager=False)
    runner = collection.runner(http, EVERYBODY)
    token = collection.keys.sign(hand_ins_token_text(collection.terms)).hex()
    right = {"Authorization": f"Signature {token}"}
    assert_refused(http.get("/hand-ins", headers=right), 425, "registration phase")
    assert_refused(http.delete("/hand-ins", headers=right), 425, "registration phase")
    for _ in range(3):  # nobody sends in round 1
        runner.step(runner.client.status())
        service.relay.go_on()
    assert_refused(http.get("/record", headers=right), 425, "hand-in phase")
    runner.run()
    stranger = PrivateKeys.generate().sign(hand_ins_token_text(collection.terms)).hex()
    wrong = {"Authorization": f"Signature {stranger}"}
    for path in ("/hand-ins", "/record"):
        assert_refused(http.get(path, headers=wrong), 403, "not the analyzer's")
        assert http.get(path, headers=right).status_code == 200
    assert http.get("/record", headers=right).json() == {"absent": [EVERYBODY, [], []]}
    collected = []
    service.on_collected = lambda: collected.append(True)
    assert_refused(http.delete("/hand-ins", headers=wrong), 403, "not the analyzer's")
    for _ in range(2):
        assert http.delete("/hand-ins", headers=right).status_code == 204
        assert_refused(http.get("/hand-ins", headers=right), 410, "had stored it")
    assert collected == [True, True]
    assert http.get("/status").json()["num_handed_in"] == 6


def test_handing_in_ends(collection):
    service, http = collection.relay(round_seconds=0.5)
    runner = collection.runner(http, EVERYBODY)
    while (status := runner.client.status()).phase != "hand-in":
        runner.step(status)
    runner._receive_through(3)
    handed = runner._peers[0].hand_in()
    assert_refused(http.put("/hand-in/1", content=handed), 400, "sent as of user 1")
    collection.now = 5.0
    assert service.advance()
    assert_refused(http.put("/hand-in/0", content=handed), 410, "ended")
    assert runner.run().nodes["lost"] == EVERYBODY


@pytest.mark.parametrize(("is_eager", "seconds", "is_over"), [
    (True, 0.0, True), (False, 0.0, False), (False, 59.9, False), (False, 60.0, True),
])  # fmt: skip
def test_who_ends_a_round(collection, is_eager, seconds, is_over):
    """Everybody has sent: only a relay that is told to be eager goes on before its time."""
    service, http = collection.relay(is_eager=is_eager)
    runner = collection.runner(http, EVERYBODY)
    runner.step(runner.client.status())
    assert runner.client.status().phase == "round"  # registration ends when all are there
    runner.step(runner.client.status())
    collection.now += seconds
    service.advance()
    assert (service.relay.round_number == 2) is is_over


def test_a_round_ends_on_time_also_where_nobody_sends_and_handing_in_after_ten(collection):
    service, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    runner.step(runner.client.status())
    for number in (2, 3, 4):
        collection.now += 60.0
        assert service.advance()
        assert service.relay.round_number == number
    collection.now += 599.0
    assert not service.advance()
    collection.now += 1.0
    assert service.advance()
    assert service.relay.phase == "over"
    assert not service.advance()


@pytest.mark.parametrize("options", [{"round_seconds": 0.0}, {"register_seconds": -1.0}])
def test_what_no_clock_can_be_made_of(collection, options):
    with pytest.raises(ParameterError, match="_seconds"):
        collection.relay(**options)


@given(st.lists(st.binary(max_size=5)), st.data())
def test_messages_come_back_and_cut_bodies_are_noticed(messages, data):
    body = b"".join(map(opaque, messages))
    assert split_messages(body) == messages
    ends = {sum(4 + len(each) for each in messages[:count]) for count in range(len(messages) + 1)}
    cut = data.draw(st.integers(0, len(body)))
    if cut not in ends:
        with pytest.raises(ProtocolError, match="end in the middle"):
            split_messages(body[:cut])


def test_unknown_places_are_refused_in_one_line(opened):
    _, _, http, _ = opened
    assert_refused(http.get("/nothing"), 404, "Not Found")
    assert_refused(http.delete("/status"), 405, "Method Not Allowed")
    assert_refused(send(http, b"", node=6), 404, "not in [0, 6)")


def test_the_roster_is_closed_first(collection):
    _, http = collection.relay()
    assert_refused(http.get("/roster"), 425, "not closed")


def test_a_disk_that_is_full_and_a_mistake_of_ours_are_server_errors(
    collection, monkeypatch, capsys
):
    service, http = collection.relay()

    def fail(error):
        def raise_it(*_, **__):
            raise error

        monkeypatch.setattr(service.relay, "register", raise_it)
        return http.put("/registration/0", content=b"x")

    assert_refused(fail(OutputError("cannot write relay.db: disk full")), 503, "try again")
    assert "disk full" in capsys.readouterr().err
    assert_refused(fail(ZeroDivisionError()), 500, "mistake")


def test_the_clock_moves_on_without_requests(collection, monkeypatch, capsys):
    service, http = collection.relay(register_seconds=1.0)
    runner = collection.runner(http, [0, 1, 2, 3, 4])
    runner.step(runner.client.status())
    ticks = []
    real_advance = service.advance

    def advance():
        if len(ticks) == 1:
            raise OutputError("cannot write relay.db: disk full")
        return real_advance()

    async def sleep(seconds):
        ticks.append(seconds)
        collection.now += 61.0
        if len(ticks) > 8:
            raise asyncio.CancelledError

    monkeypatch.setattr(service, "advance", advance)
    monkeypatch.setattr(relay.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(service.run())
    assert "disk full" in capsys.readouterr().err
    assert http.get("/status").json()["phase"] == "hand-in"


def test_no_time_runs_while_a_full_disk_keeps_the_mail_of_the_round_before(collection, monkeypatch):
    service, http = collection.relay(is_eager=False)
    runner = collection.runner(http, EVERYBODY)
    for _ in range(2):
        runner.step(runner.client.status())

    def fail():
        raise OutputError("cannot write relay.db: database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(service.relay, "rewrite", fail)
        collection.now += 60.0
        with pytest.raises(OutputError):
            service.advance()
        for _ in range(5):  # the second round has begun, and lasts
            collection.now += 600.0
            with pytest.raises(OutputError):
                service.catch_up()
            assert not service.advance()
    assert service.relay.round_number == 2
    service.catch_up()
    collection.now += 59.0
    assert not service.advance()
    runner.step(runner.client.status())  # there is time to send
    collection.now += 1.0
    assert service.advance()
    assert service.relay.absent(2) == ()


def test_the_clock_lives_as_long_as_the_server(collection):
    service, _ = collection.relay()
    app = make_app(service)

    async def live():
        async with app.router.lifespan_context(app):
            names = {task.get_coro().__name__ for task in asyncio.all_tasks()}
            await asyncio.sleep(0)
            return names

    assert "run" in asyncio.run(live())


def test_a_client_that_leaves_in_the_middle_changes_nothing(collection):
    service, http = collection.relay()
    app = make_app(service)
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send_back(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "PUT", "path": "/registration/0", "headers": [],
        "query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http",
        "server": ("127.0.0.1", 80), "client": None,
    }  # fmt: skip
    asyncio.run(app(scope, receive, send_back))
    assert sent[0]["status"] == 400
    assert http.get("/status").json()["num_registered"] == 0
