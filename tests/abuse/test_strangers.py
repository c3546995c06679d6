"""What anybody may ask costs little before it is believed: no hash a code, lock, line or memory.

The budgets are those of docs/explanation/deployment-format.md, section Budgets.
"""

import asyncio
import json
import logging
import select
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import httpx
import pytest

from deploy.databases import ENGINES, store_of
from deploy.roles import TASK, at, shuffler_for, upload
from deploy.servers.test_http_server import (
    BUSY,
    HALF,
    OK,
    PATIENCE_SECONDS,
    Served,
    answer,
    rest,
)  # fmt: skip
from deploy.steps import take
from shuffledp.deploy import messages as m
from shuffledp.deploy import shuffler_server as serving
from shuffledp.deploy.messages import Answer, Codes, new_codes, report_id_of
from shuffledp.deploy.servers.http_server import ConnectionLimits
from shuffledp.deploy.servers.watch import MOST_LINES, EventHandler, Watch
from shuffledp.deploy.shuffler_server import ShufflerWatch, shuffler_app
from shuffledp.deploy.wire import ProtocolError

GRACE = 5 * TASK.epoch_seconds


# ---------------------------------------------------------------- time
def test_no_stranger_has_ids_computed(tmp_path, monkeypatch):
    codes = Codes(new_codes(50), TASK.task_id)
    with shuffler_for(TASK, tmp_path, admission=codes, grace_seconds=GRACE) as shuffler:
        shuffler.prepare(at(6))
        # Whatever epochs strangers name, one open as well as one to come, nothing is computed.
        monkeypatch.setattr(m, "report_id_of", lambda *_: pytest.fail("computed"))
        some = [
            m.decode_upload(upload(TASK, b"\0", number=n, epoch=n % 9), TASK)[0] for n in range(40)
        ]
        answers = shuffler.take(some, at(6))
        expected = [Answer.LATE] + [Answer.NOT_ADMITTED] * 6 + [Answer.EARLY] * 2
        assert answers == [expected[n % 9] for n in range(40)]


def test_an_epoch_that_is_not_prepared_is_early_and_admits_nobody(tmp_path):
    (code,) = codes = new_codes(1)
    with shuffler_for(TASK, tmp_path, admission=Codes(codes, TASK.task_id)) as shuffler:
        report_id = int.from_bytes(report_id_of(code, TASK.task_id, 2))
        body = upload(TASK, b"\0", number=report_id, epoch=2)
        (report,) = m.decode_upload(body, TASK)
        assert shuffler.take([report], at(2)) == [Answer.EARLY]  # so its device sends it again
        assert take(shuffler, body, at(2)) == [Answer.ACCEPTED]


@pytest.mark.parametrize("engine", ENGINES)
def test_refused_reports_cost_the_store_nothing(tmp_path, engine, monkeypatch):
    codes = Codes(new_codes(3), TASK.task_id)
    more = {"database": store_of(engine, tmp_path), "admission": codes}
    with shuffler_for(TASK, tmp_path, **more) as shuffler:
        body = b"".join(upload(TASK, b"\0", number=e, epoch=e) for e in (0, 3, 5))
        shuffler.prepare(at(3))
        with monkeypatch.context() as patch:
            for name in ("transaction", "rows", "change"):
                patch.setattr(shuffler._store, name, lambda *_, **__: pytest.fail("touched"))
            answers = shuffler.take(m.decode_upload(body, TASK), at(3))
        assert answers == [Answer.LATE, Answer.NOT_ADMITTED, Answer.EARLY]
        assert shuffler.counts() == {"late": 1, "not_admitted": 1, "early": 1}
        assert shuffler.counts() == {"late": 1, "not_admitted": 1, "early": 1}


# ---------------------------------------------------------------- room
@contextmanager
def asking(shuffler, **changes):
    """Run an application; yield a function that posts reports to it."""
    watch = ShufflerWatch(shuffler)
    lists = {"keys": b"", "analyzer_keys": b""}
    app = shuffler_app(
        shuffler, lists=lists, analyzer_key=bytes(32), watch=watch, now=lambda: at(1), **changes
    )
    with asyncio.Runner() as runner:
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server")
        path = f"/tasks/{TASK.task_id.hex()}/reports"
        yield lambda body: runner.run(client.post(path, content=body))
        runner.run(lifespan.__aexit__(None, None, None))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_epoch_takes_in_no_more_than_its_quota(tmp_path, engine):
    database = store_of(engine, tmp_path)
    with shuffler_for(TASK, tmp_path, database=database) as shuffler:
        shuffler.max_epoch_reports = 3
        with asking(shuffler) as post:
            first = [upload(TASK, b"\0", number=n) for n in range(5)]
            again = post(first[0]), post(first[0]), post(first[0]), post(first[0])
            assert {each.content for each in again} == {bytes([Answer.ACCEPTED])}  # one report
            assert post(b"".join(first[1:3])).content == bytes(2)
            refused = post(first[3])
            assert refused.status_code == httpx.codes.TOO_MANY_REQUESTS
            assert refused.headers["retry-after"] == "600"
            assert "max_epoch_reports" in refused.json()["error"]
            assert shuffler.num_unreleased() == 3
            # Others are taken in; an upload with one for a full epoch is refused as a whole.
            other = upload(TASK, b"\0", number=1, epoch=1)
            assert post(other + first[3]).status_code == httpx.codes.TOO_MANY_REQUESTS
            assert post(other).content == bytes(1)
            shuffler.max_epoch_reports = 4
            assert post(first[3]).content == bytes(1)
    with shuffler_for(TASK, tmp_path, database=database) as shuffler:  # nor after a new start
        shuffler.max_epoch_reports = 4
        with asking(shuffler) as post:
            while not shuffler.is_full(0):
                post(first[0])
            assert post(first[4]).status_code == httpx.codes.TOO_MANY_REQUESTS


