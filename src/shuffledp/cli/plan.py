"""``shuffledp plan``: randomizer, epsilon0 and standard error for a central target.

Without a question it finds the one number that is missing: epsilon0, users, rounds, epsilon, delta.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.asked import QUESTION, Asked
from shuffledp.cli.options import cli, options
from shuffledp.collection.dummies import protect_alone
from shuffledp.core.errors import DomainError
from shuffledp.report import wording
from shuffledp.report.formatting import given, rounded
from shuffledp.report.plan import curve_table, expected_errors, plan_rows, plan_table

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import Calibration
    from shuffledp.collection.questions.question import Question

_SEALED = "{x25519:,} bytes from a device, with --seal hybrid {hybrid:,}"
_LARGEST_K = 10**7


@cli.command(
    epilog="Example: shuffledp plan --num-users 100000 --domain yes,no,refused --epsilon 0.5 "
    "--delta 1e-8"
)
@options(
    f"""
    Question:
    {QUESTION}
    domain_size=--k K  Number of possible answers, instead of a list.
    {shared.DIMENSION}
    Users:
    --num-users N  Number of honest users expected.
    --weights FILE  Table of users who are drawn by public weights; instead of --num-users.
    --weight COLUMN  Column of that table with the weights.
    --most-weight X  Count larger weights as this.
    Privacy:
    --epsilon FLOAT  Central epsilon to meet, in nats.
    --delta FLOAT    Central delta to meet, far below 1/users.
    {shared.MAX_EPSILON0}
    --rounds T  Number of collections about the same people that meet the target together; 1 by
        default.
    {shared.RANDOMIZER}
    --epsilon0 FLOAT  Fixed epsilon0: find the other number that is left out.
    Dummies:
    --dummies [none|shuffler|users|best]  Let the shuffler add dummies, so that the target holds
        whatever other users do; or each honest user; or whichever errs least, none if that errs at
        most 2 % more. none by default.
    --no-local-noise  Let reports be the answers, instead of --max-epsilon0: nothing then protects
        users if the shuffler and the analyst work together.
    --most-dummies N  Largest expected number of dummies, 10,000,000 by default. Sealing one takes
        about 0.1 ms of a processor.
    Errors:
    --frequency SHARE  Also state standard errors for an answer that this share of users gives, with
        sampling.
    --dishonest N  State by how much N lying users can shift an estimate; by default 1 of 100.
    Output:
    --out FILE  File for the plan, for the option --plan of `run`, `estimate` and `task create`.
    {shared.JSON}
    """,
)
def plan(
    *,
    max_epsilon0: float | None,
    out: Path | None,
    **asked: Any,
) -> None:
    """Choose the randomizer and the largest epsilon0 that meet a central target.

    Prints the expected standard error, and compares other randomizers, collection without a
    shuffler (local model) and a trusted curator (central model).

    Without a question it finds the one number left out of --epsilon0, --num-users, --rounds,
    --epsilon and --delta.
    """
    from shuffledp.deploy.creating import sealed_sizes

    words = Asked(asked)
    goal = shared.taken(asked, "epsilon", "delta")
    ways = shared.taken(
        asked, "dummies", "no_local_noise", "most_dummies", "frequency", "dishonest"
    )
    ways = {name: value for name, value in ways.items() if value not in (None, False)}
    weighed = _weights(**shared.taken(asked, "weights", "weight", "most_weight"))
    if asked["epsilon0"] is not None or not (words.is_given or asked["domain_size"] is not None):
        if words.is_given or ways or (out, max_epsilon0, weighed) != (None,) * 3:
            raise click.UsageError(
                "--epsilon0 is for finding another number: leave out the question, --out, "
                "--max-epsilon0, --weights, --frequency, --dishonest and dummies, or leave "
                "out --epsilon0 to have it chosen"
            )
        _print_solution(sdp.calibrate(**goal, **asked))
        return
    if asked["dimension"] is not None:
        raise click.UsageError("--dimension is for --epsilon0 without a question: leave it out")
    goal |= shared.taken(asked, "num_users", "randomizer")
    if weighed is not None:
        if goal["num_users"] is not None:
            raise click.UsageError("--weights says how many are drawn: leave out --num-users")
        goal["num_users"] = weighed.fewest_drawn
    if None in (goal["num_users"], goal["epsilon"], goal["delta"]):
        raise click.UsageError("give --num-users, --epsilon and --delta")
    goal |= {"max_epsilon0": max_epsilon0, "rounds": asked["rounds"] or 1}
    chosen = sdp.plan(_question(words, asked["domain_size"]), **goal, **ways)
    if out is not None:
        chosen.save(out)
    console.print_warnings(chosen.warnings)
    sealed = sealed_sizes(chosen)
    beside: dict[str, Any] = {} if weighed is None else {"weights": weighed.to_json_dict()}
    if not console.print_json(chosen.to_json_dict() | {"sealed_bytes": sealed} | beside):
        _print_plan(chosen, weighed, sealed)


def _weights(
    *, weights: Path | None, weight: str | None, most_weight: float | None
) -> "sdp.Weights | None":
    """Return the weights of a table, or None where there are none."""
    if (weights is None) != (weight is None) or (weight is None and most_weight is not None):
        raise click.UsageError("--weights and --weight go together: give a table and its column")
    if weights is None or weight is None:
        return None
    return sdp.Weights.read(weights, weight, most_weight=most_weight)


def _question(asked: Asked, k: int | None) -> "Question":
    """Return the question; ``k`` stands for numbered answers."""
    if k is None:
        # Never None: `plan` has handled the case without a question.
        return cast("Question", asked.question())
    if not asked.is_about_answers or asked.has_domain:
        raise click.UsageError("give exactly one of --domain, --domain-file and --k")
    if not 2 <= k <= _LARGEST_K:
        raise DomainError(f"k = {k} is not in [2, 10000000]: a question has at least two answers")
    return sdp.Categories(domain=tuple(map(str, range(k))))


def _print_solution(solution: "Calibration") -> None:
    """Print the number that was found, then the guarantee with it."""
    from shuffledp.collection.cautions import delta_cautions

    guarantee = solution.guarantee
    console.print_warnings(delta_cautions(guarantee.delta_upper, guarantee.num_users))
    if console.print_json(solution.to_json_dict()):
        return
    found = {
        "epsilon0": ("largest epsilon0", rounded(solution.epsilon0, up=False, digits=6)),
        "num_users": ("fewest users", f"{solution.num_users:,}"),
        "rounds": ("most rounds", f"{solution.rounds:,}"),
    }
    facts = [found[solution.found]] if solution.found in found else []
    if solution.found != "epsilon0":
        facts.append(("epsilon0", given(solution.epsilon0)))
    console.print_facts([*facts, *wording.guarantee_facts(guarantee)])


def _print_plan(chosen: "sdp.Plan", weighed: "sdp.Weights | None", sealed: dict[str, int]) -> None:
    """Print the choice, the other randomizers, and the errors in the two other models."""
    from shuffledp.report.plan import nearest

    law, guarantee = chosen.randomizer, chosen.guarantee
    line = wording.without_shuffler_line(law.profile, rounds=chosen.rounds)
    console.print_facts(
        [
            ("question", chosen.question.describe()),
            *([] if weighed is None else [("drawn from", str(weighed))]),
            ("randomizer", law.name),
            ("epsilon0", rounded(law.epsilon0, up=True, digits=6)),
            ("bytes a report", f"{law.num_report_bytes:,}"),
            *([("sealed", _SEALED.format(**sealed))] if sealed else []),
            *expected_errors(chosen),
            *wording.guarantee_facts(guarantee, is_for_any=protect_alone(chosen.dummies)),
            *(plan_rows(chosen) or [("no shuffler", line)]),
            ("true answers", wording.true_answers("planned", is_bare=math.isinf(law.epsilon0))),
        ]
    )
    click.echo()
    console.print_table(*plan_table(chosen))
    headings, rows = curve_table(chosen, chosen.errors_by_epsilon())
    if rows:
        click.echo()
        console.print_table(headings, rows)
    known = [
        *nearest(law.epsilon0, is_local=True),
        *nearest(guarantee.epsilon_upper, is_local=False),
    ]
    click.echo()
    console.print_list("known deployments", [f"{each.title}: {each.parameters}" for each in known])
