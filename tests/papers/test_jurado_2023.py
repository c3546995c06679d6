"""Values of the figures: closed forms, enumeration, what the paper prints."""

import csv
import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

pytest.importorskip("matplotlib")

from jurado_2023 import (
    APPROXIMATION,
    BOTH,
    FIGURES,
    NOTHING,
    PUBLISHED,
    RANDOMIZER,
    SHUFFLER,
    printed_equation,
)
from paper import Settings, main
from shuffledp import Entropy
from shuffledp.leakage import strong_vulnerability

# A few roundings of an enclosure.
TOLERANCE = 1e-10


def figure(name, *, quick=False):
    return FIGURES[name](Settings(quick=quick), Entropy.from_seed(1))


def points(chart, kind, variant):
    (line,) = (each for each in chart.lines if (each.kind, each.variant) == (kind, variant))
    return dict(zip(line.x, line.y, strict=True)) if line.x else line.y[0]


def shuffled(num_users, domain_size):
    """Return the exact vulnerability of S by going through all histograms."""
    total = Fraction(0)
    for parts in itertools.product(range(num_users + 1), repeat=domain_size - 1):
        last = num_users - sum(parts)
        if last >= 0:
            ways = math.factorial(num_users)
            for part in (*parts, last):
                ways //= math.factorial(part)
            total += Fraction(ways * max(*parts, last), num_users)
    return total / domain_size**num_users


def noisy(num_users, domain_size, truth):
    """Return V_NS from V_S by equation 17."""
    other = (1 - truth) / (domain_size - 1)
    return float(other + (truth - other) * shuffled(num_users, domain_size))


