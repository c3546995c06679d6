"""Clients: what they report, remember and refuse."""

import copy
import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.exchangeable_signs import signs_of
from oracles.scalar_client import Client
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.monitoring import client as client_module
from shuffledp.monitoring.client import (
    ClientState,
    MonitorClient,
    MonitorReport,
    require_reports,
)
from shuffledp.monitoring.design import SIGN_LAWS, MonitorDesign

DESIGN = MonitorDesign(periods=6, max_changes=2, epsilon0=1.0)
GOOD = [
    MonitorReport(level=1, period=5, sign=1),
    MonitorReport(level=3, period=4, sign=-1),
    MonitorReport(level=2, period=6, sign=1),
]


def arrays(**changes):
    fields = {
        "level": np.array([1, 2], dtype=np.uint8),
        "period": np.array([1, 2], dtype=np.int64),
        "sign": np.array([1, -1], dtype=np.int8),
        "column": np.zeros(2, dtype=np.int64),
    }
    return MonitorReport(**(fields | changes))


def test_reports_become_arrays_in_their_order():
    fields = require_reports(DESIGN, iter(GOOD))
    back = [MonitorReport(*map(int, row)) for row in zip(*fields, strict=True)]
    assert back == GOOD


def test_there_may_be_no_report():
    assert require_reports(DESIGN, []).sign.size == 0
    assert [each.tolist() for each in require_reports(DESIGN, GOOD[0])] == [[1], [5], [1], [0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"period": np.array([1.0, 2.0])},
        {"sign": np.array([True, True])},
        {"column": np.zeros((2, 1), dtype=np.int64)},
        {"column": None},
        {"period": np.array([1, 2, 3])},
    ],
)
def test_arrays_of_other_types_and_lengths_are_refused(changes):
    with pytest.raises(DataError, match="no MonitorReport"):
        require_reports(DESIGN, arrays(**changes))


@pytest.mark.parametrize(
    "report",
    [
        (1, 1, 1),
        (1, 1, 1, 0, 0),
        (1.5, 1, 1, 0),
        (1, math.nan, 1, 0),
        (1, math.inf, 1, 0),
        ("1", 1, 1, 0),
        (None, 1, 1, 0),
        (1, 2**64, 1, 0),
        "text",
        7,
    ],
)
def test_what_is_no_report_is_refused_not_wrapped_around(report):
    with pytest.raises(DataError, match="no MonitorReport"):
        require_reports(DESIGN, [GOOD[0], report])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (MonitorReport(level=0, period=4, sign=1), "level = 0: this design has levels 1 to 3"),
        (MonitorReport(level=4, period=4, sign=1), "level = 4"),
        (MonitorReport(level=1, period=0, sign=1), "period = 0: this design has periods 1 to 6"),
        (MonitorReport(level=1, period=7, sign=1), "period = 7"),
        (MonitorReport(level=1, period=-(2**63), sign=1), "period = -9223372036854775808"),
        (MonitorReport(level=2, period=5, sign=1), "period = 5: no node of its level ends there"),
        (MonitorReport(level=3, period=6, sign=1), "period = 6: no node"),
        (MonitorReport(level=1, period=1, sign=0), "sign = 0"),
        (MonitorReport(level=1, period=1, sign=255), "sign = 255"),
        (MonitorReport(level=257, period=1, sign=1), "level = 257"),
        (MonitorReport(level=1, period=1, sign=1, column=1), "column = 1"),
        (MonitorReport(level=1, period=1, sign=1, column=-1), "column = -1"),
    ],
)
def test_reports_that_no_client_makes_are_named(wrong, says):
    with pytest.raises(DataError, match=f"^report 3 has {says}"):
        require_reports(DESIGN, [*GOOD, wrong])


def test_the_least_sign_of_its_type_is_refused():
    # Its absolute value overflows to itself.
    reports = arrays(sign=np.array([1, -128], dtype=np.int8))
    with pytest.raises(DataError, match="report 1 has sign = -128"):
        require_reports(DESIGN, reports)


