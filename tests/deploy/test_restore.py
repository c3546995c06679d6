"""Backups are verified, and what they hold is counted once."""

import shutil

from deploy.roles import OVER, at, sent
from deploy.steps import advance, take
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import save_ledger
from shuffledp.cli.main import main
from shuffledp.deploy.analyzer_server import open_analyzer, publish
from shuffledp.deploy.shuffler_server import (
    destroy_finished,
    open_shuffler,
    verify,
)


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
    shutil.rmtree(store)
    shutil.copytree(analyzer_settings.store, store)  # another role's
    status, said = verified()
    assert status == 2
    assert "holds no store of the shuffler: put its backup back there" in said
    assert not (store / "shuffler.db").exists()
    # The same backup once more: by now the keys are gone, and what waits is noise.
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "backup", store)
    (store / "batch-000001.sdp").write_bytes(b"")
    status, said = verified()
    assert status == 2
    assert "error: epoch 1: its reports are not released and its key is gone" in said
    assert "error: batch 1:" in said
    assert "error: batch 2: it was handed out, and the store is older" in said
    assert "; faults: 3\n" in said
    with open_shuffler(settings) as shuffler:  # it goes on, and gives no number to other records
        take(shuffler, sent(task, settings, epoch=2, numbers=(8, 9, 10)), at(2))
        advance(shuffler, at(2, OVER))
        assert shuffler.sealed_after(1) == [3]
        assert shuffler.batch(3).size == 3


def test_held_reports_of_a_backup_are_in_no_second_batch(make, tmp_path):
    """Otherwise the reports of both batches, fewer than the least, hide among each other alone."""
    task, settings, _ = make()
    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1,)), at(0))
        assert advance(shuffler, at(0, OVER))[0].state == "short"
    shutil.copytree(settings.store, tmp_path / "backup")
    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=1, numbers=(2, 3, 4)), at(1))
        assert advance(shuffler, at(1, OVER))[0].size == 4
        shuffler.fetch(2)
    shutil.rmtree(settings.store)
    shutil.copytree(tmp_path / "backup", settings.store)
    assert "batch 2: it was handed out" in verify(settings)[1][0]
    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=2, numbers=(5, 6, 7)), at(2))
        assert advance(shuffler, at(2, OVER))[0].size == 3
        assert shuffler.counts()["dropped"] == 1


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
    (analyzer_settings.store / "results" / "2").mkdir()
    (analyzer_settings.store / "results" / "1.old").mkdir()
    assert "batch 2: it has a result and the store does not know it" in verified()[1][0]


def test_restore_does_nothing_but_verify(capsys):
    assert main(["restore", "--config", "shuffler.toml"]) == 2
    assert "--verify" in capsys.readouterr().err
