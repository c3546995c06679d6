"""Channel matrices in files: every format, labels, and what is refused, each in one line."""

import math
from fractions import Fraction

import pytest

from shuffledp.accounting import channel_files
from shuffledp.accounting.channel_files import open_channel
from shuffledp.amplification.registry import METHODS
from shuffledp.core.errors import DataError, OutOfRegimeError, ParameterError

ROWS = [[0.75, 0.25], [0.25, 0.75]]
EXACT = tuple(tuple(Fraction(entry) for entry in row) for row in ROWS)


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path):
    with pytest.raises(DataError) as error:
        open_channel(path)
    message = str(error.value)
    assert "\n" not in message
    return message


# ------------------------------------------------------------------ what a file may look like


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("0.75,0.25\n0.25,0.75\n", "12", "12"),
        ("yes,no\n0.75,0.25\n0.25,0.75\n", "12", ("yes", "no")),
        ("a,0.75,0.25\nb,0.25,0.75\n", "ab", "12"),
        (",yes,no\na,0.75,0.25\nb,0.25,0.75\n", "ab", ("yes", "no")),
        ("yes,no\na,0.75,0.25\nb,0.25,0.75\n", "ab", ("yes", "no")),
        (",0,1\n0,0.75,0.25\n1,0.25,0.75\n", "01", "01"),
        ("\ufeff3/4 , 1/4\r\n\r\n1/4,3/4\r\n", "12", "12"),
        ("7.5e-1,.25\n25E-2,+0.75\n", "12", "12"),
    ],
)
def test_csv_with_and_without_labels(tmp_path, text, inputs, outputs):
    matrix = open_channel(write(tmp_path, "a.csv", text))
    assert (matrix.inputs, matrix.outputs) == (tuple(inputs), tuple(outputs))
    assert matrix.rows.tolist() == ROWS
    assert matrix.exact == EXACT
    assert matrix.caution is None


def test_tsv(tmp_path):
    assert open_channel(write(tmp_path, "a.tsv", "3/4\t1/4\n1/4\t3/4\n")).exact == EXACT


# ------------------------------------------------------------------ sums


def test_rounded_decimals_are_divided_by_their_sum_and_said_so(tmp_path):
    path = write(tmp_path, "a.csv", "0.3333333333,0.3333333333,0.3333333333\n0.5,0.25,0.25\n")
    matrix = open_channel(path)
    assert matrix.exact is None
    assert matrix.rows[0] == pytest.approx([1 / 3] * 3, rel=1e-15)
    assert matrix.largest_correction == pytest.approx(1e-10)
    assert "off by up to 1.0e-10" in matrix.caution


def test_a_row_that_does_not_sum_to_one_is_named(tmp_path):
    message = refused(write(tmp_path, "a.csv", "a,0.75,0.25\nb,0.3,0.6\n"))
    assert "row 'b' sums to 0.9, off by -0.1" in message
    assert "1 within 1e-9" in message
    refused(write(tmp_path, "b.csv", "0.5,0.5\n0.5,0.500000002\n"))


def test_fractions_must_sum_to_exactly_one(tmp_path):
    message = refused(write(tmp_path, "a.csv", "1/3,1/3,0.3333333333333\n1/3,1/3,1/3\n"))
    assert "exactly 1, since it has fractions" in message


def test_large_text_is_kept_as_doubles(tmp_path, monkeypatch):
    monkeypatch.setattr(channel_files, "_MOST_EXACT_CELLS", 3)
    matrix = open_channel(write(tmp_path, "a.csv", "3/4,1/4\n1/4,3/4\n"))
    assert matrix.exact is None
    assert matrix.caution is None
    assert matrix.rows.tolist() == ROWS


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("yes,no\n", "empty"),
        ("0.5,0.5\n", "one input"),
        ("a,b\nx,y\n", "one input"),
        ("0.5,0.5\n0.5,y\n", "holds 'y'"),
        ("a,b\nx\nz\n", "empty"),
        ("0.5,0.5\n0.5\n", "has 1 cells, the first 2"),
        ("0.5,0.5\n-0.5,1.5\n", "row '2', column '1' holds '-0.5'"),
        ("0.5,0.5\nnan,1\n", "row '2', column '1' holds 'nan'"),
        ("nan,0.5\n0.5,0.5\n", "row '1', column '1' holds 'nan'"),
        ("0.5,nan\n0.5,0.5\n", "row '1', column '2' holds 'nan'"),
        ("0.5,\n0.5,0.5\n", "row '1', column '2' holds ''"),
        ("0.5,0.5\n1/0,1\n", "holds '1/0'"),
        ("0.5,0.5\n1e9999999,1\n", "holds '1e9999999'"),
        ("0.5,0.5\n1e999,1\n", "holds '1e999'"),
        ("0.5,0.5\n0." + "0" * 500 + "1,1\n", "which is no probability"),
        ("a,0.5,0.5\na,0.4,0.6\n", "inputs of a.csv: 'a' stands 2 times"),
        ("y,y\n0.5,0.5\n0.4,0.6\n", "outputs of a.csv: 'y' stands 2 times"),
        (",x,y\n,0.5,0.5\nb,0.4,0.6\n", "label 1 is empty"),
        ("x,y,z\n0.5,0.5\n0.4,0.6\n", "names 3 outputs and has 2"),
        ("x,y\nno,0.5,3/4\n", "one input"),
        ('0.5,"0.5\n0.5,0.5\n', "a.csv: unexpected end of data"),
        (b"\xff\xfe0\x00", "not text in UTF-8"),
        ("0.5,0.5\n" * 300, "too large"),
    ],
)
def test_csv_that_is_no_channel_is_refused_in_one_line(tmp_path, text, said):
    assert said in refused(write(tmp_path, "a.csv", text))


