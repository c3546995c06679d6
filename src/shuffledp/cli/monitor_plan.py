"""``shuffledp monitor plan``: how exact and how private a year of monitoring will be."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_table,
    print_warnings,
    relative,
)
from shuffledp.cli.monitor_options import (
    PROTOCOLS,
    categories_option,
    confidence_option,
    delta_option,
    max_changes_option,
)
from shuffledp.cli.options import json_option, require_target, whole_number

if TYPE_CHECKING:
    from shuffledp.monitoring.plan import MonitorPlan

_DIGITS = 6


@click.command(
    epilog="Example: shuffledp monitor plan --periods 365 --max-changes 4 --num-users 1000000 "
    "--epsilon0 1 --delta 1e-8"
)
@click.option("--periods", type=whole_number, required=True, metavar="D", help="How many periods.")
@max_changes_option
@click.option(
    "--num-users",
    type=whole_number,
    required=True,
    metavar="N",
    help="Honest users who take part from the first period to the last.",
)
@click.option(
    "--epsilon0", type=float, help="Local privacy loss of all that a user ever sends, in nats."
)
@click.option(
    "--epsilon", type=float, help="Central target instead, for all that is ever published."
)
@delta_option
@categories_option
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    help="How clients randomize; by default with the smallest error.",
)
@confidence_option
@click.option(
    "--levels-seen",
    is_flag=True,
    help="Somebody may know at which level a user reports, as of late joiners.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help="Draw the error of each period into an image (PNG or SVG).",
)
@json_option
def plan(  # noqa: PLR0913  # one parameter an option
    *,
    periods: int,
    max_changes: int,
    num_users: int,
    epsilon0: float | None,
    epsilon: float | None,
    delta: float,
    categories: tuple[str, ...] | None,
    protocol: str | None,
    confidence: float,
    levels_seen: bool,
    figure: Path | None,
    as_json: bool,
) -> None:
    """Say how exact running counts will be, how private, and whether to monitor at all.

    The guarantees are of a user's whole history, over all periods. Give --epsilon0 (local) or
    --epsilon (central; the largest epsilon0 that meets it is found).

    The plan is compared with one-shot collections. Either everybody answers in every period; or
    "few answers each": every user draws a few periods, tells nobody which, and answers only then.
    """
    from shuffledp.monitoring.plan import plan_monitoring
    from shuffledp.report.drawing import require_matplotlib
    from shuffledp.report.monitor_drawing import require_image_name

    require_target(epsilon=epsilon, delta=delta)
    if (epsilon0 is None) == (epsilon is None):
        raise click.UsageError(
            "give exactly one of --epsilon0 (local, fixed) and --epsilon (central, to be met)"
        )
    if figure is not None:  # before the work, not after it
        require_image_name(figure)
        require_matplotlib(", or leave out --figure")
    planned = plan_monitoring(
        periods=periods,
        max_changes=max_changes,
        num_users=num_users,
        epsilon0=epsilon0,
        epsilon=epsilon,
        delta=delta,
        domain=categories,
        protocol=protocol,
        confidence=confidence,
        level_hidden=not levels_seen,
    )
    if figure is not None:
        _draw(planned, figure)
    print_warnings(planned.cautions)
    if as_json:
        record = planned.to_dict()
        print_json(record if figure is None else record | {"figure": str(figure)})
        return
    _print_plan(planned)
    if figure is not None:
        print_facts([("figure", str(figure))])


def _draw(planned: "MonitorPlan", figure: Path) -> None:
    """Draw the standard error of each period, and those of what it is compared with."""
    from shuffledp.collection.output import writing
    from shuffledp.report.monitor_drawing import draw_expected_errors
    from shuffledp.report.monitor_plan_view import error_lines

    title = (
        f"{planned.num_users:,} users, {planned.design.periods:,} periods, at most "
        f"{planned.design.max_changes:,} changes"
    )
    with writing(figure):
        draw_expected_errors(
            error_lines(planned), figure, title=title, y_label="standard error, share of users"
        )


def _print_plan(planned: "MonitorPlan") -> None:
    """Print the errors and guarantees, what else could be done, what to do, and on what terms."""
    from shuffledp.report.monitor_plan_view import (
        HEADINGS,
        comparison_rows,
        design_facts,
        error_facts,
    )

    print_facts([*error_facts(planned), *_guarantee_facts(planned), *design_facts(planned)])
    click.echo()
    print_table(HEADINGS, comparison_rows(planned))
    click.echo()
    verdict, *reasons = planned.advice
    print_facts([("advice", verdict)])
    if reasons:
        print_list("why", reasons)
    click.echo()
    print_facts([("method", planned.central.method), ("source", planned.central.source)])
    print_list("assumptions", planned.central.assumptions)


def _guarantee_facts(planned: "MonitorPlan") -> list[tuple[str, str]]:
    """Return the central guarantee and the local one."""
    from shuffledp.report.formatting import given, rounded

    def safe(value: float) -> str:
        return rounded(value, up=True, digits=_DIGITS)

    central, local = planned.central, planned.local
    gap = "not known"
    if central.lower is not None and central.gap is not None:
        lower = rounded(central.lower, up=False, digits=_DIGITS)
        gap = f"{relative(central.gap)}: no analysis can show epsilon below {lower}"
    return [
        ("epsilon", f"{safe(central.upper)} (of all that is ever published, safe to publish)"),
        ("gap", gap),
        ("delta", given(planned.delta)),
        ("epsilon0", f"{safe(local.upper)} (of all that a user ever sends, without a shuffler)"),
    ]
