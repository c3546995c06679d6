"""A malicious operator, shuffler, analyzer or client of a task, and clocks that are wrong.

Each test shows that it is noticed, or what it can do at most. What the network can do is in
`test_deployed_network`, what codes stop in `tests/deploy/test_messages_codes.py`.
"""

import asyncio
import math
import re
import time
from pathlib import Path

import httpx
import pytest

from deploy.make_vectors import (
    ANALYZER_KEY,
    RECORD_SIZE,
    SEALING,
    SIGNING,
    make_task,
    open_record,
    public,
)
from deploy.roles import handed_out_in, key_of
from deploy.steps import advance, open_outer, take
from shuffledp.core.errors import DataError
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.client import Client
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.shuffler import GRACE_SECONDS, Shuffler
from shuffledp.deploy.shuffler_server import ShufflerWatch, shuffler_app
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, open_seal, uint

SMALL = {"min_batch": 4, "honest_ppm": 1_000_000, "epsilon": "2"}
TASK = make_task(**SMALL)
DAY = TASK.epoch_seconds
FORMAT = Path(__file__).parents[2] / "docs" / "explanation" / "deployment-format.md"
# Of its table of requests: method, and who signs.
ENDPOINTS = re.compile(r"^\| `(GET|POST|DELETE)` .*? \| (\w+) \|", re.MULTILINE)
OVER = DAY + GRACE_SECONDS


def at(epoch, seconds=0):
    return TASK.start + epoch * DAY + seconds


def shuffler_of(task, folder, **more):
    return Shuffler(
        task,
        folder,
        signing_key=SIGNING["shuffler"],
        sealing_keys=dict.fromkeys(range(task.num_epochs), SEALING["shuffler"]),
        handed_out=handed_out_in(folder),
        **more,
    )


def analyzer_of(task, folder):
    return Analyzer(
        task,
        folder,
        shuffler_key=public(SIGNING["shuffler"]),
        opening_keys={9: SEALING["analyzer"]},
    )


def sent(report, *, number, task=TASK, epoch=0):
    """Return a sealed report under an id of its own."""
    return m.Report.sealed_for(
        task,
        report,
        report_id=number.to_bytes(16, "big"),
        epoch=epoch,
        shuffler=key_of(epoch),
        analyzer=ANALYZER_KEY,
    ).encode()


def record(report, task=TASK):
    """Return a record of a batch, as anybody can make it who knows the analyzer's key."""
    inner = m.seal(report, ANALYZER_KEY.public_key, m.inner_info(task.task_id))
    return bytes([ANALYZER_KEY.number]) + inner


def batch_of(records, *, number=1, task=TASK):
    """Return a batch that the shuffler signs, whatever is in it."""
    batch = m.Batch(
        task,
        number=number,
        first_epoch=0,
        last_epoch=0,
        records=tuple(records),
        num_opened=len(records),
        num_dishonest=task.most_dishonest(len(records)),
    ).signed(SIGNING["shuffler"])
    return b"".join(batch.encode())


# ---------------------------------------------------------------- the operator
def test_a_task_that_promises_more_than_it_keeps_is_answered_and_served_by_nobody(tmp_path):
    lying = make_task(**SMALL | {"epsilon": "1.5"})
    assert lying.guarantee().epsilon_upper > 1.5
    for take_part in (
        lambda: Client(lying, tmp_path / "c.db"),
        lambda: shuffler_of(lying, tmp_path),
        lambda: analyzer_of(lying, tmp_path),
    ):
        with pytest.raises(ProtocolError, match="promises epsilon") as caught:
            take_part()
        assert caught.value.fault is Fault.OPERATOR
    assert [each.name for each in tmp_path.iterdir()] == ["handed_out"]  # which was given


