"""Longitudinal monitoring: speed, memory and accuracy, each beside what one would do without it.

- A year of a million users, from a Parquet table of events to the report, each measurement a fresh
  process, start-up included. Baselines: the same protocol over NumPy arrays, and in plain Python.
- The server: reports taken in beside a dictionary and ``np.add.at``, estimates beside the sum of
  all leaves so far, which needs no tree.
- Errors of seeded runs, root mean square over all periods: ours, the algorithm as printed, and
  one-shot randomized response in every period or in one of them, at the same guarantees.
- Gaps of the laws of signs, and central guarantees beside those of cruder arguments.

``extra_info`` has errors, guarantees and memory beside the time.
"""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from baselines import monitoring as baseline
from bench_run import run_process
from polars.io.plugins import register_io_source

from oracles.made_histories import dense as dense_rows
from oracles.made_histories import outage
from oracles.published_monitoring import published_scale
from shuffledp.core.entropy import Entropy
from shuffledp.monitoring.client import ClientFleet, MonitorReport
from shuffledp.monitoring.comparison import (
    RepeatedTask,
    everybody_at_central,
    everybody_at_local,
    few_answers,
)
from shuffledp.monitoring.design import MonitorDesign, sign_law
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.privacy.central import calibrate_monitoring, central_guarantee
from shuffledp.monitoring.running_counts import expected_standard_errors, running_sums
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.simulation import simulate_monitoring

PERIODS, MAX_CHANGES, EPSILON0, DELTA = 365, 4, 1.0, 1e-8
MANY_USERS, FEW_USERS = 10**6, 10**4

SIMULATE = """
import sys
from shuffledp.cli.main import main
table, out, *options = sys.argv[1:]
status = main(["monitor", "simulate", table, "--user", "user", "--time", "time", "--value", "value",
               "--max-changes", "4", "--epsilon0", "1", "--delta", "1e-8", "--periods", "365",
               "--out", out, "--overwrite", *options])
assert status == 0
"""

# Its arguments: table, number of users, name of the function, folder of the benchmarks.
BASELINE = """
import sys
sys.path.insert(0, sys.argv[4])
import numpy as np
import polars as pl
from baselines import monitoring
from shuffledp.core.entropy import Entropy
table = pl.read_parquet(sys.argv[1]).sort("time")
changes = (table["user"].to_numpy() - 1, table["time"].to_numpy(),
           table["value"].to_numpy().astype(np.int8))
getattr(monitoring, sys.argv[3])(changes, num_users=int(sys.argv[2]), periods=365, max_changes=4,
                                 epsilon0=1.0, entropy=Entropy.from_operating_system())
"""


