import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.estimation import estimate_frequencies, expected_standard_error
from shuffledp.randomizers import RANDOMIZERS, Counts, make_randomizer

PROBABILITIES = (0.75, 0.25)


def counts(support, num_reports):
    return Counts(support=np.array(support), num_reports=num_reports, fingerprint="")


def test_values_of_closed_form():
    estimates = estimate_frequencies(
        counts([60, 40, 20], 100), support_probabilities=PROBABILITIES, confidence=0.9
    )
    assert estimates.count.tolist() == [70.0, 30.0, -10.0]
    assert estimates.frequency == pytest.approx([0.7, 0.3, -0.1])
    # p (1 - p) = q (1 - q) = 3/16, so the standard error is the same for all: sqrt(3/16/100)/(1/2).
    assert estimates.standard_error == pytest.approx([math.sqrt(3) / 20] * 3)
    # Sampling adds f (1 - f) / 100, with f clipped to [0, 1].
    assert estimates.population_standard_error**2 == pytest.approx([0.0096, 0.0096, 0.0075])
    assert (estimates.num_users, estimates.confidence) == (100, 0.9)
    assert (estimates.interval, estimates.post_processing) == ("wilson", ())


def test_nothing_is_clipped_or_normalised():
    estimates = estimate_frequencies(counts([0, 100], 100), support_probabilities=PROBABILITIES)
    assert estimates.frequency.tolist() == [-0.5, 1.5]
    assert estimates.lower[0] < -0.5
    assert estimates.upper[1] > 1.5


def test_intervals_hold_the_estimate_and_widen_with_confidence():
    narrow, wide = (
        estimate_frequencies(
            counts([60, 40], 100),
            support_probabilities=PROBABILITIES,
            confidence=confidence,
        )
        for confidence in (0.5, 0.99)
    )
    assert (wide.lower < narrow.lower).all()
    assert (narrow.lower < narrow.frequency).all()
    assert (narrow.frequency < narrow.upper).all()
    assert (narrow.upper < wide.upper).all()


