"""Plans in files, as JSON: only what was decided; the guarantee is computed again on reading."""

import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.choices import Target, planned_guarantee
from shuffledp.collection.output import json_text, whole_file
from shuffledp.collection.questions import question_from_json
from shuffledp.collection.questions.question import chosen_candidates
from shuffledp.core.checks import require_at_least, require_delta, require_non_negative
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError

PLAN_SCHEMA, SCHEMA_WITH_DUMMIES = 1, 2
"""Schema of a saved plan; changes with the meaning of a key, and for dummies (older readers)."""

_SAVED = ("num_users", "target_epsilon", "target_delta", "rounds", "binding", "asked_epsilon0")
_BINDINGS = ("epsilon", "max_epsilon0", "epsilon0", "no_local_noise")


def write_plan(plan: Any, path: str | PathLike[str]) -> Path:
    """Write a plan in one step; return the path."""
    written = {
        "schema": SCHEMA_WITH_DUMMIES if plan.dummies else PLAN_SCHEMA,
        "shuffledp_version": __version__,
        "question": plan.question.to_json_dict(),
        "domain": list(plan.domain),
        "randomizer": plan.randomizer.name,
        "fingerprint": plan.randomizer.fingerprint,
        **{name: getattr(plan, name) for name in _SAVED},
        **({"dummies": [str(law) for law in plan.dummies]} if plan.dummies else {}),
    }
    with whole_file(path) as partial:
        partial.write_text(json_text(written, indent=2) + "\n", encoding="utf-8")
    return Path(path)


def read_plan(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the fields of a saved plan; raise unless its guarantee meets its target."""
    location = Path(path)
    try:
        written = json.loads(location.read_text(encoding="utf-8"))
        schema = written["schema"]
        question: Any = question_from_json(written["question"], written["domain"])
        dummies = tuple(map(DummyLaw.from_text, written.get("dummies", ())))
        makers = chosen_candidates(question, written["randomizer"], with_dummies=bool(dummies))
        saved = _checked({name: written[name] for name in _SAVED})
        law = makers[written["randomizer"]](saved["asked_epsilon0"])
        fingerprint = written["fingerprint"]
    except OSError as error:
        raise DataError(f"cannot read {location}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{location.name} is no plan of Plan.save, or is damaged ({type(error).__name__}, "
            f"{error}): plan again"
        ) from None
    if schema != (known := SCHEMA_WITH_DUMMIES if dummies else PLAN_SCHEMA):
        raise DataError(f"{location.name} has schema {schema!r}, not {known}: plan again")
    if law.fingerprint != fingerprint:
        raise DataError(
            f"{location.name} names the law {fingerprint!r}, and this version draws from "
            f"{law.fingerprint!r}: plan again"
        )
    target = Target(*(saved[name] for name in _SAVED[:4]))
    proved = planned_guarantee(law, target, dummies)
    # Without dummies the target may be the guarantee itself, as computed on another machine.
    limit = target.epsilon if dummies else target.epsilon * (1.0 + 1e-9)
    if (found := proved.epsilon_upper) > limit:
        raise DataError(
            f"{location.name} has the target epsilon <= {target.epsilon:.6g}, and its "
            f"randomizer only guarantees epsilon <= {found:.6g}: plan again"
        )
    made = {"question": question, "randomizer": law, "dummies": dummies, "_makers": makers}
    return made | {"guarantee": proved} | saved


def _checked(saved: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a saved plan, or raise if no plan has them."""
    if saved["asked_epsilon0"] is None:  # JSON has no infinity
        saved["asked_epsilon0"] = math.inf
    for name in ("num_users", "rounds"):
        require_at_least(name, saved[name], 1)
    require_non_negative("target_epsilon", saved["target_epsilon"])
    require_delta(saved["target_delta"])
    if saved["binding"] not in _BINDINGS:
        raise ParameterError(f"binding = {saved['binding']!r} is not one of {_BINDINGS}")
    return saved
