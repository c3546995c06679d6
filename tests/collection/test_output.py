"""Results appear complete, or not at all."""

import csv
import errno
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.collection import output
from shuffledp.collection.output import (
    MARKER_FILE,
    json_text,
    results_folder,
    write_results,
    writing,
)
from shuffledp.core import files
from shuffledp.core.errors import DomainError, OutputError

DOMAIN = ("yes", "no", 'no, "thanks"')


@pytest.fixture(scope="module")
def result():
    plan = sdp.plan(sdp.Categories(DOMAIN), num_users=300, epsilon=1.0, delta=1e-6)
    return sdp.run(plan, list(DOMAIN) * 100, seed=1)


def leftovers(folder):
    return sorted(entry.name for entry in folder.iterdir() if entry.name != MARKER_FILE)


def earlier_results(target):
    with results_folder(target) as folder:
        (folder / "estimates.csv").write_text("old")
        (folder / "deep").mkdir()
        (folder / "deep" / "report.html").write_text("old")
    return target


# ------------------------------------------------------------------ all or nothing


def test_the_folder_appears_at_the_end(tmp_path):
    target = tmp_path / "new" / "results"
    with results_folder(target) as folder:
        (folder / "estimates.csv").write_text("x")
        assert not target.exists()
    assert leftovers(target) == ["estimates.csv"]
    assert leftovers(target.parent) == ["results"]


def test_all_is_on_disk_before_the_block_ends(tmp_path, monkeypatch):
    """An analyzer then lets the shuffler forget: after a power cut nobody else has the reports."""
    synced = []
    monkeypatch.setattr(files, "sync_folder", lambda path: synced.append((path, path.exists())))
    with results_folder(tmp_path / "out") as folder:
        (folder / "rows").mkdir()
        (folder / "rows" / "a.csv").write_text("a\n")
    names = {"rows", "a.csv", MARKER_FILE, folder.name}
    assert {path.name for path, _ in synced[:-1]} == names
    assert all(is_there for _, is_there in synced)
    assert synced[-1][0] == tmp_path


def test_the_folder_has_the_usual_permissions(tmp_path):
    with results_folder(tmp_path / "results"):
        pass
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "results").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, DomainError, MemoryError])
def test_whatever_goes_wrong_leaves_nothing(tmp_path, error):
    with pytest.raises(error), results_folder(tmp_path / "results") as folder:
        (folder / "estimates.csv").write_text("half")
        raise error
    assert leftovers(tmp_path) == []


def test_a_signal_as_soon_as_the_folder_exists_leaves_nothing(tmp_path, monkeypatch):
    mkdir = Path.mkdir

    def interrupted(path, *arguments, **options):
        mkdir(path, *arguments, **options)
        if ".partial-" in path.name:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), results_folder(tmp_path / "results"):
        pass
    assert leftovers(tmp_path) == []


def test_an_empty_folder_may_be_used(tmp_path):
    with results_folder(tmp_path) as folder:
        (folder / "estimates.csv").write_text("x")
    assert leftovers(tmp_path) == ["estimates.csv"]


def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (".", tmp_path):
        with pytest.raises(OutputError, match="is the current folder"), results_folder(path):
            pass
    with results_folder("results"):
        pass
    assert leftovers(tmp_path) == ["results"]


def test_an_existing_folder_is_kept(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "estimates.csv").write_text("old")
    with (
        pytest.raises(OutputError, match=r"exists and is not empty: .* pass overwrite=True"),
        results_folder(tmp_path / "results"),
    ):
        pytest.fail("the folder must be refused before any work is done")
    assert (tmp_path / "results" / "estimates.csv").read_text() == "old"


def test_overwriting_replaces_results_only_at_the_end(tmp_path):
    target = tmp_path / "results"
    for text in ("old", "new"):
        with results_folder(target, overwrite=True) as folder:
            (folder / "estimates.csv").write_text(text)
            assert not target.exists() or (target / "estimates.csv").read_text() == "old"
    assert (target / "estimates.csv").read_text() == "new"
    assert leftovers(tmp_path) == ["results"]


