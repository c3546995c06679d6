"""What is handed out: one period of many, clipping, read-only arrays."""

import math

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.running_counts import RunningCounts


@pytest.fixture
def counts():
    return RunningCounts(
        periods=np.array([1, 2, 3]),
        counts=np.array([-4.0, 5.0, 12.0]),
        standard_errors=np.array([1.0, 2.0, 3.0]),
        lower=np.array([-6.0, 1.0, 6.0]),
        upper=np.array([-2.0, 9.0, 18.0]),
        method="cover",
        is_smoothed=False,
        confidence=0.9,
        is_simultaneous=True,
        labels=(True,),
    )


def test_one_period_of_many(counts):
    estimate = counts.at(2)
    assert len(counts) == 3
    assert float(estimate.counts) == 5.0
    assert float(estimate.standard_errors) == 2.0
    assert (float(estimate.lower), float(estimate.upper)) == (1.0, 9.0)
    assert (estimate.period, estimate.method, estimate.confidence) == (2, "cover", 0.9)
    assert estimate.is_simultaneous
    assert estimate.labels == (True,)


@pytest.mark.parametrize("t", [0, 4])
def test_other_periods_are_refused(counts, t):
    with pytest.raises(ParameterError, match=rf"t = {t} is not in \[1, 3\]"):
        counts.at(t)


def test_clipping_is_a_named_step_that_leaves_the_bands(counts):
    clipped = counts.clipped(10)
    assert clipped.counts.tolist() == [0.0, 5.0, 10.0]
    assert clipped.lower.tolist() == counts.lower.tolist()
    assert clipped.upper.tolist() == counts.upper.tolist()
    assert counts.post_processing == ()
    assert clipped.post_processing == ("clip",)
    assert clipped.at(1).post_processing == ("clip",)
    one = counts.at(1).clipped(10)
    assert float(one.counts) == 0.0
    assert float(one.lower) == -6.0
    assert one.post_processing == ("clip",)


@pytest.mark.parametrize("num_users", [0, -1, math.nan, math.inf])
def test_clipping_needs_a_number_of_users(counts, num_users):
    with pytest.raises(ParameterError, match="num_users"):
        counts.clipped(num_users)


def test_arrays_are_read_only(counts):
    for array in (counts.periods, counts.counts, counts.lower, counts.at(1).counts):
        assert not array.flags.writeable
