"""A kind of question of one's own: one class, one line of the table, one entry of words."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collection.questions import KINDS
from shuffledp.collection.questions.categories import answers
from shuffledp.collection.questions.question import Question, Shares, candidates_of
from shuffledp.randomizers import RANDOMIZERS
from shuffledp.report.explain import read_record
from shuffledp.report.wording import WORDS

GIVEN = [1, 5, 5, 4, 3, 5] * 200
SOURCES = Path(sdp.__file__).parent


@dataclass(frozen=True, slots=True)
class Stars(Shares):
    """Each user gives from 1 up to ``most`` stars; the share of each number is asked for."""

    kind: ClassVar[str] = "stars"
    stated: ClassVar[tuple[str, ...]] = ("most",)
    checked_by: ClassVar[tuple[str, ...]] = ("most",)
    reads: ClassVar[tuple[str, ...]] = ("missing",)
    has_one_label: ClassVar[bool] = True
    no_values: ClassVar[np.ndarray] = np.empty(0, dtype=np.int64)
    central_sensitivity: ClassVar[float] = 2.0
    expected_for: ClassVar[str] = "root mean square over the numbers of stars"

    most: int

    @property
    def labels(self):
        return tuple(map(str, range(1, self.most + 1)))

    def candidates(self):
        return candidates_of(RANDOMIZERS, domain_size=self.most)

    def read(self, source):
        return replace(answers(source, self.labels), question=self)

    def value_of_one(self, answer):
        return np.array([self.labels.index(str(answer))], dtype=np.int32)

    def describe(self):
        return f"up to {self.most} stars"


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    monkeypatch.setitem(KINDS, "stars", f"{__name__}:Stars")
    words = replace(WORDS["frequencies"], label="Stars", choices="Possible numbers of stars")
    monkeypatch.setitem(WORDS, "stars", words)


@pytest.fixture
def plan():
    return sdp.plan(Stars(5), num_users=len(GIVEN), epsilon=2.0, delta=1e-6)


def test_it_has_what_the_protocol_names(plan):
    # Of type checkers' `Question`: each method and property that planning and running may use.
    names = {name for name in vars(Question) if not name.startswith("_")}
    names |= set(Question.__annotations__)
    assert {name for name in names if not hasattr(Stars(5), name)} == set()


def test_a_plan_chooses_saves_and_loads(plan, tmp_path):
    assert plan.guarantee.epsilon_upper <= 2.0
    assert plan.without_shuffler.num_values == 5
    loaded = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (loaded.question, loaded.randomizer) == (Stars(5), plan.randomizer)


def test_a_run_estimates_and_reports(plan, tmp_path):
    result = sdp.run(plan, GIVEN, seed=1)
    truth = np.array([1, 0, 1, 1, 3]) / 6
    assert np.all(np.abs(result.estimates.frequency - truth) < 6 * result.estimates.standard_error)
    assert result.to_json_dict()["question"] == {"kind": "stars", "most": 5}
    assert [account.adversary for account in sdp.collection.leakage_of(result).accounts] == [
        "uninformed",
        "strong",
    ]
    assert ">Stars<" in result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Stars" in str(result)


def test_reports_go_through_a_file(plan, tmp_path):
    path = tmp_path / "reports.parquet"
    codes = next(plan.question.column(GIVEN).blocks())
    reports = plan.randomizer.randomize(codes, sdp.Entropy.from_seed(1))
    sdp.collection.write_reports(path, [reports], plan.randomizer, labels=plan.question.labels)
    assert sdp.estimate(path, plan).num_users == len(GIVEN)


def test_a_device_answers_it():
    asked = sdp.deploy.AskedTerms.of(Stars(5), "k-rr", 2.0, "How good was it?")
    assert sdp.deploy.AskedTerms.from_json_dict(json.loads(asked.to_json())) == asked
    assert ("choices", '"1", "2", "3", "4", "5"; most = 5') in asked.facts()
    assert asked.question.value_of_one("4").tolist() == [3]


def test_the_command_line_runs_its_plan(plan, tmp_path):
    table, saved, out = (tmp_path / name for name in ("stars.csv", "plan.json", "results"))
    table.write_text("stars\n" + "".join(f"{each}\n" for each in GIVEN), encoding="utf-8")
    plan.save(saved)
    words = ["run", str(table), "--column", "stars", "--plan", str(saved), "--out", str(out)]
    outcome = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    record = read_record(out, collected_by="table")
    assert record["question"] == {"kind": "stars", "most": 5}
    outcome = CliRunner().invoke(cli, ["explain", str(out), "--as", "notice"])
    assert "Possible numbers of stars: 1, 2, 3, 4, 5." in outcome.output


def test_no_other_module_tells_kinds_apart():
    # The words of a report, and the controls of a survey's page.
    listed = {SOURCES / "report/wording.py", SOURCES / "deploy/web/survey.py"}
    listed |= set((SOURCES / "collection/questions").iterdir())
    words_of_english = {"stars", "mean", "words", "columns"}
    own = [f'"{kind}"' for kind in KINDS if kind not in words_of_english]
    found = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path not in listed
        if any(name in path.read_text(encoding="utf-8") for name in own)
    ]
    assert found == []
