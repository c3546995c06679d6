"""Tables of numbers as text for papers and pages."""

from dataclasses import dataclass

from shuffledp.core.frames import Frames


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
