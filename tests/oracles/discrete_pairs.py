"""Pairs of laws on few outcomes: their divergences, and those of their products, exactly.

A pair is a list of (P-probability, Q-probability). Products are enumerated by the number of times
that each outcome occurs, at sixty digits.
"""

from collections.abc import Sequence
from fractions import Fraction

from mpmath import mp, mpf

from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.numerics.enclosure import Enclosure

mp.dps = 60

Pair = Sequence[tuple[Fraction, Fraction]]


def exact(value: Fraction) -> mpf:
    return mpf(value.numerator) / value.denominator


def divergence(pair: Sequence[tuple[mpf, mpf]], epsilon: float) -> mpf:
    """H(P, Q; e^epsilon) of explicit probabilities."""
    factor = mp.exp(mpf(epsilon))
    return sum((max(p - factor * q, mpf(0)) for p, q in pair), mpf(0))


def power(pair: Pair, count: int) -> list[tuple[mpf, mpf]]:
    """The product of a pair with itself, outcomes merged by how often each occurs."""
    found = [(mpf(1) * mp.factorial(count), mpf(1) * mp.factorial(count), count)]
    for index, (p, q) in enumerate(pair):
        last = index == len(pair) - 1
        found = [
            (
                weight_p * exact(p) ** times / mp.factorial(times),
                weight_q * exact(q) ** times / mp.factorial(times),
                left - times,
            )
            for weight_p, weight_q, left in found
            for times in ([left] if last else range(left + 1))
        ]
    return [(p, q) for p, q, _ in found]


def product(*pairs: Sequence[tuple[mpf, mpf]]) -> list[tuple[mpf, mpf]]:
    """The product of different pairs."""
    found = [(mpf(1), mpf(1))]
    for pair in pairs:
        found = [(p * a, q * b) for p, q in found for a, b in pair]
    return found


def renyi(pair: Sequence[tuple[mpf, mpf]], order: float) -> mpf:
    """Renyi divergence of P from Q, order >= 1; infinite where Q has a zero that P has not."""
    if any(q == 0 < p for p, q in pair):
        return mpf("inf")
    if order == 1:
        return sum((p * mp.log(p / q) for p, q in pair if p > 0), mpf(0))
    alpha = mpf(order)
    total = sum((p**alpha * q ** (1 - alpha) for p, q in pair if p > 0), mpf(0))
    return mp.log(total) / (alpha - 1)


def curve_of(pair: Pair, *, width: float = 1e-13) -> HockeyStickCurve:
    """The curve of a pair as an accountant would know it: up to a relative width."""
    rows = [(exact(p), exact(q)) for p, q in pair]

    def enclosed(laws: Sequence[tuple[mpf, mpf]], epsilon: float) -> Enclosure:
        value = float(divergence(laws, epsilon))
        return Enclosure(value * (1.0 - width), value * (1.0 + width))

    swapped = [(q, p) for p, q in rows]
    ratios = [abs(mp.log(p / q)) if p > 0 and q > 0 else mpf("inf") for p, q in rows if p + q > 0]
    return HockeyStickCurve(
        forward=lambda epsilon: enclosed(rows, epsilon),
        backward=lambda epsilon: enclosed(swapped, epsilon),
        highest=float(max(ratios)) * (1.0 + 1e-15),
    )
