"""Reports per second, randomized and counted on one core, beside plain Python a row at a time.

``extra_info`` of each result has ``reports_per_second``; those of the compiled path also have
``times_baseline``, against the plain Python measured just before it in the same run.
"""

import time

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.mechanisms.randomizers import RANDOMIZERS, make_randomizer

NUM_CATEGORIES = (16, 1024)
EPSILON0 = 2.0

# So many reports that a round takes some tens of milliseconds.
NUM_REPORTS_K_RR = 10_000_000
NUM_REPORTS_UNARY = {16: 4_000_000, 1024: 100_000}
BITS_OF_BASELINE = 2_000_000  # plain Python handles so many bits, or codes, in about 0.3 s


def plain_randomize(randomizer, codes, entropy):
    """Randomize one row after another, as a straightforward client would."""
    k, threshold = randomizer.k, randomizer.threshold
    if randomizer.name == "k-rr":
        reports = []
        for code, word in zip(codes.tolist(), entropy.words(codes.size).tolist(), strict=True):
            other = word // threshold
            reports.append(code if other >= k - 1 else (code + 1 + other) % k)
        return reports
    at_truth = 2**63 if randomizer.name == "optimized-unary" else 2**64 - threshold
    words = entropy.words(codes.size * k).tolist()
    rows = []
    for start, code in enumerate(codes.tolist()):
        row = [word < threshold for word in words[start * k : (start + 1) * k]]
        row[code] = words[start * k + code] < at_truth
        rows.append(row)
    return rows


def plain_count(randomizer, reports):
    """Count one row after another."""
    support = [0] * randomizer.k
    for report in reports:
        if randomizer.name == "k-rr":
            support[report] += 1
        else:
            for category, bit in enumerate(report):
                support[category] += bit
    return support


@pytest.fixture(params=[(name, k) for name in RANDOMIZERS for k in NUM_CATEGORIES], ids=str)
def case(request):
    """Return a randomizer, codes for it and for the baseline, and a source of randomness."""
    name, k = request.param
    num_reports = NUM_REPORTS_K_RR if name == "k-rr" else NUM_REPORTS_UNARY[k]
    entropy = Entropy.from_operating_system()
    codes = entropy.generator().integers(0, k, num_reports, dtype=np.uint16)
    num_baseline = BITS_OF_BASELINE // (1 if name == "k-rr" else k)
    return make_randomizer(name, k=k, epsilon0=EPSILON0), codes, codes[:num_baseline], entropy


def seconds_of(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def record(benchmark, num_reports, baseline_rate):
    rate = num_reports / benchmark.stats.stats.min
    benchmark.extra_info["reports_per_second"] = rate
    benchmark.extra_info["baseline_reports_per_second"] = baseline_rate
    benchmark.extra_info["times_baseline"] = rate / baseline_rate


def test_randomize(benchmark, case):
    randomizer, codes, few_codes, entropy = case
    seconds, _ = seconds_of(plain_randomize, randomizer, few_codes, entropy)
    benchmark.pedantic(randomizer.randomize, (codes, entropy), rounds=5, warmup_rounds=1)
    if benchmark.enabled:
        record(benchmark, codes.size, few_codes.size / seconds)


def test_count(benchmark, case):
    randomizer, codes, few_codes, entropy = case
    few_reports = plain_randomize(randomizer, few_codes, entropy)
    seconds, support = seconds_of(plain_count, randomizer, few_reports)
    assert len(support) == randomizer.k
    reports = randomizer.randomize(codes, entropy)
    counts = benchmark.pedantic(randomizer.aggregate, (reports,), rounds=5, warmup_rounds=1)
    assert counts.num_reports == codes.size
    if benchmark.enabled:
        record(benchmark, codes.size, few_codes.size / seconds)
