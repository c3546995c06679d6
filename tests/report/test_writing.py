from pathlib import Path

import pytest

from shuffledp.core.errors import OutputError
from shuffledp.report.writing import write_text_atomically


def test_text_arrives_byte_for_byte(tmp_path):
    path = write_text_atomically(str(tmp_path / "a.html"), "\u03b5 \u2264 1\n\r\n")
    assert path.read_bytes() == "\u03b5 \u2264 1\n\r\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_an_older_file_is_replaced(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("old")
    write_text_atomically(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_whatever_goes_wrong_the_older_file_stays_and_nothing_else(tmp_path, monkeypatch, error):
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr("os.fsync", fail)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_one_clear_line(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory") as caught:
        write_text_atomically(tmp_path / "absent" / "a.html", "text")
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(OutputError, match=r"a\.html"):
        write_text_atomically(tmp_path / "a.html", "text")
    assert list(tmp_path.iterdir()) == [Path(tmp_path / "a.html")]
