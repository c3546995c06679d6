import os
import stat
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from oracles.made_histories import outage, versions
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import (
    DataError,
    FingerprintError,
    OutputError,
    ParameterError,
    ShuffledpError,
)
from shuffledp.monitoring import simulation
from shuffledp.monitoring.histories import Histories, open_histories
from shuffledp.monitoring.results import MonitorResult
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.simulation import SimulationState, simulate_monitoring

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
    assert (result.through, result.num_users) == (24, 400)
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


@pytest.mark.parametrize("stops", [(1,), (8, 9), (23,), (24,), tuple(range(1, 25))])
def test_stopping_and_going_on_changes_nothing(tmp_path, histories, uninterrupted, stops):
    state = tmp_path / "x.state"
    first = simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=stops[0])
    assert first.through == stops[0]
    np.testing.assert_allclose(first.running.counts, uninterrupted.running.counts[: stops[0]])
    settings = _SETTINGS | {"seed": None}  # it goes on with its own
    for stop in stops[1:]:
        simulate_monitoring(histories, **settings, state_file=state, resume=True, stop_after=stop)
    last = simulate_monitoring(histories, **settings, state_file=state, resume=True)
    assert_same(last, uninterrupted)
    assert_same(
        simulate_monitoring(histories, **_SETTINGS, state_file=state, resume=True), uninterrupted
    )


def test_every_user_reports_once_at_every_node_of_his_level(monkeypatch, histories):
    given = []
    monkeypatch.setattr(
        MonitorServer, "add_sums", lambda _, period, sums, num_reports: given.append(num_reports)
    )
    monkeypatch.setattr(MonitorServer, "last_period", 24)
    simulate_monitoring(histories, **_SETTINGS)
    assert given[15] == 400  # all five levels end
    by_level = np.diff([0, *(given[2**height - 1] for height in range(5))])
    for period, found in enumerate(given, 1):
        assert found == by_level[: (period & -period).bit_length()].sum()


def test_a_table_may_grow_after_the_periods_that_are_over(tmp_path, uninterrupted):
    state = tmp_path / "x.state"
    frame = table()
    so_far = histories_of(frame.filter(pl.col("time") <= 10))
    simulate_monitoring(so_far, **_SETTINGS, state_file=state, stop_after=10)
    grown = histories_of(frame)
    result = simulate_monitoring(grown, **_SETTINGS, state_file=state, resume=True)
    assert_same(result, uninterrupted)


def test_a_table_with_another_past_is_refused(tmp_path, histories):
    state = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=10)
    before = state.read_bytes()
    frame = table()
    without = frame.filter(pl.col("time") != 5)
    switched = frame.with_columns(
        value=pl.when(pl.col("time") == 1).then(1 - pl.col("value")).otherwise("value")
    )
    for other in (without, switched):
        with pytest.raises(DataError, match="other changes in periods 1 to 10, than the table"):
            simulate_monitoring(histories_of(other), **_SETTINGS, state_file=state, resume=True)
    assert state.read_bytes() == before


def test_new_users_are_refused(tmp_path):
    state = tmp_path / "x.state"
    frame = table()
    few = histories_of(frame.filter(pl.col("user") < "u390"))
    simulate_monitoring(few, **_SETTINGS, state_file=state, stop_after=10)
    with pytest.raises(FingerprintError, match="was made with users = 390, and now it is 400"):
        simulate_monitoring(histories_of(frame), **_SETTINGS, state_file=state, resume=True)
    renamed = frame.with_columns(pl.col("user").str.replace("u", "v")).filter(
        pl.col("user") < "v390"
    )
    with pytest.raises(DataError, match="has other users"):
        simulate_monitoring(histories_of(renamed), **_SETTINGS, state_file=state, resume=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_changes": 4}, r"was made with max_changes = 3, and now it is 4"),
        ({"epsilon0": 2.0}, "was made with epsilon0 = "),
        ({"protocol": "sampled-change"}, "was made with protocol = 'predrawn-signs'"),
        ({"seed": 12}, "was made with seed = 11, and now it is 12: leave the seed out"),
    ],
)
def test_another_collection_is_not_continued(tmp_path, histories, change, message):
    state = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=3)
    with pytest.raises(FingerprintError, match=message):
        simulate_monitoring(histories, **(_SETTINGS | change), state_file=state, resume=True)


