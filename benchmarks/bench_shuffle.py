"""Speed and peak memory of the keystream and of the shufflers, each beside NumPy's.

``extra_info`` has rows (or words) a second, and the peak memory of a process of its own that does
the same work once, interpreter and compiled code included (Linux only).
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.entropy import Entropy

PIECE_ROWS = 1_000_000


def fill_from_keystream(out):
    """Draw words as randomizers do."""
    out[...] = Entropy.from_operating_system().words(out.size)


def fill_from_pcg64(out):
    """Draw words from NumPy's default generator, which is not cryptographic."""
    pcg64 = np.random.PCG64()  # noqa: TID251 (the baseline)
    for start in range(0, out.size, PIECE_ROWS):
        piece = out[start : start + PIECE_ROWS]
        piece[:] = pcg64.random_raw(piece.size)


def shuffle_in_memory(num_rows, dtype):
    """Shuffle with this package, in memory."""
    rows = np.zeros(num_rows, dtype=dtype)
    UniformShuffler().shuffle(rows, Entropy.from_operating_system())


def shuffle_externally(num_rows, dtype):
    """Shuffle a stream with this package, through a scratch file."""
    piece = np.zeros(PIECE_ROWS, dtype=dtype)
    with ExternalShuffle(dtype=dtype, entropy=Entropy.from_operating_system()) as shuffle:
        for _ in range(num_rows // PIECE_ROWS):
            shuffle.add(piece)
        assert sum(block.size for block in shuffle) == num_rows


def shuffle_with_numpy(num_rows, dtype):
    """Shuffle with NumPy's default generator, in memory."""
    rows = np.zeros(num_rows, dtype=dtype)
    np.random.default_rng().permutation(rows)  # noqa: TID251 (the baseline)


SHUFFLES = {
    function.__name__: function
    for function in (shuffle_in_memory, shuffle_externally, shuffle_with_numpy)
}


@pytest.mark.benchmark(group="2^24 words")
@pytest.mark.parametrize("fill", [fill_from_keystream, fill_from_pcg64])
def test_words(benchmark, fill):
    out = np.zeros(1 << 24, dtype=np.uint64)
    benchmark.pedantic(fill, args=(out,), rounds=5, warmup_rounds=1)
    if benchmark.enabled:
        benchmark.extra_info["million_words_a_second"] = out.size / 1e6 / benchmark.stats.stats.min


@pytest.mark.benchmark(group="shuffle")
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("num_rows", [10**7, 10**8])
@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffle(benchmark, name, num_rows, dtype):
    benchmark.group = f"shuffle {num_rows:.0e} rows of {dtype}"
    shuffle = SHUFFLES[name]
    shuffle(PIECE_ROWS * 2, dtype)  # compiles
    benchmark.pedantic(shuffle, args=(num_rows, dtype), rounds=1)
    if benchmark.enabled:
        benchmark.extra_info["million_rows_a_second"] = num_rows / 1e6 / benchmark.stats.stats.min
        benchmark.extra_info["peak_megabytes"] = peak_megabytes(name, num_rows, dtype)


def peak_megabytes(name, num_rows, dtype):
    """Return the peak memory of a fresh process that runs one of the shuffles."""
    outcome = subprocess.run(
        [sys.executable, Path(__file__), name, str(num_rows), dtype],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(outcome.stdout)


if __name__ == "__main__":
    SHUFFLES[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
    # Not ru_maxrss, which a child inherits from its parent. Linux only; in kB of 1024 bytes.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6)
