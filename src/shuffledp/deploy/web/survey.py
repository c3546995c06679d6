"""The survey page: questions of one or several tasks, and their promises to respondents.

The page comes from this server; no answer reaches it. The browser's client gets a task from its
shuffler, verifies it, randomizes, and sends the report to that shuffler.

In a pilot shufflers, analyzers, survey and console are one process. One owner runs everything, so
only local noise protects users; each page says so.
"""

import json
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from socket import socket
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from shuffledp.core.errors import ParameterError
from shuffledp.core.labels import require_text
from shuffledp.deploy.analyzer_server import analyzer_service
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers import settings
from shuffledp.deploy.servers.watch import Watch
from shuffledp.deploy.shuffler_server import shuffler_service
from shuffledp.deploy.task import Task
from shuffledp.deploy.web.console import CONSOLE, Told, Watched, console_app
from shuffledp.deploy.web.pages import language_of, page_of, pages_app, serve
from shuffledp.report.formatting import best_guess, given, odds_factor

#: Kinds of questions that a page can ask.
KINDS: Final = ("frequencies", "mean", "answer-sets")

# Texts that the page shows later.
_SAID: Final = (
    "missing", "agree", "checking", "sending", "waiting", "again", "done", "some", "receipt",
    "errors",
)  # fmt: skip

# Largest number of answers listed one below the other; more are in a box to choose from.
_MOST_LISTED: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Tasks that one person answers on one page, one after the other.

    Parameters
    ----------
    tasks : tuple of Task
        Tasks of one question each; their promises are checked.
    title : str
        Heading of the page; by default the first task's name.
    owner : str
        Name of the owner of the survey; the page shows the operator's key beside it.
    is_trial : bool
        True if one owner runs all servers: each page then says that only epsilon0 holds.

    Raises
    ------
    ParameterError
        If a page cannot ask one of the questions, or a task is there twice.
    """

    tasks: tuple[Task, ...]
    title: str = ""
    owner: str = ""
    is_trial: bool = False

    def __post_init__(self) -> None:
        if not self.tasks or len({each.task_id for each in self.tasks}) < len(self.tasks):
            raise ParameterError("tasks has none, or one twice: give each task of the page once")
        require_text("title or owner", self.title, self.owner)
        for task in self.tasks:
            task.check()
            name, asked = task.info, task.asked
            if asked.question.kind not in KINDS:
                raise ParameterError(
                    f"task {name!r} asks for {asked.question.kind}, and a page can ask for one of "
                    f"{', '.join(KINDS)}: use the device client for it, shuffledp send"
                )
            if bad := [each for each in getattr(asked.question, "labels", ()) if "\0" in each]:
                raise ParameterError(
                    f"task {name!r} has the answer {bad[0]!r}, and no page can show the character "
                    "U+0000: make a new task without it"
                )
            if math.isinf(asked.randomizer.epsilon0) or task.num_slots > 1:
                what = "sends answers without noise" if task.num_slots == 1 else "sends dummies"
                raise ParameterError(
                    f"task {name!r} {what} from devices, and a page does not: "
                    "give it a finite epsilon0 and dummies of the shuffler, or none"
                )

    def promises(self) -> dict[str, str]:
        """Return both guarantees for all questions together, in numbers that are rounded up.

        Privacy losses of several tasks add up (basic composition).
        """
        losses = [task.asked.randomizer.epsilon0 for task in self.tasks]
        promised = (float(task.epsilon) for task in self.tasks)
        epsilon = math.fsum(map(min, promised, losses))
        delta = min(1.0, math.fsum(float(task.delta) for task in self.tasks))
        alone = math.fsum(losses)
        least = min(self.tasks, key=lambda task: task.num_honest)
        return {
            "odds": odds_factor(epsilon),
            "guess": best_guess(epsilon, delta),
            "exception": _one_in(delta),
            "local_odds": odds_factor(alone),
            "local_guess": best_guess(alone, 0.0),
            "honest": "" if least.adds_dummies else f"{least.num_honest:,}",
            "least": f"{min(task.min_batch for task in self.tasks):,}",
        }


def _one_in(probability: float) -> str:
    """Return a probability as a fraction with the numerator 1, rounded up to two digits."""
    times = (1.0 + 1e-12) / probability
    power = 10 ** max(0, math.floor(math.log10(times)) - 1)
    return f"1/{math.floor(times / power) * power:,}"


@cache
def texts() -> dict[str, Any]:
    """Return the texts of the page by language; the first language is the default.

    Error messages of the client are English; other languages have texts for the common ones.
    """
    folder = files("shuffledp.deploy.web")
    found: dict[str, Any] = json.loads((folder / "texts.json").read_text("utf-8"))
    said: dict[str, str] = json.loads((folder / "client/src/messages.json").read_text("utf-8"))
    met = found["de"]["errors"].keys()
    found["en"]["errors"] |= {code: each for code, each in said.items() if code in met}
    return found


def question_facts(task: Task) -> dict[str, Any]:
    """Return the question of a task for the page, and the URL of the task for its client."""
    asked = task.asked
    particulars: dict[str, Any] = asked.question.to_json_dict()
    is_number = asked.question.kind == "mean"
    labels = [] if is_number else list(asked.question.labels)
    shown = "number" if is_number else "radio" if len(labels) <= _MOST_LISTED else "select"
    return {
        "url": task.shuffler_url.rstrip("/") + task.path,
        "text": asked.text or task.info,
        "labels": labels,
        "control": "checkbox" if asked.question.kind == "answer-sets" else shown,
        "most": particulars.get("max_answers", 1),
        "low": given(particulars["low"]) if is_number else None,
        "high": given(particulars["high"]) if is_number else None,
        # True if reports are answers, so that the receipt can name one.
        "is_named": asked.randomizer.name == "k-rr",
    }


def _owners(survey: Survey, words: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the owners of the servers by name, each value once."""
    tasks = survey.tasks
    found = {
        "owner": [survey.owner] * bool(survey.owner),
        "shuffler": [urlsplit(task.shuffler_url).netloc for task in tasks],
        "analyzer": [urlsplit(task.analyzer_url).netloc for task in tasks],
        "key": [task.operator_key.hex() for task in tasks],
    }
    return [(words[name], ", ".join(dict.fromkeys(each))) for name, each in found.items() if each]


