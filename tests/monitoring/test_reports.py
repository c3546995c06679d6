"""Reports of clients: arrays, and what no client of a design can have sent."""

import math

import numpy as np
import pytest

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring.client import MonitorReport, MonitorReports, require_reports
from shuffledp.monitoring.design import MonitorDesign

DESIGN = MonitorDesign(periods=6, max_changes=2, epsilon0=1.0)
GOOD = [
    MonitorReport(level=1, period=5, sign=1),
    MonitorReport(level=3, period=4, sign=-1),
    MonitorReport(level=2, period=6, sign=1),
]


def arrays(**changes):
    fields = {
        "levels": np.array([1, 2], dtype=np.uint8),
        "periods": np.array([1, 2], dtype=np.int64),
        "signs": np.array([1, -1], dtype=np.int8),
        "columns": np.zeros(2, dtype=np.int64),
    }
    return fields | changes


def test_reports_become_arrays_in_their_order():
    reports = MonitorReports.from_reports(iter(GOOD))
    columns = (reports.levels, reports.periods, reports.signs, reports.columns)
    back = [MonitorReport(*map(int, row)) for row in zip(*columns, strict=True)]
    assert back == GOOD
    assert len(reports) == 3


def test_there_may_be_no_report():
    reports = MonitorReports.from_reports([])
    assert len(reports) == 0
    assert require_reports(DESIGN, reports) is reports


def test_arrays_cannot_be_written_through():
    given = arrays()
    reports = MonitorReports(**given)
    with pytest.raises(ValueError, match="read-only"):
        reports.signs[0] = -1
    given["signs"][0] = -1  # the caller's own array stays writable
    assert reports.signs[0] == -1


@pytest.mark.parametrize(
    "changes",
    [
        {"levels": np.array([1, 2])},
        {"periods": np.array([1.0, 2.0])},
        {"signs": [1, -1]},
        {"columns": np.zeros((2, 1), dtype=np.int64)},
        {"columns": None},
    ],
)
def test_arrays_of_other_types_are_refused(changes):
    (name,) = changes
    with pytest.raises(ParameterError, match=f"^{name} is an? .*from_reports$"):
        MonitorReports(**arrays(**changes))


@pytest.mark.parametrize("name", ["periods", "signs", "columns"])
def test_arrays_have_one_length(name):
    with pytest.raises(ParameterError, match=f"{name} has 1 entries but levels has 2"):
        MonitorReports(**arrays(**{name: arrays()[name][:1]}))


@pytest.mark.parametrize(
    "report",
    [
        (1, 1, 1),
        (1, 1, 1, 0, 0),
        (1.5, 1, 1, 0),
        (1, math.nan, 1, 0),
        (1, math.inf, 1, 0),
        ("1", 1, 1, 0),
        (None, 1, 1, 0),
        (1, 2**63, 1, 0),
        (256 + 1, 1, 1, 0),
        (-255, 1, 1, 0),
        (1, 1, 255, 0),
        (1, 1, -2, 0),
        "text",
        7,
    ],
)
def test_what_is_no_report_is_refused_not_wrapped_around(report):
    with pytest.raises(DataError, match="no MonitorReport"):
        MonitorReports.from_reports([GOOD[0], report])


def test_reports_of_the_design_are_let_through():
    reports = MonitorReports.from_reports(GOOD)
    assert require_reports(DESIGN, reports) is reports


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (MonitorReport(level=0, period=4, sign=1), "level = 0: this design has levels 1 to 3"),
        (MonitorReport(level=4, period=4, sign=1), "level = 4"),
        (MonitorReport(level=1, period=0, sign=1), "period = 0: this design has periods 1 to 6"),
        (MonitorReport(level=1, period=7, sign=1), "period = 7"),
        (MonitorReport(level=1, period=-(2**63), sign=1), "period = -9223372036854775808"),
        (MonitorReport(level=2, period=5, sign=1), "period = 5: no node of its level ends there"),
        (MonitorReport(level=3, period=6, sign=1), "period = 6: no node"),
        (MonitorReport(level=1, period=1, sign=0), "sign = 0"),
        (MonitorReport(level=1, period=1, sign=1, column=1), "column = 1"),
        (MonitorReport(level=1, period=1, sign=1, column=-1), "column = -1"),
    ],
)
def test_reports_that_no_client_makes_are_named(wrong, says):
    with pytest.raises(DataError, match=f"^report 3 has {says}"):
        require_reports(DESIGN, MonitorReports.from_reports([*GOOD, wrong]))


def test_the_least_sign_of_its_type_is_refused():
    # Its absolute value overflows to itself.
    reports = MonitorReports(**arrays(signs=np.array([1, -128], dtype=np.int8)))
    with pytest.raises(DataError, match="report 1 has sign = -128"):
        require_reports(DESIGN, reports)


def test_high_levels_do_not_overflow():
    design = MonitorDesign(periods=2**20, max_changes=1, epsilon0=1.0)
    reports = MonitorReports.from_reports([MonitorReport(level=21, period=2**20, sign=1)])
    assert require_reports(design, reports) is reports
    with pytest.raises(DataError, match="no node"):
        require_reports(design, MonitorReports.from_reports([MonitorReport(21, 2**19, 1)]))
