"""``shuffledp monitor generate``: made-up histories to try monitoring on."""

import datetime as dt
from pathlib import Path

import click

from shuffledp.cli.console import print_facts, print_json, progress_bar
from shuffledp.cli.options import json_option, whole_number

# Written out, since --help must not load what draws them; a test compares them.
SCENARIOS = ("adoption", "travel", "outage", "versions")


def day(text: str) -> dt.date:
    """Return a date written as 2026-01-31.

    Examples
    --------
    >>> day("2026-01-31")
    datetime.date(2026, 1, 31)
    """
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a date; write it like 2026-01-31") from None


@click.command(
    epilog="Example: shuffledp monitor generate histories.parquet --scenario outage "
    "--num-users 100000 --periods 365 --seed 1"
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--scenario",
    type=click.Choice(SCENARIOS),
    default="outage",
    show_default=True,
    help="What happens to the users.",
)
@click.option("--num-users", type=whole_number, required=True, metavar="N", help="Users.")
@click.option("--periods", type=whole_number, required=True, metavar="D", help="Periods.")
@click.option(
    "--max-changes",
    type=whole_number,
    metavar="K",
    help="Most changes of a user, counting the first value; by default as the scenario has it.",
)
@click.option(
    "--overflow",
    type=float,
    default=0.0,
    metavar="SHARE",
    help="Share of the users who change more often than that; by default none.",
)
@click.option(
    "--dense", is_flag=True, help="A row for each user and period instead of one a change."
)
@click.option("--start", type=day, metavar="DATE", help="Write days from this one, not numbers.")
@click.option("--seed", type=whole_number, metavar="N", help="The same seed, the same file.")
@click.option("--overwrite", is_flag=True, help="Replace the file.")
@json_option
def generate(  # noqa: PLR0913  # one parameter an option
    *,
    path: Path,
    scenario: str,
    num_users: int,
    periods: int,
    max_changes: int | None,
    overflow: float,
    dense: bool,
    start: dt.date | None,
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make up histories and write them into PATH, a Parquet file.

    Columns are user, time and value: from that time on the user has that value, until the next row.
    """
    from shuffledp.monitoring.histories.generated_histories import generate_histories

    with progress_bar(hidden=as_json) as on_progress:
        made = generate_histories(
            path,
            num_users=num_users,
            periods=periods,
            scenario=scenario,
            max_changes=max_changes,
            overflow=overflow,
            dense=dense,
            start=start,
            seed=seed,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    if as_json:
        print_json(
            {
                "path": str(made.path),
                "scenario": made.scenario,
                "num_users": made.num_users,
                "periods": made.periods,
                "num_rows": made.num_rows,
                "max_changes": made.max_changes,
                "num_overflowing": made.num_overflowing,
                "domain": list(made.domain),
            }
        )
        return
    beyond = f", but {made.num_overflowing:,} users" if made.num_overflowing else ""
    print_facts(
        [
            ("file", str(made.path)),
            ("scenario", made.scenario),
            ("users", f"{made.num_users:,}"),
            ("periods", f"{made.periods:,}"),
            ("rows", f"{made.num_rows:,}, {'one a period' if dense else 'one a change'}"),
            ("most changes", f"{made.max_changes:,} a user{beyond}"),
            ("values", ",".join(made.domain) or "false and true"),
        ]
    )
