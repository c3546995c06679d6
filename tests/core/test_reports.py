import numpy as np
import pytest

from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.randomizers import Counts, Reports


def counts(support, num_reports=10, fingerprint="a"):
    return Counts(support=np.array(support), num_reports=num_reports, fingerprint=fingerprint)


def test_arrays_are_read_only_and_the_givers_array_is_not_touched():
    data = np.zeros(3, dtype=np.uint8)
    reports = Reports(data=data, fingerprint="a")
    with pytest.raises(ValueError, match="read-only"):
        reports.data[0] = 1
    data[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        counts([1, 2]).support[0] = 5


def test_counts_add():
    total = counts([1, 2]) + counts([3, 4], num_reports=5)
    assert total.support.tolist() == [4, 6]
    assert total.num_reports == 15


@pytest.mark.parametrize("other", [counts([1, 2], fingerprint="b"), counts([1, 2, 3])])
def test_counts_of_different_laws_do_not_add(other):
    with pytest.raises(FingerprintError, match="cannot be added"):
        counts([1, 2]) + other


def test_counts_add_to_nothing_else():
    with pytest.raises(TypeError):
        counts([1, 2]) + 1


@pytest.mark.parametrize("support", [[-1, 2], [1, 11], [1.0, 2.0], [[1, 2]], 3])
def test_impossible_counts_are_refused(support):
    with pytest.raises(ParameterError, match="support"):
        counts(support)


def test_a_negative_number_of_reports_is_refused():
    with pytest.raises(ParameterError, match="num_reports"):
        counts([0, 0], num_reports=-1)


def test_reports_need_an_axis_of_users():
    with pytest.raises(ParameterError, match="one user a row"):
        Reports(data=np.array(3), fingerprint="a")
