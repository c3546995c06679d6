"""Designs: the tree over the periods, encodings, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from oracles.period_trees import cover, index
from oracles.scalar_client import bit
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.design import NOTHING, SIGN_LAWS, Encoding, MonitorDesign, PeriodTree

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
        assert tree.offset(level) == index(tree, level, 1)
    # The flat index counts the levels one after the other, leaves first.
    assert [index(tree, *node) for node in sorted(nodes)] == list(range(len(nodes)))


@given(periods=PERIODS, data=st.data())
def test_what_ends_at_a_period(periods, data):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    t = data.draw(st.integers(1, periods))
    ending = {level for (level, _), span in nodes.items() if span[-1] == t}
    assert sorted(ending) == list(tree.levels_ending_at(t))


@given(height=st.integers(0, 10), data=st.data())
def test_covers_are_those_of_the_published_loop(height, data):
    # Algorithm 2, lines 7 to 10: merge two neighbours as long as there are any.
    t = data.draw(st.integers(0, 2**height))
    merged = {(1, period) for period in range(1, t + 1)}
    while pairs := [
        (h, i) for h, i in merged if i % 2 == 0 and (h, i - 1) in merged and h <= height
    ]:
        h, i = pairs[0]
        merged = merged - {(h, i - 1), (h, i)} | {(h + 1, i // 2)}
    assert merged == set(cover(t))


def test_one_period():
    tree = PeriodTree(periods=1)
    assert (tree.num_levels, tree.num_nodes) == (1, 1)
    assert list(tree.levels_ending_at(1)) == [1]


@pytest.mark.parametrize("periods", [2**20, 2**20 - 1, 2**40])
def test_many_periods_cost_nothing(periods):
    tree = PeriodTree(periods=periods)
    assert tree.num_levels == periods.bit_length()
    assert tree.num_nodes == 2 * periods - periods.bit_count()


@pytest.mark.parametrize("periods", [0, -1, 1.5, math.nan, "8", None, 2**40 + 1])
def test_periods_out_of_range(periods):
    with pytest.raises(ParameterError, match="periods"):
        PeriodTree(periods=periods)


@pytest.mark.parametrize("through", [0, 7, 2.0, None])
def test_there_is_no_such_period(through):
    with pytest.raises(ParameterError, match=r"^through = "):
        PeriodTree(periods=6).require_through(through)


ENCODINGS = [
    Encoding(),
    Encoding.of(["a", "b"]),
    Encoding.of(["a", "b", "c"]),
    Encoding.of(range(4)),
    Encoding.of(range(11)),
]
every = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: f"{e.name}-{e.domain_size}")


def indicators(encoding, code):
    """What a value adds to each count, written out."""
    return [int(code == j) for j in range(encoding.domain_size)]


def bits_of(encoding, code):
    """B of a value for every column."""
    columns = np.arange(encoding.num_columns)
    return encoding.bits(columns, np.full(columns.size, code))


@every
def test_bits_are_those_of_the_definition(encoding):
    for code in range(-1, encoding.domain_size):
        expected = [bit(encoding, column, code) for column in range(encoding.num_columns)]
        assert bits_of(encoding, code).tolist() == expected
        narrow = encoding.bits(np.arange(encoding.num_columns), np.int8([code]))
        assert narrow.dtype == np.int8
        assert narrow.tolist() == expected


@every
def test_decoding_is_exact_for_every_change_of_value(encoding):
    codes = range(-1, encoding.domain_size)
    for old in codes:
        for new in codes:
            changes = (bits_of(encoding, new) - bits_of(encoding, old)).tolist()
            sums = np.array([Fraction(each, encoding.num_columns) for each in changes])
            expected = np.subtract(indicators(encoding, new), indicators(encoding, old))
            assert encoding.decode(sums).tolist() == expected.tolist()


@every
def test_a_change_shows_in_at_most_the_stated_share_of_the_columns(encoding):
    codes = range(-1, encoding.domain_size)
    shares = [
        np.mean(bits_of(encoding, new) != bits_of(encoding, old)) for old in codes for new in codes
    ]
    assert max(shares) <= encoding.changing_share <= max(shares) * (1 + 1e-15)


@every
def test_nothing_has_no_bit(encoding):
    assert not bits_of(encoding, NOTHING).any()
    assert encoding.code(None) == NOTHING


@every
def test_variances_are_those_of_the_decoder(encoding):
    # Of a sum of independent terms, as many of each column, with variance 1 each.
    rows = encoding.decode(np.eye(encoding.num_columns)).T
    equal = (rows**2).sum(axis=1) / encoding.num_columns
    assert equal == pytest.approx(encoding.variance_factor)


@every
def test_leading_axes_pass_through(encoding):
    sums = Entropy.from_seed(2).generator().normal(size=(3, 2, encoding.num_columns))
    found = encoding.decode(sums)
    assert found.shape == (3, 2, encoding.domain_size)
    assert found.dtype == np.float64
    assert np.array_equal(found[1, 1], encoding.decode(sums[1, 1]))


@every
def test_codes_of_labels_count_them(encoding):
    assert [encoding.code(label) for label in encoding.labels] == list(range(encoding.domain_size))


def test_fingerprints_tell_encodings_and_labels_apart():
    encodings = [*ENCODINGS, *(Encoding.of(each) for each in (["b", "a"], (1, 2), (1, "2")))]
    prints = [encoding.fingerprint for encoding in encodings]
    assert len(set(prints)) == len(prints)


def test_unusable_labels_are_refused():
    with pytest.raises(DomainError, match="holds 'a' twice"):
        Encoding.of(["a", "b", "a"])
    for wrong in (None, [1], float("nan")):
        with pytest.raises(DomainError, match="give texts, numbers or other constants"):
            Encoding.of(["a", "b", wrong])
    for few in ([], ["only"]):
        with pytest.raises(DomainError, match="fewer than 2"):
            Encoding.of(few)
    with pytest.raises(DomainError, match="is a text: give a list of values"):
        Encoding.of("yes")


@pytest.mark.parametrize("labels", ["abcdefghij", "ab"])
def test_values_outside_the_domain_are_refused(labels):
    for value in ("z", 0, ["a"], True):
        with pytest.raises(DomainError, match=r"is not among the \d+ values of the domain \('a', "):
            Encoding.of(tuple(labels)).code(value)


@pytest.mark.parametrize("value", ["yes", 2, -1, 0.5, 1.0, float("nan"), [1]])
def test_what_is_no_state_is_refused(value):
    with pytest.raises(DomainError, match="is not a state: give True, False"):
        Encoding().code(value)


@pytest.mark.parametrize("value", [True, 1, np.True_, np.int8(1), np.uint64(1)])
def test_states_come_in_several_types(value):
    assert Encoding().code(value) == 0
    assert Encoding().code(False) == Encoding().code(0) == NOTHING


def test_hadamard_columns_are_those_of_the_matrix():
    encoding = Encoding.of(range(7))
    matrix = hadamard(encoding.num_columns)
    assert encoding.num_columns == 8
    for code in range(7):
        assert bits_of(encoding, code).tolist() == ((matrix[code + 1] + 1) // 2).tolist()


@pytest.mark.parametrize(
    ("domain", "expected", "num_columns"),
    [
        (None, "boolean", 1),
        (["a", "b"], "one-hot", 2),
        (range(3), "one-hot", 3),
        (range(4), "hadamard", 8),
        ((f"v{i}" for i in range(9)), "hadamard", 16),
    ],
)
def test_choice(domain, expected, num_columns):
    encoding = Encoding.of(domain)
    assert (encoding.name, encoding.num_columns) == (expected, num_columns)


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
    assert design().encoding == design(domain=None).encoding == Encoding()
    assert design().encoding.num_columns == 1


def test_only_booleans_are_known_to_alternate():
    assert not design(domain=["a", "b", "c", "d", "e"]).profile.alternating


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
        design(domain=["a", "b", "c"]),
        design(domain=["a", "b", "c", "d", "e"]),
        design(domain=["b", "a", "c", "d", "e"]),
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