def test_figure_2():
    made = figure("2")
    for p in (1.0, 0.9, 0.8, 0.7, 0.6):
        for chart in made.charts:
            curve = points(chart, BOTH, f"p = {p:g}")
            for n in curve:
                size = int(n)
                excess = Fraction(math.comb(size - 1, (size - 1) // 2), 2**size)
                assert curve[n] == pytest.approx(0.5 + (2 * p - 1) * float(excess), abs=TOLERANCE)
        assert points(made.charts[0], RANDOMIZER, f"p = {p:g}") == p
    assert list(points(made.charts[0], BOTH, "p = 1")) == list(range(1, 201))
    at_200 = {p: points(made.charts[1], BOTH, f"p = {p}")[200.0] for p in ("1", "0.9", "0.6")}
    assert {p: f"{value:.4f}" for p, value in at_200.items()} == {
        "1": "0.5282",
        "0.9": "0.5225",
        "0.6": "0.5056",
    }
    marked = [row for row in made.rows() if row["mark"]]
    assert [(row["figure"], row["x"], row["printed"]) for row in marked] == [
        ("2b", 200.0, "0.5286")
    ]
    assert "Corrected: at n = 200" in " ".join(made.caption.split())


def brute_strong(num_others, num_a, truth):
    """Return (1/2) sum_y max_x NS[x, y] by going through all reports."""
    laws = []
    for target in (0, 1):
        law = Counter()
        values = [target] + [0] * num_a + [1] * (num_others - num_a)
        for reports in itertools.product((0, 1), repeat=num_others + 1):
            chance = Fraction(1)
            for value, report in zip(values, reports, strict=True):
                chance *= truth if value == report else 1 - truth
            law[sum(reports)] += chance
        laws.append(law)
    return sum(max(laws[0][y], laws[1][y]) for y in range(num_others + 2)) / 2


def test_figure_3():
    made = figure("3", quick=True)
    curve = points(made.charts[0], BOTH, "p = 0.8")
    assert list(curve) == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert (f"{curve[0.0]:.5f}", f"{curve[50.0]:.5f}") == ("0.52111", "0.52116")
    assert curve[25.0] == pytest.approx(curve[75.0], rel=1e-12)
    assert set(points(made.charts[0], BOTH, "p = 1").values()) == {1.0}
    assert points(made.charts[1], BOTH, "p = 0.8") == curve
    assert not [row for row in made.rows() if row["mark"]]
    assert {row["printed"] for row in made.rows()} == {"", "0.52111", "0.52116"}
    assert "0.0703" in made.correction


def test_strong_adversary_by_enumeration():
    for num_a in range(6):
        exact = brute_strong(5, num_a, Fraction(4, 5))
        assert strong_vulnerability(0.8, (num_a, 5 - num_a)).upper == pytest.approx(float(exact))


def test_knowledge_matters_in_the_fourth_digit_at_most():
    for truth in (0.9, 0.8, 0.7, 0.6):
        ends = [strong_vulnerability(truth, (each, 200 - each)).upper for each in range(201)]
        assert max(ends) - min(ends) < 5e-4
        assert truth < 0.9 or max(ends) - min(ends) > 2e-4
    made = FIGURES["3"](Settings(quick=True), Entropy.from_seed(1))
    assert "in the fourth digit at most" in " ".join(made.caption.split())


def test_the_printed_equation_is_no_vulnerability():
    assert printed_equation(0, 1.0) == 1.0
    law = convolved(binomial(100, 0.8), binomial(100, 0.2))
    rows = [max(convolved(law, each)) for each in ((0.2, 0.8), (0.8, 0.2))]
    assert printed_equation(100, 0.8) == pytest.approx(sum(rows) / 2, rel=1e-12)
    assert printed_equation(100, 0.8) < 0.5


def binomial(n, p):
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def convolved(one, other):
    sums = [0.0] * (len(one) + len(other) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(one), enumerate(other)):
        sums[i + j] += a * b
    return sums


def test_figure_4():
    (chart,) = figure("4", quick=True).charts
    for p in (Fraction(1), Fraction(4, 5), Fraction(3, 5), Fraction(2, 5)):
        name = f"p = {float(p):g}"
        curve = points(chart, BOTH, name)
        assert list(curve) == [1.0, 2.0, 20.0, 200.0]
        assert curve[1.0] == pytest.approx(float(p), abs=TOLERANCE)
        assert curve[20.0] == pytest.approx(noisy(20, 5, p), abs=TOLERANCE)
        assert points(chart, RANDOMIZER, name) == float(p)
    assert points(chart, NOTHING, "") == 0.2


def test_figure_5():
    made = figure("5", quick=True)
    (chart,) = made.charts
    for k in (2, 3, 4):
        curve = points(chart, SHUFFLER, f"k = {k}")
        assert list(curve) == [10.0, 100.0, 1000.0]
        assert curve[10.0] == pytest.approx(float(shuffled(10, k)), abs=TOLERANCE)
        assert points(chart, NOTHING, f"k = {k}") == pytest.approx(1 / k)
    three = points(chart, SHUFFLER, "k = 3")
    assert (f"{three[100.0]:.4f}", f"{three[1000.0]:.4f}") == ("0.3826", "0.3488")
    assert three[100.0] == pytest.approx(float(shuffled(100, 3)), abs=TOLERANCE)
    assert {row["printed"] for row in made.rows()} == {"", "0.3826", "0.3488"}


def test_figure_6():
    chart, ratio = figure("6", quick=True).charts
    exact = points(chart, SHUFFLER, "k = 3")
    published = points(chart, PUBLISHED, "k = 3")
    ours = points(chart, APPROXIMATION, "k = 3")
    for n in exact:
        assert published[n] == pytest.approx(1 / 3 + math.sqrt(math.log(3) / (3 * n)))
        # The largest of three normals has mean 3/(2 sqrt(pi)) and mean square 1 + sqrt(3)/(2 pi).
        mean, square = 1.5 / math.sqrt(math.pi), 1 + math.sqrt(3) / (2 * math.pi)
        expected = 1 / 3 + mean / math.sqrt(3 * n) + (square - 1) / (6 * n)
        assert ours[n] == pytest.approx(expected, rel=1e-9)
        assert abs(ours[n] - exact[n]) < 0.1 * abs(published[n] - exact[n])
    published_ratio = points(ratio, PUBLISHED, "k = 3")
    assert list(published_ratio) == [10.0, 3162.0, 10.0**6]
    # f tends to mu / sqrt(ln k), not to 1.
    assert published_ratio[10.0**6] == pytest.approx(math.sqrt(math.log(3)) / mean, rel=1e-3)
    assert points(ratio, APPROXIMATION, "k = 3")[10.0**6] == pytest.approx(1.0, rel=1e-5)


def test_figure_7():
    (chart,) = figure("7", quick=True).charts
    for p in (Fraction(1), Fraction(4, 5), Fraction(3, 5)):
        name = f"p = {float(p):g}"
        exact = points(chart, BOTH, name)
        assert list(exact) == [6.0, 20.0, 200.0]
        assert exact[20.0] == pytest.approx(noisy(20, 4, p), abs=TOLERANCE)
        kept = float((4 * p - 1) / 3)
        for n, value in points(chart, PUBLISHED, name).items():
            assert value == pytest.approx(0.25 + kept * math.sqrt(math.log(4) / (4 * n)))
            assert value > exact[n]  # f = 1 is too large at k = 4
        for n, value in points(chart, APPROXIMATION, name).items():
            assert value == pytest.approx(exact[n], rel=0.02)


def test_the_script(tmp_path, capsys):
    main(FIGURES, ["--quick", "--out", str(tmp_path / "new"), "--figure", "2", "3", "6", "table-4"])
    assert len(list((tmp_path / "new").iterdir())) == 12
    for stem in ("figure-2", "figure-3", "figure-6", "table-4"):
        assert (tmp_path / "new" / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert len((tmp_path / "new" / f"{stem}.txt").read_text().splitlines()) == 1
    with (tmp_path / "new" / "figure-2.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["x"] == "200.0"]
    assert [row["printed"] for row in rows if row["mark"] == "corrected"] == ["0.5286"]
    assert "figure-2.png" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(FIGURES, ["--out", str(tmp_path / "x"), "--figure", "1"])
    assert not (tmp_path / "x").exists()
