"""The external shuffle: no row lost, memory and files as promised, and what a full disk does."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutputError, ParameterError, ShuffledpError


def shuffled(pieces, *, seed=0, **arguments):
    """Return the rows of all pieces after a shuffle, and the size of its scratch file."""
    first = pieces[0]
    arguments = {"dtype": first.dtype, "row_shape": first.shape[1:]} | arguments
    with ExternalShuffle(entropy=Entropy.from_seed(seed), **arguments) as shuffle:
        for piece in pieces:
            shuffle.add(piece)
        blocks = list(shuffle)
        assert all(len(block) for block in blocks)
        return np.concatenate([first[:0], *blocks]), shuffle.scratch_bytes


@pytest.mark.slow
@settings(max_examples=50)
@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=4),
    dtype=st.sampled_from([np.uint8, np.uint16, np.int64]),
    width=st.sampled_from([None, 1, 3]),
    rows_in_memory=st.sampled_from([2, 3, 50, 1000]),
)
def test_rows_are_kept_whole_and_none_is_lost(sizes, dtype, width, rows_in_memory):
    row_shape = () if width is None else (width,)
    generator = Entropy.from_seed(1).generator()
    pieces = [generator.integers(0, 200, (size, *row_shape)).astype(dtype) for size in sizes]
    row_bytes = pieces[0].itemsize * (width or 1)
    result, scratch_bytes = shuffled(
        pieces, memory_limit_bytes=rows_in_memory * (2 * row_bytes + 1)
    )
    rows = np.concatenate(pieces)
    assert result.dtype == rows.dtype
    assert result.shape == rows.shape
    assert sorted(row.tobytes() for row in result) == sorted(row.tobytes() for row in rows)
    # A scratch file is made for what does not fit in memory, and only then; it holds each row once.
    assert scratch_bytes == (rows.nbytes if len(rows) > rows_in_memory else 0)


@pytest.mark.parametrize("total", [0, 1, 2])
def test_small_totals(total):
    result, scratch_bytes = shuffled([np.arange(total)])
    assert sorted(result.tolist()) == list(range(total))
    assert scratch_bytes == 0


def test_small_totals_need_no_directory(tmp_path):
    result, _ = shuffled([np.arange(1000)], directory=tmp_path / "missing")
    assert sorted(result.tolist()) == list(range(1000))


def test_the_order_depends_on_the_seed_only():
    rows = np.arange(5000)
    orders = [
        shuffled(pieces, seed=seed, memory_limit_bytes=17 * 1000)[0]
        for seed, pieces in [(1, [rows]), (1, [rows[:17], rows[17:3000], rows[3000:]]), (2, [rows])]
    ]
    assert (orders[0] == orders[1]).all()
    assert not (orders[0] == orders[2]).all()
    assert not (orders[0] == rows).all()


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes the file when it is closed")
def test_the_scratch_file_has_no_name(tmp_path):
    with ExternalShuffle(
        dtype=np.uint8, entropy=Entropy.from_seed(0), directory=tmp_path, memory_limit_bytes=300
    ) as shuffle:
        shuffle.add(np.zeros(1000, dtype=np.uint8))
        assert shuffle.scratch_bytes == 900
        assert list(tmp_path.iterdir()) == []


def test_rows_are_copied_in():
    rows = np.arange(10)
    with ExternalShuffle(dtype=rows.dtype, entropy=Entropy.from_seed(0)) as shuffle:
        shuffle.add(rows)
        rows[:] = 0
        assert sorted(np.concatenate(list(shuffle)).tolist()) == list(range(10))


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"missing needs 800 bytes .*No such file"):
        shuffled([np.arange(1000)], directory=tmp_path / "missing", memory_limit_bytes=1700)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_says_how_much_was_needed(monkeypatch):
    # Buffered, as scratch files are: closing the file tries to write once more.
    with io.BufferedRandom(io.FileIO("/dev/full", "wb+")) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
        with pytest.raises(OutputError, match=r"needs 800 bytes .*No space left") as raised:
            shuffled([np.arange(1000)], memory_limit_bytes=1700)
    assert isinstance(raised.value.__cause__, OSError)


def test_a_device_that_takes_and_gives_a_few_bytes_at_a_time(monkeypatch, tmp_path):
    class Slow(io.FileIO):
        def write(self, data):
            return super().write(data[:7])

        def readinto(self, target):
            return super().readinto(target[:5])

    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **_: io.BufferedRandom(Slow(tmp_path / "slow", "w+"))
    )
    result, _ = shuffled([np.arange(1000)], memory_limit_bytes=1700)
    assert (np.sort(result) == np.arange(1000)).all()


def test_a_scratch_file_cut_short_is_noticed():
    with ExternalShuffle(
        dtype=np.int64, entropy=Entropy.from_seed(0), memory_limit_bytes=1700
    ) as shuffle:
        shuffle.add(np.arange(1000))
        blocks = iter(shuffle)
        next(blocks)
        shuffle._file.truncate(10)
        with pytest.raises(OutputError, match="ends before row"):
            list(blocks)


def test_blocks_are_given_once():
    with ExternalShuffle(dtype=np.int64, entropy=Entropy.from_seed(0)) as shuffle:
        shuffle.add(np.arange(3))
        list(shuffle)
        with pytest.raises(ShuffledpError, match="asked for twice"):
            iter(shuffle)
        with pytest.raises(ShuffledpError, match="add all rows first"):
            shuffle.add(np.arange(3))


def test_nothing_is_taken_or_given_after_closing():
    with ExternalShuffle(dtype=np.int64, entropy=Entropy.from_seed(0)) as shuffle:
        pass
    with pytest.raises(ShuffledpError, match="were asked for"):
        shuffle.add(np.arange(3))
    with pytest.raises(ShuffledpError, match="were asked for"):
        iter(shuffle)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": np.uint8, "memory_limit_bytes": 5}, "memory_limit_bytes = 5 is below 6"),
        ({"dtype": np.uint8, "memory_limit_bytes": float("nan")}, "memory_limit_bytes = nan"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        ExternalShuffle(entropy=Entropy.from_seed(0), **arguments)


MEMORY_PROGRAM = """
from pathlib import Path

import numpy as np
from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.core.entropy import Entropy
from shuffledp.collection.uniform_shuffler import UniformShuffler

def peak_kib():
    # Not ru_maxrss, which a child inherits from its parent: the test would see nothing.
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

entropy = Entropy.from_operating_system()
rows = np.arange(1 << 20, dtype=np.uint16)
UniformShuffler().shuffle(rows, entropy)  # compiles, and takes its memory
before = peak_kib()
total = 0
with ExternalShuffle(dtype=rows.dtype, entropy=entropy, memory_limit_bytes=10 << 20) as shuffle:
    for _ in range(40):
        shuffle.add(rows)
    for block in shuffle:
        total += int(block.sum(dtype=np.int64))
assert total == 40 * int(rows.sum(dtype=np.int64))
print(shuffle.scratch_bytes, (peak_kib() - before) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is in /proc on Linux only")
def test_memory_stays_below_the_limit():
    outcome = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM], capture_output=True, text=True, check=True
    )
    scratch_bytes, used_bytes = map(int, outcome.stdout.split())
    assert scratch_bytes == 80 << 20
    # Beside the limit itself there are keystream buffers, offsets and allocation slack.
    assert (5 << 20) < used_bytes < (10 << 20) + (6 << 20)
