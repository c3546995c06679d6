"""Public files are checked before they get their name; what goes wrong leaves nothing behind."""

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shuffledp.core.errors import DataError, OutputError
from shuffledp.datasets.fetching import (
    PublicFile,
    fetch_public_file,
    find_public_file,
    require_header,
    sha256_of,
)

CONTENT = b"age,income\n" + b"39,low\n" * 20_000


class Handler(BaseHTTPRequestHandler):
    """Serves the content whole, or half of it."""

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if self.path == "/half" else CONTENT)

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    """Run a server on this machine; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def address():
    with serving() as url:
        yield url


def public_file(url, **changes):
    wanted = PublicFile(
        name="survey.csv",
        other_names=("old-survey.csv",),
        url=url,
        num_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence="nobody's, CC0",
    )
    return replace(wanted, **changes)


def test_downloads_checks_and_keeps(address, tmp_path):
    seen = []
    path = fetch_public_file(
        public_file(f"{address}/whole"),
        tmp_path / "new" / "folder",
        on_progress=lambda *stage: seen.append(stage),
    )
    assert path == tmp_path / "new" / "folder" / "survey.csv"
    assert path.read_bytes() == CONTENT
    assert sha256_of(path) == public_file("").sha256
    assert [each.name for each in path.parent.iterdir()] == ["survey.csv"]
    assert seen[-1] == ("downloading survey.csv", len(CONTENT), len(CONTENT))


def test_a_file_that_is_there_is_taken_as_it_is(tmp_path):
    wanted = public_file("http://127.0.0.1:9/not-asked")
    (tmp_path / "old-survey.csv").write_text("another edition")
    assert fetch_public_file(wanted, tmp_path) == tmp_path / "old-survey.csv"
    assert find_public_file(wanted, tmp_path) == tmp_path / "old-survey.csv"


def test_the_kept_form_is_what_is_checked(address, tmp_path):
    kept = CONTENT.upper()
    wanted = public_file(
        f"{address}/whole", kept_form=bytes.upper, sha256=hashlib.sha256(kept).hexdigest()
    )
    assert fetch_public_file(wanted, tmp_path).read_bytes() == kept


def no_number(content):
    return str(int(content)).encode()


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ("/half", {}, "of 140,011: the download was cut short"),
        ("/missing", {}, "the server answers 404"),
        ("/whole", {"sha256": "0" * 64}, "gives another file .* instead of 000000000000"),
        ("/whole", {"num_bytes": len(CONTENT) - 1}, "gives another file"),
        ("/whole", {"kept_form": no_number}, "gives another file"),
    ],
)
def test_what_is_not_the_file_is_refused(address, tmp_path, path, changes, message):
    with pytest.raises(DataError, match=message):
        fetch_public_file(public_file(address + path, **changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_offline_is_one_clear_line(tmp_path):
    with serving() as url:
        pass  # nobody listens there any more
    with pytest.raises(DataError, match=r"cannot download survey.csv from http.*refused") as caught:
        fetch_public_file(public_file(f"{url}/whole"), tmp_path)
    assert "\n" not in str(caught.value)


def test_only_secure_addresses_are_asked(tmp_path):
    with pytest.raises(DataError, match="no https address"):
        fetch_public_file(public_file("file:///etc/passwd"), tmp_path)


def test_a_missing_file_says_where_it_can_be_had(tmp_path):
    wanted = public_file("https://example.org/survey.csv")
    with pytest.raises(DataError, match=r"survey.csv or old-survey.csv.*--fetch.*example.org.*CC0"):
        find_public_file(wanted, tmp_path)


def test_a_folder_that_cannot_be_written_to(address, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        fetch_public_file(public_file(f"{address}/whole"), tmp_path / "file")


def test_header(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    require_header(path, ("b", "a"))
    with pytest.raises(DataError, match=r"table.csv has no column 'c' \(its columns: a,"):
        require_header(path, ("a", "c"))