# ---------------------------------------------------------------- a whole simulation
@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a function that makes a table of histories, once."""
    folder = tmp_path_factory.mktemp("histories")

    def make(num_users, *, periods=PERIODS, max_changes=MAX_CHANGES, dense=False):
        path = folder / f"{num_users}-{periods}-{max_changes}-{dense}.parquet"
        if not path.exists():
            table = outage(num_users, periods, max_changes=max_changes)
            rows = dense_rows(table, periods) if dense else iter([table])
            register_io_source(lambda *_: rows, schema=table.schema).sink_parquet(path)
        return path

    return make


def measure(benchmark, num_users, program, *arguments):
    """Time a program once and record its speed and peak memory."""
    peak = benchmark.pedantic(run_process, args=(program, *arguments), rounds=1)
    if benchmark.enabled:
        told = num_users * PERIODS / 1e6
        benchmark.extra_info["million_user_periods_a_second"] = told / benchmark.stats.stats.min
        benchmark.extra_info["peak_mebibytes"] = peak


@pytest.mark.parametrize("table", ["events", "dense"])
def test_simulation(benchmark, made, tmp_path, table):
    benchmark.group = "monitor 1e6 users for 365 periods"
    path = made(MANY_USERS, dense=table == "dense")
    measure(benchmark, MANY_USERS, SIMULATE, path, tmp_path / "results")


@pytest.mark.parametrize(
    ("kind", "num_users"), [("simulate_arrays", MANY_USERS), ("simulate_users", FEW_USERS)]
)
def test_baseline_simulation(benchmark, made, kind, num_users):
    benchmark.group = "monitor 1e6 users for 365 periods"
    folder = Path(__file__).parent
    measure(benchmark, num_users, BASELINE, made(num_users), num_users, kind, folder)


def test_clients_and_server(benchmark, made):
    """The same without start-up, reading and report."""
    benchmark.group = "clients and server, 1e6 users for 365 periods"
    read = open_histories(
        made(MANY_USERS), user="user", time="time", value="value", periods=PERIODS
    )
    benchmark.pedantic(
        simulate_monitoring,
        (read,),
        {"max_changes": MAX_CHANGES, "epsilon0": EPSILON0, "delta": DELTA},
        rounds=3,
        warmup_rounds=1,
    )


def test_baseline_clients_and_server(benchmark, made):
    benchmark.group = "clients and server, 1e6 users for 365 periods"
    table = pl.read_parquet(made(MANY_USERS)).sort("time")
    changes = (
        table["user"].to_numpy() - 1,
        table["time"].to_numpy(),
        table["value"].to_numpy().astype(np.int8),
    )
    benchmark.pedantic(
        baseline.simulate_arrays,
        (changes,),
        {
            "num_users": MANY_USERS,
            "periods": PERIODS,
            "max_changes": MAX_CHANGES,
            "epsilon0": EPSILON0,
            "entropy": Entropy.from_operating_system(),
        },
        rounds=3,
    )


# ---------------------------------------------------------------- the server
def random_reports(num_reports, periods=PERIODS):
    """Reports of random nodes, as many of each level as of any other: level, period, sign."""
    generator = Entropy.from_seed(3).generator()
    levels = generator.integers(1, periods.bit_length() + 1, num_reports)
    positions = 1 + (generator.random(num_reports) * (periods >> (levels - 1))).astype(np.int64)
    signs = 2 * generator.integers(2, size=num_reports) - 1
    return levels.astype(np.uint8), positions << (levels - 1), signs.astype(np.int8)


def measure_ingest(benchmark, function, reports, num_reports):
    """Time it and record how many reports a second that is."""
    benchmark.group = "take reports in"
    benchmark.pedantic(function, (reports,), rounds=3, warmup_rounds=1)
    if benchmark.enabled:
        rate = num_reports / 1e6 / benchmark.stats.stats.min
        benchmark.extra_info["million_reports_a_second"] = rate


def test_ingest(benchmark):
    levels, periods, signs = random_reports(10**7)
    reports = MonitorReport(levels, periods, signs, np.zeros(10**7, dtype=np.int64))
    server = MonitorServer(
        MonitorDesign(periods=PERIODS, max_changes=MAX_CHANGES, epsilon0=EPSILON0)
    )
    measure_ingest(benchmark, server.ingest, reports, 10**7)


def test_baseline_ingest_arrays(benchmark):
    shape = (PERIODS.bit_length() + 1, PERIODS + 1)
    measure_ingest(
        benchmark,
        lambda reports: baseline.ingest_arrays(*reports, shape),
        random_reports(10**7),
        10**7,
    )


def test_baseline_ingest_loop(benchmark):
    reports = list(zip(*(each.tolist() for each in random_reports(10**6)), strict=True))
    measure_ingest(benchmark, baseline.ingest, reports, 10**6)


HEIGHTS = [8, 12, 16, 20]


def full_server(periods):
    """A server with sums at all nodes, as of ``MANY_USERS`` users."""
    design = MonitorDesign(periods=periods, max_changes=MAX_CHANGES, epsilon0=EPSILON0)
    generator = Entropy.from_seed(5).generator()
    at_level = MANY_USERS // design.num_levels
    sums = 2 * generator.binomial(at_level, 0.5, (design.tree.num_nodes, 1)) - at_level
    server = MonitorServer(design)
    server._sums[:] = sums
    server.last_period = periods
    return server


@pytest.mark.parametrize("height", HEIGHTS)
def test_estimate(benchmark, height):
    """The longest cover: the last period but one. No report has arrived since the last time."""
    benchmark.group = f"estimate among 2^{height} periods"
    server = full_server(2**height)
    server.estimate(1, num_users=MANY_USERS)
    asked = {"num_users": MANY_USERS, "simultaneous": False}
    found = benchmark(server.estimate, 2**height - 1, **asked)
    benchmark.extra_info["standard_error"] = float(found.standard_errors)


@pytest.mark.parametrize("height", HEIGHTS)
def test_estimate_after_a_period(benchmark, height):
    """All reports of a period have just arrived."""
    benchmark.group = f"estimate among 2^{height} periods"
    server = full_server(2**height)
    t = 2 ** (height - 1)

    def arrive():
        levels = server.design.tree.levels_ending_at(t)
        server.add_sums(t, np.zeros((len(levels), 1), dtype=np.int64), num_reports=2)

    benchmark.pedantic(
        lambda: server.estimate(t, num_users=MANY_USERS, simultaneous=False),
        setup=arrive,
        rounds=50,
        warmup_rounds=1,
    )


@pytest.mark.parametrize("height", HEIGHTS)
def test_baseline_sum_of_leaves(benchmark, height):
    """Without a tree everybody reports every period, and all sums so far are added up."""
    benchmark.group = f"estimate among 2^{height} periods"
    t = 2**height - 1
    leaves = Entropy.from_seed(5).generator().integers(-1000, 1000, 2**height)
    gap = sign_law("predrawn-signs", max_changes=MAX_CHANGES, epsilon0=EPSILON0).gap
    benchmark(lambda: leaves[:t].sum() / gap)
    benchmark.extra_info["standard_error"] = math.sqrt(MANY_USERS * t) / gap


# ---------------------------------------------------------------- errors
#: Users, periods, changes, seeded runs.
SETTINGS = [(10**5, 64, 2, 20), (10**6, 365, 1, 8), (10**6, 365, 4, 8)]
named = pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda each: f"{each[1]}_periods_{each[2]}_changes"
)


@pytest.fixture(scope="module")
def histories(made):
    """Return a function that reads the histories of a setting."""

    def read(setting):
        num_users, periods, max_changes, _ = setting
        path = made(num_users, periods=periods, max_changes=max_changes)
        return open_histories(path, user="user", time="time", value="value", periods=periods)

    return read


def collected(design, histories, entropy):
    """Return a server with the reports of all users over all periods of their histories."""
    fleet = ClientFleet.drawn(design, histories.num_users, entropy.words(4).tobytes())
    server = MonitorServer(design)
    for t in range(1, histories.periods + 1):
        fleet.follow(*histories.changes_at(t))
        server.add_sums(t, fleet.period_sums(t), num_reports=1)
    return server


def measure_errors(benchmark, setting, histories, estimates_of):
    """Time one run; record the error of several, and the bias at the fullest period."""
    num_users, periods, max_changes, runs = setting
    benchmark.group = f"{num_users:.0e} users, {periods} periods, {max_changes} changes"
    read = histories(setting)
    truth = read.true_counts()[:, 0].astype(np.float64)
    fullest = int(truth.argmax())
    found = [benchmark.pedantic(estimates_of, (read, Entropy.from_seed(10)), rounds=1)]
    found += [estimates_of(read, Entropy.from_seed(10 + each)) for each in range(1, runs)]
    errors = np.array(found) - truth
    benchmark.extra_info.update(
        root_mean_square_error=float(np.sqrt(np.mean(errors**2))),
        runs=runs,
        true_count=float(truth[fullest]),
        mean_error_there=float(errors[:, fullest].mean()),
        mean_error_uncertainty=float(errors[:, fullest].std(ddof=1) / math.sqrt(runs)),
    )


def design_of(setting, protocol="predrawn-signs", epsilon0=EPSILON0):
    _, periods, max_changes, _ = setting
    return MonitorDesign(
        periods=periods, max_changes=max_changes, epsilon0=epsilon0, protocol=protocol
    )


@named
@pytest.mark.parametrize(
    ("protocol", "smoothed"),
    [("predrawn-signs", True), ("predrawn-signs", False), ("sampled-change", False)],
)
def test_error_of_monitoring(benchmark, histories, setting, protocol, smoothed):
    design = design_of(setting, protocol)

    def estimates_of(read, entropy):
        return (
            collected(design, read, entropy)
            .running_counts(
                smoothed=smoothed,
                simultaneous=False,
                num_users=read.num_users,
            )
            .counts
        )

    measure_errors(benchmark, setting, histories, estimates_of)
    stated = expected_standard_errors(
        design, num_users=setting[0], through=design.periods, smoothed=smoothed
    )
    benchmark.extra_info.update(
        local_epsilon=design.epsilon0,
        central_epsilon=central_of(design, setting).upper,
        stated_error=float(np.sqrt(np.mean(stated**2))),
    )


def central_of(design, setting):
    return central_guarantee(design.profile, num_users=setting[0], delta=DELTA)


@named
@pytest.mark.parametrize("printed_epsilon", [2.0 * EPSILON0, EPSILON0])
def test_error_as_printed(benchmark, histories, setting, printed_epsilon):
    """Scale and levels as printed, periods padded to a power of two; the local loss is epsilon/2.

    The clients are those of `PublishedClient`, whose law is that of sampled changes at epsilon/2.
    """
    _, periods, max_changes, _ = setting
    padded = 1 << (periods - 1).bit_length()
    design = MonitorDesign(
        periods=padded,
        max_changes=max_changes,
        epsilon0=printed_epsilon / 2.0,
        protocol="sampled-change",
    )
    scale = published_scale(padded, max_changes, printed_epsilon)

    def estimates_of(read, entropy):
        sums = collected(design, read, entropy)._sums[:, 0]
        return scale * running_sums(design.tree, sums, periods)

    measure_errors(benchmark, setting, histories, estimates_of)
    benchmark.extra_info.update(
        local_epsilon=design.epsilon0, central_epsilon=central_of(design, setting).upper
    )


def repeated(kind, setting, epsilon):
    """The rival, as its own accountant sets it up."""
    num_users, periods, _, _ = setting
    task = RepeatedTask(domain_size=2, periods=periods, num_users=num_users, delta=DELTA)
    if kind == "same_local":
        return everybody_at_local(task, epsilon0=EPSILON0)
    if kind == "same_central":
        return everybody_at_central(task, epsilon=epsilon)
    return few_answers(task, epsilon0=EPSILON0, epsilon=epsilon)


def answer_every_period(keep, read, entropy):
    """Everybody answers by randomized response in every period."""
    generator = entropy.generator()
    states = np.zeros(read.num_users, dtype=np.bool_)
    estimates = []
    for t in range(1, read.periods + 1):
        users, values = read.changes_at(t)
        states[users] = values == 0
        reports = states ^ (generator.random(states.size) >= keep)
        estimates.append((reports.sum() - states.size * (1 - keep)) / (2 * keep - 1))
    return np.array(estimates)


def answer_once(keep, read, entropy):
    """Everybody answers in one period, drawn in secret."""
    generator = entropy.generator()
    chosen = generator.integers(1, read.periods + 1, read.num_users)
    states = np.zeros(read.num_users, dtype=np.bool_)
    estimates = []
    for t in range(1, read.periods + 1):
        users, values = read.changes_at(t)
        states[users] = values == 0
        asked = states[chosen == t]
        reports = asked ^ (generator.random(asked.size) >= keep)
        bits = (reports - (1 - keep)) / (2 * keep - 1)
        estimates.append((bits - 0.5).sum() * read.periods + states.size / 2)
    return np.array(estimates)


@named
@pytest.mark.parametrize("kind", ["same_local", "same_central", "one_answer"])
def test_error_of_repeating(benchmark, histories, setting, kind):
    epsilon = central_of(design_of(setting), setting).upper
    found = repeated(kind, setting, epsilon)
    keep = 1.0 / (1.0 + math.exp(-found.epsilon0_per_answer))
    answer = answer_once if kind == "one_answer" else answer_every_period
    assert found.answers_per_user == (1 if kind == "one_answer" else setting[1])
    measure_errors(benchmark, setting, histories, lambda read, entropy: answer(keep, read, entropy))
    benchmark.extra_info.update(
        local_epsilon=found.local_epsilon,
        central_epsilon=found.central.upper,
        stated_error=found.standard_error,
        least_error=found.least_standard_error,
    )


# ---------------------------------------------------------------- gaps and guarantees
@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize("max_changes", [1, 2, 4, 8, 16, 62])
def test_gap(benchmark, max_changes, protocol):
    """Users needed for the same error go with 1 / gap^2; a million clients' keys are timed."""
    benchmark.group = f"signs for {max_changes} changes"
    law = sign_law(protocol, max_changes=max_changes, epsilon0=EPSILON0)
    entropy = Entropy.from_seed(2)
    benchmark.pedantic(law.draw_keys, (entropy, 10**6), rounds=3, warmup_rounds=1)
    sampled = sign_law("sampled-change", max_changes=max_changes, epsilon0=EPSILON0)
    benchmark.extra_info.update(gap=law.gap, users_saved=(law.gap / sampled.gap) ** 2)


