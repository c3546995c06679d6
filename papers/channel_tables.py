"""Tables I to V of Jurado et al.: channels of three people and two values, entry by entry."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from charts import CORRECTED_COLOUR, new_drawing, save
from paper import Settings
from shuffledp import Entropy, leakage
from shuffledp.leakage import Channel

# Entries are forms of degree 3 in p and q = 1 - p, with coefficients of which three are a whole
# number below this base. So at p = BASE/(BASE + 1) one exact value shows all of them, as digits.
_BASE = 1000
_SHADED_AT = Fraction(3, 4)

# The paper lists datasets of Tables Ib and Ic as words in a lexicon, those of the others by their
# number of b's.
_BY_LETTER = ("aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb")
_BY_COUNT = ("aaa", "aab", "aba", "baa", "abb", "bab", "bba", "bbb")
_HISTOGRAMS = ("a:3, b:0", "a:2, b:1", "a:1, b:2", "a:0, b:3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A form in p and q = 1 - p: coefficients of p^(d-i) q^i for i = 0..d.

    >>> print(Entry.of(1, 0, 2, 0))
    p^3 + 2 p (1-p)^2
    """

    coefficients: tuple[Fraction, ...]

    @classmethod
    def of(cls, *coefficients: int | Fraction) -> "Entry":
        """Return the form with these coefficients."""
        return cls(coefficients=tuple(map(Fraction, coefficients)))

    @classmethod
    def read(cls, value: Fraction, degree: int) -> "Entry":
        """Return the form from its value at p = BASE/(BASE + 1)."""
        digits = 3 * value * (_BASE + 1) ** degree
        found = [digits // _BASE**i % _BASE for i in reversed(range(degree))]
        return cls.of(*(Fraction(each, 3) for each in (digits // _BASE**degree, *found)))

    def value(self, truth: Fraction) -> Fraction:
        """Return the value at a truth probability."""
        degree = len(self.coefficients) - 1
        return sum(
            (
                each * truth ** (degree - i) * (1 - truth) ** i
                for i, each in enumerate(self.coefficients)
            ),
            start=Fraction(0),
        )

    def __str__(self) -> str:
        return self._text("(1-p)", " ", "({})/{}")

    def to_tex(self) -> str:
        r"""Return the form as TeX, with \bar{p} for 1 - p."""
        return self._text(r"\bar{p}", "", r"\left({}\right)/{}").replace(" + ", "+")

    def _text(self, q: str, gap: str, quotient: str) -> str:
        """Return the sum of terms over its common denominator."""
        denominator = lcm(*(each.denominator for each in self.coefficients))
        degree = len(self.coefficients) - 1
        terms = []
        for i, count in enumerate(each * denominator for each in self.coefficients):
            if count:
                powers = [_power("p", degree - i), _power(q, i)]
                shown = [] if count == 1 and degree else [str(count)]
                terms.append(gap.join([*shown, *filter(None, powers)]))
        text = " + ".join(terms) or "0"
        if denominator == 1:
            return text
        form = quotient if degree else "{}/{}"
        return form.replace("{}", text, 1).replace("{}", str(denominator), 1)


def _power(base: str, exponent: int) -> str:
    """Return a power as text, nothing for the power 0."""
    return "" if exponent == 0 else base if exponent == 1 else f"{base}^{exponent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What makes one table."""

    title: str
    symbol: str
    build: Callable[[Fraction], Channel]
    inputs: tuple[str, ...] = _BY_COUNT
    outputs: tuple[str, ...] = _HISTOGRAMS
    degree: int = 3
    correction: str = ""
    printed: Mapping[tuple[str, str], Entry] = field(default_factory=dict)


def _noise(truth: Fraction) -> Channel:
    """Return N."""
    return leakage.randomizer_channel(3, 2, truth)


def _reduced_noise(truth: Fraction) -> Channel:
    """Return N^r."""
    return leakage.reduced_randomizer_channel(3, 2, truth)


def _shuffle(_truth: Fraction) -> Channel:
    """Return S."""
    return leakage.shuffle_channel(3, 2)


def _reduced_shuffle(_truth: Fraction) -> Channel:
    """Return S^r."""
    return leakage.reduced_shuffle_channel(3, 2)


_KEPT = Entry.of(Fraction(1, 3), 0, Fraction(2, 3), 0)
_MOVED = Entry.of(0, Fraction(2, 3), 0, Fraction(1, 3))

_PLANS = {
    "table-1a": _Plan(title="Table I (a): k-RR", symbol="N", build=_noise, outputs=_BY_COUNT),
    "table-1b": _Plan(
        title="Table I (b): full shuffle",
        symbol="S",
        build=_shuffle,
        inputs=_BY_LETTER,
        outputs=_BY_LETTER,
        degree=0,
    ),
    "table-1c": _Plan(
        title="Table I (c): reduced shuffle",
        symbol="S^r",
        build=_reduced_shuffle,
        inputs=_BY_LETTER,
        degree=0,
    ),
    "table-2": _Plan(
        title="Table II: k-RR and full shuffle in either order",
        symbol="NS = SN",
        build=lambda truth: _noise(truth) @ _shuffle(truth),
        outputs=_BY_COUNT,
    ),
    "table-3": _Plan(
        title="Table III: k-RR, then reduced shuffle",
        symbol="NS^r",
        build=lambda truth: _noise(truth) @ _reduced_shuffle(truth),
        correction=(
            "row bbb is printed with its middle entries exchanged, though it still sums to 1; from "
            "bbb, a:1, b:2 has probability 3 p^2 (1-p)"
        ),
        printed={
            ("bbb", "a:2, b:1"): Entry.of(0, 3, 0, 0),
            ("bbb", "a:1, b:2"): Entry.of(0, 0, 3, 0),
        },
    ),
    "table-4": _Plan(
        title="Table IV: reduced k-RR, from histograms to histograms",
        symbol="N^r",
        build=_reduced_noise,
        inputs=_HISTOGRAMS,
        correction=(
            "the four middle entries are printed divided by 3, so that their rows do not sum to 1"
        ),
        printed={
            ("a:2, b:1", "a:2, b:1"): _KEPT,
            ("a:2, b:1", "a:1, b:2"): _MOVED,
            ("a:1, b:2", "a:2, b:1"): _MOVED,
            ("a:1, b:2", "a:1, b:2"): _KEPT,
        },
    ),
    "table-5": _Plan(
        title="Table V: k-RR and reduced shuffle in either order",
        symbol="NS^r = S^r N^r",
        build=lambda truth: _reduced_shuffle(truth) @ _reduced_noise(truth),
    ),
}

#: Names of the tables, in the paper's order.
TABLES = tuple(_PLANS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTable:
    """A channel as a matrix of forms."""

    plan: _Plan
    entries: tuple[tuple[Entry, ...], ...]

    @property
    def caption(self) -> str:
        """Return the title, what p is, and what is corrected."""
        shading = "Cells are shaded by their value at p = 0.75." if self.plan.degree else ""
        corrected = f" Corrected: {self.plan.correction}." if self.plan.correction else ""
        return (
            f"{self.plan.title}, {self.plan.symbol}; k = 2 values, n = 3 people; p is the "
            "probability that a person answers truthfully. Entries are computed from the channel, "
            f"exactly. {shading}{corrected}"
        )

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping an entry, row by row."""
        for name, row in zip(self.plan.inputs, self.entries, strict=True):
            for output, entry in zip(self.plan.outputs, row, strict=True):
                printed = self.plan.printed.get((name, output))
                yield {
                    "input": name,
                    "output": output,
                    "entry": str(entry),
                    "printed": str(printed or entry),
                    "value": float(entry.value(_SHADED_AT)),
                    "mark": "corrected" if printed else "",
                }

    def draw(self, path: Path) -> None:
        """Draw a shaded matrix; corrected entries are outlined, and say what the paper prints."""
        plan = self.plan
        values = np.array([[float(e.value(_SHADED_AT)) for e in row] for row in self.entries])
        texts = [str(e).replace("(1-p)", "q") for row in self.entries for e in row]
        longest = max(map(len, (*texts, *plan.outputs)))
        width = len(plan.outputs) * max(0.62, 0.082 * longest) + 1.0
        foot = textwrap.fill(
            f"Outlined entries are corrected: {plan.correction}." if plan.correction else "",
            int(12.0 * width),
        )
        drawing = new_drawing((width, 0.46 * len(plan.inputs) + 1.35 + 0.16 * foot.count("\n")))
        axis = drawing.subplots()
        shades = values / values.max() * 0.75  # black stays readable on most of them
        axis.imshow(shades, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        for row, column in np.ndindex(values.shape):
            printed = plan.printed.get((plan.inputs[row], plan.outputs[column]))
            colour = "white" if shades[row, column] > 0.6 else "black"
            _draw_cell(axis, (row, column), self.entries[row][column], printed, colour)
        _label(axis, plan.inputs, plan.outputs)
        title = f"{plan.title}, ${plan.symbol}$"
        axis.set_title(title, math_fontfamily="cm", fontsize=10.5, loc="left", pad=10)
        drawing.supxlabel(foot, fontsize=8.5, color=CORRECTED_COLOUR)
        save(drawing, path)


def channel_table(name: str) -> Callable[[Settings, Entropy], ChannelTable]:
    """Return what computes a table; it depends on no setting."""
    return lambda _settings, _entropy: make_table(name)


def make_table(name: str) -> ChannelTable:
    """Compute a table of the paper from the channels, exactly."""
    plan = _PLANS[name]
    channel = plan.build(Fraction(_BASE, _BASE + 1))
    rows = [(channel.inputs or ()).index(_key(each)) for each in plan.inputs]
    columns = [(channel.outputs or ()).index(_key(each)) for each in plan.outputs]
    return ChannelTable(
        plan=plan,
        entries=tuple(
            tuple(Entry.read(Fraction(channel.matrix[row, c]), plan.degree) for c in columns)
            for row in rows
        ),
    )


def _key(text: str) -> tuple[int, ...]:
    """Return the label of a dataset such as aab, or of a histogram such as a:2, b:1."""
    if ":" in text:
        return tuple(int(each.partition(":")[2]) for each in text.split(","))
    return tuple("ab".index(letter) for letter in text)


def _draw_cell(
    axis: Any, place: tuple[int, int], entry: Entry, printed: Entry | None, colour: str
) -> None:
    """Write one entry, and outline it where the paper prints another."""
    row, column = place
    centred = {"ha": "center", "va": "center", "color": colour, "math_fontfamily": "cm"}
    axis.text(column, row - 0.14 * bool(printed), f"${entry.to_tex()}$", **centred, fontsize=10.5)
    if printed:
        axis.text(column, row + 0.27, f"printed ${printed.to_tex()}$", **centred, fontsize=7)
        corner = (column - 0.47, row - 0.46)
        edge = {"edgecolor": CORRECTED_COLOUR, "linewidth": 2.0}
        axis.add_patch(Rectangle(corner, 0.94, 0.92, fill=False, **edge))


def _label(axis: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Label rows and columns as the paper does."""
    axis.set_xticks(range(len(outputs)), outputs, fontfamily="monospace", fontsize=9.5)
    axis.set_yticks(range(len(inputs)), inputs, fontfamily="monospace", fontsize=9.5)
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axis.spines[:].set_visible(False)
