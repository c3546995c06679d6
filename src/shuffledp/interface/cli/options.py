"""Options that several commands share, and checks of combinations that click does not know."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from shuffledp.core.checks import require_open_unit, require_positive

Command = TypeVar("Command", bound=Callable[..., Any])

RANDOMIZER_NAMES = ("k-rr", "symmetric-unary", "optimized-unary")


def whole_number(text: str) -> int:
    """Return a whole number, also written ``1e6`` or ``1_000_000``, exactly.

    Examples
    --------
    >>> whole_number("1e6"), whole_number("1_000")
    (1000000, 1000)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number.is_integer() or abs(number) > 2**53:
        raise click.BadParameter(f"{text!r} is not a whole number; write it like 100000 or 1e5")
    return int(number)


def answer_list(text: str) -> tuple[str, ...]:
    """Return answers separated by commas; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> answer_list('yes, no,"no, thanks"')
    ('yes', 'no', 'no, thanks')
    """
    row = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(answer.strip() for answer in row)


def domain_options(command: Command) -> Command:
    """Add ``--domain`` and ``--domain-file``."""
    for option in (
        click.option(
            "--domain-file",
            type=click.Path(path_type=Path),
            help="The possible answers, one a line, in a text file.",
        ),
        click.option("--domain", type=answer_list, metavar="A,B,...", help="The possible answers."),
    ):
        command = option(command)
    return command


def chosen_domain(
    domain: tuple[str, ...] | None, domain_file: Path | None
) -> tuple[str, ...] | None:
    """Return the domain of ``--domain`` or ``--domain-file``, if one of them is given."""
    from shuffledp.collection.datasets.labels import checked_domain
    from shuffledp.collection.datasets.tables import read_domain

    if domain is not None and domain_file is not None:
        raise click.UsageError("give --domain or --domain-file, not both")
    if domain_file is not None:
        return read_domain(domain_file)
    return None if domain is None else checked_domain(domain)


def require_target(*, epsilon: float | None, delta: float | None) -> None:
    """Raise unless what is given of a target is an epsilon > 0 and a delta in (0, 1)."""
    if epsilon is not None:
        require_positive("epsilon", epsilon)
    if delta is not None:
        require_open_unit("delta", delta)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)

seed_option = click.option(
    "--seed",
    type=whole_number,
    metavar="N",
    help="Make a reproducible simulation, which protects nobody and says so.",
)

randomizer_option = click.option(
    "--randomizer",
    metavar="NAME",
    help=f"One of {', '.join(RANDOMIZER_NAMES)}.",
)
