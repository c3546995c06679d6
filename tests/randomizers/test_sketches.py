import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.arrays import walsh_hadamard
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.randomizers import CountMeanSketch, Counts, Reports
from shuffledp.randomizers.keyed_hash import buckets_of, digests_of

KEY = bytes(range(16))
ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
SIZES = ((1, 2), (2, 2), (1, 8), (4, 4), (2, 64), (1024, 1024))


@pytest.fixture
def make():
    def make_sketch(epsilon0=1.0, key=KEY, num_hashes=4, num_buckets=16):
        return CountMeanSketch(
            epsilon0=epsilon0, key=key, num_hashes=num_hashes, num_buckets=num_buckets
        )

    return make_sketch


def channel(sketch, bucket_of_hash):
    """Return the exact probability of every report (j, bits) for a string with these buckets."""
    flip = Fraction(sketch.threshold, 2**64)
    m, w = sketch.num_hashes, sketch.num_buckets
    law = {}
    for j, bucket in enumerate(bucket_of_hash):
        for bits in itertools.product((0, 1), repeat=w):
            flipped = sum(bit != (place == bucket) for place, bit in enumerate(bits))
            law[j, bits] = flip**flipped * (1 - flip) ** (w - flipped) / m
    return law


def is_supporting(report, bucket_of_hash):
    """Return whether a report supports a string with these buckets."""
    return report[1][bucket_of_hash[report[0]]] == 1


def as_row(report):
    """Return the row of data that stands for a report."""
    bits = np.packbits(report[1], bitorder="little").tolist()
    return np.array([report[0] % 256, report[0] // 256, *bits], dtype=np.uint8)


def reports_of(sketch, rows):
    empty = sketch.randomize([], Entropy.from_seed(0)).data
    data = np.array(rows, dtype=empty.dtype).reshape(-1, *empty.shape[1:])
    return Reports(data=data, fingerprint=sketch.fingerprint)


def buckets(sketch, text):
    """Return the bucket of a text under each hash function."""
    hashes = np.arange(sketch.num_hashes, dtype=np.uint64)
    digests = np.repeat(digests_of([text], sketch.key), sketch.num_hashes)
    return buckets_of(digests, hashes, key=sketch.key, num_buckets=sketch.num_buckets).tolist()


class TestLaw:
    @pytest.mark.parametrize("asked", ASKED_EPSILON0)
    def test_epsilon0_is_at_most_what_was_asked_and_a_fixed_point(self, make, asked):
        sketch = make(asked)
        assert 0.0 <= sketch.epsilon0 <= asked
        if 1e-3 < asked < 40.0:
            assert sketch.epsilon0 == pytest.approx(asked, rel=1e-12)
        again = make(sketch.epsilon0)
        assert again == sketch
        assert again.fingerprint == sketch.fingerprint
        assert sketch.profile.epsilon0 == sketch.epsilon0

    @pytest.mark.parametrize("asked", [0.0, 1e-9, 1.0, 4.0, 60.0])
    @pytest.mark.parametrize(("num_hashes", "num_buckets"), [(1, 2), (2, 2), (1, 4), (2, 4)])
    def test_blanket_is_the_infimum_of_the_channel(self, make, asked, num_hashes, num_buckets):
        sketch = make(asked, num_hashes=num_hashes, num_buckets=num_buckets)
        laws = [channel(sketch, [bucket] * num_hashes) for bucket in range(num_buckets)]
        assert all(sum(law.values()) == 1 for law in laws)
        expected = defaultdict(Fraction)
        for report in laws[0]:
            omega = min(law[report] for law in laws)
            expected[tuple(float(law[report] / omega) for law in laws[:2])] += omega
        found = defaultdict(float)
        for atom in sketch.profile.blanket:
            found[atom.ratio0, atom.ratio1] += atom.mass
        for ratios, mass in found.items():
            nearest = min(
                expected, key=lambda key: abs(key[0] / ratios[0] - 1) + abs(key[1] / ratios[1] - 1)
            )
            assert ratios == pytest.approx(nearest, rel=1e-12)
            assert mass == pytest.approx(float(expected.pop(nearest)), rel=1e-12, abs=1e-18)
        assert sum(expected.values()) < 1e-18
        loss = max(laws[0][report] / laws[1][report] for report in laws[0])
        assert sketch.epsilon0 == pytest.approx(math.log(loss), rel=1e-14, abs=1e-14)
        assert math.exp(sketch.epsilon0) >= loss * (1 - Fraction(1, 10**14))

    def test_two_strings_that_meet_in_some_buckets_are_dominated(self, make):
        sketch = make(1.0, num_hashes=2, num_buckets=4)
        omega = {
            report: min(channel(sketch, [bucket] * 2)[report] for bucket in range(4))
            for report in channel(sketch, [0, 0])
        }

        def divergence(first, second, factor, shift):
            """E (shift + ratio0 - factor ratio1)_+ under omega."""
            laws = channel(sketch, first), channel(sketch, second)
            return sum(
                max(shift * mass + laws[0][report] - factor * laws[1][report], 0)
                for report, mass in omega.items()
            )

        for factor, shift in itertools.product(
            (Fraction(1, 2), 1, Fraction(3, 2), 2), (Fraction(-2), -1, 0, 1, Fraction(5, 2))
        ):
            apart = divergence([0, 0], [1, 1], factor, shift)
            assert divergence([0, 0], [0, 1], factor, shift) <= apart
            assert divergence([0, 0], [0, 0], factor, shift) <= apart

    def test_the_fingerprint_has_every_parameter(self):
        settings = itertools.product((0.0, 1.0, 1.0 + 1e-12), (KEY, bytes(16)), (1, 2), (2, 4))
        prints = [
            CountMeanSketch(epsilon0=epsilon0, key=key, num_hashes=m, num_buckets=w).fingerprint
            for epsilon0, key, m, w in settings
        ]
        assert len(set(prints)) == len(prints) == 24

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"num_hashes": 0}, "num_hashes = 0"),
            ({"num_hashes": 3}, r"num_hashes = 3 is not a power of two in \[1, 65536\]: try 2"),
            ({"num_hashes": 2**17}, "try 65536"),
            ({"num_hashes": 2.0}, "num_hashes = 2.0 is not a whole number"),
            ({"num_buckets": 1}, "num_buckets = 1 is below 2"),
            ({"num_buckets": 1000}, "try 512"),
            ({"num_buckets": 2**21}, "try 1048576"),
            ({"num_hashes": 2**10, "num_buckets": 2**17}, r"num_hashes \* num_buckets"),
            ({"epsilon0": math.nan}, "epsilon0"),
            ({"epsilon0": -1.0}, "epsilon0"),
            ({"epsilon0": math.inf}, "epsilon0"),
            ({"key": b"short"}, "key is 5 bytes"),
        ],
    )
    def test_parameters_out_of_range_are_refused(self, make, wrong, message):
        with pytest.raises(ParameterError, match=message):
            make(**wrong)


