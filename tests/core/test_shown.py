"""Tables of numbers as text for papers and pages."""

from dataclasses import dataclass

from shuffledp.core.shown import Frames


@dataclass(frozen=True)
class Table(Frames):
    """Two columns with everything that has to be escaped."""

    def columns(self):
        return {"a_b": ["50 %", "x|y\nz", "~^\\"], "share": [0.123456789, None, 1e-9]}


def test_markdown():
    assert str(Table()) == Table().to_markdown()
    assert Table().to_markdown().splitlines() == [
        "| a_b | share |",
        "| --- | --- |",
        "| 50 % | 0.123457 |",
        r"| x\|y z |  |",
        "| ~^\\ | 1e-09 |",
    ]


def test_bounds_are_rounded_outwards():
    class Bounds(Table):
        def columns(self):
            return {
                "epsilon": [1.37787346, 1e-6, float("inf")],
                "epsilon_lower": [1.37787951, -1e-6, None],
                "epsilon0": [1.37787346, 2.0, 3.0],
            }

    assert Bounds().to_markdown().splitlines()[2:] == [
        "| 1.37788 | 1.37787 | 1.37787 |",
        "| 1e-06 | -1e-06 | 2 |",
        "| inf |  | 3 |",
    ]


def test_latex():
    assert Table().to_latex().splitlines() == [
        r"\begin{tabular}{ll}",
        r"a\_b & share \\",
        r"\hline",
        r"50 \% & 0.123457 \\",
        r"x|y z &  \\",
        r"\textasciitilde{}\textasciicircum{}\textbackslash{} & 1e-09 \\",
        r"\end{tabular}",
    ]
