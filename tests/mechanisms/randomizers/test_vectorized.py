"""Loops in NumPy beside the compiled ones: the same reports, or exactly the same law."""

import inspect
import itertools
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.mechanisms.randomizers import (
    k_randomized_response_kernels,
    loops,
    packed_bits_kernels,
    subset_selection_kernels,
    vectorized,
)
from shuffledp.mechanisms.randomizers.categories import (
    k_randomized_response_numpy as vectorized_k_rr,
)
from shuffledp.mechanisms.randomizers.categories import packed_bits_numpy as vectorized_bits
from shuffledp.mechanisms.randomizers.categories import subset_selection_numpy as vectorized_subsets
from shuffledp.mechanisms.randomizers.categories.k_randomized_response import KRandomizedResponse
from shuffledp.mechanisms.randomizers.categories.optimized_unary import OptimizedUnaryEncoding
from shuffledp.mechanisms.randomizers.categories.packed_bits import column_sums
from shuffledp.mechanisms.randomizers.categories.subset_selection import SubsetSelection
from shuffledp.mechanisms.randomizers.categories.symmetric_unary import SymmetricUnaryEncoding

TWINS = [
    (k_randomized_response_kernels, vectorized_k_rr),
    (packed_bits_kernels, vectorized_bits),
    (subset_selection_kernels, vectorized_subsets),
]
CLASSES = [KRandomizedResponse, SymmetricUnaryEncoding, OptimizedUnaryEncoding, SubsetSelection]
# Those that write the same reports with either kind of loops.
SAME_REPORTS = [KRandomizedResponse, SubsetSelection]


@pytest.fixture
def without_numba(monkeypatch):
    """Make `import numba` fail, as where it is not installed."""
    has_numba = loops._has_numba
    monkeypatch.setitem(sys.modules, "numba", None)
    has_numba.cache_clear()
    yield
    has_numba.cache_clear()  # asked again once the module is back


def generator_of(seed):
    return Entropy.from_seed(seed).generator()


@pytest.mark.parametrize(("compiled", "twin"), TWINS)
def test_twins_have_the_same_functions_and_signatures(compiled, twin):
    names = [
        name
        for name, function in vars(compiled).items()
        if hasattr(function, "py_func")
        and function.__module__ == compiled.__name__
        and not name.startswith("_")
    ]
    assert names
    for name in names:
        expected = inspect.signature(getattr(compiled, name).py_func)
        assert inspect.signature(getattr(twin, name)) == expected


class TestKRandomizedResponse:
    @pytest.mark.parametrize(
        ("k", "epsilon0"),
        list(itertools.product((2, 3, 16, 257, 10_000_000, 2**32 - 1), (0.01, 3.0, 30.0, 60.0))),
    )
    def test_the_same_reports(self, k, epsilon0):
        randomizer = KRandomizedResponse(k=k, epsilon0=epsilon0)
        edges = [randomizer.threshold * j for j in range(min(k, 300))]
        edges += [randomizer.threshold * (k - 1 - j) for j in range(min(k, 300))]
        words = [w + d for w in edges for d in (-1, 0, 1) if 0 <= w + d < 2**64]
        words = np.array([*words, 2**64 - 1, *Entropy.from_seed(1).words(500)], dtype=np.uint64)
        dtype = np.min_scalar_type(k - 1)
        codes = (np.arange(words.size) * 7919 % k).astype(dtype)
        expected, found = np.empty_like(codes), np.empty_like(codes)
        for module, out in (
            (k_randomized_response_kernels, expected),
            (vectorized_k_rr, found),
        ):
            module.randomize_block(codes, words, np.uint64(randomizer.threshold), np.uint64(k), out)
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("num_tables", [1, 4])
    @pytest.mark.parametrize("num_users", [0, 1, 3, 10_001])
    def test_the_same_counts(self, num_tables, num_users):
        codes = generator_of(num_users).integers(0, 300, num_users).astype(np.uint16)
        expected, found = (np.ones((num_tables, 300), dtype=np.int64) for _ in range(2))
        k_randomized_response_kernels.count_codes(codes, expected)
        vectorized_k_rr.count_codes(codes, found)
        assert np.array_equal(found, expected)


