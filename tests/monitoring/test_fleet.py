"""A fleet against single clients told the same and given the same words, report by report."""

import numpy as np
import pytest

from oracles.scalar_client import Client
from shuffledp.core.entropy import Entropy, derived_key, draw_below
from shuffledp.monitoring.client import ClientFleet
from shuffledp.monitoring.design import SIGN_LAWS, MonitorDesign

# Of the one statistical test here; each of its two sides may use half of it.
FALSE_POSITIVE_RATE = 1e-10

DOMAINS = [None, ["a", "b", "c"], list(range(6)), list(range(300))]
KEY = bytes(range(32))


def design_of(domain=None, *, periods=13, max_changes=3, protocol="predrawn-signs"):
    return MonitorDesign(
        periods=periods, max_changes=max_changes, epsilon0=1.0, protocol=protocol, domain=domain
    )


def changes_of(design, num_users, seed=4):
    """For each period users and their codes: some do not change, some change too often."""
    generator = Entropy.from_seed(seed).generator()
    for _ in range(design.periods):
        users = generator.permutation(num_users)[: generator.integers(0, num_users)]
        yield users, generator.integers(-1, design.encoding.domain_size, users.size)


class Twins:
    """The clients of a fleet one by one, given the words that the fleet draws."""

    def __init__(self, design, num_users):
        self.design = design
        stream = Entropy.from_key(derived_key(KEY, b"group", 0))
        levels = draw_below(stream, num_users, design.num_levels).tolist()
        keys = design.law.draw_keys(stream, num_users).tolist()
        self.states = [
            Client(level=level + 1, key=key) for level, key in zip(levels, keys, strict=True)
        ]

    def follow(self, users, values):
        for user, value in zip(users.tolist(), values.tolist(), strict=True):
            self.states[user] = self.states[user].after_telling(value, self.design)

    def report(self, level, stream):
        """Return signs and columns of a level, in the fleet's order."""
        here = [user for user, state in enumerate(self.states) if state.level == level]
        coins = stream.words(-(-len(here) // 64)).tolist()
        columns = draw_below(stream, len(here), self.design.encoding.num_columns).tolist()
        signs = []
        for place, (user, column) in enumerate(zip(here, columns, strict=True)):
            state = self.states[user]
            word = 0
            if self.design.law.name == "sampled-change" and state.increment_under(
                column, self.design
            ):
                word = int(stream.words(1)[0])
            coin = coins[place // 64] >> (place % 64) & 1
            sign, self.states[user] = state.after_node(column, coin, word, self.design)
            signs.append(sign)
        return signs, columns


@pytest.mark.parametrize("protocol", list(SIGN_LAWS))
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: str(d and len(d)))
def test_a_fleet_does_bit_by_bit_what_its_clients_do(domain, protocol):
    design = design_of(domain, protocol=protocol)
    num_users, num_told = 150, 0
    fleet, twins = ClientFleet.drawn(design, num_users, KEY), Twins(design, num_users)
    for t, told in enumerate(changes_of(design, num_users), 1):
        fleet.follow(*told)
        twins.follow(*told)
        streams = [Entropy.from_key(derived_key(KEY, b"period", t)) for _ in range(2)]
        for level in design.tree.levels_ending_at(t):
            signs, columns = fleet.draw_level(level, streams[0])
            expected, drawn = twins.report(level, streams[1])
            assert signs.tolist() == expected
            assert ([0] * len(signs) if columns is None else columns.tolist()) == drawn
            num_told += len(expected)
    assert num_told > 0
    assert fleet.num_ignored[fleet.slots].tolist() == [state.num_ignored for state in twins.states]
    assert fleet.num_ignored.sum() > 0
    for name in ("num_changes", "num_increments", "told", "value", "before", "after"):
        found = getattr(fleet, name)[fleet.slots].tolist()
        assert found == [getattr(state, name) for state in twins.states]
    assert fleet.keys[fleet.slots].tolist() == [state.key for state in twins.states]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: str(d and len(d)))
def test_sums_are_those_of_the_reports(domain):
    design = design_of(domain)
    fleets = [ClientFleet.drawn(design, 500, KEY) for _ in range(2)]
    for t, told in enumerate(changes_of(design, 500), 1):
        for fleet in fleets:
            fleet.follow(*told)
        sums = fleets[0].period_sums(t)
        stream = fleets[1].stream(t)
        assert sums.shape == (len(design.tree.levels_ending_at(t)), design.encoding.num_columns)
        for row, level in enumerate(design.tree.levels_ending_at(t)):
            signs, columns = fleets[1].draw_level(level, stream)
            if columns is None:
                columns = np.zeros(signs.size, dtype=np.int64)
            expected = [signs[columns == each].sum() for each in range(sums.shape[1])]
            assert sums[row].tolist() == expected


def test_what_is_drawn_depends_on_the_key_and_the_period_only():
    """Drawn anew at each replay, reports could be averaged until the value shows."""
    design = design_of()
    first, again, other = (ClientFleet.drawn(design, 200, key) for key in (KEY, KEY, bytes(32)))
    nobody = np.empty(0, dtype=np.int64)
    for fleet in (first, again, other):
        fleet.follow(nobody, nobody)
    assert first.period_sums(3).tolist() == again.period_sums(3).tolist()
    signs = [fleet.draw_level(1, fleet.stream(4))[0].tolist() for fleet in (first, again, other)]
    assert signs[0] == signs[1] != signs[2][: len(signs[0])]


def test_estimates_from_a_large_fleet_are_where_they_should_be():
    """Hoeffding's bound on the sum of a level's signs; a scale off by one level is rejected."""
    design = MonitorDesign(periods=2, max_changes=1, epsilon0=4.0)
    num_users = 60_000
    fleet = ClientFleet.drawn(design, num_users, Entropy.from_seed(11).words(4).tobytes())
    fleet.follow(np.arange(num_users), np.zeros(num_users, dtype=np.int64))
    fleet.period_sums(1)
    # Level 2, which ends now: each of its reports has mean gap.
    count, total = fleet.ends[1] - fleet.ends[0], int(fleet.period_sums(2)[1, 0])
    slack = np.sqrt(2 * count * np.log(2 / (FALSE_POSITIVE_RATE / 2)))
    assert abs(total - design.law.gap * count) <= slack
    assert abs(total - design.law.gap * count / 2) > slack
    # Half of the users are there.
    slack = np.sqrt(num_users / 2 * np.log(2 / (FALSE_POSITIVE_RATE / 2)))
    assert abs(count - num_users / 2) <= slack
    assert abs(count - num_users / 3) > slack


def test_one_user_one_period_and_empty_levels():
    fleet = ClientFleet.drawn(design_of(periods=1, max_changes=1), 1, KEY)
    fleet.follow(np.array([0]), np.array([0]))
    assert np.abs(fleet.period_sums(1)).tolist() == [[1]]
    # One user has one level; the others report nothing.
    fleet = ClientFleet.drawn(design_of(["a", "b", "c"], periods=8), 1, KEY)
    reported = [np.abs(fleet.period_sums(t)).sum(axis=1) for t in range(1, 9)]
    level = fleet.ends.index(1) + 1
    for t, each in enumerate(reported, 1):
        assert each.tolist() == [int(row + 1 == level) for row in range(len(each))]
        assert len(each) == len(fleet.design.tree.levels_ending_at(t))