class TestEstimateInExactArithmetic:
    """All hash functions of tiny sketches, each as probable as the others."""

    @pytest.mark.parametrize(("num_hashes", "num_buckets"), [(1, 2), (2, 2), (1, 4), (1, 8)])
    @pytest.mark.parametrize("num_users", [(3, 2, 1), (0, 4, 0), (5, 0, 0), (1, 7, 7)])
    def test_mean_and_variance(self, make, num_hashes, num_buckets, num_users):
        sketch = make(1.0, num_hashes=num_hashes, num_buckets=num_buckets)
        n, w = sum(num_users), num_buckets
        rows = list(itertools.product(range(w), repeat=num_hashes))
        # The support of string 0 by a user of each string, given the buckets of both.
        chance = {
            (own, other): sum(
                probability
                for report, probability in channel(sketch, other).items()
                if is_supporting(report, own)
            )
            for own, other in itertools.product(rows, repeat=2)
        }
        p = chance[rows[0], rows[0]]
        assert all(chance[own, own] == p for own in rows)
        q = sum(chance[rows[0], other] for other in rows) / len(rows)
        assert [float(p), float(q)] == pytest.approx(sketch.support_probabilities, rel=1e-15)
        mean = second_moment = Fraction(0)
        for own, *others in itertools.product(rows, repeat=3):
            chances = [p, *(chance[own, other] for other in others)]
            expected = sum(c * s for c, s in zip(num_users, chances, strict=True))
            noise = sum(c * s * (1 - s) for c, s in zip(num_users, chances, strict=True))
            frequency = (expected / n - q) / (p - q)
            mean += frequency
            second_moment += frequency**2 + noise / (n * (p - q)) ** 2
        mean /= len(rows) ** 3
        assert mean == Fraction(num_users[0], n)  # unbiased
        variance = second_moment / len(rows) ** 3 - mean**2
        stated = sketch.expected_standard_error(
            num_users=n,
            frequency=num_users[0] / n,
            sum_of_other_squares=sum((c / n) ** 2 for c in num_users[1:]),
        )
        assert stated**2 == pytest.approx(float(variance), rel=1e-12)

    @pytest.mark.parametrize("texts", [["a", "b"], ["a", "a"], ["a", "b", "a"]])
    def test_colliding_pairs_are_unbiased(self, make, texts):
        sketch = make(1.0, num_hashes=2, num_buckets=2)
        laws = [channel(sketch, buckets(sketch, text)) for text in texts]
        mean = 0.0
        for reports in itertools.product(laws[0], repeat=len(texts)):
            probability = math.prod(law[report] for law, report in zip(laws, reports, strict=True))
            counts = sketch.aggregate(reports_of(sketch, [as_row(r) for r in reports]))
            mean += float(probability) * sketch._colliding_pairs(counts)
        places = [list(enumerate(buckets(sketch, text))) for text in texts]
        expected = sum(
            sum(a == b for a, b in zip(places[i], places[j], strict=True)) / sketch.num_hashes**2
            for i, j in itertools.permutations(range(len(texts)), 2)
        )
        assert mean == pytest.approx(expected, abs=1e-12)


