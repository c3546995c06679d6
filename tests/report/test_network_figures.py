"""Drawing: every kind of line, gaps, levels, scales; read back from the axes."""

import pytest

pytest.importorskip("matplotlib")

from shuffledp.report.network_figures import (
    _draw_chart,
    _draw_legend_of_claims,
    draw_network_figure,
)
from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure

LINES = (
    Line(claim=Claim.OURS, variant="a", x=tuple(map(float, range(1, 31))), y=(0.5,) * 30),
    Line(claim=Claim.CORRECTED, variant="b", x=(1.0, 2.0, 3.0), y=(0.5, None, 0.3)),
    Line(claim=Claim.PRINTED, variant="b", x=(1.0, 2.0), y=(0.5, 0.4), deviation=(0.1, 0.1)),
    Line(claim=Claim.UNIFORM, variant="a", y=(0.25,)),
    Line(claim=Claim.LOCAL, y=(1.0,)),
    Line(claim=Claim.LOCAL, y=(None,)),
)


def chart(**changes):
    facts = {"name": "a", "title": "t", "x_label": "rounds", "y_label": "epsilon", "lines": LINES}
    return Chart(**(facts | changes))


def axes_of(drawn):
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    _draw_chart(axis, drawn)
    return axis


def test_file(tmp_path):
    figure = NetworkFigure(name="4", caption="c", charts=(chart(), chart(name="b")), trials=2)
    draw_network_figure(figure, tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    draw_network_figure(figure, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes() == content


def test_scales_and_limits():
    axis = axes_of(chart(x_scale="log", top=2.0))
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_ylim()[1] == 2.0
    axis = axes_of(chart(y_scale="linear"))
    assert axis.get_ylim()[0] == 0.0


def test_colour_is_the_variant_and_stroke_the_claim():
    axis = axes_of(chart())
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["a", "b"]
    ours, corrected, printed, uniform, local = axis.get_lines()[:2] + axis.get_lines()[-3:]
    assert ours.get_color() == uniform.get_color() != corrected.get_color()
    assert corrected.get_color() == printed.get_color() or printed.get_linestyle() == "None"
    assert local.get_color() not in {ours.get_color(), corrected.get_color()}
    assert axes_of(chart(lines=LINES[-2:-1])).get_legend() is None


def test_legend_names_the_claims_that_are_there():
    from matplotlib.figure import Figure

    drawing = Figure()
    figure = NetworkFigure(name="", caption="", charts=(chart(lines=LINES[:2]),))
    _draw_legend_of_claims(drawing, figure)
    texts = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert texts == ["ours", "published theorem, corrected"]
