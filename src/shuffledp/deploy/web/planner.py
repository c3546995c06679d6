"""The planner: ``plan`` as a form, with charts of the error against epsilon, epsilon0 and people.

It reads no server and no data. Its results are the file of ``plan --out``, or the folder of ``task
create --plan``, where it was started.
"""

import math
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shuffledp.collection.plan import Plan, plan
from shuffledp.collection.questions.categories import Categories
from shuffledp.collection.questions.mean import Mean
from shuffledp.core.errors import ParameterError, ShuffledpError
from shuffledp.deploy.creating import create_task, promise_of
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.web import pages
from shuffledp.deploy.web.pages import page_of, require_own_visitor
from shuffledp.report.drawing import Axis, Figure, Line, lines_figure
from shuffledp.report.formatting import given
from shuffledp.report.plan import figure_of_errors, key_figures, plan_table

#: Initial values of the form.
DEFAULTS: Final = {
    "kind": "choice",
    "answers": "yes\nno",
    "low": "0",
    "high": "100",
    "people": "10000",
    "epsilon": "0.5",
    "delta": "1e-8",
    "cap": "",
}
_MOST_ANSWERS: Final = 1_000
_MANY: Final = 1e15
_MOST_BODY: Final = 10_000
_FOLDER: Final = re.compile(r"\w[\w.-]{0,99}", re.ASCII)

# Charts of the error against one option of `plan`: name, caption, title of the axis, the option,
# and factors on its planned value.
_CHARTS: Final = (
    ("chart-curve", "epsilon, all else as planned", "\u03b5", "epsilon", (0.25, 0.5, 1, 2, 4)),
    ("chart-cap", "the cap on epsilon0, at the same epsilon", "\u03b5\u2080", "max_epsilon0",
     (0.2, 0.4, 0.6, 0.8, 1)),
    ("chart-people", "the number of people, at the same epsilon", "people", "num_users",
     (0.1, 0.2, 0.5, 1, 2, 5, 10)),
)  # fmt: skip

Form = tuple[tuple[str, str], ...]


def _number(fields: Mapping[str, str], name: str, allowed: str) -> float:
    """Return the number of a field."""
    try:
        found = float(fields[name])
    except ValueError:
        found = float("nan")
    if not abs(found) <= _MANY:
        raise ParameterError(f"{name} = {fields[name]!r} is no number: give {allowed}")
    return found


@lru_cache(maxsize=256)
def plan_of(form: Form) -> Plan:
    """Return the plan of a form; raise if no plan meets its targets."""
    fields = dict(form)
    people = _number(fields, "people", "a whole number of at least 2, such as 10000")
    if people != int(people) or people < 2:
        raise ParameterError(f"people = {fields['people']!r} is not a whole number of at least 2")
    answers = [line.strip() for line in fields["answers"].splitlines() if line.strip()]
    if len(answers) > _MOST_ANSWERS:
        raise ParameterError(
            f"answers = {len(answers):,} lines: the form takes {_MOST_ANSWERS:,}; give more to "
            "shuffledp plan"
        )
    question: Any = Categories(answers) if fields["kind"] == "choice" else None
    if question is None:
        low, high = (_number(fields, each, "the limits of the range") for each in ("low", "high"))
        question = Mean(low, high)
    cap = _number(fields, "cap", "a number above 0, or none") if fields["cap"].strip() else None
    return plan(
        question,
        num_users=int(people),
        epsilon=_number(fields, "epsilon", "a number above 0, such as 0.5"),
        delta=_number(fields, "delta", "a number in (0, 1), such as 1e-8"),
        max_epsilon0=cap,
    )


@lru_cache(maxsize=256)
def trade_offs(form: Form) -> tuple[tuple[str, Figure], ...]:
    """Return the charts of a form's plan with their captions; none with fewer than two points."""
    found, y = plan_of(form), Axis(title="standard error", is_log=True)
    fixed: dict[str, Any] = {"num_users": found.num_users, "epsilon": found.target_epsilon}
    fixed |= {"delta": found.target_delta, "randomizer": found.randomizer.name}
    charts = []
    for name, caption, title, option, factors in _CHARTS:
        here = (fixed | {"max_epsilon0": found.randomizer.epsilon0})[option]
        values = [factor * here for factor in factors]
        if option == "num_users":
            values = sorted({max(2, round(each)) for each in values})
        errors: dict[float, float] = {}
        for value in values:
            with suppress(ShuffledpError):  # for a target that no plan meets
                made = plan(found.question, **fixed | {option: value})
                errors[float(value)] = made.expected_standard_error
        if len(errors) > 1:
            xs, ys = tuple(errors), tuple(errors.values())
            line = Line(name="standard error", x=xs, y=ys, colour="var(--accent)")
            x = Axis(title=title, is_log=True)
            chart = lines_figure(name, [line], x=x, y=y, here=float(here))
            charts.append((f"Expected standard error against {caption}.", chart))
    return tuple(charts)