WEAKER = {
    "a larger epsilon0": {"asked": AskedTerms.of(TASK.asked.question, "k-rr", 4.0), "epsilon": "4"},
    "smaller batches": {"min_batch": 2},
    "fewer honest users": {"honest_ppm": 500_000},
    "a larger promise": {"epsilon": "3"},
    "a larger delta": {"delta": "1e-2"},
    "another analyzer": {"analyzer_url": "https://elsewhere.example"},
    "other keys": {"operator_key": bytes(32)},
}


@pytest.mark.parametrize("what", WEAKER)
def test_a_weaker_task_for_some_is_another_task_and_its_reports_join_no_others(tmp_path, what):
    weaker = make_task(**SMALL | WEAKER[what])
    assert weaker.task_id != TASK.task_id
    with Client(TASK, tmp_path / "c.db"):
        pass
    with pytest.raises(DataError, match="other terms"):
        Client(weaker, tmp_path / "c.db")
    with shuffler_of(TASK, tmp_path) as shuffler, analyzer_of(TASK, tmp_path) as analyzer:
        for number in range(4):
            take(shuffler, sent(b"\0", number=number), at(0))
        take(shuffler, sent(b"\1", number=9, task=weaker), at(0))
        advance(shuffler, at(0, OVER))
        assert analyzer.take(shuffler.fetch(1)).reports.num_reports == 4
        assert shuffler.counts()["unopened"] == 1
        others = [record(b"\1", weaker), *(record(b"\0") for _ in range(4))]
        assert analyzer.take(batch_of(others, number=2)).counts["num_unopened"] == 1


def test_no_field_of_a_task_changes_without_its_id():
    """Any changed byte is refused, or is another task."""
    data, ids = TASK.encode(), {TASK.task_id}
    for place in range(len(data)):
        for change in (1, 0x80):
            other = data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]
            try:
                found = Task.decode(other).task_id
            except ProtocolError:
                continue
            assert found not in ids
            ids.add(found)
    assert len(ids) > 100


