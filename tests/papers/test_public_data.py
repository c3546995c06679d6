"""Public files are checked before they are kept; the columns that the papers use."""

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import public_data
from paper import Settings
from public_data import FILES, PublicFile, edge_list, load_adult, load_twitch, path_of
from shuffledp.core.errors import DataError

DATA = Path(__file__).parents[3] / "shared" / "data"
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


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    """Return what downloads a file of given facts into a folder."""

    def fetch(url, folder=tmp_path, **changes):
        wanted = PublicFile(
            names=("survey.csv", "old-survey.csv"),
            licence="nobody's, CC0",
            url=url,
            num_bytes=len(CONTENT),
            sha256=hashlib.sha256(CONTENT).hexdigest(),
        )
        monkeypatch.setitem(public_data.FILES, "survey", replace(wanted, **changes))
        return path_of("survey", Settings(data=folder, fetch=True))

    return fetch


def test_downloads_checks_and_keeps(address, fetched, tmp_path):
    path = fetched(f"{address}/whole", tmp_path / "new")
    assert path == tmp_path / "new" / "survey.csv"
    assert path.read_bytes() == CONTENT
    path.rename(path.with_name("old-survey.csv"))
    assert fetched("http://127.0.0.1:9/not-asked", tmp_path / "new").name == "old-survey.csv"


def test_the_kept_form_is_what_is_checked(address, fetched):
    kept = CONTENT.upper()
    digest = hashlib.sha256(kept).hexdigest()
    assert fetched(f"{address}/whole", kept_form=bytes.upper, sha256=digest).read_bytes() == kept


def no_number(content):
    return str(int(content)).encode()


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ("/half", {}, "gives another file"),
        ("/missing", {}, "404"),
        ("/whole", {"sha256": "0" * 64}, "gives another file"),
        ("/whole", {"num_bytes": len(CONTENT) - 2}, "gives another file"),
        ("/whole", {"kept_form": no_number}, "gives another file"),
    ],
)
def test_another_file_is_refused(address, fetched, tmp_path, *, path, changes, message):
    with pytest.raises(DataError, match=message):
        fetched(address + path, **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_says_where_it_can_be_had(tmp_path):
    with pytest.raises(DataError, match=r"adult.data: download it with --fetch, or from https"):
        path_of("adult", Settings(data=tmp_path))
    with pytest.raises(DataError, match=r"deezer_europe_edges.csv: get it .* at SNAP"):
        path_of("deezer", Settings(data=tmp_path, fetch=True))
    with pytest.raises(DataError, match=r"deezer_europe_edges.csv .* at SNAP\): give --data"):
        path_of("deezer", Settings())


def test_friends(tmp_path):
    (tmp_path / "musae_DE_edges.csv").write_text("from,to\n1,0\n2,1\n0,1\n")
    rows = "id,mature,new_id\n7,True,1\n8,False,0\n"
    (tmp_path / "musae_DE_target.csv").write_text(rows + "9,True,2\n")
    edges, mature = load_twitch(Settings(data=tmp_path))
    assert edges.tolist() == [[0, 1], [1, 2]]
    assert mature.tolist() == [0, 1, 1]
    (tmp_path / "musae_DE_target.csv").write_text(rows)
    with pytest.raises(DataError, match="do the files belong together"):
        load_twitch(Settings(data=tmp_path))


@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not on this machine")
def test_the_real_files():
    for key, name in (("adult", "adult.data"), ("twitch answers", "musae_DE_target.csv")):
        content = (DATA / name).read_bytes()
        assert (len(content), digest(content)) == (FILES[key].num_bytes, FILES[key].sha256)
    graph = (DATA / "twitch_de_lcc_edges.csv").read_bytes()
    assert edge_list(graph) == graph
    assert digest(graph) == FILES["twitch"].sha256
    census = load_adult(Settings(data=DATA))
    assert len(census) == 32_561
    assert (census["age"].min(), census["age"].max()) == (17, 90)
    assert (census["income"] == ">50K").sum() == 7_841
    assert census["marital_status"].n_unique() == 7
    edges, mature = load_twitch(Settings(data=DATA))
    assert edges.shape == (153_138, 2)
    assert np.bincount(mature).tolist() == [3_756, 5_742]


def digest(content):
    return hashlib.sha256(content).hexdigest()
