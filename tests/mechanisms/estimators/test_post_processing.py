import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shuffledp.mechanisms.estimators import FrequencyEstimates, clip, project_onto_simplex

FREQUENCIES = arrays(float, st.integers(1, 30), elements=st.floats(-3.0, 3.0))


def estimates(frequency, num_users=1000):
    frequency = np.asarray(frequency, dtype=float)
    return FrequencyEstimates(
        count=frequency * num_users,
        frequency=frequency,
        standard_error=np.full(frequency.size, 0.1),
        lower=frequency - 0.2,
        upper=frequency + 0.2,
        num_users=num_users,
        confidence=0.95,
        interval="wilson",
    )


@pytest.mark.parametrize("step", [clip, project_onto_simplex])
def test_steps_are_recorded_and_touch_the_values_alone(step):
    before = estimates([-0.1, 0.4, 1.3])
    after = step(before)
    assert before.frequency.tolist() == [-0.1, 0.4, 1.3]
    assert before.post_processing == ()
    assert after.post_processing == (step.__name__,)
    assert after.count == pytest.approx(1000 * after.frequency)
    for name in ("standard_error", "lower", "upper"):
        assert np.array_equal(getattr(after, name), getattr(before, name))
    assert not after.frequency.flags.writeable


def test_steps_are_recorded_in_order():
    after = project_onto_simplex(clip(estimates([-0.1, 0.4, 1.3])))
    assert after.post_processing == ("clip", "project_onto_simplex")


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
    assert project_onto_simplex(estimates(frequency)).frequency == pytest.approx(projection)


@given(frequency=FREQUENCIES)
def test_projection_is_the_nearest_probability_vector(frequency):
    projected = project_onto_simplex(estimates(frequency)).frequency
    assert projected.min() >= 0.0
    assert projected.sum() == pytest.approx(1.0)
    # The nearest point y of a convex set makes an obtuse angle with every other one z:
    # (x - y) . (z - y) <= 0. The corners suffice.
    slopes = frequency - projected
    assert slopes.max() <= slopes @ projected + 1e-9


@given(frequency=FREQUENCIES)
def test_steps_change_nothing_the_second_time(frequency):
    for step in (clip, project_onto_simplex):
        once = step(estimates(frequency))
        assert step(once).frequency == pytest.approx(once.frequency, abs=1e-12)
