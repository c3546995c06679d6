"""Work in processes of their own: the same results in the same order, whoever does it."""

import os
import signal

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.kinds import KINDS
from groups.attacks.test_attacking import RAW, UNIFORM, households
from shuffledp.collection import report_files
from shuffledp.collection.run import collect
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.engines import processes as engine
from shuffledp.engines.processes import Processes, usable_cores
from shuffledp.groups.attacks.adversaries import (
    attack_by_gaussian_process,
    attack_by_majority_vote,
    learn_local_laws,
)


@pytest.fixture(scope="module")
def two():
    with Processes(2) as processes:
        yield processes


def whose(_):
    return os.getpid()


def killed(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number):
    raise DataError(f"row {number} is wrong")


def test_two_processes_work_and_results_keep_their_order(two):
    assert list(two.map(abs, range(-40, 0))) == list(range(40, 0, -1))
    assert os.getpid() not in set(two.map(whose, range(40)))


def test_few_items_are_under_way_at_a_time(two):
    asked = []
    found = two.map(abs, (asked.append(item) or item for item in range(100)))
    assert next(found) == 0
    assert len(asked) <= 4 + 1
    found.close()


def test_one_piece_and_a_second_of_work_start_no_process(monkeypatch):
    monkeypatch.setattr(engine, "start_processes", lambda _: pytest.fail("one was started"))
    with Processes() as processes:
        assert processes.number == usable_cores()
        assert list(processes.map(abs, range(5))) == list(range(5))
    with Processes(4) as processes:
        assert list(processes.map(abs, [-1])) == [1]
        assert list(processes.map(abs, [])) == []


