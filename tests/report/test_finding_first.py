"""A report leads with what was found, for the respondents or for a population, then the privacy."""

import json

import pytest

import shuffledp as sdp
from report.pages import elements_of
from shuffledp.cli.main import main
from shuffledp.core.errors import ParameterError
from shuffledp.report import page_html, terminal_text
from shuffledp.report.run import figure_of_estimates
from shuffledp.report.wording import estimate_table


def test_the_answer_comes_before_privacy_and_method(make_result):
    html = page_html(make_result())
    lead = "Largest of 5 estimated frequencies: never, 67.76%, among these 6,366 users"
    own = [
        "Each of 6,366 users randomized",
        'id="estimates"',
        "Bars are",
        'id="privacy"',
        'id="method"',
    ]
    places = [html.index(each) for each in (lead, *own)]
    assert places == sorted(places)
    assert "Central privacy loss" in html[html.index('id="privacy"') :]
    lines = terminal_text(make_result()).splitlines()
    assert lines[0].startswith("Largest of 5 estimated frequencies: never, 67.76%")
    assert lines[-4].startswith("epsilon <=")


def test_both_intervals_are_drawn_and_one_is_spoken_of(make_result):
    result = make_result()
    figure = figure_of_estimates(result)
    for plot in (figure.drawing, figure.narrow):
        kinds = [each.get("class") for each in elements_of(plot)]
        assert kinds.count("whisker") == kinds.count("outer") == 5
    lower, upper = result.estimates.population_lower, result.estimates.population_upper
    assert (lower < result.estimates.lower).all()
    assert (upper > result.estimates.upper).all()
    headings, rows = estimate_table(result, is_narrow=True)
    asked, others = estimate_table(make_result(interval_about="population"), is_narrow=True)
    assert headings[-2:] == ("Standard error", "95% interval")
    assert asked[-2:] == ("Population standard error", "95% population interval")
    assert rows[0][:3] == others[0][:3]
    wide, _ = estimate_table(result)
    assert {*headings, *asked} == {*wide}


def test_charts_fit_a_phone(make_result):
    figure = figure_of_estimates(make_result(["x" * 300, "y"]))
    phone = figure.narrow
    assert phone.width <= 341  # 375 less the margins of the page
    assert phone.is_stacked
    assert not figure.drawing.is_stacked
    assert phone.x.last - phone.x.first > 0.85 * phone.width
    html = page_html(make_result())
    assert html.count('<svg class="wide"') == html.count('<svg class="narrow"') == 1
    assert ".chart > .wide { display: none; }" in html.partition("max-width: 44rem")[2]


def test_an_unknown_subject_of_intervals_is_refused():
    plan = sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="interval_about = 'everybody' is not one of respond"):
        sdp.run(plan, ["a"] * 100, interval_about="everybody")


def test_the_command_names_the_column_and_the_population(tmp_path, capsys):
    table, out = tmp_path / "survey.csv", tmp_path / "out"
    table.write_text("smokes\n" + "yes\nno\nno\n" * 100)
    asked = ["--column", "smokes", "--domain", "yes,no", "--epsilon", "1", "--delta", "1e-5"]
    assert main(["run", str(table), *asked, "--about", "population", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "among the population that these 300 users are a random sample of" in printed
    assert "95% population interval" in printed
    record = json.loads((out / "privacy.json").read_text())
    assert record["interval_about"] == "population"
    assert record["about"]["column"] == "smokes"
    first = record["estimates"][0]
    assert first["population_lower"] < first["lower"] < first["upper"] < first["population_upper"]
    page = (out / "report.html").read_text()
    assert "Private estimates of \u201csmokes\u201d from 300 users" in page
    assert main(["explain", str(out), "--as", "notice"]) == 0
    assert "the question as it is put (column smokes of the data)" in capsys.readouterr().out


def test_of_several_means_the_largest_is_named():
    question = sdp.VectorMean(names=("a", "b"), norm_bound=1.0)
    plan = sdp.plan(question, num_users=500, epsilon=2.0, delta=1e-6)
    result = sdp.run(plan, [[0.0, 0.9]] * 500, seed=1)
    assert terminal_text(result).startswith("SIMULATION")
    assert "Largest of 2 estimated means: b, 0." in terminal_text(result)
