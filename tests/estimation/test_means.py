import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Sums
from shuffledp.estimation.intervals import normal_quantile
from shuffledp.estimation.means import MeanEstimates, estimate_means


def sums_of(scores):
    """Return the sums of the rows of scores, shape (n, d)."""
    array = np.asarray(scores, dtype=float)
    return Sums(
        total=array.sum(axis=0),
        total_of_squares=(array**2).sum(axis=0),
        num_reports=array.shape[0],
        fingerprint="",
    )


@given(
    scores=st.lists(st.integers(-1000, 1000), min_size=2, max_size=50),
    offset=st.floats(-100.0, 100.0),
    factor=st.floats(0.01, 100.0),
)
def test_mean_and_standard_error_are_those_of_a_sample(scores, offset, factor):
    estimates = estimate_means(sums_of([[s] for s in scores]), offset=offset, factor=factor)
    count = len(scores)
    mean = Fraction(sum(scores), count)
    variance = sum((s - mean) ** 2 for s in scores) / (count - 1)
    assert estimates.mean[0] == pytest.approx(offset + factor * float(mean), abs=1e-9)
    assert estimates.standard_error[0] == pytest.approx(
        factor * math.sqrt(variance / count), rel=1e-6, abs=1e-6 * factor
    )
    assert estimates.num_users == count


def test_the_interval_is_the_normal_one():
    estimates = estimate_means(sums_of([[0.0], [2.0]]), offset=4.0, factor=3.0, confidence=0.9)
    assert (estimates.mean[0], estimates.standard_error[0]) == (7.0, 3.0)
    margin = 3.0 * normal_quantile(0.9)
    assert estimates.lower[0] == pytest.approx(7.0 - margin)
    assert estimates.upper[0] == pytest.approx(7.0 + margin)
    assert estimates.confidence == 0.9
    assert not estimates.is_simultaneous


def test_simultaneous_intervals_share_the_error():
    rows = [[0.0, 5.0, 1.0], [2.0, 1.0, 1.0], [4.0, 3.0, 4.0]]
    each = estimate_means(sums_of(rows), confidence=1 - 0.05 / 3)
    together = estimate_means(sums_of(rows), confidence=0.95, simultaneous=True)
    assert together.is_simultaneous
    assert together.confidence == 0.95
    assert together.lower == pytest.approx(each.lower)
    assert together.upper == pytest.approx(each.upper)
    # One coordinate alone has nobody to share with.
    single = sums_of([[0.0], [2.0]])
    alone = estimate_means(single, simultaneous=True)
    assert alone.lower.tolist() == estimate_means(single).lower.tolist()


def test_sums_that_were_added_give_the_same():
    rows = [[1.0, -4.0], [3.0, 2.0], [-2.0, 8.0], [7.0, 0.0]]
    whole = estimate_means(sums_of(rows))
    parts = estimate_means(sums_of(rows[:1]) + sums_of(rows[1:]))
    for name, column in whole.columns().items():
        assert parts.columns()[name].tolist() == column.tolist()


def test_equal_reports_leave_no_error():
    # 0.1 is no binary fraction, so that round-off takes the variance below zero.
    estimates = estimate_means(
        Sums(
            total=np.array([0.1 * 3]),
            total_of_squares=np.array([0.1**2 * 3 * (1 - 1e-15)]),
            num_reports=3,
            fingerprint="",
        )
    )
    assert estimates.standard_error[0] == 0.0
    assert estimates.lower[0] == estimates.upper[0] == estimates.mean[0]


@pytest.mark.parametrize("num_reports", [0, 1])
def test_fewer_than_two_reports_are_refused(num_reports):
    with pytest.raises(DataError, match=f"there are {num_reports} reports"):
        estimate_means(sums_of(np.zeros((num_reports, 1))))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_confidence_out_of_range_is_refused(confidence, simultaneous):
    with pytest.raises(ParameterError, match="confidence"):
        estimate_means(
            sums_of([[0.0, 1.0], [2.0, 0.0]]), confidence=confidence, simultaneous=simultaneous
        )


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_factor_that_tells_nothing_is_refused(factor):
    with pytest.raises(ParameterError, match="factor"):
        estimate_means(sums_of([[0.0], [2.0]]), factor=factor)


def test_estimates_say_what_they_are_and_are_read_only():
    estimates = estimate_means(sums_of([[0.0], [2.0]]))
    assert isinstance(estimates, MeanEstimates)
    assert estimates.interval == "normal"
    assert estimates.post_processing == ()
    assert list(estimates.columns()) == [
        "mean", "standard_error", "population_standard_error", "lower", "upper",
        "population_lower", "population_upper",
    ]  # fmt: skip
    for column in estimates.columns().values():
        assert not column.flags.writeable
