import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from oracles.convex_order import to_14_digits
from oracles.hashed_laws import HashedLaw
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.estimation.frequencies import expected_standard_error
from shuffledp.randomizers.checks import LARGEST_K
from shuffledp.randomizers.local_hashing import (
    _LARGEST_TABLE,
    LARGEST_NUM_BUCKETS,
    HadamardResponse,
    OptimizedLocalHashing,
    count_by_transform,
    count_supports,
    optimal_num_buckets,
)

# Probability that correct code fails this module: Bonferroni over two chi-square tests a law. Every
# cell expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to exact.
FALSE_POSITIVE_RATE = 1e-9
LEAST_EXPECTED = 2_000
NUM_REPORTS = 1_000_000
STATISTICAL_LAWS = [(3, 1.0), (5, 1.0), (4, 2.0)]
REJECTION_LEVEL = FALSE_POSITIVE_RATE / (2 * len(STATISTICAL_LAWS))

RANDOMIZERS = (OptimizedLocalHashing, HadamardResponse)
ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
PRIMES = [g for g in range(2, 2000) if all(g % d for d in range(2, g))]


class Scripted:
    """Hands out the words that it was given."""

    def __init__(self, words):
        self.remaining = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return taken


def digits_of(number, g, m):
    return [number // g**place % g for place in range(m)]


def hash_of(law, seed, code):
    """The linear hash in plain integers."""
    g, m = law.num_buckets, law.num_digits
    return sum(a * x for a, x in zip(digits_of(seed, g, m), digits_of(code, g, m), strict=True)) % g


def oracle(law, codes, seeds, coins):
    """The reports in plain integers: k-RR on the bucket that the seed hashes to."""
    g, reports = law.num_buckets, []
    for code, seed, coin in zip(codes, seeds, coins, strict=True):
        other = min(coin // law.threshold, g - 1)
        reports.append(seed * g + (hash_of(law, seed, code) + 1 + other) % g)
    return reports


def accountable_law(k, g, epsilon0=1.0):
    threshold = math.ceil(2**64 / (Fraction(math.exp(epsilon0)) + g - 1))
    return HashedLaw(domain_size=k, num_buckets=g, threshold=threshold)


def error_of(k, epsilon0, g):
    """The standard error of a frequency of 1/k, with g buckets."""
    odds = math.exp(epsilon0)
    return expected_standard_error(
        support_probabilities=(odds / (odds + g - 1), 1.0 / g), num_users=1000, frequency=1.0 / k
    )


def supports_of(law, data):
    return law.supports(Reports(data=data, fingerprint=law.fingerprint))


def uniform_reports(law, num_reports, seed):
    generator = Entropy.from_seed(seed).generator()
    data = generator.integers(0, law.num_possible_reports, num_reports, dtype=law.report_type)
    data.flags.writeable = False
    return data


class TestHashFamily:
    @pytest.mark.parametrize(("k", "g"), [(2, 2), (8, 2), (9, 2), (3, 3), (10, 3), (25, 5), (7, 7)])
    def test_two_categories_collide_with_probability_exactly_one_over_g(self, k, g):
        law = accountable_law(k, g)
        assert g ** (law.num_digits - 1) < k <= law.num_seeds
        for x, other in itertools.combinations(range(k), 2):
            collisions = sum(
                hash_of(law, seed, x) == hash_of(law, seed, other) for seed in range(law.num_seeds)
            )
            assert Fraction(collisions, law.num_seeds) == Fraction(1, g)

    @given(k=st.integers(2, LARGEST_K), epsilon0=st.floats(0.0, 60.0))
    def test_every_report_fits_64_bits(self, k, epsilon0):
        law = HashedLaw(domain_size=k, num_buckets=optimal_num_buckets(k, epsilon0), threshold=1)
        assert law.num_possible_reports < 2**64
        assert np.iinfo(law.report_type).max >= law.num_possible_reports - 1

    @pytest.mark.parametrize("k", [2**21, 2**32 - 1, 65521**2 + 1, 65521**2, 2**22])
    @pytest.mark.parametrize("g", [2, 3, 65521, 1621, 1627, LARGEST_NUM_BUCKETS])
    def test_every_report_fits_64_bits_at_the_edges(self, k, g):
        assert HashedLaw(domain_size=k, num_buckets=g, threshold=1).num_possible_reports < 2**64


class TestReportsInPlainIntegers:
    @pytest.mark.parametrize(
        ("k", "g"),
        [
            (16, 7),
            (1024, 7),
            (10**7, 3001),
            (LARGEST_K, 3),
            (2**21, LARGEST_NUM_BUCKETS),
            (LARGEST_K, LARGEST_NUM_BUCKETS),
            (LARGEST_K, 65521),
        ],
    )
    @pytest.mark.parametrize("epsilon0", [0.5, 60.0])
    def test_reports_are_those_of_plain_integers(self, k, g, epsilon0):
        law = accountable_law(k, g, min(epsilon0, 44.0))
        last = law.num_seeds - 1
        seeds = [0, 1, g - 1, g % law.num_seeds, last // 2, last - 1, last]
        generator = Entropy.from_seed(k + g).generator()
        seeds += generator.integers(0, last, 500, dtype=np.uint64, endpoint=True).tolist()
        words = [seed << 64 - last.bit_length() for seed in seeds]
        codes = generator.integers(0, k, len(seeds)).tolist()
        codes[:4] = [0, 1, k - 1, k // 2]
        threshold_edges = [law.threshold * j + step for j in (1, g - 1) for step in (-1, 0)]
        coins = generator.integers(0, 2**64 - 1, len(seeds), dtype=np.uint64).tolist()
        coins[:6] = [0, 2**64 - 1, *threshold_edges]
        found = law.randomize(np.array(codes), Scripted([*words, *coins]))
        assert found.data.dtype == law.report_type
        assert found.data.tolist() == oracle(law, codes, seeds, coins)

    def test_blocks_join_without_a_seam(self):
        randomizer = OptimizedLocalHashing(domain_size=100, epsilon0=2.0)
        codes = np.arange(50_000) % 100
        entropy = Entropy.from_seed(3)
        found = randomizer.randomize(codes, entropy).data
        again = Entropy.from_seed(3)
        law, expected = randomizer, []
        for start in range(0, codes.size, 2**14):
            block = codes[start : start + 2**14].tolist()
            seeds = draw_below(again, len(block), law.num_seeds).tolist()
            expected += oracle(law, block, seeds, again.words(len(block)).tolist())
        assert found.tolist() == expected


class TestChoiceOfBuckets:
    @pytest.mark.parametrize("k", [2, 3, 10, 16, 100, 1024, 1500])
    def test_no_other_prime_has_a_smaller_error(self, k):
        largest = next(g for g in PRIMES if g >= k)
        for epsilon0 in (0.05, 0.3, 0.4, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0):
            best = optimal_num_buckets(k, epsilon0)
            assert best in PRIMES
            assert best <= largest

            errors = {g: error_of(k, epsilon0, g) for g in PRIMES if g <= largest}
            assert errors[best] <= min(errors.values()) * (1 + 1e-12)

    @given(k=st.integers(2, LARGEST_K), first=st.floats(0, 60), second=st.floats(0, 60))
    def test_more_loss_never_means_fewer_buckets(self, k, first, second):
        low, high = sorted((first, second))
        assert optimal_num_buckets(k, low) <= optimal_num_buckets(k, high) <= LARGEST_NUM_BUCKETS

    def test_two_buckets_below_the_published_step(self):
        assert {optimal_num_buckets(k, 0.34) for k in (2, 3, 100, LARGEST_K)} == {2}
        assert optimal_num_buckets(LARGEST_K, 0.35) == 3
        assert optimal_num_buckets(LARGEST_K, 60.0) == LARGEST_NUM_BUCKETS
        assert optimal_num_buckets(LARGEST_NUM_BUCKETS + 1, 1e300) == LARGEST_NUM_BUCKETS

    @given(k=st.integers(2, 10**6), epsilon0=st.floats(0.0, 50.0))
    def test_rebuilding_gives_the_same_law(self, k, epsilon0):
        randomizer = OptimizedLocalHashing(domain_size=k, epsilon0=epsilon0)
        assert randomizer.epsilon0 <= epsilon0
        again = OptimizedLocalHashing(domain_size=k, epsilon0=randomizer.epsilon0)
        assert again == randomizer

    @pytest.mark.parametrize(
        ("k", "target"),
        [
            *itertools.product((3, 16, 1024, 10**6), (3, 5, 11, 31)),
            (10**6, 10007),
            (10**7, 1000003),
        ],
    )
    def test_rebuilding_gives_the_same_law_next_to_a_step(self, k, target):
        if target > optimal_num_buckets(k, 60.0):
            return
        # Bisect for the neighbouring floats between which the number of buckets reaches the target.
        low, high = 0.0, 60.0
        while math.nextafter(low, high) < high:
            middle = (low + high) / 2
            if optimal_num_buckets(k, middle) < target:
                low = middle
            else:
                high = middle
        for epsilon0 in [low] + [high * (1 + j * 2.0**-52) for j in range(8)]:
            randomizer = OptimizedLocalHashing(domain_size=k, epsilon0=epsilon0)
            assert randomizer == OptimizedLocalHashing(domain_size=k, epsilon0=randomizer.epsilon0)
            assert epsilon0 * (1 - 1e-12) <= randomizer.epsilon0 <= epsilon0

    def test_a_loss_that_settles_below_the_step_takes_the_buckets_of_that_side(self):
        # Thresholds for a million buckets are 2^-44 of each other apart, so that the loss settled
        # on for 1000003 buckets lies below the one at which they are best.
        epsilon0 = 13.865481353441888
        assert optimal_num_buckets(10**7, epsilon0) == 1000003
        assert OptimizedLocalHashing(domain_size=10**7, epsilon0=epsilon0).num_buckets == 999983


class TestLaw:
    @pytest.mark.parametrize("make", RANDOMIZERS)
    @pytest.mark.parametrize(
        ("k", "epsilon0"), [*itertools.product((2, 3, 5), ASKED_EPSILON0), (8, 1.0)]
    )
    def test_channel_blanket_and_supports_agree_exactly(self, make, k, epsilon0):
        randomizer = make(domain_size=k, epsilon0=epsilon0)
        law, channel = randomizer, randomizer.channel()
        assert all(sum(row) == 1 for row in channel)
        assert [
            [row[y] > min(column) or len(set(column)) == 1 for y, column in enumerate(columns)]
            for row, columns in ((row, list(zip(*channel, strict=True))) for row in channel)
        ] == [
            [
                hash_of(law, y // law.num_buckets, x) == y % law.num_buckets
                or len(set(column)) == 1
                for y, column in enumerate(zip(*channel, strict=True))
            ]
            for x in range(k)
        ]
        loss = max(max(column) / min(column) for column in zip(*channel, strict=True))
        assert loss == Fraction(2**64 - (law.num_buckets - 1) * law.threshold, law.threshold)
        for pair in itertools.permutations(range(k), 2):
            expected = defaultdict(Fraction)
            for column in zip(*channel, strict=True):
                omega = min(column)
                expected[tuple(to_14_digits(column[x] / omega) for x in pair)] += omega
            found = defaultdict(float)
            for atom in randomizer.profile.blanket:
                found[to_14_digits(atom.ratio0), to_14_digits(atom.ratio1)] += atom.mass
            assert found.keys() == expected.keys()
            for ratios, mass in found.items():
                assert mass == pytest.approx(float(expected[ratios]), rel=1e-14)

    @pytest.mark.parametrize("make", RANDOMIZERS)
    @pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
    @pytest.mark.parametrize("epsilon0", [0.0, 1e-9, 1.0, 2.5, 60.0])
    def test_attack_is_that_of_the_best_triple(self, make, k, epsilon0):
        randomizer = make(domain_size=k, epsilon0=epsilon0)
        channel = randomizer.channel()

        def atoms_of(first, second, other):
            masses = defaultdict(Fraction)
            for a, b, law in zip(channel[first], channel[second], channel[other], strict=True):
                masses[float(a / law), float(b / law)] += law
            return masses

        def separation(triple):
            columns = zip(*(channel[x] for x in triple), strict=True)
            return sum((a - b) ** 2 / law for a, b, law in columns)

        data = (0, 1, 1) if k == 2 else (1, 2, 0)
        expected = atoms_of(*data)
        found = defaultdict(float)
        for atom in randomizer.profile.attack:
            found[atom.ratio0, atom.ratio1] += atom.mass
        assert found.keys() == expected.keys()
        for ratios, mass in expected.items():
            assert found[ratios] == pytest.approx(float(mass), rel=1e-14)
        if k <= 5:
            triples = itertools.product(range(k), repeat=3)
            assert separation(data) == max(separation(triple) for triple in triples)

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_support_probabilities_are_exact(self, make):
        for k, epsilon0 in ((3, 1.0), (8, 1.0), (7, 3.0)):
            randomizer = make(domain_size=k, epsilon0=epsilon0)
            law, channel = randomizer, randomizer.channel()
            every = Reports(
                data=np.arange(law.num_possible_reports, dtype=law.report_type),
                fingerprint=randomizer.fingerprint,
            )
            supports = randomizer.supports(every)
            keep = 1 - Fraction((law.num_buckets - 1) * law.threshold, 2**64)
            for x, v in itertools.product(range(k), repeat=2):
                probability = sum(itertools.compress(channel[x], supports[:, v]))
                assert probability == (keep if x == v else Fraction(1, law.num_buckets))

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_nothing_is_said_without_a_loss(self, make):
        for epsilon0 in (0.0, 5e-324):
            randomizer = make(domain_size=5, epsilon0=epsilon0)
            assert randomizer.epsilon0 == 0.0
            assert len(set(randomizer.channel())) == 1
            reports = randomizer.randomize(np.zeros(3, int), Entropy.from_seed(1))
            with pytest.raises(ParameterError):
                randomizer.estimate(reports)

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_saturation(self, make):
        randomizer = make(domain_size=16, epsilon0=60.0)
        assert randomizer.threshold == 1
        assert randomizer.epsilon0 == pytest.approx(64 * math.log(2), rel=1e-15)
        assert randomizer == make(domain_size=16, epsilon0=1e300)
        codes = np.arange(1000) % 16
        supports = randomizer.supports(randomizer.randomize(codes, Entropy.from_seed(9)))
        assert supports[np.arange(1000), codes].all()

    @pytest.mark.parametrize("make", RANDOMIZERS)
    @pytest.mark.parametrize("epsilon0", [-1e-9, math.nan, math.inf])
    def test_parameters_out_of_range_are_refused(self, make, epsilon0):
        with pytest.raises(ParameterError, match="epsilon0 = "):
            make(domain_size=3, epsilon0=epsilon0)
        with pytest.raises(ParameterError, match="domain_size = 1"):
            make(domain_size=1, epsilon0=1.0)

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_profile_is_that_of_a_concrete_randomizer(self, make):
        profile = make(domain_size=100, epsilon0=2.0).profile
        assert profile.family is RandomizerFamily.OTHER
        assert profile.domain_size == 100
        assert profile.channel is None
        with pytest.raises(ParameterError, match="small domains"):
            make(domain_size=100, epsilon0=2.0).channel()
        for e in (0.5, 1.0, 2.0):
            mean = sum(atom.mass * (atom.ratio0 - e * atom.ratio1) for atom in profile.blanket)
            assert mean == pytest.approx(1 - e, abs=1e-12)

    def test_report_sizes(self):
        sizes = {
            k: OptimizedLocalHashing(domain_size=k, epsilon0=2.0).num_report_bytes
            for k in (2, 16, 10**6)
        }
        assert sizes == {2: 1, 16: 2, 10**6: 4}
        assert HadamardResponse(domain_size=1024, epsilon0=2.0).num_report_bytes == 2


class TestReports:
    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_reports_that_no_law_makes_are_refused(self, make):
        randomizer = make(domain_size=5, epsilon0=1.0)
        data = randomizer.randomize(np.zeros(9, int), Entropy.from_seed(1)).data.copy()
        limit = randomizer.num_possible_reports
        data[3] = limit
        reports = Reports(data=data, fingerprint=randomizer.fingerprint)
        for look in (randomizer.aggregate, randomizer.supports):
            with pytest.raises(DomainError, match=rf"report 3 is {limit}, not in \[0, {limit}\)"):
                look(reports)
        for wrong in (data.astype(np.int64), data[:, None]):
            with pytest.raises(ParameterError, match="as it was made"):
                randomizer.aggregate(Reports(data=wrong, fingerprint=randomizer.fingerprint))
        with pytest.raises(FingerprintError, match="k and epsilon0"):
            randomizer.aggregate(Reports(data=data, fingerprint="another"))

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_codes_outside_the_domain_are_refused(self, make):
        with pytest.raises(DomainError, match=r"codes\[1\] = 7"):
            make(domain_size=7, epsilon0=1.0).randomize(np.array([6, 7]), Entropy.from_seed(1))

    @pytest.mark.parametrize("make", RANDOMIZERS)
    def test_an_empty_batch(self, make):
        randomizer = make(domain_size=7, epsilon0=1.0)
        counts = randomizer.aggregate(randomizer.randomize(np.array([]), Entropy.from_seed(1)))
        assert counts.support.tolist() == [0] * 7

    @pytest.mark.parametrize("make", RANDOMIZERS)
    @pytest.mark.parametrize("k", [3, 100, 1000])
    def test_counts_are_those_of_supports(self, make, k):
        randomizer = make(domain_size=k, epsilon0=2.0)
        for num_users in (1, 2000, 40_000 if k < 1000 else 3000):
            reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(num_users))
            counts = randomizer.aggregate(reports)
            assert counts.num_reports == num_users
            assert np.array_equal(counts.support, randomizer.supports(reports).sum(axis=0))

    def test_supports_are_those_of_plain_integers(self):
        randomizer = OptimizedLocalHashing(domain_size=20, epsilon0=2.0)
        law = randomizer
        every = np.arange(law.num_possible_reports, dtype=law.report_type)
        supports = randomizer.supports(Reports(data=every, fingerprint=randomizer.fingerprint))
        assert supports.tolist() == [
            [
                hash_of(law, report // law.num_buckets, x) == report % law.num_buckets
                for x in range(20)
            ]
            for report in every.tolist()
        ]

    def test_frequencies_are_found(self):
        randomizer = OptimizedLocalHashing(domain_size=50, epsilon0=8.0)
        codes = np.repeat([3, 40], [15_000, 5_000])
        estimates = randomizer.estimate(randomizer.randomize(codes, Entropy.from_seed(1)))
        # The standard error is about 0.004, so that chance does not come near these limits.
        assert estimates.frequency[3] == pytest.approx(0.75, abs=0.05)
        assert estimates.frequency[40] == pytest.approx(0.25, abs=0.05)


class TestCounting:
    @pytest.mark.parametrize("g", [3, 5, 7, 13, 101])
    @pytest.mark.parametrize("k", [2, 3, 8, 9, 10, 27, 28, 81, 100, 343, 344, 1000])
    def test_every_way_of_counting_gives_the_same(self, k, g):
        law = accountable_law(k, g)
        for num_reports in (0, 1, 60, 2000):
            data = uniform_reports(law, num_reports, seed=k)
            expected = supports_of(law, data).sum(axis=0)
            for count in (count_by_transform, count_supports):
                found = count(law, data)
                assert found.dtype == np.int64
                assert np.array_equal(found, expected)

    @pytest.mark.parametrize("k", [2, 3, 4, 5, 64, 65, 1000])
    def test_the_fast_transform_counts_bits(self, k):
        law = accountable_law(k, 2)
        for num_reports in (0, 1, 60, 5000):
            data = uniform_reports(law, num_reports, seed=k)
            assert np.array_equal(count_supports(law, data), supports_of(law, data).sum(axis=0))

    @pytest.mark.parametrize("g", [3, 7, 251, 499])
    def test_every_possible_report_once_supports_every_category_alike(self, g):
        law = accountable_law(min(g + 1, 20), g)
        data = np.arange(min(law.num_possible_reports, 2**18), dtype=law.report_type)
        data = np.ascontiguousarray(data)
        data.flags.writeable = False
        found = count_supports(law, data)
        assert np.array_equal(found, supports_of(law, data).sum(axis=0))
        if data.size == law.num_possible_reports:
            assert set(found.tolist()) == {law.num_seeds}

    @pytest.mark.slow
    @pytest.mark.parametrize(("g", "k", "num_reports"), [(10007, 10**7, 4), (5, 3_000_000, 5)])
    def test_large_tables(self, g, k, num_reports):
        law = accountable_law(k, g)
        data = uniform_reports(law, num_reports, seed=g)
        found = count_supports(law, data)
        sample = np.array([0, 1, g - 1, g % k, k // 2, k - 2, k - 1])
        expected = [
            sum(hash_of(law, r // g, x) == r % g for r in data.tolist()) for x in sample.tolist()
        ]
        assert found.size == k
        assert found[sample].tolist() == expected

    def test_a_table_that_is_too_large_is_not_made(self):
        law = accountable_law(10**7, 10007)
        assert law.num_seeds > _LARGEST_TABLE
        assert count_supports(law, uniform_reports(law, 3, seed=1)).size == 10**7

    def test_forged_reports_of_seed_zero_support_everything_or_nothing(self):
        law = accountable_law(30, 5)
        data = np.array([0, 0, 1, 4, 0], dtype=law.report_type)
        data.flags.writeable = False
        assert set(count_supports(law, data).tolist()) == {3}


def p_value(observed, probabilities):
    """Return the chi-square tail probability of the observed cell counts."""
    expected = observed.sum() * np.asarray(probabilities, dtype=float)
    assert expected.min() >= LEAST_EXPECTED
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1))


class TestDraws:
    @pytest.mark.parametrize(("k", "epsilon0"), STATISTICAL_LAWS)
    def test_reports_follow_the_channel(self, k, epsilon0):
        randomizer = OptimizedLocalHashing(domain_size=k, epsilon0=epsilon0)
        row = randomizer.channel()[k - 1]
        codes = np.full(NUM_REPORTS, k - 1)
        reports = randomizer.randomize(codes, Entropy.from_seed(k)).data
        assert p_value(np.bincount(reports, minlength=len(row)), row) > REJECTION_LEVEL

    @pytest.mark.parametrize(("k", "epsilon0"), STATISTICAL_LAWS)
    def test_seeds_do_not_depend_on_the_value_or_each_other(self, k, epsilon0):
        randomizer = OptimizedLocalHashing(domain_size=k, epsilon0=epsilon0)
        law = randomizer
        reports = randomizer.randomize(np.arange(NUM_REPORTS) % k, Entropy.from_seed(10 + k)).data
        seeds = reports.astype(np.int64) // law.num_buckets
        pairs = seeds[:-1:2] * law.num_seeds + seeds[1::2]
        observed = np.bincount(pairs, minlength=law.num_seeds**2)
        probabilities = np.full(observed.size, 1 / observed.size)
        assert p_value(observed, probabilities) > REJECTION_LEVEL

    @pytest.mark.parametrize("factor", [0.96, 1.04])
    @pytest.mark.parametrize(("k", "epsilon0"), STATISTICAL_LAWS)
    def test_another_threshold_is_rejected(self, k, epsilon0, factor):
        randomizer = OptimizedLocalHashing(domain_size=k, epsilon0=epsilon0)
        law = randomizer
        planted = HashedLaw(
            domain_size=k, num_buckets=law.num_buckets, threshold=int(law.threshold * factor)
        )
        row = randomizer.channel()[k - 1]
        reports = planted.randomize(np.full(NUM_REPORTS, k - 1), Entropy.from_seed(k)).data
        assert p_value(np.bincount(reports, minlength=len(row)), row) < REJECTION_LEVEL

    def test_a_biased_seed_is_rejected(self):
        # Words modulo the number of seeds, of 8 bits only: seeds below 256 mod 25 are too frequent.
        seeds = Entropy.from_seed(1).words(NUM_REPORTS) % np.uint64(256) % np.uint64(25)
        observed = np.bincount(seeds.astype(np.int64), minlength=25)
        assert p_value(observed, np.full(25, 1 / 25)) < REJECTION_LEVEL