def _form_of(request: Request) -> Form:
    """Return the fields of a request, with the form's initial values for missing ones."""
    given_fields = request.query_params
    return tuple((name, given_fields.get(name, value)) for name, value in DEFAULTS.items())


def _results(form: Form) -> dict[str, Any]:
    """Return the contents of the page below the form, or the problem with the form."""
    try:
        found = plan_of(form)
        charts = trade_offs(form)
    except ShuffledpError as error:
        return {"problem": str(error)}
    headings, rows = plan_table(found)
    return {
        "problem": "",
        "plan": found,
        "figures": key_figures(found),
        "errors": figure_of_errors(found),
        "headings": ("randomizer", *headings[1:]),
        "rows": rows,
        "charts": charts,
        "made": "",
        "refused": "",
    }


def _slid(epsilon: str) -> str:
    """Return the position of the slider: the decimal logarithm of epsilon."""
    try:
        return f"{math.log10(float(epsilon)):.2f}"
    except ValueError:
        return ""


def created(home: Path, form: Form, folder: str, text: str) -> dict[str, Any]:
    """Make the task of a form's plan in a new folder; return the outcome for the page."""
    try:
        if not _FOLDER.fullmatch(folder):
            raise ParameterError(
                f"folder = {folder!r} is no plain name: give letters, digits, dots and dashes; it "
                f"is made in {home}"
            )
        found = plan_of(form)
        promise = promise_of(
            found,
            text.strip(),
            epsilon=given(found.target_epsilon),
            delta=given(found.target_delta),
        )
        made = create_task(home / folder, min_batch=found.num_users, **promise)
    except (ShuffledpError, OSError) as error:
        return {"refused": str(error)}
    return {"made": folder, "task_id": made.task_id.hex()}


def planner_app(home: Path = Path()) -> Starlette:
    """Return the planner as an application, for this machine alone; tasks are made in ``home``."""

    async def page(request: Request, **outcome: Any) -> Response:
        require_own_visitor(request)
        form = _form_of(request)
        results = await anyio.to_thread.run_sync(_results, form)
        fields = dict(form)
        facts = {"fields": fields, "slider": _slid(fields["epsilon"]), "is_trial": False}
        facts |= {"query": request.url.query, **results, **outcome}
        return page_of("planner.html", facts, has_charts=True, has_form=True)

    async def create(request: Request) -> Response:
        require_own_visitor(request)
        if request.headers.get("sec-fetch-site") != "same-origin":
            raise HTTPException(403, "a task is made by the form of this page alone")
        typed = dict(parse_qsl((await http.body_of(request, _MOST_BODY)).decode(errors="replace")))
        how = home.absolute(), _form_of(request), typed.get("folder", ""), typed.get("text", "")
        return await page(request, **await anyio.to_thread.run_sync(created, *how))

    async def file(request: Request) -> Response:
        require_own_visitor(request)
        try:
            found = await anyio.to_thread.run_sync(plan_of, _form_of(request))
        except ShuffledpError as error:
            raise HTTPException(400, str(error)) from None
        with tempfile.TemporaryDirectory() as folder:
            data = found.save(Path(folder) / "plan.json").read_bytes()
        headers = {"content-disposition": 'attachment; filename="plan.json"'}
        return Response(data, media_type="application/json", headers=headers)

    return pages.pages_app({("GET", "/"): page, ("POST", "/"): create, ("GET", "/plan.json"): file})


def serve_planner(on_ready: Callable[[str], None], *, listen: str) -> None:
    """Serve the planner until told to end."""
    pages.require_this_machine(listen, "the planner computes for whoever asks")
    pages.serve(planner_app(), on_ready, listen)
