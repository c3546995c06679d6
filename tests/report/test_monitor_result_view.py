"""From results to views: every curve, and what is said of how it ran."""

import polars as pl
import pytest

from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.simulation import simulate_monitoring
from shuffledp.report.monitor_view import band_text, result_facts, result_view

NUM_USERS = 60


def simulated(*, categories=None, seed=1, **options):
    values = [True, False] if categories is None else list(categories)
    rows = pl.DataFrame(
        {
            "id": range(NUM_USERS),
            "day": [1] * NUM_USERS,
            "value": [values[user % len(values)] for user in range(NUM_USERS)],
        }
    )
    histories = open_histories(
        rows, user="id", time="day", value="value", categories=categories, periods=4
    )
    return simulate_monitoring(
        histories, max_changes=2, epsilon0=1.0, delta=1e-6, seed=seed, **options
    )


def test_one_curve_of_a_boolean():
    result = simulated()
    view = result_view(result, what="value", arguments=("'table.csv'", "user='id'"))
    (curve,) = view.curves
    assert curve.label == ""
    assert curve.truth.tolist() == [30.0] * 4
    assert curve.estimates.tolist() == result.running.counts.tolist()
    assert view.is_level_hidden
    assert view.is_seeded
    assert view.num_outside == result.num_outside_bands
    compile(view.code, "page", "exec")
    assert "open_histories('table.csv', user='id')" in view.code
    assert "seed=" in view.code


def test_a_curve_for_each_category():
    result = simulated(categories=["a", "b", "c", "d", "e"], seed=None, smoothed=True)
    view = result_view(result, what="value")
    assert [curve.label for curve in view.curves] == ["a", "b", "c", "d", "e"]
    assert {float(curve.truth[0]) for curve in view.curves} == {12.0}
    assert not view.is_seeded
    assert "seed" not in view.code
    facts = dict(result_facts(result))
    assert facts["Values"] == "5 values, hadamard encoding"
    assert "smoothed" in facts["Estimator"]
    assert facts["Randomness"].startswith("cryptographic")


@pytest.mark.parametrize(("is_simultaneous", "end"), [(True, "at once"), (False, "by itself")])
def test_bands_are_called_what_they_are(is_simultaneous, end):
    text = band_text(0.999, is_simultaneous=is_simultaneous)
    assert text.startswith("99.9% band for")
    assert text.endswith(end)