def test_what_waits_to_be_stored_is_bounded_in_reports_and_bytes(tmp_path, monkeypatch):
    with shuffler_for(TASK, tmp_path) as shuffler:
        size = m.report_size(1)
        monkeypatch.setattr(serving, "_MOST_WAITING_BYTES", 3 * size)
        intake = serving.Intake(shuffler, lambda: at(0), ShufflerWatch(shuffler))
        reports = m.decode_upload(b"".join(upload(TASK, b"\0", number=n) for n in range(4)), TASK)

        async def scenario():
            waits = asyncio.ensure_future(intake.take(reports[:3]))
            await asyncio.sleep(0)
            with pytest.raises(serving.HTTPException, match="too many reports wait"):
                await intake.take(reports[3:])
            waits.cancel()

        asyncio.run(scenario())


@pytest.mark.parametrize(("report_bytes", "most"), [(1, 1000), (4_000, 1000), (65_535, 63)])
def test_an_upload_has_at_most_1000_reports_and_4_mib(report_bytes, most):
    assert m.most_reports(report_bytes) == most
    size, task = m.report_size(report_bytes), SimpleNamespace(sizes=(report_bytes, 1, "x25519"))
    assert most * size <= m.MOST_UPLOAD_BYTES
    assert len(m.decode_upload(bytes(most * size), task)) == most
    with pytest.raises(ProtocolError, match=f"1 to {most:,} reports"):
        m.decode_upload(bytes((most + 1) * size), task)


def test_unfinished_uploads_share_a_budget_and_the_largest_make_room():
    large = b"PUT /x HTTP/1.1\r\nHost: relay\r\nContent-Length: 999999\r\n\r\n" + bytes(30_000)
    with Served(ConnectionLimits(most=100, most_from_one=100, most_bytes=100_000)) as served:
        small = served.half()  # it has waited longest, and is never sent away
        others = [served.connect(large) for _ in range(20)]
        until(lambda: served.room.num_bytes == num_held(others, large))
        sent_away, _, _ = select.select(others, [], [], 0)
        assert len(others) - len(sent_away) <= 100_000 // len(large)  # the others fit
        for each in sent_away:
            with suppress(ConnectionResetError):  # closed while more came
                assert answer(each) == BUSY
        assert served.room.num_bytes <= 100_000
        small.sendall(bytes(133))
        assert answer(small) == OK
        for each in others:
            each.close()
        small.close()
        until(lambda: not len(served.room))
        assert served.room.num_bytes == 0
        assert not served.room._bytes


def until(is_so):
    """Wait until something is so."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def num_held(others, large):
    """Return how many bytes the server counts once it has read what all sent."""
    sent_away, _, _ = select.select(others, [], [], 0)
    return len(HALF) + (len(others) - len(sent_away)) * len(large)


# ---------------------------------------------------------------- lines
def test_what_is_no_http_is_answered_and_nothing_is_logged():
    seen = []
    handler = logging.Handler()
    handler.emit = seen.append
    logger = logging.getLogger("uvicorn")
    with Served(ConnectionLimits(most=100, most_from_one=100)) as served:
        logger.addHandler(handler)
        try:
            for junk in (b"junk\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"\0" * 100_000):
                for _ in range(20):
                    try:
                        assert rest(served.connect(junk)).startswith(b"HTTP/1.1 400")
                    except ConnectionResetError:
                        assert len(junk) > 65_536  # closed while more came
            upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
            assert served.answer(upgrade) == OK
        finally:
            logger.removeHandler(handler)
    assert seen == []


def test_lines_of_a_second_have_a_budget_and_those_left_out_are_counted(capsys):
    watch = Watch("shuffler")
    handler = EventHandler(watch)
    assert "suppressed_lines_total 0" in watch.numbers()
    for second in (100.0, 101.5):
        for _ in range(1340):
            record = logging.makeLogRecord({"msg": "a mistake", "levelno": logging.ERROR})
            record.created = second
            handler.emit(record)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["reason"] for line in lines] == ["a mistake"] * 2 * MOST_LINES
    assert f"suppressed_lines_total {2 * (1340 - MOST_LINES)}" in watch.numbers()