class TestRandomize:
    @pytest.mark.parametrize(("num_hashes", "num_buckets"), SIZES)
    @pytest.mark.parametrize("num_users", [0, 1, 1001])
    def test_reports_have_the_stated_size(self, make, num_hashes, num_buckets, num_users):
        sketch = make(1.0, num_hashes=num_hashes, num_buckets=num_buckets)
        reports = sketch.randomize(["a"] * num_users, Entropy.from_seed(1))
        assert reports.num_reports == num_users
        assert reports.data.nbytes == num_users * sketch.num_report_bytes
        assert reports.fingerprint == sketch.fingerprint
        counts = sketch.aggregate(reports)
        assert counts.num_reports == num_users
        assert counts.support.size == sketch.num_counts

    @pytest.mark.parametrize(("num_hashes", "num_buckets"), SIZES)
    def test_at_a_huge_epsilon0_the_truth_is_supported(self, make, num_hashes, num_buckets):
        sketch = make(1e300, num_hashes=num_hashes, num_buckets=num_buckets)
        texts = [f"text {i % 9}" for i in range(3000)]
        data = sketch.randomize(texts, Entropy.from_seed(2)).data
        hashes = data[:, 0] + 256 * data[:, 1].astype(int)
        rows = np.unpackbits(data[:, 2:], axis=1, bitorder="little")
        supported = [np.flatnonzero(row).tolist() for row in rows]
        expected = [[buckets(sketch, text)[j]] for text, j in zip(texts[:99], hashes, strict=False)]
        assert supported[:99] == expected
        # Hash functions are drawn afresh, and all of them.
        assert hashes.min() >= 0
        assert hashes.max() < num_hashes
        assert np.unique(hashes).size >= min(num_hashes, 900)

    def test_every_kind_of_sequence_gives_the_same_reports(self, make):
        texts = ["a", "b", "", "c"] * 100
        sketch = make()
        expected = sketch.randomize(texts, Entropy.from_seed(3)).data
        for same in (tuple(texts), np.array(texts), pl.Series(texts)):
            assert np.array_equal(sketch.randomize(same, Entropy.from_seed(3)).data, expected)
        assert not np.array_equal(sketch.randomize(texts, Entropy.from_seed(4)).data, expected)

    def test_what_is_not_a_text_is_refused(self, make):
        with pytest.raises(DomainError, match=r"values\[1\]"):
            make().randomize(["a", None], Entropy.from_seed(5))
        with pytest.raises(ParameterError, match="values"):
            make().randomize(np.array([1.0]), Entropy.from_seed(5))


