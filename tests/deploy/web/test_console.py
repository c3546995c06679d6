"""The console: who may look, whom it asks, and what it shows of markup and of many tasks."""

import asyncio
import base64

import httpx
import pytest

import shuffledp as sdp
from deploy.make_vectors import make_task
from deploy.test_creating import HOW
from deploy.web.test_survey import HOSTILE
from shuffledp.cli.main import main
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.creating import create_task
from shuffledp.deploy.web import console
from shuffledp.deploy.web.console import AT_ONCE, CONSOLE, Watched, console_app, serve_console

TOKEN = " ".join(["a token of", "many characters"])


NUMBERS = """# HELP shuffledp_shuffler_waiting_reports Reports stored and not released.
# TYPE shuffledp_shuffler_waiting_reports gauge
shuffledp_shuffler_waiting_reports 12
shuffledp_shuffler_requests_total{endpoint="GET /keys",status="200"} 3
"""


@pytest.fixture(autouse=True)
def one_look_lasts(monkeypatch):
    """However slow the machine is."""
    monkeypatch.setattr(console, "_SECONDS_SHARED", float("inf"))


def watched(tmp_path, said=(NUMBERS, ""), **changes):
    """Return a task whose servers say this, and the times when they were asked."""
    asked = []

    def told():
        asked.append(1)
        return said

    task = make_task(**changes)
    return Watched(task, tmp_path, {"shuffler": told}), asked


def got(
    app, path=CONSOLE, *, client="127.0.0.1", host="localhost:8400", token=None, times=1, **more
):
    """Return the answers to so many requests at once."""
    headers = {"host": host, **more}
    if token is not None:
        headers["authorization"] = "Basic " + base64.b64encode(f"me:{token}".encode()).decode()

    async def ask():
        transport = httpx.ASGITransport(app=app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as made:
            return await asyncio.gather(*(made.get(path, headers=headers) for _ in range(times)))

    return asyncio.run(ask())


def test_without_a_token_it_is_for_this_machine_alone(tmp_path):
    app = console_app([watched(tmp_path)[0]])
    for client, host, status in (
        ("127.0.0.1", "localhost:8400", 200),
        ("::1", "[::1]:8400", 200),
        ("192.0.2.1", "127.0.0.1:8400", 403),
        ("127.0.0.1", "evil.example:8400", 403),
        ("127.0.0.1", "", 403),
        ("127.0.0.1", "[", 403),
    ):
        assert got(app, client=client, host=host)[0].status_code == status, (client, host)
    answer = got(app, client="127.0.0.1", host="localhost:8400", forwarded="192.0.2.1")[0]
    assert answer.status_code == 403


def test_with_a_token_it_is_for_whoever_has_it(tmp_path):
    app = console_app([watched(tmp_path)[0]], token=TOKEN)
    for token, status in ((TOKEN, 200), ("another", 401), ("", 401), (None, 401)):
        answer = got(app, client="192.0.2.1", host="console.example", token=token)[0]
        assert answer.status_code == status
        assert ("www-authenticate" in answer.headers) is (status == 401)


def test_viewers_share_one_look_at_the_servers(tmp_path):
    each, asked = watched(tmp_path)
    answers = got(console_app([each]), times=50)
    assert {answer.status_code for answer in answers} == {200}
    assert len(asked) == 1


def test_labels_are_texts_and_pages_run_their_own_file_only(tmp_path):
    each, _ = watched(tmp_path, info=HOSTILE)
    app = console_app([each], is_trial=True)
    name = each.task.task_id.hex()
    for path in (CONSOLE, f"{CONSOLE}/{name}"):
        (answer,) = got(app, path)
        assert "<script>alert" not in answer.text
        assert "This is a trial" in answer.text
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
    assert "12 of 10,000" in got(app)[0].text
    assert got(app, f"{CONSOLE}/{'0' * 64}")[0].status_code == 404


def test_what_is_silent_or_missing_is_said(tmp_path):
    each, _ = watched(tmp_path, said=None)
    page = got(console_app([each]), f"{CONSOLE}/{each.task.task_id.hex()}")[0].text
    assert "the shuffler does not answer at its inner port" in page
    assert "The shuffler says nothing of its reports here." in page
    assert "has no operator.key" in page


def test_of_ten_thousand_tasks_only_those_of_the_page_are_asked(tmp_path):
    each, asked = watched(tmp_path)
    page = got(console_app([each] * 10_000), f"{CONSOLE}?page=200")[0].text
    assert page.count('<th scope="row">') == AT_ONCE
    assert 'href="?page=199"' in page
    assert "Next" not in page
    assert len(asked) == 1
    for wrong in ("0", "x", "-1", "9" * 30):
        assert got(console_app([each]), f"{CONSOLE}?page={wrong}")[0].status_code == 200


def test_addresses_of_others_need_a_token_of_some_length(tmp_path, monkeypatch):
    monkeypatch.setattr(console.Watched, "of", lambda _: watched(tmp_path)[0])
    with pytest.raises(ParameterError, match="the console needs a token: give token="):
        serve_console([tmp_path], pytest.fail, listen="0.0.0.0:0", token=None)
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(DataError, match="a token of 5 characters: give 16 or more"):
        serve_console([tmp_path], pytest.fail, listen="0.0.0.0:0", token=tmp_path / "token")
    with pytest.raises(DataError, match="cannot read"):
        serve_console([tmp_path], pytest.fail, listen="0.0.0.0:0", token=tmp_path / "none")


def test_a_task_is_known_by_its_folder_or_by_the_settings_of_one_server(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "told_by", lambda address: address)
    folder, asked = tmp_path / "task", AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0)
    made = create_task(folder, min_batch=1000, asked=asked, epsilon="2", delta="1e-6", **HOW)
    inner = {"shuffler": "127.0.0.1:2", "analyzer": "127.0.0.1:4"}
    own = (folder / "shuffler.toml").rename(folder / "ours.toml")
    for path, roles in ((folder, ["analyzer"]), (own, ["shuffler"])):
        found = console.Watched.of(path)
        assert (found.task, found.folder) == (made, folder)
        assert found.servers == {role: inner[role] for role in roles}
    with pytest.raises(DataError, match=r"none/task\.bin"):
        console.Watched.of(tmp_path / "none")


def test_inner_ports_are_asked_by_address():
    assert console.told_by("127.0.0.1:9")() is None


def test_the_command_takes_settings_in_place_of_a_folder(tmp_path, capsys):
    assert main(["serve", "console", str(tmp_path / "ours.toml")]) == 2
    assert "task.bin" in capsys.readouterr().err
    assert main(["serve", "survey", "--config", str(tmp_path / "ours.toml")]) == 2
    assert "survey takes TASKS" in capsys.readouterr().err
