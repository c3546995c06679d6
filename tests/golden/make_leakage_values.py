"""Write ``leakage_values.json``: vulnerabilities of shuffled reports, rounded to doubles.

Run from the tests folder: ``python -m golden.make_leakage_values``. Takes half a minute.

Uniform priors: the largest count of n by the exponential generating function of bounded counts, in
integers; two values beyond that from the beta function at sixty digits. Other priors and channels:
all histograms in fractions, from the posterior of the target's value given the histogram.
"""

import json
import math
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

TARGET = Path(__file__).with_name("leakage_values.json")

UNIFORM = [(5, 3), (20, 4), (100, 3), (60, 7), (12, 40), (1000, 3)]
BINARY = [10, 201, 10**4, 10**6, 10**9 + 1, 10**15]
TRUTHS = [1.0, 0.8, 0.5]

EXCHANGEABLE = [
    (30, [[8, 1, 1], [1, 8, 1], [1, 1, 8]], [5, 3, 2], None),
    (30, [[8, 1, 1], [1, 8, 1], [1, 1, 8]], [5, 3, 2], [2, 2, 6]),
    (40, [[5, 3, 2], [2, 3, 5], [3, 4, 3]], [1, 1, 1], None),
    (14, [[4, 3, 2, 1], [1, 2, 3, 4], [1, 4, 4, 1]], [2, 1, 2], [1, 1, 1, 1]),
    (25, [[6, 4, 0], [1, 4, 5], [0, 3, 7]], [4, 4, 2], None),
    (25, [[6, 4, 0], [1, 4, 5], [0, 3, 7]], [4, 4, 2], [1, 1, 0]),
]


def fractions(weights: list[int]) -> list[Fraction]:
    """Weights over their sum."""
    return [Fraction(weight, sum(weights)) for weight in weights]


def power_coefficient(base: list[Fraction], exponent: int, degree: int) -> Fraction:
    """Coefficient of z^degree in base(z)^exponent, base(0) = 1, by its differential equation."""
    powers = [Fraction(1)]
    for j in range(1, degree + 1):
        total = Fraction(0)
        for i in range(1, min(j, len(base) - 1) + 1):
            total += (i * exponent - (j - i)) * base[i] * powers[j - i]
        powers.append(total / j)
    return powers[degree]


def mean_largest(n: int, k: int) -> Fraction:
    """Mean of the largest of k counts of n: sum of Pr[largest > m]."""
    if k == 3 and n > 200:
        return mean_largest_of_three(n)
    total, scale = Fraction(0), Fraction(math.factorial(n), k**n)
    for m in range(n):
        base = [Fraction(1, math.factorial(j)) for j in range(m + 1)]
        total += 1 - scale * power_coefficient(base, k, n)
    return total


def mean_largest_of_three(n: int) -> Fraction:
    """The same for three values, by all histograms, in integers."""
    total = 0
    for i in range(n + 1):
        ways = math.comb(n, i)
        inner = 1
        for j in range(n - i + 1):
            total += ways * inner * max(i, j, n - i - j)
            inner = inner * (n - i - j) // (j + 1)
    return Fraction(total, 3**n)


def binary_shuffled(n: int) -> mpf:
    """1/2 + 2^-n C(n - 1, floor((n - 1)/2))."""
    m, top = (n - 1) // 2, n - 1
    logarithm = mp.loggamma(top + 1) - mp.loggamma(m + 1) - mp.loggamma(top - m + 1)
    return mpf(1) / 2 + mp.exp(logarithm - n * mp.log(2))


def histograms(n: int, size: int):
    """All ways to write n as an ordered sum."""
    if size == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in histograms(n - first, size - 1):
            yield (first, *rest)


def exchangeable(
    n: int, rows: list[list[Fraction]], prior: list[Fraction], crowd: list[Fraction] | None
) -> Fraction:
    """Sum over histograms of the largest joint probability with a value of the target."""
    size = len(rows[0])
    if crowd is None:
        crowd = [sum(q * row[y] for q, row in zip(prior, rows, strict=True)) for y in range(size)]

    def others(histogram: list[int]) -> Fraction:
        if min(histogram) < 0:
            return Fraction(0)
        ways = math.factorial(sum(histogram))
        chance = Fraction(1)
        for count, mass in zip(histogram, crowd, strict=True):
            ways //= math.factorial(count)
            chance *= mass**count
        return ways * chance

    total = Fraction(0)
    for histogram in histograms(n, size):
        left = [others([c - (v == y) for v, c in enumerate(histogram)]) for y in range(size)]
        total += max(
            q * sum(row[y] * left[y] for y in range(size))
            for q, row in zip(prior, rows, strict=True)
        )
    return total


def main() -> None:
    """Compute everything and write the file."""
    mp.dps = 60
    shuffled = []
    for truth in TRUTHS:
        p = Fraction(truth)
        for n, k in UNIFORM:
            lie = (1 - p) / (k - 1)
            value = lie + (p - lie) * mean_largest(n, k) / n
            shuffled.append(
                {"num_users": n, "domain_size": k, "truth": truth, "value": float(value)}
            )
        for n in BINARY:
            value = mpf(1) / 2 + (2 * mpf(truth) - 1) * (binary_shuffled(n) - mpf(1) / 2)
            shuffled.append(
                {"num_users": n, "domain_size": 2, "truth": truth, "value": float(value)}
            )
    general = [
        {
            "num_users": n,
            "channel": rows,
            "prior": prior,
            "crowd": crowd,
            "value": float(
                exchangeable(
                    n,
                    [fractions(row) for row in rows],
                    fractions(prior),
                    None if crowd is None else fractions(crowd),
                )
            ),
        }
        for n, rows, prior, crowd in EXCHANGEABLE
    ]
    values = {"shuffled": shuffled, "exchangeable": general}
    TARGET.write_text(json.dumps(values, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
