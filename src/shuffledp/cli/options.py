"""Options that several commands share, and checks that click does not know."""

import csv
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shuffledp.core.checks import require_open_unit, require_positive
from shuffledp.core.display import showing_values
from shuffledp.core.errors import MissingPackageError

if TYPE_CHECKING:
    from shuffledp.collection.results import About

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

# Written out, since --help must not load the randomizers; a test compares them.
RANDOMIZER_NAMES = {
    "categories": (
        "k-rr",
        "symmetric-unary",
        "optimized-unary",
        "optimized-local-hashing",
        "hadamard-response",
        "subset-selection",
    ),
    "--mean": ("duchi", "piecewise"),
    "--vector": ("privunit",),
    "--dictionary": ("count-mean-sketch",),
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


def share(text: str) -> float:
    """Return a share in (0, 1].

    Examples
    --------
    >>> share("0.9")
    0.9
    """
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0.0 < number <= 1.0:
        raise click.BadParameter(f"{text!r} is not in (0, 1]: write it like 0.9")
    return number


def rounds_or_auto(text: str) -> int | str:
    """Return a number of rounds, or the word auto."""
    return text if text == "auto" else whole_number(text)


def answer_list(text: str) -> tuple[str, ...]:
    """Return answers separated by commas; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> answer_list('yes, no,"no, thanks"')
    ('yes', 'no', 'no, thanks')
    """
    row = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(answer.strip() for answer in row)


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

max_epsilon0_option = click.option(
    "--max-epsilon0",
    type=float,
    help="Largest local privacy loss allowed beside --epsilon: what holds without the shuffler.",
)


def require_target(
    *, epsilon: float | None, delta: float | None, max_epsilon0: float | None = None
) -> None:
    """Raise unless what is given of a target is epsilons > 0 and a delta in (0, 1)."""
    if epsilon is not None:
        require_positive("epsilon", epsilon)
    if delta is not None:
        require_open_unit("delta", delta)
    if max_epsilon0 is not None:
        require_positive("max_epsilon0", max_epsilon0)
        if epsilon is None:
            raise click.UsageError("--max-epsilon0 limits what --epsilon allows: give that too")


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


def added(options: Iterable[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, in the order of ``--help``."""

    def add(command: Command) -> Command:
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return add


def out_option(what: str, *, required: bool = True) -> Callable[[Command], Command]:
    """Return the option that names the folder to create, ``what`` it holds."""
    return click.option("--out", type=PATH, required=required, help=f"Folder to create for {what}.")


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace a folder of earlier results."
)

plan_option = click.option(
    "--plan",
    "plan_file",
    type=PATH,
    metavar="FILE",
    help="Collect as planned in this file of `shuffledp plan --out`.",
)

#: How a result is estimated, and who asked what: for commands that end in a report.
estimate_options = added(
    (
        click.option(
            "--confidence", type=float, default=0.95, show_default=True, help="Of each interval."
        ),
        click.option(
            "--interval",
            type=click.Choice(["wilson", "wald", "clopper-pearson"]),
            default="wilson",
            show_default=True,
            help="Kind of interval, for shares.",
        ),
        click.option("--simultaneous", is_flag=True, help="Intervals that all hold at once."),
        click.option(
            "--post-process",
            "post_processing",
            multiple=True,
            metavar="STEP",
            help="Bias for plausibility: clip, norm-sub or simplex. May be given more than once.",
        ),
        click.option("--title", default="", help="Heading of the report."),
        click.option(
            "--question",
            default="",
            help="The question as people were asked it, for the report.",
        ),
        click.option("--organisation", default="", help="Who asks, for the report."),
        click.option(
            "--contact", default="", help="Whom to ask about the collection, for the report."
        ),
    )
)


def taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Take options out of all of them."""
    return {name: options.pop(name) for name in names}


def take_estimating(options: dict[str, Any]) -> tuple[dict[str, Any], "About"]:
    """Take `estimate_options` out of all of them: how to estimate, and who asked what."""
    from shuffledp.collection.results import About

    intervals = taken(options, "confidence", "interval", "simultaneous", "post_processing")
    require_open_unit("confidence", intervals["confidence"])
    words = taken(options, "title", "question", "organisation", "contact")
    return intervals, About(**words, date=datetime.now(UTC).date().isoformat())


_IMAGES = {".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg"}


def page_path(
    _context: click.Context, _parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Return where a page goes, unless its name promises an image."""
    if path is not None and path.suffix.lower() in _IMAGES:
        raise click.BadParameter(f"{path}: figures are pages; end the name in .html")
    return path


def figure_option(what: str) -> Callable[[Command], Command]:
    """Return the option that writes a page with charts, ``what`` they show."""
    return click.option(
        "--figure", type=PATH, callback=page_path, help=f"Write a page (HTML) with {what}."
    )


k_option = click.option(
    "--k",
    "domain_size",
    type=whole_number,
    metavar="K",
    help="Number of possible answers, for categories.",
)
dimension_option = click.option(
    "--dimension", type=whole_number, metavar="D", help="Length of the vectors, for vectors."
)

#: Which of the two is asked for, and the law of a report: for commands of the accountant.
law_options = added(
    (
        click.option("--delta", type=float, help="Failure probability: asks for epsilons."),
        click.option("--epsilon", type=float, help="Central epsilon in nats: asks for deltas."),
        click.option(
            "--randomizer",
            metavar="NAME",
            help=f"Categories: {', '.join(RANDOMIZER_NAMES['categories'])}; numbers: "
            f"{', '.join(RANDOMIZER_NAMES['--mean'])}; vectors: "
            f"{', '.join(RANDOMIZER_NAMES['--vector'])}; by default any.",
        ),
        k_option,
        dimension_option,
    )
)


def require_one_asked(*, epsilon: float | None, delta: float | None) -> None:
    """Raise unless exactly one of the two is given, and in its range."""
    require_target(epsilon=epsilon, delta=delta)
    if (epsilon is None) == (delta is None):
        raise click.UsageError("give exactly one of --delta (asks for epsilon) and --epsilon")


confidence_option = click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Of each interval."
)

# --------------------------------------------------------------------- networks
protocol_option = click.option(
    "--protocol",
    type=click.Choice(["all", "single"]),
    default="all",
    show_default=True,
    help="Holders hand in all reports they hold, or one.",
)

lazy_option = click.option(
    "--lazy",
    "laziness",
    type=float,
    default=0.0,
    show_default=True,
    metavar="P",
    help="Chance that a report stays where it is in a round, by a coin of its own.",
)

positions_option = click.option(
    "--positions",
    type=click.Choice(["auto", "exact", "spectral"]),
    default="auto",
    show_default=True,
    help="Follow all reports exactly, or bound where they are by eigenvalues.",
)

users_option = click.option(
    "--users",
    type=click.Choice(["worst", "all"]),
    default="worst",
    show_default=True,
    help="all: beside the worst user, epsilon for shares of the users.",
)

terms_argument = click.argument("terms", type=PATH)
graph_option = click.option(
    "--graph",
    type=PATH,
    required=True,
    help="File of edges: who passes reports on to whom.",
)
relay_option = click.option(
    "--relay", "url", required=True, metavar="URL", help="Where the relay is, as it printed."
)


def digest(text: str) -> bytes:
    """Return the digest that 64 hexadecimal digits spell.

    Examples
    --------
    >>> len(digest("0f" * 32))
    32
    """
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != 32:
        raise click.BadParameter("a digest is 64 hexadecimal digits: give all of them")
    return value


def require_service() -> None:
    """Raise unless the packages of the extra ``service`` are installed."""
    try:
        import httpx
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name not in ("httpx", "starlette", "uvicorn"):
            raise
        raise MissingPackageError(
            "relays and peers need more packages: run pip install 'shuffledp[service]'",
            name=error.name,
        ) from None
    del httpx, starlette, uvicorn
