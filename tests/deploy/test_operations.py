"""What an operator is told: events, numbers and health; and what a full disk and a backup do."""

import asyncio
import json
import logging
import resource
import shutil
import sys

import httpx
import pytest
from starlette.exceptions import HTTPException

from deploy.servers.test_key_files import sent
from deploy.steps import advance, take
from deploy.test_system import DAY, OVER, at
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import save_ledger
from shuffledp.cli.main import main
from shuffledp.composition.release import StatedRelease
from shuffledp.core.errors import BudgetError, DataError, OutputError
from shuffledp.deploy import shuffler_server as serving
from shuffledp.deploy.analyzer_server import AnalyzerWatch, open_analyzer, publish
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers.http_server import inner_app
from shuffledp.deploy.servers.settings import destroy_key
from shuffledp.deploy.servers.watch import FIELDS, EventHandler, Watch
from shuffledp.deploy.shuffler_server import (
    ShufflerWatch,
    destroy_finished,
    open_shuffler,
    shuffler_app,
)


# ---------------------------------------------------------------- events and numbers
def test_events_and_their_fields_are_closed_lists(capsys):
    log = Watch("shuffler")
    log.say("batch_sealed", batch=3, reports=500)
    log.say("store_failed", reason="no\nspace " + "x" * 1000)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {key: lines[0][key] for key in ("level", "role", "event", "batch", "reports")} == {
        "level": "info", "role": "shuffler", "event": "batch_sealed", "batch": 3, "reports": 500,
    }  # fmt: skip
    assert lines[1]["reason"].startswith("no space x")
    assert len(lines[1]["reason"]) == 300
    assert set().union(*lines) <= set(FIELDS)
    for event, fields in (("uploaded", {}), ("started", {"address": "192.0.2.1"})):
        with pytest.raises(ValueError, match="not listed"):
            log.say(event, **fields)
    assert "address" not in FIELDS
    assert "report_id" not in FIELDS


def test_what_the_http_library_logs_is_told_without_values(capsys):
    logger = logging.getLogger("a library")
    logger.handlers[:] = [EventHandler(Watch("shuffler"))]
    logger.propagate = False
    logger.info("from 192.0.2.1")
    logger.warning("no request of %s", "192.0.2.1")
    try:
        int("192.0.2.1")
    except ValueError:
        logger.exception("of %s", "192.0.2.1")
    said = capsys.readouterr().err
    assert "192.0.2.1" not in said
    warning, error = (json.loads(line) for line in said.splitlines())
    assert warning["reason"] == "no request of %s"
    assert error["event"] == "server_failed"
    assert error["reason"].startswith("ValueError at test_operations.py:")


def test_numbers_are_written_as_prometheus_reads_them():
    metrics = Watch("shuffler")
    metrics.set("reports_total", 7, "accepted")
    metrics.observe("commit_seconds", 0.5)
    metrics.observe("commit_seconds", 0.25)
    assert metrics.numbers() == (
        "# HELP shuffledp_shuffler_reports_total Reports by what became of them.\n"
        "# TYPE shuffledp_shuffler_reports_total counter\n"
        'shuffledp_shuffler_reports_total{outcome="accepted"} 7\n'
        "# HELP shuffledp_shuffler_commit_seconds Time to store what came together.\n"
        "# TYPE shuffledp_shuffler_commit_seconds summary\n"
        "shuffledp_shuffler_commit_seconds_count 2\n"
        "shuffledp_shuffler_commit_seconds_sum 0.75\n"
    )
    with pytest.raises(KeyError):
        metrics.set("reports_of_client", 1)
    with pytest.raises(KeyError):
        metrics.observe("seconds", 1)