def test_high_levels_do_not_overflow():
    design = MonitorDesign(periods=2**20, max_changes=1, epsilon0=1.0)
    require_reports(design, MonitorReport(level=21, period=2**20, sign=1))
    with pytest.raises(DataError, match="no node"):
        require_reports(design, MonitorReport(21, 2**19, 1))


DESIGN_CLIENT = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0)
VERSIONS = MonitorDesign(
    periods=8, max_changes=3, epsilon0=1.0, domain=["1.0", "1.1", "2.0", "2.1"]
)

SAMPLED = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0, protocol="sampled-change")


def client_at(level, *, design=DESIGN_CLIENT):
    """A client whose draw was that level."""
    for seed in range(1000):
        client = MonitorClient(design, entropy=Entropy.from_seed(seed))
        if client.level == level:
            return client
    raise AssertionError(f"no client at level {level}")


@pytest.mark.parametrize("design", [DESIGN_CLIENT, VERSIONS])
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
    require_reports(design, handed_out)


def test_levels_and_keys_are_drawn_over_their_whole_range():
    design = MonitorDesign(periods=4, max_changes=2, epsilon0=1.0, protocol="sampled-change")
    entropy = Entropy.from_seed(5)
    seen = set()
    for _ in range(200):
        data = MonitorClient(design, entropy=entropy).to_bytes()
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
    with pytest.raises(DomainError, match="the value is not a state"):
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
    state = ClientState.from_bytes(client.to_bytes(), DESIGN_CLIENT)
    assert (state.num_changes, state.num_increments) == (1, 1)  # nothing, then True


@pytest.mark.parametrize("protocol", list(SIGN_LAWS))
@given(data=st.data())
def test_advancing_is_holding_the_last_value(protocol, data):
    design = MonitorDesign(
        periods=20, max_changes=4, epsilon0=1.0, protocol=protocol, domain=VERSIONS.domain
    )
    seed = data.draw(st.integers(0, 50))
    slow, fast = (MonitorClient(design, entropy=Entropy.from_seed(seed)) for _ in range(2))
    told = sorted(data.draw(st.sets(st.integers(1, 20), min_size=1)))
    value = None
    for last, t in zip([told[0] - 1, *told], told, strict=False):
        held = [slow.update(each, value) for each in range(last + 1, t)]
        value = data.draw(st.sampled_from([None, *design.encoding.labels]))
        expected = [report for report in [*held, slow.update(t, value)] if report is not None]
        assert fast.advance(t, value) == tuple(expected)
        assert fast.to_bytes() == slow.to_bytes()


def test_changes_beyond_the_most_are_counted_and_not_followed():
    client = MonitorClient(DESIGN_CLIENT, entropy=Entropy.from_seed(3))
    counts = []
    for t, value in enumerate([1, 0, 1, 1, 0, 1, 1, 0], 1):
        client.update(t, value)
        counts.append(client.ignored_changes)
    assert counts == [0, 0, 1, 1, 1, 2, 2, 2]
    # For every encoding the first value is a change, unless it is nothing.
    client = MonitorClient(VERSIONS, entropy=Entropy.from_seed(3))
    for t, value in enumerate([None, "1.0", "1.1", None, "2.0", "2.1", "2.1", None], 1):
        client.update(t, value)
    assert client.ignored_changes == 2


@pytest.mark.parametrize("design", [DESIGN_CLIENT, VERSIONS])
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


@pytest.mark.parametrize("design", [DESIGN_CLIENT, VERSIONS, SAMPLED])
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
    clients = [
        MonitorClient(DESIGN_CLIENT, entropy=Entropy.from_seed(seed)) for seed in range(100, 160)
    ]
    rows = [[client.update(t, None) for t in range(1, 9)] for client in clients]
    signs = {tuple(report.sign for report in row) for row in rows if all(row)}
    assert len(signs) > 4
    assert all(len(set(row)) == 2 for row in signs)


