"""``shuffledp run`` with a shuffle within groups: rows near their users, facts, errors."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from golden.schemas import found_in
from shuffledp.cli.main import main

STREETS, HOUSES = 12, 10


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a survey of twelve streets in it."""
    monkeypatch.chdir(tmp_path)
    places = range(STREETS * HOUSES)
    pl.DataFrame(
        {
            "street": [place // HOUSES for place in places],
            "name": [f"p{place}" for place in places],
            "secret": ["s"] * len(places),
            "answer": ["yes" if place < 60 else "no" for place in places],
        }
    ).write_csv("survey.csv")
    pl.read_csv("survey.csv").write_parquet("survey.parquet")
    return tmp_path


GROUPS = ["--groups-by", "street", "--radius", "1"]


def run(
    *arguments,
    table="survey.csv",
    alpha=("--alpha", "4"),
    groups=GROUPS,
    epsilon=("--epsilon0", "8"),
    shuffler="mallows",
):
    return main(
        ["run", table, "--column", "answer", "--domain", "yes,no", *epsilon, "--delta", "1e-6",
         "--shuffler", shuffler, *groups, *alpha, "--out", "out", *arguments]
    )  # fmt: skip


def test_people_read_estimates_guarantee_and_groups(here, capsys):
    assert run("--seed", "1") == 0
    out = capsys.readouterr().out
    assert out.index("95% interval") < out.index("proved upper bound") < out.index("who shares one")
    assert "12 different" not in out
    assert "different groups  12" in out
    assert "mallows shuffler" in out


def test_rows_keep_public_columns_and_nothing_else(here):
    assert run("--alpha", "inf", "--keep", "name", alpha=()) == 0
    rows = pl.read_csv("out/rows.csv")
    assert rows.columns == ["street", "name", "answer"]
    survey = pl.read_csv("survey.csv")
    assert rows["name"].to_list() == survey["name"].to_list()
    # alpha = inf leaves every report in its place, and epsilon0 = 8 changes few of them.
    assert (rows["answer"] == survey["answer"]).mean() > 0.9


def test_alpha_zero_forgets_the_streets(here):
    assert run("--alpha", "0", "--seed", "3", alpha=()) == 0
    rows = pl.read_csv("out/rows.csv")
    early = (rows["answer"] == "yes").head(60).sum()
    assert 15 <= early <= 45  # hypergeometric: outside with a chance below 1e-7; the seed is fixed
    facts = json.loads((here / "out" / "privacy.json").read_text())["groups"]
    assert facts["theta"] == 0.0
    assert facts["odds_factor"] == 1.0


def test_json_and_files_say_the_same(here, capsys):
    assert run("--json", table="survey.parquet") == 0
    record = found_in(capsys.readouterr().out)
    saved = json.loads((here / "out" / "privacy.json").read_text())
    assert {key: saved[key] for key in record} == record
    groups = record["groups"]
    assert groups["num_groups"] == STREETS
    assert groups["largest_group"] == 3 * HOUSES
    # Streets in a row are the best order: no sensitivity beyond that of the group itself.
    assert groups["sensitivity"] == 30 * 29 // 2
    assert groups["theta"] == pytest.approx(4.0 / 435)
    assert 0.0 <= groups["preserved"] <= 1.0
    assert record["shuffler"] == "mallows"
    assert pl.read_parquet("out/rows.parquet").columns == ["street", "answer"]
    report = (here / "out" / "report.html").read_text()
    assert "Shuffled within groups" in report
    assert "What the order reveals." in report
    assert "KRandomizedResponse(domain_size=" in report


def test_a_target_is_met_within_groups(here):
    assert run(epsilon=("--epsilon", "2")) == 0
    record = json.loads((here / "out" / "privacy.json").read_text())
    assert record["guarantee"]["epsilon"]["upper"] <= 2.0 <= record["epsilon0"]


@pytest.mark.parametrize("distance", ["hamming", "cayley"])
def test_other_rank_distances(here, distance):
    assert run("--rank-distance", distance) == 0
    facts = json.loads((here / "out" / "privacy.json").read_text())["groups"]
    assert facts["rank_distance"] == distance


def test_groups_by_graph_and_by_file(here):
    edges = "\n".join(f"p{i},p{i + 1}" for i in range(119))
    (here / "edges.csv").write_text(edges + "\n")
    graph = ["--groups-graph", "edges.csv", "--hops", "2", "--id", "name"]
    assert run("--overwrite", groups=graph) == 0
    assert pl.read_csv("out/rows.csv").columns == ["name", "answer"]
    listed = "\n".join(f"{i // 20},p{i}" for i in range(120))
    (here / "groups.csv").write_text("group,member\n" + listed + "\n")
    assert run("--overwrite", groups=["--groups-file", "groups.csv", "--id", "name"]) == 0
    facts = json.loads((here / "out" / "privacy.json").read_text())["groups"]
    assert facts["num_groups"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": ()}, "give --alpha"),
        ({"alpha": ("--alpha", "-1")}, "alpha = -1"),
        ({"alpha": ("--alpha", "nan")}, "alpha = nan"),
        ({"groups": []}, "say who shares a group"),
        ({"groups": ["--groups-by", "street"]}, "exactly one of radius and group_size"),
        ({"groups": ["--groups-by", "streets", "--radius", "1"]}, "did you mean 'street'"),
        ({"groups": ["--groups-by", "name", "--radius", "1"]}, "name"),
        ({"groups": ["--groups-by", "street", "--radius", "-1"]}, "radius"),
        ({"groups": ["--groups-file", "none.csv"]}, "no such file"),
        ({"groups": [*GROUPS, "--keep", "answer"]}, "--keep answer holds the answers"),
        ({"groups": ["--groups-graph", "e.csv", "--id", "answer"]}, "--id answer holds the"),
        ({"groups": ["--groups-by", "answer", "--radius", "1"]}, "--groups-by answer holds"),
        ({"groups": [*GROUPS, "--keep", "nme"]}, "did you mean 'name'"),
        ({"groups": [*GROUPS, "--save-reports"]}, "none of --save-reports"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_takes_one_line_and_leaves_nothing(here, capsys, arguments, message):
    assert run(**arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert error[-1].startswith("error: ")
    assert not (here / "out").exists()


def test_groups_need_the_mallows_shuffler(here, capsys):
    arguments = ["run", "survey.csv", "--column", "answer", "--domain", "yes,no", "--out", "out"]
    assert main([*arguments, "--epsilon", "1", "--delta", "1e-6", *GROUPS]) == 2
    assert "--shuffler mallows" in capsys.readouterr().err


def test_one_group_of_everybody_is_said_to_be_a_uniform_shuffle(here, capsys):
    assert run("--overwrite", groups=["--groups-by", "street", "--radius", "100"]) == 0
    assert "nearly a uniform shuffle" in capsys.readouterr().err


def test_noise_on_places_has_the_same_outputs(here, capsys):
    arguments = ("--json", "--keep", "name")
    assert run(*arguments, shuffler="displacement") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["shuffler"] == "displacement"
    assert record["guarantee"]["method"] in {"local", "displaced/binary-exact"}
    groups = record["groups"]
    # Three streets of ten: the outer ones trade places, 20 ranks apart on average.
    assert groups["sensitivity"] == 2 * 2 * 10 * 10
    assert groups["theta"] == pytest.approx(4.0 / 400)
    assert groups["unit"] == "places"
    assert 0.0 <= groups["preserved"] <= 1.0
    assert pl.read_csv("out/rows.csv").columns == ["street", "name", "answer"]
    report = (here / "out" / "report.html").read_text()
    assert "discrete Laplace" in report
    assert "What the order reveals." in report


def test_people_read_how_noise_on_places_was_drawn(here, capsys):
    assert run("--seed", "1", shuffler="displacement") == 0
    out = capsys.readouterr().out
    assert "noise on places     discrete Laplace, b = 100.0 places" in out
    assert "others who hide it" in out
    assert run("--alpha", "inf", "--overwrite", alpha=(), shuffler="displacement") == 0
    assert "noise on places     none" in capsys.readouterr().out
    assert run("--alpha", "0", "--overwrite", alpha=(), shuffler="displacement") == 0
    assert "a uniform shuffle" in capsys.readouterr().out


@pytest.mark.parametrize(
    "case",
    [
        # Beside a decimal comma 1.234 is a thousand, for coordinates as for answers.
        ("x;y\n1.234;0,5\n1234,0;1\n1234;2\n", [], 3),
        ("x;y\n1.234;2\n1.234;3\n1234;4\n", [], "say which it is"),
        ("x;y\n1.234;2\n1.234;3\n1234;4\n", ["--decimal", "."], 2),
        ("x;y\n1.234;2\n1.234;3\n1234;4\n", ["--decimal", ","], 3),
        ("x,y\n5,1\n-99,1\n5,1\n", ["--missing-text", "-99"], "holds '-99', which is no place"),
        ("lon,x\n5,1\n6,2\n5,1\n", [], 2),
    ],
)
@pytest.mark.parametrize("command", ["run", "attack"])
def test_coordinates_are_read_as_numbers_are(here, capsys, command, case):
    text, options, found = case
    mark, is_place = ";" if ";" in text else ",", "lon" in text
    answers = ["answer", "yes", "no", "yes"]
    lines = [f"{row}{mark}{each}" for row, each in zip(text.split(), answers, strict=True)]
    Path("table.csv").write_text("\n".join(lines) + "\n")
    by = ["--groups-by", "x", "--radius", "0"]
    if is_place:
        by = ["--groups-by", "lon,x", "--radius", "10km", "--metric", "haversine"]
    if command == "run":
        status = run(*options, table="table.csv", groups=by)
    else:
        asked = ["--column", "answer", "--epsilon0", "1", "--alpha", "1", "--trials", "1"]
        quick = ["--attack", "majority-vote", "--resamplings", "1"]
        status = main(["attack", "table.csv", *asked, *quick, *by, *options])
    printed = capsys.readouterr()
    if isinstance(found, str):
        assert status == 2
        assert found in printed.err
        return
    assert status == 0
    assert ("name the latitude first" in printed.err) == is_place
    assert re.search(f" to {found}(, median| people)", " ".join(printed.out.split()))


def test_every_reader_of_a_table_reads_it_alike(here):
    rows = [line.split(",") for line in Path("survey.csv").read_text().splitlines()[1:]]
    Path("bare.csv").write_text("\n".join("!".join(row) for row in rows) + "\n")
    out = ["--out", "out", "--epsilon0", "8", "--delta", "1e-6", "--alpha", "4"]
    asked = ["--column", "column_4", "--domain", "yes,no", "--shuffler", "mallows"]
    ways = ["--no-header", "--csv-separator", "!", "--groups-by", "column_1", "--radius", "1"]
    assert main(["run", "bare.csv", *asked, *ways, *out, "--keep", "column_2"]) == 0
    rows = pl.read_csv("out/rows.csv")
    assert rows["column_2"].to_list() == [f"p{place}" for place in range(STREETS * HOUSES)]
