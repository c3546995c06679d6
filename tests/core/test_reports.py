import numpy as np
import pytest

from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.core.reports import Sums
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
    with pytest.raises(FingerprintError, match=r"shape \(2,\), cannot be added .* shape \([23],\)"):
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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [([np.inf, 0.0], "NaN or infinity"), ([np.nan, 0.0], "NaN or infinity"), ([0.0], "shape")],
)
@pytest.mark.parametrize("name", ["total", "total_of_squares"])
def test_impossible_sums_are_refused(name, wrong, message):
    sums = {"total": np.zeros(2), "total_of_squares": np.zeros(2)} | {name: np.array(wrong)}
    with pytest.raises(ParameterError, match=message):
        Sums(num_reports=1, fingerprint="a", **sums)


LAPLACE, POISSON = DummyLaw.from_text("laplace:2.025:27"), DummyLaw.from_text("poisson:0.5")


class TestDummies:
    def test_what_is_left_of_all_reports_is_dummies(self):
        found = counts([35, 40], num_reports=75).less_dummies(LAPLACE, num_users=20)
        assert (found.num_reports, found.num_dummies) == (20, 55)
        assert found.dummies == (LAPLACE,)

    def test_users_laws_add_to_one(self):
        found = counts([35, 40], num_reports=75).less_dummies(POISSON, num_users=60)
        assert found.dummies[0] == DummyLaw.from_text("poisson:30.0")
        assert found.num_dummies == 15

    def test_they_add_up_with_counts(self):
        part = counts([35, 40], num_reports=75).less_dummies(LAPLACE, num_users=20)
        both = part + part
        assert (both.num_reports, both.num_dummies) == (40, 110)
        assert both.dummies == (LAPLACE, LAPLACE)

    def test_supports_may_exceed_reports_by_as_many(self):
        found = counts([60, 50], num_reports=110).less_dummies(LAPLACE, num_users=10)
        assert found.support.max() > found.num_reports
        with pytest.raises(ParameterError, match=r"num_dummies = 110\]"):
            Counts(
                support=np.array([111, 0]),
                num_reports=10,
                fingerprint="",
                num_dummies=100,
                dummies=(LAPLACE,),
            )

    @pytest.mark.parametrize("num_users", [-1, 76])
    def test_users_are_some_of_the_reports(self, num_users):
        with pytest.raises(ParameterError, match="num_users"):
            counts([35, 40], num_reports=75).less_dummies(LAPLACE, num_users=num_users)
        with pytest.raises(ParameterError, match="num_users"):  # who send a report for each law
            counts([35, 40], num_reports=75).less_dummies(LAPLACE, LAPLACE, num_users=38)

    def test_more_than_the_tables_can_give_are_refused(self):
        with pytest.raises(ParameterError, match=r"num_dummies = 109 is not in \[0, 108\]"):
            counts([60, 51], num_reports=111).less_dummies(LAPLACE, num_users=2)
        with pytest.raises(ParameterError, match=r"the laws \(none\)"):
            Counts(support=np.array([1, 2]), num_reports=2, fingerprint="", num_dummies=1)

    def test_two_senders_are_counted_apart(self):
        shufflers = counts([35, 40], num_reports=75).less_dummies(LAPLACE, num_users=20)
        users = counts([35, 40], num_reports=75).less_dummies(POISSON, num_users=20)
        with pytest.raises(ParameterError, match="count each apart"):
            shufflers + users