def test_another_domain_or_time_is_not_continued(tmp_path):
    state = tmp_path / "x.state"
    frame = table()
    simulate_monitoring(
        histories_of(frame, categories=["0", "1"]), **_SETTINGS, state_file=state, stop_after=3
    )
    for options, message in (
        ({"categories": ["1", "0"]}, "values = "),
        ({}, "values = "),
        ({"categories": ["0", "1"], "start": 0, "periods": 25}, "periods"),
    ):
        with pytest.raises(FingerprintError, match=message):
            simulate_monitoring(
                histories_of(frame, **options), **_SETTINGS, state_file=state, resume=True
            )
    with pytest.raises(FingerprintError, match=r"time = \['1', '2'\]"):
        simulate_monitoring(
            histories_of(frame.with_columns(pl.col("time") - 1), categories="01", start=0),
            **_SETTINGS,
            state_file=state,
            resume=True,
        )


@pytest.fixture
def state(tmp_path, histories):
    """The state of a simulation that has stopped after three periods."""
    path = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=path, stop_after=3)
    return path


def test_a_state_cut_short_or_with_any_byte_changed_is_refused(state):
    data = bytearray(state.read_bytes())
    for place in range(len(data)):
        state.write_bytes(data[:place])
        with pytest.raises(DataError, match="cut short") as error:
            SimulationState.read(state)
        assert "\n" not in str(error.value)
        data[place] ^= 1
        state.write_bytes(data)
        with pytest.raises(DataError, match=r"damaged|no state file|of version"):
            SimulationState.read(state)
        data[place] ^= 1


def test_a_damaged_state_is_not_continued_nor_replaced(state, histories):
    state.write_bytes(state.read_bytes()[:-1])
    before = state.read_bytes()
    with pytest.raises(DataError, match="cut short"):
        simulate_monitoring(histories, **_SETTINGS, state_file=state, resume=True)
    assert state.read_bytes() == before


def test_another_version_says_what_to_do(state):
    state.write_text(state.read_text().replace('"version": 3', '"version": 2'))
    with pytest.raises(DataError, match=r"of version 2, and this shuffledp reads version 3: go on"):
        SimulationState.read(state)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "y.state"
    for text in ("id,day,on\n", "[1]", "{}", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(DataError, match="is no state file"):
            SimulationState.read(path)
    with pytest.raises(DataError, match="cannot read"):
        SimulationState.read(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_its_owner_may_read_a_state(state):
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    state.chmod(0o644)
    SimulationState.read(state).write(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_is_replaced_and_what_it_leads_to_is_left(state, tmp_path):
    kept = SimulationState.read(state)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    state.unlink()
    state.symlink_to(elsewhere)
    kept.write(state)
    assert elsewhere.read_bytes() == b"mine"
    assert not state.is_symlink()


def test_a_failed_write_leaves_the_earlier_state(state, monkeypatch):
    kept = SimulationState.read(state)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(simulation.os, "fsync", full)
        with pytest.raises(OutputError, match="No space left"):
            replace(kept, through=4).write(state)
    assert SimulationState.read(state) == kept
    assert [each.name for each in state.parent.iterdir()] == ["x.state"]


def test_an_interrupted_simulation_goes_on_with_the_same_reports(tmp_path, histories):
    state = tmp_path / "x.state"
    settings = _SETTINGS | {"seed": None}

    def interrupted(_stage, done, _total):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_monitoring(histories, **settings, state_file=state, on_progress=interrupted)
    key = SimulationState.read(state).key
    first = simulate_monitoring(histories, **settings, state_file=state, resume=True)
    again = simulate_monitoring(histories, **settings, state_file=state, resume=True)
    assert_same(first, again)
    assert SimulationState.read(state).key == key
    assert SimulationState.read(state).through == 24


def test_a_state_file_is_not_lost_unasked(tmp_path, histories):
    state = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=3)
    with pytest.raises(OutputError, match="is there already: go on from it with resume"):
        simulate_monitoring(histories, **_SETTINGS, state_file=state)
    with pytest.raises(ParameterError, match="without a state file"):
        simulate_monitoring(histories, **_SETTINGS, resume=True)
    with pytest.raises(DataError, match="there is no state file"):
        simulate_monitoring(histories, **_SETTINGS, resume=True, state_file=tmp_path / "y")


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
        ({"stop_after": 0}, "stop_after"),
        ({"stop_after": 25}, "stop_after"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_out_of_range_are_refused_in_one_line(tmp_path, histories, options, name):
    state = tmp_path / "x.state"
    with pytest.raises(ShuffledpError, match=name) as error:
        simulate_monitoring(histories, **(_SETTINGS | {"state_file": state} | options))
    assert "\n" not in str(error.value)
    assert not state.exists()


def test_stopping_before_where_it_is_is_refused(tmp_path, histories):
    state = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=5)
    with pytest.raises(ParameterError, match=r"stop_after = 4 is not in \[5, 24\]"):
        simulate_monitoring(histories, **_SETTINGS, state_file=state, resume=True, stop_after=4)


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
