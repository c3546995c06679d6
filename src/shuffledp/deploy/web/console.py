"""The operator's console: state of the servers, results, and alerts.

It reads only what the operator can read anyway: the inner ports of servers, and results by the
operator's key. It changes nothing. Requests at the same time share one reading.
"""

import asyncio
import hmac
import ipaddress
import re
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.deploy.remote import Server, checked_record
from shuffledp.deploy.servers import settings
from shuffledp.deploy.task import Task
from shuffledp.deploy.web.pages import page_of, pages_app, serve
from shuffledp.deploy.web.task_state import TaskState, page_facts, row_of

#: Path of the console; in a pilot the survey is above it.
CONSOLE: Final = "/console"

#: Tasks on one page of the list.
AT_ONCE: Final = 50

_ROLES: Final = ("shuffler", "analyzer")
_SECONDS_SHARED: Final = 2.0
_PATIENCE_SECONDS: Final = 0.5
_MOST_RESULTS: Final = 100
_NUMBER: Final = re.compile(r"^shuffledp_(.+) (\S+)$", re.MULTILINE)

#: Metrics of a server, and the reason why it is not ready; None if it does not answer.
Told = Callable[[], tuple[str, str] | None]


def told_by(address: str) -> Told:
    """Return a function that reads the inner port of a server."""

    def ask() -> tuple[str, str] | None:
        try:
            with httpx.Client(timeout=_PATIENCE_SECONDS, trust_env=False) as client:
                numbers = client.get(f"http://{address}/metrics")
                ready = client.get(f"http://{address}/readyz")
        except httpx.HTTPError:
            return None
        return numbers.text, "" if ready.status_code == 200 else ready.text.strip()

    return ask


@dataclass(slots=True)
class Watched:
    """One task of the console: its servers, and their last known state."""

    task: Task
    folder: Path
    servers: Mapping[str, Told]
    records: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    _state: TaskState | None = None
    _until: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, path: Path) -> "Watched":
        """Return the task of a folder that ``task create`` made, or of a server's settings."""
        files = [path]
        if not path.is_file():
            files = [each for role in _ROLES if (each := path / f"{role}.toml").is_file()]
        read = [settings.read_settings(each) for each in files]
        task = read[0].task if read else path / "task.bin"
        servers: dict[str, Told] = {each.role: told_by(each.inner) for each in read}
        return cls(settings.read_task(task), task.parent, servers)

    async def state(self) -> TaskState:
        """Return the present state, read again at most every two seconds."""
        async with self._lock:
            if self._state is None or time.monotonic() >= self._until:
                self._state = await asyncio.to_thread(self._ask)
                self._until = time.monotonic() + _SECONDS_SHARED
        return self._state

    def _ask(self) -> TaskState:
        """Read the state of both servers."""
        numbers: dict[str, float] = {}
        problems = []
        for role, ask in self.servers.items():
            if (found := ask()) is None:
                problems.append(f"the {role} does not answer at its inner port: see if it runs")
                continue
            numbers |= {name: float(each) for name, each in _NUMBER.findall(found[0])}
            problems += [f"{role}: {found[1]}"] if found[1] else []
        refused: Mapping[str, str] = {}
        try:
            refused = self._fetch()
        except ShuffledpError as error:
            problems.append(str(error))
        return TaskState(
            task=self.task,
            numbers=numbers,
            problems=tuple(problems),
            records=dict(sorted(self.records.items())),
            refused=refused,
        )

    def _fetch(self) -> Mapping[str, str]:
        """Fetch new results; return the refused batches with the reasons."""
        if not (path := self.folder / "operator.key").is_file():
            raise DataError(f"no results: {self.folder} has no operator.key, which opens them")
        how: Any = {"key": settings.signing_key(path), "patience_seconds": _PATIENCE_SECONDS}
        with Server(self.task, "analyzer", **how) as analyzer:
            found = analyzer.results()
            for number in found["batches"][-_MOST_RESULTS:]:
                if number not in self.records:
                    data = analyzer.file(number, PRIVACY_FILE)
                    self.records[number] = checked_record(self.task, data)
        return dict(found["refused"])


