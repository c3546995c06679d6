"""Known deployments: complete rows, and the nearest by ratio."""

from shuffledp.report.precedents import PRECEDENTS, nearest


def test_each_has_its_unit_and_its_source():
    for each in PRECEDENTS:
        assert all((each.name, each.unit, each.source))
        assert each.epsilon > 0
        assert 0 <= each.delta < 1
        assert 2014 < each.year < 2027
    assert PRECEDENTS[1].title == "Apple, health data types (2017)"
    assert PRECEDENTS[1].parameters == "local epsilon 2 for each report"
    assert "central epsilon 1, delta 1.5e-7 for each user" in PRECEDENTS[5].parameters


def test_the_nearest_are_of_one_kind_and_nearest_by_ratio():
    assert [each.epsilon for each in nearest(3.0, is_local=True)] == [2.0, 4.0]
    assert [each.epsilon for each in nearest(1e-9, is_local=False, most=1)] == [1.0]
    assert [each.epsilon for each in nearest(500.0, is_local=False)] == [17.14, 34.9]