def test_by_default_they_start_once_the_patience_is_over(monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE_SECONDS", 1e-9)
    with Processes() as processes:
        done_by = list(processes.map(whose, range(6)))
    assert done_by[0] == os.getpid()
    if usable_cores() > 1:
        assert os.getpid() not in done_by[1:]


def test_what_is_wrong_there_is_said_here(two):
    with pytest.raises(DataError, match="row 0 is wrong"):
        list(two.map(refused, range(5)))


def test_a_process_that_is_killed_ends_the_work():
    with Processes(2) as processes, pytest.raises(ShuffledpError, match=r"memory.*__main__"):
        list(processes.map(killed, range(20)))


@pytest.mark.parametrize("number", [0, -1, 1.5, 1025, 10**21])
def test_numbers_of_processes(number):
    with pytest.raises(ParameterError, match="processes"):
        Processes(number)


# ------------------------------------------------------------------ collections
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_seed_gives_the_same_whoever_randomizes(kind, two):
    randomizer = next(iter(kind.question.candidates().values()))(2.0)
    (values,) = kind.question.column(kind.values).blocks()
    blocks = [values[:300], values[300:301], values[301:]]
    found = [
        collect(
            randomizer, blocks, num_users=len(values), entropy=Entropy.from_seed(3), engine=each
        )
        for each in (map, two.map)
    ]
    for name in ("support", "total", "total_of_squares", "num_reports"):
        one, other = (getattr(each, name, 0) for each in found)
        assert np.array_equal(one, other)


def test_blocks_have_words_of_their_own_without_a_seed_too(two):
    law = sdp.randomizers.make_randomizer("k-rr", domain_size=1 << 20, epsilon0=0.1)
    kept = []
    blocks = [np.zeros(500, np.int64)] * 4
    entropy = Entropy.from_operating_system()
    collect(law, blocks, num_users=2000, entropy=entropy, sink=kept.extend, engine=two.map)
    drawn = np.concatenate([reports.data for reports in kept])
    # Two blocks of the same words would agree in 500 places; 2,000 draws out of a million
    # are all different but for about two.
    assert len(np.unique(drawn)) > 1950


# ------------------------------------------------------------------ simulations and graphs
def attacks():
    """Return a survey of households, and what two attacks and learning find by an engine."""
    survey = households(num=12)

    def found(engine):
        how = {"num_trials": 3, "engine": engine}
        return (
            attack_by_majority_vote(
                survey, [RAW, UNIFORM], num_resamplings=3, entropy=Entropy.from_seed(1), **how
            ),
            attack_by_gaussian_process(survey, [RAW], entropy=Entropy.from_seed(2), **how),
            learn_local_laws(survey, [UNIFORM], entropy=Entropy.from_seed(3), **how),
        )

    return found


def exact_account(engine):
    cycle = [(number, (number + step) % 199) for number in range(199) for step in (1, 7, 31)]
    return sdp.network.account_network(
        sdp.network.Graph.from_edges(cycle),
        sdp.LocalProfile(epsilon0=1.0),
        rounds=[3, 5],
        delta=1e-6,
        positions="exact",
        engine=engine,
    ).to_json_dict()


@pytest.mark.slow
def test_attacks_and_position_laws_do_not_depend_on_the_number_of_processes():
    found = attacks()
    wanted = found(map), exact_account(None)
    assert len(set(wanted[0][0][0].trials)) > 1  # trials have words of their own
    for number in (1, 2, 3):
        with Processes(number) as processes:
            assert (found(processes.map), exact_account(processes.map)) == wanted


def plan_of(num_users, **how):
    question = sdp.Categories([f"answer {number}" for number in range(20)])
    return sdp.plan(question, num_users=num_users, epsilon0=2.0, delta=1e-8, **how)


@pytest.fixture(params=["written by us", "made elsewhere"])
def reports(request, tmp_path, monkeypatch):
    """A folder of Parquet files, empty ones and hidden ones among them, and their plan."""
    monkeypatch.setattr(report_files, "ROWS_A_PIECE", 700)
    plan = plan_of(5000)
    drawn = plan.randomizer.randomize(np.arange(5000) % 20, Entropy.from_seed(5))
    folder = tmp_path / "reports"
    (folder / "deep").mkdir(parents=True)
    (folder / "_delta_log").mkdir()
    names = ("a.parquet", "b.parquet", "deep/c.parquet", ".hidden.parquet", "_delta_log/d.parquet")
    for name, ends in zip(
        names, ((0, 3000), (3000, 3000), (3000, 5000), (0, 9), (0, 9)), strict=True
    ):
        part = sdp.collection.Reports(data=drawn.data[slice(*ends)], fingerprint=drawn.fingerprint)
        if request.param == "written by us":
            labels = plan.question.labels
            report_files.write_reports(folder / name, [part], plan.randomizer, labels=labels)
        else:
            texts = [plan.question.labels[code] for code in part.data]
            frame = pl.DataFrame({"report": pl.Series(texts, dtype=pl.String)})
            frame.write_parquet(folder / name)
    (folder / "_SUCCESS").touch()
    return folder, plan, drawn


@pytest.mark.parametrize("group_bytes", [1, 1 << 25])
def test_a_folder_of_files_counts_as_their_reports_do(reports, two, group_bytes, monkeypatch):
    folder, plan, drawn = reports
    monkeypatch.setattr(report_files, "_BYTES_A_GROUP", group_bytes)
    wanted = sdp.estimate(drawn, plan)
    calls = []
    for how in ({}, {"engine": two.map, "on_progress": lambda *call: calls.append(call)}):
        found = sdp.estimate(folder, plan, **how)
        assert found.to_json_dict() == wanted.to_json_dict()
    assert calls[-1] == ("counting", 5000, 5000)


def test_files_of_two_laws_and_folders_of_none_are_refused(reports, tmp_path):
    folder, plan, _ = reports
    other = plan_of(5000, randomizer="subset-selection").randomizer
    drawn = other.randomize(np.zeros(9, np.int64), Entropy.from_seed(6))
    report_files.write_reports(folder / "z.parquet", [drawn], other)
    with pytest.raises(DataError, match=r"z\.parquet.*law"):
        sdp.estimate(folder, plan)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file whose name ends in \.parquet"):
        sdp.estimate(tmp_path / "empty", plan)
