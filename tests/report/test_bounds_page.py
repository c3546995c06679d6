"""The page of all bounds: chart, numbers, statements and sources, and nothing from the network."""

import json

import pytest

from report.pages import Page
from shuffledp.accounting.amplification.registry import METHODS
from shuffledp.collection.bounds import Over, Scenario, bound_curves
from shuffledp.core.errors import OutputError
from shuffledp.report.bounds_page import write_bounds_page
from shuffledp.report.bounds_view import LOWER_END
from shuffledp.report.formatting import rounded

SCENARIOS = {
    Over.NUM_USERS: Scenario(epsilon0=1.0, num_users=12_345, delta=1e-6, randomizer="k-rr", k=2),
    Over.EPSILON0: Scenario(epsilon0=1.0, num_users=12_345, epsilon=0.1),
}


@pytest.fixture(scope="module", params=list(Over))
def curves(request):
    return bound_curves(SCENARIOS[request.param], request.param)


@pytest.fixture(scope="module")
def html(curves, tmp_path_factory):
    path = write_bounds_page(curves, tmp_path_factory.mktemp("bounds") / "bounds.html")
    return path.read_text(encoding="utf-8")


def test_it_loads_nothing(html):
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    loading = {"src", "href", "srcset", "data", "action", "poster", "background", "ping"}
    links = [(t, n, v) for t, n, v in page.attributes if n in loading]
    assert links == [("link", "href", "data:,")]
    assert set(json.loads(page.scripts[0])) == {"chart-bounds"}


def test_every_method_stands_there_with_statement_and_source(html, curves):
    text = Page(html).text
    for name, method in METHODS.items():
        assert name in text
        assert " ".join(method.statement.split()) in text
    assert LOWER_END in text
    assert "arXiv:1811.12469v2" in text
    assert ("some data attain it" in text) is True
    assert "12,345 users" in text


def test_all_numbers_of_the_curves_are_in_a_table(html, curves):
    text = Page(html).text
    for value in curves.curve("clones"):
        if value is not None and 1e-4 <= value < 1e6:
            assert rounded(value, up=True) in text
    assert Page(html).tags.count("details") == 1


def test_where_nothing_is_known_it_says_so(tmp_path):
    curves = bound_curves(Scenario(epsilon0=250.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    html = write_bounds_page(curves, tmp_path / "bounds.html").read_text(encoding="utf-8")
    assert "not known" in Page(html).text


def test_a_page_that_cannot_be_written(curves, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_bounds_page(curves, tmp_path / "absent" / "bounds.html")
    assert list(tmp_path.iterdir()) == []
