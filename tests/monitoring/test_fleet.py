"""A fleet against single clients told the same and given the same words, report by report."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy, derived_key
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.monitoring import fleet as fleet_module
from shuffledp.monitoring.client import ClientState, require_reports
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.fleet import ClientFleet
from shuffledp.monitoring.signs import SIGN_LAWS, draw_below

# Of the one statistical test here; each of its two sides may use half of it.
FALSE_POSITIVE_RATE = 1e-10

DOMAINS = [None, ["a", "b", "c"], list(range(6)), list(range(300))]


def design_of(domain=None, *, periods=13, max_changes=3, protocol="predrawn-signs"):
    return MonitorDesign(
        periods=periods,
        max_changes=max_changes,
        epsilon0=1.0,
        protocol=protocol,
        encoding=encoding_for(domain),
    )


def changes_of(design, num_users, seed=4):
    """For each period users and their codes: some do not change, some change too often."""
    generator = Entropy.from_seed(seed).generator()
    for _ in range(design.periods):
        users = generator.permutation(num_users)[: generator.integers(0, num_users)]
        yield users, generator.integers(-1, design.encoding.largest_code + 1, users.size)


def run(fleet, changes, **kwargs):
    return [fleet.update(t, *told, **kwargs) for t, told in enumerate(changes, fleet.next_period)]


class Twins:
    """The clients of a fleet one by one, given the words that the fleet draws."""

    def __init__(self, design, num_users, seed):
        self.design, self.key = design, Entropy.from_seed(seed).words(4).tobytes()
        self.num_groups = 0
        self.states = []
        self.told = []
        self.join(num_users)

    def stream(self, label, number):
        return Entropy.from_key(derived_key(self.key, label, number))

    def join(self, num_users):
        stream = self.stream(b"group", self.num_groups)
        self.num_groups += 1
        levels = draw_below(stream, num_users, self.design.num_levels) + np.uint64(1)
        keys = self.design.law.draw_keys(stream, num_users)
        nothing = self.design.encoding.nothing
        for level, key in zip(levels.tolist(), keys.tolist(), strict=True):
            self.states.append(
                ClientState.fresh(coins=bytes(32), level=level, key=key, nothing=nothing)
            )
            self.told.append(nothing)

    def update(self, period, users, values):
        """Return the reports as (level, sign, column), in the fleet's order."""
        for user, value in zip(users.tolist(), values.tolist(), strict=True):
            self.told[user] = self.design.encoding.nothing if value == -1 else value
        self.states = [
            state.after_telling(period, code, self.design)
            for state, code in zip(self.states, self.told, strict=True)
        ]
        stream = self.stream(b"period", period)
        out = []
        for level in self.design.tree.levels_ending_at(period):
            out += self.report(level, stream)
        return out

    def report(self, level, stream):
        here = [user for user, state in enumerate(self.states) if state.level == level]
        coins = stream.words(-(-len(here) // 64)).tolist()
        columns = draw_below(stream, len(here), self.design.encoding.num_columns).tolist()
        out = []
        for place, (user, column) in enumerate(zip(here, columns, strict=True)):
            state = self.states[user]
            word = 0
            if self.design.law.kind == "sampled-change" and state.increment_under(
                column, self.design
            ):
                word = int(stream.words(1)[0])
            coin = coins[place // 64] >> (place % 64) & 1
            sign, self.states[user] = state.after_node(column, coin, word, self.design)
            out.append((level, sign, column))
        return out


@pytest.mark.parametrize("protocol", list(SIGN_LAWS))
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: encoding_for(d).name)
def test_a_fleet_does_bit_by_bit_what_its_clients_do(domain, protocol):
    design = design_of(domain, protocol=protocol)
    num_users = 150
    fleet = ClientFleet(design, num_users, Entropy.from_seed(9))
    twins = Twins(design, num_users, 9)
    num_told = 0
    for t, (users, values) in enumerate(changes_of(design, num_users), 1):
        found = fleet.update(t, users, values, keep_reports=True)
        expected = twins.update(t, users, values)
        reports = found.reports
        assert (
            list(zip(reports.levels.tolist(), reports.signs.tolist(), reports.columns, strict=True))
            == expected
        )
        assert set(reports.periods.tolist()) <= {t}
        require_reports(design, reports)
        num_told += len(expected)
    assert num_told > 0
    assert fleet.ignored_changes.tolist() == [state.num_ignored for state in twins.states]
    assert fleet.ignored_changes.sum() > 0
    assert fleet.levels.tolist() == [state.level for state in twins.states]
    arrays = fleet.state_arrays()
    for name in ("keys", "num_changes", "num_increments", "told", "value", "before"):
        by_user = arrays[name][arrays["slots"]].tolist()
        assert by_user == [
            getattr(state, name.removesuffix("s") if name == "keys" else name)
            for state in twins.states
        ]


def test_late_joiners_are_late_clients():
    design = design_of(["a", "b", "c"])
    fleet = ClientFleet(design, 40, Entropy.from_seed(9))
    twins = Twins(design, 40, 9)
    for t, (users, values) in enumerate(changes_of(design, 40), 1):
        if t in (4, 9):
            first = fleet.num_users
            assert fleet.join(25) == range(first, first + 25)
            twins.join(25)
        # A late user changes in each period from the one in which he joined.
        late = [fleet.num_users - 1] if t > 3 else []
        told = (
            np.append(users, late).astype(int),
            np.append(values, [t % 3] * len(late)).astype(int),
        )
        found = fleet.update(t, *told, keep_reports=True).reports
        assert found.signs.tolist() == [sign for _, sign, _ in twins.update(t, *told)]
    assert fleet.num_users == 90


@pytest.mark.parametrize("domain", DOMAINS[:4], ids=lambda d: encoding_for(d).name)
def test_sums_are_those_of_the_reports(domain):
    design = design_of(domain)
    for sums in run(
        ClientFleet(design, 500, Entropy.from_seed(1)), changes_of(design, 500), keep_reports=True
    ):
        reports = sums.reports
        assert list(sums.levels) == list(design.tree.levels_ending_at(sums.period))
        for row, level in enumerate(sums.levels):
            for column in range(design.encoding.num_columns):
                signs = reports.signs[(reports.levels == level) & (reports.columns == column)]
                assert sums.sums[row, column] == signs.sum()
                assert sums.counts[row, column] == signs.size
        assert sums.counts.sum() == len(reports)
        assert not sums.sums.flags.writeable


def test_reports_are_kept_only_if_asked_for_and_do_not_change_the_draws():
    design = design_of()
    bare, kept = (
        run(ClientFleet(design, 99, Entropy.from_seed(1)), changes_of(design, 99), keep_reports=k)
        for k in (False, True)
    )
    assert all(sums.reports is None for sums in bare)
    assert [s.sums.tolist() for s in bare] == [s.sums.tolist() for s in kept]


@pytest.mark.parametrize("protocol", list(SIGN_LAWS))
def test_a_fleet_cut_anywhere_goes_on_as_if_it_had_not_been(protocol):
    design = design_of(["a", "b", "c"], protocol=protocol, periods=9)
    changes = list(changes_of(design, 60))

    def finish(fleet):
        out = []
        while fleet.next_period <= 9:
            t = fleet.next_period
            if t == 6:
                fleet.join(10)
            out.append(fleet.update(t, *changes[t - 1]).sums.tolist())
        return out

    whole = finish(ClientFleet(design, 60, Entropy.from_seed(3)))
    for cut in range(10):
        fleet = ClientFleet(design, 60, Entropy.from_seed(3))
        first = []
        for t in range(1, cut + 1):
            if t == 6:
                fleet.join(10)
            first.append(fleet.update(t, *changes[t - 1]).sums.tolist())
        arrays = fleet.state_arrays()
        restored = ClientFleet.from_state_arrays(design, arrays)
        assert first + finish(restored) == whole
        # The arrays were copied, both ways.
        again = ClientFleet.from_state_arrays(design, arrays)
        assert first + finish(again) == whole


def test_a_fleet_restored_from_a_backup_repeats_its_reports():
    design = design_of()
    fleet = ClientFleet(design, 200)
    fleet.update(1, [3], [1])
    arrays = fleet.state_arrays()
    expected = fleet.update(2, [], [], keep_reports=True).reports
    restored = ClientFleet.from_state_arrays(design, arrays)
    found = restored.update(2, [], [], keep_reports=True).reports
    assert found.signs.tolist() == expected.signs.tolist()
    other = ClientFleet(design, 200).update(1, [], [], keep_reports=True).reports
    assert other.signs.tolist() != found.signs.tolist()[: len(other)]


def test_estimates_from_a_large_fleet_are_where_they_should_be():
    """Hoeffding's bound on the sum of a level's signs; a scale off by one level is rejected."""
    design = MonitorDesign(periods=2, max_changes=1, epsilon0=4.0)
    num_users = 60_000
    fleet = ClientFleet(design, num_users, Entropy.from_seed(11))
    fleet.update(1, np.arange(num_users), np.ones(num_users, dtype=np.int64))
    sums = fleet.update(2, [], [])
    # Level 2, which ends now: each of its reports has mean gap.
    count, total = int(sums.counts[1, 0]), int(sums.sums[1, 0])
    slack = np.sqrt(2 * count * np.log(2 / (FALSE_POSITIVE_RATE / 2)))
    assert abs(total - design.law.gap * count) <= slack
    assert abs(total - design.law.gap * count / 2) > slack
    # Half of the users are there.
    slack = np.sqrt(num_users / 2 * np.log(2 / (FALSE_POSITIVE_RATE / 2)))
    assert abs(count - num_users / 2) <= slack
    assert abs(count - num_users / 3) > slack


def test_one_user_one_period_and_empty_levels():
    design = design_of(periods=1, max_changes=1)
    fleet = ClientFleet(design, 1, Entropy.from_seed(0))
    sums = fleet.update(1, [0], [True], keep_reports=True)
    assert sums.counts.tolist() == [[1]]
    assert abs(int(sums.sums[0, 0])) == 1
    with pytest.raises(
        ParameterError, match=r"period = 2 is not in \[1, 1\]: the collection ended"
    ):
        fleet.update(2, [], [])
    # One user has one level; the others report nothing.
    fleet = ClientFleet(design_of(["a", "b", "c"], periods=8), 1, Entropy.from_seed(0))
    counts = [fleet.update(t, [], [], keep_reports=True).counts.sum() for t in range(1, 9)]
    assert max(counts) == 1
    assert sum(counts) == 8 >> (int(fleet.levels[0]) - 1)


def test_periods_come_one_after_the_other():
    fleet = ClientFleet(design_of(), 5, Entropy.from_seed(0))
    with pytest.raises(ParameterError, match=r"period = 3 leaves out period 1: call update\(1, "):
        fleet.update(3, [], [])
    fleet.update(1, [], [])
    with pytest.raises(ParameterError, match="period = 1 is before 2, the next one"):
        fleet.update(1, [], [])
    with pytest.raises(ParameterError, match="period = 0 is below 1"):
        fleet.update(0, [], [])
    assert fleet.next_period == 2


@pytest.mark.parametrize(
    ("users", "values", "error", "message"),
    [
        ([0, 5], [1, 1], DomainError, r"users\[1\] = 5 is not in \[0, 5\)"),
        ([-1], [1], DomainError, r"users\[0\] = -1 is not in \[0, 5\)"),
        ([3, 1, 3], [1, 1, 0], ParameterError, "users holds 3 twice"),
        ([1, 1], [1, 1], ParameterError, "users holds 1 twice"),
        ([0, 1], [1], ParameterError, "one whole number for each of the 1 values"),
        ([0.0], [1], ParameterError, "one whole number for each"),
        ([[0]], [1], ParameterError, "one whole number for each"),
        ([0], [2], DomainError, r"values\[0\] = 2 is not in \[-1, 1\]"),
        ([0], ["a"], ParameterError, "one integer code"),
    ],
)
def test_wrong_changes_are_refused_and_nothing_is_lost(users, values, error, message):
    design = design_of()
    fleet = ClientFleet(design, 5, Entropy.from_seed(0))
    before = fleet.state_arrays()
    with pytest.raises(error, match=message):
        fleet.update(1, users, values)
    after = fleet.state_arrays()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    fleet.update(1, [4, 0], [True, False])  # out of order is fine


def test_impossible_fleets_are_refused():
    design = design_of()
    with pytest.raises(ParameterError, match="num_users = 0 is below 1"):
        ClientFleet(design, 0)
    with pytest.raises(ParameterError, match=r"num_users = 2147483648 is above 2\^31 - 1"):
        ClientFleet(design, 2**31)
    with pytest.raises(ParameterError, match="periods = 2147483648 is above"):
        ClientFleet(design_of(periods=2**31), 1)
    fleet = ClientFleet(design, 2)
    assert fleet.design == design
    with pytest.raises(ParameterError, match="num_users = 0 is below 1"):
        fleet.join(0)
    with pytest.raises(ParameterError, match="num_users = 2147483649 is above"):
        fleet.join(2**31 - 1)


def test_a_fleet_interrupted_half_way_is_not_used_again(monkeypatch):
    design = design_of()
    fleet = ClientFleet(design, 50, Entropy.from_seed(0))
    fleet.update(1, [], [])
    arrays = fleet.state_arrays()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fleet_module, "coin_signs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fleet.update(2, [1], [1])
    for call in (fleet.state_arrays, lambda: fleet.update(2, [1], [1]), lambda: fleet.join(1)):
        with pytest.raises(DataError, match=r"interrupted in period 2, .*from_state_arrays"):
            call()
    restored = ClientFleet.from_state_arrays(design, arrays)
    assert restored.update(2, [1], [1]).period == 2


def broken(arrays, name, value):
    return {**arrays, name: value}


def test_damaged_arrays_are_refused():
    design = design_of(protocol="sampled-change")
    fleet = ClientFleet(design, 5, Entropy.from_seed(0))
    arrays = fleet.state_arrays()
    for name in arrays:
        rest = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(DataError, match=f"arrays has no '{name}'"):
            ClientFleet.from_state_arrays(design, rest)
    cases = {
        "slots": (np.array([0, 1, 2, 3, 3], dtype=np.int32), "do not give each user a place"),
        "level_sizes": (np.array([5, 1, 0, 0]), "do not give each user a place"),
        "keys": (np.zeros(5, dtype=np.uint64), r"'keys'\] is not within \[1, 3\]"),
        "key": (np.zeros(31, dtype=np.uint8), r"shape \(31,\), not uint8 and \(32,\)"),
        "num_changes": (np.full(5, 4, dtype=np.int32), r"'num_changes'\] is not within \[0, 3\]"),
        "num_ignored": (np.zeros(4, dtype=np.int32), r"shape \(4,\), not int32 and \(5,\)"),
        "num_increments": (np.zeros(5), r"dtype float64 and shape \(5,\), not int32"),
        "value": (np.full(5, 2, dtype=np.int8), r"'value'\] is not within \[0, 1\]"),
        "after": (np.full(5, -1, dtype=np.int8), r"'after'\] is not within \[0, 1\]"),
        "next_period": (np.array(15), r"'next_period'\] is not a whole number in \[1, 14\]"),
        "num_groups": (np.array([1]), r"'num_groups'\] is not a whole number in \[1, 5\]"),
    }
    for name, (value, message) in cases.items():
        with pytest.raises(DataError, match=message):
            ClientFleet.from_state_arrays(design, broken(arrays, name, value))
    for other in (design_of(), design_of(["a", "b"], protocol="sampled-change")):
        with pytest.raises(FingerprintError, match="of a fleet of another design"):
            ClientFleet.from_state_arrays(other, arrays)
    with pytest.raises(FingerprintError, match="of a fleet of another design"):
        ClientFleet.from_state_arrays(design, broken(arrays, "design", np.zeros(8)))


def test_arrays_may_be_read_only_and_finished():
    design = design_of(periods=2, max_changes=1)
    fleet = ClientFleet(design, 5, Entropy.from_seed(0))
    run(fleet, [([], []), ([2], [1])])
    arrays = fleet.state_arrays()
    for array in arrays.values():
        array.flags.writeable = False
    restored = ClientFleet.from_state_arrays(design, arrays)
    assert restored.next_period == 3
    with pytest.raises(ParameterError, match="the collection ended with period 2"):
        restored.update(3, [], [])
