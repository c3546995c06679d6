"""Shuffles are permutations, exactly uniform."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shuffledp.collection import uniform_shuffler as in_memory_shuffle
from shuffledp.collection.uniform_shuffler import (
    InMemoryShuffle,
    UniformShuffler,
    assign_buckets,
    split_into_buckets,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics import uniform_kernels as kernels

# ---------------- uniform
BOUNDS = st.integers(1, 2**32 - 1)


def accepted(word: int, bound: int) -> int:
    """Return what `bounded_integer` returns."""
    return int(kernels.bounded_integer(np.uint32(word), np.uint64(bound)))


@given(bound=BOUNDS, share=st.floats(0.0, 1.0))
def test_each_value_has_the_same_number_of_half_words(bound, share):
    # The accepted half words of a value are consecutive; their ends are checked on both sides.
    value = min(int(share * bound), bound - 1)
    refused = 2**32 % bound
    first = -(-(value * 2**32 + refused) // bound)
    last = first + 2**32 // bound - 1
    assert accepted(first, bound) == accepted(last, bound) == value
    if first > 0:
        assert accepted(first - 1, bound) in {-1, value - 1}
    if last < 2**32 - 1:
        assert accepted(last + 1, bound) in {-1, value + 1}


@given(bound=BOUNDS, word=st.integers(0, 2**32 - 1))
def test_bounded_integers_are_those_of_the_definition(bound, word):
    refuse = word * bound % 2**32 < 2**32 % bound
    assert accepted(word, bound) == (-1 if refuse else word * bound // 2**32)


def fisher_yates(rows: list, half_words: list[int]) -> int:
    """Shuffle a list in place by the definition; return the index that it stopped at."""
    last = len(rows) - 1
    for word in half_words:
        if last <= 0:
            break
        bound = last + 1
        if word * bound % 2**32 >= 2**32 % bound:
            chosen = word * bound // 2**32
            rows[chosen], rows[last] = rows[last], rows[chosen]
            last -= 1
    return max(last, 0)


@given(
    size=st.integers(1, 40),
    half_words=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 3), max_size=50),
    width=st.integers(0, 3),
)
def test_compiled_fisher_yates_does_what_plain_python_does(size, half_words, width):
    rows = np.arange(size * max(width, 1)).reshape((size, width) if width else (size,))
    expected = rows.tolist()
    stopped = fisher_yates(expected, half_words)
    assert kernels.permute_rows(rows, size - 1, np.array(half_words, dtype=np.uint32)) == stopped
    assert rows.tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("bucket_bytes", [1, 8, 1000, 1 << 20])
@given(
    rows=hnp.arrays(
        dtype=st.sampled_from(
            [np.uint8, np.uint16, np.int32, np.float32, np.float64, np.bool_, np.complex128, "S3"]
        ),
        shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=12),
    )
)
def test_rows_are_kept_whole_and_none_is_lost(bucket_bytes, rows):
    before = rows.copy()
    rows.flags.writeable = False
    shuffled = UniformShuffler(bucket_bytes=bucket_bytes).shuffle(rows, Entropy.from_seed(1))
    assert shuffled.shape == rows.shape
    assert shuffled.dtype == rows.dtype
    assert shuffled.flags.c_contiguous
    assert shuffled.flags.writeable
    assert not np.shares_memory(shuffled, rows)
    assert sorted(row.tobytes() for row in shuffled) == sorted(row.tobytes() for row in rows)
    assert rows.tobytes() == before.tobytes()


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(40, dtype=np.int16)[::2],
        np.arange(40, dtype=np.uint32).reshape(4, 10).T,
        np.array([1, 2, 3], dtype="datetime64[s]"),
        np.array([(1, 2.0), (3, 4.0)], dtype=[("a", np.int16), ("b", np.float64)]),
        np.frombuffer(bytes(range(65)), dtype=np.uint8)[1:].view(np.uint64),
    ],
    ids=["strided", "transposed", "dates", "records", "unaligned"],
)
def test_unusual_layouts(rows):
    for bucket_bytes in (1, 1 << 20):
        shuffled = UniformShuffler(bucket_bytes=bucket_bytes).shuffle(rows, Entropy.from_seed(2))
        assert shuffled.dtype == rows.dtype
        expected = sorted(np.ascontiguousarray(row).tobytes() for row in rows)
        assert sorted(row.tobytes() for row in shuffled) == expected


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 3), (5, 0)])
def test_nothing_to_shuffle(shape):
    rows = np.ones(shape)
    assert (UniformShuffler().shuffle(rows, Entropy.from_seed(0)) == rows).all()
    assert UniformShuffler().shuffle(rows, Entropy.from_seed(0)).shape == shape


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
@pytest.mark.parametrize("width", [None, 3])
def test_a_batch_that_needs_two_levels_of_buckets(dtype, width):
    num_rows = 20_000
    rows = np.arange(num_rows * (width or 1)).astype(dtype)
    rows = rows if width is None else rows.reshape(num_rows, width)
    shuffled = UniformShuffler(bucket_bytes=64).shuffle(rows, Entropy.from_seed(3))
    assert not (shuffled == rows).all()
    assert sorted(map(bytes, shuffled)) == sorted(map(bytes, rows))


def test_a_seed_gives_one_permutation_and_two_seeds_two():
    rows = np.arange(1000)
    shuffled = [UniformShuffler().shuffle(rows, Entropy.from_seed(seed)) for seed in (1, 1, 2)]
    assert (shuffled[0] == shuffled[1]).all()
    assert not (shuffled[0] == shuffled[2]).all()


@pytest.mark.parametrize("num_buckets", [1, 2, 4, 64, 256])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 1001])
def test_bucket_indices_are_the_low_bits_of_keystream_bytes(num_buckets, count):
    buckets = assign_buckets(count, num_buckets, Entropy.from_seed(4))
    bytes_drawn = Entropy.from_seed(4).words(-(-count // 8)).view(np.uint8)[:count]
    assert buckets.dtype == np.uint8
    assert (buckets == bytes_drawn % np.int64(num_buckets)).all()


@pytest.mark.parametrize("num_buckets", [1, 16, 256])
@pytest.mark.parametrize("width", [None, 5])
@given(num_rows=st.integers(0, 300), seed=st.integers(0, 100))
def test_split_is_a_stable_sort_by_bucket(num_buckets, width, num_rows, seed):
    rows = np.arange(num_rows * (width or 1)).reshape((num_rows, width) if width else (num_rows,))
    out = np.empty_like(rows)
    offsets = split_into_buckets(rows, out, num_buckets, Entropy.from_seed(seed))
    buckets = assign_buckets(num_rows, num_buckets, Entropy.from_seed(seed))
    assert (out == rows[np.argsort(buckets, kind="stable")]).all()
    assert [end - start for start, end in pairwise(offsets)] == [
        np.count_nonzero(buckets == bucket) for bucket in range(num_buckets)
    ]


def test_single_numbers_and_objects_are_refused():
    with pytest.raises(ParameterError, match="single number"):
        UniformShuffler().shuffle(np.array(3), Entropy.from_seed(0))
    with pytest.raises(ParameterError, match="Python objects"):
        UniformShuffler().shuffle(np.array(["a", None]), Entropy.from_seed(0))


@pytest.mark.parametrize("bucket_bytes", [0, -1, 2**31 + 1, float("nan"), 1.5])
def test_bad_bucket_sizes_are_named(bucket_bytes):
    with pytest.raises(ParameterError, match="bucket_bytes = "):
        UniformShuffler(bucket_bytes=bucket_bytes)


# ---------------- in memory shuffle
class Reversal:
    def shuffle(self, reports, entropy):
        return reports[::-1]


def filled(*pieces):
    shuffle = InMemoryShuffle(Reversal(), Entropy.from_seed(0))
    for piece in pieces:
        shuffle.add(np.array(piece))
    return shuffle


def test_pieces_are_put_together_before_they_are_shuffled(monkeypatch):
    monkeypatch.setattr(in_memory_shuffle, "_BLOCK_ROWS", 2)
    with filled([1, 2], [3]) as shuffle:
        assert [block.tolist() for block in shuffle] == [[3, 2], [1]]


def test_pieces_are_copied():
    piece = np.array([1, 2])
    shuffle = InMemoryShuffle(Reversal(), Entropy.from_seed(0))
    shuffle.add(piece)
    piece[:] = 9
    assert [block.tolist() for block in shuffle] == [[2, 1]]


def test_reading_twice_is_refused():
    shuffle = filled([1])
    assert len(list(shuffle)) == 1
    with pytest.raises(ParameterError, match="read them once"):
        list(shuffle)


def test_reports_are_forgotten_when_the_block_ends():
    with filled([1, 2]) as shuffle:
        pass
    with pytest.raises(ParameterError, match="no reports"):
        list(shuffle)
