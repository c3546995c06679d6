"""The operator's console: state of the servers, results, and alerts.

It reads only what the operator can read anyway: the inner ports of servers, and results by the
operator's key. It changes nothing. Requests at the same time share one reading.
"""

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.composition.release import honest_users
from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.deploy.remote import Server, checked_record
from shuffledp.deploy.servers import settings
from shuffledp.deploy.task import Task
from shuffledp.deploy.web import pages
from shuffledp.deploy.web.pages import require_visitor
from shuffledp.report import dummies, wording
from shuffledp.report.drawing import COLOURS, Axis, Bar, Figure, Line, bars_figure, lines_figure
from shuffledp.report.formatting import decimals_for, fixed, given, rounded, shorten
from shuffledp.report.page import rendered_rows, rendered_tables

_DAY: Final = 86_400.0
# Modules whose words the templates use.
_WORDS: Final[dict[str, Any]] = {"wording": wording, "dummies": dummies}

_MOST_SHOWN: Final = 8  # answers in a chart over time
_MOST_BARS: Final = 30
_NUM_POINTS: Final = 12  # points of the curve of epsilon

_WAITING: Final = "shuffler_waiting_reports"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """Metrics of both servers, results by batch, and problems."""

    task: Task
    numbers: Mapping[str, float]
    problems: tuple[str, ...]
    records: Mapping[int, Mapping[str, Any]]
    refused: Mapping[str, str]

    @property
    def waiting(self) -> int:
        """Number of reports stored and not released; 0 if unknown."""
        return int(self.numbers.get(_WAITING, 0))

    @property
    def is_known(self) -> bool:
        """True if the number of waiting reports is known."""
        return _WAITING in self.numbers

    @property
    def waiting_text(self) -> str:
        """Number of reports stored and not released, in words."""
        return f"{self.waiting:,}" if self.is_known else "unknown"


@lru_cache(maxsize=10_000)
def epsilon_among(task: Task, num_reports: int) -> float:
    """Return epsilon of a batch with this number of reports; infinite if none is proved."""
    try:
        if task.adds_dummies:
            return task.guarantee().epsilon_upper
        honest = honest_users(num_reports, task.honest_ppm / 1_000_000)
        return task.guarantee(honest).epsilon_upper
    except ShuffledpError:
        return math.inf


def _epsilon_text(epsilon: float) -> str:
    """Return an upper bound on epsilon as text."""
    return "no epsilon" if math.isinf(epsilon) else f"epsilon <= {rounded(epsilon, up=True)}"


