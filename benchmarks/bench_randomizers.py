"""Reports per second, randomized and aggregated on one core, beside two straightforward programs.

``extra_info`` of each result has ``reports_per_second``, and those of the baselines measured in the
same run: ``plain_python`` handles one report at a time, ``numpy`` all of them as arrays. Blocks are
of the size that a run reads, 2^18 users. ``peak_bytes_per_report`` is what is allocated at once for
a batch, reports included.
"""

import itertools
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from baselines import plain_python, straightforward_numpy

from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import RANDOMIZERS, make_randomizer
from shuffledp.randomizers.registry import NUMBER_RANDOMIZERS, VECTOR_RANDOMIZERS

NUM_CATEGORIES = (16, 1024)
EPSILON0 = 2.0
BLOCK = 1 << 18
CELLS = 1 << 28  # bits of reports that a round of the unary encodings handles

# Plain Python handles so many of its steps in about 0.3 s; NumPy so many cells in its memory.
PYTHON_CELLS = 500_000
NUMPY_CELLS = 1 << 24

# One million reports of 1,024 bits: as a whole, or as a run handles them, block by block and
# shuffled through a scratch file.
START = """
import numpy as np
from shuffledp.collection.run import collect
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import make_randomizer
randomizer = make_randomizer("optimized-unary", domain_size=1024, epsilon0=2.0)
entropy = Entropy.from_operating_system()
codes = np.arange(1_000_000, dtype=np.uint16) % 1024
"""
TASKS = {
    "as_a_whole": "counts = randomizer.aggregate(randomizer.randomize(codes, entropy))",
    "in_a_run": """
blocks = (codes[start : start + 2**18] for start in range(0, codes.size, 2**18))
counts = collect(randomizer, blocks, num_users=codes.size, entropy=entropy)
""",
}
END = """
assert counts.num_reports == 1_000_000
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(int(line.split()[1]) / 1024)
"""


def is_narrow(name):
    """Tell whether a report's size does not grow with the number of categories."""
    return name in {
        "k-rr",
        "optimized-local-hashing",
        "hadamard-response",
    }


