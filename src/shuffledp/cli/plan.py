"""``shuffledp plan``: which randomizer, which epsilon0, and what error, for a target.

Without a question it finds the one number that is missing: epsilon0, users, rounds, epsilon, delta.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from shuffledp.cli.asked import Asked, question_options
from shuffledp.cli.console import print_facts, print_json, print_list, print_table, print_warnings
from shuffledp.cli.options import (
    PATH,
    dimension_option,
    figure_option,
    json_option,
    max_epsilon0_option,
    randomizer_option,
    require_target,
    whole_number,
)
from shuffledp.core.errors import DomainError
from shuffledp.report.formatting import given, rounded
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.collection.account import Calibration
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question

_LARGEST_K = 10**7


@click.command(
    epilog="Example: shuffledp plan --num-users 100000 --domain yes,no,refused --epsilon 0.5 "
    "--delta 1e-8"
)
@click.option("--num-users", type=whole_number, metavar="N", help="Honest users expected.")
@question_options
@click.option(
    "--k",
    "domain_size",
    type=whole_number,
    metavar="K",
    help="Number of answers, instead of a list.",
)
@click.option("--epsilon", type=float, help="Central epsilon to meet, in nats.")
@click.option("--delta", type=float, help="Failure probability, far below 1/users.")
@max_epsilon0_option
@click.option(
    "--rounds",
    type=whole_number,
    metavar="T",
    help="Collections about the same people that have to meet it together; 1 by default.",
)
@click.option(
    "--epsilon0",
    type=float,
    help="Local privacy loss in nats, if it is fixed: finds whichever of the others is left out.",
)
@dimension_option
@randomizer_option
@figure_option("the error of every randomizer as a chart")
@click.option("--out", type=PATH, metavar="FILE", help="Keep the plan, for --plan of others.")
@json_option
def plan(  # noqa: PLR0913  # one parameter an option
    *,
    num_users: int | None,
    domain_size: int | None,
    epsilon: float | None,
    delta: float | None,
    max_epsilon0: float | None,
    rounds: int | None,
    epsilon0: float | None,
    dimension: int | None,
    randomizer: str | None,
    figure: Path | None,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Choose the randomizer and the largest epsilon0 that meet a central target.

    Shows the other randomizers, the expected standard error, and what the same privacy would cost
    without a shuffler (local model) and with a trusted curator (central model).

    Without a question, or with --epsilon0, it finds the one number that is left out: epsilon0,
    --num-users, --rounds, --epsilon or --delta.
    """
    from shuffledp.collection.account import calibrate
    from shuffledp.collection.plan import plan as make_plan

    require_target(epsilon=epsilon, delta=delta, max_epsilon0=max_epsilon0)
    words = Asked(**asked)
    has_question = words.has_domain or not words.is_about_answers
    if epsilon0 is not None or not (has_question or domain_size is not None):
        if has_question or (figure, out, max_epsilon0) != (None, None, None):
            raise click.UsageError(
                "--epsilon0 is for finding another number: leave out the question, --figure, --out "
                "and --max-epsilon0, or leave out --epsilon0 to have it chosen"
            )
        solution = calibrate(
            epsilon0=epsilon0,
            num_users=num_users,
            rounds=rounds,
            epsilon=epsilon,
            delta=delta,
            randomizer=randomizer,
            domain_size=domain_size,
            dimension=dimension,
        )
        _print_solution(solution, as_json=as_json)
        return
    if num_users is None or epsilon is None or delta is None:
        raise click.UsageError("give --num-users, --epsilon and --delta")
    question = _question(words, domain_size)
    chosen = make_plan(
        question,
        num_users=num_users,
        epsilon=epsilon,
        delta=delta,
        max_epsilon0=max_epsilon0,
        randomizer=randomizer,
        rounds=rounds or 1,
    )
    if figure is not None:
        from shuffledp.report import write_report

        write_report(chosen, figure)
    if out is not None:
        chosen.save(out)
    print_warnings(chosen.warnings)
    if as_json:
        print_json(chosen.to_json_dict())
    else:
        _print_plan(chosen)


def _question(asked: Asked, k: int | None) -> "Question":
    """Return what is asked; ``k`` stands for that many numbered answers."""
    from shuffledp.collection.questions import Categories

    if k is None:
        # None only where nothing is asked, which `plan` has answered otherwise by now.
        return cast("Question", asked.question())
    if not asked.is_about_answers or asked.has_domain:
        raise click.UsageError("give exactly one of --domain, --domain-file and --k")
    if not 2 <= k <= _LARGEST_K:
        raise DomainError(f"k = {k} is not in [2, 10000000]: a question has at least two answers")
    return Categories(domain=tuple(map(str, range(k))))


def _print_solution(solution: "Calibration", *, as_json: bool) -> None:
    """Print the number that was found, then what holds with it."""
    from shuffledp.collection.results import delta_cautions

    guarantee = solution.guarantee
    print_warnings(delta_cautions(guarantee.delta_upper, guarantee.num_users))
    if as_json:
        print_json(solution.to_json_dict())
        return
    found = {
        "epsilon0": ("largest epsilon0", rounded(solution.epsilon0, up=False, digits=6)),
        "num_users": ("fewest users", f"{solution.num_users:,}"),
        "rounds": ("most rounds", f"{solution.rounds:,}"),
    }
    facts = [found[solution.found]] if solution.found in found else []
    if solution.found != "epsilon0":
        facts.append(("epsilon0", given(solution.epsilon0)))
    print_facts([*facts, *guarantee_facts(guarantee)])


def _print_plan(chosen: "Plan") -> None:
    """Print the choice, the other randomizers, and what the two other models would cost."""
    from shuffledp.report.precedents import nearest
    from shuffledp.report.wording import (
        PLAN_HEADINGS,
        curve_table,
        expected_errors,
        plan_rows,
        without_shuffler_line,
    )

    print_facts(
        [
            ("question", chosen.question.describe()),
            ("randomizer", chosen.randomizer.name),
            ("epsilon0", rounded(chosen.randomizer.epsilon0, up=True, digits=6)),
            ("bytes a report", f"{chosen.randomizer.num_report_bytes:,}"),
            *expected_errors(chosen),
            *guarantee_facts(chosen.guarantee),
            (
                "no shuffler",
                without_shuffler_line(chosen.randomizer.profile, rounds=chosen.rounds),
            ),
        ]
    )
    click.echo()
    print_table(PLAN_HEADINGS, plan_rows(chosen))
    headings, rows = curve_table(chosen, chosen.errors_by_epsilon())
    if rows:
        click.echo()
        print_table(headings, rows)
    known = [
        *nearest(chosen.randomizer.epsilon0, is_local=True),
        *nearest(chosen.guarantee.epsilon_upper, is_local=False),
    ]
    click.echo()
    print_list("known deployments", [f"{each.title}: {each.parameters}" for each in known])
