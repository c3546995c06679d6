"""Files and folders forced to disk, where that can be done."""

import os

import pytest

from shuffledp.core import files as durable_files
from shuffledp.core.errors import DataError


def test_where_folders_cannot_be_opened_they_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(durable_files.sys, "platform", "win32")
    durable_files.sync_folder(tmp_path / "nowhere")


def test_a_folder_that_is_not_there_is_noticed(tmp_path):
    with pytest.raises(FileNotFoundError):
        durable_files.sync_folder(tmp_path / "nowhere")


def test_a_file_on_a_full_disk_is_removed_and_named(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left") as found:
        durable_files.write_new(tmp_path / "a", b"x", mode=0o600)
    assert found.value.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_read_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {"pipe": "a pipe or a device", "": "a folder", "x": "no such"}.items():
        with pytest.raises(DataError, match=reason):
            durable_files.require_file(tmp_path / name)


def test_a_replaced_file_keeps_its_mode_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.bin"
    (tmp_path / ".a.bin.new").write_bytes(b"of a killed process")
    durable_files.replace_file(path, b"one", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o600)
    path.chmod(0o664)
    durable_files.replace_file(path, b"two", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o664)
    with pytest.raises(TypeError):
        durable_files.replace_file(path, None)
    assert [each.name for each in tmp_path.iterdir()] == ["a.bin"]


def test_texts_are_read_with_and_without_a_mark_or_refused_in_one_line(tmp_path):
    path = tmp_path / "a.txt"
    for data in ("é\r\nb".encode(), b"\xef\xbb\xbf" + "é\r\nb".encode()):
        path.write_bytes(data)
        with durable_files.text_file(path) as file:
            assert file.read() == "é\nb"
        with durable_files.text_file(path, newline="") as file:
            assert file.read() == "é\r\nb"
    path.write_bytes(b"\xff\xff")
    refused = {
        path: "it is not text in UTF-8",
        tmp_path: "Is a directory",
        tmp_path / "x": "No such",
    }
    for each, reason in refused.items():
        with (
            pytest.raises(DataError, match=f"cannot read .*: {reason}"),
            durable_files.text_file(each) as file,
        ):
            file.read()
