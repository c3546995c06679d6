"""A whole ``shuffledp run``, from file to report, beside reading the file without privacy.

Each measurement is a fresh process, start-up included. ``extra_info`` has rows a second and the
peak memory of that process (Linux only). Baselines: polars counting the same column, which is what
one would do without privacy, and a plain Python loop over the rows, at fewer of them.
"""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source

from shuffledp.core.entropy import Entropy

ANSWERS = ("no", "perhaps", "refused", "yes")
BLOCK_ROWS = 1_000_000
LOOP_ROWS = 10**6

PEAK = """
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(int(line.split()[1]) / 1024)
"""

RUN = """
import sys
from shuffledp.cli.main import main
table, out, *options = sys.argv[1:]
status = main(["run", table, "--column", "answer", "--domain", "no,perhaps,refused,yes",
               "--epsilon", "0.5", "--delta", "1e-10", "--out", out, "--overwrite", *options])
assert status == 0
"""

COUNT = """
import sys
import polars as pl
path = sys.argv[1]
scan = pl.scan_parquet if path.endswith("parquet") else pl.scan_csv
scan(path).group_by("answer").len().collect(engine="streaming")
"""

# k-RR with epsilon0 = 4.6, shuffled, counted: one row at a time.
LOOP = """
import collections, csv, random, sys
source = random.SystemRandom()
answers = ["no", "perhaps", "refused", "yes"]
with open(sys.argv[1], newline="") as file:
    reports = [
        row["answer"] if source.random() < 0.96 else source.choice(answers)
        for row in csv.DictReader(file)
    ]
source.shuffle(reports)
collections.Counter(reports)
"""

TASKS = {
    "shuffledp_run": (RUN, []),
    "shuffledp_run_and_save_reports": (RUN, ["--save-reports"]),
    "polars_count": (COUNT, []),
}


def blocks_of(num_rows):
    """Yield the rows of a survey block by block."""
    generator = Entropy.from_seed(1).generator()
    labels = pl.Series("answer", ANSWERS)
    for start in range(0, num_rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, num_rows - start)
        codes = generator.choice(len(ANSWERS), size=size, p=[0.5, 0.1, 0.3, 0.1])
        ids = pl.Series("id", np.arange(start, start + size))
        yield pl.DataFrame([ids, labels.gather(codes)])


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Return a function that makes a file of so many rows, once."""
    folder = tmp_path_factory.mktemp("surveys")

    def make(num_rows, suffix):
        path = folder / f"{num_rows}.{suffix}"
        if not path.exists():
            frame = register_io_source(
                lambda *_: blocks_of(num_rows), schema={"id": pl.Int64, "answer": pl.String}
            )
            getattr(frame, f"sink_{suffix}")(path)
        return path

    return make


def run_process(program, *arguments):
    """Run a program in a process of its own and return its peak memory in MiB."""
    outcome = subprocess.run(
        [sys.executable, "-c", program + PEAK, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(outcome.stdout.split()[-1])


def measure(benchmark, num_rows, program, *arguments):
    """Time a program once and record rows a second and peak memory beside it."""
    peak = benchmark.pedantic(run_process, args=(program, *arguments), rounds=1)
    if benchmark.enabled:
        benchmark.extra_info["million_rows_a_second"] = num_rows / 1e6 / benchmark.stats.stats.min
        benchmark.extra_info["peak_mebibytes"] = peak


@pytest.mark.benchmark(group="run")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("num_rows", [10**7, 10**8])
def test_run(benchmark, survey, tmp_path, *, num_rows, suffix, task):
    benchmark.group = f"run {num_rows:.0e} rows of {suffix}"
    program, options = TASKS[task]
    measure(benchmark, num_rows, program, survey(num_rows, suffix), tmp_path / "results", *options)


@pytest.mark.benchmark(group="run 1e+06 rows of csv")
@pytest.mark.parametrize("task", ["shuffledp_run", "python_loop"])
def test_run_beside_a_loop(benchmark, survey, tmp_path, task):
    program = LOOP if task == "python_loop" else RUN
    measure(benchmark, LOOP_ROWS, program, survey(LOOP_ROWS, "csv"), tmp_path / "results")
