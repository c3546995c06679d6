"""Files of relays and peers: durable, of one program and one collection, and private."""

import sqlite3
import stat

import pytest

from deploy.peers.protocol.memory_store import MemoryStore
from shuffledp.core.errors import DataError, OutputError
from shuffledp.deploy.peers.protocol.messages import Letter
from shuffledp.deploy.peers.stores import PeerStore, SqliteStore


@pytest.fixture
def terms(collection):
    return collection.terms


def filled(store):
    """Do to a store all that a relay does."""
    store.put_registration(3, b"three")
    store.put_registration(1, b"one")
    store.set_round_number(1)
    letters = [Letter(1, 3, 1, 0, b"b"), Letter(1, 3, 0, 0, b"a"), Letter(1, 3, 2, 1, b"c")]
    store.put_batch(b"batch", round_number=1, sender=3, letters=letters, codes={0: b"x", 1: b"y"})
    other = [Letter(1, 1, 0, 0, b"d")]
    store.put_batch(b"other", round_number=1, sender=1, letters=other, codes={0: b"z"})
    store.set_round_number(2)
    store.put_hand_in(3, b"in")
    return store


def gone_on(store):
    """Let user 0 send in round 2, user 1 hand in, and the analyzer have everything."""
    store.put_batch(b"next", round_number=2, sender=0, letters=[Letter(2, 0, 0, 1, b"e")], codes={})
    store.set_round_number(3)
    store.put_hand_in(1, b"in, too")
    store.forget_hand_ins()
    return store


def seen(store):
    """Return all that a store shows."""
    return [
        store.registration(1), store.registration(2), list(store.registrations()),
        store.round_number(), store.batch(1, 3), store.batch(2, 3),
        store.senders(1), store.senders(2), list(store.mail(1, 0)), list(store.mail(2, 0)),
        dict(store.codes(1, 0)), dict(store.codes(2, 0)), list(store.codes(1, 0)),
        store.hand_in(3), store.hand_in(1), list(store.hand_ins()),
    ]  # fmt: skip


def test_a_file_shows_what_memory_shows_also_after_it_was_opened_again(tmp_path, terms):
    expected = seen(filled(MemoryStore()))
    with SqliteStore(tmp_path / "a.db", terms) as store:
        assert seen(store) == seen(MemoryStore())
        assert seen(filled(store)) == expected
        assert (store.num_registered(), store.num_sent(1), store.num_handed_in()) == (2, 2, 1)
        assert not store.is_over
        assert seen(gone_on(store)) == seen(gone_on(filled(MemoryStore())))
        assert [list(store.mail(number, node)) for node in (0, 1) for number in (1, 2)] == [[]] * 4
        assert store.hand_ins() == [(1, b""), (3, b"")]
        expected = seen(store)
    with SqliteStore(tmp_path / "a.db", terms) as store:
        assert seen(store) == expected
        store.put_batch(
            b"last", round_number=3, sender=3, letters=[Letter(3, 3, 0, 1, b"f")], codes={1: b"z"}
        )
        store.finish()
    with SqliteStore(tmp_path / "a.db", terms) as store:
        assert (store.mail(3, 1), store.codes(3, 1)) == ([], {})
        assert store.is_over


def test_a_batch_and_its_mail_are_kept_together_or_not_at_all(tmp_path, terms):
    twice = [Letter(1, 3, 0, 0, b"a"), Letter(1, 3, 0, 0, b"b")]
    with SqliteStore(tmp_path / "a.db", terms) as store:
        with pytest.raises(DataError):
            store.put_batch(b"batch", round_number=1, sender=3, letters=twice, codes={0: b"x"})
        assert store.batch(1, 3) is None
        assert (store.mail(1, 0), store.codes(1, 0)) == ([], {})


@pytest.mark.parametrize("kind", [SqliteStore, PeerStore])
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
    SqliteStore(path, terms).close()
    with pytest.raises(DataError, match="other terms"):
        SqliteStore(path, other)
    with pytest.raises(DataError, match="no file of peers"):
        PeerStore(path, terms)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(DataError, match="version 7"):
        SqliteStore(path, terms)


def test_what_is_no_database_is_refused_and_kept(tmp_path, terms):
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk " * 100)
    with pytest.raises(DataError, match="no relay store, or damaged"):
        SqliteStore(path, terms)
    assert path.read_text().startswith("remember the milk")


def test_a_file_that_cannot_be_made_is_an_error(tmp_path, terms):
    with pytest.raises(OutputError, match="cannot write"):
        SqliteStore(tmp_path / "absent" / "a.db", terms)
    with pytest.raises(OutputError, match="cannot write"):
        SqliteStore(tmp_path, terms)


def test_a_full_disk_changes_nothing(tmp_path, terms):
    with PeerStore(tmp_path / "a.db", terms) as store:
        store.save([(1, b"one")])
        store.change("PRAGMA max_page_count = 10")
        with pytest.raises(OutputError, match="full"):
            store.save([(1, b"second"), (2, bytes(1_000_000))])
        assert store.states() == {1: b"one"}
