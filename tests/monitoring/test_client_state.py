"""The law of a client by exact enumeration of all its randomness, and its state as bytes."""

import itertools
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from shuffledp.core.errors import DataError, FingerprintError
from shuffledp.monitoring.client import ClientState
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.signs import SIGN_LAWS

LAST_WORD = 2**64 - 1
COINS = bytes(range(32))
protocols = pytest.mark.parametrize("protocol", list(SIGN_LAWS))


def keys_of(law):
    """Every key with its exact probability."""
    k = law.max_changes
    if law.kind == "sampled-change":
        return {kappa: Fraction(1, k) for kappa in range(1, k + 1)}
    weights = law.signs.weights
    total = sum(comb(k, i) * weights[i] for i in range(k + 1))
    return {key: Fraction(weights[key.bit_count()], total) for key in range(2**k)}


def nodes(design, level, codes, start=1):
    """For each node: pairs of distributions of states before it ends, told the codes."""
    length = design.tree.length(level)
    law = {
        ClientState.fresh(
            coins=COINS, level=level, key=key, nothing=design.encoding.nothing
        ): chance
        for key, chance in keys_of(design.law).items()
    }
    for period, code in enumerate(codes, start):
        told = defaultdict(Fraction)
        for state, chance in law.items():
            told[state.after_telling(period, code, design)] += chance
        law = told
        if period % length == 0:
            outcomes = list(reports(law, design))
            yield outcomes
            law = defaultdict(Fraction)
            for _, _, state, chance in outcomes:
                law[state] += chance


def reports(law, design):
    """All (column, sign, state after, probability) of a node's end; word and coin enumerated."""
    flip = Fraction(design.law.flip_threshold, 2**64)
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
            sums[column] += sign * chance / design.law.exact_gap
        yield design.encoding.decode(sums).tolist()


def indicators(encoding, code):
    if encoding.name == "boolean":
        return [int(code == 1)]
    return [int(code == j) for j in range(encoding.num_values)]


def num_changes(nothing, codes):
    return sum(old != new for old, new in itertools.pairwise((nothing, *codes)))


def followed(design, codes):
    """What a client follows, written out: it freezes after ``max_changes`` changes."""
    nothing, changes, out = design.encoding.nothing, 0, []
    value = nothing
    for code in codes:
        if code != value and changes < design.max_changes:
            value, changes = code, changes + 1
        out.append(value)
    return out