def test_a_row_of_probabilities_is_never_taken_for_a_header(tmp_path):
    # Left out, the row that reveals most would make the channel look more private than it is.
    for text in ("0,1\n0.5,0.5\n", "x,0,1\na,0.5,0.5\n", "1.0,0.0\n0.5,0.5\n"):
        assert len(open_channel(write(tmp_path, "a.csv", text)).inputs) == 2
    assert "sums to 0.95" in refused(write(tmp_path, "b.csv", "x,0.7,0.25\na,0.5,0.5\n"))
    assert "label 1 is empty" in refused(
        write(tmp_path, "c.csv", ",0.7,0.3\na,0.5,0.5\nb,0.4,0.6\n")
    )
    assert "holds 'no'" in refused(write(tmp_path, "d.csv", "x,0.7,no\na,0.5,0.5\nb,0.4,0.6\n"))
    assert "holds '\"1\"'" in refused(write(tmp_path, "e.csv", '0, "1"\n0.5,0.5\n0.4,0.6\n'))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    assert "no such file" in refused(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in refused(tmp_path / "folder.csv")
    assert "ends in none of" in refused(write(tmp_path, "a.txt", "0.5,0.5\n"))


# ------------------------------------------------------------------ profiles and claims


def test_the_profile_is_the_matrix_own(tmp_path):
    matrix = open_channel(write(tmp_path, "a.csv", "a,3/4,1/4\nb,1/4,3/4\n"))
    profile = matrix.profile(claimed_epsilon0=1.2)
    assert profile.epsilon0 == pytest.approx(math.log(3.0), rel=1e-12)
    assert profile.channel() == EXACT
    rounded = open_channel(write(tmp_path, "b.csv", "0.7500000001,0.25\n0.25,0.75\n")).profile()
    bounds = [METHODS["channel-blanket"].epsilon(p, 1000, 1e-6).upper for p in (profile, rounded)]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


def test_a_wrong_claim_names_the_worst_inputs_and_output(tmp_path):
    matrix = open_channel(write(tmp_path, "a.csv", ",x,y\nA,0.8,0.2\nB,0.5,0.5\nC,0.1,0.9\n"))
    with pytest.raises(DataError) as error:
        matrix.profile(claimed_epsilon0=2.0)
    assert str(error.value).startswith(
        "the channel is not 2-LDP as claimed: inputs 'A' and 'C', output 'x': ratio 0.8 / 0.1 = "
        "e^2.07944154"
    )
    matrix.require_claim(math.log(8.0))
    for claim in (math.nan, -1.0):
        with pytest.raises(ParameterError, match="epsilon0"):
            matrix.require_claim(claim)


def test_a_claim_may_be_as_coarse_as_the_decimals(tmp_path):
    p, q = 0.7310585786300049, 0.2689414213699951  # e / (1 + e), to sixteen digits
    open_channel(write(tmp_path, "a.csv", f"{p},{q}\n{q},{p}\n")).require_claim(1.0)
    matrix = open_channel(write(tmp_path, "b.csv", "0.7310586,0.2689414\n0.2689414,0.7310586\n"))
    with pytest.raises(DataError, match="not 1-LDP as claimed"):
        matrix.require_claim(1.0)


def test_no_claim_holds_where_a_ratio_is_infinite(tmp_path):
    matrix = open_channel(write(tmp_path, "a.csv", "x,0.5,0.5\ny,1,0\n"))
    with pytest.raises(DataError, match=r"inputs 'x' and 'y', output '2': ratio 0.5 / 0 is inf"):
        matrix.require_claim(30.0)
    assert matrix.profile().delta0 == pytest.approx(0.5)
    with pytest.raises(OutOfRegimeError, match="no output in common"):
        open_channel(write(tmp_path, "b.csv", "1,0\n0,1\n")).profile()


def test_an_entry_below_the_range_of_doubles_is_refused(tmp_path):
    path = tmp_path / "channel.csv"
    path.write_text("1e-400,0.5,0.5\n0,0.5,0.5\n")
    with pytest.raises(DataError, match=r"'1e-400'.*0 or from 1e-280 to 1"):
        open_channel(path)
