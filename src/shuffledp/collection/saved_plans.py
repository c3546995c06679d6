"""Plans as JSON: all from which a plan of a uniform shuffle follows."""

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.output import json_text, whole_file
from shuffledp.collection.question import Question, chosen_candidates
from shuffledp.collection.questions import question_from_json
from shuffledp.core.errors import DataError
from shuffledp.randomizers.base import LocalRandomizer

PLAN_SCHEMA = 1
"""Changes where what a file holds does."""

_NUMBERS = ("num_users", "target_epsilon", "target_delta", "rounds", "binding", "asked_epsilon0")


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """What a file holds: ``numbers`` are fields of a plan by name."""

    question: Question[Any]
    randomizer: LocalRandomizer
    numbers: dict[str, Any]


def write_plan(
    path: str | PathLike[str], question: Question, randomizer: LocalRandomizer, **numbers: object
) -> Path:
    """Write a plan; an existing file is replaced in one step."""
    written = {
        "schema": PLAN_SCHEMA,
        "shuffledp_version": __version__,
        "question": question.to_json_dict(),
        "domain": list(question.labels),
        "randomizer": randomizer.name,
        "fingerprint": randomizer.fingerprint,
        **numbers,
    }
    with whole_file(path) as partial:
        partial.write_text(json_text(written, indent=2) + "\n", encoding="utf-8")
    return Path(path)


def read_plan(path: str | PathLike[str]) -> SavedPlan:
    """Read a plan; `DataError` for any other file, and for a law that is another one by now."""
    location = Path(path)
    try:
        written = json.loads(location.read_text(encoding="utf-8"))
        schema = written["schema"]
        question = question_from_json(written["question"], written["domain"])
        name = written["randomizer"]
        law = chosen_candidates(question, name)[name](written["asked_epsilon0"])
        numbers = {each: written[each] for each in _NUMBERS}
        fingerprint = written["fingerprint"]
    except OSError as error:
        raise DataError(f"cannot read {location}: {error.strerror or error}") from None
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{location.name} is no plan as Plan.save writes it: {type(error).__name__}, {error}"
        ) from None
    if schema != PLAN_SCHEMA:
        raise DataError(
            f"{location.name} has schema {schema!r} and this version of shuffledp reads "
            f"{PLAN_SCHEMA}: plan again"
        )
    if law.fingerprint != fingerprint:
        raise DataError(
            f"{location.name} names the law {fingerprint!r} and this version of shuffledp draws "
            f"from {law.fingerprint!r}: use the version that planned, or plan again"
        )
    return SavedPlan(question, law, numbers)
