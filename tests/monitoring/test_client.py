"""A single client: what it may be told, what it hands out, and what survives a restart."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.monitoring import client as client_module
from shuffledp.monitoring.client import ClientState, MonitorClient, MonitorReports, require_reports
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.signs import SIGN_LAWS

DESIGN = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0)
VERSIONS = MonitorDesign(
    periods=8, max_changes=3, epsilon0=1.0, encoding=encoding_for(["1.0", "1.1", "2.0", "2.1"])
)

SAMPLED = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0, protocol="sampled-change")


def client_at(level, *, design=DESIGN):
    """A client whose draw was that level."""
    for seed in range(1000):
        client = MonitorClient.of(design, entropy=Entropy.from_seed(seed))
        if client.level == level:
            return client
    raise AssertionError(f"no client at level {level}")


@pytest.mark.parametrize("design", [DESIGN, VERSIONS])
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_report_falls_due_when_a_node_of_the_level_ends(design, level):
    client = client_at(level, design=design)
    length = 2 ** (level - 1)
    handed_out = []
    for t in range(1, 9):
        report = client.update(t, None)
        assert (report is not None) == (t % length == 0)
        if report is not None:
            assert (report.level, report.period) == (level, t)
            handed_out.append(report)
    require_reports(design, MonitorReports.from_reports(handed_out))


def test_made_from_numbers_or_from_a_design():
    client = MonitorClient(np.int64(8), 2, 1.0, entropy=Entropy.from_seed(1))
    assert client.design == DESIGN
    assert client.to_bytes() == MonitorClient.of(DESIGN, entropy=Entropy.from_seed(1)).to_bytes()
    other = MonitorClient(
        8, 3, 1.0, protocol="sampled-change", encoding=VERSIONS.encoding
    )  # of the operating system
    assert other.design.law.kind == "sampled-change"
    assert other.design.encoding == VERSIONS.encoding
    for wrong in ((0, 1, 1.0), (8, 0, 1.0), (8, 9, 1.0), (8, 1, float("nan")), (8, 1, 0.0)):
        with pytest.raises(ParameterError):
            MonitorClient(*wrong)


def test_levels_and_keys_are_drawn_over_their_whole_range():
    design = MonitorDesign(periods=4, max_changes=2, epsilon0=1.0, protocol="sampled-change")
    entropy = Entropy.from_seed(5)
    seen = set()
    for _ in range(200):
        data = MonitorClient.of(design, entropy=entropy).to_bytes()
        state = ClientState.from_bytes(data, design)
        seen.add((state.level, state.key))
    assert seen == {(level, key) for level in (1, 2, 3) for key in (1, 2)}


def test_telling_a_period_again():
    client = client_at(1)
    assert client.update(1, True) is not None
    before = client.to_bytes()
    assert client.update(1, True) is None
    assert client.update(1, 1) is None
    assert client.advance(1, True) == ()
    with pytest.raises(ParameterError, match=r"t = 1 was told before .* as period 2"):
        client.update(1, False)
    with pytest.raises(ParameterError, match="cannot be taken back"):
        client.advance(1, None)
    assert client.to_bytes() == before


@pytest.mark.parametrize("method", ["update", "advance"])
def test_refusals_leave_the_client_as_it_was(method):
    client = client_at(1)
    client.update(3, True)
    client.update(4, False)
    before = client.to_bytes()
    call = getattr(client, method)
    with pytest.raises(ParameterError, match=r"t = 3 is before 4, the last .* tell period 5 next"):
        call(3, True)
    with pytest.raises(ParameterError, match=r"t = 9 is not in \[1, 8\]: the collection ended"):
        call(9, True)
    with pytest.raises(ParameterError, match="t = 0 is below 1"):
        call(0, True)
    with pytest.raises(ParameterError, match="is not a whole number"):
        call(4.5, True)
    with pytest.raises(DomainError, match="value = 2 is not a state"):
        call(5, 2)
    assert client.to_bytes() == before
    assert client.last_period == 4


def test_a_gap_is_refused_with_the_way_out():
    client = client_at(1)
    client.update(2, True)
    with pytest.raises(
        ParameterError, match=r"t = 5 leaves out .* after 2: call advance\(5, value\)"
    ):
        client.update(5, True)
    assert [report.period for report in client.advance(5, False)] == [3, 4, 5]
    assert client.last_period == 5


def test_a_late_joiner_hands_out_nothing_for_the_past():
    client = client_at(2)
    assert [report.period for report in client.advance(3, True)] == []
    assert client.update(4, True).period == 4
    state = ClientState.from_bytes(client.to_bytes(), DESIGN)
    assert (state.num_changes, state.num_increments) == (1, 1)  # nothing, then True


@pytest.mark.parametrize("protocol", list(SIGN_LAWS))
@given(data=st.data())
def test_advancing_is_holding_the_last_value(protocol, data):
    design = MonitorDesign(
        periods=20, max_changes=4, epsilon0=1.0, protocol=protocol, encoding=VERSIONS.encoding
    )
    seed = data.draw(st.integers(0, 50))
    slow, fast = (MonitorClient.of(design, entropy=Entropy.from_seed(seed)) for _ in range(2))
    told = sorted(data.draw(st.sets(st.integers(1, 20), min_size=1)))
    value = None
    for last, t in zip([told[0] - 1, *told], told, strict=False):
        held = [slow.update(each, value) for each in range(last + 1, t)]
        value = data.draw(st.sampled_from([None, *design.encoding.labels]))
        expected = [report for report in [*held, slow.update(t, value)] if report is not None]
        assert fast.advance(t, value) == tuple(expected)
        assert fast.to_bytes() == slow.to_bytes()


def test_changes_beyond_the_most_are_counted_and_not_followed():
    client = MonitorClient.of(DESIGN, entropy=Entropy.from_seed(3))
    counts = []
    for t, value in enumerate([1, 0, 1, 1, 0, 1, 1, 0], 1):
        client.update(t, value)
        counts.append(client.ignored_changes)
    assert counts == [0, 0, 1, 1, 1, 2, 2, 2]
    # For every encoding the first value is a change, unless it is nothing.
    client = MonitorClient.of(VERSIONS, entropy=Entropy.from_seed(3))
    for t, value in enumerate([None, "1.0", "1.1", None, "2.0", "2.1", "2.1", None], 1):
        client.update(t, value)
    assert client.ignored_changes == 2


@pytest.mark.parametrize("design", [DESIGN, VERSIONS])
def test_a_restored_client_goes_on_and_repeats_nothing(design):
    values = [design.encoding.labels[0]] * 3 + [None] * 5
    for saved_after in range(9):
        client = client_at(1, design=design)
        reports = [client.update(t, values[t - 1]) for t in range(1, saved_after + 1)]
        restored = MonitorClient.from_bytes(client.to_bytes(), design)
        assert restored.to_bytes() == client.to_bytes()
        assert restored.last_period == saved_after
        if saved_after:
            assert restored.update(saved_after, values[saved_after - 1]) is None
        if saved_after > 1:
            with pytest.raises(ParameterError, match="time goes forward"):
                restored.update(1, values[0])
        reports += [restored.update(t, values[t - 1]) for t in range(saved_after + 1, 9)]
        assert [report.period for report in reports] == list(range(1, 9))


@pytest.mark.parametrize("design", [DESIGN, VERSIONS, SAMPLED])
def test_a_client_restored_from_a_backup_repeats_its_reports(design):
    """What is drawn anew at each replay could be averaged until the value shows."""
    labels = design.encoding.labels
    values = [labels[0]] * 3 + [None, labels[-1], None, None, labels[0]]
    for level in range(1, 5):
        client = client_at(level, design=design)
        backups, reports = [], []
        for t, value in enumerate(values, 1):
            backups.append(client.to_bytes())
            reports.append(client.update(t, value))
        for first, backup in enumerate(backups):
            replayed = MonitorClient.from_bytes(backup, design)
            again = [replayed.update(t + 1, values[t]) for t in range(first, 8)]
            assert again == reports[first:]
            assert replayed.to_bytes() == client.to_bytes()


def test_coins_differ_between_clients_and_periods():
    clients = [MonitorClient.of(DESIGN, entropy=Entropy.from_seed(seed)) for seed in range(60)]
    rows = [[client.update(t, None) for t in range(1, 9)] for client in clients]
    signs = {tuple(report.sign for report in row) for row in rows if all(row)}
    assert len(signs) > 4
    assert all(len(set(row)) == 2 for row in signs)


def test_bytes_of_another_design_or_damaged_are_refused():
    data = MonitorClient.of(DESIGN).to_bytes()
    assert len(data) == 97
    with pytest.raises(FingerprintError, match="of another collection"):
        MonitorClient.from_bytes(data, VERSIONS)
    with pytest.raises(DataError, match="cut short"):
        MonitorClient.from_bytes(data[:-1], DESIGN)


def test_a_failing_draw_leaves_the_client_as_it_was(monkeypatch):
    client = client_at(1, design=VERSIONS)
    client.update(1, "1.0")
    before = client.to_bytes()

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as broken, pytest.raises(MemoryError):
        broken.setattr(client_module, "derived_key", fail)
        client.advance(3, "2.0")
    assert client.to_bytes() == before
    assert client.last_period == 1


def test_a_client_says_nothing_of_its_secrets_and_is_not_copied():
    client = client_at(1)
    client.update(1, True)
    assert repr(client) == f"MonitorClient({DESIGN!r}, last_period=1)"
    with pytest.raises(ParameterError, match="cannot be pickled or copied"):
        copy.deepcopy(client)
