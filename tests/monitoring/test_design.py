"""Designs: the tree over the periods, encodings, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.design import (
    BooleanEncoding,
    HadamardEncoding,
    MonitorDesign,
    OneHotEncoding,
    PeriodTree,
    encoding_for,
    require_codes,
)
from shuffledp.monitoring.signs import SIGN_LAWS

PERIODS = st.integers(1, 300)


def intervals(periods):
    """Return the periods of each node by level and position: those that end by ``periods``."""
    nodes, level = {}, 1
    while (length := 2 ** (level - 1)) <= periods:
        position = 1
        while position * length <= periods:
            last = position * length
            nodes[level, position] = range(last - length + 1, last + 1)
            position += 1
        level += 1
    return nodes


@given(periods=PERIODS)
def test_nodes_are_the_intervals_that_end_in_time(periods):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    assert tree.num_nodes == len(nodes)
    assert tree.num_levels == max(level for level, _ in nodes) == math.floor(math.log2(periods)) + 1
    for level in range(1, tree.num_levels + 1):
        assert tree.nodes_at(level) == sum(each == level for each, _ in nodes)
        assert tree.length(level) == len(nodes[level, 1])
        assert tree.offset(level) == tree.index(level, 1)
    # The flat index counts the levels one after the other, leaves first.
    assert [tree.index(*node) for node in sorted(nodes)] == list(range(len(nodes)))


@given(periods=PERIODS, data=st.data())
def test_what_ends_at_a_period(periods, data):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    t = data.draw(st.integers(1, periods))
    ending = {level: position for (level, position), span in nodes.items() if span[-1] == t}
    assert sorted(ending) == list(tree.levels_ending_at(t))
    for level in range(1, tree.num_levels + 1):
        if level in ending:
            assert tree.position_ending_at(level, t) == ending[level]
        else:
            with pytest.raises(ParameterError, match="no node"):
                tree.position_ending_at(level, t)


@given(periods=PERIODS, data=st.data())
def test_covers_partition_the_periods_with_a_node_for_each_one_bit(periods, data):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    t = data.draw(st.integers(0, periods))
    cover = tree.cover(t)
    assert [period for node in cover for period in nodes[node]] == list(range(1, t + 1))
    assert len(cover) == t.bit_count() == len({level for level, _ in cover})


@given(height=st.integers(0, 10), data=st.data())
def test_covers_are_those_of_the_published_loop(height, data):
    # Algorithm 2, lines 7 to 10: merge two neighbours as long as there are any.
    t = data.draw(st.integers(0, 2**height))
    cover = {(1, period) for period in range(1, t + 1)}
    while pairs := [(h, i) for h, i in cover if i % 2 == 0 and (h, i - 1) in cover and h <= height]:
        h, i = pairs[0]
        cover = cover - {(h, i - 1), (h, i)} | {(h + 1, i // 2)}
    assert cover == set(PeriodTree(periods=2**height).cover(t))


def test_one_period():
    tree = PeriodTree(periods=1)
    assert (tree.num_levels, tree.num_nodes, tree.cover(1), tree.cover(0)) == (1, 1, ((1, 1),), ())
    assert list(tree.levels_ending_at(1)) == [1]


@pytest.mark.parametrize("periods", [2**20, 2**20 - 1, 2**40])
def test_many_periods_cost_nothing(periods):
    tree = PeriodTree(periods=periods)
    assert tree.num_levels == periods.bit_length()
    assert (
        tree.index(tree.num_levels, 1)
        == tree.num_nodes - 1
        == 2 * periods - periods.bit_count() - 1
    )
    assert len(tree.cover(periods)) == periods.bit_count()


@pytest.mark.parametrize("periods", [0, -1, 1.5, math.nan, "8", None, 2**40 + 1])
def test_periods_out_of_range(periods):
    with pytest.raises(ParameterError, match="periods"):
        PeriodTree(periods=periods)


TREE = PeriodTree(periods=6)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: TREE.nodes_at(0), "level"),
        (lambda: TREE.length(4), "level"),
        (lambda: TREE.offset(4), "level"),
        (lambda: TREE.index(4, 1), "level"),
        (lambda: TREE.index(2, 4), "position"),
        (lambda: TREE.index(2, 0), "position"),
        (lambda: TREE.levels_ending_at(0), "t"),
        (lambda: TREE.levels_ending_at(7), "t"),
        (lambda: TREE.position_ending_at(1, 7), "t"),
        (lambda: TREE.position_ending_at(4, 6), "level"),
        (lambda: TREE.cover(7), "t"),
        (lambda: TREE.cover(-1), "t"),
        (lambda: TREE.cover(2.0), "t"),
    ],
)
def test_there_is_no_such_node_or_period(call, name):
    with pytest.raises(ParameterError, match=f"^{name} = "):
        call()


ENCODINGS = [
    BooleanEncoding(),
    OneHotEncoding("ab"),
    OneHotEncoding("abcde"),
    HadamardEncoding("ab"),
    HadamardEncoding("abc"),
    HadamardEncoding(range(4)),
    HadamardEncoding(range(11)),
]
every = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: f"{e.name}-{e.domain_size}")


def indicators(encoding, code):
    """What a value adds to each count, written out."""
    if encoding.name == "boolean":
        return [int(code == 1)]
    return [int(code == j) for j in range(encoding.domain_size)]


@every
def test_decoding_is_exact_for_every_change_of_value(encoding):
    num_columns = encoding.num_columns
    codes = range(-1, encoding.largest_code + 1)
    for old in codes:
        for new in codes:
            sums = np.array(
                [
                    Fraction(encoding.bit(c, new) - encoding.bit(c, old), num_columns)
                    for c in range(num_columns)
                ]
            )
            found = encoding.decode(sums)
            expected = np.subtract(indicators(encoding, new), indicators(encoding, old))
            assert found.tolist() == expected.tolist()


@every
def test_a_change_shows_in_at_most_the_stated_share_of_the_columns(encoding):
    codes = range(-1, encoding.largest_code + 1)
    shares = [
        np.mean([encoding.bit(c, new) != encoding.bit(c, old) for c in range(encoding.num_columns)])
        for old in codes
        for new in codes
    ]
    assert max(shares) <= encoding.changing_share <= max(shares) * (1 + 1e-15)


@every
def test_bits_of_arrays_are_those_of_single_values(encoding):
    codes, columns = np.meshgrid(
        np.arange(-1, encoding.largest_code + 1), np.arange(encoding.num_columns)
    )
    expected = [
        [encoding.bit(int(c), int(v)) for c, v in zip(*rows, strict=True)]
        for rows in zip(columns, codes, strict=True)
    ]
    found = encoding.bits(columns, codes)
    assert found.dtype == np.int8
    assert found.tolist() == expected
    narrow = encoding.bits(columns.astype(np.uint64), codes.astype(np.int8))
    assert narrow.tolist() == expected


@every
def test_nothing_has_no_bit(encoding):
    for column in range(encoding.num_columns):
        assert encoding.bit(column, None) == 0
        assert encoding.bit(column, -1) == 0
        assert encoding.bit(column, encoding.nothing) == 0
    assert encoding.code(None) == encoding.nothing


@every
def test_variances_are_those_of_the_decoder(encoding):
    # Of a sum of independent terms, N_c of column c with variance 1 each.
    counts = Entropy.from_seed(1).generator().integers(0, 50, encoding.num_columns)
    rows = encoding.decode(np.eye(encoding.num_columns)).T
    expected = rows**2 @ counts
    assert encoding.decode_counts(counts) == pytest.approx(expected)
    equal = encoding.decode_counts(np.full(encoding.num_columns, 3)) / (3 * encoding.num_columns)
    assert equal == pytest.approx(encoding.variance_factor)


@every
def test_leading_axes_pass_through(encoding):
    sums = Entropy.from_seed(2).generator().normal(size=(3, 2, encoding.num_columns))
    for method in (encoding.decode, encoding.decode_counts):
        found = method(sums)
        assert found.shape == (3, 2, encoding.domain_size)
        assert found.dtype == np.float64
        assert np.array_equal(found[1, 1], method(sums[1, 1]))


@every
def test_sums_of_another_number_of_columns_are_refused(encoding):
    for wrong in (np.zeros(encoding.num_columns + 1), 1.0):
        with pytest.raises(ParameterError, match=r"sums has shape .*columns"):
            encoding.decode(wrong)
        with pytest.raises(ParameterError, match=r"counts has shape .*columns"):
            encoding.decode_counts(wrong)


@every
@pytest.mark.parametrize("column", [-1, 10**6])
def test_columns_that_there_are_not_are_refused(encoding, column):
    with pytest.raises(ParameterError, match=rf"column = {column} is not in \[0, "):
        encoding.bit(column, 0)


@every
def test_codes_of_labels_count_them(encoding):
    assert len(encoding.labels) == encoding.domain_size
    for place, label in enumerate(encoding.labels):
        code = encoding.code(label)
        assert 0 <= code <= encoding.largest_code
        assert indicators(encoding, code) == [int(j == place) for j in range(encoding.domain_size)]


@every
def test_codes_of_users_are_checked(encoding):
    given = np.array([-1, 0, encoding.largest_code])
    found = require_codes(given, encoding)
    assert found.tolist() == [encoding.nothing, 0, encoding.largest_code]
    assert found.dtype == np.int64
    found[:] = 0
    assert given[0] == -1
    assert require_codes([], encoding).size == 0
    with pytest.raises(DomainError, match=r"values\[1\] = .* is not in \[-1, "):
        require_codes([0, encoding.largest_code + 1], encoding)
    with pytest.raises(DomainError, match=r"values\[0\] = -2 "):
        require_codes([-2], encoding)
    for wrong in ([0.5], [[0]], ["a"]):
        with pytest.raises(ParameterError, match=r"values has shape .* give one integer code"):
            require_codes(wrong, encoding)


def test_only_booleans_alternate():
    assert [e.alternating for e in ENCODINGS] == [e.name == "boolean" for e in ENCODINGS]


def test_fingerprints_tell_encodings_and_labels_apart():
    encodings = [
        *ENCODINGS,
        OneHotEncoding("ba"),
        OneHotEncoding((1, 2)),
        OneHotEncoding((1, "2")),
    ]
    prints = [encoding.fingerprint for encoding in encodings]
    assert len(set(prints)) == len(prints)
    assert OneHotEncoding("ab").fingerprint == OneHotEncoding(("a", "b")).fingerprint


@pytest.mark.parametrize("encoding", [OneHotEncoding, HadamardEncoding])
def test_unusable_labels_are_refused(encoding):
    with pytest.raises(DomainError, match="holds 'a' twice"):
        encoding(["a", "b", "a"])
    for wrong in (None, [1], float("nan")):
        with pytest.raises(DomainError, match="give texts, numbers or other constants"):
            encoding(["a", "b", wrong])
    with pytest.raises(DomainError, match=r"holds 0 values, fewer than"):
        encoding([])


@pytest.mark.parametrize("encoding", [OneHotEncoding("abcdefghij"), HadamardEncoding("ab")])
def test_values_outside_the_domain_are_refused(encoding):
    for value in ("z", 0, ["a"], True):
        with pytest.raises(DomainError, match=r"is not among the \d+ values of the domain \('a', "):
            encoding.code(value)


@pytest.mark.parametrize("value", ["yes", 2, -1, 0.5, 1.0, float("nan"), [1]])
def test_what_is_no_state_is_refused(value):
    with pytest.raises(DomainError, match="is not a state: give True, False"):
        BooleanEncoding().code(value)


@pytest.mark.parametrize("value", [True, 1, np.True_, np.int8(1), np.uint64(1)])
def test_states_come_in_several_types(value):
    assert BooleanEncoding().code(value) == 1


def test_hadamard_columns_are_those_of_the_matrix():
    encoding = HadamardEncoding(range(7))
    matrix = hadamard(encoding.num_columns)
    assert encoding.num_columns == 8
    for code in range(7):
        for column in range(8):
            assert encoding.bit(column, code) == (matrix[code + 1, column] + 1) // 2
    assert [HadamardEncoding(range(k)).num_columns for k in (2, 3, 4, 8)] == [4, 4, 8, 16]


@pytest.mark.parametrize(
    ("domain", "name", "expected", "num_columns"),
    [
        (None, None, "boolean", 1),
        (None, "boolean", "boolean", 1),
        (["a", "b"], None, "one-hot", 2),
        (range(3), None, "one-hot", 3),
        (range(4), None, "hadamard", 8),
        ((f"v{i}" for i in range(9)), None, "hadamard", 16),
        (range(9), "one-hot", "one-hot", 9),
        (range(2), "hadamard", "hadamard", 4),
    ],
)
def test_choice(domain, name, expected, num_columns):
    encoding = encoding_for(domain, name=name)
    assert (encoding.name, encoding.num_columns) == (expected, num_columns)


def test_the_choice_has_the_smaller_error():
    for size in range(2, 12):
        chosen = encoding_for(range(size)).variance_factor
        both = [encoding_for(range(size), name=each) for each in ("one-hot", "hadamard")]
        assert chosen == min(each.variance_factor for each in both)


def test_other_refusals():
    with pytest.raises(ParameterError, match="needs a domain"):
        encoding_for(None, name="hadamard")
    with pytest.raises(ParameterError, match="'unary' is not one of one-hot, hadamard"):
        encoding_for([1, 2], name="unary")
    with pytest.raises(DomainError, match="is a text: give a list of values"):
        encoding_for("yes")
    with pytest.raises(DomainError, match="fewer than 2"):
        encoding_for(["only"])


def design(**changes):
    return MonitorDesign(**({"periods": 8, "max_changes": 3, "epsilon0": 1.0} | changes))


@pytest.mark.parametrize("protocol", SIGN_LAWS)
def test_the_parts_fit_together(protocol):
    made = design(protocol=protocol)
    assert made.num_levels == made.tree.num_levels == 4
    assert made.scale == 4 / made.law.gap
    assert made.epsilon0 == made.law.epsilon0 <= 1.0
    profile = made.profile
    assert (profile.protocol, profile.epsilon0, profile.max_changes) == (protocol, made.epsilon0, 3)
    assert (profile.num_levels, profile.gap, profile.alternating) == (4, made.law.gap, True)


def test_booleans_are_the_default():
    assert design().encoding == design(encoding=None).encoding == encoding_for(None)
    assert design().encoding.num_columns == 1


def test_only_booleans_are_known_to_alternate():
    assert not design(encoding=encoding_for(["a", "b", "c", "d", "e"])).profile.alternating


@pytest.mark.parametrize("protocol", SIGN_LAWS)
@pytest.mark.parametrize("epsilon0", [1e-9, 0.1, 1.0, 3.7, 60.0, 1e308])
def test_a_design_rebuilt_from_what_it_printed_is_the_same(protocol, epsilon0):
    made = design(protocol=protocol, epsilon0=epsilon0)
    again = design(protocol=protocol, epsilon0=made.epsilon0)
    assert again == made
    assert again.fingerprint() == made.fingerprint()


def test_whatever_differs_shows_in_the_fingerprint():
    designs = [
        design(),
        design(periods=9),
        design(max_changes=2),
        design(epsilon0=1.5),
        design(protocol="sampled-change"),
        design(encoding=encoding_for(["a", "b", "c"])),
        design(encoding=encoding_for(["a", "b", "c", "d", "e"])),
        design(encoding=encoding_for(["b", "a", "c", "d", "e"])),
    ]
    fingerprints = {each.fingerprint() for each in designs}
    assert len(fingerprints) == len(designs)
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in fingerprints)


def test_fingerprints_stay_the_same_from_version_to_version():
    # A client that is not updated must be understood by a server that is.
    assert design().fingerprint() == "ceeabaeb07c87271"


def test_one_period_and_many():
    assert design(periods=1, max_changes=1).num_levels == 1
    assert design(periods=2**20, max_changes=62).num_levels == 21


@pytest.mark.parametrize("max_changes", [9, 2**20])
def test_no_more_changes_than_periods(max_changes):
    with pytest.raises(ParameterError, match="give max_changes = 8 or less"):
        design(max_changes=max_changes, protocol="sampled-change")


def test_more_changes_than_periods_and_than_signs():
    with pytest.raises(ParameterError, match="sampled-change"):
        design(periods=100, max_changes=63)
    assert design(periods=100, max_changes=63, protocol="sampled-change").law.gap > 0


@pytest.mark.parametrize("epsilon0", [0.0, 1e-30])
@pytest.mark.parametrize("protocol", SIGN_LAWS)
def test_reports_must_say_something(epsilon0, protocol):
    with pytest.raises(ParameterError, match=r"^epsilon0 = .* say nothing"):
        design(epsilon0=epsilon0, protocol=protocol)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"periods": 0}, "periods"),
        ({"periods": 1.5}, "periods"),
        ({"max_changes": 0}, "max_changes"),
        ({"max_changes": -1}, "max_changes"),
        ({"max_changes": 2.0}, "max_changes"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon0": math.inf}, "epsilon0"),
        ({"epsilon0": -1.0}, "epsilon0"),
        ({"epsilon0": "1"}, "epsilon0"),
        ({"protocol": "randomised response"}, "protocol"),
        ({"protocol": None}, "protocol"),
    ],
)
def test_arguments_out_of_range(changes, name):
    with pytest.raises(ParameterError, match=f"^{name} = "):
        design(**changes)