def _time(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    for unit, size in (("days", _DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} seconds"


def _when(task: Task, now: float) -> str:
    """Return the time until a task begins or ends, in a few words."""
    if now < task.start:
        return f"begins in {_time(task.start - now)}"
    left = task.end - now
    return f"ends in {_time(left)}" if left > 0 else f"ended {_time(-left)} ago"


def row_of(state: TaskState, now: float) -> dict[str, str]:
    """Return the row of a task in the list of tasks."""
    task, waiting = state.task, state.waiting
    newest = max(state.records, default=None)
    users = "" if newest is None else f"{state.records[newest]['num_users']:,} reports"
    return {
        "id": task.task_id.hex(),
        "name": task.info,
        "question": task.asked.text,
        "when": _when(task, now),
        "reports": f"{state.waiting_text} of {task.min_batch:,}",
        "epsilon": _epsilon_text(epsilon_among(task, waiting)) if waiting else "",
        "result": "none yet" if newest is None else f"batch {newest}: {users}",
        "alerts": str(len(alerts(state)) or ""),
    }


def page_facts(state: TaskState, now: float) -> dict[str, Any]:
    """Return all contents of the page of a task."""
    task, number = state.task, state.waiting
    epoch, least = task.epoch_at(now), f"{task.min_batch:,}"
    where = "none" if epoch is None else f"{epoch + 1} of {task.num_epochs}"
    epsilon = "no report" if state.is_known else "unknown"
    if number:
        epsilon = _epsilon_text(epsilon_among(task, number))
    promised = f"promised {task.epsilon} at delta = {task.delta}; released from {least} on"
    newest = max(state.records, default=None)
    local = wording.local_figure(task.asked.randomizer.profile, rounds=task.asked.rounds)
    figures = [
        ("Reports waiting", state.waiting_text, f"of {least}, the least batch"),
        ("If the batch closed now", epsilon, promised),
        ("Without the shuffler", *local),
        ("Epoch", where, _when(task, now)),
    ]
    return {
        "state": state,
        "title": task.asked.text or task.info,
        "figures": figures,
        "alerts": alerts(state),
        "curve": _curve(task, number),
        "newest": newest,
        "estimates": None if newest is None else _estimates(state.records[newest]),
        "history": _history(state),
        "results": [
            _result_row(each, record) for each, record in reversed([*state.records.items()])
        ],
    } | dict(rendered_tables("console.txt", state=state, duration=_time, **_WORDS))


def _curve(task: Task, number: int) -> Figure | None:
    """Return epsilon against the number of reports in the batch."""
    if task.adds_dummies:
        return None  # it is the same for any number
    least, most = max(2, task.min_batch // 30), max(10 * task.min_batch, 3 * number)
    step = (most / least) ** (1.0 / (_NUM_POINTS - 1))
    places = sorted({round(least * step**index) for index in range(_NUM_POINTS)} | {task.min_batch})
    points = [(float(each), epsilon_among(task, each)) for each in places]
    points = [(each, epsilon) for each, epsilon in points if math.isfinite(epsilon)]
    if len(points) < 2:
        return None
    sizes, epsilons = zip(*points, strict=True)
    level = partial(Line, colour="var(--ink-soft)", width=1.3)
    lines = [
        Line(name="upper bound on epsilon", x=sizes, y=epsilons, colour="var(--accent)"),
        level(name="promised", y=(float(task.epsilon),), dash="dot"),
        level(name="epsilon0", y=(task.asked.randomizer.epsilon0,), dash="dashdot"),
    ]
    # It may fall by powers of ten, which only a logarithmic axis shows.
    is_log = max(epsilons) > 10.0 * min(epsilons) > 0.0
    x = Axis(title="reports in the batch", is_log=True)
    y = Axis(title="\u03b5", is_log=is_log, has_zero=not is_log)
    return lines_figure("chart-epsilon", lines, x=x, y=y, here=number or None)


# --------------------------------------------------------------------- results
def _values(record: Mapping[str, Any]) -> list[tuple[str, float, float, float]]:
    """Return label, estimate and interval of each estimate of a result."""
    found = []
    for each in record["estimates"]:
        value = next((each[name] for name in ("frequency", "mean") if name in each), None)
        low, high = each.get("lower"), each.get("upper")
        if value is not None and low is not None and high is not None:
            label = str(each.get("value", each.get("name", "")))
            found.append((label, float(value), float(low), float(high)))
    return found


def _estimates(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chart and the table of a result."""
    values, is_share = _values(record), any("frequency" in each for each in record["estimates"])
    unit = 100.0 if is_share else 1.0
    decimals = decimals_for([unit * (upper - lower) / 4.0 for _, _, lower, upper in values])
    sign = "%" * is_share

    def text(value: float) -> str:
        return fixed(unit * value, decimals) + sign

    rows = [(label, text(value), f"{text(low)} to {text(up)}") for label, value, low, up in values]
    bars = [
        Bar(label=label, value=value, title=f"{label}\n{text(value)}", interval=(low, up))
        for label, value, low, up in values[:_MOST_BARS]
    ]
    figure = None
    if bars:
        figure = bars_figure(
            "chart-estimates",
            bars,
            x=Axis(is_share=is_share),
            description=f"{len(bars)} estimates with intervals, which the table below holds too.",
            are_dots=len(bars) == 1 and not is_share,
        )
    return {"rows": rows, "figure": figure, "confidence": given(100.0 * record["confidence"])}


def _history(state: TaskState) -> Figure | None:
    """Return estimates over the batches, for the largest answers of the newest one."""
    if len(state.records) < 2:
        return None
    numbers = list(state.records)
    batches = [{label: rest for label, *rest in _values(state.records[each])} for each in numbers]
    shown = sorted(batches[-1], key=lambda label: -batches[-1][label][0])[:_MOST_SHOWN]
    lines = []
    for label, colour in zip(shown, COLOURS, strict=False):
        known = [
            (n, *each[label]) for n, each in zip(numbers, batches, strict=True) if label in each
        ]
        places, values, low, up = zip(*known, strict=True)
        band, name = (low, up), shorten(label, 40)
        lines.append(Line(name=name, x=places, y=values, band=band, colour=colour))
    is_share = any("frequency" in each for each in state.records[numbers[-1]]["estimates"])
    x = Axis(title="batch", labels=tuple((float(n), str(n)) for n in numbers))
    y = Axis(title="estimate", is_share=is_share)
    return lines_figure("chart-history", lines, x=x, y=y, band="interval")


def _result_row(number: int, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a batch."""
    honest, guarantee = record["parameters"]["num_honest"], record["guarantee"]
    epsilon, delta = _epsilon_text(guarantee["epsilon"]["upper"]), given(guarantee["delta"])
    return str(number), f"{record['num_users']:,}", f"{honest:,}", epsilon, delta


def alerts(state: TaskState) -> list[tuple[str, str]]:
    """Return the heading of the runbook, and the text, of each alert."""
    return rendered_rows("alerts.txt", state=state)


# --------------------------------------------------------------------- servers and pages
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
        with Server(
            self.task,
            "analyzer",
            key=settings.signing_key(path),
            patience_seconds=_PATIENCE_SECONDS,
        ) as analyzer:
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
        require_visitor(request, token)
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
        return pages.page_of("overview.html", facts, has_charts=True)

    async def task(request: Request) -> Response:
        require_visitor(request, token)
        name = request.path_params["name"]
        if name not in by_id:
            raise HTTPException(404, f"there is no task {name!r} here: see {CONSOLE}")
        state = await by_id[name].state()
        facts = await asyncio.to_thread(page_facts, state, time.time())
        return pages.page_of("task.html", facts | {"is_trial": is_trial}, has_charts=True)

    return pages.pages_app({("GET", CONSOLE): overview, ("GET", CONSOLE + "/{name}"): task})


def serve_console(
    tasks: Sequence[Path], on_ready: Callable[[str], None], *, listen: str, token: Path | None
) -> None:
    """Serve the console of tasks, as `Watched.of` takes them, until told to end."""
    secret = "" if token is None else pages.read_token(token)
    if not secret:
        remedy = "give token=... and a file with at least 16 characters, or "
        pages.require_this_machine(listen, "the console needs a token", remedy)
    app = console_app([Watched.of(each) for each in tasks], token=secret)
    pages.serve(app, on_ready, listen, CONSOLE)