@pytest.fixture(params=[(name, k) for name in RANDOMIZERS for k in NUM_CATEGORIES], ids=str)
def case(request):
    """Return a randomizer, codes for it, and a source of randomness."""
    name, k = request.param
    num_blocks = 16 if is_narrow(name) else max(1, CELLS // (BLOCK * k * 4))
    entropy = Entropy.from_operating_system()
    codes = entropy.generator().integers(0, k, num_blocks * BLOCK, dtype=np.uint16)
    return make_randomizer(name, domain_size=k, epsilon0=EPSILON0), codes, entropy


def seconds_of(function, *arguments):
    """Return the least of three times, and the last result."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times), result


def peak_bytes(function, *arguments):
    """Return the most memory that a call holds at once, beyond what there was before."""
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def record_peaks(benchmark, sizes, calls):
    """Store the bytes a report of each way, measured apart from the times."""
    for (name, call), size in zip(calls.items(), sizes, strict=True):
        benchmark.extra_info[f"{name}peak_bytes_per_report"] = peak_bytes(*call) / size


def record(benchmark, num_reports, baselines):
    """Store rates, and how many times faster than each baseline."""
    rate = num_reports / benchmark.stats.stats.min
    benchmark.extra_info["reports_per_second"] = rate
    for name, baseline in baselines.items():
        benchmark.extra_info[f"{name}_reports_per_second"] = baseline
        benchmark.extra_info[f"times_{name}"] = rate / baseline


def baseline_sizes(randomizer):
    """Return how many reports each baseline handles."""
    cells = randomizer.domain_size if randomizer.name != "k-rr" else 1
    return max(20, PYTHON_CELLS // (8 * cells)), max(1000, NUMPY_CELLS // (8 * cells))


def test_randomize(benchmark, case):
    randomizer, codes, entropy = case
    few, some = baseline_sizes(randomizer)
    plain, _ = seconds_of(plain_python.randomize, randomizer, codes[:few], entropy)
    arrays, _ = seconds_of(straightforward_numpy.randomize, randomizer, codes[:some], entropy)

    def randomize_blocks():
        for start in range(0, codes.size, BLOCK):
            randomizer.randomize(codes[start : start + BLOCK], entropy)

    benchmark.pedantic(randomize_blocks, rounds=5, warmup_rounds=1)
    if benchmark.enabled:
        rates = {"plain_python": few / plain, "numpy": min(some, codes.size) / arrays}
        record(benchmark, codes.size, rates)
        block = codes[:BLOCK]
        calls = {
            "": (randomizer.randomize, block, entropy),
            "plain_python_": (plain_python.randomize, randomizer, codes[:few], entropy),
            "numpy_": (straightforward_numpy.randomize, randomizer, codes[:some], entropy),
        }
        record_peaks(benchmark, (block.size, few, min(some, codes.size)), calls)


def test_aggregate(benchmark, case):
    randomizer, codes, entropy = case
    few, some = baseline_sizes(randomizer)
    reports = plain_python.randomize(randomizer, codes[:few], entropy)
    plain, support = seconds_of(plain_python.count, randomizer, reports)
    assert len(support) == randomizer.domain_size
    arrays = straightforward_numpy.randomize(randomizer, codes[:some], entropy)
    numpy_seconds, support = seconds_of(straightforward_numpy.count, randomizer, arrays)
    assert len(support) == randomizer.domain_size
    whole = randomizer.randomize(codes, entropy)
    counts = benchmark.pedantic(randomizer.aggregate, (whole,), rounds=5, warmup_rounds=1)
    assert counts.num_reports == codes.size
    if benchmark.enabled:
        rates = {"plain_python": few / plain, "numpy": min(some, codes.size) / numpy_seconds}
        record(benchmark, codes.size, rates)
        calls = {
            "": (randomizer.aggregate, whole),
            "plain_python_": (plain_python.count, randomizer, reports),
            "numpy_": (straightforward_numpy.count, randomizer, arrays),
        }
        record_peaks(benchmark, (codes.size, few, min(some, codes.size)), calls)


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
def test_randomize_numbers(benchmark, name):
    randomizer = NUMBER_RANDOMIZERS[name](low=0.0, high=120.0, epsilon0=EPSILON0)
    entropy = Entropy.from_operating_system()
    values = entropy.generator().uniform(0.0, 120.0, 4 * BLOCK)
    seconds, _ = seconds_of(
        lambda: values + entropy.generator().laplace(scale=120.0 / EPSILON0, size=values.size)
    )
    benchmark.pedantic(randomizer.randomize, (values, entropy), rounds=5, warmup_rounds=1)
    if benchmark.enabled:
        record(benchmark, values.size, {"numpy_laplace": values.size / seconds})


@pytest.mark.parametrize("dimension", [16, 1024])
@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_randomize_vectors(benchmark, name, dimension):
    randomizer = VECTOR_RANDOMIZERS[name](dimension=dimension, epsilon0=EPSILON0, norm_bound=1.0)
    entropy = Entropy.from_operating_system()
    generator = entropy.generator()
    num_vectors = (1 << 23) // dimension
    vectors = generator.standard_normal((num_vectors, dimension), dtype=np.float32)
    vectors /= 1.001 * np.linalg.norm(vectors, axis=1, keepdims=True)
    # What the Gaussian mechanism of a straightforward program would cost.
    seconds, _ = seconds_of(lambda: vectors + generator.standard_normal(vectors.shape))
    benchmark.pedantic(randomizer.randomize, (vectors, entropy), rounds=3, warmup_rounds=1)
    if benchmark.enabled:
        record(benchmark, num_vectors, {"numpy_gaussian": num_vectors / seconds})


@pytest.mark.parametrize("task", TASKS)
def test_memory_of_a_million_rows_of_a_thousand_bits(benchmark, task):
    program = "\n".join((START, TASKS[task], END))

    def peak_megabytes():
        outcome = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        return float(outcome.stdout)

    peak = benchmark.pedantic(peak_megabytes, rounds=1)
    benchmark.extra_info["peak_megabytes"] = peak
    assert peak < 300.0


TINY = 5e-324  # subnormal: some processors take longer for these
VALUES = {
    **dict.fromkeys(RANDOMIZERS, (0, 1, 7, 8, 14, 15)),
    **dict.fromkeys(NUMBER_RANDOMIZERS, (0.0, TINY, 1e-300, 0.25, 0.3, 0.5, 0.9, 1.0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_time_of_each_value(benchmark, name):
    """``slowest_over_fastest`` value, by the least CPU time of many batches that hold one value."""
    if name in RANDOMIZERS:
        randomizer = make_randomizer(name, domain_size=16, epsilon0=EPSILON0)
    else:
        randomizer = NUMBER_RANDOMIZERS[name](low=0.0, high=1.0, epsilon0=EPSILON0)
    entropy = Entropy.from_operating_system()
    batches = [np.full(1 << 16, value) for value in VALUES[name]]
    least = np.full(len(batches), np.inf)
    turns = itertools.count()

    def one_of_each():
        first = next(turns)  # the time also depends on what was allocated before
        for place in range(len(batches)):
            number = (first + place) % len(batches)
            start = time.process_time()
            randomizer.randomize(batches[number], entropy)
            least[number] = min(least[number], time.process_time() - start)

    benchmark.pedantic(one_of_each, rounds=60, warmup_rounds=1)
    benchmark.extra_info["slowest_over_fastest"] = least.max() / least.min()
    benchmark.extra_info["nanoseconds_a_report"] = (least / (1 << 16) * 1e9).round(2).tolist()
