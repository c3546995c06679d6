"""What PrivUnit promises, and its estimates."""

import copy
import math

import numpy as np
import pytest

from laws_of_numbers import report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers import PrivUnit


@pytest.fixture
def make():
    return PrivUnit


def some_vectors(num_users, dimension, seed=1):
    """Return vectors of all lengths up to 1."""
    generator = Entropy.from_seed(seed).generator()
    values = generator.standard_normal((num_users, dimension))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return values * generator.random((num_users, 1))


class TestParameters:
    def test_names(self):
        assert PrivUnit.name == "privunit"

    def test_profile(self, make):
        randomizer = make(dimension=4, epsilon0=2.0)
        assert randomizer.profile.epsilon0 == randomizer.epsilon0
        assert randomizer.profile.family is RandomizerFamily.OTHER
        assert randomizer.profile.domain_size is None
        assert len(randomizer.profile.blanket) == 3
        assert len(randomizer.profile.attack) == 6

    def test_every_change_of_the_law_changes_the_fingerprint(self):
        prints = {
            PrivUnit(dimension=d, epsilon0=e, norm_bound=b).fingerprint
            for d in (2, 3, 100)
            for e in (0.0, 1.0, 1.0 + 1e-12, 2.0)
            for b in (1.0, 1.5)
        }
        assert len(prints) == 3 * 4 * 2

    @pytest.mark.parametrize("epsilon0", [-1e-9, math.nan, math.inf])
    def test_epsilon0_out_of_range(self, make, epsilon0):
        with pytest.raises(ParameterError, match="epsilon0 = "):
            make(dimension=3, epsilon0=epsilon0)

    def test_dimension_and_norm_bound_out_of_range(self, make):
        with pytest.raises(ParameterError, match="Duchi"):
            make(dimension=1, epsilon0=1.0)
        with pytest.raises(ParameterError, match="norm_bound = 0"):
            make(dimension=2, epsilon0=1.0, norm_bound=0)
        with pytest.raises(TypeError, match="dimension"):
            make(epsilon0=1.0)


class TestRandomize:
    @pytest.mark.parametrize("dimension", [2, 3, 8, 1000, 40_000])
    @pytest.mark.parametrize("num_users", [0, 1, 5])
    def test_reports_have_the_stated_size(self, make, dimension, num_users):
        randomizer = make(dimension=dimension, epsilon0=3.0)
        reports = randomizer.randomize(some_vectors(num_users, dimension), Entropy.from_seed(2))
        assert reports.data.shape == (num_users, dimension)
        assert reports.data.dtype == np.float32
        assert reports.data.nbytes == num_users * randomizer.num_report_bytes
        assert reports.fingerprint == randomizer.fingerprint
        assert np.isfinite(reports.data).all()

    def test_several_blocks_are_drawn_afresh(self, make):
        randomizer = make(dimension=2, epsilon0=3.0)
        data = randomizer.randomize(np.tile([[0.6, 0.8]], (50_000, 1)), Entropy.from_seed(3)).data
        # Each float32 pair may meet by chance, if rarely; whole blocks would not.
        assert np.unique(data, axis=0).shape[0] > 49_500

    def test_seeds_reproduce(self, make):
        randomizer = make(dimension=50, epsilon0=3.0)
        values = some_vectors(100, 50)
        first, again, other = (
            randomizer.randomize(values, Entropy.from_seed(seed)).data for seed in (7, 7, 8)
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_layouts_and_types_of_values_do_not_matter(self, make):
        randomizer = make(dimension=3, epsilon0=3.0)
        values = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 0]])
        expected = randomizer.randomize(values, Entropy.from_seed(1)).data
        for other in (
            values.astype(np.float32),
            np.asfortranarray(values, dtype=np.float64),
            np.repeat(values, 2, axis=0).astype(">f8")[::2],
        ):
            found = randomizer.randomize(other, Entropy.from_seed(1)).data
            assert np.array_equal(found, expected)

    def test_a_row_of_a_later_block_is_named(self, make):
        values = np.zeros((40_000, 2))
        values[39_999, 1] = 1.5
        with pytest.raises(DomainError, match=r"values\[39999\] has the norm 1\.5"):
            make(dimension=2, epsilon0=1.0).randomize(values, Entropy.from_seed(1))

    def test_a_wrong_shape_is_refused(self, make):
        with pytest.raises(ParameterError, match=r"shape \(n, 3\)"):
            make(dimension=3, epsilon0=1.0).randomize(np.zeros((4, 2)), Entropy.from_seed(1))

    def test_sphere_reports_have_length_one(self):
        for dimension in (2, 3, 100, 5000):
            randomizer = PrivUnit(dimension=dimension, epsilon0=3.0)
            data = randomizer.randomize(some_vectors(100, dimension), Entropy.from_seed(2)).data
            norms = np.linalg.norm(data.astype(float), axis=1)
            assert norms == pytest.approx(np.ones(100), abs=1e-6)

    @pytest.mark.parametrize("dimension", [2, 3])
    def test_at_a_huge_epsilon0_the_report_is_the_value(self, dimension):
        values = some_vectors(500, dimension)
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        data = PrivUnit(dimension=dimension, epsilon0=60.0).randomize(values, Entropy.from_seed(2))
        assert data.data == pytest.approx(values, abs=1e-4)

    @pytest.mark.parametrize("first", [1.0, -1.0, 0.0, 1e-200, -1e-9])
    def test_inputs_along_the_axes_are_no_exception(self, make, first):
        randomizer = make(dimension=3, epsilon0=60.0)
        value = np.array([first, 0.0, math.sqrt(max(0.0, 1.0 - first**2))])
        data = randomizer.randomize(np.tile(value, (200, 1)), Entropy.from_seed(4)).data
        # For 57 nats and more, all reports are inside.
        assert np.all(data @ value > 0.9)


