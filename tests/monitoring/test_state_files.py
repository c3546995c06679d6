import os
import stat

import numpy as np
import polars as pl
import pytest

from shuffledp.core.errors import DataError, OutputError
from shuffledp.monitoring import state_files
from shuffledp.monitoring.state_files import (
    MonitorState,
    read_state,
    require_place,
    write_state,
)


def state(**changes) -> MonitorState:
    settings = {
        "settings": {"periods": 8, "values": ["a", "b"], "epsilon0": 1.5},
        "seed": 7,
        "next_period": 3,
        "digest": b"\x01" * 32,
        "groups": ((0, 1), (2, 3)),
        "user_ids": pl.Series("user", ["ä", "", "b\nc"]),
        "fleet": {"n": np.array(5), "v": np.arange(3, dtype=np.int8)},
        "server": {"s": np.arange(6, dtype=np.int64).reshape(3, 2), "none": np.empty(0)},
    }
    return MonitorState(**(settings | changes))


def assert_same(a: MonitorState, b: MonitorState):
    for name in ("settings", "seed", "next_period", "digest", "groups"):
        assert getattr(a, name) == getattr(b, name)
    assert a.user_ids.equals(b.user_ids)
    for part in ("fleet", "server"):
        mine, other = getattr(a, part), getattr(b, part)
        assert list(mine) == list(other)
        for name, array in mine.items():
            assert array.dtype.newbyteorder("=") == other[name].dtype
            np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": None, "digest": b"", "next_period": 1},
        {"user_ids": pl.Series("user", [-5, 2**62])},
        {"fleet": {"be": np.arange(4, dtype=">i4")[::2], "f": np.asfortranarray(np.eye(3))}},
        {"fleet": {name: np.zeros(2, name) for name in ("b1", "u1", "u2", "i2", "u4", "u8")}},
    ],
)
def test_a_state_is_read_as_it_was_written(tmp_path, changes):
    written = state(**changes)
    write_state(written, tmp_path / "folder" / "x.state")
    read = read_state(tmp_path / "folder" / "x.state")
    assert_same(written, read)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "x.state"
    write_state(state(), path)
    return path


def test_a_file_cut_short_anywhere_is_refused(written):
    data = written.read_bytes()
    for length in range(len(data)):
        written.write_bytes(data[:length])
        with pytest.raises(DataError, match=r"cut short|no state file") as error:
            read_state(written)
        assert "\n" not in str(error.value)


def test_any_changed_byte_is_noticed(written):
    data = bytearray(written.read_bytes())
    for place in range(len(data)):
        data[place] ^= 1
        written.write_bytes(data)
        with pytest.raises(DataError, match=r"damaged|no state file|of version"):
            read_state(written)
        data[place] ^= 1


def test_something_appended_is_noticed(written):
    written.write_bytes(written.read_bytes() + b"x")
    with pytest.raises(DataError, match="checksum does not match"):
        read_state(written)


def test_another_version_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(state_files, "_VERSION", 3)
    write_state(state(), tmp_path / "x.state")
    monkeypatch.undo()
    with pytest.raises(DataError, match=r"of version 3, and this shuffledp reads version 2: go on"):
        read_state(tmp_path / "x.state")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.state"
    path.write_text("id,day,on\n" * 50)
    with pytest.raises(DataError, match="is no state file"):
        read_state(path)
    with pytest.raises(DataError, match=r"there is no state file .*: start without resume"):
        read_state(tmp_path / "y.state")
    with pytest.raises(DataError, match="cannot read"):
        read_state(tmp_path)


@pytest.mark.parametrize("changes", [{"fleet": {"c": np.zeros(2, complex)}}, {"groups": ((0,),)}])
def test_contents_that_do_not_fit_are_refused_despite_their_checksum(tmp_path, changes):
    path = tmp_path / "x.state"
    write_state(state(**changes), path)
    with pytest.raises(DataError, match="but not its contents"):
        read_state(path)


def test_arrays_that_are_not_all_there_are_refused(tmp_path, monkeypatch):
    lost = state()
    monkeypatch.setattr(state_files, "_little_endian", _Longer)
    write_state(lost, tmp_path / "x.state")
    with pytest.raises(DataError, match="but not its contents"):
        read_state(tmp_path / "x.state")


class _Longer:
    """Claims to be of another size than it is."""

    def __init__(self, array):
        self.dtype = np.dtype(np.int8)
        self.shape = (1,)

    def reshape(self, _):
        return np.zeros(2, dtype=np.int8)


def test_what_a_killed_program_left_is_removed_at_the_next_start(written):
    stale = written.with_name(".x.state.k4z2_0aq.new")
    stale.write_bytes(b"half a state")
    other = written.with_name(".y.state.k4z2_0aq.new")
    other.write_bytes(b"of another simulation")
    assert_same(read_state(written), state())
    require_place(written)
    assert sorted(each.name for each in written.parent.iterdir()) == [other.name, "x.state"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_its_owner_may_read_a_state(written):
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    written.chmod(0o644)
    write_state(state(), written)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_is_replaced_and_what_it_leads_to_is_left(written, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    written.unlink()
    written.symlink_to(elsewhere)
    write_state(state(), written)
    assert elsewhere.read_bytes() == b"mine"
    assert not written.is_symlink()


def test_a_failed_write_leaves_the_earlier_state(written, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_files.os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_state(state(next_period=4), written)
    monkeypatch.undo()
    assert read_state(written).next_period == 3
    assert [each.name for each in written.parent.iterdir()] == ["x.state"]