def console_app(
    watched: Sequence[Watched], *, token: str = "", is_trial: bool = False
) -> Starlette:
    """Return the console as an application; without a token, for this machine alone."""
    by_id = {each.task.task_id.hex(): each for each in watched}

    async def overview(request: Request) -> Response:
        _require_visitor(request, token)
        page = request.query_params.get("page", "1")
        first = (int(page) - 1) * AT_ONCE if page.isdecimal() and len(page) < 9 and int(page) else 0
        shown = watched[first : first + AT_ONCE]
        states = await asyncio.gather(*(each.state() for each in shown))
        rows = asyncio.to_thread(lambda: [row_of(each, time.time()) for each in states])
        facts = {
            "rows": await rows,
            "number": len(watched),
            "first": first,
            "more": first + AT_ONCE < len(watched),
            "page": first // AT_ONCE + 1,
            "is_trial": is_trial,
        }
        return page_of("overview.html", facts, has_charts=True)

    async def task(request: Request) -> Response:
        _require_visitor(request, token)
        name = request.path_params["name"]
        if name not in by_id:
            raise HTTPException(404, f"there is no task {name!r} here: see {CONSOLE}")
        state = await by_id[name].state()
        facts = await asyncio.to_thread(page_facts, state, time.time())
        return page_of("task.html", facts | {"is_trial": is_trial}, has_charts=True)

    return pages_app({("GET", CONSOLE): overview, ("GET", CONSOLE + "/{name}"): task})


def require_own_visitor(request: Request) -> None:
    """Raise unless a request comes from this machine.

    A page from elsewhere whose own name points to this machine is refused by that name.
    """
    client = request.client.host if request.client else ""
    if any(name.startswith(("forwarded", "x-forwarded")) for name in request.headers):
        raise HTTPException(403, "a proxy passed this on: this page needs a token there")
    asked = ""
    with suppress(ValueError):  # such as "["
        asked = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if not (_is_loopback(client) and (asked == "localhost" or _is_loopback(asked))):
        raise HTTPException(403, "this page is for its own machine alone, or needs a token")


def _require_visitor(request: Request, token: str) -> None:
    """Raise for a request without the token, or without one unless it is from this machine."""
    if not token:
        require_own_visitor(request)
        return
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    try:
        given = b64decode(text).partition(b":")[2] if scheme.lower() == "basic" else b""
    except ValueError:
        given = b""
    if not hmac.compare_digest(given, token.encode()):
        challenge = {"www-authenticate": 'Basic realm="shuffledp console", charset="UTF-8"'}
        raise HTTPException(401, "this needs the console's token as the password", challenge)


def _is_loopback(host: str) -> bool:
    """Return True if an address is of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve_console(
    tasks: Sequence[Path], on_ready: Callable[[str], None], *, listen: str, token: Path | None
) -> None:
    """Serve the console of tasks, as `Watched.of` takes them, until told to end."""
    secret = "" if token is None else read_token(token)
    if not secret:
        remedy = "give token=... and a file with at least 16 characters, or "
        require_this_machine(listen, "the console needs a token", remedy)
    app = console_app([Watched.of(each) for each in tasks], token=secret)
    serve(app, on_ready, listen, CONSOLE)


def require_this_machine(listen: str, reason: str, remedy: str = "") -> None:
    """Raise unless an address is of this machine alone."""
    if not _is_loopback(settings.address_of(listen)[0]):
        raise ParameterError(
            f"listen = {listen!r} is not of this machine alone, and {reason}: {remedy}listen at "
            "127.0.0.1"
        )


def read_token(path: Path) -> str:
    """Read the token of a console from a file."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    if len(token) < 16:
        raise DataError(f"{path} has a token of {len(token)} characters: give 16 or more")
    return token