def true_increments(design, level, codes):
    length = design.tree.length(level)
    values = [design.encoding.nothing, *followed(design, codes)]
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
    sequences = list(itertools.product((0, 1), repeat=periods))
    few = [each for each in sequences if num_changes(0, each) <= max_changes]
    assert_unbiased(design, few)
    for codes in few:
        assert followed(design, codes) == list(codes)
    # Sequences with more changes are estimated as the one that freezes.
    assert_unbiased(design, sequences[:: max(1, len(sequences) // 16)])


@protocols
@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ("ab", "one-hot"),
        ("abc", "one-hot"),
        ("ab", "hadamard"),
        ("abc", "hadamard"),
    ],
)
def test_every_sequence_of_values_is_estimated_without_bias(protocol, domain, name):
    encoding = encoding_for(tuple(domain), name=name)
    design = MonitorDesign(
        periods=4, max_changes=2, epsilon0=0.7, protocol=protocol, encoding=encoding
    )
    codes = range(encoding.nothing, encoding.largest_code + 1)
    sequences = list(itertools.product(codes, repeat=4))
    assert_unbiased(design, [s for s in sequences if num_changes(codes[0], s) <= 2])
    # Sequences with more changes are estimated as the one that freezes.
    assert_unbiased(design, sequences[::16])


@protocols
@pytest.mark.parametrize("first", [2, 3, 4, 6])
def test_late_joiners_are_estimated_without_bias(protocol, first):
    design = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0, protocol=protocol)
    tails = list(itertools.product((0, 1), repeat=9 - first))
    for tail in tails[:: max(1, len(tails) // 32)]:
        codes = [0] * (first - 1) + list(tail)
        for level in range(1, design.num_levels + 1):
            truth = list(true_increments(design, level, codes))
            missing = (first - 1) // design.tree.length(level)
            assert not any(any(increment) for increment in truth[:missing])
            found = list(expected_estimates(design, level, tail, first))
            assert found == truth[missing:]


def transcripts(design, level, codes):
    """The exact law of everything that a client reports."""
    law = {((), state): p for state, p in starts(design, level).items()}
    length = design.tree.length(level)
    for period, code in enumerate(codes, 1):
        told = defaultdict(Fraction)
        for (said, state), chance in law.items():
            told[said, state.after_telling(period, code, design)] += chance
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
    return {
        ClientState.fresh(
            coins=COINS, level=level, key=key, nothing=design.encoding.nothing
        ): chance
        for key, chance in keys_of(design.law).items()
    }


def exact_loss(design):
    """e^epsilon0 of the law that is drawn."""
    law = design.law
    if law.kind == "sampled-change":
        return Fraction(2**64 - law.flip_threshold, law.flip_threshold)
    return Fraction(max(law.signs.weights), min(law.signs.weights))


@protocols
@pytest.mark.parametrize(
    ("domain", "name", "periods", "max_changes"),
    [
        (None, None, 4, 1),
        (None, None, 4, 2),
        (None, None, 4, 3),
        (None, None, 5, 2),
        ("ab", "one-hot", 2, 2),
        ("ab", "one-hot", 3, 1),
        ("ab", "hadamard", 2, 1),
    ],
)
def test_the_local_loss_is_exactly_epsilon0_however_often_values_change(
    protocol, domain, name, periods, max_changes
):
    encoding = encoding_for(domain and tuple(domain), name=name)
    design = MonitorDesign(
        periods=periods,
        max_changes=max_changes,
        epsilon0=1.0,
        protocol=protocol,
        encoding=encoding,
    )
    codes = range(encoding.nothing, encoding.largest_code + 1)
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
        state = ClientState.fresh(coins=COINS, level=2, key=kappa, nothing=0)
        state = state.after_telling(1, 1, design).after_telling(2, 0, design)
        assert state.increment_under(0, design) == expected
        sign, after = state.after_node(0, 0, LAST_WORD, design)
        assert sign == expected
        assert after.increment_under(0, design) == 0  # c <- 0
        assert after.num_increments == 1


def test_ignored_changes_are_those_told_that_are_not_followed():
    design = MonitorDesign(periods=9, max_changes=1, epsilon0=1.0)
    state = ClientState.fresh(coins=COINS, level=1, key=0, nothing=0)
    ignored = []
    for period, code in enumerate([0, 1, 1, 0, 0, 1, 0, 1, 1], 1):
        state = state.after_telling(period, code, design)
        ignored.append(state.num_ignored)
        assert state.told == code
        assert state.value == int(period >= 2)
    assert ignored == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("domain", "size"), [(None, 97), ("abcde", 97), (range(200), 125)])
def test_bytes_have_one_size_and_come_back(domain, size):
    design = MonitorDesign(
        periods=2**40, max_changes=9, epsilon0=1.0, encoding=encoding_for(domain and list(domain))
    )
    state = ClientState(
        coins=COINS, level=41, key=2**64 - 1, last_period=2**40, num_changes=1, num_increments=2,
        num_ignored=2**40 - 1, told=1, value=0, before=design.encoding.nothing,
        after=design.encoding.largest_code,
    )  # fmt: skip
    data = state.to_bytes(design)
    assert len(data) == size
    assert ClientState.from_bytes(data, design) == state


DESIGN = MonitorDesign(periods=8, max_changes=2, epsilon0=1.0)
DATA = ClientState.fresh(coins=COINS, level=2, key=3, nothing=0).to_bytes(DESIGN)


@pytest.mark.parametrize("size", range(len(DATA)))
def test_bytes_cut_short_are_refused(size):
    with pytest.raises(DataError, match=r"cut short|is no state"):
        ClientState.from_bytes(DATA[:size], DESIGN)


@pytest.mark.parametrize("place", range(len(DATA)))
def test_damaged_bytes_are_refused(place):
    damaged = bytearray(DATA)
    damaged[place] ^= 1
    with pytest.raises(
        (DataError, FingerprintError),
        match="damaged" if place > 3 else "no state|of version 3, and this program reads version 2",
    ):
        ClientState.from_bytes(bytes(damaged), DESIGN)


def test_other_bytes_are_refused():
    with pytest.raises(DataError, match="padded"):
        ClientState.from_bytes(DATA + b"\0", DESIGN)
    with pytest.raises(DataError, match=r"\(5 bytes\) is no state"):
        ClientState.from_bytes(b"hello", DESIGN)


@pytest.mark.parametrize(
    "change",
    [
        {"periods": 9},
        {"max_changes": 3},
        {"epsilon0": 1.1},
        {"protocol": "sampled-change"},
        {"encoding": encoding_for(["a", "b"])},
    ],
)
def test_bytes_of_another_design_are_refused(change):
    with pytest.raises(FingerprintError, match="of another collection"):
        ClientState.from_bytes(DATA, replace(DESIGN, **change))


def test_values_numbered_otherwise_are_another_design():
    first, second = (
        replace(DESIGN, encoding=encoding_for(labels)) for labels in (["a", "b"], ["b", "a"])
    )
    data = ClientState.fresh(coins=COINS, level=1, key=0, nothing=-1).to_bytes(first)
    with pytest.raises(FingerprintError, match="of another collection"):
        ClientState.from_bytes(data, second)
