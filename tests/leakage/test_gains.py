"""What a gain function is made from, what it refuses, and its tables."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.measures import (
    GainFunction,
    identity_gain,
    matrix_gain,
    single_target_gain,
    tries_gain,
)


def test_identity():
    gain = identity_gain(3, labels=["a", "b", "c"])
    assert gain.matrix.tolist() == np.eye(3).tolist()
    assert gain.is_identity
    assert gain.is_exact
    assert gain.num_guesses == 3
    assert gain.guesses == ("a", "b", "c")
    assert not gain.matrix.flags.writeable


def test_tries_are_never_written_out():
    gain = tries_gain(10**6, 5)
    assert gain.num_guesses == math.comb(10**6, 5)
    assert not gain.is_identity
    with pytest.raises(ParameterError, match="tries = 5 has 8333"):
        _ = gain.matrix
    assert tries_gain(3, 9).num_guesses == 1
    assert repr(tries_gain(3, 2)) == "GainFunction(3 x 3, classes, tries=2)"


def test_large_tables_are_refused():
    with pytest.raises(ParameterError, match="20000 x 20000 cells"):
        _ = identity_gain(20_000).matrix


def test_single_target():
    inputs = [(a, b) for a in "xyz" for b in "uv"]
    gain = single_target_gain(inputs, target=1)
    assert gain.guesses == ("u", "v")
    expected = [[float(b == w) for _, b in inputs] for w in "uv"]
    assert gain.matrix.tolist() == expected
    assert not gain.is_identity


@pytest.mark.parametrize(
    ("inputs", "target", "message"),
    [
        (None, 0, "inputs is empty"),
        ([], 0, "inputs is empty"),
        (["ab"], 0, r"inputs\[0\] = 'ab' is no tuple"),
        ([(0, 1), 5], 0, r"inputs\[1\] = 5 is no tuple"),
        ([(0, 1)], 2, r"target = 2 is not among the 2 people"),
        ([(0, 1)], -1, "target = -1 is below 0"),
    ],
)
def test_single_target_refuses(inputs, target, message):
    with pytest.raises(ParameterError, match=message):
        single_target_gain(inputs, target)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a"], "1 labels were given for 2"), (["a", "a"], "are not all different")],
)
def test_labels_fit(labels, message):
    with pytest.raises(ParameterError, match=message):
        identity_gain(2, labels=labels)
    with pytest.raises(ParameterError, match=message):
        matrix_gain([[1, 0], [0, 1]], guesses=labels)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, math.nan]], r"matrix\[0, 1\] = nan is not finite"),
        ([[1.0], [math.inf]], r"matrix\[1, 0\] = inf is not finite"),
        ([1.0, 2.0], "matrix has 1 dimensions"),
        ([], "matrix"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([["a"]], "matrix"),
    ],
)
def test_tables_that_are_none(table, message):
    with pytest.raises(ParameterError, match=message):
        matrix_gain(table)


def test_tables_are_copied_and_closed():
    table = np.array([[1.0, 0.0]])
    gain = matrix_gain(table)
    table[0, 0] = 5.0
    assert gain.matrix.tolist() == [[1.0, 0.0]]
    assert not gain.matrix.flags.writeable
    assert not gain.is_exact
    assert matrix_gain([[1, Fraction(1, 3)]]).is_exact
    assert repr(gain) == "GainFunction(1 x 2, table)"


NEGATIVE = [
    # table, whether every prior leaves some guess worth at least 0
    ([[1, -1], [-1, 1]], True),
    ([[1, -2], [-2, 1]], False),
    ([[1, -2], [-2, 1], [0, 0]], True),
    ([[1.0, -0.5], [-2.0, 1.0]], True),
    ([[1.0, -0.5], [-2.0 - 1e-6, 1.0]], False),
    ([[-1]], False),
    ([[-1, 5], [3, 4]], True),
]


@pytest.mark.parametrize(("table", "allowed"), NEGATIVE)
def test_negative_vulnerability(table, allowed):
    if allowed:
        gain = matrix_gain(table)
        # Exactly the hypothesis: on a fine grid of priors no vulnerability is negative.
        for chance in np.linspace(0.0, 1.0, 101):
            law = [chance, 1.0 - chance][: gain.num_inputs]
            assert max(float(row @ law) for row in gain.matrix.astype(float)) >= -1e-12
    else:
        with pytest.raises(ParameterError, match="add a guess worth 0"):
            matrix_gain(table)


def test_the_message_shows_a_prior():
    table = -np.eye(8) - 0.125
    with pytest.raises(ParameterError, match=r"0\.125, \.\.\.\) the best guess is worth -0\.25;"):
        matrix_gain(table)


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=1, max_size=4),
)
def test_the_program_decides_as_a_grid_does(rows):
    table = np.array(rows, dtype=float)
    # With two secrets the vulnerability is piecewise linear, with kinks at these priors.
    kinks = {0.0, 1.0}
    for first in table:
        for second in table:
            slope = (first[0] - first[1]) - (second[0] - second[1])
            if slope != 0.0 and 0.0 <= (second[1] - first[1]) / slope <= 1.0:
                kinks.add((second[1] - first[1]) / slope)
    least = min(float((table @ [chance, 1.0 - chance]).max()) for chance in kinks)
    try:
        matrix_gain(rows)
    except ParameterError:
        assert least < 0.0
    else:
        assert least >= -1e-12


def test_a_solver_that_fails(monkeypatch):
    failed = SimpleNamespace(success=False, message="out of steps")
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *args, **kwargs: failed)
    with pytest.raises(PrecisionError, match="out of steps"):
        matrix_gain([[1, -1], [-1, 1]])


@pytest.mark.parametrize(("size", "tries"), [(0, 1), (3, 0), (-1, 1)])
def test_sizes_refused(size, tries):
    with pytest.raises(ParameterError, match="below 1"):
        tries_gain(size, tries)


def test_gains_are_compared_by_identity():
    gain = identity_gain(2)
    assert isinstance(gain, GainFunction)
    assert gain != identity_gain(2)
