import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting.dummies import least_level_dummies, level_guarantee
from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.bit_sums import BitSums

BARE = LocalProfile(epsilon0=math.inf)
EPSILONS = (0.0, 0.2, 0.6, 1.1, 2.5)


# ------------------------------------------------------------- the views, enumerated
def view_of_level(bits, flip, law):
    """Return the law of (ones, zeros) of one level, dummies included, by plain convolution."""
    table, size = [each / 2**64 for each in law.table], len(bits) + 2 * law.half_width + 1
    found = np.zeros((size, size))
    for sent in itertools.product((0, 1), repeat=len(bits)):
        chance = math.prod(
            flip if y != bit else 1 - flip for y, bit in zip(sent, bits, strict=True)
        )
        ones = sum(sent)
        for more_ones, more_zeros in itertools.product(range(len(table)), repeat=2):
            place = ones + more_ones, len(bits) - ones + more_zeros
            found[place] += chance * table[more_ones] * table[more_zeros]
    return found.ravel()


def view(points, randomizer, dummies):
    """Return the law of all that is released: the levels are independent given the points."""
    joint = np.ones(1)
    for b, (level, law) in enumerate(zip(randomizer.levels, dummies, strict=True)):
        bits = [point >> (randomizer.num_bits - 1 - b) & 1 for point in points]
        joint = np.outer(joint, view_of_level(bits, level.threshold / 2**64, law)).ravel()
    return joint


def bound(profiles, dummies, epsilon):
    pairs = zip(profiles, dummies, strict=True)
    parts = [(ShuffledRelease(profile=p, num_users=1, dummies=law), 1) for p, law in pairs]
    return guarantee_of(Composition(parts), epsilon=epsilon).delta


@pytest.mark.parametrize("epsilon0", [math.inf, 1.5])
@pytest.mark.parametrize(
    "texts", [("laplace:0.9:1", "gaussian:1.1:2"), ("gaussian:0.8:1", "gaussian:1.4:1")]
)
def test_no_pair_of_neighbours_is_told_apart_better_than_the_product(epsilon0, texts):
    randomizer = BitSums(low=0, high=3, epsilon0=epsilon0, num_bits=2)
    dummies = tuple(DummyLaw.from_text(text) for text in texts)
    bounds = {epsilon: bound(randomizer.profiles, dummies, epsilon) for epsilon in EPSILONS}
    largest, pairs = dict.fromkeys(EPSILONS, 0.0), 0
    for others in ((0,), (1,), (2,), (3,), (0, 3), (1, 2), (2, 2)):
        laws = [view((point, *others), randomizer, dummies) for point in range(4)]
        for one, other in itertools.permutations(laws, 2):
            pairs += 1
            for epsilon in EPSILONS:
                found = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
                largest[epsilon] = max(largest[epsilon], found)
    assert pairs == 84
    for epsilon in EPSILONS:
        assert largest[epsilon] <= bounds[epsilon].upper * (1 + 1e-9) + 1e-12
        if math.isinf(epsilon0):  # attained where both bits differ
            assert largest[epsilon] >= bounds[epsilon].upper * (1 - 1e-3)


def test_a_level_less_is_told():
    # A negative control: accounts of one level alone are violated by the view of two.
    randomizer = BitSums(low=0, high=3, epsilon0=math.inf, num_bits=2)
    dummies = (DummyLaw.from_text("gaussian:1.1:2"),) * 2
    one, other = (view((point, 1), randomizer, dummies) for point in (0, 3))
    found = np.maximum(one - math.exp(0.6) * other, 0.0).sum()
    assert found > 1.1 * bound(randomizer.profiles[:1], dummies[:1], 0.6).upper


