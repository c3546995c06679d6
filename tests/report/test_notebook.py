import math
import re
from html.parser import HTMLParser

import polars as pl
from rich.cells import cell_len

from shuffledp import report as reports
from shuffledp.report import notebook_html, terminal_text


class Tags(HTMLParser):
    """Names of the tags, which must be balanced, and of the attributes."""

    def __init__(self, html):
        super().__init__()
        self.names, self.open, self.attributes = [], [], set()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_notebook_gets_a_table_and_the_statement(make_result):
    html = notebook_html(make_result())
    tags = Tags(html)
    assert tags.names.count("tr") == 6
    assert "\u03b5\u00a0\u2264\u00a00.5000" in html
    assert "An adversary who sees" in html
    assert "1 in 100 million" in html
    assert "script" not in tags.names
    assert tags.attributes <= {"style"}
    assert "<bdi>never</bdi>" in html


def test_the_notebook_escapes_labels_and_warnings(make_result):
    domain = ["<script>alert(1)</script>", "b"]
    html = notebook_html(make_result(domain, warnings=("<i>w</i>",), collected_by="simulation"))
    names = Tags(html).names
    assert "script" not in names
    assert "i" not in names
    assert "&lt;script&gt;" in html
    assert "Simulation." in html
    assert "What the reports reveal." in html


def test_answers_called_like_symbols_stay_as_they_are(make_result):
    result = make_result(["delta", "omicron"])
    assert "frequencies: delta, " in notebook_html(result)
    assert "frequencies: delta, " in reports.page_html(result)


def test_long_domains_are_cut_and_say_so(make_result):
    result = make_result([f"answer {i}" for i in range(25)], num_users=10**6)
    assert "and 5 more" in notebook_html(result)
    assert "and 5 more, in estimates.csv (in Python result.estimates)" in terminal_text(result)


def test_the_terminal_gets_aligned_columns(make_result):
    domain = ["yes", "\u306f\u3044", "a label longer than forty characters is cut somewhere"]
    lines = terminal_text(make_result(domain)).splitlines()
    table = lines[2:6]
    assert table[0].startswith("Answer")
    assert len({cell_len(line) for line in table}) == 1
    assert lines[-4].startswith("epsilon <= 0.5000 at delta <= 1e-8")
    assert lines[-2].startswith("true answers: with each user alone")


def test_our_own_words_in_a_terminal_are_ascii(make_result):
    domain = ["yes", "no" * 40]
    terminal_text(make_result(domain, collected_by="simulation", warnings=("careful",))).encode(
        "ascii"
    )


def test_the_terminal_shows_simulation_and_warnings_before_the_numbers(make_result):
    text = terminal_text(make_result(collected_by="simulation", warnings=("careful",)))
    assert text.index("SIMULATION") < text.index("Warning: careful") < text.index("Answer")


def test_no_label_can_send_escape_codes_to_a_terminal(make_result):
    text = terminal_text(make_result(["\x1b[2J\x07", "b"], warnings=("in \x1b[31mred",)))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_package_is_a_renderer(make_result, tmp_path, monkeypatch):
    from shuffledp.core import shown

    monkeypatch.setattr(shown, "_renderers", [])
    shown.register_renderer("shuffledp.report")
    result = make_result()
    assert str(result) == terminal_text(result)
    assert result._repr_html_() == notebook_html(result)
    path = result.report(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == reports.page_html(result)


def public_results():
    """One of each type that a public function returns; those of runs and plans are above."""
    import shuffledp as sdp

    asked = {"epsilon0": 1.0, "num_users": 100, "delta": 1e-6}
    law = sdp.LocalProfile(epsilon0=1.0)
    graph = sdp.network.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
    plan = sdp.plan(sdp.Categories(["yes", "no"]), **asked)
    result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    rows = pl.DataFrame({"id": range(8), "day": [1] * 8, "on": [True, False] * 4})
    histories = sdp.monitoring.open_histories(rows, user="id", time="day", value="on", periods=4)
    monitored = {"max_changes": 1, "epsilon0": 1.0, "delta": 1e-6}
    means = sdp.plan(sdp.Mean(0, 1), **asked)
    simulated = sdp.monitoring.simulate_monitoring(histories, **monitored, seed=1)
    return [
        plan,
        result,
        result.estimates,
        sdp.run(means, [0.0, 1.0] * 50, seed=1).estimates,
        sdp.account(**asked),
        sdp.account(**asked).epsilon,
        sdp.account(**asked | {"num_users": [100, 200]}),
        sdp.plan(plan.question, **asked | {"num_users": [100, 200]}),
        sdp.calibrate(epsilon0=0.5, epsilon=1.0, delta=1e-6),
        sdp.compare_bounds(**asked),
        sdp.leakage.account_leakage(domain_size=2, num_users=5, epsilon0=1.0),
        sdp.collection.leakage_of(result),
        sdp.network.account_network(graph, law, rounds=3, delta=1e-6),
        sdp.network.account_network(graph, law, rounds=[1, 2], delta=1e-6),
        sdp.monitoring.plan_monitoring(periods=4, num_users=100, **monitored),
        simulated,
        simulated.running,
    ]


def test_every_public_result_shows_itself_in_a_notebook():
    for each in public_results():
        tags = Tags(each._repr_html_())
        assert tags.names.count("tr") >= 2, type(each)
        assert "script" not in tags.names


def test_lower_ends_are_rounded_down_and_upper_ends_up():
    import shuffledp as sdp

    table = sdp.account(epsilon0=[1.0], num_users=1000, delta=1e-6)
    (low,), (high,) = table.to_dict()["epsilon_lower"], table.to_dict()["epsilon_upper"]
    cells = [float(each) for each in re.findall(r">(0\.\d+)<", table._repr_html_())]
    assert cells == [math.floor(low * 1e4) / 1e4, math.ceil(high * 1e4) / 1e4]


def test_long_tables_say_how_much_is_left_out():
    import shuffledp as sdp

    domain = [f"answer {i}" for i in range(21)]
    asked = sdp.plan(sdp.Categories(domain), num_users=100, epsilon0=2.0, delta=1e-6)
    table = sdp.run(asked, domain * 5, seed=1).estimates
    assert "The first 20 of 21 rows." in table._repr_html_()
    assert Tags(table._repr_html_()).names.count("tr") == 21
