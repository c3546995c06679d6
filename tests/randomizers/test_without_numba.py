"""Loops that run uncompiled, where numba cannot be imported: the same reports and bounds."""

import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest

from oracles.hashed_laws import HashedLaw
from printed_numbers import PROMISED
from shuffledp.accounting.amplification.registry import account_delta
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.reports import Reports
from shuffledp.randomizers import Piecewise, make_randomizer
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.linear_hashing import count_by_digits
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    STRING_RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)
from shuffledp.randomizers.vector_reports import layers

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


def both(name, function, *arguments):
    """Return what two calls write into copies of the arguments, and return: compiled, and not."""
    results = []
    for block in (False, True):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        if block:
            with numba_blocked():
                call = getattr(import_module(f"shuffledp.randomizers.{name}_kernels"), function)
                assert not hasattr(call, "py_func")
                returned = call(*copies)
        else:
            call = getattr(import_module(f"shuffledp.randomizers.{name}_kernels"), function)
            assert hasattr(call, "py_func")
            returned = call(*copies)
        results.append([*copies, returned])
    return results


def assert_same(name, function, *arguments):
    """Check that a loop writes and returns the same bits compiled and uncompiled; return them."""
    compiled, plain = both(name, function, *arguments)
    for one, other in zip(compiled, plain, strict=True):
        assert np.array_equal(one, other)
    return plain


def generator_of(seed):
    return Entropy.from_seed(seed).generator()


def words_at(edges, num_random=100):
    """Return words on either side of each edge, the last word, and random ones."""
    near = [edge + d for edge in edges for d in (-1, 0, 1) if 0 <= edge + d < 2**64]
    return np.array([*near, 2**64 - 1, *Entropy.from_seed(1).words(num_random)], dtype=np.uint64)


class TestBlocking:
    def test_the_loaded_modules_come_back(self):
        name = "shuffledp.randomizers.category_kernels"
        compiled = import_module(name)
        with numba_blocked():
            assert import_module(name) is not compiled
        assert import_module(name) is compiled
        assert vars(sys.modules["shuffledp.randomizers"])["category_kernels"] is compiled


