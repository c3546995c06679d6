"""Drawing of charts and tables: read back from the axes."""

from fractions import Fraction

import pytest

pytest.importorskip("matplotlib")

from shuffledp.leakage.curves import leakage_curve
from shuffledp.report.leakage_figures import (
    _draw_charts,
    draw_leakage_curve,
    draw_leakage_figure,
    draw_paper_figures,
)
from shuffledp.report.leakage_matrix import draw_matrix
from shuffledp.reproduction.leakage_charts import Chart, LeakageFigure, Line, Seen
from shuffledp.reproduction.leakage_polynomials import TruthPolynomial
from shuffledp.reproduction.leakage_tables import LeakageTable
from shuffledp.reproduction.settings import Settings

LINES = (
    Line(seen=Seen.BOTH, variant="p = 1", x=(1.0, 2.0), y=(1.0, 0.75), printed={2.0: "0.76"}),
    Line(seen=Seen.RANDOMIZER, variant="p = 1", y=(1.0,)),
    Line(seen=Seen.BOTH, variant="p = 0.6", x=(1.0, 2.0), y=(0.6, 0.55), printed={1.0: "0.6"}),
)
ENTRIES = (
    (TruthPolynomial.of(1, 0), TruthPolynomial.of(0, 1)),
    (TruthPolynomial.of(0, 1), TruthPolynomial.of(1, 0)),
)


def chart(**changes):
    facts = {"name": "a", "title": "t", "x_label": "n", "y_label": "V", "lines": LINES}
    return Chart(**(facts | changes))


def table(**changes):
    facts = {
        "name": "table-1a",
        "title": "Table I (a)",
        "symbol": "N",
        "caption": "c",
        "correction": "",
        "inputs": ("a", "b"),
        "outputs": ("a", "b"),
        "entries": ENTRIES,
        "printed": {},
    }
    return LeakageTable(**(facts | changes))


def drawn(*charts, **changes):
    from matplotlib.figure import Figure

    drawing = Figure(layout="constrained")
    _draw_charts(drawing, LeakageFigure(name="2", caption="c", charts=charts, **changes))
    return drawing


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def annotations(axis):
    return [each.get_text() for each in axis.texts]


def test_files(tmp_path):
    figure = LeakageFigure(name="2", caption="c", charts=(chart(), chart(name="b")))
    for index, each in enumerate((figure, table())):
        path = tmp_path / f"{index}.png"
        draw_leakage_figure(each, path)
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        draw_leakage_figure(each, path)
        assert path.read_bytes() == content


def test_colour_is_the_variant_and_stroke_what_is_seen():
    drawing = drawn(chart(), chart(lines=LINES[2:]))
    axis, other = drawing.axes
    assert texts(axis.get_legend()) == ["p = 1", "p = 0.6"]
    assert other.get_legend() is None  # one variant needs no names
    both, _, randomizer, later, _ = axis.get_lines()
    assert both.get_color() == randomizer.get_color() != later.get_color()
    assert other.get_lines()[0].get_color() == later.get_color()
    assert (both.get_linestyle(), randomizer.get_linestyle()) == ("-", ":")
    assert texts(drawing.legends[0]) == ["k-RR and shuffle (NS)", "k-RR alone (N)"]


def test_printed_values():
    (axis,) = drawn(chart()).axes
    assert annotations(axis) == ["0.75\n(printed 0.76)", "0.6"]
    (axis,) = drawn(
        chart(lines=(Line(seen=Seen.BOTH, x=(1.0,), y=(0.5,), printed={2.0: "1"}),))
    ).axes
    assert annotations(axis) == []


def test_correction_is_in_the_image():
    title = drawn(chart(), correction="it is 1").legends[0].get_title()
    assert title.get_text() == "Corrected: it is 1."
    assert drawn(chart()).legends[0].get_title().get_text() == ""


def test_scales_limits_and_mark():
    facts = {"x_scale": "log", "y_scale": "log", "y_limits": (0.5, 2.0)}
    (axis,) = drawn(chart(**facts, mark=1.5, mark_label="n = 1.5")).axes
    assert (axis.get_xscale(), axis.get_yscale(), axis.get_ylim()) == ("log", "log", (0.5, 2.0))
    assert "n = 1.5" in annotations(axis)


