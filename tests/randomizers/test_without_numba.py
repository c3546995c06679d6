"""Loops that run uncompiled, where numba cannot be imported: the same reports and bounds."""

import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest

from printed_numbers import PROMISED
from shuffledp.amplification.registry import account_delta
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.reports import Reports
from shuffledp.randomizers import make_randomizer
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

SETS = ("sampled:k-rr", "sampled:subset-selection", "split:optimized-local-hashing")


def is_loops(name):
    return name == "shuffledp.core.compiled" or (
        name.startswith("shuffledp.") and name.endswith("_kernels")
    )


def forget():
    """Forget the modules of loops that are loaded, and return them."""
    held = {name: module for name, module in sys.modules.items() if is_loops(name)}
    for name in held:
        package, _, last = name.rpartition(".")
        vars(sys.modules[package]).pop(last, None)
        del sys.modules[name]
    return held


@contextmanager
def numba_blocked():
    """Have loops run uncompiled, as where numba is not installed."""
    held = forget()
    try:
        with patch.dict(sys.modules, {"numba": None}):
            yield
            forget()
    finally:
        forget()
        for name, module in held.items():
            package, _, last = name.rpartition(".")
            setattr(sys.modules[package], last, module)
            sys.modules[name] = module


def both(function, *arguments):
    """Return what two calls write into copies of the arguments, and return: compiled, and not."""
    results = []
    for block in (False, True):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        if block:
            with numba_blocked():
                call = getattr(import_module("shuffledp.randomizers.randomizer_kernels"), function)
                assert not hasattr(call, "py_func")
                returned = call(*copies)
        else:
            call = getattr(import_module("shuffledp.randomizers.randomizer_kernels"), function)
            assert hasattr(call, "py_func")
            returned = call(*copies)
        results.append([*copies, returned])
    return results


def assert_same(function, *arguments):
    """Check that a loop writes and returns the same bits compiled and uncompiled; return them."""
    compiled, plain = both(function, *arguments)
    for one, other in zip(compiled, plain, strict=True):
        assert np.array_equal(one, other)
    return plain


def generator_of(seed):
    return Entropy.from_seed(seed).generator()


class TestBlocking:
    def test_the_loaded_modules_come_back(self):
        name = "shuffledp.randomizers.randomizer_kernels"
        compiled = import_module(name)
        with numba_blocked():
            assert import_module(name) is not compiled
        assert import_module(name) is compiled
        assert vars(sys.modules["shuffledp.randomizers"])["randomizer_kernels"] is compiled