def test_overwriting_fails_without_losing_the_old_results(tmp_path):
    target = earlier_results(tmp_path / "results")
    with pytest.raises(DomainError), results_folder(target, overwrite=True):
        raise DomainError("late")
    assert (target / "estimates.csv").read_text() == "old"
    assert leftovers(tmp_path) == ["results"]


def refused(target, match):
    """Overwriting is refused before any work is done, and everything is still there."""

    def state():  # without the time of last access, which looking changes
        return {each: [*(now := each.lstat())[:7], now.st_mtime_ns] for each in target.rglob("*")}

    before = state()
    with pytest.raises(OutputError, match=match), results_folder(target, overwrite=True):
        pytest.fail("the folder must be refused before any work is done")
    assert state() == before
    assert leftovers(target.parent) == [target.name]


@pytest.mark.parametrize("name", ["thesis.tex", "deep/thesis.tex", "deep/rows.csv"])
def test_overwriting_never_touches_foreign_files(tmp_path, name):
    target = earlier_results(tmp_path / "home")
    (target / name).write_text("years of work")
    refused(target, f"'{name}' is no result, or was changed")


@pytest.mark.parametrize("name", ["estimates.csv", "rows.csv", "report.html"])
def test_a_folder_without_a_marker_is_never_overwritten(tmp_path, name):
    """Files of a user may have the names of results."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_text("mine")
    refused(tmp_path / "own", "has no .shuffledp-results.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": []}', '{"files": {"a": 1}}', "[" * 100_000]
)
def test_a_marker_that_says_nothing_is_none(tmp_path, text):
    target = earlier_results(tmp_path / "own")
    (target / MARKER_FILE).write_text(text)
    refused(target, "is not overwritten")


def test_a_marker_removes_nothing_outside_its_folder(tmp_path):
    """A folder may come from anybody, and with it the list of its files."""
    target, victim = earlier_results(tmp_path / "results"), tmp_path / "thesis.tex"
    victim.write_text("years of work")
    listed = json.loads((target / MARKER_FILE).read_text())
    listed["files"] |= {"../thesis.tex": [0, 0], str(victim): [0, 0]}
    (target / MARKER_FILE).write_text(json.dumps(listed))
    with results_folder(target, overwrite=True) as folder:
        (folder / "estimates.csv").write_text("new")
    assert victim.read_text() == "years of work"
    assert leftovers(tmp_path) == ["results", "thesis.tex"]


def test_a_result_that_was_edited_is_kept(tmp_path):
    target = earlier_results(tmp_path / "results")
    (target / "deep" / "report.html").write_text("with my remarks")
    refused(target, "'deep/report.html' is no result, or was changed")


def test_a_link_among_results_is_kept(tmp_path):
    target = earlier_results(tmp_path / "results")
    (target / "data").symlink_to(tmp_path)
    refused(target, "'data' is no result")


@pytest.mark.parametrize("place", ["results/rows.csv", "results/deep/rows.csv", "link/rows.csv"])
def test_what_is_read_does_not_lie_below_the_results(tmp_path, place):
    target = earlier_results(tmp_path / "results")
    (tmp_path / "link").symlink_to(target)
    with (
        pytest.raises(OutputError, match="is read and lies below"),
        results_folder(target, overwrite=True, inputs=[tmp_path / place]),
    ):
        pytest.fail("it must be refused before any work is done")
    with results_folder(tmp_path / "new", inputs=[tmp_path / "rows.csv", tmp_path / "new.csv"]):
        pass


def test_a_file_that_appears_while_results_are_replaced_is_kept(tmp_path, monkeypatch):
    target = earlier_results(tmp_path / "results")
    remove = output._remove

    def late(folder, files):
        (folder / "late.txt").write_text("x")
        remove(folder, files)

    monkeypatch.setattr(output, "_remove", late)
    with results_folder(target, overwrite=True) as folder:
        (folder / "estimates.csv").write_text("new")
    assert leftovers(target) == ["estimates.csv"]
    assert [each.read_text() for each in tmp_path.rglob("late.txt")] == ["x"]


def test_a_file_or_a_link_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with (
            pytest.raises(OutputError, match="is no folder"),
            results_folder(tmp_path / name, overwrite=True),
        ):
            pytest.fail("it must be refused before any work is done")


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path):
    target = tmp_path / "results"
    with pytest.raises(OutputError, match="exists"), results_folder(target):
        target.mkdir()
        (target / "other.txt").write_text("x")
    assert leftovers(tmp_path) == ["results"]
    assert leftovers(target) == ["other.txt"]


def test_the_old_folder_comes_back_if_the_move_fails(tmp_path, monkeypatch):
    from pathlib import Path

    target = earlier_results(tmp_path / "results")
    rename = Path.rename

    def failing(self, new):
        if ".partial-" in self.name:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, new)

    monkeypatch.setattr(Path, "rename", failing)
    with (
        pytest.raises(OutputError, match="Input/output error"),
        results_folder(target, overwrite=True) as folder,
    ):
        (folder / "estimates.csv").write_text("new")
    assert (target / "estimates.csv").read_text() == "old"
    assert leftovers(tmp_path) == ["results"]


def test_a_parent_that_is_a_file_is_an_output_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot write"), results_folder(tmp_path / "file" / "r"):
        pytest.fail("it must be refused before any work is done")


def test_a_full_disk_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match=r"No space left.*free some space"), writing(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OutputError, match="No space left"), writing(tmp_path):
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device")


def test_the_error_names_what_was_asked_for_rather_than_a_file_inside(tmp_path):
    with pytest.raises(OutputError, match=r"cannot write .*results: No space left"):  # noqa: SIM117  # the order matters
        with writing(tmp_path / "results"), writing(tmp_path / "hidden"):
            raise OSError(errno.ENOSPC, "No space left on device")


def test_other_errors_of_polars_are_not_blamed_on_the_disk(tmp_path):
    with pytest.raises(pl.exceptions.ComputeError), writing(tmp_path):
        raise pl.exceptions.ComputeError("something else")


# ------------------------------------------------------------------ the files


def test_estimates_are_written_in_full_precision(result, tmp_path):
    write_results(result, tmp_path)
    with (tmp_path / "estimates.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == list(DOMAIN)
    for column in (
        "count",
        "frequency",
        "standard_error",
        "population_standard_error",
        "lower",
        "upper",
        "population_lower",
        "population_upper",
    ):
        written = [float(row[column]) for row in rows]
        assert written == result.estimates.columns()[column].tolist()


def test_privacy_json_holds_all_that_is_needed_to_judge(result, tmp_path):
    write_results(result, tmp_path, parameters={"table": "answers.csv"})
    record = json.loads((tmp_path / "privacy.json").read_text(encoding="utf-8"))
    assert {key: record[key] for key in result.to_json_dict()} == result.to_json_dict()
    assert record["target"] == {"epsilon": 1.0, "delta": 1e-6}
    assert record["domain"] == list(DOMAIN)
    assert record["parameters"] == {"table": "answers.csv"}
    assert record["shuffledp_version"] == sdp.__version__
    assert record["guarantee"]["assumptions"]
    assert record["is_simulation"] is True


def test_the_report_is_written(result, tmp_path):
    write_results(result, tmp_path)
    assert leftovers(tmp_path) == ["estimates.csv", "privacy.json", "report.html"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_has_no_infinities():
    text = json_text({"a": math.inf, "b": [-math.inf, (math.nan, 0.1)], "c": "ü"}, indent=1)
    assert json.loads(text) == {"a": None, "b": [None, [None, 0.1]], "c": "ü"}


def test_means_are_written_without_counts(tmp_path):
    plan = sdp.plan(sdp.Mean(0, 120, name="age"), num_users=300, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, np.linspace(0, 120, 300), seed=1)
    write_results(result, tmp_path)
    with (tmp_path / "estimates.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == [
            "value", "mean", "standard_error", "population_standard_error", "lower", "upper",
            "population_lower", "population_upper",
        ]  # fmt: skip
    assert (row["value"], float(row["mean"])) == ("age", result.estimates.mean[0])
    record = json.loads((tmp_path / "privacy.json").read_text(encoding="utf-8"))
    assert record["question"] == {"kind": "mean", "name": "age", "low": 0.0, "high": 120.0}
    assert record["domain"] == ["age"]
