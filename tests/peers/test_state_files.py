"""Files of relays and peers: durable, of one program and one collection, and private."""

import sqlite3
import stat

import pytest

from shuffledp.core.errors import DataError, OutputError
from shuffledp.peers.collecting import FetchedStore
from shuffledp.peers.peer_runner import PeerStore


@pytest.fixture
def terms(collection):
    return collection.terms


@pytest.mark.parametrize("kind", [FetchedStore, PeerStore])
def test_only_the_owner_can_read_and_only_one_program_write(tmp_path, terms, kind):
    path = tmp_path / "a.db"
    with kind(path, terms):
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with pytest.raises(DataError, match="in use by another program"):
            kind(path, terms)
    kind(path, terms).close()


def test_peers_come_back(tmp_path, terms):
    with PeerStore(tmp_path / "a.db", terms) as store:
        store.save([(2, b"two"), (1, b"one")])
        store.save([(2, b"second")])
    with PeerStore(tmp_path / "a.db", terms) as store:
        assert store.states() == {1: b"one", 2: b"second"}


def test_files_of_another_collection_kind_or_version_are_refused(tmp_path, make_collection):
    terms, other = make_collection().terms, make_collection().terms
    path = tmp_path / "a.db"
    FetchedStore(path, terms).close()
    with pytest.raises(DataError, match="other terms"):
        FetchedStore(path, other)
    with pytest.raises(DataError, match="no file of peers"):
        PeerStore(path, terms)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(DataError, match="version 7"):
        FetchedStore(path, terms)


def test_what_is_no_database_is_refused_and_kept(tmp_path, terms):
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk " * 100)
    with pytest.raises(DataError, match="no file of hand-ins, or damaged"):
        FetchedStore(path, terms)
    assert path.read_text().startswith("remember the milk")


def test_a_file_that_cannot_be_made_is_an_error(tmp_path, terms):
    with pytest.raises(OutputError, match="cannot write"):
        FetchedStore(tmp_path / "absent" / "a.db", terms)
    with pytest.raises(OutputError, match="cannot write"):
        FetchedStore(tmp_path, terms)


def test_a_full_disk_changes_nothing(tmp_path, terms):
    with PeerStore(tmp_path / "a.db", terms) as store:
        store.save([(1, b"one")])
        store.change("PRAGMA max_page_count = 10")
        with pytest.raises(OutputError, match="full"):
            store.save([(1, b"second"), (2, bytes(1_000_000))])
        assert store.states() == {1: b"one"}
