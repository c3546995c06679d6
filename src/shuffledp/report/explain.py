"""Notice, label, and entry for the public registry about a finished collection.

All three are made from ``privacy.json``, so that they agree with that file and can be made at any
later time; or in advance, from a saved plan. Upper bounds are rounded up.

Sources: the registry's entries have the form of Nanayakkara, Ghazi, Vadhan, "Practitioners'
Perspectives on a Differential Privacy Deployment Registry", arXiv:2509.13509v2, as in its public
records; the label has the rows of Dibia, Lu, Bhattacharjee, Near, Feng, "'We Need a
Standard': Toward an Expert-Informed Privacy Label for Differential Privacy", arXiv:2507.15997v1.
"""

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from shuffledp.collection.plan import Plan
from shuffledp.collection.result import COLLECTED_BY
from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.report.dummies import upper_in_json, values_of_forms
from shuffledp.report.formatting import shown_label
from shuffledp.report.page import render
from shuffledp.report.wording import BARE, TOGETHER, WORDS, shuffle_words, title_of, true_answers

TO_FILL_IN = "TO BE FILLED IN"
_MOST_ANSWERS = 12  # listed in a notice
_UNUSABLE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UndefinedError


def read_record(
    path: Path, *, collected_by: str | None = None, about: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the content of ``privacy.json``, given the file or its folder, or of a plan.

    A plan does not state where true answers will be randomized: ``collected_by`` does. ``about``
    overrides the file.

    Raises
    ------
    DataError
        If the file is neither, or is about a simulation, which protects nobody; if ``collected_by``
        is missing, or contradicts the file.
    """
    file = path / "privacy.json" if path.is_dir() else path
    try:
        record = json.loads(file.read_bytes())
        if "asked_epsilon0" in record:
            plan = Plan.load(file)
            record |= {**plan.to_json_dict(), "shuffler": plan.shuffling.name, "is_planned": True}
        missing = {"num_users", "epsilon0", "guarantee", "shuffler", "domain"} - set(record)
    except (OSError, ValueError, TypeError, RecursionError):
        raise DataError(
            f"cannot read {file}: give the folder of `shuffledp run --out`, its privacy.json, or "
            "a file of `shuffledp plan --out`"
        ) from None
    if missing:
        raise DataError(
            f"{file} lacks {', '.join(sorted(missing))}: give a privacy.json of `shuffledp run`"
        )
    if record.get("is_simulation") or record.get("collected_by") == "simulation":
        raise DataError(
            f"{file} tells of a simulation with a seed, which protects nobody, so there is nothing "
            "to promise: run the collection without a seed"
        )
    by = record.get("collected_by") or collected_by
    if by not in COLLECTED_BY or collected_by not in (None, by):
        raise DataError(
            f"{file} says {record.get('collected_by') or 'nothing'} of who collects: give "
            "collected_by, devices where users' own devices randomize, table where somebody holds "
            "all true answers"
        )
    stated = record.get("about")
    said = {**(stated if isinstance(stated, dict) else {}), **(about or {})}
    return {**record, "collected_by": by, "about": said}


def _form(template: str, record: Mapping[str, Any]) -> str:
    """Return a form filled from a record, with unknown values marked."""
    guarantee, name = record["guarantee"], str(record.get("randomizer", TO_FILL_IN))
    is_bare = record["epsilon0"] in {None, math.inf}
    shuffle = shuffle_words(str(record["shuffler"])).notice
    # Local loss of one report, and of all reports of a user if the question has rounds.
    numbers = _numbers(record, is_bare=is_bare)
    loss, sent = numbers["epsilon0"], numbers["rounds"] if "discovery" in record else 1
    about = {each: str(text) for each, text in record["about"].items() if text}
    text = render(
        template,
        unknown=TO_FILL_IN,
        about=about,
        asked=_asked(record, about),
        guarantee=guarantee,
        **numbers,
        loss_of_all=loss and sent * loss,
        together=TOGETHER,
        **values_of_forms(record),
        mechanism=BARE if is_bare else title_of(name),
        shuffler=str(record["shuffler"]),
        shuffle=shuffle.replace("randomized answers", "answers") if is_bare else shuffle,
        is_trusted=record["collected_by"] == "table",
        held=true_answers(record["collected_by"], is_bare=is_bare),
        is_planned="is_planned" in record,
        post_processing=record.get("post_processing", []),
        software=f"shuffledp {record.get('shuffledp_version', '')}".rstrip(),
    )
    text.encode()  # raises for surrogates, which no file can hold
    return text.rstrip("\n") + "\n"


def _numbers(record: Mapping[str, Any], *, is_bare: bool) -> dict[str, Any]:
    """Return the numbers of a record's guarantee; raise for any that no guarantee has."""
    guarantee = record["guarantee"]
    least = guarantee["epsilon"]["lower"] if isinstance(guarantee["epsilon"], dict) else None
    found = {
        "epsilon": upper_in_json(guarantee["epsilon"]),
        "delta": upper_in_json(guarantee["delta"]),
        "epsilon0": None if is_bare else float(record["epsilon0"]),
        "rounds": int(guarantee.get("rounds", 1)),
        "num_users": int(record["num_users"]),
    }
    for name, value in found.items():
        low, high = int(name in {"rounds", "num_users"}), 1.0 if name == "delta" else math.inf
        if value is not None and not low <= value <= high:
            raise ValueError(f"{name} = {value} is not in [{low}, {high:g}]")
    if least is not None and found["epsilon"] is not None and not least <= found["epsilon"]:
        raise ValueError(f"epsilon = {found['epsilon']} is below its lower end {least}")
    return found


def _filled(template: str, record: Mapping[str, Any]) -> str:
    """Return a form filled from a record; raise for one that was changed beyond use."""
    try:
        return _form(template, record)
    except ShuffledpError:
        raise
    except _UNUSABLE as error:
        raise DataError(
            f"privacy.json is not as `shuffledp run` wrote it ({type(error).__name__}: {error}): "
            "restore it, or run again"
        ) from None


FORMS = {
    "notice": partial(_filled, "notice.md"),
    "label": partial(_filled, "label.md"),
    "registry": partial(_filled, "registry.yaml"),
}


def _asked(record: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """Return the question, or else the column of the answers, and its possible answers."""
    column = f" (column {shown_label(about['column'])} of the data)" if "column" in about else ""
    question = about.get("question", f"{TO_FILL_IN}: the question as it is put{column}.")
    words = WORDS.get(record.get("question", {}).get("kind"))
    if words is None or not words.choices:
        return question
    answers = [shown_label(str(answer)) for answer in record["domain"]]
    more = len(answers) - _MOST_ANSWERS
    listed = ", ".join(answers[:_MOST_ANSWERS]) + (f" and {more:,} more" if more > 0 else "")
    return f"{question} {words.choices}: {listed}."
