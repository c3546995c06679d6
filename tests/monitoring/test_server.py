"""The server: reports in any order and batch, estimates against matrices, refusals, state."""

import itertools
import pickle

import numpy as np
import pytest

from oracles.period_trees import index
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring import server as server_module
from shuffledp.monitoring.client import MonitorReport
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.running_counts import (
    band_quantile,
    expected_standard_errors,
    level_weighted_sums,
    online_running_counts,
    smoothed_running_counts,
)
from shuffledp.monitoring.server import MonitorServer

WAYS = [{}, {"smoothed": True}]
USERS = {"num_users": 500}
DOMAINS = {
    "boolean": None,
    "one-hot": ("bus", "car", "none"),
    "hadamard": tuple("abcdef"),
}


def design_of(encoding="boolean", periods=11, **other):
    arguments = {"max_changes": 2, "epsilon0": 1.5} | other
    return MonitorDesign(periods=periods, domain=DOMAINS[encoding], **arguments)


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
    return MonitorReport(
        level=levels.astype(np.uint8),
        period=positions << (levels - 1),
        sign=(2 * generator.integers(0, 2, levels.size) - 1).astype(np.int8),
        column=generator.integers(0, design.encoding.num_columns, levels.size),
    )


def rows_of(reports):
    return [MonitorReport(*row) for row in zip(*(a.tolist() for a in reports), strict=True)]


def node_sums(design, reports):
    """Return sums of signs by node and column, one report at a time."""
    sums = np.zeros((design.tree.num_nodes, design.encoding.num_columns))
    for level, period, sign, column in rows_of(reports):
        node = index(design.tree, level, period >> (level - 1))
        sums[node, column] += sign
    return sums


def server_with(design, reports):
    server = MonitorServer(design)
    server.ingest(reports)
    return server


def same_results(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("counts", "standard_errors", "lower", "upper")
    )


@pytest.mark.parametrize("encoding", DOMAINS)
@pytest.mark.parametrize("periods", [1, 2, 7, 16])
def test_counts_and_errors_are_those_of_the_estimators(periods, encoding):
    design = design_of(encoding, periods=periods, max_changes=min(2, periods))
    reports = reports_of(design, 300)
    server = server_with(design, reports)
    sums = node_sums(design, reports)
    tree = design.tree
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    weights_by_way = [
        online_running_counts(tree, weighted, periods),
        smoothed_running_counts(tree, weighted, periods),
    ]
    for way, weights in zip(WAYS, weights_by_way, strict=True):
        result = server.running_counts(**way, **USERS)
        counts = design.encoding.decode(design.scale * (weights @ sums))
        deviations = expected_standard_errors(design, through=periods, **USERS, **way)
        if encoding == "boolean":
            counts = counts[:, 0]
        else:
            deviations = np.broadcast_to(deviations[:, None], counts.shape)
        np.testing.assert_allclose(result.counts, counts, rtol=1e-9, atol=1e-9)
        assert np.array_equal(result.standard_errors, deviations)
        assert result.labels == design.encoding.labels
        assert result.periods.tolist() == list(range(1, periods + 1))


@pytest.mark.parametrize("encoding", ["boolean", "hadamard"])
def test_one_estimate_is_a_row_of_all(encoding):
    design = design_of(encoding)
    server = server_with(design, reports_of(design, 200))
    for simultaneous in (True, False):
        asked = {"num_users": 5_000, "simultaneous": simultaneous, "confidence": 0.8}
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
        counts = server.running_counts(through, confidence=0.9, **way, **USERS)
        periods = 6 if way.get("smoothed") else 11
        reach = band_quantile(0.9, num_periods=periods, domain_size=3, simultaneous=True)
        np.testing.assert_allclose(counts.upper - counts.counts, reach * counts.standard_errors)
        np.testing.assert_allclose(counts.counts - counts.lower, reach * counts.standard_errors)


