"""The entropy stream: known answers, where keys come from, and that no word comes twice."""

import copy
import hashlib
import inspect
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from adversarial.tapes import ScriptedWords
from shuffledp.core import entropy as module
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError

# Streams keyed by the operating system repeat a word with probability below m^2 / 2^65 for m words
# compared; all tests of this file together compare fewer than 10^5.
FALSE_POSITIVE_RATE = 3e-10

# AES-256 of the all-zero key at the blocks 0, 1 and 2: the values H, E(K, Y0) and the ciphertext
# of McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test cases 13 and 14.
ZERO_KEY_KEYSTREAM = bytes.fromhex(
    "dc95c078a2408989ad48a21492842087"
    "530f8afbc74536b9a963b4f1c4cb738b"
    "cea7403d4d606b6e074ec5d3baf39d18"
)


def keystream(key: bytes, num_bytes: int) -> bytes:
    """Return the AES-256-CTR keystream by another road: block by block, without counter mode."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 (a test)
    blocks = [counter.to_bytes(16, "big") for counter in range(-(-num_bytes // 16))]
    return cipher.update(b"".join(blocks))[:num_bytes]


@pytest.fixture
def keys(monkeypatch):
    """Keys that the operating system will give, and a list of the sizes asked for."""
    asked = []

    def read(num_bytes):
        asked.append(num_bytes)
        return bytes([len(asked)]) * num_bytes

    monkeypatch.setattr(module, "_read_operating_system", read)
    return asked


def test_known_answer(monkeypatch):
    monkeypatch.setattr(module, "_read_operating_system", bytes)
    assert Entropy.from_operating_system().words(6).tobytes() == ZERO_KEY_KEYSTREAM


def test_the_key_is_256_bits_of_the_operating_system(keys):
    entropy = Entropy.from_operating_system()
    words = entropy.words(100_000)
    assert keys == [32]
    assert words.tobytes() == keystream(bytes([1]) * 32, words.nbytes)


def test_the_reader_asks_the_operating_system(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda count: b"x" * count)
    # Behind the secrets that the tests fix.
    read = inspect.unwrap(module._read_operating_system)
    assert read(3) == b"xxx"


def test_seed_key_is_documented():
    key = hashlib.sha256(b"shuffledp simulation42").digest()
    assert Entropy.from_seed(42).words(1000).tobytes() == keystream(key, 8000)


@given(counts=st.lists(st.integers(0, 40_000), max_size=8))
def test_the_stream_does_not_depend_on_how_it_is_cut(counts):
    entropy = Entropy.from_seed(1)
    pieces = [entropy.words(count) for count in counts]
    whole = Entropy.from_seed(1).words(sum(counts))
    assert np.concatenate([*pieces, whole[:0]]).tobytes() == whole.tobytes()


@pytest.mark.parametrize("count", [0, 1, 2, 16_384, 16_385, 32_768, 32_769, 100_001])
def test_words_have_the_size_asked_for(count):
    words = Entropy.from_operating_system().words(count)
    assert words.shape == (count,)
    assert words.dtype == np.uint64
    assert np.unique(words).size == count


def test_streams_differ():
    streams = [
        Entropy.from_operating_system(),
        Entropy.from_operating_system(),
        Entropy.from_operating_system().spawn(),
        Entropy.from_seed(0),
        Entropy.from_seed(1),
        Entropy.from_seed(10),
        Entropy.from_seed(0).spawn(),
        Entropy.from_seed(0).spawn().spawn(),
        Entropy.from_seed(1).spawn(),
    ]
    words = np.concatenate([stream.words(100) for stream in streams])
    assert np.unique(words).size == words.size


def test_spawned_simulations_depend_on_seed_and_place_only():
    first, second = Entropy.from_seed(5), Entropy.from_seed(5)
    second.words(1000)
    first_children = [first.spawn().words(3).tolist() for _ in range(3)]
    assert first_children == [second.spawn().words(3).tolist() for _ in range(3)]
    assert len({tuple(words) for words in first_children}) == 3
    assert first.spawn().is_simulation


def test_spawn_reads_a_key_of_its_own(keys):
    entropy = Entropy.from_operating_system()
    child = entropy.spawn()
    assert not child.is_simulation
    assert not np.isin(child.words(10), entropy.words(10)).any()
    assert keys == [32, 32]


def test_a_key_gives_the_same_words_again_and_simulates_nothing():
    streams = [Entropy.from_key(bytes(range(32))) for _ in range(2)]
    words = streams[0].words(300)
    assert words.tobytes() == keystream(bytes(range(32)), 2400)
    assert (streams[1].words(300) == words).all()
    assert not streams[0].is_simulation
    assert not streams[0].spawn().is_simulation
    with pytest.raises(ParameterError, match="key has 31 bytes: give 32"):
        Entropy.from_key(bytes(31))


def test_no_word_repeats():
    entropy = Entropy.from_seed(3)
    words = np.concatenate([entropy.words(count) for count in [1, 999, 99_000, 900_000]])
    assert np.unique(words).size == 1_000_000


def test_arrays_never_overlap():
    entropy = Entropy.from_seed(4)
    arrays = [entropy.words(count) for count in [1, 2, 1000, 20_000, 5, 40_000, 3]]
    before = [array.copy() for array in arrays]
    for array in arrays:
        for other in arrays:
            assert array is other or not np.shares_memory(array, other)
    arrays[0][:] = 0
    entropy.words(100_000)
    for array, copied in zip(arrays[1:], before[1:], strict=True):
        assert (array == copied).all()


def test_choose():
    assert not Entropy.choose(None).is_simulation
    assert Entropy.choose(0).is_simulation
    assert (Entropy.choose(9).words(4) == Entropy.from_seed(9).words(4)).all()
    assert Entropy.from_seed(np.int64(9)).words(1) == Entropy.from_seed(9).words(1)


@pytest.mark.parametrize("seed", [-1, 1.5, float("nan"), "1"])
def test_bad_seeds_are_named(seed):
    with pytest.raises(ParameterError, match="seed = "):
        Entropy.from_seed(seed)


@pytest.mark.parametrize("count", [-1, 2.0, float("nan"), None])
def test_bad_counts_are_named(count):
    with pytest.raises(ParameterError, match="count = "):
        Entropy.from_seed(0).words(count)


def test_a_new_key_is_taken_before_one_wears_out(keys, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_PER_KEY", 1 << 17)
    words = Entropy.from_operating_system().words(32_768)
    assert keys == [32, 32]
    assert words.tobytes() == b"".join(keystream(bytes([i]) * 32, 1 << 17) for i in (1, 2))


def test_a_simulation_takes_a_new_key_at_the_same_place_however_it_is_cut(monkeypatch):
    monkeypatch.setattr(module, "_BYTES_PER_KEY", 1 << 19)
    whole = Entropy.from_seed(6).words(300_000)
    assert np.unique(whole).size == whole.size
    entropy = Entropy.from_seed(6)
    pieces = [entropy.words(count) for count in [1, 70_000, 3, 30_000, 199_996]]
    assert (np.concatenate(pieces) == whole).all()


def test_limit_of_a_key_is_what_the_documentation_says():
    assert module._BYTES_PER_KEY == 16 * 2**36


@pytest.mark.parametrize(("count", "lost"), [(10, 256), (50_000, 32_768)])
def test_words_drawn_by_an_interrupted_call_are_lost_not_repeated(count, lost):
    class Interrupted:
        def __init__(self, cipher):
            self.cipher = cipher

        def update_into(self, data, buffer):
            self.cipher.update_into(data, buffer)
            raise KeyboardInterrupt

    entropy = Entropy.from_seed(8)
    before = entropy.words(1)
    entropy.words(63)  # exactly the buffer
    cipher = entropy._cipher
    entropy._cipher = Interrupted(cipher)
    with pytest.raises(KeyboardInterrupt):
        entropy.words(count)
    entropy._cipher = cipher
    after = entropy.words(1000)
    stream = Entropy.from_seed(8).words(200_000)
    assert before == stream[0]
    # Everything that the interrupted call drew lies before what comes now.
    place = np.flatnonzero(stream == after[0])
    assert place.size == 1
    assert place[0] == 64 + lost
    assert (stream[place[0] : place[0] + 1000] == after).all()


def test_threads_share_a_stream_without_repetition():
    entropy = Entropy.from_seed(11)
    start = threading.Barrier(4)

    def draw():
        start.wait()
        return [entropy.words(count) for count in [1, 100, 20_000, 7] * 10]

    with ThreadPoolExecutor(4) as pool:
        results = [future.result() for future in [pool.submit(draw) for _ in range(4)]]
    drawn = np.concatenate([words for words_of_one in results for words in words_of_one])
    assert (np.sort(drawn) == np.sort(Entropy.from_seed(11).words(drawn.size))).all()


def test_threads_spawn_different_streams():
    entropy = Entropy.from_seed(12)
    with ThreadPoolExecutor(4) as pool:
        words = list(pool.map(lambda _: int(entropy.spawn().words(1)[0]), range(200)))
    expected = Entropy.from_seed(12)
    assert sorted(words) == sorted(int(expected.spawn().words(1)[0]) for _ in range(200))


@pytest.mark.parametrize("entropy", [Entropy.from_operating_system(), Entropy.from_seed(123_456)])
def test_key_material_is_not_shown(entropy):
    assert repr(entropy) in {"Entropy(simulation)", "Entropy(operating system)"}
    assert str(entropy) == repr(entropy)
    assert repr(entropy.for_block(3)) == "BlockEntropy(...)"


@pytest.mark.parametrize("replay", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("entropy", [Entropy.from_operating_system(), Entropy.from_seed(0)])
def test_it_cannot_be_replayed_by_copying(entropy, replay):
    with pytest.raises(ParameterError, match=r"spawn\(\)"):
        replay(entropy)


def test_a_child_process_forgets_what_the_parent_holds(keys):
    entropy = Entropy.from_operating_system()
    entropy.words(10)
    lock = entropy._lock
    with lock:  # as if another thread of the parent had been drawing
        module._count_fork()
        words = entropy.words(10)
    assert keys == [32, 32]
    assert words.tobytes() == keystream(bytes([2]) * 32, 80)


def test_a_simulation_keeps_its_place_in_a_child_process():
    entropy = Entropy.from_seed(13)
    first = entropy.words(10)
    with entropy._lock:
        module._count_fork()
        second = entropy.words(10)
    assert (np.concatenate([first, second]) == Entropy.from_seed(13).words(20)).all()


def test_a_stream_that_cannot_take_a_key_in_a_child_process_draws_nothing(monkeypatch):
    streams = [Entropy.from_operating_system() for _ in range(20)]
    before = [stream.words(2).tolist() for stream in streams]
    module._count_fork()

    def fail(_):
        raise OSError("no entropy")

    with monkeypatch.context() as broken:
        broken.setattr(module, "_read_operating_system", fail)
        for stream in streams:
            with pytest.raises(OSError, match="no entropy"):
                stream.words(2)
    after = [stream.words(2).tolist() for stream in streams]
    assert len({word for pair in before + after for word in pair}) == 80


def test_threads_of_a_child_process_renew_a_stream_once(keys, monkeypatch):
    entropy = Entropy.from_operating_system()
    entropy.words(1)
    module._count_fork()

    class OtherThreadIsFirst:
        def __enter__(self):
            monkeypatch.setattr(module, "_renewing", threading.Lock())
            self.words = entropy.words(10)
            self.lock = entropy._lock

        def __exit__(self, *_):
            pass

    other = OtherThreadIsFirst()
    monkeypatch.setattr(module, "_renewing", other)
    words = entropy.words(10)
    assert entropy._lock is other.lock
    assert np.concatenate([other.words, words]).tobytes() == keystream(bytes([2]) * 32, 160)


FORK_PROGRAM = """
import ctypes, os, sys, warnings
warnings.simplefilter("ignore")  # newer Pythons dislike any fork
from shuffledp.core.entropy import Entropy, draw_below

