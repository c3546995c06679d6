"""Loops in NumPy beside the compiled ones: the same reports, or exactly the same law."""

import copy
import inspect
import itertools
import math
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import shuffledp.randomizers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers import loops, make_randomizer
from shuffledp.randomizers.categories.linear_hashing import HashedResponse
from shuffledp.randomizers.categories.linear_hashing_counts import (
    count_by_digits,
    count_supports,
)
from shuffledp.randomizers.categories.packed_bits import column_sums
from shuffledp.randomizers.numbers import DiscreteLaplace, Piecewise, laplace
from shuffledp.randomizers.numbers.rounding import Span
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    STRING_RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)
from shuffledp.randomizers.sets.registry import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.vectors.normals import layers, standard_normals

PACKAGE = Path(shuffledp.randomizers.__file__).parent

# Every module of compiled loops, such as "categories.packed_bits".
NAMES = sorted(
    ".".join(path.relative_to(PACKAGE).parts).removesuffix("_kernels.py")
    for path in PACKAGE.rglob("*_kernels.py")
)

# Where the compiled function takes single words, and its twin arrays of them.
TAKE_ARRAYS = {"hash_pair", "parity"}

# Randomizers that draw other reports from the same words. Unary encodings look at other digits of
# them; discrete Laplace noise is drawn for many users at once.
OTHER_REPORTS = {"symmetric-unary", "optimized-unary", "count-mean-sketch", "laplace"}
SETS = ("sampled:k-rr", "sampled:subset-selection", "split:optimized-local-hashing")

# Probability that correct code fails this module: Bonferroni over all of its comparisons. Every
# cell expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to the exact
# one. All other tests are exact.
FALSE_POSITIVE_RATE = 1e-10
LEAST_EXPECTED = 500
LAPLACE_LAWS = ((1, 0.3), (1, 3.0), (4, 2.0), (1024, 12.0))
NUM_COMPARISONS = len(RANDOMIZERS) + len(LAPLACE_LAWS) + 1
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_COMPARISONS
NUM_REPORTS = 300_000


def twins(name):
    """Return the compiled loops of that name, and their twins."""
    full_name = f"{shuffledp.randomizers.__name__}.{name}"
    return import_module(f"{full_name}_kernels"), import_module(f"{full_name}_numpy")


def generator_of(seed):
    return Entropy.from_seed(seed).generator()


@pytest.fixture
def without_numba(monkeypatch):
    """Have randomizers run the loops in NumPy."""
    monkeypatch.setattr(loops, "_has_numba", lambda: False)


@pytest.fixture
def hidden_numba(monkeypatch):
    """Make `import numba` fail, as where it is not installed."""
    has_numba = loops._has_numba
    monkeypatch.setitem(sys.modules, "numba", None)
    has_numba.cache_clear()
    yield
    has_numba.cache_clear()  # asked again once the module is back


class TestLoops:
    def test_every_module_has_a_twin(self):
        assert "categories.packed_bits" in NAMES
        found = {
            ".".join(path.relative_to(PACKAGE).parts).removesuffix("_numpy.py")
            for path in PACKAGE.rglob("*_numpy.py")
        }
        assert found == set(NAMES)

    @pytest.mark.parametrize("name", NAMES)
    def test_twins_have_the_same_functions_and_signatures(self, name):
        compiled, twin = twins(name)
        functions = [
            attribute
            for attribute, value in vars(compiled).items()
            if hasattr(value, "py_func")
            and value.__module__ == compiled.__name__
            and not attribute.startswith("_")
        ]
        assert functions
        for function in functions:
            expected = inspect.signature(getattr(compiled, function).py_func)
            found = inspect.signature(getattr(twin, function))
            if function in TAKE_ARRAYS:
                assert list(found.parameters) == list(expected.parameters)
            else:
                assert found == expected

    def test_randomizers_import_compiled_loops_through_this_module_only(self):
        importing = re.compile(r"import .*_kernels|from .*_kernels import|import_module")
        offenders = [
            path.name
            for path in PACKAGE.rglob("*.py")
            if not path.name.endswith("_kernels.py")
            and path.name != "loops.py"
            and importing.search(path.read_text(encoding="utf-8"))
        ]
        assert offenders == []
        assert importing.search("    from shuffledp.a.b_kernels import c")

    @pytest.mark.parametrize("name", NAMES)
    def test_compiled_loops_come_first(self, name):
        assert loops.loops(name) is twins(name)[0]

    @pytest.mark.parametrize("name", NAMES)
    def test_twins_come_second(self, name, hidden_numba):
        assert loops.loops(name) is sys.modules[twins(name)[1].__name__]

    def test_loops_without_a_twin_name_numba(self, hidden_numba):
        with pytest.raises(ParameterError, match=r"'categories\.nothing' need numba"):
            loops.loops("categories.nothing")

    def test_what_a_twin_misses_is_named(self, hidden_numba, monkeypatch):
        twin = twins("strings.sketch")[1].__name__
        monkeypatch.delitem(sys.modules, twin)
        monkeypatch.setitem(sys.modules, twin.replace("sketch", "keyed_hash"), None)
        with pytest.raises(ModuleNotFoundError, match="keyed_hash_numpy"):
            loops.loops("strings.sketch")