def survey_app(survey: Survey) -> Starlette:
    """Return the page as an application, with the files that it loads."""
    promises, tasks = survey.promises(), survey.tasks
    questions = [question_facts(task) for task in tasks]
    servers = [url for task in tasks for url in (task.shuffler_url, task.analyzer_url)]
    until = datetime.fromtimestamp(min(task.end for task in tasks), UTC).strftime(
        "%Y-%m-%d %H:%M UTC"
    )

    async def page(request: Request) -> Response:
        language = language_of(request, texts())
        words = texts()[language]
        facts = {
            "survey": survey,
            "title": survey.title or tasks[0].info,
            "language": language,
            "languages": {name: each["language"] for name, each in texts().items()},
            "words": words,
            "messages": json.dumps({name: words[name] for name in _SAID}, ensure_ascii=False),
            "questions": questions,
            "promises": promises,
            "owners": _owners(survey, words),
            "until": until,
        }
        return page_of("survey.html", facts, servers=servers)

    return pages_app({("GET", "/"): page})


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
    survey = Survey(tasks=tuple(map(settings.read_task, tasks)), title=title, owner=owner)
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
            read = partial(settings.ShufflerSettings.read, folder / "shuffler.toml")
            read_other = partial(settings.AnalyzerSettings.read, folder / "analyzer.toml")
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
                sockets[address] = http.listen(*settings.address_of(address))
            places.setdefault(sockets[address].getsockname()[1], []).append((prefix, app))
        for each in services:
            each.watch.always = {"task": each.task.task_id.hex()}
            each.watch.say("started", url=http.url_of(sockets[each.settings.listen]))
        on_ready(http.url_of(sockets[listen]))
        http.make_server(together(places)).run(list(sockets.values()))


def _told(watch: Watch) -> Told:
    """Return a function that reads the watch of a server of this process."""
    return lambda: (watch.numbers(), watch.reason())
