"""Words about dummies: the lines of guarantee of a collection with dummies.

There are three: dummies are added and the shuffler colludes with nobody; it shuffles and none are
added; it colludes with the analyst. Each is a theorem of its own.
"""

import math
from collections.abc import Mapping
from typing import Any

from shuffledp.collection.dummies import protect_alone
from shuffledp.core.bound import Guarantee
from shuffledp.core.dummies import DummyLaw
from shuffledp.report import wording
from shuffledp.report.formatting import brief, counted


def guarantee_rows(subject: Any) -> list[tuple[str, str]]:
    """Return the three guarantees of a plan or a result; empty without dummies."""
    if not subject.dummies:
        return []
    with_dummies = wording.guarantee_text(subject.guarantee)
    profile, rounds = subject.randomizer.profile, subject.rounds
    return [
        ("with dummies", f"{with_dummies}, if {_condition(subject)}; {relied_on(subject)}"),
        ("without dummies", without_dummies(subject.without_dummies)),
        ("no shuffler", wording.without_shuffler_line(profile, rounds=rounds)),
    ]


def without_dummies(found: Guarantee | None) -> str:
    """Return the guarantee of reports that are shuffled without dummies, as a clause."""
    if found is None or math.isinf(found.epsilon_upper):
        return "no finite epsilon, if the reports are shuffled and no dummies added"
    each = " in each round" if found.rounds > 1 else ""
    return (
        f"{wording.guarantee_text(found)}, if the reports are shuffled, no dummies added, and "
        f"{counted(found.num_users, 'user')} honest{each}"
    )


def added_by(laws: tuple[DummyLaw, ...]) -> str:
    """Return the sender and the law of dummies, as a clause."""
    named = f"by the law{'s' * (len(laws) > 1)} {', '.join(map(str, laws))}"
    who = "the shuffler" if protect_alone(laws) else "each user"
    return f"{who} adds some of every possible report, {named}"


def values_of_forms(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return values about a record's dummies for the forms of `explain`."""
    laws = tuple(DummyLaw.from_text(text) for text in record.get("dummies") or ())
    if not laws:
        return {"added_by": "", "is_for_any": False, "messages": 1}
    found, users = record.get("without_dummies"), f"{int(record['num_users']):,}"
    without = "no finite epsilon is proved"
    if found and (epsilon := upper_in_json(found["epsilon"])) is not None:
        delta = brief(upper_in_json(found["delta"]) or 0.0)
        without = f"epsilon <= {brief(epsilon)} at delta <= {delta} if {users} users are honest"
    return {
        "added_by": added_by(laws),
        "is_for_any": protect_alone(laws),
        "without_dummies": without,
        "messages": len(laws),  # of each user, one for each law
    }


def upper_in_json(value: Any) -> float | None:
    """Return the upper end of a bound in JSON, or a given number; None without a bound."""
    upper = value["upper"] if isinstance(value, Mapping) else value
    return None if upper is None else float(upper)


def _condition(subject: Any) -> str:
    """Return the assumption of the guarantee with dummies about the shuffle, as a clause."""
    if subject.shuffling.leakage() is None:
        return "the shuffler colludes with nobody"
    return "nobody sees reports on their way"


def relied_on(subject: Any) -> str:
    """Return the users on whom the guarantee with dummies relies."""
    if protect_alone(subject.dummies):
        return "any number of users, whatever the others send"
    return f"{subject.guarantee.num_users:,} honest users, who send dummies"
