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
from shuffledp.monitoring import state_files
from shuffledp.monitoring.histories import Histories, open_histories
from shuffledp.monitoring.privacy.central import central_guarantee
from shuffledp.monitoring.results import MonitorResult
from shuffledp.monitoring.simulation import simulate_monitoring

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
    assert (result.through, result.num_users, result.num_late_users) == (24, 400, 0)
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


@pytest.mark.parametrize("method", ["least-squares", "cover"])
@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
def test_bands_hold_the_truth(method, protocol):
    result = simulate_monitoring(
        open_histories(outage(20_000, 30), **_NAMES, periods=30),
        max_changes=4,
        epsilon0=2.0,
        delta=1e-6,
        protocol=protocol,
        method=method,
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


@pytest.mark.parametrize("encoding", [None, "one-hot", "hadamard"])
def test_categories_are_counted_one_by_one(encoding):
    labels = ("1.0", "2.0", "3.0", "4.0", "5.0")
    table = versions(5_000, 16, labels)
    histories = open_histories(table, **_NAMES, categories=labels, periods=16)
    result = simulate_monitoring(
        histories,
        max_changes=5,
        epsilon0=3.0,
        delta=1e-6,
        encoding=encoding,
        confidence=1.0 - FALSE_POSITIVE_RATE,
        seed=2,
    )
    assert result.design.encoding.name == (encoding or "hadamard")
    assert result.values == labels
    assert result.running.counts.shape == result.truth.shape == (16, 5)
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


def test_every_user_reports_once_at_every_node_of_his_level(tmp_path, histories):
    state = tmp_path / "x.state"
    settings = _SETTINGS | {"seed": None}
    simulate_monitoring(histories, **settings, state_file=state, stop_after=7)
    result = simulate_monitoring(histories, **settings, state_file=state, resume=True)
    numbers = state_files.read_state(state).server["numbers"]
    tree, offset = result.design.tree, 0
    in_level = []
    for level in range(1, tree.num_levels + 1):
        nodes = numbers[offset : offset + tree.nodes_at(level)]
        offset += nodes.size
        assert len(set(nodes.tolist())) == 1
        in_level.append(int(nodes[0]))
    assert sum(in_level) == 400


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
        with pytest.raises(DataError, match="has other changes in periods 1 to 10 than the table"):
            simulate_monitoring(histories_of(other), **_SETTINGS, state_file=state, resume=True)
    assert state.read_bytes() == before


def test_new_users_are_refused_or_join(tmp_path):
    state = tmp_path / "x.state"
    frame = table()
    is_new = pl.col("user") >= "u390"
    simulate_monitoring(
        histories_of(frame.filter(~is_new)), **_SETTINGS, state_file=state, stop_after=10
    )
    with pytest.raises(
        DataError, match=r"10 users of the table, such as 'u390', are not in .*--jo"
    ):
        simulate_monitoring(histories_of(frame), **_SETTINGS, state_file=state, resume=True)
    options = {"state_file": state, "resume": True, "join_new_users": True}
    result = simulate_monitoring(histories_of(frame), **_SETTINGS, **options, stop_after=15)
    assert (result.num_users, result.num_late_users) == (400, 10)
    assert "Joined after the first period: 10 of the users" in result.warnings[1]
    assert result.central.num_users == 390
    hidden = central_guarantee(result.design.profile, num_users=390, delta=1e-6)
    assert result.central.epsilon_upper >= hidden.upper
    assert any("may be seen by everybody" in each for each in result.central.bound.assumptions)
    late = histories_of(frame.filter(is_new)).true_counts()[:15, 0]
    others = histories_of(frame.filter(~is_new)).true_counts()[:15, 0]
    late[:10] = 0  # they count from when they joined
    assert (result.truth == late + others).all()
    # Going on needs no further leave, and remembers who began when.
    last = simulate_monitoring(
        histories_of(frame), **_SETTINGS, state_file=state, resume=True, stop_after=24
    )
    assert last.num_late_users == 10
    assert (last.truth[:15] == result.truth).all()
    with pytest.raises(DataError, match="its last period is over"):
        simulate_monitoring(histories_of(table(num_users=401)), **_SETTINGS, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_changes": 4}, r"was made with max_changes = 3, and now it is 4"),
        ({"epsilon0": 2.0}, "was made with epsilon0 = "),
        ({"protocol": "sampled-change"}, "was made with protocol = 'predrawn-signs'"),
        ({"periods": 30}, "was made with periods = 24, and now it is 30"),
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
        ({}, "kind of values = 'categories'"),
        ({"categories": ["0", "1"], "start": 0, "periods": 25}, "periods"),
    ):
        with pytest.raises(FingerprintError, match=message):
            simulate_monitoring(
                histories_of(frame, **options), **_SETTINGS, state_file=state, resume=True
            )
    with pytest.raises(FingerprintError, match="time = 'from 1, 1 a period'"):
        simulate_monitoring(
            histories_of(frame.with_columns(pl.col("time") - 1), categories="01", start=0),
            **_SETTINGS,
            state_file=state,
            resume=True,
        )


def test_a_damaged_state_is_refused(tmp_path, histories):
    state = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=state, stop_after=3)
    data = state.read_bytes()
    rng = Entropy.from_seed(1).generator()
    for length in rng.integers(0, len(data), 20).tolist():
        state.write_bytes(data[:length])
        with pytest.raises(DataError):
            simulate_monitoring(histories, **_SETTINGS, state_file=state, resume=True)


def test_a_state_that_contradicts_itself_is_refused(tmp_path, histories):
    path = tmp_path / "x.state"
    simulate_monitoring(histories, **_SETTINGS, state_file=path, stop_after=3)
    state = state_files.read_state(path)
    names = {name: getattr(state, name) for name in state.__slots__}
    fleet = dict(state.fleet) | {"next_period": np.array(9)}
    state_files.write_state(state_files.MonitorState(**(names | {"fleet": fleet})), path)
    with pytest.raises(DataError, match="contradicts itself"):
        simulate_monitoring(histories, **_SETTINGS, state_file=path, resume=True)


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
        ({"method": "magic"}, "method"),
        ({"method": "cover", "smoothed": True}, "method = 'cover' has no smoothed form"),
        ({"protocol": "magic"}, "protocol"),
        ({"encoding": "one-hot"}, "encoding"),
        ({"save_every": -1.0}, "save_every"),
        ({"stop_after": 0}, "stop_after"),
        ({"stop_after": 25}, "stop_after"),
        ({"periods": 3}, "periods"),
        ({"periods": 10**12}, "periods"),
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


def test_the_state_is_kept_as_often_as_asked(tmp_path, histories):
    state = tmp_path / "x.state"
    seen = []

    def look(_stage, _done, _total):
        seen.append(state_files.read_state(state).next_period if state.exists() else 0)

    simulate_monitoring(
        histories, **_SETTINGS, state_file=state, save_every=0.0, on_progress=look, stop_after=5
    )
    assert seen == [0, 2, 3, 4, 5]
    assert state_files.read_state(state).next_period == 6
