import math

import numpy as np
import pytest

from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.core.reports import Counts, Sums


def sums(total=(3.0,), squares=(5.0,), *, num_reports=2, fingerprint="a"):
    return Sums(
        total=np.array(total),
        total_of_squares=np.array(squares),
        num_reports=num_reports,
        fingerprint=fingerprint,
    )


def test_sums_add_and_are_read_only():
    whole = sums() + sums(total=(1.0,), squares=(1.0,), num_reports=1)
    assert (whole.total[0], whole.total_of_squares[0], whole.num_reports) == (4.0, 6.0, 3)
    with pytest.raises(ValueError, match="read-only"):
        whole.total[0] = 0.0


@pytest.mark.parametrize(
    "other", [sums(fingerprint="b"), sums(total=(1.0, 2.0), squares=(1.0, 4.0))]
)
def test_sums_of_different_laws_do_not_add(other):
    with pytest.raises(FingerprintError, match="cannot be added"):
        sums() + other


def test_sums_and_counts_do_not_add():
    counts = Counts(support=np.array([1]), num_reports=2, fingerprint="a")
    with pytest.raises(TypeError):
        sums() + counts
    with pytest.raises(TypeError):
        counts + sums()


@pytest.mark.parametrize(
    ("total", "squares"), [((1.0, 2.0), (1.0,)), (3.0, (5.0,)), ((1.0,), ((1.0,),))]
)
def test_shapes_must_agree(total, squares):
    with pytest.raises(ParameterError, match="one sum for each coordinate"):
        sums(total=total, squares=squares)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_sums_are_finite(bad):
    with pytest.raises(ParameterError, match="NaN or infinity"):
        sums(total=(bad,))


def test_the_number_of_reports_is_checked():
    with pytest.raises(ParameterError, match="num_reports"):
        sums(num_reports=-1)