entropy = Entropy.from_operating_system()
simulation = Entropy.from_seed(1)
draw_below(entropy, 1, 2**63)
for source in (entropy, simulation):
    source.words(10)

def show():
    print("secret", *entropy.words(50), *draw_below(entropy, 50, 2**63))
    print("simulated", *simulation.words(50))
    sys.stdout.flush()

past_python = sys.argv[1]
fork = os.fork if past_python == "no" else ctypes.CDLL(None).fork
for _ in range(2):
    child = fork()
    if child == 0:
        show()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
show()
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this system")
@pytest.mark.parametrize("past_python", ["no", "yes"])
def test_forked_children_share_no_word_with_each_other_or_the_parent(past_python):
    outcome = subprocess.run(
        [sys.executable, "-c", FORK_PROGRAM, past_python],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in outcome.stdout.splitlines()]
    secret = [word for kind, *words in lines if kind == "secret" for word in words]
    assert len(secret) == len(set(secret)) == 300
    simulated = {tuple(words) for kind, *words in lines if kind == "simulated"}
    assert len(simulated) == 1


@given(bound=st.integers(2, 200))
def test_each_number_below_the_bound_has_the_same_number_of_words(bound):
    # Each value of the leading bits once: what is not below the bound is drawn anew, here as 0.
    bits = (bound - 1).bit_length()
    words = [value << (64 - bits) for value in range(2**bits)]
    spare = [0] * (2**bits - bound)
    drawn = draw_below(ScriptedWords([*words, *spare]), len(words), bound)
    assert drawn.tolist() == [*range(bound), *spare]


