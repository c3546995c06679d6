"""Write ``accountant_values.json``: reference values at sixty digits, rounded to doubles.

Run from the tests folder: ``python -m golden.make_accountant_values``. Takes about a minute.
"""

import json
from pathlib import Path

from mpmath import mp, mpf

from oracles.multiprecision import binary_delta, blanket_delta, clone_atoms, k_rr_atoms

TARGET = Path(__file__).with_name("accountant_values.json")


def binomial_pmf(n: int, k: int, p: float) -> mpf:
    """Pr[Bin(n, p) = k] for the exact value of the double p."""
    chance = mpf(p)
    logarithm = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
    return mp.exp(logarithm + k * mp.log(chance) + (n - k) * mp.log(1 - chance))


def two_binomials(high: int, low: int, q: float, s: int) -> list[mpf]:
    """Pr[S = s - 1], Pr[S = s], Pr[S = s + 1], Pr[S <= s - 1] by convolution."""

    def law(n: int, p: mpf) -> list[mpf]:
        points = [(1 - p) ** n]
        for k in range(n):
            points.append(points[-1] * p / (1 - p) * (n - k) / (k + 1))
        return points

    chance = mpf(q)
    first, second = law(high, 1 - chance), law(low, chance)
    cumulated = [mpf(0)]
    for point in second:
        cumulated.append(cumulated[-1] + point)

    def point_at(total: int) -> mpf:
        return mp.fsum(
            first[i] * second[total - i] for i in range(max(0, total - low), min(high, total) + 1)
        )

    tail = mp.fsum(
        first[i] * cumulated[min(s - 1 - i, low) + 1] for i in range(min(high, s - 1) + 1)
    )
    return [point_at(s - 1), point_at(s), point_at(s + 1), tail]


def _pmf_cases() -> list[list[float]]:
    cases = []
    for n in (1, 2, 7, 100, 12_345, 10**6, 10**9, 10**12, 10**15):
        for p in (1e-12, 0.01, 0.25, 0.5, 0.9, 1.0 - 2.0**-30):
            mean, deviation = n * p, (n * p * (1.0 - p)) ** 0.5
            for distance in (-30.0, -3.0, 0.0, 1.0, 10.0, 35.0):
                k = round(mean + distance * deviation)
                if 0 <= k <= n:
                    cases.append([n, k, p, float(binomial_pmf(n, k, p))])
    unique = {(n, k, p): value for n, k, p, value in cases if value > 1e-290}
    return [[*key, value] for key, value in unique.items()]


def _two_binomial_cases() -> list[list[float]]:
    cases = []
    for high, low in ((0, 1), (1, 0), (3, 4), (40, 0), (0, 300), (150, 149), (10, 900)):
        for q in (1e-9, 0.05, 0.3, 0.4999):
            mean = high * (1.0 - q) + low * q
            deviation = ((high + low) * q * (1.0 - q)) ** 0.5
            for distance in (-8.0, -4.0, -1.0, 0.0, 1.0):
                s = min(max(round(mean + distance * deviation), 1), high + low)
                cases.append((high, low, q, s))
    return [[*case, *map(float, two_binomials(*case))] for case in sorted(set(cases))]


def _blanket_cases() -> list[dict[str, float | int | str]]:
    cases = []
    for epsilon0 in (0.1, 1.0, 4.0, 12.0, 30.0, 40.0):
        for share in (0.0, 0.1, 0.5, 0.9, 0.97, 1.0 - 1e-6, 1.0 - 1e-12, 1.0 - 2.0**-52):
            epsilon = epsilon0 * share
            for n in (1, 2, 10, 60):
                exact = blanket_delta(clone_atoms(epsilon0), epsilon, n)
                cases.append({"family": "any", "epsilon0": epsilon0, "epsilon": epsilon,
                              "num_users": n, "delta": float(exact)})  # fmt: skip
            for n in (1, 2, 10):
                exact = binary_delta(epsilon0, epsilon, n)
                cases.append({"family": "2-rr", "epsilon0": epsilon0, "epsilon": epsilon,
                              "num_users": n, "delta": float(exact)})  # fmt: skip
            for n in (1, 2, 12):
                exact = blanket_delta(k_rr_atoms(epsilon0, 5), epsilon, n)
                cases.append({"family": "5-rr", "epsilon0": epsilon0, "epsilon": epsilon,
                              "num_users": n, "delta": float(exact)})  # fmt: skip
    return cases


def main() -> None:
    """Compute everything and write the file."""
    values = {
        "binomial_pmf": _pmf_cases(),
        "two_binomials": _two_binomial_cases(),
        "blanket": _blanket_cases(),
    }
    lines = [
        f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]"
        for name, cases in values.items()
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


if __name__ == "__main__":
    main()
