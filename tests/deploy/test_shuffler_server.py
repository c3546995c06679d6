"""A shuffler as a server: what it says of itself, and what a full disk does."""

import asyncio
import json
import resource
import sys
import threading
from dataclasses import replace

import httpx

from deploy.roles import DAY, OVER, at, sent
from deploy.steps import advance, take
from deploy.watching import asked, number_of, readiness
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import save_ledger
from shuffledp.core.errors import OutputError
from shuffledp.deploy import shuffler_server as serving
from shuffledp.deploy.messages import Answer, decode_upload
from shuffledp.deploy.servers.http_server import inner_app
from shuffledp.deploy.servers.settings import destroy_key
from shuffledp.deploy.shuffler_server import (
    ShufflerWatch,
    open_shuffler,
    shuffler_app,
)


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
            app.router.lifespan_context(app),
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


def test_uploads_do_not_wait_while_a_fetched_batch_is_deleted(make, monkeypatch):
    task, settings, _ = make()
    begun, is_over = threading.Event(), threading.Event()

    async def scenario(shuffler):
        watch = ShufflerWatch(shuffler)
        release = serving._release_batches(shuffler, watch, lambda: at(1), 0.001)
        running = asyncio.ensure_future(release)
        while not begun.is_set():  # a bucket that does not answer for minutes
            await asyncio.sleep(0.01)
        intake = serving.Intake(shuffler, lambda: at(1), watch)
        storing = asyncio.ensure_future(intake.run())
        reports = decode_upload(sent(task, settings, epoch=1, numbers=(4,)), task)
        assert await intake.take(reports) == [Answer.ACCEPTED]
        assert shuffler.to_delete() == [1]
        is_over.set()
        while shuffler.to_delete():
            await asyncio.sleep(0.01)
        running.cancel(), storing.cancel()

    def delete(number):
        begun.set()
        assert is_over.wait(60)

    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2, 3)), at(0))
        advance(shuffler, at(0, OVER))
        shuffler.forget(1)
        monkeypatch.setattr(shuffler, "delete", delete)
        asyncio.run(asyncio.wait_for(scenario(shuffler), 120))


def test_a_batch_waits_for_a_ledger_that_is_gone_and_uploads_do_not(make, tmp_path, capsys):
    task, settings, _ = make()
    settings = replace(settings, ledger=tmp_path / "ledger.json")

    async def scenario(shuffler):
        watch = ShufflerWatch(shuffler)
        release = serving._release_batches(shuffler, watch, lambda: at(0, OVER), 0.001)
        running = asyncio.ensure_future(release)
        while not watch.problems:
            await asyncio.sleep(0.01)
        watch.stored(0.0, 0)  # an upload does not hide it
        assert "there is no such file" in watch.reason()
        save_ledger(Ledger(epsilon=9.0, delta=1e-6), settings.ledger)
        while watch.problems:
            await asyncio.sleep(0.01)
        running.cancel()

    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2, 3)), at(0))
        asyncio.run(asyncio.wait_for(scenario(shuffler), 120))
        assert shuffler.batch(1).size == 3
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["batch_closed", "store_failed", "batch_sealed", "store_works"]
