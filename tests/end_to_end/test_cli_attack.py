"""``shuffledp attack`` on a small survey: tables, files, JSON, and clear refusals."""

import json

import click
import pytest

from golden.schemas import found_in
from shuffledp.cli.attack import attack
from shuffledp.core.errors import DataError, ParameterError

NUM_HOUSEHOLDS = 24
QUICK = ["--trials", "2", "--resamplings", "10"]


@pytest.fixture
def survey(tmp_path):
    """Households along a street; the members of each give the same answer."""
    rows = ["x,y,pay,town,answer"]
    for house in range(NUM_HOUSEHOLDS):
        answer = "yes" if house % 2 else "no"
        rows += [f"{house},0.{member},{house % 2},t{house % 3},{answer}" for member in range(8)]
    path = tmp_path / "survey.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def run(survey, *arguments, alpha="1"):
    attack.main(
        [
            str(survey), "--column", "answer", "--epsilon0", "1.5",
            *([] if "--trials" in arguments else QUICK[:2]),
            *([] if "gaussian-process" in arguments else QUICK[2:]),
            *(["--alpha", alpha] if alpha else []), *arguments,
        ],
        standalone_mode=False,
    )  # fmt: skip


BY_PLACE = ("--groups-by", "x,y", "--radius", "3", "--attack-radius", "0.9")


def test_people_read_tables(survey, capsys):
    run(survey, *BY_PLACE)
    shown = capsys.readouterr().out
    assert shown.startswith("a simulation on true answers: nothing is released")
    assert "majority-vote: share of vulnerable people" in shown
    assert "gaussian-process: accuracy" in shown


def test_a_seed_repeats_and_another_does_not(survey, capsys):
    printed = []
    for seed in ("1", "1", "2"):
        run(survey, *BY_PLACE, "--attack", "majority-vote", "--seed", seed, "--json")
        printed.append(found_in(capsys.readouterr().out))
    assert printed[0] == printed[1] != printed[2]
    assert printed[0]["simulation"] is True
    results = printed[0]["results"]
    assert [len(result["trials"]) for result in results] == [2, 2, 2]
    assert [result["arrangement"] for result in results] == ["raw", "within groups", "uniform"]
    assert results[0]["mean"] > 0.5
    assert results[2]["mean"] < 0.2


def test_privileged_data_help(survey, capsys):
    shares = []
    everybody = ("--groups-by", "x", "--radius", "100", "--attack", "majority-vote", "--json")
    for extra in ((), ("--privileged", "pay,town")):
        run(survey, *everybody, *extra)
        shares.append(json.loads(capsys.readouterr().out)["results"][0]["mean"])
    assert shares[0] < shares[1]


def test_a_graph_has_no_positions(survey, tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    last = 8 * NUM_HOUSEHOLDS - 1
    edges.write_text("a,b\n" + "".join(f"{i},{i + 1}\n" for i in range(last)), encoding="utf-8")
    graph = ("--groups-graph", str(edges), "--hops", "2")
    run(survey, *graph, "--attack-radius", "1")
    captured = capsys.readouterr()
    assert "gaussian-process:" not in captured.out
    assert "no gaussian-process attack" in captured.err
    run(survey, *graph, "--public", "x", "--attack", "gaussian-process")
    assert "gaussian-process: accuracy" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="public values are needed"):
        run(survey, *graph, "--attack", "gaussian-process")
    with pytest.raises(DataError, match=r"'town' of .* holds categories"):
        run(survey, *graph, "--public", "x,town")


def test_one_trial_has_no_deviation(survey, capsys):
    run(survey, *BY_PLACE, "--attack", "majority-vote", "--trials", "1")
    assert "unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "alpha", "message"),
    [
        (BY_PLACE, None, "give --alpha"),
        ((), "1", "say who shares a group"),
    ],
)
def test_usage(survey, arguments, alpha, message):
    with pytest.raises(click.UsageError, match=message):
        run(survey, *arguments, alpha=alpha)


def test_noise_on_places_is_attacked_in_the_same_way(survey, capsys):
    run(survey, *BY_PLACE, "--shuffler", "displacement", alpha="4")
    shown = capsys.readouterr().out
    assert "noise     b = " in shown
    assert "(cells of a grid)" in shown
    assert shown.count("within groups") == 2


@pytest.mark.parametrize("option", ["--privileged", "--resamplings"])
def test_options_of_the_other_attack_are_refused(survey, option):
    with pytest.raises(click.UsageError, match=f"{option} is for the majority vote"):
        run(survey, *BY_PLACE, "--attack", "gaussian-process", option, "5")
