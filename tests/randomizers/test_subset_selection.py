import itertools
import math
from collections import Counter, defaultdict
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, norm

from oracles.convex_order import to_14_digits
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.estimation.frequencies import expected_standard_error
from shuffledp.randomizers.checks import LARGEST_K
from shuffledp.randomizers.randomizer_kernels import place_members
from shuffledp.randomizers.subset_selection import SubsetSelection

# Probability that correct code fails this module: Bonferroni over its chi-square tests and the
# test of estimates. Every cell expects at least LEAST_EXPECTED reports, so that the tail is close
# to the exact one.
FALSE_POSITIVE_RATE = 1e-9
LEAST_EXPECTED = 2_000
STATISTICAL_CASES = list(itertools.product((3, 5, 6), (0.0, 0.7, 1.6)))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / (len(STATISTICAL_CASES) + 1)

EXACT = Context(prec=60)
ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
SMALL_LAWS = [*itertools.product((2, 3, 5), ASKED_EPSILON0), *itertools.product((8,), (0.3, 1.0))]


def total_variance(k, size, e0):
    """n times the sum of the variances of all estimates, from p and q alone, for any users."""
    p = e0 * size / (e0 * size + k - size)
    q = (size - p) / (k - 1)
    return (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2


def last_loss_with_size(k, size):
    """ln of the e0 at which the variances of subsets of this size and of one fewer are equal."""
    return math.log((k - size + 1) * (k - size) / ((size - 1) * size)) / 2


def half_words_for(values, bounds):
    """A half word for each value v that is not refused: just above v 2^32 / bound."""
    # Its product with the bound is at least the bound above v 2^32, and only less is refused.
    return [-(-(value << 32) // bound) + 1 for value, bound in zip(values, bounds, strict=True)]


def subset_of(row):
    return tuple(np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist())


def place(half_words, *, codes, coins, threshold, num_others, size, k):
    """Run the compiled loop on empty rows; every half word must be used."""
    rows = np.zeros((len(codes), -(-k // 8)), dtype=np.uint8)
    placed = place_members(
        rows,
        np.array(codes, dtype=np.uint32),
        np.array(coins, dtype=np.uint64),
        np.array(half_words, dtype=np.uint32),
        np.uint64(threshold),
        num_others,
        size,
        0,
    )
    assert placed == len(codes) * size
    return rows


class TestSize:
    @pytest.mark.parametrize("k", [2, 3, 4, 5, 9, 16, 31, 64])
    def test_it_minimises_the_variance_exactly(self, k):
        for e0 in (1.0, 1.05, 1.4, 2.0, 2.9, 4.2, 7.5, 13.0, 20.1, 40.0, 1000.0):
            size = SubsetSelection(domain_size=k, epsilon0=math.log(e0)).subset_size
            if e0 == 1.0:
                assert size == k // 2
                continue
            exact = {w: total_variance(k, w, Fraction(e0)) for w in range(1, k)}
            assert exact[size] == min(exact.values())

    @pytest.mark.parametrize("k", [3, 7, 16, 1000, 10_000_000])
    def test_it_is_the_published_one_but_for_a_narrow_range_above_each_step(self, k):
        for epsilon0 in np.linspace(0.01, math.log(k) + 2.0, 400).tolist():
            size = SubsetSelection(domain_size=k, epsilon0=epsilon0).subset_size

            def published(epsilon0):
                return max(1, round(k / (math.exp(epsilon0) + 1)))

            assert size in {published(epsilon0), published(epsilon0 - 0.06)} or (
                published(epsilon0) <= size <= published(epsilon0 - 0.06)
            )

    @pytest.mark.parametrize("k", [2, 10, 1024])
    def test_the_stated_sum_of_variances(self, k):
        randomizer = SubsetSelection(domain_size=k, epsilon0=1.3)
        e0, w, num_users = math.exp(1.3), randomizer.subset_size, 100
        r = w / (k - w)
        g = e0**2 * r + 2 * e0 + 1 / r
        stated = ((k - 1) ** 2 * g / (e0 - 1) ** 2 - (k - 1)) / (k * num_users)
        for frequencies in ([1.0] + [0.0] * (k - 1), [1 / k] * k):
            errors = [
                expected_standard_error(
                    support_probabilities=randomizer.support_probabilities,
                    num_users=num_users,
                    frequency=frequency,
                )
                for frequency in frequencies
            ]
            assert math.fsum(error**2 for error in errors) == pytest.approx(stated, rel=1e-9)

    @pytest.mark.parametrize("k", [5, 16, 1000, 10_000_000, LARGEST_K])
    def test_rebuilding_is_stable_where_the_size_changes(self, k):
        sizes = {2, 3, min(100, k // 2), k // 3 + 1, k // 2}
        for size in sorted(w for w in sizes if 2 <= w <= k // 2):
            edge = last_loss_with_size(k, size)
            near = [edge * (1 + relative) for relative in (-1e-9, -1e-13, 0.0, 1e-13, 1e-9)]
            near += [math.nextafter(edge, 0.0), math.nextafter(edge, math.inf)]
            for asked in near:
                randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
                assert abs(randomizer.subset_size - size + 0.5) <= 0.5 or size == k // 2
                assert asked * (1 - 1e-9) <= randomizer.epsilon0 <= asked
                again = SubsetSelection(domain_size=k, epsilon0=randomizer.epsilon0)
                assert again == randomizer
                assert again.fingerprint == randomizer.fingerprint

    def test_equal_losses_of_two_sizes_have_two_fingerprints(self):
        below, above = (
            SubsetSelection(domain_size=1000, epsilon0=epsilon0) for epsilon0 in (1.0, 1.01)
        )
        assert below.subset_size > above.subset_size
        assert below.fingerprint != above.fingerprint


class TestLoss:
    @pytest.mark.parametrize(("k", "asked"), SMALL_LAWS)
    def test_it_is_that_of_the_channel_rounded_up_and_at_most_what_was_asked(self, k, asked):
        randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
        channel = randomizer.channel()
        assert all(sum(row) == 1 and min(row) > 0 for row in channel)
        loss = max(max(column) / min(column) for column in zip(*channel, strict=True))
        assert randomizer.epsilon0 <= asked
        if 1e-3 < asked < 10.0:
            assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-12)
        if loss == 1:
            assert randomizer.epsilon0 == 0.0
            return
        exact = EXACT.ln(EXACT.divide(Decimal(loss.numerator), Decimal(loss.denominator)))
        assert Decimal(math.nextafter(randomizer.epsilon0, 0.0)) < exact
        assert exact <= Decimal(randomizer.epsilon0)

    @pytest.mark.parametrize("k", [2, 3, 7, 16, 10_000_000, LARGEST_K])
    def test_near_zero_the_report_ignores_the_truth(self, k):
        for asked in (0.0, 5e-324, 1e-20):
            randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
            assert randomizer.epsilon0 == 0.0
            assert randomizer.subset_size == k // 2
            assert randomizer.support_probabilities == ((k // 2) / k,) * 2
            assert all(a.ratio0 == a.ratio1 == 1.0 for a in randomizer.profile.blanket)
        assert 0.0 < SubsetSelection(domain_size=k, epsilon0=3e-19).epsilon0 <= 3e-19

    @pytest.mark.parametrize("k", [2, 16, LARGEST_K])
    def test_saturation(self, k):
        randomizer = SubsetSelection(domain_size=k, epsilon0=1e300)
        assert (randomizer.subset_size, randomizer.threshold) == (1, 2**64 - 1)
        expected = 64 * math.log(2) + math.log(k - 1)
        assert randomizer.epsilon0 == pytest.approx(expected, rel=1e-15)
        assert randomizer == SubsetSelection(domain_size=k, epsilon0=90.0)
        assert randomizer.support_probabilities[0] == 1.0

    def test_closed_form_probabilities(self):
        # k = w (e0 + 1) makes the truth a fair coin.
        randomizer = SubsetSelection(domain_size=12, epsilon0=math.log(3))
        assert randomizer.subset_size == 3
        assert randomizer.support_probabilities == pytest.approx((1 / 2, 5 / 22), rel=1e-15)

    @pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf])
    def test_parameters_out_of_range_are_refused(self, bad):
        with pytest.raises(ParameterError, match="epsilon0 = "):
            SubsetSelection(domain_size=3, epsilon0=bad)
        for k in (0, 1, 2**32, 2.5):
            with pytest.raises(ParameterError, match="domain_size = "):
                SubsetSelection(domain_size=k, epsilon0=1.0)


class TestProfile:
    @pytest.mark.parametrize(("k", "asked"), SMALL_LAWS)
    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_blanket_is_the_infimum_of_the_channel(self, k, asked, pair):
        randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
        expected = defaultdict(Fraction)
        for column in zip(*randomizer.channel(), strict=True):
            omega = min(column)
            expected[tuple(to_14_digits(column[x] / omega) for x in pair)] += omega
        found = defaultdict(float)
        for atom in randomizer.profile.blanket:
            assert 0.0 < atom.mass <= 1.0
            found[to_14_digits(atom.ratio0), to_14_digits(atom.ratio1)] += atom.mass
        assert found.keys() == expected.keys()
        for ratios, mass in expected.items():
            assert found[ratios] == pytest.approx(float(mass), rel=1e-15)

    @pytest.mark.parametrize(("k", "asked"), SMALL_LAWS)
    def test_attack_is_that_of_a_third_category(self, k, asked):
        randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
        channel = randomizer.channel()
        expected = defaultdict(Fraction)
        separations = {}
        for other in range(1, k):  # 1 is the second of the pair (0, 1)
            columns = list(zip(channel[0], channel[1], channel[other], strict=True))
            separations[other] = sum((a - b) ** 2 / law for a, b, law in columns)
            if other == k - 1:
                for a, b, law in columns:
                    expected[float(a / law), float(b / law)] += law
        found = defaultdict(float)
        for atom in randomizer.profile.attack:
            assert 0.0 < atom.mass <= 1.0
            found[atom.ratio0, atom.ratio1] += atom.mass
        assert found.keys() == expected.keys()
        for ratios, mass in expected.items():
            assert found[ratios] == pytest.approx(float(mass), rel=1e-15)
        assert separations[k - 1] == max(separations.values())

    @pytest.mark.parametrize("k", [2, 3, 16, 10_000_000, LARGEST_K])
    @pytest.mark.parametrize("epsilon0", [0.0, 0.01, 2.0, 60.0])
    def test_attack_is_made_of_laws(self, k, epsilon0):
        atoms = SubsetSelection(domain_size=k, epsilon0=epsilon0).profile.attack
        assert math.fsum(atom.mass for atom in atoms) == pytest.approx(1.0, rel=1e-15)
        for ratio in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, ratio) for atom in atoms)
            assert mean == pytest.approx(1.0, rel=1e-14)

    @pytest.mark.parametrize("k", [2, 16, 1024, 10_000_000, LARGEST_K])
    @pytest.mark.parametrize("epsilon0", [0.0, 0.01, 2.0, 60.0])
    def test_law_of_blanket_differences_has_mean_one_minus_e(self, k, epsilon0):
        profile = SubsetSelection(domain_size=k, epsilon0=epsilon0).profile
        assert profile.family is RandomizerFamily.OTHER
        assert profile.domain_size == k
        assert (profile.channel is None) == (k > 8)
        for e in (0.5, 1.0, 2.0):
            terms = [atom.mass * (atom.ratio0 - e * atom.ratio1) for atom in profile.blanket]
            assert math.fsum(terms) == pytest.approx(1 - e, abs=1e-12)

    @pytest.mark.parametrize(("k", "asked"), SMALL_LAWS)
    def test_support_probabilities_match_the_channel(self, k, asked):
        randomizer = SubsetSelection(domain_size=k, epsilon0=asked)
        p, q = randomizer.support_probabilities
        supported = randomizer.supports(randomizer.report_columns())
        for x, v in itertools.product(range(k), repeat=2):
            row = zip(randomizer.channel()[x], supported[:, v].tolist(), strict=True)
            exact = sum(probability for probability, is_supported in row if is_supported)
            assert float(exact) == (p if x == v else q)

    def test_columns_are_all_subsets_in_ascending_order(self):
        randomizer = SubsetSelection(domain_size=4, epsilon0=0.5)
        assert randomizer.subset_size == 2
        columns = randomizer.report_columns()
        assert columns.data.tolist() == [[3], [5], [6], [9], [10], [12]]
        assert len(randomizer.channel()[0]) == 6
        assert randomizer.aggregate(columns).support.tolist() == [3] * 4

    def test_a_large_channel_is_refused(self):
        randomizer = SubsetSelection(domain_size=9, epsilon0=1.0)
        for call in (randomizer.channel, randomizer.report_columns):
            with pytest.raises(ParameterError, match="small domains"):
                call()


class TestLaw:
    @pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
    def test_each_subset_comes_from_the_same_number_of_draws(self, k):
        # All outcomes of all bounded integers, each equally likely, for either side of the coin.
        for size, code in itertools.product(range(1, k), range(k)):
            bounds = range(k - size, k)
            outcomes = list(itertools.product(*(range(bound) for bound in bounds)))
            half_words = [word for values in outcomes for word in half_words_for(values, bounds)]
            for coin, is_truth_in in ((0, True), (1, False)):
                rows = place(
                    half_words,
                    codes=[code] * len(outcomes),
                    coins=[coin] * len(outcomes),
                    threshold=1,
                    num_others=k - 1,
                    size=size,
                    k=k,
                )
                found = Counter(subset_of(row) for row in rows)
                subsets = itertools.combinations(range(k), size)
                possible = [s for s in subsets if (code in s) == is_truth_in]
                assert set(found) == set(possible)
                assert set(found.values()) == {len(outcomes) // len(possible)}

    @pytest.mark.parametrize(("k", "size"), [(2, 1), (3, 1), (4, 2), (5, 2), (6, 3)])
    def test_without_a_truth_every_subset_is_as_likely(self, k, size):
        bounds = range(k - size + 1, k + 1)
        outcomes = list(itertools.product(*(range(bound) for bound in bounds)))
        half_words = [word for values in outcomes for word in half_words_for(values, bounds)]
        rows = place(
            half_words,
            codes=[k] * len(outcomes),
            coins=[0] * len(outcomes),
            threshold=0,
            num_others=k,
            size=size,
            k=k,
        )
        found = Counter(subset_of(row) for row in rows)
        assert set(found) == set(itertools.combinations(range(k), size))
        assert set(found.values()) == {len(outcomes) // math.comb(k, size)}

    @pytest.mark.parametrize("threshold", [1, 2**63, 2**64 - 1])
    def test_the_coin_is_below_the_threshold_or_not(self, threshold):
        coins = [0, threshold - 1, threshold, 2**64 - 1]
        rows = place(
            [1] * 4,
            codes=[2] * 4,
            coins=coins,
            threshold=threshold,
            num_others=3,
            size=1,
            k=4,
        )
        is_truth = [subset_of(row) == (2,) for row in rows]
        assert is_truth == [coin < threshold for coin in coins]

    def test_a_refused_half_word_leaves_no_trace(self):
        # Half word 0 is refused for the bounds 5, 6 and 7, which do not divide 2^32.
        generator = Entropy.from_seed(1).generator()
        half_words = generator.integers(1, 2**32, 300).tolist()
        arguments = {
            "codes": generator.integers(0, 8, 100).tolist(),
            "coins": generator.integers(0, 2, 100).tolist(),
            "threshold": 1,
            "num_others": 7,
            "size": 3,
            "k": 8,
        }
        expected = place(half_words, **arguments)
        with_refused = []
        for word in half_words:
            with_refused += [0] * int(generator.integers(0, 3))
            with_refused.append(word)
        assert np.array_equal(place(with_refused, **arguments), expected)

    def test_running_out_of_words_anywhere_leaves_no_trace(self):
        generator = Entropy.from_seed(2).generator()
        codes = generator.integers(0, 100, 20).astype(np.uint32)
        coins = generator.integers(0, 2**64, 20, dtype=np.uint64)
        half_words = generator.integers(1, 2**32, 140, dtype=np.uint32)
        expected = place(
            half_words, codes=codes, coins=coins, threshold=2**63, num_others=99, size=7, k=100
        )
        for piece in (1, 2, 5, 7, 33):
            rows = np.zeros_like(expected)
            placed = 0
            for start in range(0, 140, piece):
                part = half_words[start : start + piece]
                placed = place_members(rows, codes, coins, part, np.uint64(2**63), 99, 7, placed)
                assert placed == min(start + piece, 140)
            assert np.array_equal(rows, expected)


class TestRandomize:
    @pytest.mark.parametrize(("k", "epsilon0"), STATISTICAL_CASES)
    def test_reports_follow_the_channel_and_no_other(self, k, epsilon0):
        randomizer = SubsetSelection(domain_size=k, epsilon0=epsilon0)
        columns = randomizer.report_columns().data[:, 0]
        codes = np.full(2_000_000, k - 1)
        reports = randomizer.randomize(codes, Entropy.from_seed(k)).data[:, 0]
        observed = np.bincount(reports, minlength=256)[columns]
        assert observed.sum() == codes.size

        def p_value(channel):
            expected = codes.size * np.array(channel[k - 1], dtype=float)
            assert expected.min() >= LEAST_EXPECTED
            return chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1)

        assert p_value(randomizer.channel()) > REJECTION_LEVEL
        for factor in (Fraction(97, 100), Fraction(103, 100)):
            size = randomizer.subset_size
            others = (1 - factor * Fraction(randomizer.support_probabilities[0])) / math.comb(
                k - 1, size
            )
            planted = [
                [
                    p * factor if column >> x & 1 else others
                    for p, column in zip(row, columns.tolist(), strict=True)
                ]
                for x, row in enumerate(randomizer.channel())
            ]
            assert p_value(planted) < REJECTION_LEVEL

    @pytest.mark.parametrize("k", [2, 7, 8, 16, 100, 1000])
    @pytest.mark.parametrize("num_users", [0, 1, 63, 1001])
    def test_reports_have_the_stated_size(self, k, num_users):
        randomizer = SubsetSelection(domain_size=k, epsilon0=1.0)
        reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(2))
        assert reports.num_reports == num_users
        assert reports.data.nbytes == num_users * randomizer.num_report_bytes
        assert not reports.data.flags.writeable
        supported = randomizer.supports(reports)
        assert supported.shape == (num_users, k)
        assert (supported.sum(axis=1) == randomizer.subset_size).all()
        counts = randomizer.aggregate(reports)
        assert counts.support.tolist() == supported.sum(axis=0).tolist()
        assert counts.support.sum() == num_users * randomizer.subset_size

    def test_blocks_join_without_a_seam(self):
        # At a huge epsilon0 the report is the truth, whatever the block it falls into.
        codes = np.arange(100_000) % 300
        reports = SubsetSelection(domain_size=300, epsilon0=1e3).randomize(
            codes, Entropy.from_seed(3)
        )
        assert np.array_equal(
            np.unpackbits(reports.data, axis=1, bitorder="little").argmax(1), codes
        )

    def test_ten_million_categories(self):
        randomizer = SubsetSelection(domain_size=10_000_000, epsilon0=1.0)
        codes = np.array([0, 9_999_999])
        reports = randomizer.randomize(codes, Entropy.from_seed(4))
        counts = randomizer.aggregate(reports)
        assert counts.support.sum() == 2 * randomizer.subset_size == 2 * 2_689_414

    def test_estimates_are_near_the_truth(self):
        randomizer = SubsetSelection(domain_size=20, epsilon0=3.0)
        codes = np.repeat([3, 17], [60_000, 40_000])
        reports = randomizer.randomize(codes, Entropy.from_seed(5))
        estimates = randomizer.estimate(reports)
        truth = np.bincount(codes, minlength=20) / codes.size
        errors = np.abs(estimates.frequency - truth) / estimates.standard_error
        assert errors.max() < norm.isf(REJECTION_LEVEL / (2 * 20))  # sums of 100,000 reports
        backwards = np.abs(estimates.frequency - truth[::-1]) / estimates.standard_error
        assert backwards.max() > norm.isf(REJECTION_LEVEL / (2 * 20))

    def test_codes_outside_the_domain_are_refused(self):
        with pytest.raises(DomainError, match=r"codes\[1\] = 10 is not in \[0, 10\)"):
            SubsetSelection(domain_size=10, epsilon0=1.0).randomize(
                np.array([3, 10]), Entropy.from_seed(6)
            )


class TestCount:
    @pytest.mark.parametrize("k", [5, 8, 16, 24, 32, 64, 100, 1024, 3000])
    @pytest.mark.parametrize("change", ["one more", "one less"])
    def test_a_report_of_another_size_is_named(self, k, change):
        randomizer = SubsetSelection(domain_size=k, epsilon0=0.5)
        size = randomizer.subset_size
        bits = np.zeros((3000, k), dtype=np.uint8)
        bits[:, :size] = 1
        # Two wrong reports that make up for each other in the sums.
        bits[[2345, 2999], [k - 1, 0]] = [1, 0] if change == "one more" else [0, 0]
        if change == "one less":
            bits[2345, 0] = 0
            bits[2999, [0, k - 1]] = 1
        data = np.packbits(bits, axis=1, bitorder="little")
        reports = Reports(data=data, fingerprint=randomizer.fingerprint)
        wrong = size + 1 if change == "one more" else size - 1
        for call in (randomizer.aggregate, randomizer.supports):
            with pytest.raises(DomainError, match=f"report 2345 has {wrong} bits set, not {size}"):
                call(reports)

    def test_a_bit_beyond_the_domain_is_named(self):
        randomizer = SubsetSelection(domain_size=5, epsilon0=1.0)
        data = np.full((4, 1), 1 << 5, dtype=np.uint8)
        with pytest.raises(DomainError, match="report 0 has a bit set beyond category 4"):
            randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))

    def test_reports_of_another_law_are_refused(self):
        reports = SubsetSelection(domain_size=5, epsilon0=1.0).report_columns()
        with pytest.raises(FingerprintError, match="k and epsilon0"):
            SubsetSelection(domain_size=5, epsilon0=1.5).aggregate(reports)

    def test_order_and_strides_do_not_matter(self):
        randomizer = SubsetSelection(domain_size=30, epsilon0=1.0)
        data = randomizer.randomize(np.arange(500) % 30, Entropy.from_seed(7)).data
        whole = randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))
        back = randomizer.aggregate(Reports(data=data[::-1], fingerprint=randomizer.fingerprint))
        assert np.array_equal(whole.support, back.support)
