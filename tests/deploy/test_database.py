"""What is of another version is refused, and what fails changes nothing."""

from contextlib import closing
from dataclasses import replace

import pytest

from deploy.databases import ENGINES, store_of
from shuffledp.core.errors import DataError
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.servers.stores import open_store, rows_among

OLD = Layout(kind="shelf", mark=b"book", version=1, tables=("CREATE TABLE books (title TEXT)",))


@pytest.fixture(params=ENGINES)
def opened(request, tmp_path):
    """A function that opens what is kept in one place."""
    url = store_of(request.param, tmp_path)

    def opened_as(layout):
        return closing(open_store(tmp_path, url, layout, collection=b"a" * 32))

    with opened_as(OLD) as old, old.transaction():
        old.change("INSERT INTO books VALUES (?)", ("Emma",))
    return opened_as


@pytest.mark.parametrize("version", [0, 2])
def test_other_versions_are_refused(opened, version):
    with pytest.raises(DataError, match=r"a shelf of version \d, and this program knows"):
        opened(replace(OLD, version=version))


def test_rows_whose_keys_are_there_are_not_inserted(opened):
    with opened(OLD) as store, store.transaction(is_shared=True):
        store.change("CREATE TABLE pairs (one INTEGER PRIMARY KEY, two BLOB, three TEXT)")
        rows = [(i, bytes([i]), str(i)) for i in range(20)]
        assert store.insert_new("pairs", "one, two, three", rows[:8]) == 8
        assert store.insert_new("pairs", "one, two, three", rows[4:]) == 12
        assert store.insert_new("pairs", "one, two, three", []) == 0
        assert store.rows("SELECT * FROM pairs ORDER BY one") == rows
        found = rows_among(store, "SELECT three FROM pairs WHERE two", [b"\1", b"\7", b"\x99"])
        assert sorted(found) == [("1",), ("7",)]
        assert store.change("UPDATE pairs SET three = ? WHERE one < ?", ("z", 5)) == 5
        store.set_fact("a number", 7)
        store.set_fact("a number", 8)
        store.set_fact("bytes", b"7")
        assert [store.fact(each) for each in ("a number", "bytes", "none")] == [8, b"7", None]


def test_a_transaction_that_fails_changes_nothing(opened):
    with opened(OLD) as store:
        with pytest.raises(KeyError), store.transaction():
            store.change("INSERT INTO books VALUES (?)", ("Persuasion",))
            raise KeyError
        assert store.rows("SELECT title FROM books") == [("Emma",)]


def test_after_a_commit_that_fails_others_go_on(tmp_path):
    deferred = "REFERENCES books (title) DEFERRABLE INITIALLY DEFERRED"
    layout = replace(
        OLD,
        tables=(
            "CREATE TABLE books (title TEXT PRIMARY KEY)",
            f"CREATE TABLE loans (title {deferred})",
        ),
    )
    with Database(tmp_path / "a.db", layout) as shelf:
        shelf.change("PRAGMA foreign_keys = ON")
        with pytest.raises(DataError, match="FOREIGN KEY"), shelf.transaction():
            shelf.change("INSERT INTO loans VALUES ('Emma')")  # noticed by COMMIT
        with shelf.transaction():
            shelf.change("INSERT INTO books VALUES ('Persuasion')")
        assert shelf.rows("SELECT * FROM loans") == []
