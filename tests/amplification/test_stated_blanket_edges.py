import itertools
import math

import pytest
from mpmath import mp, mpf

from oracles import profiles
from oracles.multiprecision import blanket_delta
from oracles.stated_blankets import hashing_atoms, k_rr_atoms, merged, stated
from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.amplification.stated_blanket import (
    STATED_BLANKET,
    dominating_laws,
    violated_hypothesis,
)
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

NAME = "stated-blanket"


def own_delta(profile, num_users, epsilon):
    return account_delta(profile, num_users=num_users, epsilon=epsilon, method=NAME).upper


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize(
    ("epsilon0", "num_users"),
    [
        *itertools.product((1e-13, 1e-9, 1e-3, 1.0, 12.0, 40.0, 120.0, 199.0), (1, 2, 5000)),
        *itertools.product((1e-9, 5.0, 40.0), (10**12,)),
    ],
)
def test_edges(epsilon0, num_users):
    # gamma = 1 - O(epsilon0) at the first, next to no blanket at the last
    p = math.exp(epsilon0)
    profile = stated(epsilon0, hashing_atoms(p, 5))
    assert violated_hypothesis(profile) is None
    for delta in (1e-300, 1e-10, 0.3) if num_users < 10**12 else (1e-10,):
        bound = account_epsilon(profile, num_users=num_users, delta=delta)
        clones = account_epsilon(
            LocalProfile(epsilon0=epsilon0), num_users=num_users, delta=delta, with_lower=False
        )
        assert 0.0 <= bound.upper <= clones.upper
    for share in (0.0, 0.5, 1.0 - 1e-9):
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon0 * share)
        assert SMALLEST_DELTA <= bound.upper <= 1.0
        # One user alone: (p - e) times the mass of a report that tells.
        if num_users == 1:
            with mp.workdps(60):
                exact = (
                    profile.blanket[0].mass
                    * mp.exp(mpf(epsilon0))
                    * -mp.expm1(mpf(epsilon0 * share) - mpf(epsilon0))
                )
            assert bound.upper >= exact * (1.0 - 1e-9)
            # 5e-15 of every ratio, which shows where ratios cancel
            slack = 2e-14 * (1.0 + profile.blanket[0].mass * p)
            assert bound.upper <= exact * (1.0 + 1e-8) + slack + SMALLEST_DELTA


@pytest.mark.parametrize("epsilon0", [5e-324, 1e-300, 1e-17])
def test_where_the_ratios_round_to_one_no_pair_is_left(epsilon0):
    profile = stated(epsilon0, hashing_atoms(1.0, 5))
    assert "tell the two inputs apart" in violated_hypothesis(profile)
    bound = account_delta(profile, num_users=10, epsilon=0.0)
    assert bound.method in ("clones", "local")


def test_from_epsilon0_on_nothing_is_left():
    # The dominating law has ratios a little above e^epsilon0; the true one has not.
    profile = stated(math.log(3.0), [(0.1, 3.0, 2.0), (0.1, 1.0, 2.0), (0.6, 1.0, 1.0)])
    for epsilon in (profile.epsilon0, 5.0):
        assert STATED_BLANKET.delta(profile, 10, epsilon) == Enclosure(0.0, 0.0)


def test_extreme_epsilon0_is_no_crash():
    for epsilon0 in (0.0, 201.0, 800.0, 1e308):
        profile = stated(epsilon0, [(0.5, 1.0, 1.0), (0.5, 1.0, 1.0)])
        assert account_epsilon(profile, num_users=10, delta=1e-6).upper <= epsilon0
        ratio = math.exp(min(epsilon0, 700.0))
        one = stated(epsilon0, k_rr_atoms(ratio, 3))
        assert account_epsilon(one, num_users=10, delta=1e-6).upper <= epsilon0


# ------------------------------------------------------------------ refused

PAIR = [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)]


def refused(atoms, match):
    epsilon0 = math.log(3.0)
    profile = stated(epsilon0, atoms)
    for ask in (
        lambda: account_delta(profile, num_users=10, epsilon=0.1, method=NAME),
        lambda: account_epsilon(profile, num_users=10, delta=0.1, method=NAME),
    ):
        with pytest.raises(OutOfRegimeError, match=match):
            ask()
    # and it is never used on the quiet
    bound = account_delta(profile, num_users=10, epsilon=0.1)
    clones = account_delta(LocalProfile(epsilon0=epsilon0), num_users=10, epsilon=0.1)
    assert bound.method == "clones"
    assert bound.upper == clones.upper
    assert bound.lower is None


@pytest.mark.parametrize("mass", [-1e-3, math.nan, math.inf, -math.inf, 1.5])
def test_masses_are_probabilities(mass):
    refused([*PAIR, (mass, 1.0, 1.0)], r"stated masses in \[0, 1\]")


@pytest.mark.parametrize("ratio", [0.0, -1.0, 0.999, 3.001, 1e300, math.nan, math.inf, -math.inf])
def test_ratios_lie_between_one_and_the_local_one(ratio):
    refused([*PAIR, (0.1, ratio, ratio)], "stated likelihood ratios in")
    refused([*PAIR, (0.1, 1.0, ratio)], "stated likelihood ratios in")


def test_masses_add_up_to_at_most_one():
    refused([*PAIR, (0.4, 1.0, 1.0), (0.2, 1.0, 1.0)], "add up to at most 1")


