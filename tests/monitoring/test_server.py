"""The server: reports in any order and batch, estimates against matrices, refusals, state."""

import itertools

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring import server as server_module
from shuffledp.monitoring.client import MonitorReport, MonitorReports
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    online_running_counts,
    running_sums,
    smoothed_running_counts,
)
from shuffledp.monitoring.running_errors import (
    band_quantile,
    expected_standard_errors,
    proven_errors,
)
from shuffledp.monitoring.server import MonitorServer

WAYS = [{"method": "cover"}, {}, {"smoothed": True}]
ENCODINGS = {
    "boolean": None,
    "one-hot": encoding_for(("bus", "car", "none")),
    "hadamard": encoding_for(tuple("abcdef")),
}


def design_of(encoding="boolean", periods=11, **other):
    arguments = {"max_changes": 2, "epsilon0": 1.5} | other
    return MonitorDesign(periods=periods, encoding=ENCODINGS[encoding], **arguments)


def reports_of(design, size, seed=1):
    """Return reports of random nodes, signs and columns, but at least one for each node."""
    generator = Entropy.from_seed(seed).generator()
    tree = design.tree
    levels = generator.integers(1, tree.num_levels + 1, size)
    positions = np.array([generator.integers(1, tree.nodes_at(level) + 1) for level in levels])
    every = [
        (level, position)
        for level in range(1, tree.num_levels + 1)
        for position in range(1, tree.nodes_at(level) + 1)
    ]
    levels = np.concatenate([levels, [level for level, _ in every]])
    positions = np.concatenate([positions, [position for _, position in every]])
    return MonitorReports(
        levels=levels.astype(np.uint8),
        periods=positions << (levels - 1),
        signs=(2 * generator.integers(0, 2, levels.size) - 1).astype(np.int8),
        columns=generator.integers(0, design.encoding.num_columns, levels.size),
    )


def rows_of(reports):
    arrays = (reports.levels, reports.periods, reports.signs, reports.columns)
    return [MonitorReport(*row) for row in zip(*(a.tolist() for a in arrays), strict=True)]


def node_sums(design, reports):
    """Return sums of signs by node and column, and numbers by node, one report at a time."""
    sums = np.zeros((design.tree.num_nodes, design.encoding.num_columns))
    numbers = np.zeros(design.tree.num_nodes)
    for level, period, sign, column in rows_of(reports):
        node = design.tree.index(level, period >> (level - 1))
        sums[node, column] += sign
        numbers[node] += 1
    return sums, numbers


def server_with(design, reports):
    server = MonitorServer(design)
    server.ingest(reports)
    return server


