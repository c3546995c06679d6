"""``shuffledp leakage``: how often an adversary guesses one person's answer right."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import print_facts, print_json, print_list, print_table
from shuffledp.cli.options import PATH, json_option, whole_number

if TYPE_CHECKING:
    from shuffledp.leakage.account import LeakageAccount


def known_counts(text: str) -> tuple[int, ...]:
    """Return counts separated by commas."""
    return tuple(whole_number(part.strip()) for part in text.split(","))


@click.command(epilog="Example: shuffledp leakage --num-users 200 --k 2 --p 0.9")
@click.option("--num-users", type=whole_number, metavar="N", required=True, help="Number of users.")
@click.option(
    "--k", "domain_size", type=whole_number, metavar="K", help="Number of possible answers."
)
@click.option(
    "--p", "truth", type=float, help="Chance that k-ary randomized response tells the truth."
)
@click.option("--epsilon0", type=float, help="Local privacy loss in nats, instead of --p.")
@click.option(
    "--adversary",
    type=click.Choice(["uninformed", "strong"]),
    default="uninformed",
    show_default=True,
    help="Who knows nothing of the others, or all their answers; --prior may say more.",
)
@click.option(
    "--known",
    type=known_counts,
    metavar="N,N,...",
    help="How many of the others are known to have each answer; by default the worst case.",
)
@click.option(
    "--prior",
    type=PATH,
    metavar="FILE",
    help="How likely each answer is held to be, and what is known of the others: a JSON file.",
)
@json_option
def leakage(
    *,
    num_users: int,
    domain_size: int | None,
    truth: float | None,
    epsilon0: float | None,
    adversary: str,
    known: tuple[int, ...] | None,
    prior: Path | None,
    as_json: bool,
) -> None:
    """Tell how often a guess at one person's answer is right, before and after a collection.

    Compares users who randomize without a shuffler, a shuffler of true answers, and both together.
    """
    from shuffledp.leakage.account import account_leakage

    believed = _believed(adversary, domain_size, known, prior)
    _require_randomizer(believed["domain_size"], truth, epsilon0)
    found = account_leakage(num_users=num_users, truth=truth, epsilon0=epsilon0, **believed)
    if as_json:
        print_json(found.to_json_dict())
        return
    _print_account(found)


def _believed(
    adversary: str, domain_size: int | None, known: tuple[int, ...] | None, prior: Path | None
) -> dict[str, Any]:
    """Return who guesses, as `account_leakage` takes it."""
    from shuffledp.collection.source.prior_files import read_prior

    if known is not None and adversary == "uninformed":
        raise click.UsageError(
            "--known is for an adversary who knows everything: add --adversary strong; who knows "
            'some answers is described by "known" in a --prior file'
        )
    if prior is None:
        return {"adversary": adversary, "domain_size": domain_size, "known": known}
    if not prior.exists():
        raise click.UsageError(f"--prior {prior}: there is no such file")
    belief = read_prior(prior)
    if belief.known is not None:
        if known is not None:
            raise click.UsageError(f"--known: {prior.name} says already whose answers are known")
        adversary = "partial" if adversary == "uninformed" else adversary
    if domain_size is not None and domain_size != len(belief.prior):
        raise click.UsageError(
            f"--k {domain_size}, but {prior.name} has {len(belief.prior)} probabilities: give one "
            "for each possible answer"
        )
    return {
        "adversary": adversary,
        "domain_size": len(belief.prior),
        "prior": belief.prior,
        "known": known if belief.known is None else belief.known,
    }


def _require_randomizer(
    domain_size: int | None, truth: float | None, epsilon0: float | None
) -> None:
    """Raise unless it is said how answers are randomized."""
    if domain_size is None:
        raise click.UsageError("--k is needed: the number of possible answers")
    if (truth is None) == (epsilon0 is None):
        raise click.UsageError(
            "give exactly one of --p (chance that a report tells the truth; 1 for a shuffler "
            "alone) and --epsilon0"
        )


def _print_account(found: "LeakageAccount") -> None:
    """Print the sentence first, then what is compared, then what it rests on."""
    from shuffledp.report.leakage import account_facts, account_rows

    click.echo(found.sentence)
    click.echo()
    print_table(("what is seen", "right guesses", "leakage", "times"), account_rows(found))
    click.echo()
    print_facts(account_facts(found))
    print_list("assumptions", found.both.assumptions)
