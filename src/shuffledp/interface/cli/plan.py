"""``shuffledp plan``: which randomizer, which epsilon0, and what error, for a target."""

from typing import TYPE_CHECKING

import click

from shuffledp.core.errors import DomainError
from shuffledp.interface.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_table,
    print_warnings,
)
from shuffledp.interface.cli.options import (
    chosen_domain,
    domain_options,
    json_option,
    randomizer_option,
    require_target,
    whole_number,
)
from shuffledp.interface.reports.formatting import decimals_for, given, percent, rounded

if TYPE_CHECKING:
    from pathlib import Path

    from shuffledp.collection.plan import Plan


@click.command(
    epilog="Example: shuffledp plan --num-users 100000 --domain yes,no,refused --epsilon 0.5 "
    "--delta 1e-8"
)
@click.option(
    "--num-users", type=whole_number, metavar="N", required=True, help="Honest users expected."
)
@domain_options
@click.option("--k", type=whole_number, metavar="K", help="Number of answers, instead of a list.")
@click.option("--epsilon", type=float, required=True, help="Central epsilon to meet, in nats.")
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@randomizer_option
@json_option
def plan(
    *,
    num_users: int,
    domain: tuple[str, ...] | None,
    domain_file: "Path | None",
    k: int | None,
    epsilon: float,
    delta: float,
    randomizer: str | None,
    as_json: bool,
) -> None:
    """Choose the randomizer and the largest epsilon0 that meet a central target.

    Shows the runner-up, the expected standard error, and what the same privacy would cost
    without a shuffler (local model) and with a trusted curator (central model).
    """
    from shuffledp.collection.cautions import delta_cautions
    from shuffledp.collection.plan import make_plan

    require_target(epsilon=epsilon, delta=delta)
    answers = _answers(chosen_domain(domain, domain_file), k)
    chosen = make_plan(num_users, answers, epsilon, delta, randomizer=randomizer)
    print_warnings(delta_cautions(delta, num_users))
    if as_json:
        print_json(chosen.to_json_dict())
    else:
        _print_plan(chosen)


def _answers(domain: tuple[str, ...] | None, k: int | None) -> tuple[str, ...]:
    """Return the domain, or ``k`` numbered answers."""
    if (domain is None) == (k is None):
        raise click.UsageError("give exactly one of --domain, --domain-file and --k")
    if domain is not None:
        return domain
    if k is None or not 2 <= k <= 10**7:
        raise DomainError(f"k = {k} is not in [2, 10000000]: a question has at least two answers")
    return tuple(map(str, range(k)))


def _print_plan(chosen: "Plan") -> None:
    """Print the choice, the other randomizers, and what the two other models would cost."""
    error = chosen.expected_standard_error
    decimals = decimals_for([100.0 * error])
    print_facts(
        [
            ("randomizer", f"{chosen.randomizer.name} with {chosen.randomizer.k} answers"),
            ("epsilon0", rounded(chosen.randomizer.epsilon0, up=True, digits=6)),
            ("standard error", f"{percent(error, decimals)} of the users, expected for an answer"),
            *guarantee_facts(chosen.guarantee),
        ]
    )
    click.echo()
    print_table(
        ("compared with", "standard error", "epsilon for the same error"),
        [
            ("this plan", percent(error, decimals), given(chosen.target_epsilon)),
            *(
                (
                    name,
                    percent(model.standard_error_at_same_epsilon, decimals),
                    rounded(cost, up=True, digits=3),
                )
                for name, model in (
                    ("without a shuffler", chosen.local_model),
                    ("with a trusted curator", chosen.central_model),
                )
                for cost in (model.epsilon_for_same_error,)
            ),
        ],
    )
    if not chosen.alternatives:
        return
    click.echo()
    print_table(
        ("runner-up", "epsilon0", "standard error"),
        [
            (
                other.randomizer.name,
                rounded(other.randomizer.epsilon0, up=True),
                percent(other.expected_standard_error, decimals),
            )
            for other in chosen.alternatives
        ],
    )