class TestAggregate:
    @pytest.mark.parametrize("dimension", [2, 5, 33, 1024])
    def test_sums_are_those_of_the_scores(self, make, dimension):
        randomizer = make(dimension=dimension, epsilon0=3.0)
        reports = randomizer.randomize(some_vectors(700, dimension), Entropy.from_seed(2))
        scores = randomizer.scores(reports)
        sums = randomizer.aggregate(reports)
        assert np.array_equal(scores, reports.data)
        assert scores.dtype == np.float64
        assert sums.num_reports == 700
        assert sums.total == pytest.approx(scores.sum(axis=0), rel=1e-12, abs=1e-12)
        assert sums.total_of_squares == pytest.approx((scores**2).sum(axis=0), rel=1e-12)

    def test_parts_add_up_in_any_order(self, make):
        randomizer = make(dimension=3, epsilon0=3.0)
        data = randomizer.randomize(some_vectors(999, 3), Entropy.from_seed(2)).data

        def aggregate(part):
            return randomizer.aggregate(Reports(data=part, fingerprint=randomizer.fingerprint))

        whole, merged = aggregate(data[::-1]), aggregate(data[:400]) + aggregate(data[400:])
        assert merged.total == pytest.approx(whole.total, rel=1e-12)
        assert merged.num_reports == whole.num_reports

    def test_an_empty_batch(self, make):
        randomizer = make(dimension=3, epsilon0=3.0)
        sums = randomizer.aggregate(randomizer.randomize(np.array([]), Entropy.from_seed(1)))
        assert sums.num_reports == 0
        assert sums.total.tolist() == [0.0, 0.0, 0.0]
        with pytest.raises(DataError, match="at least two"):
            randomizer.estimate(sums)

    @pytest.mark.parametrize("method", ["aggregate", "scores"])
    def test_reports_that_are_not_of_this_law(self, make, method):
        randomizer = make(dimension=3, epsilon0=3.0)
        reports = randomizer.randomize(some_vectors(9, 3), Entropy.from_seed(1))
        with pytest.raises(FingerprintError):
            getattr(make(dimension=3, epsilon0=2.0), method)(reports)
        for wrong in (reports.data.astype(float), reports.data[:, :2], reports.data[0]):
            with pytest.raises(ParameterError, match="as it was made"):
                getattr(randomizer, method)(Reports(data=wrong, fingerprint=randomizer.fingerprint))

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    @pytest.mark.parametrize("method", ["aggregate", "scores"])
    def test_corrupt_reports_are_named(self, make, method, bad):
        randomizer = make(dimension=2, epsilon0=3.0)
        data = randomizer.randomize(some_vectors(40_000, 2), Entropy.from_seed(1)).data.copy()
        data[39_998, 1] = bad
        with pytest.raises(DomainError, match="report 39998 has the norm"):
            getattr(randomizer, method)(Reports(data=data, fingerprint=randomizer.fingerprint))

    @pytest.mark.parametrize("factor", [1.002, 0.998])
    def test_other_lengths_are_refused(self, make, factor):
        randomizer = make(dimension=4, epsilon0=3.0)
        data = randomizer.randomize(some_vectors(5, 4), Entropy.from_seed(1)).data.copy()
        data[3] *= np.float32(factor)
        with pytest.raises(DomainError, match="report 3 has the norm"):
            randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))


class TestEstimate:
    def test_estimates_are_in_the_users_units(self, make):
        values = np.tile([[3.0, -2.0]], (20_000, 1))
        randomizer = make(dimension=2, epsilon0=6.0, norm_bound=4.0)
        estimates = randomizer.estimate(randomizer.randomize(values, Entropy.from_seed(1)))
        assert np.all(np.abs(estimates.mean - [3.0, -2.0]) < 6 * estimates.standard_error)
        variance = estimates.standard_error**2 * 20_000
        assert variance.mean() == pytest.approx(
            report_variance(randomizer, math.sqrt(13.0)), rel=0.05
        )

    def test_nothing_can_be_estimated_at_epsilon0_zero(self, make):
        randomizer = make(dimension=3, epsilon0=0.0)
        reports = randomizer.randomize(some_vectors(9, 3), Entropy.from_seed(1))
        assert randomizer.aggregate(reports).num_reports == 9
        with pytest.raises(ParameterError, match="nothing to estimate"):
            randomizer.estimate(reports)
        assert randomizer.mean_report_variance() == math.inf

    def test_variance_of_a_report(self, make):
        randomizer = make(dimension=5, epsilon0=2.0, norm_bound=3.0)
        expected = randomizer.score_scale[1] ** 2 / 5
        assert randomizer.mean_report_variance() == pytest.approx(expected, rel=1e-12)
        assert randomizer.mean_report_variance() == report_variance(randomizer, 0.0)

    def test_variance_of_hardly_any_signal(self, make):
        randomizer = make(dimension=5, epsilon0=1e-9, norm_bound=3.0)
        assert 1e18 < randomizer.mean_report_variance() < math.inf


def test_randomizers_can_be_copied_and_compared(make):
    randomizer = make(dimension=4, epsilon0=2.0)
    assert copy.copy(randomizer) == randomizer
    assert randomizer != make(dimension=4, epsilon0=2.0, norm_bound=2.0)
    assert "epsilon0=2.0" in repr(randomizer)
