"""A table and its respondents against the commands: escapes, formulas, folders to delete."""

import pytest

from shuffledp.cli.main import main

RUN = ("run", "answers.csv", "--column", "answer", "--delta", "1e-3", "--epsilon0", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_answers(folder, *answers):
    lines = ["answer", *answers, *["yes", "no"] * 50]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(*arguments):
    return main([*RUN, *arguments])


def test_a_refused_value_is_not_told_unasked(folder, capsys):
    write_answers(folder, "yes", "HIV+")
    assert run("--domain", "yes,no", "--out", "results") == 2
    told = capsys.readouterr().err
    assert "HIV" not in told
    assert "row 2 of column 'answer' of answers.csv" in told
    assert run("--domain", "yes,no", "--out", "results", "--show-values") == 2
    assert "('HIV+')" in capsys.readouterr().err
    assert run("--domain", "yes,no", "--out", "results") == 2  # not for later commands
    assert "HIV" not in capsys.readouterr().err


def test_a_huge_value_is_cut(folder, capsys):
    write_answers(folder, "yes", "y" * 5_000_000)
    assert run("--domain", "yes,no", "--out", "results", "--show-values") == 2
    assert len(capsys.readouterr().err) < 320


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;owned\x07", "\\x1b"),
        ("\x9b31m", "\\x9b"),
        ("\u202eon", " on"),
        ("y\u200bet", "yet"),
    ],
)
def test_labels_steer_no_terminal(folder, capsys, hostile, shown):
    write_answers(folder, *[hostile] * 20)
    assert run("--domain", f"yes,no,{hostile}", "--out", "results") == 0
    printed = capsys.readouterr()
    assert hostile not in printed.out + printed.err
    assert shown in printed.out  # what nobody can see is no part of a label


def test_names_of_files_and_columns_steer_no_terminal(folder, capsys):
    assert main(["run", "\x1b[2J.csv", "--column", "x", "--delta", "1e-3", "--out", "r"]) == 2
    (folder / "answers.csv").write_text("\x1b[2J\nyes\n", encoding="utf-8")
    assert run("--domain", "yes,no", "--out", "results") == 2
    assert "\x1b" not in capsys.readouterr().err


FORMULAS = ["=HYPERLINK(0)", "+1+cmd", "-2+3", "@SUM(A1)"]


def test_no_spreadsheet_finds_a_formula_in_what_is_written(folder):
    write_answers(folder, *FORMULAS * 5, *["-1"] * 5)
    domain = ",".join(["yes", "no", "-1", *FORMULAS])
    assert run("--domain", domain, "--out", "results") == 0
    lines = (folder / "results" / "estimates.csv").read_text().splitlines()
    names = [line.partition(",")[0] for line in lines[1:]]
    assert names == ["yes", "no", "-1", *(f"'{each}" for each in FORMULAS)]


def test_labels_control_nothing_in_what_is_written(folder):
    hostile = "\x1b]0;owned\x07"
    write_answers(folder, *[hostile] * 20)
    assert run("--domain", f"yes,no,{hostile}", "--out", "results") == 0
    for name in ("estimates.csv", "privacy.json"):
        assert (folder / "results" / name).read_text().replace("\n", "").isprintable()


def test_nor_in_rows_that_are_released_with_public_columns(folder):
    cells = [f"{street},{answer}" for street in FORMULAS for answer in ("yes", "=1") for _ in "ab"]
    rows = [f"{place},{cell}" for place, cell in enumerate(cells)]
    (folder / "answers.csv").write_text("\n".join(["place,street,answer", *rows]) + "\n")
    groups = ("--groups-by", "place", "--metric", "absolute", "--radius", "3", "--alpha", "1")
    arguments = ("--shuffler", "mallows", *groups, "--keep", "street", "--out", "results")
    assert run("--domain", "yes,=1", *arguments) == 0
    lines = (folder / "results" / "rows.csv").read_text().splitlines()
    assert len(lines) == 17
    cells = [cell for line in lines[1:] for cell in line.split(",")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    assert "'=HYPERLINK(0)" in cells
    assert "'=1" in cells


def test_overwriting_never_removes_what_the_user_wrote(folder, capsys):
    """The audit's command: the table itself lay in the folder, under the name of a result."""
    (folder / "own").mkdir()
    table = folder / "own" / "rows.csv"
    table.write_text("answer\n" + "yes\nno\n" * 50)
    command = ["run", "own/rows.csv", "--column", "answer", "--domain", "yes,no"]
    command += ["--epsilon0", "1", "--delta", "1e-3", "--out", "own", "--overwrite"]
    assert main(command) == 2
    assert "has no .shuffledp-results.json" in capsys.readouterr().err
    assert table.read_text().startswith("answer\nyes\n")


@pytest.mark.parametrize("place", ["results/estimates.csv", "link/estimates.csv"])
def test_a_table_below_the_results_is_refused_also_where_it_is_a_result(folder, capsys, place):
    write_answers(folder)
    assert run("--domain", "yes,no", "--out", "results") == 0
    (folder / "link").symlink_to(folder / "results")
    before = (folder / place).read_text()
    command = ["run", place, "--column", "value", "--epsilon0", "1", "--delta", "1e-3"]
    assert main([*command, "--domain", "yes,no", "--out", "results", "--overwrite"]) == 2
    assert "lies below" in capsys.readouterr().err
    assert (folder / place).read_text() == before


def test_results_that_were_edited_are_kept(folder, capsys):
    write_answers(folder)
    assert run("--domain", "yes,no", "--out", "results") == 0
    edited = folder / "results" / "estimates.csv"
    edited.write_text("notes of mine\n")
    assert run("--domain", "yes,no", "--out", "results", "--overwrite") == 2
    assert "changed" in capsys.readouterr().err
    assert edited.read_text() == "notes of mine\n"


def test_bytes_that_the_locale_cannot_read_are_refused(folder, capsys):
    write_answers(folder, "ä")
    assert run("--domain", "yes,no,\udcc3\udca4", "--out", "results") == 2
    assert "LC_ALL=C.UTF-8" in capsys.readouterr().err
