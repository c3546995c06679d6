"""Folders forced to disk, where that can be done."""

import pytest

from shuffledp.core import files as durable_files


def test_where_folders_cannot_be_opened_they_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(durable_files.sys, "platform", "win32")
    durable_files.sync_folder(tmp_path / "nowhere")


def test_a_folder_that_is_not_there_is_noticed(tmp_path):
    with pytest.raises(FileNotFoundError):
        durable_files.sync_folder(tmp_path / "nowhere")