class TestLoops:
    @pytest.mark.parametrize("k", [2, 3, 16, 257, 10_000_000, 2**32 - 1])
    @pytest.mark.parametrize("epsilon0", [0.01, 3.0, 60.0])
    def test_k_randomized_response(self, k, epsilon0):
        threshold = make_randomizer("k-rr", domain_size=k, epsilon0=epsilon0).threshold
        numbers = {*range(min(k, 20)), *range(max(0, k - 20), k)}
        words = words_at([threshold * number for number in sorted(numbers)])
        codes = (np.arange(words.size) * 7919 % k).astype(np.min_scalar_type(k - 1))
        out = np.empty_like(codes)
        name = "category"
        assert_same(name, "randomize_block", codes, words, np.uint64(threshold), np.uint64(k), out)

    @pytest.mark.parametrize("num_bits", [1, 7, 32])
    def test_hadamard_response(self, num_bits):
        generator = generator_of(num_bits)
        codes = generator.integers(0, 2**num_bits, 300, dtype=np.uint64).astype(np.uint32)
        words, coins = generator.integers(0, 2**64, (2, 300), dtype=np.uint64)
        coins[:3] = 2**62 - 1, 2**62, 2**62 + 1
        more = (np.uint64(2**62), np.uint64(64 - num_bits), np.empty(300, dtype=np.uint64))
        name = "category"
        assert_same(name, "randomize_binary_block", codes, words, coins, *more)

    @pytest.mark.parametrize(
        ("g", "num_digits"), [(3, 1), (3, 21), (53, 2), (257, 4), (65_537, 2), (2_097_143, 2)]
    )
    def test_seeds_and_buckets(self, g, num_digits):
        k = min(g**num_digits, 2**32 - 1)
        codes = generator_of(g).integers(0, k, 100, dtype=np.uint32)
        codes[:4] = 0, k - 1, 0, k - 1
        words = generator_of(g).integers(0, 2**64, 100, dtype=np.uint64)
        words[:4] = 0, 0, 2**64 - 1, 2**64 - 1
        more = (np.uint64(g), num_digits, np.empty(100, dtype=np.uint32))
        found = assert_same("category", "hash_block", codes, words, *more)
        assert found[1].tolist() == [word * g**num_digits >> 64 for word in words.tolist()]

    @pytest.mark.parametrize(("k", "g"), [(10, 3), (81, 3), (50, 53)])
    @pytest.mark.parametrize("num_users", [1, 200])
    def test_counts_of_seeds_and_buckets(self, k, g, num_users):
        law = HashedLaw(domain_size=k, num_buckets=g, threshold=2**64 // (2 * g))
        data = law.randomize(np.arange(num_users) % k, Entropy.from_seed(k)).data
        expected = [count_by_digits(law, data, j) for j in range(law.num_digits)]
        with numba_blocked():
            found = [count_by_digits(law, data, j) for j in range(law.num_digits)]
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize(("k", "size"), [(2, 1), (16, 8), (100, 37)])
    def test_subset_selection(self, k, size):
        codes = generator_of(k).integers(0, k, 20).astype(np.uint32)
        coins = generator_of(k).integers(0, 2**64, 20, dtype=np.uint64)
        # Zeros are refused by every bound but the powers of two.
        words = generator_of(k).integers(0, 2**32, 10 * size, dtype=np.uint32)
        words[::7] = 0
        rows = np.zeros((20, -(-k // 8)), dtype=np.uint8)
        more = (np.uint64(2**63), k - 1, size, 0)
        found = assert_same("category", "place_members", rows, codes, coins, words, *more)
        assert 0 < found[-1] <= 10 * size

    @pytest.mark.parametrize("threshold", [1, 2**62, 2**63, 2**64 // 149, 2**64 - 1])
    def test_bernoulli_bits(self, threshold):
        words = Entropy.from_seed(2).words(300)
        words[:80] = 2**64 - 1  # undecided for as long as T has ones
        lanes = np.zeros(9, dtype=np.uint64)
        assert_same("category", "fill_bernoulli", words, np.uint64(threshold), lanes)

    @pytest.mark.parametrize("epsilon0", [0.0, 0.01, 4.0, 15.0, 1e300])
    def test_piecewise(self, epsilon0):
        law = Piecewise(low=0, high=1, epsilon0=epsilon0).law
        border = law.num_steps * law.threshold
        edges = [number * law.threshold for number in (0, 1, 2, law.num_steps - 1)]
        edges += [border + number * law.high_threshold for number in range(min(law.window, 20))]
        words = words_at(edges)
        points = (np.arange(words.size) * 7919 % (law.num_steps + 1)).astype(np.int32)
        numbers = (law.threshold, law.high_threshold, law.num_steps, law.window)
        out = np.empty(words.size, dtype=np.uint16)
        more = (*map(np.uint64, numbers), out)
        assert_same("number", "randomize_piecewise", points, words, *more)

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
    def test_sums_of_scores(self, dtype):
        codes = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max] * 20, dtype=dtype)
        for centre in (0, 2**20 + 1):
            assert_same("number", "sum_scores", codes, centre)

    def test_hashes_of_texts(self):
        lengths = np.array([*range(20), 8, 0, 255, 256, 264])
        buffer = generator_of(1).integers(0, 256, int(lengths.sum()) + 1, dtype=np.uint8)
        more = (buffer, np.cumsum(lengths), np.empty(lengths.size, dtype=np.uint64))
        key = (np.uint64(2**64 - 1), np.uint64(5))
        assert_same("string", "hash_texts", *key, *more)

    def test_normals_outside_the_cores(self):
        # Large fractions, and then the lowest layer: most attempts end in a tail.
        words = Entropy.from_seed(2).words(900) | np.uint64(0x7F00000000000000)
        words[300:] &= np.uint64(2**64 - 256)
        compiled, plain = both("vector", "fill_normals", words, *layers(), np.zeros(900))
        assert compiled[-1] == plain[-1]
        # In the tail there is a logarithm, which libraries round in their own way.
        np.testing.assert_array_max_ulp(compiled[-2], plain[-2], maxulp=2)
        assert (np.abs(plain[-2]) > layers()[0][1]).sum() > 20

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
            make(epsilon0=3.0, key=bytes(16), num_hashes=8, num_buckets=16),
            ["yes", "no", "a text of more than eight bytes", ""] * 20,
        )
        for make in STRING_RANDOMIZERS.values()
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
    NUMBER_RANDOMIZERS, RANDOMIZERS, STRING_RANDOMIZERS, VECTOR_RANDOMIZERS
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
for make in STRING_RANDOMIZERS.values():
    texts = ["yes"] * 30 + ["perhaps and perhaps not"] * 20
    sketch = make(epsilon0=2.0, key=bytes(16), num_hashes=16, num_buckets=64)
    check(sketch, texts, np.array([3, 2]) / 5, dictionary=["yes", "perhaps and perhaps not"])
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
    num_randomizers = sum(
        map(len, (RANDOMIZERS, NUMBER_RANDOMIZERS, VECTOR_RANDOMIZERS, STRING_RANDOMIZERS, SETS))
    )
    assert outcome.stdout.splitlines()[-1] == f"{num_randomizers} done"
