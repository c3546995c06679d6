"""Permutations checked and inverted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations import inverse, require_permutation


@given(st.permutations(range(7)))
def test_inverse(values):
    permutation = require_permutation("order", np.array(values))
    assert (permutation[inverse(permutation)] == np.arange(7)).all()
    assert not permutation.flags.writeable
    assert not inverse(permutation).flags.writeable


def test_any_type_of_integers_in_any_layout():
    strided = np.array([[2, 9], [0, 9], [1, 9]], dtype=np.uint8)[:, 0]
    found = require_permutation("order", strided, 3)
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    assert found.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 2], "order has the entry 2, which is not in [0, 2)"),
        ([0, 0], "order misses 1"),
        ([True, False], "dtype bool"),
        ([0.0, 1.0], "dtype float64"),
        ([], "non-empty"),
        ([[0, 1]], "shape (1, 2)"),
        ([0, 1, 2], "3 entries for 2 people"),
    ],
)
def test_what_is_no_permutation_is_refused(values, message):
    with pytest.raises(ParameterError) as caught:
        require_permutation("order", np.array(values), 2)
    assert message in str(caught.value)
