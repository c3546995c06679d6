"""``shuffledp account``: how private a collection is that already runs."""

import click

from shuffledp.interface.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_list,
    print_warnings,
)
from shuffledp.interface.cli.options import (
    RANDOMIZER_NAMES,
    json_option,
    require_target,
    whole_number,
)


def _list_methods(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    """Print all methods and leave."""
    if not wanted or ctx.resilient_parsing:
        return
    from shuffledp.privacy.amplification.registry import METHODS

    print_facts((method.name, method.source) for method in METHODS.values())
    ctx.exit()


@click.command(epilog="Example: shuffledp account --epsilon0 1 --num-users 10000 --delta 1e-6")
@click.option(
    "--epsilon0", type=float, required=True, help="Local privacy loss of each report, in nats."
)
@click.option(
    "--num-users",
    type=whole_number,
    metavar="N",
    required=True,
    help="Honest users in one shuffled batch.",
)
@click.option("--delta", type=float, help="Failure probability: asks for the central epsilon.")
@click.option("--epsilon", type=float, help="Central epsilon in nats: asks for delta.")
@click.option(
    "--randomizer",
    metavar="NAME",
    help=f"One of {', '.join(RANDOMIZER_NAMES['categories'])}; by default any.",
)
@click.option(
    "--k", type=whole_number, metavar="K", help="Number of possible answers, for --randomizer."
)
@click.option("--method", default="best", show_default=True, help="A name of --list-methods.")
@click.option(
    "--list-methods",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_methods,
    help="List all methods with their sources.",
)
@json_option
def account(
    *,
    epsilon0: float,
    num_users: int,
    delta: float | None,
    epsilon: float | None,
    randomizer: str | None,
    k: int | None,
    method: str,
    as_json: bool,
) -> None:
    """Bound the privacy of a shuffled collection.

    Without --randomizer the answer holds for every randomizer with that epsilon0; naming it gives
    a smaller one. The upper bound is safe to publish.
    """
    from shuffledp.collection.cautions import delta_cautions
    from shuffledp.collection.guarantees import account as bound_privacy

    require_target(epsilon=epsilon, delta=delta)
    if (epsilon is None) == (delta is None):
        raise click.UsageError("give exactly one of --delta (asks for epsilon) and --epsilon")
    guarantee = bound_privacy(
        epsilon0=epsilon0,
        num_users=num_users,
        epsilon=epsilon,
        delta=delta,
        randomizer=randomizer,
        k=k,
        method=method,
    )
    if delta is not None:
        print_warnings(delta_cautions(delta, num_users))
    if as_json:
        print_json(guarantee.to_json_dict())
    else:
        print_facts(guarantee_facts(guarantee))
        print_list("assumptions", guarantee.bound.assumptions)
