"""``shuffledp learnability`` on a small survey."""

import json

import pytest

from shuffledp.cli.attack import learnability
from shuffledp.core.errors import OutOfRegimeError


@pytest.fixture
def survey(tmp_path):
    """Ages 0 to 39, ten people each; those of 20 and more say yes."""
    rows = [f"{age},{'yes' if age >= 20 else 'no'}" for age in range(40) for _ in range(10)]
    path = tmp_path / "survey.csv"
    path.write_text("\n".join(["age,answer", *rows]) + "\n", encoding="utf-8")
    return path


def run(survey, *arguments):
    learnability.main(
        [
            str(survey), "--column", "answer", "--groups-by", "age", "--radius", "2",
            "--alpha", "4", "--epsilon0", "2", "--trials", "2", *arguments,
        ],
        standalone_mode=False,
    )  # fmt: skip


@pytest.mark.slow
def test_raw_reports_teach_more_than_a_uniform_shuffle(survey, capsys):
    run(survey, "--json")
    results = json.loads(capsys.readouterr().out)["results"]
    found = {(result["measure"], result["arrangement"]): result["mean"] for result in results}
    assert len(results) == 6
    assert found["lambda", "raw"] < found["lambda", "within groups"] + 0.1
    assert found["lambda", "within groups"] < found["lambda", "uniform"]
    assert found["lambda, noise inverted", "raw"] < 0.5


@pytest.mark.slow
def test_people_read_tables(survey, capsys):
    run(survey, "--attack-radius", "0")
    shown = capsys.readouterr().out
    assert "learnability: lambda\n" in shown
    assert "learnability: lambda, noise inverted\n" in shown
    assert "people    400" in shown


def test_nothing_to_learn(tmp_path):
    path = tmp_path / "even.csv"
    path.write_text("age,answer\n" + "1,yes\n1,no\n" * 20, encoding="utf-8")
    with pytest.raises(OutOfRegimeError, match="uniform around everybody"):
        run(path)
