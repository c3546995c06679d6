"""State of a task as a console knows it, and the contents of its pages."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from shuffledp.composition.release import honest_users
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy.task import Task
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