def test_pairs_of_one_users_reports_widen_smoothed_bands_only():
    design = design_of()
    assert design.law.pair_correlation > 0.1
    server = server_with(design, reports_of(design, 100))
    smoothed = server.running_counts(smoothed=True, **USERS)
    sampled = design_of(protocol="sampled-change")
    other = server_with(sampled, reports_of(sampled, 100))
    without = other.running_counts(smoothed=True, **USERS)
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
    for period in range(1, 12):
        levels = design.tree.levels_ending_at(period)
        sums = np.zeros((len(levels), design.encoding.num_columns), dtype=np.int64)
        group = [row for row in rows if row.period == period]
        for row in group:
            sums[row.level - 1, row.column] += row.sign
        summed.add_sums(period, sums, num_reports=len(group))
    assert at_once.num_reports == len(rows)
    for server in (late, batches, blocks, summed):
        assert server.num_reports == len(rows)
        for way in WAYS:
            assert same_results(
                server.running_counts(**way, **USERS), at_once.running_counts(**way, **USERS)
            )
        assert same_results(server.estimate(7, **USERS), at_once.estimate(7, **USERS))
        assert server.last_period == 11


def test_estimates_do_not_change_when_later_periods_arrive():
    design = design_of()
    rows = sorted(rows_of(reports_of(design, 100)), key=lambda row: row.period)
    server = MonitorServer(design)
    known = []
    for period, group in itertools.groupby(rows, key=lambda row: row.period):
        server.ingest(group)
        assert server.last_period == period
        known.append(server.estimate(period, **USERS))
        assert len(server.running_counts(**USERS)) == period
    for estimate, row in zip(
        known, map(server.running_counts(**USERS).at, range(1, 12)), strict=True
    ):
        assert float(estimate.counts) == pytest.approx(float(row.counts), rel=1e-12)


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
    assert not server.estimate(5, num_users=3).counts.any()


def test_without_reports_there_is_nothing_to_estimate():
    server = MonitorServer(design_of())
    with pytest.raises(DataError, match="no report has arrived: there is nothing to estimate"):
        server.running_counts(num_users=100)
    server.ingest([])
    assert float(server.estimate(5, num_users=3).counts) == 0.0
    assert (server.running_counts(5, num_users=3).standard_errors > 0.0).all()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda server: server.estimate(0, **USERS), "t = 0 is below 1"),
        (lambda server: server.estimate(12, **USERS), "t = 12 is above 11"),
        (lambda server: server.estimate(3, confidence=1.0, **USERS), "confidence = 1.0"),
        (lambda server: server.estimate(3, num_users=0), "num_users = 0"),
        (lambda server: server.running_counts(0, **USERS), "through = 0 is below 1"),
        (lambda server: server.running_counts(12, **USERS), "through = 12 is above 11"),
        (lambda server: server.running_counts(num_users=0), "num_users = 0"),
    ],
)
def test_arguments_out_of_range_are_refused(ask, message):
    design = design_of()
    server = server_with(design, reports_of(design, 10))
    with pytest.raises(ParameterError, match=message):
        ask(server)


def test_more_counters_than_memory_holds_are_refused():
    design = MonitorDesign(periods=2**25, max_changes=1, epsilon0=1.0)
    with pytest.raises(ParameterError, match=r"periods = 33554432 with 1 columns need .* counters"):
        MonitorServer(design)


# ---------------------------------------------------------------- state
def test_a_restored_server_goes_on_bit_by_bit():
    design = design_of("one-hot")
    first, second = reports_of(design, 100, seed=1), reports_of(design, 100, seed=2)
    server = server_with(design, first)
    restored = pickle.loads(pickle.dumps(server))  # noqa: S301
    for each in (server, restored):
        each.ingest(second)
    for way in WAYS:
        assert same_results(
            server.running_counts(**way, **USERS), restored.running_counts(**way, **USERS)
        )
    assert same_results(server.estimate(11, **USERS), restored.estimate(11, **USERS))
    assert restored.last_period == server.last_period
    assert restored.num_reports == server.num_reports


@pytest.mark.parametrize("domain", [None, ["a", "b"]])
def test_columns_of_unsigned_words_are_added_like_all_others(domain):
    design = MonitorDesign(periods=6, max_changes=1, epsilon0=1.0, domain=domain)
    reports, plain, unsigned = reports_of(design, 50), MonitorServer(design), MonitorServer(design)
    words = {name: getattr(reports, name).astype(np.uint64) for name in ("level", "period")}
    plain.ingest(reports)
    unsigned.ingest(reports._replace(column=reports.column.astype(np.uint64), **words))
    found, expected = (each.running_counts(num_users=9).counts for each in (unsigned, plain))
    assert np.array_equal(found, expected)
