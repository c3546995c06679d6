"""``shuffledp account``: how private collections are that already run, or that are planned."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_paragraph,
    print_warnings,
)
from shuffledp.cli.options import json_option, law_options, require_one_asked, whole_number
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.accounting.composed import Composition

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog="Example: shuffledp account --epsilon0 1 --num-users 10000 --delta 1e-6")
@click.option("--epsilon0", type=float, help="Local privacy loss of each report, in nats.")
@click.option("--num-users", type=whole_number, metavar="N", help="Users in one shuffled batch.")
@law_options
@click.option(
    "--channel",
    type=_FILE,
    help="File with the channel matrix of a randomizer of your own: rows inputs, columns outputs.",
)
@click.option(
    "--rounds",
    type=whole_number,
    metavar="T",
    default=1,
    show_default=True,
    help="Batches about the same people.",
)
@click.option(
    "--schedule",
    type=_FILE,
    help="CSV file with a row for each kind of round, instead of the above.",
)
@click.option(
    "--sampled",
    type=whole_number,
    metavar="M",
    help="Only M of the users, drawn at random and in secret, are shuffled in a round.",
)
@click.option(
    "--participation",
    type=float,
    default=1.0,
    show_default=True,
    help="Chance that each user takes part in a round, by a secret coin.",
)
@click.option(
    "--honest-fraction",
    type=float,
    default=1.0,
    show_default=True,
    help="Share of the users that is honest for certain: only these count.",
)
@click.option(
    "--certify",
    is_flag=True,
    help="Also prove the number by ball arithmetic; needs the extra 'certify'.",
)
@click.option(
    "--method", default="best", show_default=True, help="A method that `shuffledp bounds` lists."
)
@json_option
def account(
    *,
    epsilon: float | None,
    delta: float | None,
    method: str,
    certify: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Bound the privacy of shuffled collections.

    Without --randomizer the answer holds for every randomizer with that epsilon0; naming it gives
    a smaller one. The upper bound is proved.
    """
    from shuffledp.collection.account import asked_releases, guarantee_of
    from shuffledp.collection.results import delta_cautions

    require_one_asked(epsilon=epsilon, delta=delta)
    releases = asked_releases(**asked)
    guarantee = guarantee_of(releases, epsilon=epsilon, delta=delta, method=method)
    record = guarantee.to_json_dict()
    certificate = _certificate(releases, guarantee.bound, epsilon, delta) if certify else None
    if certificate is not None:
        record["certificate"] = certificate
    if delta is not None:
        print_warnings(delta_cautions(delta, guarantee.num_users))
    print_warnings(_channel_cautions(asked["channel"]))
    if as_json:
        print_json(record)
        return
    print_facts(guarantee_facts(guarantee))
    print_list("assumptions", guarantee.bound.assumptions)
    if certificate is not None:
        print_paragraph("certificate", certificate)


def _channel_cautions(channel: Path | None) -> list[str]:
    """Return what has to be said about a matrix in rounded decimals."""
    from shuffledp.collection.source.channel_files import open_channel

    caution = None if channel is None else open_channel(channel).caution
    return [] if caution is None else [caution]


def _certificate(
    releases: "Composition", bound: Any, epsilon: float | None, delta: float | None
) -> str:
    """Return what ball arithmetic proves of a bound on a single batch."""
    from shuffledp.accounting.certification.certificate import certify_delta, certify_epsilon
    from shuffledp.collection.account import single_batch

    profile, num_users = single_batch(releases, "certify")
    if delta is not None:
        return certify_epsilon(profile, num_users=num_users, bound=bound, delta=delta).statement
    return certify_delta(
        profile, num_users=num_users, bound=bound, epsilon=epsilon or 0.0
    ).statement