def test_bytes_of_another_design_or_damaged_are_refused():
    data = MonitorClient(DESIGN_CLIENT).to_bytes()
    assert len(data) == 97
    with pytest.raises(FingerprintError, match="of another collection"):
        MonitorClient.from_bytes(data, VERSIONS)
    with pytest.raises(DataError, match="cut short"):
        MonitorClient.from_bytes(data[:-1], DESIGN_CLIENT)


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
    assert repr(client) == f"MonitorClient({DESIGN_CLIENT!r}, last_period=1)"
    with pytest.raises(ParameterError, match="cannot be pickled or copied"):
        copy.deepcopy(client)


LAST_WORD = 2**64 - 1
COINS = bytes(range(32))
protocols = pytest.mark.parametrize("protocol", list(SIGN_LAWS))


def keys_of(law):
    """Every key with its exact probability."""
    k = law.max_changes
    if law.name == "sampled-change":
        return {kappa: Fraction(1, k) for kappa in range(1, k + 1)}
    weights = signs_of(law).weights
    total = sum(comb(k, i) * weights[i] for i in range(k + 1))
    return {key: Fraction(weights[key.bit_count()], total) for key in range(2**k)}


def nodes(design, level, codes, start=1):
    """For each node: pairs of distributions of states before it ends, told the codes."""
    length = 2 ** (level - 1)
    law = starts(design, level)
    for period, code in enumerate(codes, start):
        told = defaultdict(Fraction)
        for state, chance in law.items():
            told[state.after_telling(code, design)] += chance
        law = told
        if period % length == 0:
            outcomes = list(reports(law, design))
            yield outcomes
            law = defaultdict(Fraction)
            for _, _, state, chance in outcomes:
                law[state] += chance


def reports(law, design):
    """All (column, sign, state after, probability) of a node's end; word and coin enumerated."""
    flip = Fraction(getattr(design.law, "flip_threshold", 0), 2**64)
    num_columns = design.encoding.num_columns
    for state, chance in law.items():
        for column, coin, (word, share) in itertools.product(
            range(num_columns), (0, 1), ((0, flip), (LAST_WORD, 1 - flip))
        ):
            if share:
                sign, after = state.after_node(column, coin, word, design)
                yield column, sign, after, chance * share / (2 * num_columns)


def expected_estimates(design, level, codes, start=1):
    """E[decoded scale * sum of signs] at each node of a level, exactly."""
    for outcomes in nodes(design, level, codes, start):
        sums = np.array([Fraction(0)] * design.encoding.num_columns)
        for column, sign, _, chance in outcomes:
            sums[column] += sign * chance / design.law.correlations[1]
        yield design.encoding.decode(sums).tolist()


def indicators(encoding, code):
    return [int(code == j) for j in range(encoding.domain_size)]


def num_changes(codes):
    return sum(old != new for old, new in itertools.pairwise((-1, *codes)))


def followed(design, codes):
    """What a client follows, written out: it freezes after ``max_changes`` changes."""
    value, changes, out = -1, 0, []
    for code in codes:
        if code != value and changes < design.max_changes:
            value, changes = code, changes + 1
        out.append(value)
    return out


def true_increments(design, level, codes):
    length = 2 ** (level - 1)
    values = [-1, *followed(design, codes)]
    for start in range(0, len(codes) - length + 1, length):
        ends = (indicators(design.encoding, values[p]) for p in (start + length, start))
        yield [new - old for new, old in zip(*ends, strict=True)]


def assert_unbiased(design, sequences):
    for codes in sequences:
        for level in range(1, design.num_levels + 1):
            found = list(expected_estimates(design, level, codes))
            assert found == list(true_increments(design, level, codes))
            assert len(found) == design.tree.nodes_at(level)


