"""Forms in p and 1 - p: interpolation is exact, and text and TeX say what they are."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.reproduction.leakage_polynomials import TruthPolynomial

TRUTHS = (Fraction(1, 2), Fraction(3, 5), Fraction(2, 3), Fraction(3, 4), Fraction(0))


@given(st.lists(st.fractions(0, 5, max_denominator=12), min_size=1, max_size=5))
def test_interpolation_finds_the_coefficients(coefficients):
    entry = TruthPolynomial.of(*coefficients)
    truths = TRUTHS[: len(coefficients)]
    assert TruthPolynomial.through(truths, [entry.value(each) for each in truths]) == entry


def test_value():
    entry = TruthPolynomial.of(1, 0, 2, 0)
    assert entry.value(Fraction(3, 4)) == Fraction(27, 64) + 2 * Fraction(3, 64)
    assert entry.value(Fraction(1)) == 1
    assert TruthPolynomial.of(Fraction(1, 3)).value(Fraction(3, 4)) == Fraction(1, 3)


@pytest.mark.parametrize(
    ("coefficients", "text", "tex"),
    [
        ((1, 0, 0, 0), "p^3", "p^3"),
        ((0, 3, 0, 0), "3 p^2 (1-p)", r"3p^2\bar{p}"),
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
    entry = TruthPolynomial.of(*coefficients)
    assert (str(entry), entry.to_tex()) == (text, tex)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_text_means_the_value(coefficients):
    entry = TruthPolynomial.of(*coefficients)
    p = Fraction(2, 7)
    python = str(entry).replace("^", "**").replace(" + ", "+").replace(" ", "*")
    assert eval(python, {"p": p}) == entry.value(p)  # noqa: S307  # of our own text
