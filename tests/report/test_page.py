from dataclasses import fields

import pytest

from report.pages import Page
from shuffledp._version import __version__
from shuffledp.collection.result import About
from shuffledp.core.errors import OutputError
from shuffledp.report import notebook_html, page_html, terminal_text
from shuffledp.report.formatting import typeset

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)',
    "$policy",
)


@pytest.fixture(scope="module")
def ids_of():
    return lambda page: [value for _, name, value in page.attributes if name == "id"]


def test_every_part_of_the_story_is_there(make_result):
    page = Page(page_html(make_result(collected_by="table")))
    for words in (
        "Private estimates from 6,366 users",
        "What was asked, and what was done",
        "k-ary randomized response",
        "cryptographic, keyed by the operating system",
        "once or twice",
        "An adversary who sees all 6,366 shuffled reports",
        "The shuffler applies a uniformly random permutation",
        f"shuffledp {__version__}",
        "Lemma 5.3",
    ):
        assert words in page.text, words


def test_nothing_refers_to_anything_outside_the_file(make_result):
    page = Page(page_html(make_result(HOSTILE)))
    loading = {"src", "href", "srcset", "data", "action", "poster", "background", "ping"}
    links = [(t, n, v) for t, n, v in page.attributes if n in loading]
    assert links == [("link", "href", "data:,")]
    style = page_html(make_result()).partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_there_is_no_script_and_none_may_run(make_result, ids_of):
    html = page_html(make_result(HOSTILE))
    page = Page(html)
    assert "script" not in page.tags
    assert "chart-estimates" in ids_of(page)
    policy = next(v for t, n, v in page.attributes if n == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy
    assert len(html) < 100_000


def test_who_asked_what_stands_on_top_and_is_escaped(make_result, tmp_path):
    about = About(
        title="Commuting <2026>",
        question="How do you commute?",
        organisation="City",
        contact="a@b.example",
        date="2026-11-23",
    )
    page = Page(make_result(about=about).report(tmp_path / "r.html").read_text("utf-8"))
    for text in ("Commuting <2026>", "How do you commute?", "City", "a@b.example", "2026-11-23"):
        assert text in page.text
    assert "Private estimates from" not in page.text
    later = make_result().report(tmp_path / "r.html", about=about).read_text("utf-8")
    assert Page(later).text == page.text
    assert "Organisation" not in Page(page_html(make_result())).text


def test_both_guarantees_are_headlines(make_result):
    text = Page(page_html(make_result())).text
    head = text[: text.index("What was asked")]
    assert "\u03b5\xa0\u2264\xa00.5000" in page_html(make_result())
    assert "proved upper bound: odds up to 1.65, right guess up to 62.3%" in head
    assert "Without the shuffler" in head
    assert "odds up to 12.2, right guess up to 92.5%" in head


def test_hostile_labels_and_warnings_stay_text(make_result):
    result = make_result(HOSTILE, warnings=("<script>alert(5)</script>",))
    page = Page(page_html(result))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [n for _, n, _ in page.attributes if n.startswith("on")]
    for label in (*HOSTILE, "<script>alert(5)</script>"):
        assert label in page.text


def test_the_same_result_gives_the_same_page(make_result):
    assert page_html(make_result()) == page_html(make_result())


def test_a_thousand_answers_are_all_in_the_table(make_result):
    domain = [f"answer number {i}" for i in range(1000)]
    page = Page(page_html(make_result(domain, num_users=10**6, randomizer="optimized-unary")))
    assert page.tags.count("td") >= 4 * 1000
    assert "answer number 999" in page.text
    assert "All 1,000 estimates" in page.text
    assert "30 largest of 1,000" in page.text
    assert "Optimized unary encoding (OUE)" in page.text


def test_an_estimate_from_reports_claims_no_randomness_of_its_own(make_result):
    html = page_html(make_result(collected_by="devices"))
    assert "cryptographic, keyed by the operating system" not in html
    assert "of those who sent the reports" in html


def test_answers_with_commas_are_told_apart(make_result):
    html = page_html(make_result(["none", "one, or two"]))
    assert "<bdi>none</bdi>; <bdi>one, or two</bdi>" in html


def test_a_report_is_below_500_kilobytes(make_result):
    for result in (make_result(), make_result([f"answer {i}" for i in range(1000)])):
        assert len(page_html(result).encode()) < 500_000


def test_a_simulation_cannot_be_overlooked(make_result):
    page = Page(page_html(make_result(collected_by="simulation")))
    assert ("div", "role", "alert") in page.attributes
    assert "protects nobody" in page.text
    assert "Simulated estimates from" in page.text
    assert "Private estimates from" not in page.text
    real = Page(page_html(make_result()))
    assert ("div", "role", "alert") not in real.attributes


def test_a_missed_target_and_warnings_stand_on_top(make_result):
    html = page_html(make_result(target_epsilon=0.25, warnings=("delta is large.",)))
    text = Page(html).text
    assert (
        text.index("Target missed.") < text.index("delta is large.") < text.index("What was asked")
    )
    assert "Target missed." not in Page(page_html(make_result())).text


def test_post_processing_is_named_and_no_longer_called_unbiased(make_result):
    import dataclasses

    result = make_result()
    clipped = dataclasses.replace(result.estimates, post_processing=("clip",))
    text = Page(page_html(make_result(estimates=clipped))).text
    assert "Post-processing was applied, so the estimates are no longer unbiased: clip." in text
    assert "nothing: the estimates are unbiased" not in text


def test_a_target_with_many_digits_is_shown_with_few(make_result):
    text = Page(page_html(make_result(target_epsilon=0.51234567890123))).text
    assert "\u03b5 \u2264 0.5124" in text


def test_minus_signs_are_typeset(make_result):
    shares = [0.99, 0.0, 0.0, 0.0, 0.0]
    assert "\u2212" in Page(page_html(make_result(shares=shares))).text


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("delta <= 1e-8", "\u03b4\u00a0\u2264\u00a010<sup>\u22128</sup>"),
        ("2.5e-9", "2.5\u00a0\u00d7\u00a010<sup>\u22129</sup>"),
        ("10^44", "10<sup>44</sup>"),
        ("e^epsilon", "e<sup>\u03b5</sup>"),
        ("e^alpha, theta", "e<sup>\u03b1</sup>, \u03b8"),
        ("epsilon0 & <b>", "\u03b5<sub>0</sub> &amp; &lt;b&gt;"),
    ],
)
def test_typesetting(plain, html):
    assert typeset(plain) == html


def test_a_page_that_cannot_be_written_is_one_line_and_leaves_nothing(make_result, tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(OutputError, match=r"cannot write .*a\.html") as caught:
        make_result().report(tmp_path / "a.html")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.html"]


def test_nobody_knows_how_to_show_anything_else(make_result):
    for show in (page_html, notebook_html, terminal_text):
        with pytest.raises(TypeError, match="a dict"):
            show({})


def test_pages_go_by_the_class_and_not_by_its_name(make_result):
    class Plan:
        """Another class of this name."""

    with pytest.raises(TypeError, match="no page about a Plan"):
        page_html(Plan())
    result = make_result()
    own = type("Own", (type(result),), {"__slots__": ()})
    again = own(**{each.name: getattr(result, each.name) for each in fields(result)})
    assert page_html(again) == page_html(result)
