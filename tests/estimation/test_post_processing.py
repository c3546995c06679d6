import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shuffledp.core.reports import Counts
from shuffledp.estimation import (
    POST_PROCESSING,
    FrequencyEstimates,
    clip,
    norm_sub,
)
from shuffledp.estimation.frequencies import estimate_frequencies
from shuffledp.estimation.post_processing import nearest_with_sum

FREQUENCIES = arrays(float, st.integers(1, 30), elements=st.floats(-3.0, 3.0))


def estimates(frequency, num_users=1000):
    frequency = np.asarray(frequency, dtype=float)
    return FrequencyEstimates(
        count=frequency * num_users,
        frequency=frequency,
        standard_error=np.full(frequency.size, 0.1),
        population_standard_error=np.full(frequency.size, 0.15),
        lower=frequency - 0.2,
        upper=frequency + 0.2,
        num_users=num_users,
        confidence=0.95,
        interval="wilson",
    )


def norm_sub_as_published(frequency):
    """The iteration itself: negatives to zero, the others shifted equally, until none is left."""
    values = np.array(frequency)
    if values.max() <= 0.0:
        return np.full(values.size, 1.0 / values.size)
    kept = values > 0.0
    while True:
        values = np.where(kept, values, 0.0)
        values[kept] += (1.0 - values.sum()) / kept.sum()
        if values.min() >= 0.0:
            return values
        kept &= values > 0.0


def test_steps_go_by_these_names():
    assert dict(POST_PROCESSING) == {"clip": clip, "norm-sub": norm_sub}


@pytest.mark.parametrize(("name", "step"), POST_PROCESSING.items(), ids=POST_PROCESSING)
def test_steps_are_recorded_and_touch_the_values_alone(name, step):
    before = estimates([-0.1, 0.4, 1.3])
    after = step(before)
    assert before.frequency.tolist() == [-0.1, 0.4, 1.3]
    assert before.post_processing == ()
    assert after.post_processing == (name,)
    assert after.count == pytest.approx(1000 * after.frequency)
    for kept in ("standard_error", "population_standard_error", "lower", "upper"):
        assert np.array_equal(getattr(after, kept), getattr(before, kept))
    assert not after.frequency.flags.writeable


def test_steps_are_recorded_in_order():
    after = norm_sub(clip(estimates([-0.1, 0.4, 1.3])))
    assert after.post_processing == ("clip", "norm-sub")


def test_clipping_moves_to_the_nearest_frequency():
    assert clip(estimates([-0.1, 0.4, 1.3])).frequency.tolist() == [0.0, 0.4, 1.0]


@pytest.mark.parametrize(
    ("frequency", "projection"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([0.5, 0.5, -0.2], [0.5, 0.5, 0.0]),
        ([0.0, 0.0], [0.5, 0.5]),
        ([2.0, 0.5], [1.0, 0.0]),
        ([0.9, 0.4, -0.3], [0.75, 0.25, 0.0]),
        ([-7.0], [1.0]),
    ],
)
def test_projections_of_closed_form(frequency, projection):
    assert nearest_with_sum(np.array(frequency, dtype=float), 1.0) == pytest.approx(projection)


@given(frequency=FREQUENCIES)
def test_projection_is_the_nearest_probability_vector(frequency):
    projected = nearest_with_sum(np.array(frequency, dtype=float), 1.0)
    assert projected.min() >= 0.0
    assert projected.sum() == pytest.approx(1.0)
    # The nearest point y of a convex set makes an obtuse angle with every other one z:
    # (x - y) . (z - y) <= 0. The corners suffice.
    slopes = frequency - projected
    assert slopes.max() <= slopes @ projected + 1e-9


@pytest.mark.parametrize("scale", [1e9, 1e17, 1e300])
def test_a_projection_does_not_lose_the_sum_beside_large_estimates(scale):
    # At a minute epsilon0 estimates are of this size.
    assert norm_sub(estimates([scale, -scale])).frequency.tolist() == [1.0, 0.0]
    assert norm_sub(estimates([scale, scale])).frequency.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([0.9, 0.4, -0.3], [0.75, 0.25, 0.0]),
        ([0.9, 0.4, 0.05], [0.75, 0.25, 0.0]),  # the shift drops the last one
        ([0.2, -0.1], [1.0, 0.0]),  # lifted, the negative one is not
        ([-0.2, -0.1], [0.5, 0.5]),
        ([0.0, 0.0, -1.0, -2.0], [0.25] * 4),
    ],
)
def test_norm_sub_of_closed_form(frequency, expected):
    assert norm_sub(estimates(frequency)).frequency == pytest.approx(expected)


@given(frequency=FREQUENCIES)
def test_norm_sub_ends_where_its_iteration_ends(frequency):
    found = norm_sub(estimates(frequency)).frequency
    assert found == pytest.approx(norm_sub_as_published(frequency), abs=1e-12)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)


@given(frequency=FREQUENCIES)
def test_norm_sub_is_the_projection_unless_positive_estimates_fall_short(frequency):
    projected = nearest_with_sum(np.array(frequency, dtype=float), 1.0)
    found = norm_sub(estimates(frequency)).frequency
    if np.maximum(frequency, 0.0).sum() >= 1.0:
        assert found == pytest.approx(projected, abs=1e-12)
    elif frequency.max() > 0.0:
        assert (found[frequency <= 0.0] == 0.0).all()


@given(support=st.lists(st.integers(0, 50), min_size=2, max_size=9).filter(any))
def test_norm_sub_is_the_projection_for_k_randomized_response(support):
    # Each report supports one category, so the estimates sum to 1 and the positive ones to more.
    k = len(support)
    counts = Counts(support=np.array(support), num_reports=sum(support), fingerprint="")
    unbiased = estimate_frequencies(counts, support_probabilities=(2 / (k + 1), 1 / (k + 1)))
    assert unbiased.frequency.sum() == pytest.approx(1.0)
    assert norm_sub(unbiased).frequency == pytest.approx(
        nearest_with_sum(unbiased.frequency, 1.0), abs=1e-12
    )


@given(frequency=FREQUENCIES)
def test_steps_change_nothing_the_second_time(frequency):
    for step in POST_PROCESSING.values():
        once = step(estimates(frequency))
        assert step(once).frequency == pytest.approx(once.frequency, abs=1e-12)