@protocols
@pytest.mark.parametrize(
    ("periods", "max_changes"),
    [(d, k) for d in (1, 2, 3, 5, 7, 8) for k in (1, 2, 3) if k <= d],
)
def test_every_sequence_of_states_is_estimated_without_bias(protocol, periods, max_changes):
    design = MonitorDesign(
        periods=periods, max_changes=max_changes, epsilon0=1.0, protocol=protocol
    )
    sequences = list(itertools.product((-1, 0), repeat=periods))
    few = [each for each in sequences if num_changes(each) <= max_changes]
    assert_unbiased(design, few)
    for codes in few:
        assert followed(design, codes) == list(codes)
    # Sequences with more changes are estimated as the one that freezes.
    assert_unbiased(design, sequences[:: max(1, len(sequences) // 16)])


@protocols
@pytest.mark.parametrize(("domain", "periods"), [("ab", 4), ("abc", 4), ("abcd", 2)])
def test_every_sequence_of_values_is_estimated_without_bias(protocol, domain, periods):
    design = MonitorDesign(
        periods=periods, max_changes=2, epsilon0=0.7, protocol=protocol, domain=tuple(domain)
    )
    sequences = list(itertools.product(range(-1, len(domain)), repeat=periods))
    assert_unbiased(design, [s for s in sequences if num_changes(s) <= 2])
    # Sequences with more changes are estimated as the one that freezes.
    assert_unbiased(design, sequences[::16])


@protocols
@pytest.mark.parametrize("first", [2, 3, 4, 6])
def test_late_joiners_are_estimated_without_bias(protocol, first):
    design = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0, protocol=protocol)
    tails = list(itertools.product((-1, 0), repeat=9 - first))
    for tail in tails[:: max(1, len(tails) // 32)]:
        codes = [-1] * (first - 1) + list(tail)
        for level in range(1, design.num_levels + 1):
            truth = list(true_increments(design, level, codes))
            missing = (first - 1) // 2 ** (level - 1)
            assert not any(any(increment) for increment in truth[:missing])
            found = list(expected_estimates(design, level, tail, first))
            assert found == truth[missing:]


def transcripts(design, level, codes):
    """The exact law of everything that a client reports."""
    law = {((), state): p for state, p in starts(design, level).items()}
    length = 2 ** (level - 1)
    for period, code in enumerate(codes, 1):
        told = defaultdict(Fraction)
        for (said, state), chance in law.items():
            told[said, state.after_telling(code, design)] += chance
        law = told
        if period % length == 0:
            law = defaultdict(Fraction)
            for (said, state), chance in told.items():
                for column, sign, after, share in reports({state: chance}, design):
                    law[(*said, (column, sign)), after] += share
    out = defaultdict(Fraction)
    for (said, _), chance in law.items():
        out[said] += chance
    return out


def starts(design, level):
    return {Client(level=level, key=key): chance for key, chance in keys_of(design.law).items()}


def exact_loss(design):
    """e^epsilon0 of the law that is drawn."""
    law = design.law
    if law.name == "sampled-change":
        return Fraction(2**64 - law.flip_threshold, law.flip_threshold)
    return Fraction(max(signs_of(law).weights), min(signs_of(law).weights))


@protocols
@pytest.mark.parametrize(
    ("domain", "periods", "max_changes"),
    [
        (None, 4, 1),
        (None, 4, 2),
        (None, 4, 3),
        (None, 5, 2),
        ("ab", 2, 2),
        ("ab", 3, 1),
        ("abcd", 2, 1),
    ],
)
def test_the_local_loss_is_exactly_epsilon0_however_often_values_change(
    protocol, domain, periods, max_changes
):
    design = MonitorDesign(
        periods=periods,
        max_changes=max_changes,
        epsilon0=1.0,
        protocol=protocol,
        domain=domain and tuple(domain),
    )
    codes = range(-1, design.encoding.domain_size)
    worst = Fraction(0)
    for level in range(1, design.num_levels + 1):
        laws = [
            transcripts(design, level, told) for told in itertools.product(codes, repeat=periods)
        ]
        for said in laws[0]:
            chances = [law[said] for law in laws]
            assert min(chances) > 0
            worst = max(worst, max(chances) / min(chances))
        assert all(sum(law.values()) == 1 for law in laws)
    assert worst <= exact_loss(design)
    if domain is None or max_changes == 1:
        assert worst == exact_loss(design)


def test_a_sampled_change_counts_though_another_one_undoes_it():
    design = MonitorDesign(periods=2, max_changes=2, epsilon0=60.0, protocol="sampled-change")
    for kappa, expected in ((1, 1), (2, -1)):
        state = Client(level=2, key=kappa)
        state = state.after_telling(0, design).after_telling(-1, design)
        assert state.increment_under(0, design) == expected
        sign, after = state.after_node(0, 0, LAST_WORD, design)
        assert sign == expected
        assert after.increment_under(0, design) == 0  # c <- 0
        assert after.num_increments == 1


@pytest.mark.parametrize(("domain", "size"), [(None, 97), ("abcde", 97), (range(200), 125)])
def test_bytes_have_one_size_and_come_back(domain, size):
    design = MonitorDesign(
        periods=2**40, max_changes=9, epsilon0=1.0, domain=domain and list(domain)
    )
    state = ClientState(
        coins=COINS, level=41, key=2**64 - 1, last_period=2**40, num_changes=1, num_increments=2,
        num_ignored=2**31 - 1, told=0, value=0, before=-1, after=design.encoding.domain_size - 1,
    )  # fmt: skip
    data = state.to_bytes(design)
    assert len(data) == size
    assert ClientState.from_bytes(data, design) == state


DESIGN_CLIENT_STATE = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0)
FRESH = ClientState(
    coins=COINS, level=2, key=3, last_period=0, num_changes=0, num_increments=0, num_ignored=0,
    told=-1, value=-1, before=-1, after=-1,
)  # fmt: skip
DATA = FRESH.to_bytes(DESIGN_CLIENT_STATE)


@pytest.mark.parametrize("size", range(len(DATA)))
def test_bytes_cut_short_are_refused(size):
    with pytest.raises(DataError, match=r"cut short|is no state"):
        ClientState.from_bytes(DATA[:size], DESIGN_CLIENT_STATE)


@pytest.mark.parametrize("place", range(len(DATA)))
def test_damaged_bytes_are_refused(place):
    damaged = bytearray(DATA)
    damaged[place] ^= 1
    with pytest.raises(
        (DataError, FingerprintError),
        match="damaged" if place > 3 else "no state|of version 2, and this program reads version 3",
    ):
        ClientState.from_bytes(bytes(damaged), DESIGN_CLIENT_STATE)


def test_other_bytes_are_refused():
    with pytest.raises(DataError, match="padded"):
        ClientState.from_bytes(DATA + b"\0", DESIGN_CLIENT_STATE)
    with pytest.raises(DataError, match=r"\(5 bytes\) is no state"):
        ClientState.from_bytes(b"hello", DESIGN_CLIENT_STATE)


@pytest.mark.parametrize(
    "change",
    [
        {"periods": 9},
        {"max_changes": 3},
        {"epsilon0": 1.1},
        {"protocol": "sampled-change"},
        {"domain": ["a", "b"]},
    ],
)
def test_bytes_of_another_design_are_refused(change):
    with pytest.raises(FingerprintError, match="of another collection"):
        ClientState.from_bytes(DATA, replace(DESIGN_CLIENT_STATE, **change))


def test_values_numbered_otherwise_are_another_design():
    first, second = (
        replace(DESIGN_CLIENT_STATE, domain=labels) for labels in (["a", "b"], ["b", "a"])
    )
    data = FRESH.to_bytes(first)
    with pytest.raises(FingerprintError, match="of another collection"):
        ClientState.from_bytes(data, second)