def test_rounds_are_a_direct_convolution():
    law, rounds = DummyLaw.from_text("gaussian:1.3:3"), 3
    table = [Fraction(0), *(Fraction(each, 2**64) for each in law.table), Fraction(0)]
    pairs = list(itertools.product(range(1, len(table)), repeat=2))
    one = [(table[a - 1] * table[b], table[a] * table[b - 1]) for a, b in pairs]
    joint = np.array([[float(p), float(q)] for p, q in one])
    product = joint
    for _ in range(rounds - 1):
        product = (product[:, None, :] * joint[None, :, :]).reshape(-1, 2)
    exact = np.maximum(product[:, 0] - math.e * product[:, 1], 0.0).sum()
    found = level_guarantee([BARE], [law], delta=float(exact), rounds=rounds)
    assert found.epsilon.lower <= 1.0 + 1e-9
    assert 1.0 - 1e-9 <= found.epsilon.upper < 1.01
    assert (found.num_users, found.rounds) == (1, rounds)
    assert any("may do what they like" in text for text in found.epsilon.assumptions)
    assert sum(str(law) in text for text in found.epsilon.assumptions) == 1
    assert not any("honest" in text for text in found.epsilon.assumptions)


# ------------------------------------------------------------- the least ones
@pytest.mark.parametrize(("epsilon", "rounds"), [(0.2, 1), (1.0, 1), (1.0, 16)])
def test_the_least_dummies_meet_the_target_and_none_of_less_variance_do(epsilon, rounds):
    randomizer = BitSums(low=0, high=1, epsilon0=math.inf, num_bits=3)
    asked = {"delta": 1e-6, "rounds": rounds}
    variances = 1.0 / randomizer.weights
    dummies = least_level_dummies(randomizer.profiles, variances, epsilon=epsilon, **asked)
    assert level_guarantee(randomizer.profiles, dummies, **asked).epsilon_upper <= epsilon
    found = np.array([law.variance for law in dummies])
    assert (found / found[0]).tolist() == pytest.approx(variances / variances[0], rel=1e-3)
    less = [
        DummyLaw(shape="gaussian", scale=0.997 * d.scale, half_width=d.half_width) for d in dummies
    ]
    assert level_guarantee(randomizer.profiles, less, **asked).epsilon_upper > epsilon


def test_a_curators_gaussian_noise_is_the_error_of_a_sum():
    # 1 / mu^2 = 17.848 at epsilon = 1, delta = 1e-6, whatever the number of bits; and the same for
    # the product of 64 periods, a 64th of it each.
    for num_bits in (2, 5):
        randomizer = BitSums(low=0, high=1, epsilon0=math.inf, num_bits=num_bits)
        asked = {"epsilon": 1.0, "delta": 1e-6}
        dummies = least_level_dummies(randomizer.profiles, 1.0 / randomizer.weights, **asked)
        assert randomizer.dummy_variance(dummies) == pytest.approx(17.848, rel=5e-3)
    (law,) = least_level_dummies([BARE], [1.0], rounds=64, **asked)
    assert law.variance == pytest.approx(64 * 2 * 17.848, rel=5e-3)


def test_local_noise_needs_fewer_dummies():
    randomizer = BitSums(low=0, high=1, epsilon0=2.0, num_bits=2)
    asked = {"epsilon": 0.5, "delta": 1e-6}
    variances = randomizer.gains**2 / randomizer.weights
    dummies = least_level_dummies(randomizer.profiles, variances, **asked)
    assert level_guarantee(randomizer.profiles, dummies, delta=1e-6).epsilon_upper <= 0.5
    bare = least_level_dummies([BARE] * 2, 1.0 / randomizer.weights, **asked)
    assert all(one.variance < other.variance for one, other in zip(dummies, bare, strict=True))


def test_bad_input():
    for wrong in ({"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"rounds": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            least_level_dummies([BARE], [1.0], **({"epsilon": 1.0, "delta": 1e-6} | wrong))
    with pytest.raises(InfeasibleTargetError, match=r"half width .* above 20,000: raise epsilon"):
        least_level_dummies([BARE], [1.0], epsilon=1e-4, delta=1e-6)
