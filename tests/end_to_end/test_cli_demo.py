"""``shuffledp demo`` runs the main job on two surveys and tells how near it came."""

import contextlib
import io
import json
import sys

import pytest

from shuffledp.cli.main import main


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    there, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.chdir(there), contextlib.redirect_stdout(out):
        assert main(["demo", "--out", "demo-results", "--seed", "1"]) == 0
    return there / "demo-results", out.getvalue()


def test_estimates_stand_beside_the_truth(demo):
    _, out = demo
    assert "Have you had an extramarital affair?" in out
    assert "32.2%" in out
    assert out.count("95% interval") == 2
    assert "strong Republican" in out


def test_the_statement_and_the_path_of_the_report_are_printed(demo):
    folder, out = demo
    for name in ("fair", "anes96"):
        assert f"demo-results/{name}/report.html" in out
        assert (folder / name / "report.html").is_file()
    assert out.count("An adversary who sees all") == 2
    assert out.count("proved upper bound") == 2


def test_each_survey_meets_the_target(demo):
    folder, _ = demo
    for name, num_users in (("fair", 6366), ("anes96", 944)):
        record = json.loads((folder / name / "privacy.json").read_text())
        assert record["num_users"] == num_users
        assert record["guarantee"]["epsilon"]["upper"] <= 1.0
        assert record["guarantee"]["delta"] == 1e-6
        assert record["warnings"] == []


def test_estimates_are_useful(demo):
    folder, _ = demo
    for name in ("fair", "anes96"):
        record = json.loads((folder / name / "privacy.json").read_text())
        assert all(row["standard_error"] < 0.03 for row in record["estimates"])


def test_an_earlier_demo_is_replaced_on_request_only(demo, monkeypatch, capsys):
    monkeypatch.chdir(demo[0].parent)
    assert main(["demo", "--out", "demo-results"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["demo", "--out", "demo-results", "--overwrite"]) == 0


def test_without_statsmodels_nothing_is_left(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    assert main(["demo"]) == 2
    assert "pip install 'shuffledp[datasets]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
