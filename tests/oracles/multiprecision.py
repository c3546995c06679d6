"""Shuffled divergences at sixty digits, for where doubles cancel: near epsilon0, and far from it.

Every sum here has positive terms only, and epsilon0 and epsilon are the exact values of doubles.
"""

from collections.abc import Sequence

from mpmath import mp, mpf

mp.dps = 60


def ratios(epsilon0: float, epsilon: float) -> tuple[mpf, mpf]:
    """p = e^epsilon0 and e = e^epsilon, each of the exact double."""
    return mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))


def single_report(epsilon0: float, epsilon: float) -> mpf:
    """delta of one report of binary randomized response, (p - e)/(p + 1)."""
    with mp.workdps(400):
        p, e = ratios(epsilon0, epsilon)
        return (p - e) / (p + 1)


def blanket_delta(atoms: Sequence[tuple[mpf, mpf, mpf]], epsilon: float, num_users: int) -> mpf:
    """(B) for a law of atoms (mass, r0, r1), by listing all numbers of reports of each kind.

    The last atom may be left out: what is missing from mass one has ratios (0, 0).
    """
    e = mp.exp(mpf(epsilon))
    missing = 1 - sum((atom[0] for atom in atoms), mpf(0))
    # Round-off in what is missing must not become a report of negative probability.
    outside = missing if missing > mpf(10) ** -50 else mpf(0)

    def total(index: int, remaining: int, gain: mpf, weight: mpf) -> mpf:
        if index == len(atoms):
            if gain <= 0 or (outside == 0 and remaining > 0):
                return mpf(0)
            return weight * outside**remaining / mp.factorial(remaining) * gain
        mass, ratio0, ratio1 = atoms[index]
        value, result = ratio0 - e * ratio1, mpf(0)
        factor = mpf(1)
        for count in range(remaining + 1):
            if count:
                factor *= mass / count
            result += total(index + 1, remaining - count, gain + count * value, weight * factor)
        return result

    return total(0, num_users, mpf(0), mp.factorial(num_users)) / num_users


def clone_atoms(epsilon0: float) -> list[tuple[mpf, mpf, mpf]]:
    """Theory 2.2: X and Y with mass 1/(p + 1) each."""
    p, one = mp.exp(mpf(epsilon0)), mpf(1)
    return [(1 / (p + 1), p, one), (1 / (p + 1), one, p)]


def k_rr_atoms(epsilon0: float, k: int) -> list[tuple[mpf, mpf, mpf]]:
    """Theory 2.3: X, Y with mass a, and 1 - e with mass (k - 2) a."""
    p, one = mp.exp(mpf(epsilon0)), mpf(1)
    a = 1 / (p + k - 1)
    return [(a, p, one), (a, one, p), ((k - 2) * a, one, one)]


def unary_atoms(epsilon0: float, *, optimized: bool) -> list[tuple[mpf, mpf, mpf]]:
    """Theory 2.3, large k: X, Y, p(1 - e) and 1 - e."""
    p, one = mp.exp(mpf(epsilon0)), mpf(1)
    if optimized:
        pair, both, none = 1 / (2 * (p + 1)), 1 / (2 * p * (p + 1)), p / (2 * (p + 1))
    else:
        h = mp.sqrt(p)
        pair, both, none = (h + 1) ** -2, (h + 1) ** -2 / h, h * (h + 1) ** -2
    return [(pair, p, one), (pair, one, p), (both, p, p), (none, one, one)]


def binary_delta(epsilon0: float, epsilon: float, num_users: int) -> mpf:
    """Exact delta of shuffled binary randomized response: the largest over all j."""
    p, e = ratios(epsilon0, epsilon)
    q, others = 1 / (p + 1), num_users - 1
    best = mpf(0)
    for ones in range(num_users):
        law = [mpf(1)]
        for chance in [1 - q] * ones + [q] * (others - ones):
            law = [
                (law[s] * (1 - chance) if s < len(law) else 0) + (law[s - 1] * chance if s else 0)
                for s in range(len(law) + 1)
            ]
        padded = [mpf(0), *law, mpf(0)]
        best = max(
            best,
            sum(
                max(((1 - q) - e * q) * padded[s + 1] - (e * (1 - q) - q) * padded[s], mpf(0))
                for s in range(num_users + 1)
            ),
        )
    return best
