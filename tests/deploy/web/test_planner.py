"""The planner: the same plans and tasks as the command line's, and what it refuses."""

import asyncio
import json
import tomllib
from dataclasses import replace

import httpx
import pytest

import shuffledp as sdp
from deploy.web.test_console import got
from deploy.web.test_survey import HOSTILE
from shuffledp.cli.main import main
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.servers.settings import read_task
from shuffledp.deploy.web.planner import DEFAULTS, plan_of, planner_app, serve_planner, trade_offs

SMALL = DEFAULTS | {"people": "1000", "epsilon": "1"}


def form(**fields):
    return tuple((SMALL | fields).items())


def query(**fields):
    return str(httpx.QueryParams(SMALL | fields))


def test_a_form_is_a_plan():
    found = plan_of(form(cap="1.5"))
    expected = sdp.plan(
        sdp.Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-8, max_epsilon0=1.5
    )
    assert found.guarantee == expected.guarantee
    assert found.randomizer.fingerprint == expected.randomizer.fingerprint
    assert plan_of(form(kind="number", low="-1", high="1")).question == sdp.Mean(-1.0, 1.0)


def test_charts_show_what_costs_and_what_helps():
    charts = {figure.name: figure for _, figure in trade_offs(form())}
    assert set(charts) == {"chart-curve", "chart-cap", "chart-people"}
    for figure in charts.values():
        errors = [float(row[1]) for row in figure.rows]
        assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"people": "many"}, "people = 'many' is no number"),
        ({"people": "1"}, "is not a whole number of at least 2"),
        ({"people": "10.5"}, "is not a whole number of at least 2"),
        ({"epsilon": "nan"}, "epsilon = 'nan' is no number: give a number above 0"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "inf"}, "is no number"),
        ({"delta": "2"}, "delta"),
        ({"cap": "0"}, "max_epsilon0"),
        ({"answers": "yes"}, "answer"),
        ({"answers": "\n".join(map(str, range(1001)))}, "1,001 lines: the form takes 1,000"),
        ({"kind": "number", "low": "3", "high": "1"}, "low"),
    ],
)
def test_impossible_targets_are_named_on_the_page(fields, said):
    with pytest.raises(sdp.ShuffledpError, match=said):
        plan_of(form(**fields))
    page = got(planner_app(), f"/?{query(**fields)}")[0].text
    assert "This cannot be planned." in page
    (answer,) = got(planner_app(), f"/plan.json?{query(**fields)}")
    assert answer.status_code == 400


def test_the_page_keeps_what_was_typed_and_runs_its_own_file_only():
    (answer,) = got(planner_app(), f"/?{query(answers=HOSTILE)}")
    assert "<script>alert" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "form-action 'self'" in policy


def test_the_file_is_that_of_the_command_line(tmp_path):
    (answer,) = got(planner_app(), f"/plan.json?{query()}")
    assert json.loads(answer.content)
    path = tmp_path / "plan.json"
    path.write_bytes(answer.content)
    assert sdp.Plan.load(path).guarantee == plan_of(form()).guarantee


def posted(app, typed, *, host="localhost:8401", site="same-origin", client="127.0.0.1"):
    """Return the answer to the form that makes a task."""

    async def ask():
        transport = httpx.ASGITransport(app=app, client=(client, 1))
        headers = {"host": host, "sec-fetch-site": site}
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as made:
            return await made.post(f"/?{query()}", data=typed, headers=headers)

    return asyncio.run(ask())


def settings_of(folder, role):
    """Return a role's settings but for its keys."""
    written = tomllib.loads((folder / f"{role}.toml").read_text("utf-8"))
    return {name: each for name, each in written.items() if len(str(each)) < 64}


def test_the_task_is_that_of_the_command_line(tmp_path):
    app = planner_app(tmp_path)
    answer = posted(app, {"folder": "one", "text": "Have you?"})
    assert "The folder one holds the task" in answer.text
    assert "shuffledp serve pilot one" in answer.text
    plan = tmp_path / "plan.json"
    plan_of(form()).save(plan)
    how = ["--question", "Have you?", "--min-batch", "1000", "--out", str(tmp_path / "two")]
    assert main(["task", "create", "--plan", str(plan), *how]) == 0
    tasks = [read_task(tmp_path / each / "task.bin") for each in ("one", "two")]
    first, second = (replace(each, start=0, operator_key=bytes(32)) for each in tasks)
    assert first == second
    assert tasks[0].task_id.hex() in answer.text
    names = [
        {str(each.relative_to(tmp_path / name)) for each in (tmp_path / name).rglob("*")}
        for name in ("one", "two")
    ]
    assert names[0] == names[1]
    for role in ("shuffler", "analyzer"):
        assert settings_of(tmp_path / "one", role) == settings_of(tmp_path / "two", role)
    again = posted(app, {"folder": "one"})
    assert "No task was made." in again.text
    assert "one exists: choose another" in again.text


@pytest.mark.parametrize("folder", ["", "..", ".hidden", "a/b", "/x", "a\\b", "x" * 101, "é"])
def test_a_folder_that_is_no_plain_name_is_refused(folder, tmp_path):
    answer = posted(planner_app(tmp_path), {"folder": folder})
    assert "is no plain name" in answer.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong",
    [
        {"site": "cross-site"},
        {"site": "none"},
        {"site": ""},
        {"host": "evil.example:8401"},
        {"client": "192.0.2.1"},
    ],
)
def test_no_other_page_makes_a_task(wrong, tmp_path):
    assert posted(planner_app(tmp_path), {"folder": "one"}, **wrong).status_code == 403
    assert posted(planner_app(tmp_path), {"folder": "x" * 20_000}).status_code == 413
    assert not list(tmp_path.iterdir())


def test_it_is_for_this_machine_alone():
    assert got(planner_app(), "/", host="evil.example")[0].status_code == 403
    with pytest.raises(ParameterError, match="listen at"):
        serve_planner(pytest.fail, listen="0.0.0.0:0")
