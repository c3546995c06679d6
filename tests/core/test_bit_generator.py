"""NumPy's generator on the keystream: the words, the distributions, threads, forks, refusals."""

import copy
import ctypes
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shuffledp.core import entropy as entropy_module
from shuffledp.core import keystream_kernels
from shuffledp.core.bit_generator import KeystreamBitGenerator
from shuffledp.core.entropy import Entropy, start_keystream
from shuffledp.core.errors import ParameterError


def generator_and_words(seed: int, count: int):
    """Return a generator and, by another road, the words of its keystream."""
    key = Entropy.from_seed(seed).spawn().words(4).tobytes()
    words = np.frombuffer(start_keystream(key).update(bytes(8 * count)), dtype=np.uint64)
    return Entropy.from_seed(seed).generator(), words


def test_raw_words_are_the_keystream_across_refills():
    generator, words = generator_and_words(1, 20_000)
    pieces = [generator.bit_generator.random_raw(count) for count in [1, 4095, 1, 10_000, 5903]]
    assert (np.concatenate(pieces) == words).all()


def test_numbers_are_made_of_the_words():
    generator, words = generator_and_words(2, 10_000)
    assert (generator.random(5000) == (words[:5000] >> np.uint64(11)) * 2.0**-53).all()
    full_range = generator.integers(0, 2**64 - 1, 4000, dtype=np.uint64, endpoint=True)
    assert (full_range == words[5000:9000]).all()
    halves = generator.integers(0, 2**32 - 1, 1000, dtype=np.uint32, endpoint=True)
    assert (halves == words[9000:] >> np.uint64(32)).all()


def test_distributions_work_and_are_reproducible():
    def draw():
        generator = Entropy.from_seed(3).generator()
        shuffled = np.arange(1000)
        generator.shuffle(shuffled)
        return [
            shuffled,
            generator.permutation(1000),
            generator.normal(size=10_000),
            generator.integers(0, 10, 10_000),
            generator.random(10_000, dtype=np.float32),
            generator.choice(1000, size=100, replace=False),
            generator.binomial(10, 0.3, 1000),
            generator.multinomial(100, [0.2, 0.8]),
        ]

    first, second = draw(), draw()
    for a, b in zip(first, second, strict=True):
        assert (a == b).all()
    shuffled, permutation, normal, integers, *_ = first
    assert (np.sort(shuffled) == np.arange(1000)).all()
    assert (np.sort(permutation) == np.arange(1000)).all()
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1.0) < 0.05
    assert (np.bincount(integers) > 900).all()


def test_generators_differ():
    simulated = Entropy.from_seed(4)
    secret = Entropy.from_operating_system()
    generators = [simulated.generator(), simulated.generator(), secret.generator()]
    generators += [secret.generator(), Entropy.from_seed(5).generator()]
    generators += generators[0].spawn(2) + generators[2].spawn(2)
    words = np.concatenate([one.bit_generator.random_raw(100) for one in generators])
    assert np.unique(words).size == words.size


def test_threads_share_a_generator_without_repetition():
    generator, words = generator_and_words(6, 200_000)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: generator.random(10_000), range(20)))
    expected = (words >> np.uint64(11)) * 2.0**-53
    assert (np.sort(np.concatenate(drawn)) == np.sort(expected)).all()


def test_threads_have_generators_of_their_own():
    parents = [Entropy.from_seed(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda parent: parent.generator().random(50_000), parents))
    for seed, result in enumerate(results):
        assert (result == Entropy.from_seed(seed).generator().random(50_000)).all()


def test_everything_that_compiled_code_points_to_stays_alive():
    generators = [Entropy.from_seed(seed).generator() for seed in range(50)]
    del generators[::2]
    gc.collect()
    for index, generator in enumerate(generators):
        expected = Entropy.from_seed(2 * index + 1).generator().random(10_000)
        assert (generator.random(10_000) == expected).all()


def test_a_refill_that_fails_is_tried_again():
    generator, words = generator_and_words(7, 9000)
    bit_generator = generator.bit_generator
    generator.random(4000)
    calls = []

    def refill():
        calls.append(None)
        if len(calls) == 3:
            bit_generator._refill()

    unreliable = ctypes.CFUNCTYPE(None)(refill)
    address = ctypes.c_size_t.from_buffer(unreliable).value
    bit_generator._state_words[keystream_kernels.REFILL] = address
    assert (bit_generator.random_raw(196) == words[4000:4196]).all()
    assert len(calls) == 3


def test_a_child_process_gets_another_key():
    kept = Entropy.from_operating_system().generator()
    state = kept.bit_generator._state_words
    kept.random(10)
    before = state.copy()
    entropy_module._count_fork()
    kept.random(10)
    assert not np.isin(state[keystream_kernels.BUFFER :], before).any()


def test_a_simulation_goes_on_in_a_child_process():
    generator, words = generator_and_words(8, 20)
    first = generator.bit_generator.random_raw(10)
    entropy_module._count_fork()
    second = generator.bit_generator.random_raw(10)
    assert (np.concatenate([first, second]) == words).all()


@pytest.mark.parametrize(
    "replay",
    [
        pickle.dumps,
        copy.deepcopy,
        lambda generator: copy.copy(generator.bit_generator),
        lambda generator: generator.bit_generator.state,
        lambda generator: setattr(generator.bit_generator, "state", {}),
        lambda generator: generator.bit_generator.seed_seq,
    ],
)
def test_it_cannot_be_replayed(replay):
    with pytest.raises(ParameterError, match=r"spawn|another"):
        replay(Entropy.from_seed(0).generator())


def test_the_type_is_numpys():
    bit_generator = Entropy.from_seed(0).generator().bit_generator
    assert isinstance(bit_generator, KeystreamBitGenerator)
    assert isinstance(bit_generator, np.random.BitGenerator)
