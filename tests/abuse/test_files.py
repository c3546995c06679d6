"""Files and requests that somebody else prepared: stores, terms, tokens, URLs."""

import json
import os
import stat

import pytest

from graph_families import complete_graph
from peers.link import ANY_SIZE, simple_terms
from shuffledp.core.errors import DataError, OutputError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.remote import cautions_about
from shuffledp.deploy.servers import http_server
from shuffledp.deploy.wire import ProtocolError, Reason
from shuffledp.peers.collecting import FetchedStore, read_terms
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.peer_runner import PeerStore
from shuffledp.peers.relay_client import RelayClient

TERMS = simple_terms(complete_graph(6), PrivateKeys.generate(), rounds=2, report_bytes=4)
KINDS = [FetchedStore, PeerStore]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_others_can_read_is_closed_to_them(tmp_path, kind):
    path = tmp_path / "a.db"
    path.touch()
    logs = path.with_name("a.db-wal"), path.with_name("a.db-journal")
    for file in (path, *logs):
        file.touch()
        file.chmod(0o644)
    with kind(path, TERMS):
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a.db", "a.db-wal"])
def test_a_store_that_is_a_link_is_refused(tmp_path, kind, name):
    target = tmp_path / "mine.txt"
    target.write_text("")
    target.chmod(0o644)
    (tmp_path / name).symlink_to(target)
    with pytest.raises(DataError, match="is a link"):
        kind(tmp_path / "a.db", TERMS)
    assert target.read_text() == ""
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_store_with_two_names_or_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "a.db").touch()
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    os.mkfifo(tmp_path / "pipe")
    for name in ("a.db", "pipe"):
        with pytest.raises(DataError, match="no file of one name only"):
            FetchedStore(tmp_path / name, TERMS)


def test_a_store_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.db").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(DataError, match="belongs to another user"):
        FetchedStore(tmp_path / "a.db", TERMS)


def test_a_store_in_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OutputError, match="cannot write"):
        FetchedStore(tmp_path / "a" / "b.db", TERMS)


@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
@pytest.mark.parametrize("around", ["{}", None])
def test_deeply_nested_terms_are_refused_in_one_line(tmp_path, depth, around):
    nested = "[" * depth + "]" * depth
    harmless = TERMS.to_json()
    described = json.dumps(TERMS.randomizer)
    assert described in harmless
    text = harmless.replace(described, nested) if around else nested
    (tmp_path / "terms.json").write_text(text)
    with pytest.raises(DataError, match=r"cannot use the terms in [^\n]*$"):
        read_terms(tmp_path / "terms.json")


def test_deeply_nested_particulars_are_refused():
    nested: object = "yes"
    for _ in range(50_000):
        nested = [nested]
    for written in ({"question": {"kind": "frequencies"}, "labels": [nested], "randomizer": "k-rr",
                     "epsilon0": 1}, {"question": nested},
                    {"question": {"kind": "frequencies"}, "labels": ["a", "b"],
                     "randomizer": "k-rr", "epsilon0": 10**400}):  # fmt: skip
        with pytest.raises(DataError, match="no question that is known"):
            AskedTerms.from_json_dict(written)


@pytest.mark.parametrize(
    "url", ["http://[", "http://[::1", "http://a:99999", "http://a:x", "http://", "ftp://a",
            "http://a\x00b", ""],
)  # fmt: skip
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ParameterError, match="is no URL"):
        RelayClient(url, ANY_SIZE)
    with pytest.raises(ParameterError, match="is no URL"):
        cautions_about(url, "relay")


def test_reasons_have_a_status():
    assert set(http_server.STATUS_OF) == set(Reason)
    assert issubclass(ProtocolError, ValueError)