class TestAggregate:
    @pytest.mark.parametrize(("num_hashes", "num_buckets"), SIZES[:-1])
    def test_counts_are_those_of_plain_loops(self, make, num_hashes, num_buckets):
        sketch = make(0.5, num_hashes=num_hashes, num_buckets=num_buckets)
        # More than 255 reports of a hash function, where one-byte counters are emptied.
        reports = sketch.randomize(["a", "b", "c"] * 900, Entropy.from_seed(6))
        counts = sketch.aggregate(reports).support
        rows = np.unpackbits(
            reports.data[:, 2:], axis=1, bitorder="little", count=num_buckets
        ).astype(np.int64)
        hashes = reports.data[:, 0]
        cells = np.zeros((num_hashes, num_buckets), dtype=np.int64)
        np.add.at(cells, hashes, rows)
        expected = np.concatenate([cells.reshape(-1), np.bincount(hashes, minlength=num_hashes)])
        assert np.array_equal(counts, expected)

    @given(
        num_users=st.integers(0, 300),
        cut=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_order_and_parts_do_not_matter(self, num_users, cut, seed):
        law = CountMeanSketch(epsilon0=1.0, key=KEY, num_hashes=2, num_buckets=8)
        entropy = Entropy.from_seed(seed)
        data = law.randomize(["a", "b"] * num_users, entropy).data

        def count(part):
            return law.aggregate(Reports(data=part, fingerprint=law.fingerprint))

        split = int(cut * len(data))
        whole = count(data)
        shuffled = count(data[entropy.generator().permutation(len(data))])
        for other in (count(data[:split]) + count(data[split:]), shuffled, count(data[::-1])):
            assert isinstance(other, Counts)
            assert np.array_equal(other.support, whole.support)
            assert other.num_reports == whole.num_reports == len(data)

    def test_reports_of_another_key_or_law_are_refused(self, make):
        reports = make(key=bytes(16)).randomize(["a"], Entropy.from_seed(7))
        for other in (make(), make(key=bytes(16), epsilon0=2.0)):
            with pytest.raises(FingerprintError):
                other.aggregate(reports)
            with pytest.raises(FingerprintError):
                other.estimate(make(key=bytes(16)).aggregate(reports), dictionary=["a"])

    def test_reports_of_another_shape_or_type_are_refused(self, make):
        sketch = make()
        data = sketch.randomize(["a"] * 5, Entropy.from_seed(8)).data
        for wrong in (data.astype(np.int64), data[:, None], np.zeros((5, 99), np.uint8)):
            with pytest.raises(ParameterError, match="as it was made"):
                sketch.aggregate(Reports(data=wrong, fingerprint=sketch.fingerprint))

    def test_impossible_reports_are_named(self):
        entropy = Entropy.from_seed(9)
        for sketch, column, value in (
            (CountMeanSketch(epsilon0=1.0, key=KEY, num_hashes=4, num_buckets=4), 0, 4),
            (CountMeanSketch(epsilon0=1.0, key=KEY, num_hashes=4, num_buckets=4), 1, 1),
            (CountMeanSketch(epsilon0=1.0, key=KEY, num_hashes=4, num_buckets=4), 2, 16),
            (CountMeanSketch(epsilon0=1.0, key=KEY, num_hashes=4, num_buckets=64), 0, 4),
        ):
            data = sketch.randomize(["a"] * 9, entropy).data.copy()
            data[(3, column)] = value
            with pytest.raises(DomainError, match=r"report 3\b.*corrupt or forged"):
                sketch.aggregate(Reports(data=data, fingerprint=sketch.fingerprint))


class TestEstimate:
    def test_the_transform_is_that_of_the_definition(self):
        rows = Entropy.from_seed(10).words(3 * 16).astype(np.int64).reshape(3, 16) >> 40
        expected = [
            [
                sum(int(c) * (-1) ** (i & b).bit_count() for i, c in enumerate(row))
                for b in range(16)
            ]
            for row in rows
        ]
        assert walsh_hadamard(rows).tolist() == expected
        assert walsh_hadamard(rows[:, :1]).tolist() == rows[:, :1].tolist()

    @pytest.mark.parametrize(("num_hashes", "num_buckets"), SIZES[:-1])
    def test_frequencies_are_those_of_plain_loops(self, make, num_hashes, num_buckets):
        sketch = make(2.0, num_hashes=num_hashes, num_buckets=num_buckets)
        reports = sketch.randomize(["a", "b", "c"] * 100, Entropy.from_seed(11))
        dictionary = ["b", "zebra", "a", ""]
        found = sketch.estimate(reports, dictionary=dictionary).count
        p, q = sketch.support_probabilities
        for text, count in zip(dictionary, found, strict=True):
            places = buckets(sketch, text)
            support = 0
            for row in reports.data:
                bits = np.unpackbits(row[2:], bitorder="little")
                support += int(bits[places[row[0]]])
            assert count == pytest.approx((support - 300 * q) / (p - q), rel=1e-12, abs=1e-9)

    @pytest.mark.parametrize("interval", ["wilson", "wald"])
    @pytest.mark.parametrize("simultaneous", [False, True])
    def test_intervals_hold_both_parts_of_the_error(self, make, interval, simultaneous):
        sketch = make(4.0)
        counts = sketch.aggregate(sketch.randomize(["a"] * 4000, Entropy.from_seed(12)))
        options = {"confidence": 0.9, "interval": interval, "simultaneous": simultaneous}
        found = sketch.estimate(counts, dictionary=["a", "b"], **options)
        quantile = normal_quantile(simultaneous_confidence(0.9, 2) if simultaneous else 0.9)
        half_width = (found.upper - found.lower) / 2
        # Of a string that everybody else holds, collisions are all of the error.
        assert found.standard_error[1] > 3 * found.standard_error[0]
        assert half_width[1] == pytest.approx(quantile * found.standard_error[1], rel=0.02)
        assert found.num_users == 4000
        assert found.confidence == 0.9
        assert found.interval == interval
        assert found.is_simultaneous is simultaneous
        if interval == "wald":
            assert half_width == pytest.approx(quantile * found.standard_error)

    @pytest.mark.parametrize("epsilon0", [1.0, 4.0])
    @pytest.mark.parametrize("num_strings", [1, 5, 1000])
    def test_collisions_are_known_and_rather_too_large(self, make, epsilon0, num_strings):
        num_users = 200_000
        sketch = make(epsilon0, num_hashes=64, num_buckets=64)
        texts = pl.Series([f"text {i % num_strings}" for i in range(num_users)])
        counts = sketch.aggregate(sketch.randomize(texts, Entropy.from_seed(13)))
        stated = sketch.estimate(counts, dictionary=["text 0", "unheard of"]).standard_error
        exact = [
            sketch.expected_standard_error(
                num_users=num_users,
                frequency=frequency,
                sum_of_other_squares=1 / num_strings - frequency**2,
            )
            for frequency in (1 / num_strings, 0.0)
        ]
        worst = sketch.expected_standard_error(
            num_users=num_users, frequency=0.0, sum_of_other_squares=1.0
        )
        assert 0.99 * exact[0] <= stated[0] <= 1.2 * exact[0]
        assert 0.99 * exact[1] <= stated[1] <= min(1.2 * exact[1], 1.001 * worst)

    def test_the_smallest_sketch_assumes_the_worst(self, make):
        sketch = make(2.0, num_hashes=1, num_buckets=2)
        counts = sketch.aggregate(sketch.randomize(["a", "b"] * 500, Entropy.from_seed(14)))
        assert sketch._same_string_pairs_upper(counts) == 1000 * 999

    def test_one_user_has_no_pairs(self, make):
        sketch = make(2.0)
        counts = sketch.aggregate(sketch.randomize(["a"], Entropy.from_seed(15)))
        found = sketch.estimate(counts, dictionary=["a", "b"])
        assert np.isfinite(found.standard_error).all()

    @pytest.mark.parametrize("epsilon0", [0.0, 1e-18])
    def test_reports_that_say_nothing_are_refused(self, make, epsilon0):
        sketch = make(epsilon0)
        reports = sketch.randomize(["a"] * 9, Entropy.from_seed(16))
        with pytest.raises(ParameterError, match="say nothing"):
            sketch.estimate(reports, dictionary=["a"])
        with pytest.raises(ParameterError, match="say nothing"):
            sketch.expected_standard_error(num_users=9, frequency=0.0, sum_of_other_squares=0.0)

    def test_dictionaries_are_checked(self, make):
        sketch = make()
        reports = sketch.randomize(["a"] * 9, Entropy.from_seed(17))
        with pytest.raises(DomainError, match="dictionary is empty"):
            sketch.estimate(reports, dictionary=[])
        with pytest.raises(DomainError, match=r"dictionary\[3\] repeats dictionary\[1\]"):
            sketch.estimate(reports, dictionary=["a", "b", "c", "b"])
        with pytest.raises(DomainError, match=r"dictionary\[1\] is of type int"):
            sketch.estimate(reports, dictionary=["a", 1])
        with pytest.raises(ParameterError, match="dictionary is one str"):
            sketch.estimate(reports, dictionary="a")

    def test_other_data_are_refused(self, make):
        sketch = make()
        with pytest.raises(DataError, match="no reports"):
            sketch.estimate(sketch.randomize([], Entropy.from_seed(18)), dictionary=["a"])
        short = Counts(support=np.array([1]), num_reports=1, fingerprint=sketch.fingerprint)
        with pytest.raises(ParameterError, match="has 1 cells"):
            sketch.estimate(short, dictionary=["a"])

    @pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
    def test_a_sum_of_squares_is_checked(self, make, wrong):
        with pytest.raises(ParameterError, match="sum_of_other_squares"):
            make().expected_standard_error(num_users=9, frequency=0.0, sum_of_other_squares=wrong)
