"""Several applications behind one server, and what pages for respondents refuse."""

import asyncio
import json
from types import SimpleNamespace

import httpx
import pytest
from starlette.responses import PlainTextResponse

from deploy.roles import BARE
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers.watch import Watch
from shuffledp.deploy.web.survey import serve_pilot, serve_survey, together


def saying(word, seen, base=""):
    """Return an application that says a word at /, and notes when it begins and ends."""

    async def say(_):
        return PlainTextResponse(word)

    async def work():
        seen.append(f"{word} begins")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(f"{word} ends")

    return http.application({("GET", "/x"): say}, [work], base=base)


def test_applications_are_found_by_port_and_path_and_begin_and_end_together():
    seen = []
    places = {8080: [("/a", saying("a", seen, "/a")), ("/", saying("b", seen))]}
    whole = together(places | {8081: [("/", saying("c", seen))]})

    async def visit():
        async with whole.router.lifespan_context(whole):
            await asyncio.sleep(0)
            transport = httpx.ASGITransport(app=whole)
            async with httpx.AsyncClient(transport=transport) as client:
                for url, said in (
                    ("http://here:8080/a/x", "a"),
                    ("http://here:8080/x", "b"),
                    ("http://here:8081/x", "c"),
                    ("http://here:8082/x", None),
                ):
                    answer = await client.get(url)
                    assert (answer.text if answer.status_code == 200 else None) == said

    asyncio.run(visit())
    assert sorted(seen) == sorted(f"{word} {what}" for word in "abc" for what in ("begins", "ends"))
    assert not whole.state.is_failed


def test_a_task_that_no_page_can_ask_is_refused_before_anything_is_served(make):
    _, settings, _ = make(**BARE)
    folder = settings.task.parent
    for serve in (serve_survey, serve_pilot):
        with pytest.raises(ParameterError, match=r"sends answers without noise|give each task"):
            serve([folder], pytest.fail, listen="127.0.0.1:0")
    with pytest.raises(ParameterError, match="give each task of the page once"):
        serve_survey([folder, folder / "task.bin"], pytest.fail, listen="127.0.0.1:0")


def test_every_event_names_its_task(make, monkeypatch, capsys):
    task, settings, _ = make()
    server = SimpleNamespace(run=lambda sockets: [each.close() for each in sockets])
    monkeypatch.setattr(http, "make_server", lambda _: server)
    serve_pilot([settings.task.parent], lambda _: None, listen="127.0.0.1:0")
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in events] == ["started", "started"]
    assert {each["task"] for each in events} == {task.task_id.hex()}
    watch = Watch("shuffler")
    watch.always = {"task": "a1"}
    watch.say("batch_closed", batch=3)
    assert json.loads(capsys.readouterr().err)["task"] == "a1"