def test_small_values_have_their_own_powers_of_ten():
    line = Line(seen=Seen.BOTH, x=(1.0, 2.0), y=(9.5e-6, 9.4e-6))
    (axis,) = drawn(chart(lines=(line,))).axes
    assert axis.yaxis.get_major_formatter()(9.5e-6) == "9.5e−06"  # noqa: RUF001  # a minus sign


def test_enclosures_are_bands():
    wide = Line(seen=Seen.BOTH, x=(1.0, 2.0), y=(0.6, 0.5), lower=(0.4, 0.3))
    tight = Line(seen=Seen.BOTH, x=(1.0, 2.0), y=(0.6, 0.5), lower=(0.6, 0.5))
    assert [len(drawn(chart(lines=(each,))).axes[0].collections) for each in (wide, tight)] == [
        1,
        0,
    ]


def test_exact_lines_are_pale_below_approximations():
    exact = Line(seen=Seen.SHUFFLER, x=(1.0, 2.0), y=(0.6, 0.5))
    near = Line(seen=Seen.APPROXIMATION, x=(1.0, 2.0), y=(0.6, 0.5))
    alone, below = (
        drawn(chart(lines=each)).axes[0].get_lines()[0] for each in ((exact,), (exact, near))
    )
    assert alone.get_alpha() is None
    assert below.get_alpha() < 0.5


def test_jumping_values_are_dots():
    line = Line(seen=Seen.BOTH, x=(1.0, 2.0), y=(0.6, 0.5), is_scattered=True)
    hair, dots = drawn(chart(lines=(line,))).axes[0].get_lines()
    assert (hair.get_linewidth(), dots.get_linestyle(), dots.get_marker()) == (0.5, "None", "o")


def matrix(**changes):
    from matplotlib.figure import Figure

    drawing = Figure(layout="constrained")
    draw_matrix(drawing, table(**changes))
    return drawing


def test_table():
    drawing = matrix()
    (axis,) = drawing.axes
    assert annotations(axis) == ["$p$", r"$\bar{p}$", r"$\bar{p}$", "$p$"]
    assert [each.get_color() for each in axis.texts] == ["white", "black", "black", "white"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b"]
    assert "0.75" in drawing.get_supxlabel()
    assert "Outlined" not in drawing.get_supxlabel()
    assert not axis.patches


def test_corrected_entries_are_outlined():
    drawing = matrix(printed={(0, 1): TruthPolynomial.of(0, 3)}, correction="once")
    (axis,) = drawing.axes
    assert r"printed $3\bar{p}$" in annotations(axis)
    assert len(axis.patches) == 1
    foot = " ".join(drawing.get_supxlabel().split())
    assert foot.endswith("Outlined entries are corrected: once.")


def test_table_of_numbers_has_no_p():
    numbers = ((TruthPolynomial.of(Fraction(1, 3)), TruthPolynomial.of(0)),)
    drawing = matrix(entries=numbers, inputs=("a",))
    assert annotations(drawing.axes[0]) == ["$1/3$", "$0$"]
    assert drawing.get_supxlabel() == ""


@pytest.mark.parametrize("adversary", ["uninformed", "strong"])
def test_curve(tmp_path, adversary):
    draw_leakage_curve(leakage_curve(2, 0.8, 30, adversary), tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_curves_without_information(tmp_path):
    draw_leakage_curve(leakage_curve(2, 0.5, 1), tmp_path / "x.png")
    draw_leakage_curve(leakage_curve(2, 1.0, 2, "strong"), str(tmp_path / "y.png"))
    assert (tmp_path / "y.png").exists()


def test_figures_of_the_paper(tmp_path):
    written = draw_paper_figures(tmp_path, settings=Settings(quick=True))
    assert [each.name for each in written] == ["2", "3", "4", "5", "6", "7"]
    assert all(each.png.read_bytes().startswith(b"\x89PNG") for each in written)
