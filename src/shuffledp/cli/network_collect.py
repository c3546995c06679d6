"""``shuffledp network collect``: what the analyzer does when peers have handed in."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_warnings,
    progress_bar,
    read_paths,
)
from shuffledp.cli.options import (
    PATH,
    confidence_option,
    graph_option,
    json_option,
    out_option,
    overwrite_option,
    relay_option,
    require_service,
    terms_argument,
)
from shuffledp.core.checks import require_non_negative, require_open_unit
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.collection.results import Result

# Ends the name of the file with what was fetched, beside the key that opens it.
_FETCHED = ".fetched"


@click.command(
    epilog="Example: shuffledp network collect collection/terms.json --key "
    "collection/analyzer.key --graph edges.csv --relay http://127.0.0.1:8000 --delta 1e-6 "
    "--out results/"
)
@terms_argument
@graph_option
@relay_option
@click.option(
    "--key",
    type=PATH,
    required=True,
    help="The analyzer's private key, as prepare wrote it.",
)
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@out_option("results")
@click.option("--wait", type=float, metavar="SECONDS", help="Give up waiting for the end.")
@confidence_option
@overwrite_option
@json_option
def collect(  # noqa: PLR0913  # one parameter an option
    *,
    terms: Path,
    graph: Path,
    url: str,
    key: Path,
    delta: float,
    out: Path,
    wait: float | None,
    confidence: float,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fetch what was handed in to the collection of TERMS, and estimate.

    Waits until the collection is over. Keeps what was fetched in a file beside --key, from which it
    can be run again, and has the relay delete it. Writes estimates.csv, privacy.json and
    report.html into the folder of --out: all of them, or nothing.
    """
    require_service()
    require_open_unit("delta", delta)
    require_open_unit("confidence", confidence)
    if wait is not None:
        require_non_negative("wait", wait)
    from shuffledp.collection.output import results_folder, write_results
    from shuffledp.collection.question import EstimateOptions
    from shuffledp.deploy.http_client import cautions_about
    from shuffledp.deploy.peers.collecting import collection_result, fetch, fetched_facts
    from shuffledp.deploy.peers.preparing import read_key, read_terms
    from shuffledp.deploy.peers.relay_client import RelayClient, answer_sizes
    from shuffledp.deploy.peers.stores import FetchedStore
    from shuffledp.leakage.of_runs import json_of_run
    from shuffledp.network.graph_files import read_graph

    read, asked = read_terms(terms)
    keys = read_key(key, read)
    network = read_graph(graph)
    read.require_graph(network)
    print_warnings(cautions_about(url, "relay"))
    options = EstimateOptions(confidence=confidence)
    with (
        results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder,
        RelayClient(url, answer_sizes(read, network)) as client,
        FetchedStore(key.with_name(f"{key.name}{_FETCHED}"), read) as store,
        progress_bar() as on_progress,
    ):
        fetched = fetch(read, keys, client, store=store, wait_seconds=wait, on_progress=on_progress)
        result = collection_result(
            read,
            asked,
            network,
            fetched,
            delta=delta,
            options=options,
            graph_name=graph.name,
            on_progress=on_progress,
        )
        facts = fetched_facts(read, fetched)
        findings = json_of_run(result)
        write_results(result, folder, parameters={"graph": str(graph), **facts}, findings=findings)
    print_warnings(result.warnings)
    if fetched.not_forgotten:
        print_warnings(
            [
                "the relay may still have what was handed in; while it serves, run this command "
                f"again with --overwrite ({fetched.not_forgotten})"
            ]
        )
    if as_json:
        print_json({**result.to_json_dict(), **findings, "collection": facts})
    else:
        _print_result(result, out)


def _print_result(result: "Result", out: Path) -> None:
    """Print the estimates, the guarantee, how the exchange went and where the report is."""
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.report import network_rows, terminal_text, walk_rows

    click.echo(terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    facts = guarantee_facts(result.guarantee)
    if result.network is not None:
        facts += [*network_rows(result.network), *walk_rows(result.network)]
    lines = [(name[0].lower() + name[1:], value) for name, value in facts]
    print_facts([*lines, ("report", str(out / REPORT_FILE))])
    print_list("assumptions", result.guarantee.bound.assumptions)
