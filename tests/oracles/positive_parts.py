"""E[(G_1 + ... + G_n)_+] / n in multiprecision: listed outcome by outcome, or on a lattice.

G is ``base + differences[i]`` with probability ``masses[i]`` and ``base`` otherwise, all taken as
the exact values of the doubles.
"""

import math
from collections.abc import Sequence

from mpmath import mp, mpf

mp.dps = 60


def fair_walk(num_terms: int) -> mpf:
    """The same for +-1 with equal chances: binomial(n - 1, floor((n - 1) / 2)) / 2^n."""
    return mp.binomial(num_terms - 1, (num_terms - 1) // 2) / mpf(2) ** num_terms


def listed(
    num_terms: int, base: float, masses: Sequence[float], differences: Sequence[float]
) -> mpf:
    """All numbers of terms of each kind, one by one; binomial(n + m, m) of them."""
    exact = [mpf(float(mass)) for mass in masses]
    values = [mpf(float(difference)) for difference in differences]
    rest_mass = 1 - mp.fsum(exact)
    shares = [
        [mass**count / mp.factorial(count) if count else mpf(1) for count in range(num_terms + 1)]
        for mass in (*exact, rest_mass)
    ]

    def total(index: int, remaining: int, value: mpf, weight: mpf) -> mpf:
        if weight == 0:
            return mpf(0)
        if index == len(values):
            return weight * shares[index][remaining] * value if value > 0 else mpf(0)
        return mp.fsum(
            total(
                index + 1,
                remaining - count,
                value + count * values[index],
                weight * shares[index][count],
            )
            for count in range(remaining + 1)
        )

    start = num_terms * mpf(float(base))
    return total(0, num_terms, start, mp.factorial(num_terms)) / num_terms


def rare_hits(num_terms: int, base: float, mass: float, difference: float) -> mpf:
    """One other value, seldom taken: a plain sum over how often, up to 200 times."""
    kept = mp.log1p(-mpf(mass))
    return (
        mp.fsum(
            mp.binomial(num_terms, hits)
            * mpf(mass) ** hits
            * mp.exp((num_terms - hits) * kept)
            * max(num_terms * mpf(base) + hits * mpf(difference), mpf(0))
            for hits in range(min(num_terms, 200) + 1)
        )
        / num_terms
    )


def on_a_lattice(
    num_terms: int, base: float, masses: Sequence[float], multiples: Sequence[int], unit: float
) -> mpf:
    """Differences are coprime ``multiples`` of ``unit``: an integral over one period, any n.

    With K the sum of the multiples and x = n base / unit, E[(K + x)_+] is the mean over one period
    of M(z) times the sum of (k + x) e^(-z k) over all k > -x, which is a geometric series. The
    trapezoidal rule errs by aliases below e^-45. Where the period has too many nodes, the law must
    be spread so finely that the integrand dies out at once.
    """
    exact = [mpf(float(mass)) for mass in masses]
    offset = num_terms * mpf(float(base)) / mpf(unit)

    def moments(theta: mpf) -> tuple[mpf, mpf]:
        weights = [mass * mp.exp(theta * k) for mass, k in zip(exact, multiples, strict=True)]
        scale = 1 - mp.fsum(exact) + mp.fsum(weights)
        mean = mp.fsum(w * k for w, k in zip(weights, multiples, strict=True)) / scale
        square = mp.fsum(w * k * k for w, k in zip(weights, multiples, strict=True)) / scale
        return mean, square - mean * mean

    low, high = mpf(10) ** -40, mpf(600) / max(abs(k) for k in multiples)
    for _ in range(150):
        theta = mp.sqrt(low * high)
        if num_terms * moments(theta)[0] + offset > 2 / theta:
            high = theta
        else:
            low = theta
    variance = num_terms * moments(theta)[1]
    first = int(mp.floor(-offset)) + 1

    def integrand(t: mpf) -> mpf:
        z = mp.mpc(theta, t)
        growth = mp.fsum(m * mp.expm1(z * k) for m, k in zip(exact, multiples, strict=True))
        ratio = mp.exp(-z)
        series = (first + offset) / (1 - ratio) + ratio / (1 - ratio) ** 2
        return (mp.exp(num_terms * mp.log(1 + growth) - z * first) * series).real

    num_nodes = int(mp.ceil(40 * mp.sqrt(variance + 1 / theta**2) + 45 / theta))
    step = 2 * mp.pi / num_nodes
    last = num_nodes // 2
    if num_nodes > 3000:
        spread = [k for mass, k in zip(exact, multiples, strict=True) if num_terms * mass > 1e4]
        assert math.gcd(*spread) == 1, "the modulus comes back to one within the period"
        last = min(last, int(40 / (mp.sqrt(variance) * step)))
    total = integrand(mpf(0))
    for node in range(1, last + 1):
        total += integrand(step * node) * (1 if 2 * node == num_nodes else 2)
    return total / num_nodes * mpf(unit) / num_terms
