"""All permutations are equally likely: chi-square tests of both shufflers, and planted flaws.

Every test has a fixed seed, so it gives the same answer on every run. The declared rate is the
probability that correct code would fail for a seed chosen at random.
"""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import chdtrc, chdtri

from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.collection.uniform_shuffler import UniformShuffler, assign_buckets
from shuffledp.core.entropy import Entropy

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 14
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

NUM_ITEMS = 5
PERMUTATIONS = {order: index for index, order in enumerate(permutations(range(NUM_ITEMS)))}


def is_rejected(observed, *, degrees_of_freedom=None):
    """Return whether counts differ from equal expectations, at the declared rate.

    The statistic's law is within O(1 / expected count) of chi-square; expected counts are 100 and
    more, and the rate is held far below what the suite may spend.
    """
    expected = observed.sum() / observed.size
    statistic = ((observed - expected) ** 2 / expected).sum()
    freedom = observed.size - 1 if degrees_of_freedom is None else degrees_of_freedom
    return bool(statistic > chdtri(freedom, RATE_PER_TEST))


def permutation_counts(shuffle, num_trials):
    """Return how often each permutation of five items came out."""
    counts = np.zeros(len(PERMUTATIONS))
    for _ in range(num_trials):
        counts[PERMUTATIONS[tuple(shuffle().tolist())]] += 1
    return counts


ITEMS = [
    np.arange(NUM_ITEMS, dtype=np.uint8),
    np.arange(NUM_ITEMS, dtype=np.uint64),
    np.repeat(np.arange(NUM_ITEMS, dtype=np.uint8), 3).reshape(NUM_ITEMS, 3),
]


@pytest.mark.parametrize("rows_a_bucket", [1, 1000], ids=["buckets", "direct"])
@pytest.mark.parametrize("items", ITEMS, ids=["bytes", "words", "wide rows"])
def test_permutations_in_memory(items, rows_a_bucket):
    entropy = Entropy.from_seed(101)
    shuffler = UniformShuffler(bucket_bytes=rows_a_bucket * items[0].nbytes)
    column = (slice(None), *(0,) * (items.ndim - 1))
    counts = permutation_counts(lambda: shuffler.shuffle(items, entropy)[column], 24_000)
    assert not is_rejected(counts)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 5])
def test_permutations_through_scratch_files(pieces):
    # Two rows fit in memory, so nearly all go through the file, and some through two.
    entropy = Entropy.from_seed(102)
    items = np.arange(NUM_ITEMS, dtype=np.uint8)

    def shuffle():
        with ExternalShuffle(dtype=np.uint8, entropy=entropy, memory_limit_bytes=6) as external:
            for piece in np.array_split(items, pieces):
                external.add(piece)
            return np.concatenate(list(external))

    assert not is_rejected(permutation_counts(shuffle, 12_000))


def transport_counts(shuffled, num_parts=32):
    """Return how many rows came from part i of 0, 1, 2, ... and went to part j."""
    size = shuffled.size
    origin = shuffled.astype(np.int64) * num_parts // size
    target = np.arange(size) * num_parts // size
    return np.bincount(origin * num_parts + target, minlength=num_parts**2)


@pytest.mark.parametrize("bucket_bytes", [1 << 12, 1 << 24], ids=["buckets", "direct"])
def test_large_batches_are_mixed_evenly_in_memory(bucket_bytes):
    rows = np.arange(1 << 19, dtype=np.uint32)
    shuffled = UniformShuffler(bucket_bytes=bucket_bytes).shuffle(rows, Entropy.from_seed(103))
    # Rows and columns of the table are fixed, so it has (32 - 1)^2 degrees of freedom.
    assert not is_rejected(transport_counts(shuffled), degrees_of_freedom=31**2)


def test_large_batches_are_mixed_evenly_through_scratch_files():
    rows = np.arange(1 << 19, dtype=np.uint32)
    with ExternalShuffle(
        dtype=rows.dtype, entropy=Entropy.from_seed(104), memory_limit_bytes=1 << 18
    ) as external:
        external.add(rows)
        shuffled = np.concatenate(list(external))
        assert external.scratch_bytes == rows.nbytes
    assert not is_rejected(transport_counts(shuffled), degrees_of_freedom=31**2)


def test_bucket_indices():
    for num_buckets in (2, 16, 256):
        buckets = assign_buckets(1 << 18, num_buckets, Entropy.from_seed(105))
        assert not is_rejected(np.bincount(buckets, minlength=num_buckets))


# ---------------------------------------------------------------- negative controls
def swap_with_any(generator):
    """Shuffle wrongly: each place is swapped with any place, 5^5 equally likely ways for 5!."""
    items = np.arange(NUM_ITEMS)
    for i in range(NUM_ITEMS):
        j = generator.integers(NUM_ITEMS)
        items[[i, j]] = items[[j, i]]
    return items


def remainder_of_a_few_bits(generator):
    """Shuffle wrongly: Fisher-Yates with 4-bit draws reduced by a modulo."""
    items = np.arange(NUM_ITEMS)
    for i in range(NUM_ITEMS - 1, 0, -1):
        j = generator.integers(16) % (i + 1)
        items[[i, j]] = items[[j, i]]
    return items


def buckets_left_in_order(generator):
    """Shuffle wrongly: split into 16 buckets, but do not permute these."""
    return np.argsort(generator.integers(16, size=NUM_ITEMS), kind="stable")


def identity_drawn_again(generator):
    """Shuffle wrongly: the identity is drawn again, as if it were not random enough."""
    items = generator.permutation(NUM_ITEMS)
    return items if (items != np.arange(NUM_ITEMS)).any() else generator.permutation(NUM_ITEMS)


@pytest.mark.parametrize(
    "flawed",
    [swap_with_any, remainder_of_a_few_bits, buckets_left_in_order, identity_drawn_again],
)
def test_planted_flaws_are_found(flawed):
    generator = Entropy.from_seed(106).generator()
    assert is_rejected(permutation_counts(lambda: flawed(generator), 24_000))


def test_a_batch_mixed_within_its_halves_only_is_found():
    entropy = Entropy.from_seed(107)
    halves = np.array_split(np.arange(1 << 16, dtype=np.uint32), 2)
    shuffled = np.concatenate([UniformShuffler().shuffle(half, entropy) for half in halves])
    assert is_rejected(transport_counts(shuffled), degrees_of_freedom=31**2)


def test_the_threshold_is_the_declared_rate():
    assert chdtrc(119, chdtri(119, RATE_PER_TEST)) == pytest.approx(RATE_PER_TEST, rel=1e-9)