def test_what_is_drawn_anew_may_be_refused_again():
    words = [0b11 << 62, 0b01 << 62, 0b11 << 62, 0b10 << 62]
    assert draw_below(ScriptedWords(words), 2, 3).tolist() == [2, 1]


@pytest.mark.parametrize("bound", [1, 2**62, 2**63])
def test_bounds_that_are_powers_of_two_refuse_nothing(bound):
    words = [2**64 - 1, 0, 2**63]
    shift = 64 - (bound - 1).bit_length()
    assert draw_below(ScriptedWords(words), 3, bound).tolist() == [w >> shift for w in words]


@pytest.mark.parametrize("bound", [2**63 + 1, 3**40, 3 * 2**62, 2**64 - 1])
def test_bounds_beyond_half_of_all_words(bound):
    words = [bound - 1, bound, 2**64 - 1, 0, 5, 7]
    kept = [word for word in words[:4] if word < bound]
    drawn = draw_below(ScriptedWords(words), 4, bound).tolist()
    assert sorted(drawn) == sorted([*kept, *words[4 : 8 - len(kept)]])


def test_statistical_generators_are_seeded_with_words_of_streams_of_their_own():
    words = Entropy.from_seed(3).spawn().words(4)
    expected = np.random.Generator(np.random.PCG64(words)).random(100)  # noqa: TID251
    assert (Entropy.from_seed(3).generator().random(100) == expected).all()
    simulated, secret = Entropy.from_seed(3), Entropy.from_operating_system()
    generators = [each.generator() for each in (simulated, simulated, secret, secret)]
    drawn = np.concatenate([each.random(100) for each in generators])
    assert np.unique(drawn).size == drawn.size
