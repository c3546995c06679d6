"""Plots hold the numbers of what they draw."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import shuffledp as sdp

QUESTION = sdp.Categories(["yes", "no"])


@pytest.fixture(autouse=True)
def no_window():
    mpl.use("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def plan():
    return sdp.plan(QUESTION, num_users=1_000, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("about", ["respondents", "population"])
def test_a_result(plan, about):
    result = sdp.run(plan, ["yes"] * 300 + ["no"] * 700, seed=1, interval_about=about)
    axes = result.plot()
    assert axes.lines[0].get_xdata().tolist() == result.estimates.frequency.tolist()
    assert [each.get_text() for each in axes.get_yticklabels()] == ["yes", "no"]
    prefix = "" if about == "respondents" else "population_"
    ends = np.array([path[:, 0] for path in axes.collections[0].get_segments()])
    assert ends[:, 0].tolist() == getattr(result.estimates, f"{prefix}lower").tolist()
    assert axes.get_xlabel().endswith("these users" if about == "respondents" else "a population")


def test_a_plan_on_given_axes(plan):
    _, axes = plt.subplots()
    assert plan.plot(axes) is axes
    drawn = axes.lines[0].get_ydata()
    assert drawn.tolist() == [errors[0] for _, errors in plan.errors_by_epsilon()]


def test_a_comparison_of_bounds():
    found = sdp.compare_bounds(epsilon0=1.0, num_users=1_000, delta=1e-6)
    axes = found.plot()
    assert [bar.get_width() for bar in axes.patches] == [each.value for each in found.useful]


@pytest.mark.parametrize("labels", [(), ("a", "b")])
def test_running_counts(labels):
    shape = (4, 2) if labels else (4,)
    counts = np.arange(np.prod(shape), dtype=float).reshape(shape)
    running = sdp.monitoring.RunningCounts(
        periods=np.arange(1, 5), counts=counts, standard_errors=np.ones(shape),
        lower=counts - 2, upper=counts + 2, is_smoothed=False, confidence=0.95,
        is_simultaneous=True, labels=labels,
    )  # fmt: skip
    axes = running.plot()
    assert [line.get_ydata().tolist() for line in axes.lines] == counts.reshape(4, -1).T.tolist()


def test_what_has_no_plot_says_so(plan):
    with pytest.raises(TypeError, match="nothing is drawn of a Guarantee: give one of Result"):
        plan.guarantee.plot()
