"""`shuffledp aggregate` says of batches in files what the analyzer says of those it fetches."""

import json
import shutil

import pytest

from deploy.roles import OVER, at, sent
from deploy.steps import advance, take
from engines.conftest import start_spark  # noqa: F401  # a fixture
from golden.schemas import check
from shuffledp.cli.main import main
from shuffledp.deploy.analyzer_server import open_analyzer, publish
from shuffledp.deploy.remote import FILES
from shuffledp.deploy.shuffler_server import open_shuffler


def collected(make, tmp_path):
    """Write two batches to files, and publish what the analyzer says of them; return its folder."""
    task, settings, analyzer_settings = make()
    shutil.copytree(tmp_path / "task", tmp_path / "again")
    batches = tmp_path / "batches"
    batches.mkdir()
    fetched = {}
    with open_shuffler(settings) as shuffler:
        for epoch in range(2):
            numbers = range(4 * epoch, 4 * epoch + 4)
            take(shuffler, sent(task, settings, epoch=epoch, numbers=numbers), at(epoch))
            advance(shuffler, at(epoch, OVER))
            fetched[epoch + 1] = shuffler.fetch(epoch + 1)
    for number, data in fetched.items():
        (batches / f"batch-{number:06d}.sdp").write_bytes(data)
    results = analyzer_settings.store / "results"
    results.mkdir()
    with open_analyzer(analyzer_settings) as analyzer:
        for number, data in fetched.items():
            publish(analyzer, data, results / str(number))
    return results


def check_aggregate(tmp_path, capsys, results, *more):
    """Aggregate the batches' files, and compare the results to the byte."""
    config = str(tmp_path / "again" / "analyzer.toml")
    assert main(["aggregate", str(tmp_path / "batches"), "--config", config, *more, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    check(record)
    found = record["batches"]
    assert [each["batch"] for each in found] == [1, 2]
    assert [each["num_users"] for each in found] == [4, 4]
    for each in found:
        for name in FILES:
            wanted = (results / str(each["batch"]) / name).read_bytes()
            assert (tmp_path / each["results"] / name).read_bytes() == wanted


def test_batches_in_files_have_the_analyzers_results_to_the_byte(make, tmp_path, capsys):
    results = collected(make, tmp_path)
    for more in ([], ["--processes", "2"]):  # the second time it changes nothing
        check_aggregate(tmp_path, capsys, results, *more)
    config = str(tmp_path / "again" / "analyzer.toml")
    assert main(["aggregate", str(tmp_path / "batches"), "--config", config]) == 0
    assert "batch 1  4 reports" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # pyspark's own, of its sockets
def test_sealed_batches_are_opened_on_spark(make, start_spark, tmp_path, capsys):  # noqa: F811  # the fixture
    results = collected(make, tmp_path)
    start_spark("local[2]", tmp_path)
    check_aggregate(tmp_path, capsys, results, "--engine", "spark")


def test_what_is_no_batch_and_a_folder_of_none_are_refused(make, tmp_path, capsys):
    make()
    config = str(tmp_path / "task" / "analyzer.toml")
    (tmp_path / "batch-000001.sdp").write_bytes(b"sdpB")
    assert main(["aggregate", str(tmp_path / "batch-000001.sdp"), "--config", config]) == 2
    assert "batch" in capsys.readouterr().err
    (tmp_path / "none").mkdir()
    assert main(["aggregate", str(tmp_path / "none"), "--config", config]) == 2
    assert "batch-*.sdp" in capsys.readouterr().err