def profile_of(protocol, epsilon0=EPSILON0):
    return MonitorDesign(
        periods=PERIODS, max_changes=MAX_CHANGES, epsilon0=epsilon0, protocol=protocol
    ).profile


def revealed(profile):
    """One change of the k, which is known, with the gap of a client who always reports it."""
    gap = profile.correlation(1) * profile.max_changes
    return replace(profile, max_changes=1, sign_correlations=(Fraction(1), gap))


@pytest.mark.parametrize("num_users", [10**4, 10**5, 10**6, 10**9])
@pytest.mark.parametrize(
    "argument",
    ["predrawn_signs", "predrawn_levels_seen", "sampled_change", "sampled_two_fold_composition"],
)
def test_central_guarantee(benchmark, num_users, argument):
    """A year, four changes; two-fold composition reveals the level and the change."""
    benchmark.group = f"central guarantee of {num_users:.0e} users"
    profile = profile_of("predrawn-signs" if argument[0] == "p" else "sampled-change")
    composed = argument.endswith("composition")
    found = benchmark.pedantic(
        central_guarantee,
        (revealed(profile) if composed else profile,),
        {
            "num_users": num_users,
            "delta": DELTA,
            "level_hidden": not (composed or argument.endswith("seen")),
        },
        rounds=3,
        warmup_rounds=1,
    )
    benchmark.extra_info.update(
        epsilon=found.upper, lower=found.lower, local_epsilon=profile.epsilon0
    )


@pytest.mark.parametrize("num_users", [10**4, 10**6])
def test_calibration(benchmark, num_users):
    """The largest epsilon0 for a central epsilon of 0.1."""
    benchmark.group = f"calibrate for {num_users:.0e} users"
    benchmark.extra_info["epsilon0"] = benchmark.pedantic(
        calibrate_monitoring,
        (lambda epsilon0: profile_of("predrawn-signs", epsilon0),),
        {"num_users": num_users, "epsilon": 0.1, "delta": DELTA},
        rounds=1,
    )
