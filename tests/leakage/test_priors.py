"""Priors in files and in memory, and what is wrong with them in one line."""

import pytest

from shuffledp.core.errors import DataError
from shuffledp.leakage.priors import PriorKnowledge, read_prior


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="prior.json"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def test_a_list(write):
    found = read_prior(write("[0.25, 0.75]"))
    assert found == PriorKnowledge(prior=(0.25, 0.75))


def test_values_by_name_in_any_order(write):
    found = read_prior(write('{"no": 0.75, "yes": 0.25}'))
    assert (found.values, found.prior) == (("no", "yes"), (0.75, 0.25))


def test_fractions_are_exact(write):
    assert read_prior(write('["1/3", "1/3", "1/3"]')).prior == (1 / 3, 1 / 3, 1 / 3)


def test_decimals_are_divided_by_their_sum(write):
    prior = read_prior(write("[0.3333333333, 0.3333333333, 0.3333333333]")).prior
    assert prior == (1 / 3, 1 / 3, 1 / 3)


def test_known_counts(write):
    found = read_prior(write('{"prior": [0.5, 0.5], "known": [3, 4]}'))
    assert found.known == (3, 4)
    by_name = read_prior(write('{"prior": {"a": 0.5, "b": 0.5}, "known": {"b": 4}}'))
    assert by_name.known == (0, 4)
    assert read_prior(write('{"prior": [0.5, 0.5], "known": null}')).known is None


def test_a_value_may_be_called_prior(write):
    assert read_prior(write('{"prior": 0.5, "later": 0.5}')).values == ("prior", "later")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read prior.json: it is no JSON"),
        ("[0.5, 0.5", "cannot read prior.json: it is no JSON"),
        ("3", "holds no prior: give a list"),
        ("[1]", "has 1 values"),
        ("[]", "has 0 values"),
        ("[0.5, 0.4]", "sums to 0.9, off by -0.1"),
        ("[0.5, 0.500001]", r"off by \+1e-06"),
        ("[1.5, -0.5]", "value 0 is no probability"),
        ("[NaN, 1]", "value 0 is no probability"),
        ('["1e999", 1]', "value 0 is no probability"),
        ('["half", 0.5]', "value 0 is no probability"),
        ("[true, 0]", "value 0 is no probability"),
        ("[[1], [0]]", "value 0 is no probability"),
        ('{"a": 0.5, "a": 0.5}', "names a value twice"),
        ('{"prior": [0.5, 0.5], "more": 1}', "has 'more' beside the prior"),
        ('{"prior": [0.5, 0.5], "known": 3}', "is no list of 2 counts"),
        ('{"prior": [0.5, 0.5], "known": [3]}', "is no list of 2 counts"),
        ('{"prior": [0.5, 0.5], "known": [3, 0.5]}', "what is no count"),
        ('{"prior": [0.5, 0.5], "known": [3, -1]}', "what is no count"),
        ('{"prior": [0.5, 0.5], "known": [3, "4"]}', "what is no count"),
        (
            '{"prior": {"a": 0.5, "b": 0.5}, "known": {"c": 4}}',
            "nor an object that names",
        ),
        (
            '{"prior": [0.5, 0.5], "known": {"c": 4}}',
            "nor an object that names",
        ),
    ],
)
def test_what_is_no_prior_gets_one_clear_line(write, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_prior(write(text))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(write, tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*nowhere\.json: No such file"):
        read_prior(tmp_path / "nowhere.json")
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        read_prior(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"cannot read .*binary\.json: it is not text in UTF-8"):
        read_prior(binary)