def same_results(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("counts", "standard_errors", "lower", "upper")
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("periods", [1, 2, 7, 16])
def test_counts_and_errors_are_those_of_the_estimators(periods, encoding):
    design = design_of(encoding, periods=periods, max_changes=min(2, periods))
    reports = reports_of(design, 300)
    server = server_with(design, reports)
    sums, numbers = node_sums(design, reports)
    tree = design.tree
    unit = np.eye(tree.num_nodes)
    weighted = level_weighted_sums(tree, unit)
    weights_by_way = [
        running_sums(tree, unit, periods),
        online_running_counts(tree, weighted, periods),
        smoothed_running_counts(tree, weighted, periods),
    ]
    for way, weights in zip(WAYS, weights_by_way, strict=True):
        result = server.running_counts(**way)
        counts = design.encoding.decode(design.scale * (weights @ sums))
        squares = design.encoding.variance_factor * (weights**2 @ numbers)
        deviations = design.scale * np.sqrt(squares)
        if encoding == "boolean":
            counts = counts[:, 0]
        else:
            deviations = np.broadcast_to(deviations[:, None], counts.shape)
        np.testing.assert_allclose(result.counts, counts, rtol=1e-9, atol=1e-9)
        if way.get("smoothed"):
            assert (result.standard_errors >= deviations * (1 - 1e-12)).all()
            np.testing.assert_allclose(result.standard_errors[-1], deviations[-1])
        else:
            np.testing.assert_allclose(result.standard_errors, deviations, rtol=1e-12)
        assert result.labels == design.encoding.labels
        assert result.periods.tolist() == list(range(1, periods + 1))


@pytest.mark.parametrize("encoding", ["boolean", "hadamard"])
@pytest.mark.parametrize("num_users", [None, 5_000])
@pytest.mark.parametrize("method", ["cover", "least-squares"])
def test_one_estimate_is_a_row_of_all(method, num_users, encoding):
    design = design_of(encoding)
    server = server_with(design, reports_of(design, 200))
    for simultaneous in (True, False):
        asked = {
            "method": method,
            "num_users": num_users,
            "simultaneous": simultaneous,
            "confidence": 0.8,
        }
        rows = server.running_counts(**asked)
        assert rows.is_simultaneous == simultaneous
        for t in range(1, 12):
            one, row = server.estimate(t, **asked), rows.at(t)
            assert np.shape(one.counts) == (() if encoding == "boolean" else (6,))
            assert one.is_simultaneous == simultaneous
            for name in ("counts", "standard_errors", "lower", "upper"):
                assert getattr(one, name) == pytest.approx(getattr(row, name), rel=1e-12)


def test_bands_reach_as_far_as_the_quantile_says():
    design = design_of("one-hot")
    server = server_with(design, reports_of(design, 200))
    for way in WAYS:
        through = 6
        counts = server.running_counts(through, confidence=0.9, **way)
        reach = band_quantile(
            design.tree, 6 if way.get("smoothed") else 11, 0.9, domain_size=3, **way
        )
        np.testing.assert_allclose(counts.upper - counts.counts, reach * counts.standard_errors)
        np.testing.assert_allclose(counts.counts - counts.lower, reach * counts.standard_errors)


def test_with_a_number_of_users_errors_are_those_of_the_plan():
    design = design_of("hadamard")
    server = server_with(design, reports_of(design, 50))
    for way in WAYS:
        expected = expected_standard_errors(
            design.tree,
            num_users=777,
            scale=design.scale,
            pair_correlation=design.law.pair_correlation,
            variance_factor=4.0,
            **way,
        )
        errors = server.running_counts(num_users=777, **way).standard_errors
        assert np.array_equal(errors, np.repeat(expected[:, None], 6, axis=1))


def test_pairs_of_one_users_reports_widen_smoothed_bands_only():
    design = design_of()
    assert design.law.pair_correlation > 0.1
    for numbers in (None, 100):
        server = server_with(design, reports_of(design, 100))
        smoothed = server.running_counts(smoothed=True, num_users=numbers)
        sampled = design_of(protocol="sampled-change")
        other = server_with(sampled, reports_of(sampled, 100))
        without = other.running_counts(smoothed=True, num_users=numbers)
        widened = smoothed.standard_errors / design.scale > without.standard_errors / sampled.scale
        assert widened[:7].all()
        assert not widened[7]  # the end of a tree: nothing later is used for it


@pytest.mark.parametrize("encoding", ["boolean", "one-hot"])
def test_order_and_batches_of_reports_do_not_matter(encoding, monkeypatch):
    design = design_of(encoding)
    reports = reports_of(design, 150)
    rows = rows_of(reports)
    at_once = server_with(design, reports)
    late = MonitorServer(design)
    for row in reversed(rows):
        late.ingest(row)
        if row.period == 5:
            late.running_counts(num_users=10)  # brings everything up to date in between
    batches = MonitorServer(design)
    for start in range(0, len(rows), 7):
        batches.ingest(iter(rows[start : start + 7]))
    monkeypatch.setattr(server_module, "_BLOCK", 10)
    blocks = server_with(design, reports)
    summed = MonitorServer(design)
    for (level, period), group in itertools.groupby(sorted(rows), key=lambda row: row[:2]):
        sums = np.zeros((2, design.encoding.num_columns), dtype=np.int64)
        for row in group:
            sums[:, row.column] += (row.sign, 1)
        summed.ingest_sums(level, period, *sums)
    assert at_once.num_reports == len(rows)
    for server in (late, batches, blocks, summed):
        assert server.num_reports == len(rows)
        for way in WAYS:
            assert same_results(server.running_counts(**way), at_once.running_counts(**way))
        assert same_results(server.estimate(7), at_once.estimate(7))


def test_estimates_do_not_change_when_later_periods_arrive():
    design = design_of()
    rows = sorted(rows_of(reports_of(design, 100)), key=lambda row: row.period)
    server = MonitorServer(design)
    known = []
    for period, group in itertools.groupby(rows, key=lambda row: row.period):
        server.ingest(group)
        assert server.last_period == period
        known.append(server.estimate(period))
        assert len(server.running_counts()) == period
    for estimate, row in zip(known, map(server.running_counts().at, range(1, 12)), strict=True):
        assert float(estimate.counts) == pytest.approx(float(row.counts), rel=1e-12)


def test_one_column_takes_plain_numbers():
    server = MonitorServer(2, 1, 1.0)
    server.ingest_sums(1, 1, -3, 5)
    assert float(server.estimate(1).counts) == pytest.approx(-3 * server.design.scale)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("report", "message"),
    [
        (MonitorReport(5, 11, 1), "level = 5"),
        (MonitorReport(0, 1, 1), "level = 0"),
        (MonitorReport(1, 12, 1), "period = 12"),
        (MonitorReport(1, 0, 1), "period = 0"),
        (MonitorReport(2, 5, 1), "period = 5.*no node"),
        (MonitorReport(1, 5, 0), "sign = 0"),
        (MonitorReport(1, 5, 1, 3), "column = 3"),
        (MonitorReport(1, 5, 1, -1), "column = -1"),
    ],
)
def test_a_wrong_report_is_refused_and_nothing_is_added(report, message):
    design = design_of("one-hot")
    server = MonitorServer(design)
    with pytest.raises(DataError, match=message):
        server.ingest([MonitorReport(1, 1, 1), report])
    assert server.num_reports == 0
    assert not server.to_arrays()["sums"].any()


