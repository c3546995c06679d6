"""A whole collection in one process, as a trial: shuffler, analyzer, survey and console.

One owner runs everything here, so only local noise protects users; each page says so.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from socket import socket

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from shuffledp.deploy.analyzer_server import analyzer_service
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers.settings import (
    AnalyzerSettings,
    ShufflerSettings,
    address_of,
    read_task,
)
from shuffledp.deploy.servers.watch import Watch
from shuffledp.deploy.shuffler_server import shuffler_service
from shuffledp.deploy.web.console import CONSOLE, Told, Watched, console_app
from shuffledp.deploy.web.pages import serve
from shuffledp.deploy.web.survey import Survey, survey_app


def together(places: Mapping[int, Sequence[tuple[str, Starlette]]]) -> Starlette:
    """Return applications as one, which starts and ends with all of them.

    The first at a request's port with a prefix of its path answers.
    """
    inner = [app for some in places.values() for _, app in some]

    @asynccontextmanager
    async def lifespan(whole: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in inner:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield
        whole.state.is_failed = any(app.state.is_failed for app in inner)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        for prefix, app in places.get(scope["server"][1], ()):
            if scope["path"].startswith(prefix):
                return await app(scope, receive, send)
        raise HTTPException(404)

    whole = Starlette(routes=[Mount("/", answer)], lifespan=lifespan)
    whole.state.is_failed = False
    return whole


def serve_survey(
    tasks: Sequence[Path],
    on_ready: Callable[[str], None],
    *,
    listen: str,
    title: str = "",
    owner: str = "",
) -> None:
    """Serve the survey page of tasks, files or folders with a task.bin, until told to end."""
    survey = Survey(tasks=tuple(map(read_task, tasks)), title=title, owner=owner)
    serve(survey_app(survey), on_ready, listen)


def serve_pilot(
    folders: Sequence[Path],
    on_ready: Callable[[str], None],
    *,
    listen: str,
    title: str = "",
    owner: str = "",
) -> None:
    """Serve tasks in folders made by `write_task`, until the process is told to end.

    ``on_ready`` gets the address of the survey, at ``listen``; the console is below it. Shufflers
    and analyzers listen where devices expect them; several may share an address.
    """
    with ExitStack() as stack:
        services, watched = [], []
        for folder in folders:
            read = partial(ShufflerSettings.read, folder / "shuffler.toml")
            read_other = partial(AnalyzerSettings.read, folder / "analyzer.toml")
            shuffler = stack.enter_context(shuffler_service(read))
            analyzer = stack.enter_context(analyzer_service(read_other))
            services += [shuffler, analyzer]
            servers = {"shuffler": _told(shuffler.watch), "analyzer": _told(analyzer.watch)}
            watched.append(Watched(shuffler.task, folder, servers))
        tasks = tuple(each.task for each in watched)
        survey = Survey(tasks=tasks, title=title, owner=owner, is_trial=True)
        found = [(each.settings.listen, each.task.path, each.app) for each in services]
        found.append((listen, CONSOLE, console_app(watched, is_trial=True)))
        found.append((listen, "/", survey_app(survey)))
        sockets: dict[str, socket] = {}
        places: dict[int, list[tuple[str, Starlette]]] = {}
        for address, prefix, app in found:
            if address not in sockets:
                sockets[address] = http.listen(*address_of(address))
            places.setdefault(sockets[address].getsockname()[1], []).append((prefix, app))
        for each in services:
            each.watch.say("started", url=http.url_of(sockets[each.settings.listen]))
        on_ready(http.url_of(sockets[listen]))
        http.make_server(together(places)).run(list(sockets.values()))


def _told(watch: Watch) -> Told:
    """Return a function that reads the watch of a server of this process."""
    return lambda: (watch.numbers(), watch.reason())
