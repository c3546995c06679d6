"""What all randomizers of numbers promise."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws_of_numbers import coarse, report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers import Duchi, Piecewise

CLASSES = (Duchi, Piecewise)
ASKED_EPSILON0 = (
    *(0.0, 5e-324, 1e-18, 1e-9, 1e-6, 0.1, 0.6, 0.61, 1.0, math.log(3)),
    *(4.0, 9.7, 9.71, 12.0, 20.8, 40.0, 44.3, 60.0, 1e300),
)
VARIANCES = (
    lambda randomizer: report_variance(randomizer, 0.5),
    lambda randomizer: randomizer.mean_report_variance(),
)


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.name)
def cls(request):
    return request.param


def largest_report(randomizer):
    """Return the largest code that this law makes."""
    return 1 if isinstance(randomizer, Duchi) else randomizer.law.num_outputs - 1


class TestLaw:
    @pytest.mark.parametrize("asked", ASKED_EPSILON0)
    def test_epsilon0_is_at_most_what_was_asked(self, cls, asked):
        randomizer = cls(low=0, high=1, epsilon0=asked)
        assert 0.0 <= randomizer.epsilon0 <= asked
        assert randomizer.profile.epsilon0 == randomizer.epsilon0
        if 1e-3 < asked < 10.0:
            assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-10)

    @pytest.mark.parametrize("asked", ASKED_EPSILON0)
    def test_a_randomizer_rebuilt_from_what_it_prints_is_the_same(self, cls, asked):
        randomizer = cls(low=-3, high=0.1, epsilon0=asked)
        again = eval(repr(randomizer), {cls.__name__: cls})  # noqa: S307 - our own text
        assert again == randomizer
        assert again.fingerprint == randomizer.fingerprint

    @given(epsilon0=st.floats(0.0, 70.0), kind=st.sampled_from(CLASSES))
    def test_rebuilding_is_a_fixed_point_everywhere(self, epsilon0, kind):
        randomizer = kind(low=0, high=1, epsilon0=epsilon0)
        assert randomizer.epsilon0 <= epsilon0
        again = kind(low=0, high=1, epsilon0=randomizer.epsilon0)
        assert again.fingerprint == randomizer.fingerprint
        assert again.epsilon0 == randomizer.epsilon0

    def test_every_change_of_the_law_changes_the_fingerprint(self):
        ranges = ((0.0, 1.0), (0.0, 2.0), (-1.0, 1.0), (0.0, math.nextafter(1.0, 2.0)))
        prints = {
            kind(low=low, high=high, epsilon0=epsilon0).fingerprint
            for kind, (low, high), epsilon0 in itertools.product(
                CLASSES, ranges, (0.0, 1.0, 1.0 + 1e-9, 2.0)
            )
        }
        assert len(prints) == len(CLASSES) * len(ranges) * 4

    def test_the_window_is_part_of_the_law(self):
        found = [make(low=0, high=1, epsilon0=1.0) for make in (Piecewise, coarse(2))]
        assert found[0].fingerprint != found[1].fingerprint

    def test_profiles(self, cls):
        profile = cls(low=0, high=1, epsilon0=1.0).profile
        if cls is Duchi:
            assert profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
            assert profile.domain_size == 2
        else:
            assert profile.family is RandomizerFamily.OTHER
            assert profile.domain_size is None

    @pytest.mark.parametrize("epsilon0", [-1e-9, math.nan, math.inf])
    def test_epsilon0_out_of_range_is_refused(self, cls, epsilon0):
        with pytest.raises(ParameterError, match="epsilon0 = "):
            cls(low=0, high=1, epsilon0=epsilon0)


class TestRandomize:
    @pytest.mark.parametrize("num_users", [1, 63, 2**15, 2**15 + 1, 100_001])
    def test_reports_have_the_stated_size(self, cls, num_users):
        randomizer = cls(low=-1, high=1, epsilon0=1.0)
        reports = randomizer.randomize(np.linspace(-1, 1, num_users), Entropy.from_seed(2))
        assert reports.num_reports == num_users
        assert reports.data.nbytes == num_users * randomizer.num_report_bytes
        assert reports.fingerprint == randomizer.fingerprint
        assert not reports.data.flags.writeable
        assert randomizer.aggregate(reports).num_reports == num_users

    def test_dimension_is_one(self, cls):
        assert cls(low=0, high=1, epsilon0=1.0).dimension == 1

    def test_an_empty_batch_gives_no_reports(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        for values in (np.array([]), np.array([], dtype=np.int8), []):
            reports = randomizer.randomize(values, Entropy.from_seed(3))
            sums = randomizer.aggregate(reports)
            assert sums.num_reports == 0
            assert sums.total.tolist() == sums.total_of_squares.tolist() == [0.0]
            with pytest.raises(DataError, match="0 reports"):
                randomizer.estimate(reports)

    @pytest.mark.parametrize("position", [2, 40_000])
    @pytest.mark.parametrize("bad", [1.5, -0.0001, math.inf, -math.inf, math.nan])
    def test_a_value_outside_the_range_is_named(self, cls, bad, position):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        values = np.full(50_000, 0.5)
        values[[position, position + 7]] = bad
        advice = "missing values" if math.isnan(bad) else "clip the values"
        message = rf"values\[{position}\] = {bad} is not in \[0.0, 1.0\]: .*{advice}"
        with pytest.raises(DomainError, match=message):
            randomizer.randomize(values, Entropy.from_seed(4))

    def test_what_is_no_row_of_numbers_is_refused(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        wrong = (np.array(["1"]), np.array([True]), np.array([1j]), np.array([None]))
        for values in wrong:
            with pytest.raises(ParameterError, match="give integers or floats"):
                randomizer.randomize(values, Entropy.from_seed(5))
        for values in (np.zeros((2, 2)), np.float64(0.5)):
            with pytest.raises(ParameterError, match="shape"):
                randomizer.randomize(values, Entropy.from_seed(5))

    @pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", ">i8", "f2", "f4", ">f8"])
    def test_every_type_of_number_gives_the_same_reports(self, cls, dtype):
        randomizer = cls(low=0, high=127, epsilon0=1.0)
        values = np.arange(128.0)
        expected = randomizer.randomize(values, Entropy.from_seed(6)).data
        given_values = np.repeat(values, 2).astype(dtype)[::2]
        given_values.flags.writeable = False
        found = randomizer.randomize(given_values, Entropy.from_seed(6)).data
        assert np.array_equal(found, expected)

    def test_a_single_that_exceeds_the_end_is_seen(self, cls):
        # The single nearest to 0.1 is larger than the double nearest to it.
        randomizer = cls(low=0, high=0.1, epsilon0=1.0)
        with pytest.raises(DomainError, match=r"0\.10000000149"):
            randomizer.randomize(np.array([0.1], dtype=np.float32), Entropy.from_seed(6))

    def test_a_seed_reproduces_the_reports_and_another_does_not(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        values = np.linspace(0, 1, 100_000)
        first, again, other = (
            randomizer.randomize(values, Entropy.from_seed(seed)).data for seed in (7, 7, 8)
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_at_a_huge_epsilon0_the_values_come_back(self, cls):
        # Rounding to the grid is all that is left, and the ends are grid points.
        randomizer = cls(low=-5, high=3, epsilon0=1e300)
        values = np.repeat([-5.0, 3.0], 500)
        reports = randomizer.randomize(values, Entropy.from_seed(9))
        offset, factor = randomizer.score_scale
        decoded = offset + factor * randomizer.scores(reports)[:, 0]
        assert decoded == pytest.approx(values, abs=1e-3)

    def test_at_epsilon0_zero_reports_do_not_depend_on_the_value(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=0.0)
        low, high = (
            randomizer.randomize(np.full(1000, value), Entropy.from_seed(1)) for value in (0.0, 1.0)
        )
        if cls is Piecewise:  # uniform on all outputs, the window's 256 among them
            assert low.data.min() < 20
            assert low.data.max() > 490
        difference = abs(int(low.data.sum()) - int(high.data.sum()))
        assert difference <= 0.2 * 1000 * low.data.max()


class TestDecode:
    def test_sums_are_those_of_the_scores(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=2.0)
        reports = randomizer.randomize(np.linspace(0, 1, 5000), Entropy.from_seed(1))
        scores = randomizer.scores(reports)
        assert scores.shape == (5000, 1)
        sums = randomizer.aggregate(reports)
        assert sums.total[0] == pytest.approx(scores.sum(), rel=1e-12)
        assert sums.total_of_squares[0] == pytest.approx((scores**2).sum(), rel=1e-12)
        estimates = randomizer.estimate(sums)
        offset, factor = randomizer.score_scale
        assert estimates.mean[0] == pytest.approx(offset + factor * scores.mean())
        assert estimates.mean[0] == randomizer.estimate(reports).mean[0]

    @given(
        kind=st.sampled_from(CLASSES),
        num_users=st.integers(0, 600),
        cut=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_order_and_parts_do_not_matter(self, kind, num_users, cut, seed):
        randomizer = kind(low=0, high=1, epsilon0=1.0)
        entropy = Entropy.from_seed(seed)
        generator = entropy.generator()
        data = randomizer.randomize(generator.random(num_users), entropy).data

        def aggregate(part):
            return randomizer.aggregate(Reports(data=part, fingerprint=randomizer.fingerprint))

        whole = aggregate(data)
        split = int(cut * num_users)
        for other in (
            aggregate(data[generator.permutation(num_users)]),
            aggregate(data[::-1]),
            aggregate(data[:split]) + aggregate(data[split:]),
        ):
            # Whole numbers below 2^53 add exactly.
            assert other.total[0] == whole.total[0]
            assert other.total_of_squares[0] == whole.total_of_squares[0]
            assert other.num_reports == whole.num_reports

    def test_reports_of_another_law_are_refused(self, cls):
        reports = cls(low=0, high=1, epsilon0=1.0).randomize(np.ones(4), Entropy.from_seed(1))
        for other in (cls(low=0, high=2, epsilon0=1.0), cls(low=0, high=1, epsilon0=1.5)):
            for read in (other.aggregate, other.scores, other.estimate):
                with pytest.raises(FingerprintError):
                    read(reports)

    def test_reports_of_another_shape_or_type_are_refused(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        data = randomizer.randomize(np.ones(20), Entropy.from_seed(1)).data
        for wrong in (data.astype(np.int64), data[:, None]):
            with pytest.raises(ParameterError, match="as it was made"):
                randomizer.aggregate(Reports(data=wrong, fingerprint=randomizer.fingerprint))

    def test_impossible_reports_are_refused(self, cls):
        randomizer = cls(low=0, high=1, epsilon0=1.0)
        data = randomizer.randomize(np.ones(9), Entropy.from_seed(1)).data.copy()
        data[3] = largest_report(randomizer)
        randomizer.scores(Reports(data=data, fingerprint=randomizer.fingerprint))
        data[3] += 1
        reports = Reports(data=data, fingerprint=randomizer.fingerprint)
        for read in (randomizer.aggregate, randomizer.scores):
            with pytest.raises(DomainError, match=r"report 3 is \d+, not in \["):
                read(reports)

    @pytest.mark.parametrize("epsilon0", [0.0, 5e-324])
    def test_nothing_is_estimated_from_reports_that_say_nothing(self, cls, epsilon0):
        randomizer = cls(low=0, high=1, epsilon0=epsilon0)
        assert randomizer.epsilon0 == 0.0
        reports = randomizer.randomize(np.ones(10), Entropy.from_seed(1))
        with pytest.raises(ParameterError, match="say nothing"):
            randomizer.estimate(reports)
        for variance_of in VARIANCES:
            with pytest.raises(ParameterError, match="say nothing"):
                variance_of(randomizer)


class TestVariance:
    @pytest.mark.parametrize("epsilon0", [1e-6, 0.3, 1.0, 4.0, 12.0, 30.0, 1e300])
    def test_the_mean_lies_between_the_best_and_the_worst(self, cls, epsilon0):
        randomizer = cls(low=-2, high=6, epsilon0=epsilon0)
        some = [report_variance(randomizer, value) for value in np.linspace(-2, 6, 1001)]
        assert 0.0 <= min(some) <= randomizer.mean_report_variance() <= max(some)

    def test_the_mean_is_the_average_over_the_range(self, cls):
        # Piecewise has kinks at each of 1024 steps or fewer, whose average a fine
        # grid of values finds.
        randomizer = cls(low=-2, high=6, epsilon0=1.5)
        values = -2 + 8 * (np.arange(20_000) + 0.5) / 20_000
        average = np.mean([report_variance(randomizer, value) for value in values])
        assert randomizer.mean_report_variance() == pytest.approx(average, rel=1e-6)

    def test_units_scale(self, cls):
        small = cls(low=-1, high=1, epsilon0=1.0)
        large = cls(low=990, high=1010, epsilon0=1.0)
        for x in (-1.0, 0.25, 1.0):
            assert report_variance(large, 1000 + 10 * x) == pytest.approx(
                100 * report_variance(small, x)
            )

    def test_the_limits_of_the_range_can_be_far_apart_or_near(self, cls):
        for width in (1e-100, 1e100):
            randomizer = cls(low=0.0, high=width, epsilon0=1e-6)
            assert 0.0 < randomizer.mean_report_variance() < math.inf