class TestPackedBits:
    @pytest.mark.parametrize("threshold", [1, 2**62, 2**63 - 1, 2**63, 2**64 // 149])
    def test_each_bit_has_a_word_of_its_own(self, threshold):
        words = Entropy.from_seed(2).words(64 * 5 + 63)
        words[:3] = threshold - 1, threshold, 0
        lanes = np.zeros(9, dtype=np.uint64)
        assert vectorized_bits.fill_bernoulli(words, np.uint64(threshold), lanes) == 5
        bits = [int(lane) >> position & 1 for lane in lanes[:5] for position in range(64)]
        assert bits == [int(word < threshold) for word in words[: 64 * 5].tolist()]
        assert not lanes[5:].any()

    def test_filling_stops_where_words_or_lanes_end(self):
        lanes = np.zeros(2, dtype=np.uint64)
        for num_words, num_filled in ((0, 0), (63, 0), (64, 1), (127, 1), (128, 2), (999, 2)):
            words = np.zeros(num_words, dtype=np.uint64)
            assert vectorized_bits.fill_bernoulli(words, np.uint64(1), lanes) == num_filled

    @pytest.mark.parametrize("k", [2, 8, 9, 1000])
    def test_the_same_true_bits(self, k):
        generator = generator_of(k)
        codes = generator.integers(0, k, 1000).astype(np.uint32)
        coins = generator.integers(0, 2**64, 16, dtype=np.uint64)
        rows = generator.integers(0, 256, (1000, -(-k // 8)), dtype=np.uint8)
        for name, more in (("flip_true_bits", ()), ("replace_true_bits", (coins,))):
            expected, found = rows.copy(), rows.copy()
            getattr(packed_bits_kernels, name)(expected, codes, *more)
            getattr(vectorized_bits, name)(found, codes, *more)
            assert np.array_equal(found, expected)
            assert not np.array_equal(found, rows)

    @pytest.mark.parametrize("row_bytes", [1, 2, 3, 8, 13, 128])
    @pytest.mark.parametrize("num_rows", [0, 1, 700, 20_000])
    def test_the_same_sums(self, row_bytes, num_rows, without_numba, monkeypatch):
        rows = generator_of(num_rows).integers(0, 256, (num_rows, row_bytes), dtype=np.uint8)
        rows[:, 0] = 255
        found = column_sums(rows)
        monkeypatch.setattr(loops, "_has_numba", lambda: True)
        assert np.array_equal(column_sums(rows), found)
        assert found[:8].tolist() == [num_rows] * 8


class TestSubsetSelection:
    @pytest.mark.parametrize(
        ("k", "size"), [(2, 1), (3, 1), (16, 2), (16, 8), (100, 37), (1024, 122), (5000, 300)]
    )
    @pytest.mark.parametrize("num_words", [1, 2, 50, 3001])
    def test_the_same_rows(self, k, size, num_words):
        generator = generator_of(k)
        codes = generator.integers(0, k, 70).astype(np.uint32)
        coins = generator.integers(0, 2**64, 70, dtype=np.uint64)
        # Zeros are refused by every bound but the powers of two.
        words = generator.integers(0, 2**32, 40_000, dtype=np.uint32)
        words[generator.integers(0, words.size, 2000)] = 0
        expected, found = (np.zeros((70, -(-k // 8)), dtype=np.uint8) for _ in range(2))
        placed = 0
        for start in range(0, min(words.size, 40 * num_words), num_words):
            part = words[start : start + num_words]
            more = (np.uint64(2**63), k - 1, size, placed)
            placed = subset_selection_kernels.place_members(expected, codes, coins, part, *more)
            assert vectorized_subsets.place_members(found, codes, coins, part, *more) == placed
            assert np.array_equal(found, expected)
        assert expected.any() or num_words * 40 < 50

    def test_many_refusals(self):
        # Above 2^31 nearly every other half word is refused. Rows of so many bits would not fit,
        # so only the integers are compared, with plain arithmetic.
        bounds = np.array([2**31 + 1, 2**31 + 2, 3 * 2**30 + 1] * 100)
        words = generator_of(1).integers(0, 2**32, 2000, dtype=np.uint32)
        remaining = iter(words.tolist())
        expected = []
        for bound in bounds.tolist():
            product = next(remaining) * bound
            while product % 2**32 < 2**32 % bound:
                product = next(remaining) * bound
            expected.append(product >> 32)
        assert vectorized_subsets._uniform_integers(words, bounds).tolist() == expected

    def test_without_a_truth(self):
        k, size = 30, 15
        codes = np.full(50, k, dtype=np.uint32)
        coins = np.zeros(50, dtype=np.uint64)
        words = generator_of(3).integers(0, 2**32, 50 * size, dtype=np.uint32)
        expected, found = (np.zeros((50, 4), dtype=np.uint8) for _ in range(2))
        more = (codes, coins, words, np.uint64(0), k, size, 0)
        assert subset_selection_kernels.place_members(expected, *more) == 50 * size
        assert vectorized_subsets.place_members(found, *more) == 50 * size
        assert np.array_equal(found, expected)


class TestLoops:
    @pytest.mark.parametrize(("compiled", "twin"), TWINS)
    def test_compiled_loops_come_first(self, compiled, twin):
        name = twin.__name__.rpartition(".")[2]
        assert name in loops.VECTORIZED
        assert loops.loops(name) is compiled

    @pytest.mark.parametrize("twin", [twin for _, twin in TWINS])
    def test_twins_come_second(self, twin, without_numba):
        assert loops.loops(twin.__name__.rpartition(".")[2]) is twin

    def test_loops_without_a_twin_name_numba(self, without_numba):
        with pytest.raises(ParameterError, match="'local_hashing' need numba"):
            loops.loops("local_hashing")

    def test_every_twin_is_listed(self):
        found = {module.name for module in pkgutil.iter_modules(vectorized.__path__)}
        assert set(loops.VECTORIZED) == found
        assert {twin.__name__.rpartition(".")[2] for _, twin in TWINS} == found


class TestWithoutNumba:
    @pytest.mark.parametrize("kind", CLASSES)
    @pytest.mark.parametrize("k", [2, 7, 16, 1000])
    @pytest.mark.parametrize("epsilon0", [0.0, 1.0])
    def test_reports_are_made_and_counted(self, kind, k, epsilon0, without_numba):
        randomizer = kind(k=k, epsilon0=epsilon0)
        for num_users in (0, 1, 3000):
            reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(4))
            assert reports.num_reports == num_users
            counts = randomizer.aggregate(reports)
            assert counts.support.tolist() == randomizer.supports(reports).sum(axis=0).tolist()

    @pytest.mark.parametrize("kind", SAME_REPORTS)
    @pytest.mark.parametrize("epsilon0", [0.0, 0.3, 2.0])
    def test_a_seed_gives_the_same_reports(self, kind, epsilon0, without_numba, monkeypatch):
        randomizer = kind(k=50, epsilon0=epsilon0)
        codes = np.arange(40_000) % 50
        found = randomizer.randomize(codes, Entropy.from_seed(5)).data
        monkeypatch.setattr(loops, "_has_numba", lambda: True)
        assert np.array_equal(randomizer.randomize(codes, Entropy.from_seed(5)).data, found)

    @pytest.mark.parametrize("kind", CLASSES)
    def test_at_a_huge_epsilon0_nothing_but_the_truth_is_supported(self, kind, without_numba):
        codes = np.arange(5000) % 9
        randomizer = kind(k=9, epsilon0=200.0)
        supported = randomizer.supports(randomizer.randomize(codes, Entropy.from_seed(6)))
        if kind is OptimizedUnaryEncoding:  # whose true bit is a fair coin
            supported |= np.eye(9, dtype=bool)[codes]
        assert np.array_equal(supported, np.eye(9, dtype=bool)[codes])

    def test_in_an_interpreter_that_never_sees_numba(self):
        program = """
import sys
sys.modules["numba"] = None
import numpy as np
from shuffledp.core.entropy import Entropy
from shuffledp.mechanisms.randomizers import KRandomizedResponse, SymmetricUnaryEncoding
from shuffledp.mechanisms.randomizers.categories.subset_selection import SubsetSelection
for kind in (KRandomizedResponse, SymmetricUnaryEncoding, SubsetSelection):
    randomizer = kind(k=9, epsilon0=80.0)
    reports = randomizer.randomize(np.arange(90) % 9, Entropy.from_seed(1))
    print(*randomizer.aggregate(reports).support)
"""
        outcome = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        # A bit is wrong with probability below e^-40.
        assert outcome.stdout.splitlines() == [" ".join(["10"] * 9)] * 3
