"""Tables I to V against the paper's print, typed by hand, and against enumeration."""

import itertools
from fractions import Fraction

import pytest

pytest.importorskip("matplotlib")

from channel_tables import TABLES, Entry, channel_table, make_table
from paper import Settings
from shuffledp import Entropy
from shuffledp.leakage import randomizer_channel, shuffle_channel

# As printed; P and Q stand for p and 1 - p, and what is in brackets is divided by 3.
LETTERS = ["aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb"]
COUNTS = ["aaa", "aab", "aba", "baa", "abb", "bab", "bba", "bbb"]
HISTOGRAMS = ["a:3, b:0", "a:2, b:1", "a:1, b:2", "a:0, b:3"]
NOISE = """
PPP PPQ PPQ PPQ PQQ PQQ PQQ QQQ
PPQ PPP PQQ PQQ PPQ PPQ QQQ PQQ
PPQ PQQ PPP PQQ PPQ QQQ PPQ PQQ
PPQ PQQ PQQ PPP QQQ PPQ PPQ PQQ
PQQ PPQ PPQ QQQ PPP PQQ PQQ PPQ
PQQ PPQ QQQ PPQ PQQ PPP PQQ PPQ
PQQ QQQ PPQ PPQ PQQ PQQ PPP PPQ
QQQ PQQ PQQ PQQ PPQ PPQ PPQ PPP
"""
SHUFFLE = """
1 0 0 0 0 0 0 0
0 1/3 1/3 0 1/3 0 0 0
0 1/3 1/3 0 1/3 0 0 0
0 0 0 1/3 0 1/3 1/3 0
0 1/3 1/3 0 1/3 0 0 0
0 0 0 1/3 0 1/3 1/3 0
0 0 0 1/3 0 1/3 1/3 0
0 0 0 0 0 0 0 1
"""
REDUCED_SHUFFLE = """
1 0 0 0
0 1 0 0
0 1 0 0
0 0 1 0
0 1 0 0
0 0 1 0
0 0 1 0
0 0 0 1
"""
BOTH = """
PPP PPQ PPQ PPQ PQQ PQQ PQQ QQQ
PPQ [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] PQQ
PPQ [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] PQQ
PPQ [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] PQQ
PQQ [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] PPQ
PQQ [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] PPQ
PQQ [2PPQ+QQQ] [2PPQ+QQQ] [2PPQ+QQQ] [PPP+2PQQ] [PPP+2PQQ] [PPP+2PQQ] PPQ
QQQ PQQ PQQ PQQ PPQ PPQ PPQ PPP
"""
TO_HISTOGRAMS = """
PPP 3PPQ 3PQQ QQQ
PPQ PPP+2PQQ 2PPQ+QQQ PQQ
PPQ PPP+2PQQ 2PPQ+QQQ PQQ
PPQ PPP+2PQQ 2PPQ+QQQ PQQ
PQQ 2PPQ+QQQ PPP+2PQQ PPQ
PQQ 2PPQ+QQQ PPP+2PQQ PPQ
PQQ 2PPQ+QQQ PPP+2PQQ PPQ
"""
REDUCED_NOISE = """
PPP 3PPQ 3PQQ QQQ
PPQ [PPP+2PQQ] [2PPQ+QQQ] PQQ
PQQ [2PPQ+QQQ] [PPP+2PQQ] PPQ
QQQ 3PQQ 3PPQ PPP
"""
PRINTED = {
    "table-1a": (COUNTS, COUNTS, NOISE),
    "table-1b": (LETTERS, LETTERS, SHUFFLE),
    "table-1c": (LETTERS, HISTOGRAMS, REDUCED_SHUFFLE),
    "table-2": (COUNTS, COUNTS, BOTH),
    "table-3": (COUNTS, HISTOGRAMS, TO_HISTOGRAMS + "QQQ 3PPQ 3PQQ PPP"),
    "table-4": (HISTOGRAMS, HISTOGRAMS, REDUCED_NOISE),
    "table-5": (COUNTS, HISTOGRAMS, TO_HISTOGRAMS + "QQQ 3PQQ 3PPQ PPP"),
}
CORRECTED = {
    "table-3": {("bbb", "a:2, b:1"): "3PQQ", ("bbb", "a:1, b:2"): "3PPQ"},
    "table-4": {
        ("a:2, b:1", "a:2, b:1"): "PPP+2PQQ",
        ("a:2, b:1", "a:1, b:2"): "2PPQ+QQQ",
        ("a:1, b:2", "a:2, b:1"): "2PPQ+QQQ",
        ("a:1, b:2", "a:1, b:2"): "PPP+2PQQ",
    },
}
POINTS = (Fraction(3, 4), Fraction(1), Fraction(1, 2), Fraction(9, 10), Fraction(5, 9))


