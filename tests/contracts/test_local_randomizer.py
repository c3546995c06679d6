"""The contract of every registered randomizer of categories.

What every randomizer promises is checked by `shuffledp.testing`, which
ships, so that users can check their own. Here are, besides, what only ours promise, and searches.
"""

import itertools
import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.randomizers import RANDOMIZERS, Counts, Reports, make_randomizer
from shuffledp.testing import CATEGORY_CHECKS, NothingToCheck, check_randomizer

# Probability that correct code fails this module: two checks of samples err with probability 1e-12
# on each of nine laws of each randomizer.
FALSE_POSITIVE_RATE = 1e-10

# Families that the accountant knows by name state no attack.
ATTACK = "attack-is-possible"

ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
CASES = [
    *itertools.product(RANDOMIZERS, (2, 3, 5), ASKED_EPSILON0),
    *itertools.product(RANDOMIZERS, (8,), (1.0,)),
]
EXACT = Context(prec=60)


def maker(name):
    """Return the function of (k, epsilon0) that the contract asks for."""
    return lambda k, epsilon0: make_randomizer(name, domain_size=k, epsilon0=epsilon0)


@pytest.fixture(params=RANDOMIZERS)
def name(request):
    return request.param


@pytest.fixture(
    params=CASES,
    ids=lambda case: f"{case[0]}-{case[1]}-{case[2]:.3g}",
)
def law(request):
    """Return a randomizer, and the epsilon0 that it was asked for."""
    name, k, epsilon0 = request.param
    return make_randomizer(name, domain_size=k, epsilon0=epsilon0), epsilon0


@pytest.mark.parametrize("check", CATEGORY_CHECKS)
def test_contract(name, check):
    if check == ATTACK and not maker(name)(3, 1.0).profile.attack:
        with pytest.raises(NothingToCheck):
            CATEGORY_CHECKS[check](maker(name))
    else:
        CATEGORY_CHECKS[check](maker(name))  # raises too if there is nothing to check


def test_all_checks_are_passed_by_name():
    passed = [check for check in CATEGORY_CHECKS if check != ATTACK]
    assert check_randomizer(maker("k-rr")) == tuple(passed)


class TestLaw:
    def test_almost_all_of_epsilon0_is_used(self, law):
        randomizer, asked = law
        if 1e-3 < asked < 40.0:
            assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-12)

    def test_a_randomizer_rebuilt_from_its_epsilon0_is_equal(self, law):
        randomizer, _ = law
        again = make_randomizer(
            randomizer.name, domain_size=randomizer.domain_size, epsilon0=randomizer.epsilon0
        )
        assert again == randomizer

    def test_local_loss_is_epsilon0_exactly_rounded_up(self, law):
        # The contract's check rounds by the function that randomizers use; this is another way.
        randomizer, _ = law
        columns = [column for column in zip(*randomizer.channel(), strict=True) if any(column)]
        loss = max(max(column) / min(column) for column in columns)
        if loss == 1:
            assert randomizer.epsilon0 == 0.0
            return
        quotient = EXACT.divide(Decimal(loss.numerator), Decimal(loss.denominator))
        exact_loss = EXACT.ln(quotient)
        epsilon0 = randomizer.epsilon0
        assert Decimal(math.nextafter(epsilon0, 0.0)) < exact_loss <= Decimal(epsilon0)

    def test_what_it_states_is_complete(self, law):
        profile = law[0].profile
        assert profile.channel is not None
        assert profile.blanket


class TestFingerprint:
    def test_every_change_of_the_law_changes_it(self):
        prints = {
            make_randomizer(name, domain_size=k, epsilon0=epsilon0).fingerprint
            for name, k, epsilon0 in itertools.product(
                RANDOMIZERS, (2, 3, 1000), (0.0, 1.0, 1.0 + 1e-12, 2.0)
            )
        }
        assert len(prints) == len(RANDOMIZERS) * 3 * 4

    def test_reports_of_another_law_are_refused_with_advice(self, name):
        made_by = make_randomizer(name, domain_size=4, epsilon0=1.0)
        reports = made_by.randomize(np.arange(4), Entropy.from_seed(1))
        with pytest.raises(FingerprintError, match="k and epsilon0"):
            make_randomizer(name, domain_size=4, epsilon0=1.5).aggregate(reports)


class TestRandomize:
    def test_codes_that_are_no_integers_are_refused_with_advice(self, name):
        randomizer = make_randomizer(name, domain_size=10, epsilon0=1.0)
        for codes in (np.array([1.0]), np.array([np.nan]), np.array(["1"]), np.array([True])):
            with pytest.raises(ParameterError, match="give integers"):
                randomizer.randomize(codes, Entropy.from_seed(5))
        with pytest.raises(ParameterError, match="shape"):
            randomizer.randomize(np.zeros((2, 2), dtype=int), Entropy.from_seed(5))

    def test_at_a_huge_epsilon0_the_truth_can_be_read_off(self, name):
        # The true category is supported with probability p, and nothing else by chance but where
        # the law has no room for less: 1 / g for hashes.
        randomizer = make_randomizer(name, domain_size=16, epsilon0=60.0)
        codes = np.arange(1000) % 16
        reports = randomizer.randomize(codes, Entropy.from_seed(9))
        supported = randomizer.supports(reports)
        p, q = randomizer.support_probabilities
        if p > 1.0 - 1e-15:
            assert supported[np.arange(1000), codes].all()
        if q < 1e-15:
            supported[np.arange(1000), codes] = False
            assert not supported.any()

    def test_a_large_channel_is_refused(self, name):
        randomizer = make_randomizer(name, domain_size=65, epsilon0=1.0)
        assert randomizer.profile.channel is None
        for method in (randomizer.channel, randomizer.report_columns):
            with pytest.raises(ParameterError, match="small domains"):
                method()


class TestCount:
    def test_reports_of_another_shape_or_type_are_refused_with_advice(self, name):
        randomizer = make_randomizer(name, domain_size=20, epsilon0=1.0)
        data = randomizer.randomize(np.arange(20), Entropy.from_seed(1)).data
        for wrong in (data.astype(np.int64), data[:, None]):
            with pytest.raises(ParameterError, match="as it was made"):
                randomizer.aggregate(Reports(data=wrong, fingerprint=randomizer.fingerprint))

    @given(
        name=st.sampled_from(sorted(RANDOMIZERS)),
        k=st.integers(2, 300),
        num_users=st.integers(0, 600),
        cut=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_order_and_parts_do_not_matter(self, name, k, num_users, cut, seed):
        randomizer = make_randomizer(name, domain_size=k, epsilon0=1.0)
        entropy = Entropy.from_seed(seed)
        generator = entropy.generator()
        reports = randomizer.randomize(generator.integers(0, k, num_users), entropy)
        data = reports.data

        def count(part):
            return randomizer.aggregate(Reports(data=part, fingerprint=randomizer.fingerprint))

        whole = count(data)
        assert np.array_equal(whole.support, randomizer.supports(reports).sum(axis=0))
        split = int(cut * num_users)
        merged = count(data[:split]) + count(data[split:])
        shuffled = count(data[generator.permutation(num_users)])
        backwards = count(data[::-1])
        for other in (merged, shuffled, backwards):
            assert isinstance(other, Counts)
            assert np.array_equal(other.support, whole.support)
            assert other.num_reports == whole.num_reports == num_users
