"""What ``shuffledp task create`` promises: from its options, or from a saved plan."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.cli.asked import Asked
from shuffledp.report.formatting import given

if TYPE_CHECKING:
    from shuffledp.deploy.asked_terms import AskedTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A question with its randomizer, and what each batch is to keep, as exact decimals."""

    asked: "AskedTerms"
    epsilon: str
    delta: str
    #: What to change where that is not proved, for the end of an error.
    remedy: str = ""


def terms_of(
    asked: Asked,
    text: str,
    *,
    randomizer: str | None,
    epsilon0: float | None,
    epsilon: str | None,
    delta: str | None,
) -> Terms:
    """Return the terms that options name."""
    from shuffledp.deploy.asked_terms import AskedTerms

    if epsilon0 is None or epsilon is None or delta is None:
        raise click.UsageError("give --epsilon0, --epsilon and --delta, or --plan")
    question = asked.question()
    if question is None:
        raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
    name = randomizer or next(iter(question.candidates()))
    return Terms(asked=AskedTerms.of(question, name, epsilon0, text), epsilon=epsilon, delta=delta)


def planned_terms(
    file: Path,
    asked: Asked,
    text: str,
    *,
    honest_fraction: float,
    epsilon: str | None,
    **others: object,
) -> Terms:
    """Return the terms of a saved plan, all of whose users are honest; epsilon may be another.

    A file of a plan is of a uniform shuffle, the only one that a sorted batch is: others are not
    saved.
    """
    from shuffledp.collection.plan import Plan
    from shuffledp.deploy.asked_terms import AskedTerms

    beside = [f"--{name}" for name, each in others.items() if each is not None]
    if beside or asked.is_given:
        what = beside[0] if beside else "the question"
        raise click.UsageError(f"--plan says what is asked, and how: leave {what} out")
    found = Plan.load(file)
    if found.rounds != 1:
        raise click.UsageError(
            f"{file} plans {found.rounds:,} rounds about the same people, and a device answers a "
            "task once: plan one round"
        )
    least = math.ceil(found.num_users / honest_fraction)
    return Terms(
        asked=AskedTerms.of(found.question, found.randomizer.name, found.asked_epsilon0, text),
        epsilon=epsilon or given(found.target_epsilon),
        delta=given(found.target_delta),
        remedy=f"; the plan is for {found.num_users:,} honest users: give --min-batch {least}, "
        "plan for fewer users, or promise more with --epsilon",
    )