@pytest.mark.parametrize(
    ("sums", "numbers", "message"),
    [
        ([3, 0, 0], [2, 0, 0], "entry 0 has 2 reports and signs that add up to 3"),
        ([1, 0, 0], [2, 0, 0], "impossible"),
        ([0, 0, 0], [0, -2, 0], "entry 1 has -2 reports"),
        ([0, 0], [0, 0, 0], r"sums_by_column has shape \(2,\)"),
        ([0, 0, 0], [0.0, 0.0, 0.0], "counts_by_column has shape .* dtype float64"),
    ],
)
def test_impossible_sums_are_refused_and_nothing_is_added(sums, numbers, message):
    server = MonitorServer(design_of("one-hot"))
    with pytest.raises(DataError, match=message):
        server.ingest_sums(1, 1, sums, numbers)
    assert server.num_reports == 0


def test_sums_of_no_node_are_refused():
    server = MonitorServer(design_of())
    for level, period, message in ((9, 1, "level = 9"), (2, 3, "t = 3"), (1, 12, "t = 12")):
        with pytest.raises(ParameterError, match=message):
            server.ingest_sums(level, period, [1], [1])


def test_without_reports_no_error_is_made_up():
    server = MonitorServer(design_of())
    with pytest.raises(DataError, match="no report has arrived: there is nothing to estimate"):
        server.running_counts()
    with pytest.raises(DataError, match="no report has arrived: there is nothing"):
        server.running_counts(num_users=100)
    server.ingest(MonitorReport(1, 5, 1))
    message = "no report has arrived for periods 1 to 4 at level 3, so the error is unknown"
    for method in ("cover", "least-squares"):
        with pytest.raises(DataError, match=message):
            server.estimate(5, method=method)
    with pytest.raises(DataError, match="no report has arrived for periods 1 to 1 at level 1"):
        server.running_counts()
    # Whoever knows the number of users vouches for them.
    assert float(server.estimate(5, num_users=3).standard_errors) > 0.0
    assert (server.running_counts(num_users=3).standard_errors > 0.0).all()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda server: server.estimate(0), "t = 0 is below 1"),
        (lambda server: server.estimate(12), r"t = 12 is not in \[0, 11\]"),
        (lambda server: server.estimate(3, method="mean"), "method = 'mean'"),
        (lambda server: server.estimate(3, confidence=1.0), "confidence = 1.0"),
        (lambda server: server.estimate(3, num_users=0), "num_users = 0"),
        (lambda server: server.running_counts(0), "through = 0 is below 1"),
        (lambda server: server.running_counts(12), r"through = 12 is not in \[1, 11\]"),
        (lambda server: server.running_counts(12, num_users=5), r"through = 12 is not in"),
        (lambda server: server.running_counts(num_users=0), "num_users = 0"),
        (lambda server: server.running_counts(method="cover", smoothed=True), "no smoothed form"),
        (lambda server: server.proven_errors(0), "num_users = 0"),
    ],
)
def test_arguments_out_of_range_are_refused(ask, message):
    design = design_of()
    server = server_with(design, reports_of(design, 10))
    with pytest.raises(ParameterError, match=message):
        ask(server)


