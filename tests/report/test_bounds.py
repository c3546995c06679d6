"""All bounds as rows, as a chart and as a page, which loads nothing from the network."""

import math

import pytest

from report.pages import Page, drawn, labels
from shuffledp.accounting.compare import (
    BoundComparison,
    ComparedBound,
    Over,
    Scenario,
    Standing,
    bound_curves,
)
from shuffledp.amplification.registry import METHODS
from shuffledp.report import write_report
from shuffledp.report.bounds import (
    LOWER_END,
    bound_lines,
    bound_rows,
    bounds_figure,
    headings,
    missing_rows,
    number,
    scenario_text,
)
from shuffledp.report.drawing import COLOURS
from shuffledp.report.formatting import rounded

SCENARIO = Scenario(epsilon0=1.0, num_users=1000, delta=1e-6)


def compared(lower=0.037998):
    return BoundComparison(
        scenario=SCENARIO,
        bounds=(
            ComparedBound(
                method=METHODS["binary-exact"], value=0.04320612, standing=Standing.BOUND
            ),
            ComparedBound(method=METHODS["local"], value=1.0, standing=Standing.BOUND),
            ComparedBound(
                method=METHODS["erlingsson"], value=1.5, standing=Standing.NO_GAIN, reason="no use"
            ),
            ComparedBound(
                method=METHODS["erlingsson-small"],
                value=None,
                standing=Standing.OUTSIDE,
                reason="needs <this>",
            ),
        ),
        lower=lower,
    )


def test_bounds_are_rounded_up_and_the_lower_end_down():
    rows = bound_rows(compared())
    assert rows[0] == ("binary-exact", "0.0432062", "1.000", "yes", rows[0][4])
    assert rows[1][:3] == ("local", "1.00000", "23.15")
    assert rows[-1] == (LOWER_END, "0.0379980", "0.8794", "", "")
    assert all(len(row) == len(headings(compared())) for row in rows)
    assert {row[4] for row in rows[:-1]} <= {"here", "source"}


def test_without_a_lower_end_there_is_no_row_for_it():
    assert LOWER_END not in [row[0] for row in bound_rows(compared(lower=None))]


def test_what_says_nothing_says_why():
    assert missing_rows(compared()) == [
        ("erlingsson", "1.50000: no use"),
        ("erlingsson-small", "needs <this>"),
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "any randomizer with epsilon0 = 1, 1,000 users, delta = 1e-6"),
        (
            {"delta": None, "epsilon": 0.5, "num_users": 1},
            "any randomizer with epsilon0 = 1, 1 user, epsilon = 0.5",
        ),
        (
            {"randomizer": "k-rr", "domain_size": 3},
            "k-rr, k = 3, with epsilon0 = 1, 1,000 users, delta = 1e-6",
        ),
        (
            {"randomizer": "privunit", "dimension": 8},
            "privunit, dimension = 8, with epsilon0 = 1, 1,000 users, delta = 1e-6",
        ),
    ],
)
def test_the_scenario_in_words(changes, text):
    arguments = {"epsilon0": 1.0, "num_users": 1000, "delta": 1e-6}
    assert scenario_text(Scenario(**{**arguments, **changes})) == text


def test_numbers():
    assert number(None, up=True) == ""
    assert number(1 / 3, up=True) == "0.333334"
    assert number(1 / 3, up=False) == "0.333333"
    assert headings(compared())[1] == "epsilon"


ASKED = {
    "epsilon": Scenario(epsilon0=1.0, num_users=10_000, delta=1e-6),
    "delta": Scenario(epsilon0=1.0, num_users=10_000, epsilon=0.1),
}


@pytest.fixture(scope="module", params=[(name, over) for name in ASKED for over in Over], ids=str)
def curves(request):
    name, over = request.param
    return bound_curves(ASKED[name], over)


def test_the_chart_is_drawn(curves):
    figure = bounds_figure(curves)
    assert drawn(figure)
    assert "table" in figure.description


def test_a_line_for_each_curve_and_a_dashed_one_below(curves):
    lines = bound_lines(curves)
    assert [each.name for each in lines if each.dash == "dash"] == ["lower end"]
    assert len({(each.colour, each.dash) for each in lines}) == len(lines)
    for each in lines:
        assert len(each.x) == len(each.y)
        assert all(value is None or value > 0.0 for value in each.y)


def test_axes_are_logarithmic_and_the_scenario_is_marked(curves):
    elements = drawn(bounds_figure(curves))
    places = {"100", "1000"} if curves.over is Over.NUM_USERS else {"0.1", "1"}
    assert places <= set(labels(elements, "xtick"))
    assert [each.get("stroke-dasharray") for each in elements if each.tag.endswith("line")].count(
        "2 3"
    ) == 1
    if curves.here.scenario.asked == "delta":  # less than 1e-30 is cut off
        assert labels(elements, "ytick")[0] == "10\u221228"


def test_the_legend_has_words_and_numbers_for_every_curve(curves):
    legend = bounds_figure(curves).legend
    assert [entry.name for entry in legend] == [each.name for each in bound_lines(curves)]
    assert "no analysis can go below" in legend[-1].note
    assert any("says nothing here" in entry.note for entry in legend)


def test_without_a_lower_end_there_is_no_curve_for_it():
    curves = bound_curves(Scenario(epsilon0=250.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    assert [each.name for each in bound_lines(curves)] == ["local"]


def test_a_chart_without_any_curve_is_still_a_chart():
    curves = bound_curves(Scenario(epsilon0=0.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    figure = bounds_figure(curves)
    assert labels(drawn(figure), "xtick")


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return math.fsum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#14171b"])  # --page of report.css, light and dark
@pytest.mark.parametrize("colour", COLOURS)
def test_colours_can_be_seen_on_both_pages(colour, page):
    low, high = sorted((luminance(colour), luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


SCENARIOS = {
    Over.NUM_USERS: Scenario(
        epsilon0=1.0, num_users=12_345, delta=1e-6, randomizer="k-rr", domain_size=2
    ),
    Over.EPSILON0: Scenario(epsilon0=1.0, num_users=12_345, epsilon=0.1),
}


@pytest.fixture(scope="module", params=list(Over))
def page_curves(request):
    return bound_curves(SCENARIOS[request.param], request.param)


@pytest.fixture(scope="module")
def html(page_curves, tmp_path_factory):
    path = write_report(page_curves, tmp_path_factory.mktemp("bounds") / "bounds.html")
    return path.read_text(encoding="utf-8")


def test_it_loads_nothing(html):
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    loading = {"src", "href", "srcset", "data", "action", "poster", "background", "ping"}
    links = [(t, n, v) for t, n, v in page.attributes if n in loading]
    assert links == [("link", "href", "data:,")]
    assert "script" not in page.tags


def test_every_method_stands_there_with_statement_and_source(html):
    text = Page(html).text
    for name, method in METHODS.items():
        assert name in text
        assert " ".join(method.statement.split()) in text
    assert LOWER_END in text
    assert "arXiv:1811.12469v2" in text
    assert ("some data attain it" in text) is True
    assert "12,345 users" in text


def test_all_numbers_of_the_curves_are_in_a_table(html, page_curves):
    text = Page(html).text
    for value in page_curves.curve("clones"):
        if value is not None and 1e-4 <= value < 1e6:
            assert rounded(value, up=True, digits=5) in text
    assert Page(html).tags.count("details") == 1


def test_where_nothing_is_known_it_says_so(tmp_path):
    curves = bound_curves(Scenario(epsilon0=250.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    html = write_report(curves, tmp_path / "bounds.html").read_text(encoding="utf-8")
    assert "not known" in Page(html).text
