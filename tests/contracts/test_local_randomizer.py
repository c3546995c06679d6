"""The contract of every registered local randomizer."""

import itertools
import math
from collections import defaultdict
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError
from shuffledp.mechanisms.randomizers import RANDOMIZERS, Counts, Reports, make_randomizer

ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
CASES = [
    *itertools.product(RANDOMIZERS, (2, 3, 5), ASKED_EPSILON0),
    *itertools.product(RANDOMIZERS, (8,), (1.0,)),
]
EXACT = Context(prec=60)


def report_of_column(randomizer, column):
    """Return the one report that a column of the channel (k <= 8) stands for."""
    empty = randomizer.randomize(np.array([], dtype=np.int64), Entropy.from_seed(0)).data
    data = np.full((1, *empty.shape[1:]), column, dtype=empty.dtype)
    return Reports(data=data, fingerprint=randomizer.fingerprint)


def exact_support_probabilities(randomizer):
    """Return, for each input and category, the probability of a report that supports it."""
    channel = randomizer.channel()
    supports = [
        randomizer.aggregate(report_of_column(randomizer, column)).support.tolist()
        for column in range(len(channel[0]))
    ]
    return [
        [
            sum(
                probability * support[v] for probability, support in zip(row, supports, strict=True)
            )
            for v in range(randomizer.k)
        ]
        for row in channel
    ]


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
    return make_randomizer(name, k=k, epsilon0=epsilon0), epsilon0


class TestLaw:
    def test_epsilon0_is_at_most_what_was_asked(self, law):
        randomizer, asked = law
        assert 0.0 <= randomizer.epsilon0 <= asked
        if 1e-3 < asked < 40.0:
            assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-12)

    def test_a_randomizer_rebuilt_from_its_epsilon0_is_the_same(self, law):
        randomizer, _ = law
        again = make_randomizer(randomizer.name, k=randomizer.k, epsilon0=randomizer.epsilon0)
        assert again == randomizer
        assert again.fingerprint == randomizer.fingerprint

    def test_rows_of_the_channel_sum_to_exactly_one(self, law):
        channel = law[0].channel()
        assert len(channel) == law[0].k
        assert all(sum(row) == 1 and min(row) >= 0 for row in channel)

    def test_probabilities_are_multiples_of_a_power_of_two(self, law):
        for probability in itertools.chain(*law[0].channel()):
            assert probability.denominator & (probability.denominator - 1) == 0

    def test_local_loss_is_epsilon0_exactly_rounded_up(self, law):
        randomizer, _ = law
        loss = max(max(column) / min(column) for column in zip(*randomizer.channel(), strict=True))
        epsilon0 = randomizer.profile.epsilon0
        assert epsilon0 == randomizer.epsilon0
        if loss == 1:
            assert epsilon0 == 0.0
            return
        quotient = EXACT.divide(Decimal(loss.numerator), Decimal(loss.denominator))
        exact_loss = EXACT.ln(quotient)
        assert Decimal(math.nextafter(epsilon0, 0.0)) < exact_loss <= Decimal(epsilon0)

    def test_profile_describes_the_law(self, law):
        randomizer, _ = law
        profile = randomizer.profile
        assert profile.delta0 == 0.0
        assert profile.domain_size == randomizer.k
        assert profile.family == randomizer.name
        assert profile.channel() == randomizer.channel()

    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_blanket_is_the_infimum_of_the_channel(self, law, pair):
        randomizer, _ = law
        channel = randomizer.channel()
        expected = defaultdict(Fraction)
        for column in zip(*channel, strict=True):
            omega = min(column)
            expected[tuple(float(column[x] / omega) for x in pair)] += omega
        found = defaultdict(float)
        for atom in randomizer.profile.blanket:
            found[atom.ratio0, atom.ratio1] += atom.mass
        for ratios, mass in found.items():
            nearest = min(
                expected, key=lambda key: abs(key[0] / ratios[0] - 1) + abs(key[1] / ratios[1] - 1)
            )
            assert ratios == pytest.approx(nearest, rel=1e-12)
            assert mass == pytest.approx(float(expected.pop(nearest)), rel=1e-12, abs=1e-18)
        assert sum(expected.values()) < 1e-18  # only atoms that vanish in floats are missing
        for ratio in ("ratio0", "ratio1"):
            atoms = randomizer.profile.blanket
            assert sum(a.mass * getattr(a, ratio) for a in atoms) == pytest.approx(1.0, rel=1e-12)

    def test_support_probabilities_match_the_channel(self, law):
        randomizer, _ = law
        p, q = randomizer.support_probabilities
        exact = exact_support_probabilities(randomizer)
        for x, v in itertools.product(range(randomizer.k), repeat=2):
            assert float(exact[x][v]) == pytest.approx(p if x == v else q, rel=1e-15)

    def test_the_estimator_is_unbiased_in_exact_arithmetic(self, law):
        randomizer, _ = law
        exact = exact_support_probabilities(randomizer)
        p, q = exact[0][0], exact[1][0]
        if p == q:
            return  # nothing can be estimated, and estimators refuse
        users = [0, 0, 1]  # expectations are linear in users, so that these stand for any
        for v in range(randomizer.k):
            expected_support = sum(exact[x][v] for x in users)
            assert (expected_support - len(users) * q) / (p - q) == users.count(v)