class TestKRandomizedResponse:
    compiled, twin = twins("categories.k_randomized_response")

    @pytest.mark.parametrize(
        ("k", "epsilon0"),
        list(itertools.product((2, 3, 16, 257, 10_000_000, 2**32 - 1), (0.01, 3.0, 30.0, 60.0))),
    )
    def test_the_same_reports(self, k, epsilon0):
        randomizer = make_randomizer("k-rr", k=k, epsilon0=epsilon0)
        edges = [randomizer.threshold * j for j in range(min(k, 300))]
        edges += [randomizer.threshold * (k - 1 - j) for j in range(min(k, 300))]
        words = [w + d for w in edges for d in (-1, 0, 1) if 0 <= w + d < 2**64]
        words = np.array([*words, 2**64 - 1, *Entropy.from_seed(1).words(500)], dtype=np.uint64)
        dtype = np.min_scalar_type(k - 1)
        codes = (np.arange(words.size) * 7919 % k).astype(dtype)
        expected, found = np.empty_like(codes), np.empty_like(codes)
        more = (np.uint64(randomizer.threshold), np.uint64(k))
        self.compiled.randomize_block(codes, words, *more, expected)
        self.twin.randomize_block(codes, words, *more, found)
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("num_tables", [1, 4])
    @pytest.mark.parametrize("num_users", [0, 1, 3, 10_001])
    def test_the_same_counts(self, num_tables, num_users):
        codes = generator_of(num_users).integers(0, 300, num_users).astype(np.uint16)
        expected, found = (np.ones((num_tables, 300), dtype=np.int64) for _ in range(2))
        self.compiled.count_codes(codes, expected)
        self.twin.count_codes(codes, found)
        assert np.array_equal(found, expected)


