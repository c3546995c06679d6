"""``shuffledp leakage``: probability that an adversary guesses one person's answer right."""

from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli.options import JSON, cli, options


@cli.command(epilog="Example: shuffledp leakage --num-users 200 --k 2 --p 0.9")
@options(
    f"""
    Reports:
    --num-users N  Number of users, the target among them, up to 1e9.  [required]
    domain_size=--k K  Number of possible answers, 2 to 10,000.
    truth=--p FLOAT  Probability that k-ary randomized response reports the truth, from 1/k to 1; 1
        is a shuffler without a randomizer.
    --epsilon0 FLOAT  Local epsilon in nats, instead of --p: p = e^epsilon0 / (e^epsilon0 + k - 1).
    Adversary:
    --adversary [uninformed|strong]  It knows nobody's answer, or everybody's but the
        target's; --prior can state some.  [default: uninformed]
    --prior FILE  JSON file with the probability of each answer, and the numbers of other users
        with each answer, as far as it knows them; for strong by default the numbers from which it
        guesses best.
    Output:
    {JSON}
    """,
)
def leakage(*, truth: float | None, epsilon0: float | None, num_users: int, **guessed: Any) -> None:
    """Bound the probability of guessing one person's answer right.

    Compares the randomizer alone, the shuffler alone, and both together.
    """
    from shuffledp.report.leakage import account_facts, account_rows

    believed = _believed(**guessed)
    if (truth is None) == (epsilon0 is None):
        raise click.UsageError("give exactly one of --p (1 for a shuffler alone) and --epsilon0")
    found = sdp.leakage.account_leakage(
        num_users=num_users, truth=truth, epsilon0=epsilon0, **believed
    )
    if console.print_json(found.to_json_dict()):
        return
    # The main sentence, then the comparison, then the assumptions.
    click.echo(f"{found.sentence}\n")
    console.print_table(("what is seen", "right guesses", "leakage", "times"), account_rows(found))
    click.echo()
    console.print_facts(account_facts(found))
    console.print_list("assumptions", found.both.assumptions)


def _believed(*, adversary: str, domain_size: int | None, prior: Path | None) -> dict[str, Any]:
    """Return the adversary, as an argument of `account_leakage`."""
    if prior is None:
        return {"adversary": adversary, "domain_size": domain_size}
    belief = sdp.leakage.read_prior(prior)
    if belief.known is not None and adversary == "uninformed":
        adversary = "partial"
    k = len(belief.prior)
    if domain_size not in (None, k):
        raise click.UsageError(f"--k {domain_size}, but {prior.name} has {k} probabilities")
    return {"adversary": adversary, "domain_size": k, "prior": belief.prior, "known": belief.known}
