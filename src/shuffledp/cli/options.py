"""Options that several commands share, and checks of combinations that click does not know."""

import csv

import click

from shuffledp.core.checks import require_open_unit, require_positive
from shuffledp.core.display import showing_values

# Written out, since --help must not load the randomizers; a test compares them.
RANDOMIZER_NAMES = {
    "categories": (
        "k-rr",
        "symmetric-unary",
        "optimized-unary",
        "optimized-local-hashing",
        "binary-local-hashing",
        "hadamard-response",
        "subset-selection",
    ),
    "--mean": ("laplace", "duchi", "piecewise", "hybrid"),
    "--vector": ("privunit", "privunit-gaussian"),
    "--dictionary": ("count-mean-sketch", "hadamard-count-mean-sketch"),
}


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


def require_target(*, epsilon: float | None, delta: float | None) -> None:
    """Raise unless what is given of a target is an epsilon > 0 and a delta in (0, 1)."""
    if epsilon is not None:
        require_positive("epsilon", epsilon)
    if delta is not None:
        require_open_unit("delta", delta)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)


def _show_values(context: click.Context, _parameter: click.Parameter, shown: bool) -> None:
    """Show values in messages for as long as the command runs."""
    if shown:
        context.with_resource(showing_values())


show_values_option = click.option(
    "--show-values",
    is_flag=True,
    expose_value=False,
    callback=_show_values,
    help="Show the values that are refused in error messages, not their rows alone.",
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
    help="; ".join(f"{kind}: {', '.join(names)}" for kind, names in RANDOMIZER_NAMES.items())
    + "; --max-answers: sampled:NAME or split:NAME with a NAME of categories.",
)