# ---------------------------------------------------------------- the shuffler
def test_a_shuffler_opens_no_report_with_all_its_keys(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler:
        for number in range(4):
            take(shuffler, sent(b"\0", number=number), at(0))
        advance(shuffler, at(0, OVER))
        found = m.Batch.decode(shuffler.fetch(1), TASK, public(SIGNING["shuffler"]))
    for each in found.records:
        assert open_record(TASK.task_id, each, {9: SEALING["shuffler"]}) is None
        assert open_seal(each[1:], SEALING["shuffler"], m.inner_info(TASK.task_id)) is None


@pytest.mark.parametrize("share", [1_000_000, 250_000])
def test_one_user_among_made_up_reports_keeps_what_the_honest_share_says(tmp_path, share):
    """Nobody can tell: with one honest report of four epsilon0 is left, if the task says so."""
    task = make_task(**SMALL | {"honest_ppm": share})
    made_up = [record(b"\1", task) for _ in range(3)]
    with analyzer_of(task, tmp_path) as analyzer:
        opened = analyzer.take(batch_of([record(b"\0", task), *made_up], task=task))
    loss = task.asked.randomizer.epsilon0
    assert opened.reports.num_reports == 4
    if share == 250_000:
        assert opened.guarantee.num_users == 1
        assert math.isclose(opened.guarantee.epsilon_upper, loss, rel_tol=1e-6)
    assert opened.guarantee.epsilon_upper <= loss


@pytest.mark.parametrize(
    "padding",
    [
        lambda: [record(b"\0", make_task(info="another"))],  # does not open
        lambda: [record(b"\7")],  # no report of the randomizer
        lambda: [bytes([3]) + record(b"\0")[1:]],  # a key that nobody has
        lambda: [REAL[0]],  # the same again
    ],
)
def test_a_batch_cannot_be_filled_up_with_what_does_not_count(tmp_path, padding):
    """Nothing is said of three; they are counted with others, once, and as few as they were."""
    with analyzer_of(TASK, tmp_path) as analyzer:
        assert analyzer.take(batch_of([*REAL, *padding()])) is None
        opened = analyzer.take(batch_of([*REAL, record(b"\0")], number=2))
        assert (opened.counts["num_repeated"], opened.counts["num_earlier"]) == (3, 3)
        assert (opened.reports.num_reports, opened.guarantee.num_users) == (4, 1)


REAL = [record(b"\0") for _ in range(3)]


def test_a_report_that_is_released_again_is_dropped_and_said(tmp_path):
    """So nobody is followed through batches by a report that is in all of them."""
    victim = record(b"\0")
    with analyzer_of(TASK, tmp_path) as analyzer:
        for number in range(1, 4):
            others = [record(b"\1") for _ in range(4)]
            opened = analyzer.take(batch_of([victim, victim, *others], number=number))
            assert (opened.counts["num_repeated"], opened.reports.num_reports) == (
                (1, 5) if number == 1 else (2, 4)
            )


def test_what_is_dropped_is_not_counted_as_there(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler, analyzer_of(TASK, tmp_path) as analyzer:
        for number in range(9):
            take(shuffler, sent(b"\0", number=number), at(0))
        advance(shuffler, at(0, OVER))
        batch = m.Batch.decode(shuffler.fetch(1), TASK, public(SIGNING["shuffler"]))
        opened = analyzer.take(batch_of(batch.records[:5]))
    assert opened.guarantee == TASK.guarantee(5)
    assert opened.guarantee.epsilon_upper > TASK.guarantee(9).epsilon_upper


def test_without_an_epochs_key_copies_of_everything_open_nothing(tmp_path):
    """Who has every upload, the store and the keys of other epochs, after this one's is gone."""
    body = sent(b"\0", number=0)
    (report,) = m.decode_upload(body, TASK)
    others = [SEALING["analyzer"], SEALING["operator"]]
    assert open_outer(report, TASK.task_id, SEALING["shuffler"]) is not None
    assert [open_outer(report, TASK.task_id, each) for each in others] == [None, None]
    with shuffler_of(TASK, tmp_path) as shuffler:
        take(shuffler, body, at(0))
        copied = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert report.sealed in copied
    # The shuffler started again without the key releases nothing of it.
    with Shuffler(
        TASK,
        tmp_path,
        signing_key=SIGNING["shuffler"],
        sealing_keys={1: SEALING["operator"]},
        handed_out=handed_out_in(tmp_path),
    ) as shuffler:
        assert advance(shuffler, at(0, OVER))[0].state == "short"


# ---------------------------------------------------------------- the analyzer
def test_an_analyzer_who_hears_the_network_opens_nothing_that_comes_in(tmp_path):
    for number in range(3):
        (report,) = m.decode_upload(sent(b"\0", number=number), TASK)
        assert open_outer(report, TASK.task_id, SEALING["analyzer"]) is None
        for start in range(len(report.sealed) - 48):
            inner = report.sealed[start : start + RECORD_SIZE - 1]
            assert open_seal(inner, SEALING["analyzer"], m.inner_info(TASK.task_id)) is None


@pytest.fixture
def app(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler:
        yield (
            shuffler,
            shuffler_app(
                shuffler,
                lists={"keys": b"", "analyzer_keys": b""},
                analyzer_key=public(SIGNING["analyzer"]),
                watch=ShufflerWatch(shuffler, tmp_path),
                now=lambda: at(0),
            ),
        )


def asked(app, method, path, *, signer="analyzer", signed=None, ahead=0, host="shuffler"):
    """Ask the shuffler for something, with a signature of that or of something else, or none."""
    path = f"/tasks/{TASK.task_id.hex()}{path}"
    headers = {"Host": host}
    if signer is not None:
        made_at = uint(int(time.time()) + ahead, 8)
        text = m.signed_request(TASK.task_id, *(signed or (method, path)), made_at)
        token = made_at + SIGNING[signer].sign(text)
        headers["Authorization"] = f"Signature {token.hex()}"

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shuffler") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(ask())


def test_only_the_analyzer_gets_batches_and_none_before_its_time_or_twice(app):
    shuffler, server = app
    for number in range(4):
        take(shuffler, sent(b"\0", number=number), at(0))
    for path in ("/batches", "/batches/1"):
        for signer in (None, "shuffler", "operator"):
            assert asked(server, "GET", path, signer=signer).status_code in (401, 403)
    assert asked(server, "GET", "/batches/1").status_code == httpx.codes.NOT_FOUND
    assert asked(server, "GET", "/batches").json() == {"sealed": []}
    advance(shuffler, at(0, OVER))
    reading = ("GET", f"/tasks/{TASK.task_id.hex()}/batches/1")
    stolen = asked(server, "DELETE", "/batches/1", signed=reading)
    assert stolen.status_code == httpx.codes.FORBIDDEN
    listing = ("GET", f"/tasks/{TASK.task_id.hex()}/batches")
    posing = asked(server, "GET", "/batches/1", signed=listing, host=f"shuffler{listing[1]}#")
    assert posing.status_code == httpx.codes.FORBIDDEN
    for ahead in (-400, 400):  # heard once, and made again
        again = asked(server, "DELETE", "/batches/1", ahead=ahead)
        assert (again.status_code, "compare the clocks" in again.text) == (403, True)
    assert len(asked(server, "GET", "/batches/1").content) > 4 * RECORD_SIZE
    # What was heard can be repeated meanwhile: it changes nothing, and is answered as before.
    assert asked(server, "GET", "/batches/1").content == asked(server, "GET", "/batches/1").content
    for _ in range(2):
        assert asked(server, "DELETE", "/batches/1").status_code == httpx.codes.NO_CONTENT
    endpoints = set(ENDPOINTS.findall(FORMAT.read_text("utf-8")))
    signed = {(method, who) for method, who in endpoints if who != "anybody"}
    assert signed == {("GET", "analyzer"), ("DELETE", "analyzer"), ("GET", "operator")}
    assert asked(server, "GET", "/batches/1").status_code == httpx.codes.GONE
    for after in ("-1", "x", "9" * 30, "9" * 5000):
        path = f"/batches?after={after}"
        assert asked(server, "GET", path).status_code == httpx.codes.BAD_REQUEST
    assert 400 <= asked(server, "GET", "/batches/999999999999999999999").status_code < 500


# ---------------------------------------------------------------- clients
def test_junk_costs_nobody_elses_report(tmp_path):
    same = record(b"\1")
    with shuffler_of(TASK, tmp_path) as shuffler, analyzer_of(TASK, tmp_path) as analyzer:
        for number in range(4):
            take(shuffler, sent(b"\0", number=number), at(0))
        for number in range(100, 120):
            invalid = sent(bytes([number]), number=number)  # opens, and is no report
            take(shuffler, invalid, at(0))
            noise = m.Report(report_id=bytes([number]) * 16, epoch=0, key=0, sealed=bytes(98))
            take(shuffler, noise.encode(), at(0))
            # One inner seal under many ids.
            info = m.outer_info(TASK.task_id, 0, bytes([number, 1]) * 8)
            sealed = m.seal(same, public(SEALING["shuffler"]), info)
            copy = m.Report(report_id=bytes([number, 1]) * 8, epoch=0, key=0, sealed=sealed)
            assert take(shuffler, copy.encode(), at(0)) == [Answer.ACCEPTED]
        advance(shuffler, at(0, OVER))
        opened = analyzer.take(shuffler.fetch(1))
        assert sorted(opened.reports.data.tolist()) == [0, 0, 0, 0, 1]
        assert opened.counts["num_invalid"] == 20
        assert {name: shuffler.counts()[name] for name in ("unopened", "duplicate")} == {
            "unopened": 20, "duplicate": 19,
        }  # fmt: skip


def test_epochs_that_clients_make_up_take_no_room(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler:
        size = m.report_size(1)
        one = sent(b"\0", number=1)
        for start in range(0, 20_000, 1000):
            body = b"".join(
                one[:16] + (2**32 - 1 - start - number).to_bytes(4, "big") + one[20:size]
                for number in range(1000)
            )
            assert set(take(shuffler, body, at(0))) == {Answer.EARLY}
        assert shuffler.counts() == {"early": 20_000}
        assert shuffler._store.value("SELECT count(*) FROM counts") == 1
        assert shuffler.counts() == {"early": 20_000}


def test_who_takes_anothers_id_first_costs_them_the_report_and_they_are_told(tmp_path):
    """As if it were lost on the way; ids are drawn at random, or follow from a secret code."""
    with shuffler_of(TASK, tmp_path) as shuffler, Client(TASK, tmp_path / "c.db") as client:
        kept = client.report("yes", at(0))
        noise = m.Report(report_id=kept.report_id, epoch=0, key=0, sealed=bytes(98))
        take(shuffler, noise.encode(), at(0))
        body = client.sealed(shuffler=key_of(0), analyzer=ANALYZER_KEY)
        assert take(shuffler, body, at(0)) == [Answer.REPLAYED]


# ---------------------------------------------------------------- clocks
def test_a_device_whose_clock_is_ahead_counts_once_in_the_epoch_it_named(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler, Client(TASK, tmp_path / "c.db") as client:
        kept = client.report("yes", at(3))
        body = client.sealed(shuffler=key_of(3), analyzer=ANALYZER_KEY)
        for day in range(3):
            assert take(shuffler, body, at(day)) == [Answer.EARLY]
        assert client.report("yes", at(0)) == kept  # its clock is set right: the same report
        assert take(shuffler, body, at(3)) == [Answer.ACCEPTED]
        assert take(shuffler, body, at(3)) == [Answer.ACCEPTED]
        assert shuffler.counts() == {"early": 3, "accepted": 1, "repeated": 1}


def test_a_device_whose_clock_is_behind_is_late_and_counted_as_that(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler, Client(TASK, tmp_path / "c.db") as client:
        client.report("yes", at(0))
        body = client.sealed(shuffler=key_of(0), analyzer=ANALYZER_KEY)
        for _ in range(2):
            assert take(shuffler, body, at(2)) == [Answer.LATE]
        assert shuffler.counts() == {"late": 2}


def test_a_shuffler_whose_clock_jumps_ahead_closes_epochs_for_good(tmp_path):
    """What comes then is late and counted; nothing is released twice, or with too few others."""
    with shuffler_of(TASK, tmp_path) as shuffler:
        for number in range(4):
            take(shuffler, sent(b"\0", number=number), at(0))
        assert advance(shuffler, at(5, OVER))[0].state == "sealed"
        for epoch in range(6):
            (answer,) = take(shuffler, sent(b"\0", number=10 + epoch, epoch=epoch), at(epoch))
            assert answer is Answer.LATE
        assert advance(shuffler, at(0)) == []
        assert take(shuffler, sent(b"\0", number=20, epoch=6), at(6)) == [Answer.ACCEPTED]
        assert shuffler.counts() == {"accepted": 5, "late": 6}


def test_a_shuffler_whose_clock_falls_back_takes_nothing_early_and_loses_nothing(tmp_path):
    with shuffler_of(TASK, tmp_path) as shuffler:
        for number in range(4):
            take(shuffler, sent(b"\0", number=number, epoch=2), at(2))
        assert advance(shuffler, at(1)) == []
        assert take(shuffler, sent(b"\0", number=4, epoch=2), at(1)) == [Answer.EARLY]
        assert advance(shuffler, at(2, OVER))[0].size == 4
        assert advance(shuffler, at(1)) == []
        assert shuffler.counts() == {"accepted": 4, "early": 1}