async def asked(app, path):
    """Return status and text of an answer of an application."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        answer = await client.get(path)
        return answer.status_code, answer.text


def readiness(watch):
    """Return what the inner port says of being ready."""
    return asyncio.run(asked(inner_app(watch), "/readyz"))


def number_of(watch, name):
    """Return one number as it is served."""
    _, text = asyncio.run(asked(inner_app(watch), "/metrics"))
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(found[f"shuffledp_{name}"])


def test_requests_are_told_by_endpoint_status_and_time():
    watch = Watch("analyzer")

    async def fails(_):
        raise HTTPException(404, "there is none")

    endpoints = {
        ("GET", "/keys"): http.listed({"keys": b"k"}, "keys"),
        ("GET", "/results/{number:number}"): fails,
    }
    app = http.application(endpoints, watch=watch)
    for path in ("/keys", "/keys", "/results/1", "/elsewhere"):
        asyncio.run(asked(app, path))
    name = "analyzer_requests_total"
    assert number_of(watch, name + '{endpoint="GET /keys",status="200"}') == 2
    assert number_of(watch, name + '{endpoint="GET /results/{number:number}",status="404"}') == 1
    assert number_of(watch, 'analyzer_request_seconds_count{endpoint="GET /keys"}') == 2
    assert number_of(watch, 'analyzer_request_seconds_sum{endpoint="GET /keys"}') > 0


def test_a_report_that_is_sent_again_is_counted_once(make):
    task, settings, _ = make()
    with open_shuffler(settings) as shuffler:
        body = sent(task, settings, epoch=0, numbers=(1, 2))
        for _ in range(2):
            assert take(shuffler, body, at(0)) == [Answer.ACCEPTED, Answer.ACCEPTED]
        assert shuffler.counts() == {"accepted": 2, "repeated": 2}


def test_a_shuffler_says_how_it_is(make, capsys):
    task, settings, _ = make()
    with open_shuffler(settings) as shuffler:
        follower = watch = ShufflerWatch(shuffler, settings.sealing_keys)
        for epoch, numbers in ((0, (1, 2)), (1, (3,))):
            take(shuffler, sent(task, settings, epoch=epoch, numbers=numbers), at(epoch))
            for state in advance(shuffler, at(epoch, OVER)):
                follower.released(state)
            follower.tick(at(epoch, OVER))
            if epoch == 0:
                assert number_of(watch, "shuffler_short_epochs") == 1
                assert number_of(watch, "shuffler_waiting_reports") == 2
                assert number_of(watch, 'shuffler_batches{state="short"}') == 1
        follower.tick(at(3))
        for name, expected in (
            ("shuffler_waiting_reports", 0),
            ("shuffler_short_epochs", 0),
            ("shuffler_least_batch_reports", 3),
            ('shuffler_batches{state="sealed"}', 1),
            ("shuffler_sealed_age_seconds", 2 * DAY - OVER),
            ("shuffler_oldest_key_age_seconds", DAY),  # that of epoch 2
            ("shuffler_keys_left_seconds", 27 * DAY),
            ("shuffler_task_left_seconds", 27 * DAY),
            ("shuffler_key_present", 1),
        ):
            assert number_of(watch, name) == expected, name
        assert readiness(watch) == (200, "ok\n")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        "batch_short", "key_destroyed", "batch_sealed", "key_destroyed",
    ]  # fmt: skip
    destroy_key(settings.sealing_keys, 3)
    with open_shuffler(settings) as shuffler:
        follower = watch = ShufflerWatch(shuffler, settings.sealing_keys)
        follower.tick(at(3))
        assert readiness(watch) == (503, "there is no key for epoch 3: rotate keys\n")
        assert number_of(watch, "shuffler_key_present") == 0
        follower.tick(at(4))
        assert readiness(watch)[0] == 200


def test_an_analyzer_says_how_it_is(tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=3.0, delta=0.0).spend(StatedRelease(epsilon=1.0)), ledger)
    follower = watch = AnalyzerWatch(ledger, lambda: 77.0)
    assert readiness(watch)[0] == 503
    follower.shuffler_answered()
    follower.published(4, 900)
    follower.refused(5, DataError("no"))
    follower.refused(6, BudgetError("spent"))
    follower.tick(1)
    for name, expected in (
        ("budget_epsilon", 3),
        ("budget_left_epsilon", 2),
        ("newest_batch_reports", 900),
        ("shuffler_answers", 1),
        ("shuffler_answered_timestamp_seconds", 77),
        ('batches{state="published"}', 1),
        ('batches{state="refused"}', 2),
    ):
        assert number_of(watch, f"analyzer_{name}") == pytest.approx(expected), name
    assert readiness(watch)[0] == 200
    for _ in range(2):
        follower.shuffler_away("no answer")
    assert readiness(watch) == (503, "no answer\n")
    follower.shuffler_answered()
    ledger.write_text("{")
    follower.tick(1)
    assert "no ledger" in readiness(watch)[1]
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == [
        "published", "batch_refused", "budget_refused", "shuffler_away", "shuffler_back",
    ]  # fmt: skip


# ---------------------------------------------------------------- a full disk
def test_a_full_disk_loses_nothing_acknowledged_and_the_server_recovers(make, capsys, monkeypatch):
    """No file may grow: uploads are answered by 503 until it may, and then all goes on."""
    # Python 3.11 keeps a part of a compiled module as if it were whole: write none.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    task, settings, _ = make()
    clock = [at(0)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    uploads = [sent(task, settings, epoch=0, numbers=range(at, at + 5)) for at in range(0, 200, 5)]

    async def scenario(shuffler):
        watch = ShufflerWatch(shuffler)
        app = shuffler_app(
            shuffler,
            lists={"keys": b"", "analyzer_keys": b""},
            analyzer_key=bytes(32),
            watch=watch,
            now=lambda: clock[0],
            tick_seconds=0.01,
        )
        path = f"/tasks/{task.task_id.hex()}/reports"
        transport = httpx.ASGITransport(app)

        async def ready():
            return (await asked(inner_app(watch), "/readyz"))[0]

        async def until(status):
            while await ready() != status:
                await asyncio.sleep(0.01)

        async with (
            app.app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://server") as client,
        ):

            async def post(body):
                answer = await client.post(path, content=body)
                return answer.status_code, answer.content

            acknowledged = bytes([Answer.ACCEPTED] * 5)
            assert await post(uploads[0]) == (200, acknowledged)
            size = max(path.stat().st_size for path in settings.store.iterdir())
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, limits[1]))
            try:
                first = [await post(body) for body in uploads]
                assert await ready() == 503
                clock[0] = at(0, OVER)  # nor can a batch be written: it is, later
                await asyncio.sleep(0.1)
                clock[0] = at(0)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert {status for status, _ in first} == {200, 503}
            await until(200)
            again = [await post(body) for body in uploads]
            clock[0] = at(0, OVER)
            while not shuffler.sealed_after(0):
                await asyncio.sleep(0.01)
            return first, again

    with open_shuffler(settings) as shuffler:
        first, again = asyncio.run(asyncio.wait_for(scenario(shuffler), 120))
        was_told = {each for each, (status, _) in enumerate(first) if status == 200}
        assert was_told <= {each for each, (_, said) in enumerate(again) if said == bytes(5)}
        (number,) = shuffler.sealed_after(0)
        size = shuffler.batch(number).size
        assert size == sum(said == bytes(5) for _, said in again) * 5
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events[0] == "store_failed"
    assert "store_works" in events


def test_a_batch_that_cannot_be_written_is_opened_once_and_written_when_it_can(make, monkeypatch):
    task, settings, _ = make()
    opened, failed, real_open = [], [], serving.opened_in

    async def opening(executor, pages):
        opened.append(True)
        return await real_open(executor, pages)

    async def scenario(shuffler):
        watch = ShufflerWatch(shuffler)
        release = serving._release_batches(shuffler, watch, lambda: at(0, OVER), 0.001)
        running = asyncio.ensure_future(release)
        while not shuffler.sealed_after(0):
            await asyncio.sleep(0.01)
        running.cancel()

    monkeypatch.setattr(serving, "opened_in", opening)
    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2, 3)), at(0))
        real_write = shuffler._batches.write

        def write(number, data):
            if len(failed) < 3:
                failed.append(number)
                raise OutputError("no space left")
            real_write(number, data)

        monkeypatch.setattr(shuffler._batches, "write", write)
        asyncio.run(asyncio.wait_for(scenario(shuffler), 120))
        assert shuffler.batch(1).size == 3
    assert (failed, opened) == ([1, 1, 1], [True])


# ---------------------------------------------------------------- a backup
def test_a_backup_is_verified_and_everything_is_counted_once(make, tmp_path, capsys):
    """Back up, go on, lose the store, put it back, go on: no report is in two results."""
    task, settings, analyzer_settings = make()
    config, store = tmp_path / "task" / "shuffler.toml", settings.store

    def verified():
        status = main(["restore", "--verify", "--config", str(config)])
        said = capsys.readouterr()
        return status, said.out + said.err

    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2, 3)), at(0))
        advance(shuffler, at(0, OVER))
        later = sent(task, settings, epoch=1, numbers=(4, 5, 6))
        take(shuffler, later, at(1))
    shutil.copytree(store, tmp_path / "backup")
    with open_shuffler(settings) as shuffler, open_analyzer(analyzer_settings) as analyzer:
        publish(analyzer, shuffler.fetch(1), analyzer_settings.store / "results" / "1")
        shuffler.forget(1)
        shutil.rmtree(store)
    shutil.copytree(tmp_path / "backup", store)
    status, said = verified()
    assert (status, said) == (
        0,
        f"{config}: batches: 1, to be fetched: 1, reports that wait: 3, of epochs: 1; faults: 0\n",
    )
    with open_shuffler(settings) as shuffler, open_analyzer(analyzer_settings) as analyzer:
        take(shuffler, later + sent(task, settings, epoch=1, numbers=(7,)), at(1))
        advance(shuffler, at(1, OVER))
        assert shuffler.sealed_after(0) == [1, 2]
        assert analyzer.take(shuffler.fetch(1)).reports.num_reports == 3  # the same, once more
        assert analyzer.take(shuffler.fetch(2)).reports.num_reports == 4
        assert len(analyzer.taken()) == 2
        shuffler.forget(2)
        assert list(destroy_finished(shuffler, settings.sealing_keys)) == [0, 1]
    # The same backup once more: by now the keys are gone, and what waits is noise.
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "backup", store)
    (store / "batch-000001.sdp").write_bytes(b"")
    status, said = verified()
    assert status == 2
    assert "error: epoch 1: its reports are not released and its key is gone" in said
    assert "error: batch 1:" in said
    assert "; faults: 2\n" in said
    with open_shuffler(settings) as shuffler:  # it goes on, and gives no number to other records
        take(shuffler, sent(task, settings, epoch=2, numbers=(8, 9, 10)), at(2))
        advance(shuffler, at(2, OVER))
        assert shuffler.sealed_after(1) == [3]
        assert shuffler.batch(3).size == 3


def test_results_and_the_ledger_are_compared_with_the_analyzers_store(make, tmp_path, capsys):
    task, settings, analyzer_settings = make()
    config = tmp_path / "task" / "analyzer.toml"
    ledger = tmp_path / "task" / "ledger.json"
    with config.open("a") as file:
        file.write('ledger = "ledger.json"\n')
    analyzer_settings = type(analyzer_settings).read(config)
    save_ledger(Ledger(epsilon=20.0, delta=1e-6), ledger)
    results = analyzer_settings.store / "results"
    results.mkdir()

    def verified():
        status = main(["restore", "--verify", "--config", str(config)])
        return status, capsys.readouterr().err.splitlines()

    with open_shuffler(settings) as shuffler, open_analyzer(analyzer_settings) as analyzer:
        for epoch in range(2):
            numbers = range(4 * epoch, 4 * epoch + 4)
            take(shuffler, sent(task, settings, epoch=epoch, numbers=numbers), at(epoch))
            advance(shuffler, at(epoch, OVER))
            if epoch == 1:
                shutil.copytree(analyzer_settings.store, tmp_path / "backup")
                shutil.copy(ledger, tmp_path / "ledger.json")
            number = epoch + 1
            publish(analyzer, shuffler.fetch(number), results / str(number))
    assert verified() == (0, [])
    (results / "1" / "report.html").unlink()
    (results / "2" / "privacy.json").write_text("[]")
    status, (first, second) = verified()
    assert status == 2
    assert "batch 1: its result lacks report.html" in first
    assert "batch 2: its result is of other records" in second
    newer = ledger.read_bytes()
    shutil.copy(tmp_path / "ledger.json", ledger)
    assert "batch 2: the ledger has no entry" in verified()[1][-1]
    ledger.write_text("{")
    assert "no ledger" in verified()[1][-1]
    ledger.write_bytes(newer)
    shutil.rmtree(analyzer_settings.store)
    shutil.copytree(tmp_path / "backup", analyzer_settings.store)
    status, (only,) = verified()
    assert status == 2
    assert "batch 2: the ledger has spent it and the store does not know it" in only


def test_restore_does_nothing_but_verify(capsys):
    assert main(["restore", "--config", "shuffler.toml"]) == 2
    assert "--verify" in capsys.readouterr().err
