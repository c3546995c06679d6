"""An analyzer as a server: what it says of itself."""

import asyncio
import json
from dataclasses import replace

import pytest

from deploy.roles import TASK, analyzer_for, batch_of, record
from deploy.watching import number_of, readiness
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import save_ledger
from shuffledp.cli.main import main
from shuffledp.composition.release import StatedRelease
from shuffledp.core.errors import BudgetError, DataError, OutputError
from shuffledp.deploy import analyzer_server as serving
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.analyzer_server import AnalyzerWatch, analyzer_service
from shuffledp.deploy.servers import http_server


def test_an_analyzer_says_how_it_is(tmp_path, capsys, monkeypatch):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=3.0, delta=0.0).spend(StatedRelease(epsilon=1.0)), ledger)
    follower = watch = AnalyzerWatch(ledger)
    assert readiness(watch)[0] == 503
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: 77.0)
        follower.shuffler_asked()
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
        follower.shuffler_asked("no answer")
    assert readiness(watch) == (503, "no answer\n")
    follower.shuffler_asked()
    ledger.write_text("{")
    follower.tick(1)
    assert "no ledger" in readiness(watch)[1]
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == [
        "published", "batch_refused", "budget_refused", "shuffler_away", "shuffler_back",
    ]  # fmt: skip


def test_refused_batches_are_tried_again_when_settings_are_read_again(make, monkeypatch):
    settings, works = make()[2], []
    monkeypatch.setattr(http_server, "application", lambda _, work, **__: works.extend(work))
    monkeypatch.setattr(http_server, "on_hangup", lambda reload, watch: (reload, watch))
    with analyzer_service(lambda: settings):
        reload, watch = works[-1]()
        watch.refused(5, BudgetError("spent"))
        reload()()
        assert watch.refusals == {}


def test_a_store_that_is_back_is_no_problem_any_more_without_a_new_batch(make, monkeypatch):
    settings, told = replace(make()[2], poll_seconds=0.001), []
    monkeypatch.setattr(
        http_server, "application", lambda *given, **more: told.append((given, more))
    )
    monkeypatch.setattr(serving, "_take", lambda *_: asyncio.sleep(0))
    with analyzer_service(lambda: settings), monkeypatch.context() as patch:
        (_, (work, *_)), watch = told[0][0], told[0][1]["watch"]
        watch.shuffler_asked()
        reasons = []

        def note_time(*_):
            reasons.append(watch.reason())
            if len(reasons) < 3:
                raise OutputError("the database does not answer")
            if len(reasons) > 3:
                raise LookupError

        patch.setattr(Analyzer, "note_time", note_time)
        with pytest.raises(LookupError):
            asyncio.run(work())
    assert reasons == ["", *["the database does not answer"] * 2, ""]


def test_a_check_reads_all_that_the_server_reads(make, tmp_path, capsys):
    _, _, settings = make()
    command = ["serve", "analyzer", "--check", "--config", str(tmp_path / "task" / "analyzer.toml")]
    assert main(command) == 0
    settings.identity_key.unlink()
    assert main(command) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_batch_that_the_shuffler_lost_does_not_hold_up_later_ones(tmp_path):
    left = [1, 2]

    class Shuffler:
        def sealed(self):
            return list(left)

        def batch(self, number):
            if number == 1:
                raise OutputError("its file is gone")
            return batch_of(TASK, [record(b"\0") for _ in range(3)], number=number)

        def forget(self, number):
            left.remove(number)

    with analyzer_for(TASK, tmp_path) as analyzer:
        with pytest.raises(OutputError, match="its file is gone"):
            asyncio.run(serving._take(analyzer, Shuffler(), tmp_path, AnalyzerWatch()))
        assert (analyzer.taken().keys(), left) == ({2}, [1])
