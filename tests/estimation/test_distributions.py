from dataclasses import replace

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.estimation.distributions import DistributionEstimates, NodeLaw, RangeErrors, Tree
from shuffledp.estimation.intervals import normal_quantile

BINS, NOISE = np.array([0.1, 0.3, 0.4, 0.2]), 0.01**2
Z = normal_quantile(0.95)


def estimates(bins=BINS, *, slope=0.0, sampling=0.0, step=1e-9, population=0.0, **how):
    """Return estimates of four bins, each observed with a variance of 1e-4 besides a known sum."""
    below = np.concatenate([[0.0], np.cumsum(bins)])
    node = NodeLaw(NOISE, slope, sampling, step)
    rising = np.maximum.accumulate(below) + 1e-9 * np.arange(5)
    rising = rising / rising[-1]
    errors = RangeErrors(Tree((4,), (1.0,)), (node,), below, rising, population)
    found = DistributionEstimates.of(errors, num_users=100, confidence=0.95, **how)
    return replace(found, edges=(0.0, 10.0, 20.0, 40.0, 80.0))


def test_errors_by_closed_form():
    # Of t of k values with equal independent errors, given their sum: t (1 - t / k) variances.
    found, t = estimates(), np.array([1, 2, 3, 4])
    own = np.sqrt(NOISE * t * (1 - t / 4))
    share = found.errors.below[1:]
    less = share * (1 - share) / 100
    assert found.cumulative_population_standard_error == pytest.approx(own, abs=1e-9)
    bins = found.errors.of(1, 3)
    assert bins.standard_error[0] == pytest.approx(np.sqrt(NOISE * 2 * (1 - 2 / 4)))
    stepped = estimates(population=0.02)
    assert stepped.cumulative_standard_error == pytest.approx(np.sqrt(own**2 + less), abs=1e-9)
    assert found.population_upper - found.frequency == pytest.approx(
        Z * np.sqrt(NOISE * 3 / 4), abs=1e-9
    )


def test_variances_are_those_of_a_users_report_whatever_the_share():
    """Of the reports of a sample, by the moments of the weights of the users' nodes."""
    number, found = 50.0, estimates(slope=1 / 50, sampling=1 / 50)
    for start, stop in ((1, 2), (0, 3), (2, 4)):
        weights = np.zeros(4)
        weights[start:stop] = 1.0
        weights -= weights.mean()
        inside = np.where(weights > weights.mean(), BINS, 0.0)
        outside = BINS - inside
        law = found.errors.of(start, stop)
        for share in (0.0, 0.2, 1.0):
            user = share * inside / inside.sum() + (1 - share) * outside / outside.sum()
            exact = (user @ weights**2 - (user @ weights) ** 2) / number
            exact += NOISE * (weights**2).sum()
            assert law.constant + share * (law.linear + share * law.square) == pytest.approx(exact)


def test_sampling_is_counted():
    with_sampling = estimates(population=1 / 100)
    share = with_sampling.errors.below[1:]
    added = with_sampling.cumulative_population_standard_error**2
    plain = estimates().cumulative_population_standard_error ** 2
    assert added - plain == pytest.approx(share * (1 - share) / 100, abs=1e-9)


def test_steps_widen_all_ends():
    step = 0.001
    plain, moved = estimates(), estimates(step=step)
    assert (moved.population_upper - plain.population_upper).min() > 0.499 * step
    low, high = moved.cumulative_interval(about="population")
    assert (low[-1], high[-1]) == (1.0, 1.0)


def test_cumulative_shares_and_their_table():
    found = estimates()
    assert found.cumulative.tolist() == pytest.approx([0.1, 0.4, 0.8, 1.0])
    columns = found.columns()
    assert columns["cumulative"].tolist() == found.cumulative.tolist()
    assert {each.shape for each in columns.values()} == {(4,)}
    assert not found.frequency.flags.writeable


@pytest.mark.parametrize("is_simultaneous", [False, True])
def test_quantiles_lead_from_edge_to_edge(is_simultaneous):
    found = estimates(simultaneous=is_simultaneous, population=1.0)
    # Standard errors are sqrt(f (1 - f)) about a population, so that nothing is told of it.
    (median,) = found.quantiles(0.5, about="population")
    assert median == pytest.approx((25.0, 0.0, 80.0))
    low, middle, high = estimates(simultaneous=is_simultaneous).quantiles(0.05, 0.6, 0.999)
    assert low == pytest.approx((5.0, 0.0, 10.0))
    assert middle == pytest.approx((30.0, 20.0, 40.0))
    assert high == pytest.approx((79.8, 40.0, 80.0))


def test_an_edge_that_is_as_likely_below_as_above_is_inside():
    (found,) = estimates(population=1 / 100).quantiles(0.4)
    assert found == pytest.approx((20.0, 10.0, 40.0))


def test_shares_that_do_not_ascend():
    found = estimates(np.array([0.3, -0.05, 0.5, 0.25]), population=1 / 100)
    (each,) = found.quantiles(0.27)
    # The shares 0.3, 0.25, 0.75 count as 0.25, 0.3, 0.75.
    assert each.value == pytest.approx(14.0)
    assert (each.lower, each.upper) == (0.0, 40.0)


def test_ranges():
    found = estimates()
    share = found.between(10, 40, about="population")
    assert share.value == pytest.approx(0.7)
    assert share.upper - share.value == pytest.approx(Z * 0.01)
    with pytest.raises(ParameterError, match="high = 30 is no edge of a bin: the nearest are 20"):
        found.between(10, 30)


def test_the_band_holds_at_every_inner_edge():
    found = estimates(population=1 / 100)
    assert found.band == normal_quantile(1 - 0.05 / 3)
    lower, upper = found.cumulative_interval(about="population", simultaneous=True)
    errors = found.cumulative_population_standard_error
    assert (upper - lower)[:-1] / 2 == pytest.approx(found.band * errors[:-1], rel=0.05)