class TestLoops:
    @pytest.mark.parametrize(("k", "size"), [(2, 1), (16, 8), (100, 37)])
    def test_subset_selection(self, k, size):
        codes = generator_of(k).integers(0, k, 20).astype(np.uint32)
        coins = generator_of(k).integers(0, 2**64, 20, dtype=np.uint64)
        # Zeros are refused by every bound but the powers of two.
        words = generator_of(k).integers(0, 2**32, 10 * size, dtype=np.uint32)
        words[::7] = 0
        rows = np.zeros((20, -(-k // 8)), dtype=np.uint8)
        more = (np.uint64(2**63), k - 1, size, 0)
        found = assert_same("place_members", rows, codes, coins, words, *more)
        assert 0 < found[-1] <= 10 * size

    # Infinities, a quiet NaN and one that signals.
    @pytest.mark.parametrize("wrong", [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001])
    def test_impossible_reports_are_refused(self, wrong):
        randomizer = VECTOR_RANDOMIZERS["privunit"](dimension=3, norm_bound=1.0, epsilon0=1.0)
        rows = randomizer.randomize(np.zeros((5, 3)), Entropy.from_seed(1)).data.copy()
        rows.view(np.uint32)[3, 1] = wrong
        forged = Reports(data=rows, fingerprint=randomizer.fingerprint)
        with numba_blocked(), pytest.raises(DomainError, match="report 3 has the norm"):
            randomizer.aggregate(forged)


CASES = [
    *(
        (make_randomizer(name, domain_size=k, epsilon0=epsilon0), np.arange(300) % k)
        for name in RANDOMIZERS
        for k, epsilon0 in ((2, 0.0), (50, 2.0))
    ),
    *(
        (make(low=-1, high=1, epsilon0=epsilon0), np.linspace(-1, 1, 300))
        for make in NUMBER_RANDOMIZERS.values()
        for epsilon0 in (0.2, 3.0)
    ),
    *(
        (make(dimension=dimension, norm_bound=2.0, epsilon0=3.0), np.eye(50)[:, :dimension])
        for make in VECTOR_RANDOMIZERS.values()
        for dimension in (2, 17)
    ),
    *(
        (
            ANSWER_SET_RANDOMIZERS[name](domain_size=6, max_answers=2, epsilon0=3.0),
            np.tile([[0, 5], [3, -1]], (100, 1)),
        )
        for name in SETS
    ),
]


@pytest.mark.parametrize(
    ("randomizer", "values"), CASES, ids=lambda value: getattr(value, "name", None)
)
def test_a_seed_gives_the_same_reports(randomizer, values):
    expected = randomizer.randomize(values, Entropy.from_seed(5))
    aggregate = randomizer.aggregate(expected)
    with numba_blocked():
        found = randomizer.randomize(values, Entropy.from_seed(5))
        again = randomizer.aggregate(expected)
    assert found.data.dtype == expected.data.dtype
    assert np.array_equal(found.data, expected.data)
    for field in ("support", "total", "total_of_squares"):
        if hasattr(again, field):
            assert np.array_equal(getattr(again, field), getattr(aggregate, field))


# Also where what is compiled overflows to infinity and plain Python would raise.
@pytest.mark.parametrize("epsilon0", [1e-6, 0.5, 8.0, 199.0])
@pytest.mark.parametrize(
    ("name", "k"), [("k-rr", 2), ("k-rr", 50), ("optimized-unary", 5), ("hadamard-response", 9)]
)
def test_the_same_bounds_on_delta(name, k, epsilon0):
    profile = make_randomizer(name, domain_size=k, epsilon0=epsilon0).profile
    for num_users in (1, 10, 9000, 10**15):
        asked = {"num_users": num_users, "epsilon": 0.3 * epsilon0, "with_lower": False}
        expected = account_delta(profile, **asked)
        with numba_blocked():
            found = account_delta(profile, **asked)
        assert found.method == expected.method
        assert found.upper == pytest.approx(expected.upper, rel=PROMISED, abs=0.0)


# A light client: neither numba nor polars. Estimates lie at most ten of their standard errors from
# the truth, which is a matter of the code rather than of chance.
LIGHT_CLIENT = f"""
import sys

sys.modules["numba"] = sys.modules["polars"] = None
import numpy as np
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS, RANDOMIZERS, VECTOR_RANDOMIZERS
)
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS

done = 0


def check(randomizer, values, truth, **options):
    global done
    reports = randomizer.randomize(values, Entropy.from_seed(1))
    assert reports.num_reports == 50
    estimates = randomizer.estimate(randomizer.aggregate(reports), **options)
    found = estimates.frequency if hasattr(estimates, "frequency") else estimates.mean
    assert np.all(np.abs(found - truth) <= 10 * estimates.standard_error), randomizer
    done += 1


for make in RANDOMIZERS.values():
    check(make(domain_size=5, epsilon0=2.0), np.arange(50) % 5, np.full(5, 1 / 5))
for make in NUMBER_RANDOMIZERS.values():
    check(make(low=0, high=1, epsilon0=2.0), np.full(50, 0.3), 0.3)
for make in VECTOR_RANDOMIZERS.values():
    vectors = np.tile([0.6, 0.0, 0.8], (50, 1))
    check(make(dimension=3, norm_bound=1.0, epsilon0=2.0), vectors, vectors[0])
for name in {SETS!r}:
    answers = np.tile([[0, 2], [1, -1]], (25, 1))
    randomizer = ANSWER_SET_RANDOMIZERS[name](domain_size=3, max_answers=2, epsilon0=4.0)
    check(randomizer, answers, np.full(3, 0.5))
print(done, "done")
"""


def test_a_light_client():
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIGHT_CLIENT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    num_randomizers = sum(map(len, (RANDOMIZERS, NUMBER_RANDOMIZERS, VECTOR_RANDOMIZERS, SETS)))
    assert outcome.stdout.splitlines()[-1] == f"{num_randomizers} done"