@pytest.mark.parametrize("scale", [0.5, 0.999, 1.001, 1.0 + 5e-9])
def test_means_are_one(scale):
    atoms = [(mass * scale, *ratios) for mass, *ratios in k_rr_atoms(3.0, 4)]
    refused(atoms, "mean 1")


def test_the_mean_of_each_ratio_counts():
    refused([(0.3, 3.0, 1.0), (0.25, 1.0, 3.0)], "mean 1")


@pytest.mark.parametrize("mass", [0.0, 1e-295])
def test_something_must_tell_the_inputs_apart(mass):
    refused([(mass, 3.0, 1.0), (mass, 1.0, 3.0), (1.0, 1.0, 1.0)], "tell the two inputs apart")


def test_no_blanket_of_approximate_randomizers():
    profile = LocalProfile(
        epsilon0=math.log(3.0), delta0=1e-9, family=RandomizerFamily.OTHER,
        blanket=stated(math.log(3.0), k_rr_atoms(3.0, 4)).blanket,
    )  # fmt: skip
    assert "delta0 = 0" in violated_hypothesis(profile)


@pytest.mark.parametrize(
    "atoms",
    [
        [(0.2, 2.0, 1.0), (0.1, 1.0, 3.0)],
        [(0.1, 3.0, 2.0), (0.1, 1.0, 2.0)],
        [(0.1, 3.0, 1.0), (0.1, 1.0, 3.0), (0.1, 2.0, 1.0), (0.1, 1.0, 2.0)],
        # A ratio a rounding apart is not neutral: at a small epsilon0 it could be the pair.
        [(0.1, 3.0, 1.0), (0.1, 1.0, 3.0), (0.6, 1.0, 1.0 + 2.0**-52)],
        # nothing but gains beside one large loss
        [(0.25, 1.5, 1.0), (0.0625, 1.0, 3.0)],
    ],
)
def test_rich_and_asymmetric_blankets_are_bounded(atoms):
    left = 1.0 - sum(mass * ratio0 for mass, ratio0, _ in atoms)
    profile = stated(math.log(3.0), [*atoms, (left, 1.0, 1.0)])
    assert violated_hypothesis(profile) is None
    mirrored = [(atom.mass, atom.ratio1, atom.ratio0) for atom in profile.blanket]
    for epsilon in (0.0, 0.3, 1.0):
        exact = max(
            blanket_delta(merged(each), epsilon, 5)
            for each in ([(a.mass, a.ratio0, a.ratio1) for a in profile.blanket], mirrored)
        )
        upper = own_delta(profile, 5, epsilon)
        assert exact <= upper <= exact * (1.0 + 1e-6) + 1e-9
        assert upper == own_delta(stated(profile.epsilon0, mirrored), 5, epsilon)


def test_a_blanket_that_is_its_own_mirror_needs_one_order():
    atoms = [(0.1, 3.0, 1.0), (0.1, 1.0, 3.0), (0.1, 2.0, 1.0), (0.1, 1.0, 2.0), (0.3, 1.0, 1.0)]
    assert len(dominating_laws(stated(math.log(3.0), atoms))) == 1
    assert len(dominating_laws(stated(math.log(3.0), [*atoms[:3], (0.4, 1.0, 1.0)]))) == 2
    assert len(dominating_laws(stated(math.log(3.0), [(0.5, 2.0, 1.0), (0.5, 1.0, 1.0)]))) == 2
    # beyond the floats of e^epsilon0 ratios are what they are stated to be
    (law,) = dominating_laws(stated(201.0, [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)]))
    assert law.ratios0.max() == pytest.approx(3.0, rel=1e-8)


def test_where_everything_is_told_delta_is_at_most_one():
    # A report alone in the crowd, at epsilon = 0: 1 to all digits, and not a digit more.
    for epsilon0 in (30.0, 100.0, 199.0):
        profile = stated(epsilon0, k_rr_atoms(math.exp(epsilon0), 2))
        assert own_delta(profile, 1, 0.0) == 1.0


@pytest.mark.parametrize(
    "profile",
    [
        profiles.any_randomizer(1.0),
        profiles.k_rr(1.0, 4),
        profiles.symmetric_unary(1.0, 4),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(
            epsilon0=1.0,
            blanket=(BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),),
        ),
    ],
)
def test_only_for_randomizers_that_state_a_blanket(profile):
    with pytest.raises(OutOfRegimeError, match="states its blanket"):
        account_epsilon(profile, num_users=10, delta=0.1, method=NAME)


# ------------------------------------------------------------------ what a bound says


def test_what_it_rests_on_is_said():
    profile = stated(math.log(3.0), hashing_atoms(3.0, 4), 9)
    bound = account_epsilon(profile, num_users=1000, delta=1e-6)
    assert bound.method == NAME
    assert bound.lower is None
    assert any("ten digits" in sentence for sentence in bound.assumptions)
    assert METHODS[NAME].source == bound.source


@pytest.mark.parametrize("size", [None, 2, 3, 50])
@pytest.mark.parametrize("blanket", [True, False])
def test_no_data_are_known_that_are_as_bad(size, blanket):
    atoms = hashing_atoms(3.0, 4) if blanket else []
    profile = stated(math.log(3.0), atoms, size)
    assert account_epsilon(profile, num_users=100, delta=1e-6).lower is None
    assert account_delta(profile, num_users=100, epsilon=0.1).lower is None
    # A particular randomizer need not reach the epsilon0 that bounds it.
    at_zero = account_epsilon(profile, num_users=100, delta=0.0)
    assert (at_zero.lower, at_zero.upper) == (None, profile.epsilon0)
