"""A file of an older version is changed into one of the present version, or refused."""

from dataclasses import replace

import pytest

from shuffledp.core.errors import DataError, OutputError
from shuffledp.deploy.database import Database, Layout

OLD = Layout(kind="shelf", application_id=7, version=1, tables=("CREATE TABLE books (title TEXT)",))
NEW = replace(
    OLD,
    version=3,
    tables=("CREATE TABLE books (title TEXT, pages INTEGER, shelf INTEGER)",),
    upgrades={
        1: ("ALTER TABLE books ADD COLUMN pages INTEGER",),
        2: ("ALTER TABLE books ADD COLUMN shelf INTEGER", "UPDATE books SET shelf = 1"),
    },
)


@pytest.fixture
def path(tmp_path):
    with Database(tmp_path / "a.db", OLD) as old, old.transaction():
        old.change("INSERT INTO books VALUES (?)", ("Emma",))
    return tmp_path / "a.db"


def test_an_older_file_is_upgraded_step_by_step(path):
    for _ in range(2):  # and once only
        with Database(path, NEW) as new:
            assert new.rows("SELECT * FROM books") == [("Emma", None, 1)]
            assert new.value("PRAGMA user_version") == 3


def test_an_upgrade_that_fails_changes_nothing(path):
    broken = replace(NEW, upgrades={**NEW.upgrades, 2: ("ALTER TABLE none ADD COLUMN a",)})
    with pytest.raises(OutputError, match="no such table"):
        Database(path, broken)
    with Database(path, OLD) as old:
        assert old.rows("SELECT * FROM books") == [("Emma",)]


@pytest.mark.parametrize("layout", [OLD, replace(NEW, upgrades={2: NEW.upgrades[2]})])
def test_newer_files_and_those_that_nobody_upgrades_are_refused(path, layout):
    if layout is OLD:
        Database(path, NEW).close()
    with pytest.raises(DataError, match=r"is a shelf of version \d, and this program knows"):
        Database(path, layout)


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
