"""``shuffledp serve`` and ``planner``: a server of a task, or pages for people."""

import sys
from pathlib import Path
from typing import Any

import click

from shuffledp.cli import options as shared
from shuffledp.cli.options import cli, options, require_service

# Servers have one file of settings each; pages take one or several tasks.
_SERVERS = ("shuffler", "analyzer")
_PAGES = ("survey", "pilot", "console")


@cli.command(epilog="Example: shuffledp serve shuffler --config task/shuffler.toml")
@click.argument("role", type=click.Choice([*_SERVERS, *_PAGES]))
@click.argument("tasks", type=shared.PATH, nargs=-1)
@options(
    """
    Shuffler and analyzer:
    --config PATH  Settings of the server.
    --instance N   Number of a further process of a shuffler with a PostgreSQL database; it listens
        2 N ports on.  [=0]
    is_check=--check  Open settings, task, keys and store as the server would, compare private keys
        with the published list, and end. Stop the server first.
    --accept-clock    Accept the clock although it is more than an epoch from the server's last run
        or the task's first epoch. Without this a shuffler then accepts no reports and closes no
        epochs, and no key of an analyzer is destroyed.
    Pages:
    --listen ADDRESS:PORT  Address of the pages.  [default: 127.0.0.1:8400]
    --title TEXT      Heading of the survey; by default the first task's name.
    --owner TEXT      Name of the survey's owner.
    --token FILE      For the console: file with its password for other machines.
    """,
    instance=click.IntRange(min=0),
)
def serve(
    *, role: str, tasks: tuple[Path, ...], listen: str, title: str | None, owner: str | None,
    token: Path | None, config: Path | None, **server: Any,
) -> None:  # fmt: skip
    """Run a server of a task, or pages for TASKS, and print its URL.

    shuffler accepts sealed reports and releases them in batches, sorted and without names. analyzer
    fetches batches and stores estimates with their guarantee. A crash loses no report that was
    acknowledged, and spends no budget twice.

    survey is the page on which people answer TASKS, which are files or folders of tasks. console
    shows the operator reports, epsilon, results, keys and alerts. pilot runs all of these in one
    process, to try them out.
    """
    require_service()
    if role in _SERVERS:
        if config is None or tasks:
            raise click.UsageError(f"{role} needs --config, and no TASKS")
        _serve_role(role, config, **server)
        return
    if config is not None or any(server.values()):
        raise click.UsageError(f"{role} takes TASKS: leave --config and options of servers out")
    if not tasks:
        raise click.UsageError(f"{role} needs TASKS, such as the folder of shuffledp task create")
    if token is not None and role != "console":
        raise click.UsageError(f"--token is for the console: {role} leaves it out")
    from shuffledp.deploy.web import survey
    from shuffledp.deploy.web.console import CONSOLE, serve_console

    def say(survey: str) -> None:
        click.echo(f"survey: {survey}")
        if role == "pilot":
            click.echo(f"console: {survey}{CONSOLE}")
        sys.stdout.flush()

    if role == "console":
        serve_console(tasks, say_url, listen=listen, token=token)
        return
    run = survey.serve_pilot if role == "pilot" else survey.serve_survey
    run(tasks, say, listen=listen, title=title or "", owner=owner or "")


def _serve_role(
    role: str, config: Path, *, instance: int, is_check: bool, accept_clock: bool
) -> None:
    """Run one of the two servers of a task."""
    from shuffledp.deploy.servers.http_server import serve as serve_until_told
    from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings

    kind: Any = ShufflerSettings if role == "shuffler" else AnalyzerSettings
    settings = kind.read(config)
    if instance and (role == "analyzer" or settings.database is None):
        raise click.UsageError("--instance is for a shuffler whose settings name a database")
    hold: Any  # a server imports nothing of the other
    if role == "shuffler":
        from shuffledp.deploy.shuffler_server import shuffler_service as hold
    else:
        from shuffledp.deploy.analyzer_server import analyzer_service as hold
    with hold(lambda: kind.read(config).of_instance(instance), accept_clock=accept_clock) as held:
        if is_check:
            click.echo(f"{config} and its task are sound, and the store opens")
        else:
            serve_until_told(held, say_url)


@cli.command(epilog="Example: shuffledp planner")
@options(
    """
    --listen ADDRESS:PORT  Address of the page, on this machine.  [default: 127.0.0.1:8401]
    """
)
def planner(*, listen: str) -> None:
    """Serve a page that plans a collection while its form is filled in; prints its URL.

    Draws the expected error against epsilon, the largest epsilon0 and the number of people, and
    offers the file of `shuffledp plan --out`, or makes its task in a new folder here.
    """
    require_service()
    from shuffledp.deploy.web.planner import serve_planner

    serve_planner(say_url, listen=listen)


def say_url(url: str) -> None:
    """Print the URL of a server, flushed, so that a pipe gets it at once."""
    click.echo(url)
    sys.stdout.flush()
