"""What is of another version is refused, and what fails changes nothing."""

from contextlib import closing
from dataclasses import replace

import pytest

from deploy.databases import ENGINES, store_of
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.deploy import analyzer, shuffler
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.servers.batches import open_store, rows_among

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


def test_an_older_version_is_brought_up_step_by_step_and_a_newer_one_is_refused(opened):
    steps = {
        1: ("ALTER TABLE books ADD COLUMN pages INTEGER NOT NULL DEFAULT 0",),
        2: ("CREATE TABLE readers (name TEXT)", "UPDATE books SET pages = 474"),
    }
    now = replace(OLD, version=3, steps=steps)
    for _ in range(2):
        with opened(now) as store:
            assert store.rows("SELECT title, pages FROM books") == [("Emma", 474)]
            assert store.rows("SELECT * FROM readers") == []
    with pytest.raises(DataError, match="a shelf of version 3, and this program knows version 1"):
        opened(OLD)


@pytest.mark.parametrize("engine", ENGINES)
def test_stores_of_the_version_before_open_with_what_they_hold(tmp_path, engine):
    """The tables of shuffler and analyzer before dummies were told apart."""
    url = store_of(engine, tmp_path)
    for layout, table in ((shuffler._STORE, "dummies"), (analyzer._STORE, "parts")):
        assert list(layout.steps) == [layout.version - 1]
        tables = [each for each in layout.tables if not each.startswith("CREATE TABLE dummies ")]
        before = tuple(each.replace(" num_users INTEGER,", "") for each in tables)
        assert before != layout.tables
        old = replace(layout, version=layout.version - 1, tables=before, steps={})
        with closing(open_store(tmp_path, url, old, collection=b"a" * 32)) as store:
            store.set_fact("epochs_closed", 7)
        for _ in range(2):
            with closing(open_store(tmp_path, url, layout, collection=b"a" * 32)) as store:
                assert store.fact("epochs_closed") == 7
                assert store.value(f"SELECT count(*) FROM {table}") == 0  # noqa: S608  # ours


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_is_one_tasks_also_where_its_tables_are_elsewhere(tmp_path, engine):
    """Batches and results have numbers for names: another task's would take their place."""
    url = store_of(engine, tmp_path)
    for _ in range(2):
        open_store(tmp_path, url, OLD, collection=b"a" * 32).close()
        with pytest.raises(DataError, match="is the store of another task: name another folder"):
            open_store(tmp_path, url, OLD, collection=b"b" * 32)


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


MAIL = Layout(
    kind="mailbox", mark=b"mail", version=1,
    tables=(
        "CREATE TABLE mail (round INTEGER, recipient INTEGER, sender INTEGER, place INTEGER, "
        "content BLOB, PRIMARY KEY (recipient, round, sender, place)) WITHOUT ROWID",
    ),
)  # fmt: skip


# Seeds by which SQLite 3.40 moves some rows to another page and leaves copies of them behind.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 10, 12, 40])
def test_nothing_of_what_was_deleted_is_left_by_a_rewrite(tmp_path, seed):
    generator, kept = Entropy.from_seed(seed).generator(), {}
    with closing(Database(tmp_path / "mail.db", MAIL)) as store:
        for number in range(1, 4):
            for sender in range(6):  # as a relay: who sends had taken the mail of earlier rounds
                store.change("DELETE FROM mail WHERE recipient = ? AND round < ?", (sender, number))
                to = [(sender + int(step)) % 6 for step in generator.integers(1, 6, size=13)]
                codes = [(sender + step) % 6 for step in range(1, 6)]
                rows = [
                    (number, recipient, sender, place, generator.bytes(66 if place >= 0 else 16))
                    for places, all_ in ((range(13), to), ([-1] * 5, codes))
                    for place, recipient in zip(places, all_, strict=True)
                ]
                store.change_many("INSERT INTO mail VALUES (?, ?, ?, ?, ?)", rows)
                kept[number] = kept.get(number, []) + [row[-1] for row in rows]
            store.rewrite()
            files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
            assert all(content in files for content in kept[number])
            assert not any(content in files for content in kept.get(number - 1, []))
