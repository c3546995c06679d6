"""Laws written out in doubles against the same laws in 60 digits: what the kernel's budget allows.

docs/results/kernel.md, "Round-off of the law": an error of p beside 1 - p by eta moves a binomial
mass by eta sqrt(300 n p (1 - p)) of itself at most; the two binomials of a law may have 8e-15
sqrt(n) together.
"""

import math

import numpy as np
import pytest
from mpmath import exp, mp, mpf, sqrt

from shuffledp.accounting.amplification import families, feldman
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily

SYMMETRIC, OPTIMIZED = RandomizerFamily.SYMMETRIC_UNARY, RandomizerFamily.OPTIMIZED_UNARY


def k_rr(p, k):
    return 2 / (p - 1 + k), (k - 2) / (p - 1 + k), (p - 1) / (p - 1 + k)


def third_answer(p, k):
    return 2 / (p - 1 + k), (k - 3) / (p - 1 + k), p / (p - 1 + k)


def noise(p, family):
    """Probability of a set bit, and the smaller likelihood ratio of a bit."""
    if family is SYMMETRIC:
        return 1 / (1 + sqrt(p)), 1 / sqrt(p)
    return 1 / (p + 1), (p + 1) / (2 * p)


def spread(p, family):
    q, low = noise(p, family)
    none_set = low * (1 - q) ** 2
    pair = 2 * low * q * (1 - q)
    return pair, low * q**2 + none_set / p, 1 - low + none_set * (1 - 1 / p)


def lightened(p, family):
    q, low = noise(p, family)
    return 2 * low * q * (1 - q), low * (q**2 + (1 - q) ** 2), 1 - low


def third_value(p, family):
    q, _ = noise(p, family)
    return 2 * q * (1 - q), q**2, (1 - q) ** 2


def unary(make, exact, family):
    def found(epsilon0):
        profile = LocalProfile(epsilon0=epsilon0, family=family, domain_size=4)
        return make(profile)

    return found, lambda p: exact(p, family)


LAWS = {
    "clones": (families.clone_law, lambda p: (2 / (p + 1), mpf(0), (p - 1) / (p + 1))),
    "weak clones": (feldman.weak_clone_law, lambda p: (1 / p, mpf(0), 1 - 1 / p)),
    **{
        f"k-rr {k}": (lambda e, k=k: families.blanket_law(e, k), lambda p, k=k: k_rr(p, k))
        for k in (2, 3, 16, 10_000)
    },
    **{
        f"third of {k}": (
            lambda e, k=k: families.third_answer_law(e, k),
            lambda p, k=k: third_answer(p, k),
        )
        for k in (3, 16, 10_000)
    },
    **{
        f"{make.__name__} {family.name}": unary(make, exact, family)
        for make, exact in (
            (families.spread_law, spread),
            (families.lightened_law, lightened),
            (families.third_value_law, third_value),
        )
        for family in (SYMMETRIC, OPTIMIZED)
    },
}


def apart(first, second, found):
    """How far round-off moves binomial masses, per square root of n: found and exact shares."""
    share = first / (first + second)
    errors = [mpf(each) / exact - 1 if exact else mpf(0) for each, exact in found]
    return abs(errors[0] - errors[1]) * sqrt(300 * share * (1 - share))


@pytest.mark.parametrize("name", LAWS)
def test_round_off_of_a_law_stays_within_the_kernels_budget(name):
    make, exact_masses = LAWS[name]
    generator = Entropy.from_seed(16).generator()
    with mp.workdps(60):
        for epsilon0 in np.exp(generator.uniform(math.log(1e-8), math.log(200.0), 300)).tolist():
            law, (pair, rest, base) = make(epsilon0), exact_masses(exp(mpf(epsilon0)))
            others = mpf(law.rest_mass) + mpf(law.base_mass)
            moved = apart(pair, rest + base, [(law.pair_mass, pair), (others, rest + base)])
            moved += apart(rest, base, [(law.rest_mass, rest), (law.base_mass, base)])
            assert moved <= 8e-15
            assert abs(mpf(law.pair_mass) / pair - others / (rest + base)) <= 6e-16
            total = mpf(law.pair_mass) + others
            assert abs(total - 1) <= 4e-16


def test_a_law_that_is_off_by_a_few_more_roundings_is_noticed():
    """Negative control."""
    pair = mpf(0.5)
    assert apart(pair, pair, [(0.5 * (1 + 1e-15), pair), (0.5, pair)]) > 8e-15
