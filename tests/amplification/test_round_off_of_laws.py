"""Laws written out in doubles against the same laws in 60 digits: what the contour's budget allows.

docs/results/kernel.md: the relative error of each mass is at most twelve roundings.
"""

import math

import numpy as np
import pytest
from mpmath import exp, mp, mpf, sqrt

from shuffledp.amplification import clones_and_families as families
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# A mass may be a cube of e^(-epsilon0 / 2), which takes up to 10.4 where exp is off by an ulp,
# as tests/perturbed.py makes it. The contour allows 16, and one more for each mass.
ROUNDINGS = 12.0

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


def blanket(p, family):
    q, low = noise(p, family)
    return 2 * low * q * (1 - q), low * q**2, low * (1 - q) ** 2, 1 - low


def third_value(p, family):
    q, _ = noise(p, family)
    return 2 * q * (1 - q), q**2, (1 - q) ** 2


def unary(make, exact, family):
    def found(epsilon0):
        return make(LocalProfile(epsilon0=epsilon0, family=family, domain_size=4))

    return found, lambda p: exact(p, family)


LAWS = {
    "clones": (families.clone_law, lambda p: (2 / (p + 1), (p - 1) / (p + 1))),
    "weak clones": (families.weak_clone_law, lambda p: (1 / p, 1 - 1 / p)),
    **{
        f"k-rr {k}": (lambda e, k=k: families.k_rr_law(e, k), lambda p, k=k: k_rr(p, k))
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
            (families.unary_law, blanket),
            (families.third_value_law, third_value),
        )
        for family in (SYMMETRIC, OPTIMIZED)
    },
}


def worst_error(law, exact):
    """The largest relative error of a mass, in roundings; half of the pair's first stands twice."""
    wanted = [exact[0] / 2, exact[0] / 2, *(mass for mass in exact[1:] if mass > 0)]
    assert len(wanted) == law.masses.size
    errors = [abs(mpf(float(m)) / mass - 1) for m, mass in zip(law.masses, wanted, strict=True)]
    return float(max(errors)) * 2**53


@pytest.mark.parametrize("name", LAWS)
def test_round_off_of_a_law_stays_within_the_budget_of_the_contour(name):
    make, exact_masses = LAWS[name]
    generator = Entropy.from_seed(16).generator()
    with mp.workdps(60):
        for epsilon0 in np.exp(generator.uniform(math.log(1e-8), math.log(200.0), 300)).tolist():
            law = make(epsilon0)
            assert worst_error(law, exact_masses(exp(mpf(epsilon0)))) <= ROUNDINGS
            assert abs(law.masses.sum() - 1.0) <= ROUNDINGS * 2.0**-53


def test_a_law_that_is_off_by_more_roundings_is_noticed():
    """Negative control."""
    law = families.symmetric_law(1.0, low=1.0, pair_mass=0.5 * (1 + 4e-15), others=[(0.5, 0.0)])
    assert worst_error(law, (mpf(0.5), mpf(0.5))) > ROUNDINGS