def typed_value(text, p):
    """Return the value of an entry as typed above."""
    if text.startswith("["):
        return typed_value(text.strip("[]"), p) / 3
    if set(text) <= set("01/3") and not set(text) & set("PQ"):
        return Fraction(text)
    total = Fraction(0)
    for term in text.split("+"):
        count = int(term[0]) if term[0].isdigit() else 1
        total += count * p ** term.count("P") * (1 - p) ** term.count("Q")
    return total


def typed(name):
    inputs, outputs, matrix = PRINTED[name]
    rows = [line.split() for line in matrix.strip().splitlines()]
    return {
        (row, column): entry
        for row, entries in zip(inputs, rows, strict=True)
        for column, entry in zip(outputs, entries, strict=True)
    }


def report_probability(dataset, reports, p):
    same = sum(map(str.__eq__, dataset, reports))
    return p**same * (1 - p) ** (3 - same)


def as_histogram(dataset):
    return f"a:{dataset.count('a')}, b:{dataset.count('b')}"


def enumerated(name, given, seen, p):
    """Return an entry by going through all reports and all orders."""
    starts = [given] if ":" not in given else [x for x in COUNTS if as_histogram(x) == given]
    noisy = name not in {"table-1b", "table-1c"}
    shuffled = name in {"table-1b", "table-2"}
    total = Fraction(0)
    for start, reports in itertools.product(starts, COUNTS):
        chance = report_probability(start, reports, p) if noisy else Fraction(start == reports)
        orders = list(itertools.permutations(reports)) if shuffled else [tuple(reports)]
        outcomes = ["".join(order) for order in orders]
        if ":" in seen:
            outcomes = [as_histogram(each) for each in outcomes]
        total += chance * Fraction(outcomes.count(seen), len(outcomes))
    return total / len(starts)


def test_all_tables_are_here():
    assert set(TABLES) == set(PRINTED)


@pytest.mark.parametrize("name", list(PRINTED))
def test_entries(name):
    table = make_table(name)
    expected = typed(name) | CORRECTED.get(name, {})
    assert [*itertools.product(table.plan.inputs, table.plan.outputs)] == list(typed(name))
    for ((row, column), text), entry in zip(expected.items(), sum(table.entries, ()), strict=True):
        for p in POINTS:
            assert entry.value(p) == typed_value(text, p) == enumerated(name, row, column, p)


@pytest.mark.parametrize("name", list(PRINTED))
def test_printed_entries_are_those_of_the_paper(name):
    printed = make_table(name).plan.printed
    assert set(printed) == set(CORRECTED.get(name, {}))
    for place, entry in printed.items():
        assert all(entry.value(p) == typed_value(typed(name)[place], p) for p in POINTS)


def test_either_order():
    p = Fraction(3, 4)
    noise, shuffle = randomizer_channel(3, 2, p), shuffle_channel(3, 2)
    assert (noise @ shuffle).matrix.tolist() == (shuffle @ noise).matrix.tolist()
    assert make_table("table-3").entries == make_table("table-5").entries


def test_rows_of_the_csv():
    rows = list(make_table("table-3").rows())
    assert len(rows) == 32
    marked = [row for row in rows if row["mark"] == "corrected"]
    assert [(row["input"], row["output"], row["entry"], row["printed"]) for row in marked] == [
        ("bbb", "a:2, b:1", "3 p (1-p)^2", "3 p^2 (1-p)"),
        ("bbb", "a:1, b:2", "3 p^2 (1-p)", "3 p (1-p)^2"),
    ]
    # What the paper says below the table.
    assert max(row["value"] for row in rows) == 0.515625
    assert min(row["value"] for row in rows) == 0.015625
    assert {row["printed"] == row["entry"] for row in rows if not row["mark"]} == {True}


def test_caption_and_image(tmp_path):
    table = channel_table("table-3")(Settings(), Entropy.from_seed(1))
    assert "Corrected: row bbb" in table.caption
    assert "shaded" not in make_table("table-1c").caption
    table.draw(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("coefficients", "text", "tex"),
    [
        ((0, 2, 0, 1), "2 p^2 (1-p) + (1-p)^3", r"2p^2\bar{p}+\bar{p}^3"),
        (
            (Fraction(1, 3), 0, Fraction(2, 3), 0),
            "(p^3 + 2 p (1-p)^2)/3",
            r"\left(p^3+2p\bar{p}^2\right)/3",
        ),
        ((0, 0), "0", "0"),
        ((1,), "1", "1"),
        ((Fraction(2, 3),), "2/3", "2/3"),
    ],
)
def test_text(coefficients, text, tex):
    entry = Entry.of(*coefficients)
    assert (str(entry), entry.to_tex()) == (text, tex)
