"""Every page says who held true answers, as ``privacy.json`` records it."""

import json

import numpy as np
import pytest
import yaml
from scipy.stats import laplace

import shuffledp as sdp
from report.pages import Page
from shuffledp.cli.main import main
from shuffledp.collection.output import write_results
from shuffledp.collection.result import COLLECTED_BY
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.report import page_html, privacy_statement, terminal_text
from shuffledp.report.explain import FORMS, read_record
from shuffledp.report.wording import trust_facts

OWN_DEVICE = ("randomized their own value", "own devices", "leaves your device", "each user alone")


def everything_said(result, folder):
    """Return every page and form about a result, by name; forms of simulations are refused."""
    write_results(result, folder)
    said = {
        "page": Page(page_html(result)).text,
        "statement": " ".join(text for _, text in privacy_statement(result).paragraphs),
        "terminal": terminal_text(result),
    }
    if not result.is_simulation:
        record = read_record(folder)
        said |= {name: form(record) for name, form in FORMS.items()}
    return said


@pytest.mark.parametrize("collected_by", COLLECTED_BY)
def test_no_page_claims_devices_where_there_were_none(collected_by, make_result, tmp_path):
    said = everything_said(make_result(collected_by=collected_by), tmp_path)
    for name, text in said.items():
        claims = [words for words in OWN_DEVICE if words in text]
        assert bool(claims) == (collected_by == "devices"), name
        if collected_by == "table":
            assert "trusted" in text, name
    record = json.loads((tmp_path / "privacy.json").read_text())
    assert record["collected_by"] == collected_by
    assert ("central_model" in record) == (collected_by == "table")


def test_a_table_is_central_in_the_forms(make_result, tmp_path):
    said = everything_said(make_result(collected_by="table"), tmp_path)
    assert "who are trusted with it" in said["notice"]
    assert "| Model | central: a trusted holder" in said["label"]
    model = yaml.safe_load(said["registry"])["deployment"]["deployment_model"]
    assert model["model_name"] == "Central"
    assert "holder of the table, who is trusted" in model["model_name_details"]


def test_an_unknown_way_of_collecting_is_refused(make_result):
    with pytest.raises(ParameterError, match="collected_by = 'hearsay' is not one of devices"):
        make_result(collected_by="hearsay")


def test_the_curator_s_error_is_that_of_laplace_noise(make_result):
    result = make_result(collected_by="table")
    curator = result.central_model
    scale = 2.0 / result.guarantee.epsilon_upper  # replacing one answer moves two counts by one
    assert curator.standard_error_at_same_epsilon == pytest.approx(
        laplace(scale=scale).std() / 6366
    )
    text = terminal_text(result)
    assert (
        "trusted curator: standard error 0.089% at the same epsilon and delta = 0, against 0.5"
        in text
    )


def test_reports_of_a_run_stay_what_they_are(tmp_path):
    table = tmp_path / "answers.csv"
    table.write_text("answer\n" + "yes\nno\n" * 200)
    plan = tmp_path / "plan.json"
    asked = sdp.plan(sdp.Categories(["yes", "no"]), num_users=400, epsilon=1.0, delta=1e-5)
    asked.save(plan)
    for seed, kind in ([], "table"), (["--seed", "1"], "simulation"):
        out = tmp_path / kind
        run = ["run", str(table), "--column", "answer", "--plan", str(plan), "--save-reports"]
        assert main([*run, "--out", str(out), *seed]) == 0
        assert json.loads((out / "privacy.json").read_text())["collected_by"] == kind
        again = sdp.estimate(out / "reports.parquet", asked)
        assert again.collected_by == kind
    drawn = asked.randomizer.randomize(np.zeros(400, dtype=np.int64), Entropy.from_seed(1))
    assert sdp.estimate(drawn, asked).collected_by == "devices"


def test_a_notice_before_anything_is_collected(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    sdp.plan(sdp.Categories(["yes", "no"]), num_users=400, epsilon=1.0, delta=1e-5).save(plan)
    notice = ["explain", str(plan), "--as", "notice"]
    assert main(notice) == 2
    assert "says nothing of who collects: give collected_by" in capsys.readouterr().err
    assert main([*notice, "--collected-by", "devices", "--question", "Do you?"]) == 0
    text = capsys.readouterr().out
    assert "Do you? Possible answers: yes, no." in text
    assert "What leaves your device" in text
    assert "will publish estimates from 400 randomized answers or more" in text
    assert main([*notice, "--collected-by", "table", "--organisation", "Example Ltd"]) == 0
    text = capsys.readouterr().out
    assert "**Who holds your answer.** Example Ltd, who will be trusted with it" in text
    assert "leaves your device" not in text


def test_a_record_that_says_otherwise_is_refused(make_result, tmp_path):
    write_results(make_result(collected_by="table"), tmp_path)
    assert read_record(tmp_path, collected_by="table")["collected_by"] == "table"
    with pytest.raises(DataError, match="says table of who collects"):
        read_record(tmp_path, collected_by="devices")


@pytest.mark.filterwarnings("ignore::shuffledp.core.errors.PlanWarning")
@pytest.mark.parametrize("epsilon0", [1e-5, 1.0])
def test_no_infinite_error_of_a_trusted_curator_is_printed(epsilon0):
    question = sdp.Categories(["yes", "no"])
    plan = sdp.plan(question, num_users=200, epsilon0=epsilon0, delta=1e-4)
    result = sdp.run(plan, ["yes", "no"] * 100)
    is_zero = result.guarantee.epsilon_upper == 0.0
    assert is_zero == (epsilon0 < 1.0)
    assert ("trusted curator" in dict(trust_facts(result))) != is_zero
