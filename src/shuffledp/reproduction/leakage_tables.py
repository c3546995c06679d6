"""Tables I to V of Jurado et al.: channels of three people and two values, entry by entry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from shuffledp.core.entropy import Entropy
from shuffledp.leakage.channels.builders import (
    randomizer_channel,
    reduced_randomizer_channel,
    reduced_shuffle_channel,
    shuffle_channel,
)
from shuffledp.leakage.channels.channel import Channel
from shuffledp.reproduction.leakage_polynomials import TruthPolynomial
from shuffledp.reproduction.settings import Settings

_USERS = 3
_VALUES = "ab"

# Where entries are computed; one more than their degree, and each at least 1/k.
_TRUTHS = (Fraction(1, 2), Fraction(3, 5), Fraction(2, 3), Fraction(3, 4))

#: The truth probability that the paper shades its tables at.
SHADED_AT = Fraction(3, 4)

# The paper lists datasets of Tables Ib and Ic as words in a lexicon, those of the others by their
# number of b's.
_BY_LETTER = ("aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb")
_BY_COUNT = ("aaa", "aab", "aba", "baa", "abb", "bab", "bba", "bbb")
_HISTOGRAMS = ("a:3, b:0", "a:2, b:1", "a:1, b:2", "a:0, b:3")

_SETTING = (
    "k = 2 values, n = 3 people; p is the probability that a person answers truthfully. Entries "
    "are computed from the channel, exactly."
)
_SHADING = "Cells are shaded by their value at p = 0.75."
_EXCHANGED = (
    "row bbb is printed with its middle entries exchanged, though it still sums to 1; from bbb, "
    "a:1, b:2 has probability 3 p^2 (1-p)"
)
_MIDDLE_THIRDS = (
    "the four middle entries are printed divided by 3, so that their rows do not sum to 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageTable:
    """A channel as a shaded matrix.

    Parameters
    ----------
    name : str
        What it is asked for by, such as ``"table-1a"``.
    title : str
        Its number in the paper, and what it shows.
    symbol : str
        Of the channel, as TeX that reads as text, too.
    caption : str
        What it shows, and how that differs from the paper.
    correction : str
        What the paper prints otherwise, in one sentence; empty if nothing.
    inputs, outputs : tuple of str
        Labels of rows and columns.
    entries : tuple of tuple of TruthPolynomial
        Row by row.
    printed : mapping of (int, int) to TruthPolynomial
        Entries that the paper prints otherwise, by row and column.
    """

    name: str
    title: str
    symbol: str
    caption: str
    correction: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    entries: tuple[tuple[TruthPolynomial, ...], ...] = field(repr=False)
    printed: Mapping[tuple[int, int], TruthPolynomial] = field(repr=False)

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping an entry, row by row."""
        for row, name in enumerate(self.inputs):
            for column, output in enumerate(self.outputs):
                entry = self.entries[row][column]
                yield {
                    "table": self.name,
                    "input": name,
                    "output": output,
                    "entry": str(entry),
                    "printed": str(self.printed.get((row, column), entry)),
                    "value": float(entry.value(SHADED_AT)),
                    "mark": "corrected" if (row, column) in self.printed else "",
                }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What makes one table."""

    title: str
    symbol: str
    build: Callable[[Fraction], Channel]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    degree: int = _USERS
    correction: str = ""
    printed: Mapping[tuple[str, str], TruthPolynomial] = field(default_factory=dict)


def _noise(truth: Fraction) -> Channel:
    """Return N."""
    return randomizer_channel(_USERS, len(_VALUES), truth)


def _shuffle(_truth: Fraction) -> Channel:
    """Return S."""
    return shuffle_channel(_USERS, len(_VALUES), exact=True)


def _reduced_shuffle(_truth: Fraction) -> Channel:
    """Return S^r."""
    return reduced_shuffle_channel(_USERS, len(_VALUES), exact=True)


def _reduced_noise(truth: Fraction) -> Channel:
    """Return N^r."""
    return reduced_randomizer_channel(_USERS, len(_VALUES), truth)


_P3, _Q3 = TruthPolynomial.of(1, 0, 0, 0), TruthPolynomial.of(0, 0, 0, 1)
_3P2Q, _3PQ2 = TruthPolynomial.of(0, 3, 0, 0), TruthPolynomial.of(0, 0, 3, 0)
_KEPT = TruthPolynomial.of(Fraction(1, 3), 0, Fraction(2, 3), 0)
_MOVED = TruthPolynomial.of(0, Fraction(2, 3), 0, Fraction(1, 3))

_PLANS = {
    "table-1a": _Plan(
        title="Table I (a): k-RR",
        symbol="N",
        build=_noise,
        inputs=_BY_COUNT,
        outputs=_BY_COUNT,
    ),
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
        outputs=_HISTOGRAMS,
        degree=0,
    ),
    "table-2": _Plan(
        title="Table II: k-RR and full shuffle in either order",
        symbol="NS = SN",
        build=lambda truth: _noise(truth) @ _shuffle(truth),
        inputs=_BY_COUNT,
        outputs=_BY_COUNT,
    ),
    "table-3": _Plan(
        title="Table III: k-RR, then reduced shuffle",
        symbol="NS^r",
        build=lambda truth: _noise(truth) @ _reduced_shuffle(truth),
        inputs=_BY_COUNT,
        outputs=_HISTOGRAMS,
        correction=_EXCHANGED,
        printed={("bbb", "a:2, b:1"): _3P2Q, ("bbb", "a:1, b:2"): _3PQ2},
    ),
    "table-4": _Plan(
        title="Table IV: reduced k-RR, from histograms to histograms",
        symbol="N^r",
        build=_reduced_noise,
        inputs=_HISTOGRAMS,
        outputs=_HISTOGRAMS,
        correction=_MIDDLE_THIRDS,
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
        inputs=_BY_COUNT,
        outputs=_HISTOGRAMS,
    ),
}

#: Names of the tables, in the paper's order.
TABLES = tuple(_PLANS)


def table_maker(name: str) -> Callable[[Settings, Entropy], LeakageTable]:
    """Return what computes a table.

    Parameters
    ----------
    name : str
        One of `TABLES`.

    Returns
    -------
    callable
        Of settings and entropy, neither of which a table depends on.
    """

    def compute(_settings: Settings, _entropy: Entropy) -> LeakageTable:
        return leakage_table(name)

    return compute


def leakage_table(name: str) -> LeakageTable:
    """Compute a table of the paper from the channels, exactly.

    Parameters
    ----------
    name : str
        One of `TABLES`.

    Returns
    -------
    LeakageTable
        With the entries as they are, and as they are printed where that is wrong.

    Notes
    -----
    Each entry is a form of degree 3 in p and 1 - p, since three people answer independently; it is
    interpolated through the channel at four rational p.
    """
    plan = _PLANS[name]
    truths = _TRUTHS[: plan.degree + 1]
    matrices = [_arranged(plan.build(truth), plan.inputs, plan.outputs) for truth in truths]
    entries = tuple(
        tuple(
            TruthPolynomial.through(truths, [matrix[row][column] for matrix in matrices])
            for column in range(len(plan.outputs))
        )
        for row in range(len(plan.inputs))
    )
    printed = {
        (plan.inputs.index(row), plan.outputs.index(column)): entry
        for (row, column), entry in plan.printed.items()
    }
    return LeakageTable(
        name=name,
        title=plan.title,
        symbol=plan.symbol,
        caption=_caption(plan),
        correction=plan.correction,
        inputs=plan.inputs,
        outputs=plan.outputs,
        entries=entries,
        printed=printed,
    )


def _arranged(
    channel: Channel, inputs: Sequence[str], outputs: Sequence[str]
) -> list[list[Fraction]]:
    """Return the matrix with rows and columns in the order of these labels."""
    rows = [(channel.inputs or ()).index(_label(each)) for each in inputs]
    columns = [(channel.outputs or ()).index(_label(each)) for each in outputs]
    return [[Fraction(channel.matrix[row, column]) for column in columns] for row in rows]


def _label(text: str) -> tuple[int, ...]:
    """Return the label of a dataset such as aab, or of a histogram such as a:2, b:1."""
    if ":" in text:
        return tuple(int(each.partition(":")[2]) for each in text.split(","))
    return tuple(_VALUES.index(letter) for letter in text)


def _caption(plan: _Plan) -> str:
    """Return the title, what p is, and what is corrected."""
    shading = "" if plan.degree == 0 else _SHADING
    corrected = f" Corrected: {plan.correction}." if plan.correction else ""
    return f"{plan.title}, {plan.symbol}; {_SETTING} {shading}{corrected}"