class TestPackedBits:
    compiled, twin = twins("categories.packed_bits")

    @pytest.mark.parametrize("threshold", [1, 2**62, 2**63 - 1, 2**63, 2**64 // 149])
    def test_each_bit_has_a_word_of_its_own(self, threshold):
        words = Entropy.from_seed(2).words(64 * 5 + 63)
        words[:3] = threshold - 1, threshold, 0
        lanes = np.zeros(9, dtype=np.uint64)
        assert self.twin.fill_bernoulli(words, np.uint64(threshold), lanes) == 5
        bits = [int(lane) >> position & 1 for lane in lanes[:5] for position in range(64)]
        assert bits == [int(word < threshold) for word in words[: 64 * 5].tolist()]
        assert not lanes[5:].any()

    def test_filling_stops_where_words_or_lanes_end(self):
        lanes = np.zeros(2, dtype=np.uint64)
        for num_words, num_filled in ((0, 0), (63, 0), (64, 1), (127, 1), (128, 2), (999, 2)):
            words = np.zeros(num_words, dtype=np.uint64)
            assert self.twin.fill_bernoulli(words, np.uint64(1), lanes) == num_filled

    @pytest.mark.parametrize("k", [2, 8, 9, 1000])
    def test_the_same_true_bits(self, k):
        generator = generator_of(k)
        codes = generator.integers(0, k, 1000).astype(np.uint32)
        coins = generator.integers(0, 2**64, 16, dtype=np.uint64)
        rows = generator.integers(0, 256, (1000, -(-k // 8)), dtype=np.uint8)
        for name, more in (("flip_true_bits", ()), ("replace_true_bits", (coins,))):
            expected, found = rows.copy(), rows.copy()
            getattr(self.compiled, name)(expected, codes, *more)
            getattr(self.twin, name)(found, codes, *more)
            assert np.array_equal(found, expected)
            assert not np.array_equal(found, rows)

    @pytest.mark.parametrize("row_bytes", [1, 2, 3, 8, 13, 128])
    @pytest.mark.parametrize("num_rows", [0, 1, 700, 20_000])
    def test_the_same_sums(self, row_bytes, num_rows, monkeypatch):
        rows = generator_of(num_rows).integers(0, 256, (num_rows, row_bytes), dtype=np.uint8)
        rows[:, 0] = 255
        expected = column_sums(rows)
        monkeypatch.setattr(loops, "_has_numba", lambda: False)
        assert np.array_equal(column_sums(rows), expected)
        assert expected[:8].tolist() == [num_rows] * 8


class TestSubsetSelection:
    compiled, twin = twins("categories.subset_selection")

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
            placed = self.compiled.place_members(expected, codes, coins, part, *more)
            assert self.twin.place_members(found, codes, coins, part, *more) == placed
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
        assert self.twin._uniform_integers(words, bounds).tolist() == expected

    def test_without_a_truth(self):
        k, size = 30, 15
        codes = np.full(50, k, dtype=np.uint32)
        coins = np.zeros(50, dtype=np.uint64)
        words = generator_of(3).integers(0, 2**32, 50 * size, dtype=np.uint32)
        expected, found = (np.zeros((50, 4), dtype=np.uint8) for _ in range(2))
        more = (codes, coins, words, np.uint64(0), k, size, 0)
        assert self.compiled.place_members(expected, *more) == 50 * size
        assert self.twin.place_members(found, *more) == 50 * size
        assert np.array_equal(found, expected)


class TestLinearHashing:
    compiled, twin = twins("categories.linear_hashing")

    @pytest.mark.parametrize(
        ("g", "num_digits"),
        [(3, 1), (3, 5), (3, 21), (5, 14), (53, 2), (257, 4), (65_537, 2), (2_097_143, 2)],
    )
    def test_the_same_seeds_and_buckets(self, g, num_digits):
        k = min(g**num_digits, 2**32 - 1)
        generator = generator_of(g)
        codes = generator.integers(0, k, 2000, dtype=np.uint32)
        codes[:4] = 0, k - 1, 0, k - 1
        words = generator.integers(0, 2**64, 2000, dtype=np.uint64)
        words[:4] = 0, 0, 2**64 - 1, 2**64 - 1
        results = []
        for module in (self.compiled, self.twin):
            seeds, buckets = words.copy(), np.empty(2000, dtype=np.uint32)
            module.hash_block(codes, seeds, np.uint64(g), num_digits, buckets)
            results.append((seeds, buckets))
        assert np.array_equal(results[1], results[0])
        assert results[1][0].tolist() == [word * g**num_digits >> 64 for word in words.tolist()]

    @pytest.mark.parametrize("g", [2, 3, 5, 7, 53, 257, 65_537])
    def test_the_same_inverses(self, g):
        expected, found = np.empty(g, dtype=np.int64), np.empty(g, dtype=np.int64)
        self.compiled.write_inverses(expected)
        self.twin.write_inverses(found)
        assert np.array_equal(found, expected)
        assert np.all(found[1:] * np.arange(1, g) % g == 1)

    @pytest.mark.parametrize(
        ("k", "g"), [(2, 3), (3, 3), (10, 3), (100, 3), (81, 3), (1000, 7), (50, 53), (5000, 53)]
    )
    @pytest.mark.parametrize("num_users", [0, 1, 40, 20_000])
    def test_the_same_counts(self, k, g, num_users, monkeypatch):
        law = HashedResponse(k=k, num_buckets=g, threshold=2**64 // (2 * g))
        data = law.randomize(np.arange(num_users) % k, Entropy.from_seed(k))
        expected = [count_by_digits(law, data, j) for j in range(law.num_digits)]
        monkeypatch.setattr(loops, "_has_numba", lambda: False)
        for searched, counts in enumerate(expected):
            assert np.array_equal(count_by_digits(law, data, searched), counts)
        assert np.array_equal(count_supports(law, data), expected[0])
        assert np.array_equal(law.supports(data[:40]).sum(axis=0), count_supports(law, data[:40]))

    @pytest.mark.parametrize(
        ("g", "stride", "num_blocks"),
        [(3, 3, 1), (3, 27, 4), (5, 5, 400), (53, 53, 2), (7, 343, 3)],
    )
    def test_the_same_transform(self, g, stride, num_blocks):
        size = num_blocks * g * stride
        expected = generator_of(g).integers(-1000, 1000, size + 5)
        found = expected.copy()
        rows = np.empty(2 * g * g, dtype=np.int64)
        self.compiled.transform_digit(expected, g, stride, num_blocks, rows)
        self.twin.transform_digit(found, g, stride, num_blocks, rows)
        assert np.array_equal(found, expected)


class TestHadamardResponse:
    compiled, twin = twins("categories.hadamard_response")

    @pytest.mark.parametrize("num_bits", [1, 2, 7, 20, 32])
    def test_the_same_reports(self, num_bits):
        generator = generator_of(num_bits)
        codes = generator.integers(0, 2**num_bits, 5000, dtype=np.uint64).astype(np.uint32)
        words, coins = generator.integers(0, 2**64, (2, 5000), dtype=np.uint64)
        threshold = np.uint64(2**62)
        coins[:3] = 2**62 - 1, 2**62, 2**62 + 1
        expected, found = np.empty((2, 5000), dtype=np.uint64)
        more = (words, coins, threshold, np.uint64(64 - num_bits))
        self.compiled.randomize_binary_block(codes, *more, expected)
        self.twin.randomize_binary_block(codes, *more, found)
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
    @pytest.mark.parametrize("num_reports", [0, 1, 100_000])
    def test_the_same_signs(self, dtype, num_reports):
        codes = generator_of(2).integers(0, 256, num_reports).astype(dtype)
        expected, found = np.ones((2, 128), dtype=np.int64)
        self.compiled.add_signs(codes, expected)
        self.twin.add_signs(codes, found)
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("size", [1, 2, 4, 1024])
    def test_the_same_transform(self, size):
        expected = generator_of(size).integers(-(2**40), 2**40, size)
        found = expected.copy()
        self.compiled.walsh_hadamard(expected)
        self.twin.walsh_hadamard(found)
        assert np.array_equal(found, expected)


class TestNumbers:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
    @pytest.mark.parametrize("size", [0, 1, 100_000])
    def test_the_same_sums(self, dtype, size):
        ends = np.iinfo(dtype)
        codes = generator_of(1).integers(ends.min, ends.max, size, dtype=dtype, endpoint=True)
        for centre in (0, 1, 2**20 + 1):
            expected, found = (
                module.sum_scores(codes, centre) for module in twins("numbers.decoding")
            )
            assert found == expected

    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1e-100, 1e-100), (-7.3, 1e90)])
    @pytest.mark.parametrize("num_steps", [1, 256, 1000, 2**20])
    def test_the_same_points(self, low, high, num_steps):
        span = Span(low, high)
        generator = generator_of(num_steps)
        values = np.minimum(low + generator.random(5000) * span.width, high)
        values[:5] = low, high, span.middle, math.nextafter(high, low), math.nextafter(low, high)
        words = generator.integers(0, 2**64, 5000, dtype=np.uint64)
        words[:5] = 0, 0, 2**63, 2**64 - 1, 0  # nothing is left over at the ends
        expected, found = np.empty((2, 5000), dtype=np.int32)
        for module, out in zip(twins("numbers.rounding"), (expected, found), strict=True):
            module.round_block(values, words, span.low, span.width, float(num_steps), out)
        assert np.array_equal(found, expected)
        assert found.min() == 0
        assert found.max() == num_steps

    @pytest.mark.parametrize("epsilon0", [0.0, 1e-9, 0.01, 1.0, 4.0, 9.7, 15.0, 30.0, 1e300])
    def test_the_same_outputs(self, epsilon0):
        law = Piecewise(low=0, high=1, epsilon0=epsilon0).law
        border = law.num_steps * law.threshold
        edges = [number * law.threshold for number in (*range(100), law.num_steps - 1)]
        edges += [border + number * law.high_threshold for number in range(law.window)]
        words = [edge + step for edge in edges for step in (-1, 0, 1) if 0 <= edge + step < 2**64]
        words = np.array([*words, 2**64 - 1, *Entropy.from_seed(1).words(1000)], dtype=np.uint64)
        points = (np.arange(words.size) * 7919 % (law.num_steps + 1)).astype(np.int32)
        more = [
            np.uint64(number)
            for number in (law.threshold, law.high_threshold, law.num_steps, law.window)
        ]
        expected, found = np.empty((2, words.size), dtype=np.uint16)
        for module, out in zip(twins("numbers.piecewise"), (expected, found), strict=True):
            module.randomize_block(points, words, *more, out)
        assert np.array_equal(found, expected)


class TestDiscreteLaplace:
    compiled, twin = twins("numbers.laplace")

    def draw_one(self, module, words, rate, *, limit=2**31 - 1):
        """Return the noise of one report, the number of reports drawn, and of words used."""
        out = np.zeros(1, dtype=np.int32)
        ends = (np.int64(-limit), np.int64(limit))
        drawn = module.add_noise(np.zeros(1, dtype=np.int32), words, np.uint64(rate), *ends, out)
        return int(out[0]), *drawn

    @pytest.mark.parametrize("rate", [1, 2**28, 3 * 2**41, 2**48, 2**52, 2**58 + 1])
    def test_one_report_is_the_same(self, rate):
        # A batch of one takes its words in the order of the compiled loop.
        words = Entropy.from_seed(rate % 97).words(3000)
        used = 0
        for _ in range(200):
            expected = self.draw_one(self.compiled, words[used:], rate)
            assert self.draw_one(self.twin, words[used:], rate) == expected
            used += expected[2]
        assert expected[1] == 1

    @pytest.mark.parametrize("num_words", range(12))
    def test_one_report_runs_out_of_words_at_the_same_place(self, num_words):
        for seed in range(30):
            words = Entropy.from_seed(seed).words(num_words)
            expected = self.draw_one(self.compiled, words, 2**48)
            assert self.draw_one(self.twin, words, 2**48) == expected

    def test_words_that_are_rejected(self):
        # The fraction 1/2; coins that come up until k = 3; there a word beyond the last multiple of
        # 3, which is drawn again, and fails; and a coin of a whole unit that fails.
        most = 2**64 - 1
        words = np.array([2**63, 0, 0, 0, 0, most, most - 1, *[most] * 9], dtype=np.uint64)
        expected = self.draw_one(self.compiled, words, 2**48)
        assert self.draw_one(self.twin, words, 2**48) == expected
        assert expected == (8, 1, 8)

    def test_extreme_noise_is_clamped(self):
        # As in the tests of the compiled loop: all of 128 coins of a whole unit come up.
        words = np.zeros(1000, dtype=np.uint64)
        words[1] = 2**64 - 1
        words[3::2] = 1
        for sign, end in ((0, 5000), (1, -5000)):
            words[0] = 2**64 - 2**12 + sign
            found = self.draw_one(self.twin, words, 2**28, limit=5000)
            assert found == (end, 1, 2 + 2 * 128)

    @pytest.mark.parametrize("buffer", [700, 5000, 2**15])
    def test_reports_do_not_depend_on_the_size_of_the_buffer(
        self, buffer, without_numba, monkeypatch
    ):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=1.0)
        values = np.full(9000, 0.5)
        expected = randomizer.randomize(values, Entropy.from_seed(5)).data
        monkeypatch.setattr(laplace, "_WORD_BUFFER", buffer)
        assert np.array_equal(randomizer.randomize(values, Entropy.from_seed(5)).data, expected)

    def test_twins_agree(self):
        assert self.twin._UNIT_BITS == laplace._UNIT_BITS
        assert self.twin._LARGEST_NUM_UNITS == laplace._LARGEST_NUM_UNITS


class TestStrings:
    def test_the_same_hashes_of_texts(self):
        generator = generator_of(1)
        lengths = np.concatenate([np.arange(40), [8, 0, 255, 256, 264, 5000], np.arange(40)[::-1]])
        buffer = generator.integers(0, 256, int(lengths.sum()) + 1, dtype=np.uint8)
        for ends in (np.cumsum(lengths), np.cumsum(lengths)[:1], np.zeros(0, dtype=np.int64)):
            expected, found = np.empty((2, ends.size), dtype=np.uint64)
            for module, out in zip(twins("strings.keyed_hash"), (expected, found), strict=True):
                module.hash_texts(np.uint64(2**64 - 1), np.uint64(5), buffer, ends, out)
            assert np.array_equal(found, expected)

    def test_the_value_of_the_paper(self):
        # Aumasson, Bernstein, Appendix A.
        key = np.frombuffer(bytes(range(16)), dtype="<u8").astype(np.uint64)
        out = np.empty(1, dtype=np.uint64)
        message = np.frombuffer(bytes(range(15)) + b"\0", dtype=np.uint8)
        twins("strings.keyed_hash")[1].hash_texts(*key, message, np.array([15]), out)
        assert out[0] == 0xA129CA6149BE45E5

    def test_the_same_hashes_of_pairs(self):
        firsts, seconds = generator_of(2).integers(0, 2**64, (2, 1000), dtype=np.uint64)
        expected, found = np.empty((2, 1000), dtype=np.uint64)
        key = (np.uint64(3), np.uint64(2**64 - 3))
        compiled, twin = twins("strings.keyed_hash")
        compiled.hash_pairs(*key, firsts, seconds, expected)
        twin.hash_pairs(*key, firsts, seconds, found)
        assert np.array_equal(found, expected)
        assert twin.hash_pair(*key, firsts[0], seconds[0]) == expected[0]

    @pytest.mark.parametrize(("num_hashes", "num_buckets"), [(1, 2), (16, 64), (1024, 1024)])
    def test_the_same_signs(self, num_hashes, num_buckets):
        digests, coins = generator_of(3).integers(0, 2**64, (2, 2000), dtype=np.uint64)
        places = generator_of(4).integers(0, num_hashes * num_buckets, 2000, dtype=np.uint64)
        coins[:3] = 2**62 - 1, 2**62, 2**62 + 1
        more = (np.uint64(2**62), np.uint64(num_buckets), np.uint64(7), np.uint64(8))
        expected, found = np.empty((2, 2000), dtype=np.uint32)
        for module, out in zip(twins("strings.sketch"), (expected, found), strict=True):
            module.draw_signs(digests, places, coins, *more, out)
        assert np.array_equal(found, expected)

    def test_parity(self):
        words = np.array([0, 1, 3, 2**63, 2**64 - 1, 2**40 + 2**3 + 1], dtype=np.uint64)
        compiled, twin = twins("strings.sketch")
        assert twin.parity(words).tolist() == [0, 1, 0, 1, 0, 1]
        assert [int(compiled.parity(word)) for word in words] == [0, 1, 0, 1, 0, 1]
        assert twin.parity(words[1]) == 1

    @pytest.mark.parametrize("num_strings", [0, 1, 3, 20_000])
    @pytest.mark.parametrize(("num_hashes", "num_buckets"), [(1, 2), (64, 256)])
    def test_the_same_cells(self, num_strings, num_hashes, num_buckets):
        table = generator_of(5).integers(-(2**40), 2**40, (num_hashes, num_buckets))
        digests = generator_of(6).integers(0, 2**64, num_strings, dtype=np.uint64)
        expected, found = np.ones((2, num_strings), dtype=np.int64)
        for module, out in zip(twins("strings.sketch"), (expected, found), strict=True):
            module.sum_cells(table, digests, np.uint64(7), np.uint64(8), out)
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("num_rows", [0, 1, 300, 9000])
    @pytest.mark.parametrize(("num_hashes", "row_bytes"), [(1, 1), (2, 3), (64, 64)])
    def test_the_same_counts(self, num_rows, num_hashes, row_bytes):
        generator = generator_of(num_rows)
        rows = generator.integers(0, 256, (num_rows, 2 + row_bytes), dtype=np.uint8)
        hashes = generator.integers(0, num_hashes, num_rows) // 2 * 2 % num_hashes
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        spread = bits.view(np.dtype("<u8"))[:, 0].astype(np.uint64)
        packed = np.zeros((num_hashes, row_bytes), dtype=np.uint64)
        results = []
        for module in twins("strings.sketch"):
            cells = np.ones((num_hashes, row_bytes, 8), dtype=np.int64)
            num_reports = np.ones(num_hashes, dtype=np.int64)
            module.add_bits_by_hash(hashes, rows, 2, spread, packed, cells, num_reports)
            results.append((cells, num_reports))
        assert np.array_equal(results[1][0], results[0][0])
        assert np.array_equal(results[1][1], results[0][1])


class TestVectors:
    def assert_same_normals(self, words, count):
        compiled, twin = twins("vectors.normals")
        expected, found = np.zeros((2, count))
        num_filled = compiled.fill_normals(words, *layers(), expected)
        assert twin.fill_normals(words, *layers(), found) == num_filled
        # In the tail there is a logarithm, which libraries round in their own way.
        np.testing.assert_array_max_ulp(found, expected, maxulp=2)
        return found[:num_filled]

    def test_the_same_normals(self):
        words = Entropy.from_seed(1).words(2**19)
        normals = self.assert_same_normals(words, 2**19)
        assert np.abs(normals).max() > layers()[0][1]  # the tail is among them
        for num_words, count in itertools.product((0, 1, 2, 3, 4, 5, 100), (0, 1, 2, 3, 50)):
            self.assert_same_normals(words[:num_words], count)
        for start in range(2000):
            self.assert_same_normals(words[start : start + 12], 7)

    def test_the_same_normals_outside_the_cores(self):
        # Large fractions: most attempts need the words behind them, which look like attempts, too.
        words = Entropy.from_seed(2).words(2**16) | np.uint64(0x7F00000000000000)
        self.assert_same_normals(words, 2**16)
        tails = words & np.uint64(2**64 - 256)
        normals = self.assert_same_normals(tails, 2**16)
        assert (np.abs(normals) > layers()[0][1]).mean() > 0.1

    @pytest.mark.parametrize("dimension", [2, 3, 4, 17, 1000])
    @pytest.mark.parametrize("is_on_sphere", [False, True])
    def test_the_same_vectors(self, dimension, is_on_sphere):
        directions = standard_normals(50 * dimension, Entropy.from_seed(1)).reshape(50, -1)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        directions[0] = np.eye(dimension)[0]
        directions[1] = -np.eye(dimension)[0]
        normals = standard_normals(50 * (dimension - 1), Entropy.from_seed(2)).reshape(50, -1)
        along, across = standard_normals(100, Entropy.from_seed(3)).reshape(2, 50)
        expected, found = np.empty((2, 50, dimension), dtype=np.float32)
        for module, out in zip(twins("vectors.vector_reports"), (expected, found), strict=True):
            module.turn_to_directions(directions, along, across, normals, is_on_sphere, out)
        # The last bit of single precision, and of double precision where terms cancel.
        assert np.allclose(found, expected, rtol=2.0**-23, atol=1e-14)

    def test_the_same_sums_and_norms(self):
        rows = standard_normals(7000, Entropy.from_seed(4)).reshape(100, 70).astype(np.float32)
        results = []
        for module in twins("vectors.vector_reports"):
            total, total_of_squares = np.ones((2, 70))
            norms = np.empty(100)
            module.add_rows(rows, total, total_of_squares)
            module.squared_norms(rows, norms)
            results.append(np.concatenate([total, total_of_squares, norms]))
        assert np.allclose(results[1], results[0], rtol=1e-13, atol=1e-13)

    # Infinities, a quiet NaN and one that signals.
    @pytest.mark.parametrize("wrong", [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001])
    def test_impossible_reports_are_refused(self, wrong, without_numba):
        randomizer = VECTOR_RANDOMIZERS["privunit"](dimension=3, norm_bound=1.0, epsilon0=1.0)
        rows = randomizer.randomize(np.zeros((5, 3)), Entropy.from_seed(1)).data.copy()
        rows.view(np.uint32)[3, 1] = wrong
        forged = Reports(data=rows, fingerprint=randomizer.fingerprint)
        with pytest.raises(DomainError, match="report 3 has the norm"):
            randomizer.aggregate(forged)


def category_cases():
    return [
        (make_randomizer(name, k=k, epsilon0=epsilon0), np.arange(40_000) % k)
        for name in RANDOMIZERS
        for k, epsilon0 in ((2, 0.0), (50, 0.3), (50, 2.0))
    ]


def number_cases():
    return [
        (make(low=-1, high=1, epsilon0=epsilon0), np.linspace(-1, 1, 40_000))
        for make in NUMBER_RANDOMIZERS.values()
        for epsilon0 in (0.2, 3.0)
    ]


def vector_cases():
    return [
        (make(dimension=dimension, norm_bound=2.0, epsilon0=3.0), np.zeros((2000, dimension)))
        for make in VECTOR_RANDOMIZERS.values()
        for dimension in (2, 30)
    ]


def string_cases():
    texts = ["yes", "no", "a text of more than eight bytes", ""] * 2000
    return [
        (make(epsilon0=3.0, key=bytes(16), num_hashes=64, num_buckets=128), texts)
        for make in STRING_RANDOMIZERS.values()
    ]


def set_cases():
    return [
        (ANSWER_SET_RANDOMIZERS[name](k=6, max_answers=2, epsilon0=3.0), answers)
        for name in SETS
        for answers in [np.tile([[0, 5], [3, -1]], (2000, 1))]
    ]


CASES = [*category_cases(), *number_cases(), *vector_cases(), *string_cases(), *set_cases()]


def name_of(value):
    return getattr(value, "name", None)


class TestWithoutNumba:
    @pytest.mark.parametrize(("randomizer", "values"), CASES, ids=name_of)
    def test_a_seed_gives_the_same_reports(self, randomizer, values, monkeypatch):
        expected = randomizer.randomize(values, Entropy.from_seed(5))
        aggregate = randomizer.aggregate(expected)
        monkeypatch.setattr(loops, "_has_numba", lambda: False)
        found = randomizer.randomize(values, Entropy.from_seed(5))
        assert found.data.dtype == expected.data.dtype
        assert found.data.shape == expected.data.shape
        if expected.data.dtype == np.float32:
            assert np.allclose(found.data, expected.data, rtol=2.0**-23, atol=1e-14)
        elif randomizer.name not in OTHER_REPORTS:
            assert np.array_equal(found.data, expected.data)
        elif randomizer.epsilon0:
            assert not np.array_equal(found.data, expected.data)
        # The server's side does the same with the same reports, whoever made them.
        again = randomizer.aggregate(expected)
        for field in ("support", "total", "total_of_squares"):
            if hasattr(again, field):
                assert np.allclose(getattr(again, field), getattr(aggregate, field), rtol=1e-12)

    @pytest.mark.parametrize("name", RANDOMIZERS)
    @pytest.mark.parametrize("k", [2, 7, 1000])
    @pytest.mark.parametrize("epsilon0", [0.0, 1.0])
    def test_reports_are_made_and_counted(self, name, k, epsilon0, without_numba):
        randomizer = make_randomizer(name, k=k, epsilon0=epsilon0)
        for num_users in (0, 1, 2000):
            reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(4))
            assert reports.num_reports == num_users
            counts = randomizer.aggregate(reports)
            assert counts.support.tolist() == randomizer.supports(reports).sum(axis=0).tolist()

    def test_in_an_interpreter_that_never_sees_numba(self):
        outcome = subprocess.run(
            [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True
        )
        num_randomizers = sum(
            map(len, (RANDOMIZERS, NUMBER_RANDOMIZERS, VECTOR_RANDOMIZERS, STRING_RANDOMIZERS))
        )
        assert outcome.stdout.splitlines()[-1] == f"{num_randomizers + len(SETS)} done"


# Estimates lie at most ten of their standard errors from the truth, which is a matter of the code
# rather than of chance.
WITHOUT_NUMBA = f"""
import sys

sys.modules["numba"] = None
import numpy as np
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS, RANDOMIZERS, STRING_RANDOMIZERS, VECTOR_RANDOMIZERS
)
from shuffledp.randomizers.sets.registry import ANSWER_SET_RANDOMIZERS

done = 0


def check(randomizer, values, truth, **options):
    global done
    reports = randomizer.randomize(values, Entropy.from_seed(1))
    estimates = randomizer.estimate(randomizer.aggregate(reports), **options)
    found = estimates.frequency if hasattr(estimates, "frequency") else estimates.mean
    assert np.all(np.abs(found - truth) <= 10 * estimates.standard_error), randomizer
    done += 1


for make in RANDOMIZERS.values():
    check(make(k=9, epsilon0=2.0), np.arange(9000) % 9, np.full(9, 1 / 9))
for make in NUMBER_RANDOMIZERS.values():
    check(make(low=0, high=1, epsilon0=2.0), np.full(9000, 0.3), 0.3)
for make in VECTOR_RANDOMIZERS.values():
    vectors = np.tile([0.6, 0.0, 0.8], (9000, 1))
    check(make(dimension=3, norm_bound=1.0, epsilon0=2.0), vectors, vectors[0])
for make in STRING_RANDOMIZERS.values():
    texts = ["yes"] * 6000 + ["perhaps and perhaps not"] * 3000
    sketch = make(epsilon0=2.0, key=bytes(16), num_hashes=64, num_buckets=64)
    check(sketch, texts, np.array([2, 1]) / 3, dictionary=["yes", "perhaps and perhaps not"])
for name in {SETS!r}:
    answers = np.tile([[0, 2], [1, -1]], (4500, 1))
    randomizer = ANSWER_SET_RANDOMIZERS[name](k=3, max_answers=2, epsilon0=4.0)
    check(randomizer, answers, np.full(3, 0.5))
print(done, "done")
"""


def p_value(observed, probabilities):
    """Return the chi-square tail probability; the outer cells are pooled with rare ones beyond."""
    expected = observed.sum() * np.asarray(probabilities, dtype=float)
    first, *_, last = np.flatnonzero(expected >= LEAST_EXPECTED)
    pooled = [
        np.concatenate([[cells[: first + 1].sum()], cells[first + 1 : last], [cells[last:].sum()]])
        for cells in (np.asarray(observed), expected)
    ]
    assert pooled[1].min() >= LEAST_EXPECTED
    return float(chi2.sf(((pooled[0] - pooled[1]) ** 2 / pooled[1]).sum(), pooled[0].size - 1))


def p_value_of_category(sampler, law):
    """Compare the reports of one category, drawn by one randomizer, with the law of another."""
    codes = np.ones(NUM_REPORTS, dtype=np.uint8)
    reports = sampler.randomize(codes, Entropy.from_seed(8)).data.reshape(-1)
    values = law.report_columns().data.reshape(-1)  # for small k a report is a small integer
    observed = np.bincount(reports, minlength=int(values.max()) + 1)
    assert observed.sum() == observed[values].sum()
    return p_value(observed[values], law.channel()[1])


def p_value_of_laplace(sampler, law):
    """Compare the reports of the value 1/2, drawn by one randomizer, with the law of another."""
    num_steps, rate = law.law
    margin = law.law.margin
    q = math.exp(-rate / 2**52)
    outputs = np.arange(-margin, num_steps + margin + 1)
    lower, upper = num_steps // 2, -(-num_steps // 2)
    # Tails beyond the ends are far below what any cell expects.
    rows = [(1 - q) / (1 + q) * q ** np.abs(outputs - point) for point in (lower, upper)]
    reports = sampler.randomize(np.full(NUM_REPORTS, 0.5), Entropy.from_seed(9)).data
    observed = np.bincount(reports + margin, minlength=outputs.size)
    return p_value(observed, (rows[0] + rows[1]) / 2)


class TestLaws:
    @pytest.mark.parametrize("name", RANDOMIZERS)
    def test_reports_follow_the_channel(self, name, without_numba):
        randomizer = make_randomizer(name, k=3, epsilon0=0.5)
        assert p_value_of_category(randomizer, randomizer) > REJECTION_LEVEL

    @pytest.mark.parametrize("factor", [0.95, 1.05])
    @pytest.mark.parametrize("name", RANDOMIZERS)
    def test_another_threshold_is_rejected(self, name, factor, without_numba):
        randomizer = make_randomizer(name, k=3, epsilon0=0.5)
        planted = copy.copy(randomizer)
        object.__setattr__(planted, "threshold", int(randomizer.threshold * factor))
        assert p_value_of_category(planted, randomizer) < REJECTION_LEVEL
        assert p_value_of_category(randomizer, planted) < REJECTION_LEVEL

    @pytest.mark.parametrize(("resolution", "epsilon0"), LAPLACE_LAWS)
    def test_noise_is_discrete_laplace(self, resolution, epsilon0, without_numba):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=epsilon0, resolution=resolution)
        assert p_value_of_laplace(randomizer, randomizer) > REJECTION_LEVEL

    @pytest.mark.parametrize("factor", [0.95, 1.05])
    def test_noise_of_another_scale_is_rejected(self, factor, without_numba):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=2.0, resolution=4)
        planted = DiscreteLaplace(low=0, high=1, epsilon0=2.0 * factor, resolution=4)
        assert p_value_of_laplace(planted, randomizer) < REJECTION_LEVEL

    def test_neighbouring_noise_is_independent(self, without_numba):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=1.0, resolution=1)
        reports = randomizer.randomize(np.zeros(2 * NUM_REPORTS), Entropy.from_seed(10)).data
        q = math.exp(-1.0)
        row = np.array([q, 1 - q, q]) / (1 + q)
        signs = np.sign(reports) + 1
        joint = np.outer(row, row).reshape(-1)
        assert p_value(np.bincount(3 * signs[::2] + signs[1::2]), joint) > REJECTION_LEVEL
        signs[::100] = signs[1::100]  # one pair in fifty is of one draw
        assert p_value(np.bincount(3 * signs[::2] + signs[1::2]), joint) < REJECTION_LEVEL