def test_arrays_are_read_only():
    estimates = estimate_frequencies(counts([60, 40], 100), support_probabilities=PROBABILITIES)
    for name in ("count", "frequency", "standard_error", "lower", "upper"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(estimates, name)[0] = 0.0


@pytest.mark.parametrize(
    "probabilities", [(0.5, 0.5), (0.2, 0.3), (1.1, 0.2), (0.5, -0.1), (math.nan, 0.1)]
)
def test_uninformative_probabilities_are_refused(probabilities):
    with pytest.raises(ParameterError, match="larger epsilon0"):
        estimate_frequencies(counts([1, 2], 3), support_probabilities=probabilities)
    with pytest.raises(ParameterError, match="larger epsilon0"):
        expected_standard_error(support_probabilities=probabilities, num_users=3, frequency=0.1)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_nothing_can_be_estimated_at_epsilon0_zero(name):
    randomizer = make_randomizer(name, domain_size=3, epsilon0=0.0)
    with pytest.raises(ParameterError, match="say nothing"):
        estimate_frequencies(
            counts([1, 1, 1], 3), support_probabilities=randomizer.support_probabilities
        )


def test_no_reports_are_refused():
    with pytest.raises(DataError, match="no reports"):
        estimate_frequencies(counts([0, 0], 0), support_probabilities=PROBABILITIES)


def test_a_confidence_out_of_range_is_refused():
    with pytest.raises(ParameterError, match="confidence"):
        estimate_frequencies(counts([1, 2], 3), support_probabilities=PROBABILITIES, confidence=95)


def test_expected_standard_error_is_the_one_reported_at_that_frequency():
    for name in RANDOMIZERS:
        p, q = make_randomizer(name, domain_size=10, epsilon0=1.0).support_probabilities
        support = round(10**9 * (q + 0.25 * (p - q)))
        reported = estimate_frequencies(
            counts([support], 10**9), support_probabilities=(p, q)
        ).standard_error[0]
        planned = expected_standard_error(
            support_probabilities=(p, q), num_users=10**9, frequency=0.25
        )
        assert planned == pytest.approx(reported, rel=1e-8)


@pytest.mark.parametrize(
    ("num_users", "frequency"), [(0, 0.1), (2.5, 0.1), (3, -0.1), (3, 1.1), (3, math.nan)]
)
def test_plans_out_of_range_are_refused(num_users, frequency):
    with pytest.raises(ParameterError, match=r"num_users|frequency"):
        expected_standard_error(
            support_probabilities=PROBABILITIES, num_users=num_users, frequency=frequency
        )


def test_optimized_unary_has_the_variance_of_its_paper():
    # Wang et al. 2017: Var = 4 e0 / (n (e0 - 1)^2) for a value that nobody has.
    p, q = make_randomizer("optimized-unary", domain_size=10, epsilon0=1.0).support_probabilities
    error = expected_standard_error(support_probabilities=(p, q), num_users=100, frequency=0.0)
    assert error**2 == pytest.approx(4 * math.e / (100 * (math.e - 1) ** 2))


def test_simultaneous_intervals_are_single_ones_of_a_share_of_the_error():
    data = counts([60, 40, 20, 30], 100)
    common = {"support_probabilities": PROBABILITIES}
    together = estimate_frequencies(data, confidence=0.9, simultaneous=True, **common)
    alone = estimate_frequencies(data, confidence=0.9, **common)
    longer = estimate_frequencies(data, confidence=1 - 0.1 / 4, **common)
    assert together.is_simultaneous
    assert not alone.is_simultaneous
    assert together.confidence == 0.9
    for end in ("lower", "upper"):
        assert getattr(together, end) == pytest.approx(getattr(longer, end), rel=1e-12)
    assert (together.lower < alone.lower).all()
    assert (together.upper > alone.upper).all()
    for name in ("count", "frequency", "standard_error"):
        assert np.array_equal(getattr(together, name), getattr(alone, name))


def test_simultaneous_intervals_by_formula():
    # p (1 - p) = q (1 - q) = 3/16, so that Wald and Wilson agree: z sqrt(3/16/100) / (1/2), with z
    # for an error of 0.05 / 5 in two tails, which tables have as 2.575829.
    estimates = estimate_frequencies(
        counts([60_000] * 5, 100_000), support_probabilities=PROBABILITIES, simultaneous=True
    )
    margin = 2.5758293035489 * math.sqrt(3 / 16 / 100_000) / 0.5
    assert estimates.upper == pytest.approx([0.7 + margin] * 5)
    assert estimates.lower == pytest.approx([0.7 - margin] * 5)


@pytest.mark.parametrize("law", [(1.0 - 1e-12, 1e-13), (0.9, 0.05), (0.75, 0.25)])
@pytest.mark.parametrize("num_users", [30, 200])
def test_the_interval_about_a_population_covers_it(num_users, law):
    """Exact coverage over all counts, for each share of the population."""
    counts, (p, q) = np.arange(num_users + 1), law
    estimates = estimate_frequencies(
        Counts(support=counts, num_reports=num_users, fingerprint=""),
        support_probabilities=law,
    )
    lower, upper = estimates.population_lower, estimates.population_upper

    def coverage(share, low, high):
        held = (low <= share) & (share <= high)
        return binom.pmf(counts, num_users, q + share * (p - q))[held].sum()

    shares = [0.0, *np.geomspace(1e-5, 0.5, 100)]
    # That of the people who answered is a point where there is no noise.
    assert min(coverage(share, lower, upper) for share in shares) > 0.93
    if p > 0.99:
        assert coverage(0.3, estimates.lower, estimates.upper) < 0.5


class TestDummies:
    LAW = DummyLaw.from_text("laplace:2.025:27")

    def test_a_kth_of_the_dummies_is_taken_off_each_support(self):
        found = counts([75, 40, 60, 45], 220).less_dummies(self.LAW, num_users=100)
        estimates = estimate_frequencies(found, support_probabilities=(1.0, 0.0))
        assert estimates.count.tolist() == [45.0, 10.0, 30.0, 15.0]
        assert estimates.num_users == 100

    def test_the_error_is_the_expected_one(self):
        found = counts([75, 40, 60, 45], 220).less_dummies(self.LAW, num_users=100)
        estimates = estimate_frequencies(found, support_probabilities=(0.8, 0.05))
        variance = self.LAW.error_variance(4)
        wanted = [
            expected_standard_error(
                support_probabilities=(0.8, 0.05),
                num_users=100,
                frequency=float(np.clip(frequency, 0.0, 1.0)),
                dummy_variance=variance,
            )
            for frequency in estimates.frequency
        ]
        assert estimates.standard_error == pytest.approx(wanted)

    def test_bare_values_err_by_the_dummies_alone(self):
        error = expected_standard_error(
            support_probabilities=(1.0, 0.0), num_users=10, frequency=0.3, dummy_variance=9.0
        )
        assert error == pytest.approx(0.3)

    @pytest.mark.parametrize("variance", [-1.0, math.nan, math.inf])
    def test_a_variance_out_of_range_is_refused(self, variance):
        with pytest.raises(ParameterError, match="dummy_variance"):
            expected_standard_error(
                support_probabilities=(0.8, 0.2),
                num_users=10,
                frequency=0.3,
                dummy_variance=variance,
            )

    @pytest.mark.parametrize("num_users", [190, 10])
    def test_a_number_of_dummies_that_never_comes_is_refused(self, num_users):
        found = counts([75, 40, 60, 45], 220).less_dummies(self.LAW, num_users=num_users)
        with pytest.raises(DataError, match=r"cannot be: the laws laplace:2\.025:27 give 4"):
            estimate_frequencies(found, support_probabilities=(1.0, 0.0))