def test_a_design_is_given_once():
    design = design_of()
    server = MonitorServer(11, max_changes=2, epsilon0=1.5)
    assert server.design.fingerprint() == design.fingerprint()
    assert MonitorServer(11, 2, 1.5, protocol="sampled-change").design.law.kind == "sampled-change"
    with pytest.raises(ParameterError, match="beside a design"):
        MonitorServer(design, max_changes=2)
    for half in ({"max_changes": 2}, {"epsilon0": 1.5}):
        with pytest.raises(ParameterError, match="max_changes or epsilon0 is missing"):
            MonitorServer(11, **half)


def test_more_counters_than_memory_holds_are_refused():
    design = MonitorDesign(periods=2**25, max_changes=1, epsilon0=1.0)
    with pytest.raises(ParameterError, match=r"periods = 33554432 with 1 columns need .* counters"):
        MonitorServer(design)


# ---------------------------------------------------------------- state
def test_a_restored_server_goes_on_bit_by_bit():
    design = design_of("one-hot")
    first, second = reports_of(design, 100, seed=1), reports_of(design, 100, seed=2)
    server = server_with(design, first)
    restored = MonitorServer.from_arrays(design, server.to_arrays())
    for each in (server, restored):
        each.ingest(second)
    for way in WAYS:
        assert same_results(server.running_counts(**way), restored.running_counts(**way))
    assert same_results(server.estimate(11), restored.estimate(11))
    assert restored.num_reports == server.num_reports


def test_arrays_are_copies():
    design = design_of()
    server = server_with(design, reports_of(design, 10))
    arrays = server.to_arrays()
    restored = MonitorServer.from_arrays(design, arrays)
    before = server.num_reports
    for array in arrays.values():
        array.fill(100)
    assert server.num_reports == restored.num_reports == before


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda arrays: arrays.pop("sums"), "arrays has no 'sums'"),
        (lambda arrays: arrays.pop("numbers"), "arrays has no 'numbers'"),
        (lambda arrays: arrays.update(sums=arrays["sums"][1:]), r"arrays\['sums'\] has shape"),
        (lambda arrays: arrays.update(numbers=arrays["numbers"] / 2), "dtype float64"),
        (lambda arrays: arrays.update(sums=arrays["sums"] + 1000), "impossible"),
        (lambda arrays: arrays.update(numbers=-arrays["numbers"]), "impossible"),
    ],
)
def test_damaged_arrays_are_refused(spoil, message):
    design = design_of()
    arrays = server_with(design, reports_of(design, 30)).to_arrays()
    spoil(arrays)
    with pytest.raises(DataError, match=message):
        MonitorServer.from_arrays(design, arrays)


def test_proven_errors_are_those_of_the_design():
    design = design_of("one-hot")
    for method in ("cover", "least-squares"):
        expected = proven_errors(
            design.tree,
            num_users=1000,
            scale=design.scale,
            confidence=0.9,
            method=method,
            pair_correlation=design.law.pair_correlation,
            variance_factor=3.0,
            domain_size=3,
        )
        errors = MonitorServer(design).proven_errors(1000, confidence=0.9, method=method)
        assert np.array_equal(errors, expected)
