"""Command group; the options of a command are a table, written as ``--help`` shows it.

Options that several commands share stand here, with the kinds of values and checks across options.
"""

import csv
import io
import re
from collections.abc import Callable, Container
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

import click

import shuffledp as sdp
from shuffledp._version import __version__
from shuffledp.core.checks import require_open_unit
from shuffledp.core.display import showing_values
from shuffledp.core.errors import MissingPackageError, ParameterError, ShuffledpError
from shuffledp.randomizers import registry

Command = TypeVar("Command", bound=Callable[..., Any])


class _Option(click.Option):
    """An option, and the heading that ``--help`` shows it below."""

    def __init__(self, *names: Any, heading: str, **how: Any) -> None:
        super().__init__(*names, **how)
        self.heading = heading


def headed(context: click.Context, params: list[click.Parameter]) -> dict[str, list[Any]]:
    """Return the usage and text of each option below its heading; --help goes below the last."""
    found: dict[str, list[Any]] = {}
    heading = "Options"
    for each in params:
        if isinstance(each, click.Option) and (record := each.get_help_record(context)):
            heading = getattr(each, "heading", heading)
            found.setdefault(heading, []).append(record)
    return found


class _Command(click.Command):
    """A command whose ``--help`` has headings, and that refuses a single option given twice."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings."""
        for heading, records in headed(ctx, self.get_params(ctx)).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a single option given twice, then have click parse the options."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for each in given:
            is_single = isinstance(each, click.Option) and not (each.multiple or each.is_flag)
            if is_single and given.count(each) > 1:
                raise click.UsageError(f"{each.opts[0]} is given twice: give it once", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error advises only what the command takes."""
        try:
            return super().invoke(ctx)
        except ShuffledpError as error:
            error.args = (_advising(str(error), ctx.params),)
            raise


def _advising(message: str, taken: dict[str, Any]) -> str:
    """Return a message without advice, such as missing='drop', that a command does not take.

    What remains is to correct the table.
    """
    advised = {"missing": "=", "domain": "=[", "other": "=", "clip": "=", "truncate": "="}
    refused = [name + end for name, end in advised.items() if name not in taken]
    if taken.get("shuffler", "uniform") != "uniform":
        refused.append("missing='drop'")
    for each in refused:
        message = message.replace(f"{each} to leave them out, or ", "")
        if each in message:
            message = message[: message.index(each)].rpartition(": ")[0] + ": correct the table"
    return message


class _Group(click.Group):
    """Commands, which the modules of this folder add when they are imported."""

    command_class = _Command
    group_class = type  # groups in this one are of this class, too

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command's name, and all modules if it lacks the command."""
        modules = {module.name for module in iter_modules([str(Path(__file__).parent)])}
        for chosen in (modules & {cmd_name}, modules):
            if cmd_name not in self.commands:
                for module in sorted(chosen):
                    import_module(f"shuffledp.cli.{module}")
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Import all modules."""
        self.get_command(ctx, "")
        return super().list_commands(ctx)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="shuffledp", message="%(prog)s %(version)s")
def cli() -> None:
    """Collect answers to a sensitive question privately, in the shuffle model.

    Each user randomizes their own answer, a shuffler mixes the reports, and the analyst sees only
    those.
    """


@cli.group()
def network() -> None:
    """Shuffle without a shuffler: users pass reports on along a graph.

    account computes the privacy after a number of rounds; prepare, relay, peer and collect run an
    exchange; `shuffledp run --shuffler network` simulates one on a table.
    """


# --------------------------------------------------------------------- kinds of values
PATH = click.Path(path_type=Path)


def whole_number(text: str) -> int:
    """Return a whole number, also written ``1e6`` or ``1_000_000``, exactly.

    Examples
    --------
    >>> whole_number("1e6"), whole_number("1_000")
    (1000000, 1000)
    """
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        if number.is_integer() and abs(number) <= 2**53:
            return int(number)
    raise click.BadParameter(f"{text!r} is not a whole number; write it like 100000 or 1e5")


def whole_numbers(text: str) -> tuple[int, ...]:
    """Return whole numbers separated by commas.

    Examples
    --------
    >>> whole_numbers("10, 20")
    (10, 20)
    """
    return tuple(whole_number(part) for part in text.split(",") if text)


def share(text: str) -> float:
    """Return a share in (0, 1].

    Examples
    --------
    >>> share("0.9")
    0.9
    """
    with suppress(ValueError):
        if 0.0 < float(text) <= 1.0:
            return float(text)
    raise click.BadParameter(f"{text!r} is not in (0, 1]: write it like 0.9")


def number_range(text: str) -> tuple[float, float]:
    """Return the two limits of a range, such as ``0, 120``."""
    with suppress(ValueError):
        low, high = (float(part) for part in text.split(","))
        return low, high
    raise click.BadParameter(f"{text!r} is not two numbers: write it like 0,120")


def numbers(text: str) -> tuple[float, ...]:
    """Return numbers separated by commas.

    Examples
    --------
    >>> numbers(".25, .5")
    (0.25, 0.5)
    """
    with suppress(ValueError):
        return tuple(float(part) for part in text.split(","))
    raise click.BadParameter(f"{text!r} is not a list of numbers: write it like 0.25,0.5")


def number_or_edges(text: str) -> int | tuple[float, ...]:
    """Return a number of bins, or their edges separated by commas."""
    return numbers(text) if "," in text else whole_number(text)


def duration(text: str) -> int:
    """Return seconds of a time such as ``90``, ``30s``, ``15m``, ``6h`` or ``1d``.

    Examples
    --------
    >>> duration("1d"), duration("90")
    (86400, 90)
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if found is None or not int(found[1]):
        raise click.BadParameter(f"{text!r} is no time: write it like 30s, 15m, 6h or 1d")
    return int(found[1]) * {"m": 60, "h": 3600, "d": 86_400}.get(found[2], 1)


def dummy_law(text: str) -> Any:
    """Return the law of dummies that a text such as ``laplace:2.025:27`` names.

    Examples
    --------
    >>> dummy_law("poisson:0.5").sender
    'users'
    """
    from shuffledp.core.dummies import DummyLaw

    try:
        return DummyLaw.from_text(text)
    except ParameterError as error:  # click before 8.4 drops the reason
        hint = "; `shuffledp plan --dummies best --out FILE` finds one for --plan"
        raise click.BadParameter(f"{error}{hint}") from None


def rounds_or_auto(text: str) -> int | str:
    """Return a number of rounds, or the word auto."""
    return text if text == "auto" else whole_number(text)


def several_rounds(text: str) -> int | str | tuple[int, ...]:
    """Return a number of rounds, several separated by commas, or the word auto."""
    return whole_numbers(text) if "," in text else rounds_or_auto(text)


def answer_list(text: str) -> tuple[str, ...]:
    """Return answers separated by commas or lines; double quotes enclose one that contains any.

    Examples
    --------
    >>> answer_list('yes, no,"no, thanks"')
    ('yes', 'no', 'no, thanks')
    """
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    return tuple(answer.strip() for row in rows for answer in row)


def column_pairs(text: str) -> str | tuple[tuple[str, ...], ...]:
    """Return pairs of columns, or the word all.

    Examples
    --------
    >>> column_pairs("age:vote, age:income")
    (('age', 'vote'), ('age', 'income'))
    """
    return text if text == "all" else tuple(tuple(each.split(":")) for each in answer_list(text))


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


_KINDS: dict[str, Any] = {
    name: kind
    for kind, names in {
        str: "ADDRESS ADDRESS:PORT C COLUMN LENGTH LIST NAME R STEP TEXT TIME URL",
        float: "FLOAT P SECONDS X",
        whole_number: "D G H K M N NODE S T",
        answer_list: "A,B A,B,...",
        column_pairs: "A:B,...|all",
        number_range: "LOW,HIGH",
        numbers: "P,P,...",
        number_or_edges: "N|EDGES",
        rounds_or_auto: "T|auto",
        several_rounds: "T|T,T,...|auto",
        share: "SHARE",
        dummy_law: "LAW",
        duration: "DURATION",
        digest: "HEX",
        PATH: "FILE FOLDER PATH",
    }.items()
    for name in names.split()
}


# --------------------------------------------------------------------- tables of options
def options(*tables: str, **kinds: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of tables, in the order of ``--help``.

    A line such as ``Privacy:`` is the heading of the entries below it.

    An entry of a table is ``name=--flag KIND  Help.  [default: value] [required] [repeated]``, and
    goes on in indented lines. The name is the parameter's, if it differs from the flag. KIND is a
    key of `_KINDS`, unless ``kinds`` has the parameter, or ``[one|of|these]``; a flag has none.
    ``[=value]`` is a default that ``--help`` does not show.
    """
    added: list[Callable[..., Any]] = []
    heading = "Options"
    for entry in re.split(r"\n\s*(?=(?:\w+=)?--\w|[A-Z].*:\n)", "\n".join(tables).strip()):
        if entry.endswith(":"):
            heading = entry[:-1]
        else:
            added.append(_option(entry.strip(), heading, kinds))

    def add(command: Command) -> Command:
        for option in reversed(added):
            command = option(command)
        return command

    return add


_ENTRY = re.compile(
    r"(?:(?P<name>\w+)=)?(?P<flag>--\S+)(?: (?P<kind>\S+))?(?:(?:  |\n)\s*(?P<help>.*?))?"
    r"(?:\s*\[(?P<show>default:\s+|=)(?P<default>[^\]]*)\])?(?P<required>\s*\[required\])?"
    r"(?P<multiple>\s*\[repeated\])?",
    re.DOTALL,
)


def _option(entry: str, heading: str, kinds: dict[str, Any]) -> Callable[..., Any]:
    """Return the option that an entry of a table declares, below a heading."""
    found = _ENTRY.fullmatch(entry)
    assert found is not None, entry  # noqa: S101  # the tables are constants
    flag, kind, default = found["flag"], found["kind"], found["default"]
    name = found["name"] or flag[2:].replace("-", "_")
    how: dict[str, Any] = {"help": " ".join((found["help"] or "").split()) or None}
    how |= {each: True for each in ("required", "multiple") if found[each]}
    if kind is None:
        # A flag that is set by default is cleared by the option.
        how |= {"is_flag": True} if default is None else {"flag_value": False, "default": True}
    elif kind.startswith("["):
        how["type"] = click.Choice(kind[1:-1].split("|"))
    else:
        how |= {"type": kinds[name] if name in kinds else _KINDS[kind], "metavar": kind}
    if kind is not None and default is not None:
        how |= {"default": default, "show_default": found["show"] != "="}
    if flag in _CALLBACKS:
        how |= {"expose_value": False, "callback": _CALLBACKS[flag]}
    return click.option(flag, name, cls=_Option, heading=heading, **how)


# --------------------------------------------------------------------- shared options
_NAMES = {
    "categories": ", ".join(registry.RANDOMIZERS),
    "--mean": ", ".join(registry.NUMBER_RANDOMIZERS),
    "--vector": ", ".join(registry.VECTOR_RANDOMIZERS),
}


def _set_json(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    """Record that the command must print one JSON object and nothing else."""
    context.meta["shuffledp.json"] = is_wanted


def _show_values(context: click.Context, _parameter: click.Parameter, shown: bool) -> None:
    """Show values in messages for as long as the command runs."""
    if shown:
        context.with_resource(showing_values())


# Options that are handled here and not passed to commands.
_CALLBACKS = {"--json": _set_json, "--show-values": _show_values}

JSON = "as_json=--json  Print one JSON object instead of text."
SHOW_VALUES = "--show-values  Show refused values in error messages, beside rows and columns."
OUT = "--out PATH  New folder for {}.  [required]"
OVERWRITE = "--overwrite  Replace a folder of earlier results."
RESULTS = f"""
    Output:
    {OUT.format("results")}
    {OVERWRITE}
    {JSON}
    """
SEED = "--seed N  Simulate reproducibly; a simulation protects nobody, and its results say so."
DIMENSION = "--dimension D  Length of the vectors, for privunit."
CONFIDENCE = "--confidence FLOAT  Confidence of each interval.  [default: 0.95]"
PLAN = """
    plan_file=--plan FILE  Plan of `shuffledp plan --out`: question, target, randomizer and dummies.
    """
MAX_EPSILON0 = """
    --max-epsilon0 FLOAT  Beside --epsilon: largest epsilon0 allowed, the guarantee if the shuffler
        fails.
    """
RANDOMIZER = (
    f"--randomizer NAME  For {'; '.join(f'{kind}: {names}' for kind, names in _NAMES.items())}; "
    "--max-answers: sampled:NAME or split:NAME with a NAME of categories."
)

# Randomizer of a report, then also the quantity to compute: for commands of the accountant.
REPORT_LAW = f"""
    --randomizer NAME  By default the bound holds for any. Categories: {_NAMES["categories"]};
        numbers: {_NAMES["--mean"]}; vectors: {_NAMES["--vector"]}.
    domain_size=--k K  Number of possible answers; not needed for unary encodings.
    {DIMENSION}
    """
LAW = f"""
    Reports:
    {REPORT_LAW}
    Result:
    --delta FLOAT    Compute epsilon at this delta, below 1.
    --epsilon FLOAT  Compute delta at this epsilon, in nats.
    """

# Title, question, organisation and contact of a report.
ABOUT = """
    Report:
    --title TEXT         Heading of the report.  [=]
    --question TEXT      Wording of the question, for the report.  [=]
    --organisation TEXT  Name of the organisation that asks.  [=]
    --contact TEXT       Contact for questions about the collection.  [=]
    """

# Options of the estimates and of the report: for commands that end in a report.
ESTIMATING = f"""
    Estimates:
    {CONFIDENCE}
    --simultaneous  Choose intervals that hold all at once with that confidence.
    interval_about=--about [respondents|population]  Print intervals for the people who answered, or
        wider ones for a population of which they are a random sample. The files have both.
        [default: respondents]
    post_processing=--post-process STEP  clip and norm-sub make shares lie in [0, 1] or add up to 1,
        and bias them; consistent, for several columns, is unbiased. Repeat for several steps.
        [repeated]
    {ABOUT}
    """

# Processes or Spark: for commands that randomize, count or open many reports.
WORK = """
    Work:
    --processes N  Number of worker processes; by default the available cores, once the work takes a
        second. Results do not depend on it.
    --engine [processes|spark]  Processes of this machine (default), or Apache Spark with the
        settings in spark-defaults.conf or PYSPARK_SUBMIT_ARGS.
    """

# Options of reading: for all commands that take values from a table.
READING = """
    --csv-separator C  Separator of the columns; by default found in the file (comma, semicolon, tab
        or bar).
    header=--no-header  The first line holds values; columns are named column_1, column_2 and so on.
        [=True]
    missing_texts=--missing-text TEXT  Text that means no answer, such as NA or -99, beside empty,
        nan and null. Repeat for several texts.  [repeated]
    """
DECIMAL = "--decimal [.|,]  Decimal mark of all numbers in the table; by default found in the file."
WAYS = {"csv_separator": None, "header": True, "decimal": None, "missing_texts": ()}

# Options of networks.
PROTOCOL = (
    "--protocol [all|single]  At the end users hand in all reports they hold, or one drawn at "
    "random.  [default: all]"
)
DISHONEST = """
    num_dishonest=--dishonest N  Number of users who may reveal their own reports: the guarantee
        does not count on them.  [default: 0]
    """
LAZY = """
    laziness=--lazy P  Probability that a report stays where it is in a round; above 0 on bipartite
        graphs.  [default: 0.0]
    """


# --------------------------------------------------------------------- checks across options
def taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Remove options from all of them, by name, and return them."""
    return {name: options.pop(name) for name in names}


def flags_given(names: Container[str]) -> list[str]:
    """Return the flags of some parameters whose options stand on the command line."""
    context = click.get_current_context()
    return [
        each.opts[0]
        for each in context.command.params
        if each.name in names
        and context.get_parameter_source(each.name) is click.core.ParameterSource.COMMANDLINE
    ]


def take_reading(options: dict[str, Any]) -> dict[str, Any]:
    """Remove options of `READING` and `DECIMAL` from all; return all that differ from defaults."""
    ways = taken(options, *(WAYS.keys() & options.keys()))
    return {name: way for name, way in ways.items() if way != WAYS[name]}


def is_on_spark(options: dict[str, Any], processes: int | None) -> bool:
    """Remove the engine from the options; return True for Spark, which takes no --processes."""
    is_spark = bool(options.pop("engine") == "spark")
    if is_spark and processes is not None:
        raise click.UsageError("--processes is for one machine: leave it out with --engine spark")
    return is_spark


def take_estimating(options: dict[str, Any]) -> tuple[dict[str, Any], "sdp.collection.About"]:
    """Remove options of `ESTIMATING` from all; return arguments of estimates, and the `About`."""
    names = ("confidence", "simultaneous", "interval_about", "post_processing")
    intervals = taken(options, *names)
    require_open_unit("confidence", intervals["confidence"])
    words = taken(options, "title", "question", "organisation", "contact")
    return intervals, sdp.collection.About(**words, date=datetime.now(UTC).date().isoformat())


def require_one_asked(*, epsilon: float | None, delta: float | None) -> None:
    """Raise unless exactly one of the two is given."""
    if (epsilon is None) == (delta is None):
        raise click.UsageError("give exactly one of --delta (asks for epsilon) and --epsilon")


def require_service() -> None:
    """Raise unless the packages of the extra ``service`` are installed."""
    for name in ("httpx", "starlette", "uvicorn"):
        if find_spec(name) is None:
            raise MissingPackageError("more is needed: pip install 'shuffledp[service]'", name=name)
