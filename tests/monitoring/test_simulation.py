import numpy as np
import polars as pl
import pytest

from oracles.made_histories import outage, versions
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ShuffledpError
from shuffledp.monitoring.histories import Histories, open_histories
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.simulation import MonitorResult, simulate_monitoring

# Estimates are checked against bands of confidence 1 - 1e-9 that hold at once for all periods.
FALSE_POSITIVE_RATE = 1e-9

_NAMES = {"user": "user", "time": "time", "value": "value"}
_SETTINGS = {"max_changes": 3, "epsilon0": 1.0, "delta": 1e-6, "seed": 11}


def table(num_users=400, periods=24, seed=3) -> pl.DataFrame:
    """Users who switch on and off at arbitrary times, up to six times."""
    rng = Entropy.from_seed(seed).generator()
    rows = [(f"u{user:03}", 1, int(rng.integers(2))) for user in range(num_users)]
    for user, _, value in list(rows):
        now = value
        for time in np.flatnonzero(rng.random(periods - 1) < 0.1) + 2:
            now = 1 - now
            rows.append((user, int(time), now))
    return pl.DataFrame(rows, schema=["user", "time", "value"], orient="row").sort("time", "user")


def histories_of(frame, **options) -> Histories:
    return open_histories(frame, **_NAMES, **({"periods": 24} | options))


@pytest.fixture(scope="module")
def histories():
    return histories_of(table())


@pytest.fixture(scope="module")
def uninterrupted(histories):
    return simulate_monitoring(histories, **_SETTINGS)


def assert_same(a: MonitorResult, b: MonitorResult):
    for name in ("counts", "standard_errors", "lower", "upper"):
        np.testing.assert_array_equal(getattr(a.running, name), getattr(b.running, name))
    np.testing.assert_array_equal(a.truth, b.truth)
    assert a.to_json_dict() == b.to_json_dict()
    assert a.period_labels == b.period_labels


def ignored_changes(values, *, most):
    """How many values a client is told that it does not follow."""
    told, followed, changes, ignored = 0, 0, 0, 0
    for value in values:
        if value not in (told, followed):
            if changes < most:
                followed, changes = value, changes + 1
            else:
                ignored += 1
        told = value
    return ignored


def test_a_simulation_says_all_there_is_to_say(histories, uninterrupted):
    result = uninterrupted
    assert (len(result.running), result.num_users) == (24, 400)
    assert (result.truth == histories.true_counts()[:, 0]).all()
    assert result.period_labels == tuple(str(t) for t in range(1, 25))
    assert result.is_simulation
    assert result.local.upper == result.design.epsilon0 <= 1.0
    assert result.central.epsilon_upper <= result.local.upper
    assert result.central.num_users == 400
    ignored = [
        ignored_changes(values.to_list(), most=3)
        for values in table().group_by("user").agg("value")["value"]
    ]
    assert result.num_ignored_changes == sum(ignored) > 0
    assert result.num_limited_users == sum(number > 0 for number in ignored)
    assert (
        f"{result.num_ignored_changes:,} in all, of {result.num_limited_users:,} of the users"
        in (result.warnings[0])
    )


def test_a_seed_is_all_that_a_result_depends_on(histories, uninterrupted):
    assert_same(simulate_monitoring(histories, **_SETTINGS), uninterrupted)
    other = simulate_monitoring(histories, **(_SETTINGS | {"seed": 12}))
    assert (other.running.counts != uninterrupted.running.counts).any()


def test_without_a_seed_draws_differ_each_time(histories):
    first, second = (
        simulate_monitoring(histories, **(_SETTINGS | {"seed": None})) for _ in range(2)
    )
    assert not first.is_simulation
    assert (first.running.counts != second.running.counts).any()


@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
def test_bands_hold_the_truth(protocol):
    result = simulate_monitoring(
        open_histories(outage(20_000, 30), **_NAMES, periods=30),
        max_changes=4,
        epsilon0=2.0,
        delta=1e-6,
        protocol=protocol,
        confidence=1.0 - FALSE_POSITIVE_RATE,
        seed=5,
    )
    assert result.num_outside_bands == 0
    assert result.num_ignored_changes == 0
    assert result.warnings == ()
    assert result.root_mean_square_error < 2 * result.running.standard_errors.max()


def test_smoothing_uses_later_reports(histories, uninterrupted):
    smoothed = simulate_monitoring(histories, **_SETTINGS, smoothed=True)
    assert smoothed.running.is_smoothed
    assert smoothed.running.standard_errors.sum() < uninterrupted.running.standard_errors.sum()


@pytest.mark.parametrize("labels", [("1.0", "2.0", "3.0"), ("1.0", "2.0", "3.0", "4.0", "5.0")])
def test_categories_are_counted_one_by_one(labels):
    table = versions(5_000, 16, labels)
    histories = open_histories(table, **_NAMES, categories=labels, periods=16)
    result = simulate_monitoring(
        histories,
        max_changes=5,
        epsilon0=3.0,
        delta=1e-6,
        confidence=1.0 - FALSE_POSITIVE_RATE,
        seed=2,
    )
    assert result.values == labels
    assert result.running.counts.shape == result.truth.shape == (16, len(labels))
    assert (result.truth.sum(axis=1) == 5_000).all()
    assert result.num_outside_bands == 0


def test_every_user_reports_once_at_every_node_of_his_level(monkeypatch, histories):
    given = []
    monkeypatch.setattr(
        MonitorServer, "add_sums", lambda _, period, sums, num_reports: given.append(num_reports)
    )
    simulate_monitoring(histories, **_SETTINGS)
    assert given[15] == 400  # all five levels end
    by_level = np.diff([0, *(given[2**height - 1] for height in range(5))])
    for period, found in enumerate(given, 1):
        assert found == by_level[: (period & -period).bit_length()].sum()


def test_a_table_that_has_grown_gives_the_same_before(uninterrupted):
    so_far = histories_of(table().filter(pl.col("time") <= 10))
    first = simulate_monitoring(so_far, **_SETTINGS)
    np.testing.assert_array_equal(first.running.counts[:10], uninterrupted.running.counts[:10])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_changes": 0}, "max_changes"),
        ({"max_changes": 25}, "max_changes"),
        ({"epsilon0": 0.0}, "epsilon0"),
        ({"epsilon0": float("nan")}, "epsilon0"),
        ({"delta": 1.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"protocol": "magic"}, "protocol"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_out_of_range_are_refused_in_one_line(histories, options, name):
    with pytest.raises(ShuffledpError, match=name) as error:
        simulate_monitoring(histories, **(_SETTINGS | options))
    assert "\n" not in str(error.value)


def test_one_user_one_period_one_change():
    frame = pl.DataFrame({"user": [1], "time": [1], "value": [True]})
    result = simulate_monitoring(
        open_histories(frame, **_NAMES), max_changes=1, epsilon0=1.0, delta=1e-6, seed=1
    )
    assert result.truth.tolist() == [1]
    assert result.central.epsilon_upper <= result.local.upper
    assert np.isfinite(result.running.lower).all()


def test_a_delta_that_permits_publishing_somebody_is_warned_about(histories):
    result = simulate_monitoring(histories, **(_SETTINGS | {"delta": 0.01, "max_changes": 24}))
    assert "delta = 0.01 is not below 1/num_users" in result.warnings[-1]


def test_progress_counts_periods(histories):
    calls = []
    simulate_monitoring(histories, **_SETTINGS, on_progress=lambda *call: calls.append(call))
    assert calls[0] == ("simulating", 1, 24)
    assert calls[-1] == ("simulating", 24, 24)
