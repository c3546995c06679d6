import pytest

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.encodings.choose import encoding_for


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
        (["wifi", "nfc"], "attributes", "attributes", 2),
        ("attributes:8", None, "attributes", 8),
        ("attributes:8", "attributes", "attributes", 8),
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


@pytest.mark.parametrize(
    "domain", ["yes", "attributes:", "attributes:x", "attributes:-1", "", "attributes:²"]
)
def test_other_texts_are_refused(domain):
    with pytest.raises(DomainError, match="is a text: give a list of values, or 'attributes:m'"):
        encoding_for(domain)


def test_other_refusals():
    with pytest.raises(ParameterError, match="needs a domain"):
        encoding_for(None, name="hadamard")
    with pytest.raises(ParameterError, match="'unary' is not one of one-hot, hadamard"):
        encoding_for([1, 2], name="unary")
    with pytest.raises(ParameterError, match="leave the encoding out"):
        encoding_for("attributes:3", name="one-hot")
    with pytest.raises(DomainError, match="fewer than 2"):
        encoding_for(["only"])
    with pytest.raises(ParameterError, match="num_attributes = 0"):
        encoding_for("attributes:0")
