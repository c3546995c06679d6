"""``shuffledp monitor``: a changing statistic, tracked for months on one privacy budget.

``plan`` states errors and privacy in advance; ``simulate`` runs every client and the server.
"""

from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp import report
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.options import cli, options, taken
from shuffledp.collection.output import REPORT_FILE

_READING = ("user", "time", "value", "categories", "periods", "start", "every")

# Written out, since --help must not load the laws of the signs; a test compares them.
PROTOCOLS = ("predrawn-signs", "sampled-change")

_MAX_CHANGES = """
    --max-changes K
        Largest number of changes of a user's value, counting the first value.  [required]
    """
_DELTA = "--delta FLOAT  Central delta, far below 1/users.  [required]"
_CATEGORIES = "--categories A,B,...  Possible values; by default 0 and 1, or false and true."
_CONFIDENCE = """
    --confidence FLOAT  Confidence of the bands of all periods at once.  [default: 0.95]
    """


@cli.group()
def monitor() -> None:
    """Track how many users have a value, period by period, as values change.

    plan states accuracy and privacy before the collection; simulate runs clients and server on a
    table of histories.
    """


@monitor.command(
    epilog="Example: shuffledp monitor plan --periods 365 --max-changes 4 --num-users 1000000 "
    "--epsilon0 1 --delta 1e-8"
)
@options(
    f"""
    Collection:
    --periods D  Number of periods, at most 1,048,576, fixed when the collection begins.  [required]
    {_MAX_CHANGES}
    --num-users N  Number of honest users, from the first period to the last.  [required]
    {_CATEGORIES}
    Privacy:
    --epsilon0 FLOAT  Local epsilon of everything that a user ever sends, in nats.
    --epsilon FLOAT  Central epsilon to meet, of everything ever published; instead of --epsilon0.
    {_DELTA}
    --protocol [{"|".join(PROTOCOLS)}]
        Randomizer of the clients; by default the first, up to 62 changes.
    Dummies:
    --dummies [none|shuffler]  Also compare with asking in every period while the shuffler adds
        dummies.  [default: none]
    --max-epsilon0 FLOAT  With --dummies: local epsilon of each distinct value that a user ever has,
        in nats.
    --no-local-noise  With --dummies, instead of --max-epsilon0: reports are the values, and only
        the shuffler and its dummies protect them.
    Output:
    {_CONFIDENCE}
    {shared.JSON}
    """,
)
def plan(*, categories: tuple[str, ...] | None, **asked: Any) -> None:
    """State the accuracy and privacy of running counts, and whether to monitor at all.

    Guarantees cover a user's whole history, over all periods. Give --epsilon0 (local) or --epsilon
    (central, met by the largest epsilon0).

    Compares with one-shot collections: everybody answers in every period, or each user draws a few
    periods in secret and answers only in those.
    """
    if (asked["epsilon0"] is None) == (asked["epsilon"] is None):
        raise click.UsageError("give exactly one of --epsilon0 (local) and --epsilon (central)")
    planned = sdp.monitoring.plan_monitoring(domain=categories, **asked)
    console.print_warnings(planned.cautions)
    if not console.print_json(planned.to_dict()):
        _print_plan(planned)


def _print_plan(planned: "sdp.monitoring.MonitorPlan") -> None:
    """Print errors, guarantees, alternatives, advice and assumptions."""
    from shuffledp.report import monitor as words

    stated = words.plan_rows(planned)
    console.print_facts(stated["plan"])
    click.echo()
    console.print_table(words.HEADINGS, words.comparison_rows(planned))
    for name in ("advice", "bound"):
        click.echo()
        console.print_facts(stated[name])
    console.print_list("assumptions", planned.central.assumptions)


@monitor.command(
    epilog="Example: shuffledp monitor simulate states.parquet --user id --time day --value flag "
    "--max-changes 4 --epsilon0 1 --delta 1e-8 --out results/"
)
@click.argument("table", type=shared.PATH)
@options(
    f"""
    Table:
    --user COLUMN  Column with the user of a row.  [required]
    --time COLUMN  Column with whole numbers, dates or times.  [required]
    --value COLUMN  Column with the value from that time on.  [required]
    {_CATEGORIES}
    {shared.READING}
    {shared.SHOW_VALUES}
    Periods:
    --periods D  Number of periods, at most 1,048,576; by default up to the last row.
    --start TIME  Beginning of period 1; by default 1, or the earliest day.
    --every LENGTH
        Length of a period: 1h, 1d, 1w, 1mo, or a number; by default a day, or 1.
    Privacy:
    {_MAX_CHANGES}
    --epsilon0 FLOAT  Local epsilon of everything that a user ever sends, in nats.  [required]
    {_DELTA}
    --protocol [{"|".join(PROTOCOLS)}]  Randomizer of the clients.  [default: {PROTOCOLS[0]}]
    {shared.SEED}
    Estimates:
    --smoothed  Use later reports for earlier periods: past estimates change, and are more accurate.
    {_CONFIDENCE}
    {shared.RESULTS}
    """,
)
def simulate(*, table: Path, out: Path, overwrite: bool, **asked: Any) -> None:
    """Run the client of every user in TABLE (Parquet or CSV) and the server, period by period.

    A row states the value of a user from a time on, until the user's next row.

    Writes the estimated counts with bands and a report into --out, and the true counts, which are
    not private, into a file of their own.
    """
    from shuffledp.monitoring.simulation import write_monitor_result

    parameters = {"table": str(table), **asked}
    reading = taken(asked, *_READING) | shared.take_reading(asked)
    with console.new_folder(out, overwrite=overwrite) as folder:
        with console.progress_bar() as on_progress:
            histories = sdp.monitoring.open_histories(table, **reading, on_progress=on_progress)
            result = sdp.monitoring.simulate_monitoring(histories, on_progress=on_progress, **asked)
        write_monitor_result(result, folder, parameters=parameters)
        report.write_report(result, folder / REPORT_FILE)
    console.print_warnings(result.warnings)
    if not console.print_json(result.to_json_dict()):
        from shuffledp.report.monitor import result_rows

        console.print_facts([*result_rows(result)["printed"], ("report", str(out / REPORT_FILE))])
