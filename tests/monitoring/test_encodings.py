"""What holds for every encoding: bits, exact decoding, variances, codes, refusals."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import hadamard

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.design import (
    BooleanEncoding,
    HadamardEncoding,
    OneHotEncoding,
    encoding_for,
    require_codes,
)

ENCODINGS = [
    BooleanEncoding(),
    OneHotEncoding("ab"),
    OneHotEncoding("abcde"),
    HadamardEncoding("ab"),
    HadamardEncoding("abc"),
    HadamardEncoding(range(4)),
    HadamardEncoding(range(11)),
]
every = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: f"{e.name}-{e.num_values}")


def indicators(encoding, code):
    """What a value adds to each count, written out."""
    if encoding.name == "boolean":
        return [int(code == 1)]
    return [int(code == j) for j in range(encoding.num_values)]


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
        assert found.shape == (3, 2, encoding.num_values)
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
    assert len(encoding.labels) == encoding.num_values
    for place, label in enumerate(encoding.labels):
        code = encoding.code(label)
        assert 0 <= code <= encoding.largest_code
        assert indicators(encoding, code) == [int(j == place) for j in range(encoding.num_values)]


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