class TestFingerprint:
    def test_every_change_of_the_law_changes_it(self):
        prints = {
            make_randomizer(name, k=k, epsilon0=epsilon0).fingerprint
            for name, k, epsilon0 in itertools.product(
                RANDOMIZERS, (2, 3, 1000), (0.0, 1.0, 1.0 + 1e-12, 2.0)
            )
        }
        assert len(prints) == len(RANDOMIZERS) * 3 * 4

    def test_reports_of_another_law_are_refused(self, name):
        made_by = make_randomizer(name, k=4, epsilon0=1.0)
        reports = made_by.randomize(np.arange(4), Entropy.from_seed(1))
        with pytest.raises(FingerprintError, match="k and epsilon0"):
            make_randomizer(name, k=4, epsilon0=1.5).aggregate(reports)


class TestRandomize:
    @pytest.mark.parametrize("k", [2, 7, 8, 16, 100, 1000])
    @pytest.mark.parametrize("num_users", [1, 63, 65, 1001])
    def test_reports_have_the_stated_size(self, name, k, num_users):
        randomizer = make_randomizer(name, k=k, epsilon0=1.0)
        reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(2))
        assert reports.num_reports == num_users
        assert reports.data.nbytes == num_users * randomizer.num_report_bytes
        assert reports.fingerprint == randomizer.fingerprint
        assert not reports.data.flags.writeable
        assert randomizer.aggregate(reports).num_reports == num_users

    def test_an_empty_batch_gives_no_reports(self, name):
        randomizer = make_randomizer(name, k=10, epsilon0=1.0)
        for codes in (np.array([]), np.array([], dtype=np.uint8)):
            counts = randomizer.aggregate(randomizer.randomize(codes, Entropy.from_seed(3)))
            assert counts.num_reports == 0
            assert counts.support.tolist() == [0] * 10

    @pytest.mark.parametrize("bad", [10, -1, 2**40])
    def test_a_code_outside_the_domain_is_named(self, name, bad):
        randomizer = make_randomizer(name, k=10, epsilon0=1.0)
        codes = np.array([3, 9, bad, 77])
        with pytest.raises(DomainError, match=rf"codes\[2\] = {bad} is not in \[0, 10\)"):
            randomizer.randomize(codes, Entropy.from_seed(4))

    def test_codes_that_are_no_integers_are_refused(self, name):
        randomizer = make_randomizer(name, k=10, epsilon0=1.0)
        for codes in (np.array([1.0]), np.array([np.nan]), np.array(["1"]), np.array([True])):
            with pytest.raises(ParameterError, match="give integers"):
                randomizer.randomize(codes, Entropy.from_seed(5))
        with pytest.raises(ParameterError, match="shape"):
            randomizer.randomize(np.zeros((2, 2), dtype=int), Entropy.from_seed(5))

    @pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8", ">i8"])
    def test_every_integer_type_gives_the_same_reports(self, name, dtype):
        randomizer = make_randomizer(name, k=100, epsilon0=1.0)
        codes = np.arange(100)
        expected = randomizer.randomize(codes, Entropy.from_seed(6)).data
        # Every other element of a longer array, so that the codes are not contiguous either.
        given_codes = np.repeat(codes, 2).astype(dtype)[::2]
        found = randomizer.randomize(given_codes, Entropy.from_seed(6)).data
        assert np.array_equal(found, expected)
        assert given_codes.tolist() == codes.tolist()

    def test_a_seed_reproduces_the_reports_and_another_does_not(self, name):
        randomizer = make_randomizer(name, k=16, epsilon0=1.0)
        codes = np.arange(100_000) % 16
        first, again, other = (
            randomizer.randomize(codes, Entropy.from_seed(seed)).data for seed in (7, 7, 8)
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_the_operating_system_is_a_source_too(self, name):
        randomizer = make_randomizer(name, k=16, epsilon0=1.0)
        entropy = Entropy.from_operating_system()
        first, second = (randomizer.randomize(np.zeros(1000, int), entropy) for _ in range(2))
        assert not np.array_equal(first.data, second.data)

    def test_at_a_huge_epsilon0_the_truth_is_supported(self):
        codes = np.arange(1000) % 16
        reports = make_randomizer("k-rr", k=16, epsilon0=60.0)
        assert np.array_equal(reports.randomize(codes, Entropy.from_seed(9)).data, codes)
        for name in ("symmetric-unary", "optimized-unary"):
            unary = make_randomizer(name, k=16, epsilon0=60.0)
            bits = np.unpackbits(
                unary.randomize(codes, Entropy.from_seed(9)).data, axis=1, bitorder="little"
            )
            bits[np.arange(1000), codes] = 0
            assert not bits.any()

    @pytest.mark.parametrize("k", [0, 1, 2**32, 2.5])
    def test_k_out_of_range_is_refused(self, name, k):
        with pytest.raises(ParameterError, match="k = "):
            RANDOMIZERS[name](k=k, epsilon0=1.0)

    @pytest.mark.parametrize("epsilon0", [-1e-9, math.nan, math.inf])
    def test_epsilon0_out_of_range_is_refused(self, name, epsilon0):
        with pytest.raises(ParameterError, match="epsilon0 = "):
            RANDOMIZERS[name](k=3, epsilon0=epsilon0)

    def test_a_large_channel_is_refused(self, name):
        randomizer = make_randomizer(name, k=65, epsilon0=1.0)
        assert randomizer.profile.channel is None
        with pytest.raises(ParameterError, match="small k"):
            randomizer.channel()


class TestCount:
    def test_reports_of_another_shape_or_type_are_refused(self, name):
        randomizer = make_randomizer(name, k=20, epsilon0=1.0)
        data = randomizer.randomize(np.arange(20), Entropy.from_seed(1)).data
        for wrong in (data.astype(np.int64), data[:, None]):
            with pytest.raises(ParameterError, match="as it was made"):
                randomizer.aggregate(Reports(data=wrong, fingerprint=randomizer.fingerprint))

    def test_impossible_reports_are_refused(self, name):
        randomizer = make_randomizer(name, k=5, epsilon0=1.0)
        data = randomizer.randomize(np.zeros(9, int), Entropy.from_seed(1)).data.copy()
        data[3] |= 1 << 5
        with pytest.raises(DomainError, match=r"3\b.*"):
            randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))

    @given(
        name=st.sampled_from(sorted(RANDOMIZERS)),
        k=st.integers(2, 300),
        num_users=st.integers(0, 600),
        cut=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_order_and_parts_do_not_matter(self, name, k, num_users, cut, seed):
        randomizer = make_randomizer(name, k=k, epsilon0=1.0)
        entropy = Entropy.from_seed(seed)
        generator = entropy.generator()
        data = randomizer.randomize(generator.integers(0, k, num_users), entropy).data

        def count(part):
            return randomizer.aggregate(Reports(data=part, fingerprint=randomizer.fingerprint))

        whole = count(data)
        split = int(cut * num_users)
        merged = count(data[:split]) + count(data[split:])
        shuffled = count(data[generator.permutation(num_users)])
        backwards = count(data[::-1])
        for other in (merged, shuffled, backwards):
            assert isinstance(other, Counts)
            assert np.array_equal(other.support, whole.support)
            assert other.num_reports == whole.num_reports == num_users
