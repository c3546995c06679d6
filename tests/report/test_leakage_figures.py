"""The figure of `leakage`: read back from the axes."""

from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from shuffledp.core.bound import Bound
from shuffledp.leakage.account import leakage_curve
from shuffledp.report import leakage_figures
from shuffledp.report.leakage_figures import draw_leakage_curve

NAMES = ["k-RR and shuffle (NS)", "shuffle alone (S)", "k-RR alone (N)", "nothing (blind guess)"]


@pytest.fixture
def axes(tmp_path, monkeypatch):
    """Return what draws a curve into a file, and gives the axes back."""

    def draw(curve):
        tools = leakage_figures.require_matplotlib()
        made = []

        def figure(**facts):
            made.append(tools.figure(**facts))
            return made[-1]

        kept = type(tools)(figure=figure, canvas=tools.canvas)
        monkeypatch.setattr(leakage_figures, "require_matplotlib", lambda: kept)
        draw_leakage_curve(curve, tmp_path / "x.png")
        monkeypatch.undo()
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
        return made[0].axes

    return draw


def named(axis):
    """Return the lines with a name, the levels among them."""
    return [line for line in axis.get_lines() if not str(line.get_label()).startswith("_")]


def test_the_uninformed(axes):
    chart, excess = axes(leakage_curve(3, 0.5, 40))
    assert [line.get_label() for line in named(chart)] == NAMES
    assert (chart.get_xscale(), chart.get_yscale()) == ("log", "linear")
    assert [text.get_text() for text in chart.texts] == ["n = 40"]
    (legend,) = chart.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == NAMES
    assert (excess.get_xscale(), excess.get_yscale()) == ("log", "log")
    assert [line.get_label() for line in named(excess)] == NAMES[:3]
    assert named(excess)[2].get_ydata()[0] == pytest.approx(1 / 6)


def test_reports_that_say_nothing(axes):
    _, excess = axes(leakage_curve(4, 0.25, 40))
    assert [line.get_label() for line in named(excess)] == [NAMES[1]]


def test_the_strong(axes):
    curve = leakage_curve(2, 0.8, 51, "strong")
    chart, close = axes(curve)
    assert (chart.get_xscale(), len(chart.texts)) == ("linear", 0)
    (line,) = close.get_lines()
    assert line.get_ydata() == pytest.approx([each.upper - 0.5 for each in curve.both])
    assert line.get_marker() == "o"  # two values jump
    assert axes(leakage_curve(3, 0.6, 4, "strong"))[1].get_lines()[0].get_marker() == "None"


def test_a_level_is_in_the_middle(axes):
    _, close = axes(leakage_curve(2, 0.8, 10**9, "strong"))
    low, high = close.get_ylim()
    (line,) = close.get_lines()
    assert 0.0 < low < min(line.get_ydata()) <= max(line.get_ydata()) < high < 1e-3
    assert "e−" in close.yaxis.get_major_formatter()(high)  # noqa: RUF001  # a minus sign


@pytest.mark.parametrize("lower", [0.5, None])
def test_enclosures_are_bands(axes, lower):
    wide = Bound(lower=lower, upper=0.6, method="ends", source="", assumptions=())
    curve = replace(leakage_curve(2, 0.8, 2, "strong"), both=(wide,) * 2)
    assert [len(axis.collections) for axis in axes(curve)] == [1, 1]
