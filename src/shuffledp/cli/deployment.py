"""``shuffledp task``, ``serve`` and ``collect``: a collection across many devices."""

import math
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.asked import Asked, question_options
from shuffledp.cli.console import print_facts, print_json, print_warnings, read_paths
from shuffledp.cli.options import (
    PATH,
    json_option,
    out_option,
    overwrite_option,
    randomizer_option,
    require_service,
    share,
    whole_number,
)
from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import DataError
from shuffledp.report.formatting import given as plain
from shuffledp.report.formatting import rounded
from shuffledp.report.wording import guarantee_facts, without_shuffler_line

if TYPE_CHECKING:
    from shuffledp.deploy.task import Task

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


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
    return int(found[1]) * _UNITS.get(found[2], 1)


@click.group()
def task() -> None:
    """Make a task, on which devices, shuffler and analyzer agree, or check one."""


@task.command(
    epilog="Example: shuffledp task create --domain yes,no --epsilon0 2 --epsilon 0.2 --delta 1e-8 "
    "--min-batch 10000 --epoch 1d --out task/"
)
@question_options
@click.option("--question", "text", default="", help="The question in words, for devices to show.")
@randomizer_option
@click.option("--epsilon0", type=float, help="Local epsilon of every report.")
@click.option("--epsilon", metavar="X", help="Promised for each batch, in nats.")
@click.option("--delta", metavar="X", help="Failure probability, such as 1e-8.")
@click.option(
    "--plan",
    "plan_file",
    type=PATH,
    metavar="FILE",
    help="Take question, randomizer, epsilon0, epsilon and delta from `shuffledp plan --out`.",
)
@click.option(
    "--min-batch", type=whole_number, required=True, metavar="N", help="Fewest reports released."
)
@click.option(
    "--honest-fraction",
    type=share,
    default=1.0,
    show_default=True,
    help="Share of a batch that is honest for certain: only these hide anybody.",
)
@click.option(
    "--epoch",
    "epoch_seconds",
    type=duration,
    default="1d",
    show_default=True,
    help="A batch covers so much time.",
)
@click.option("--num-epochs", type=whole_number, default=30, show_default=True, metavar="N")
@click.option(
    "--grace",
    type=duration,
    default="1h",
    show_default=True,
    help="After an epoch its reports are still taken in for so long.",
)
@click.option(
    "--short-batch",
    type=click.Choice(["hold", "drop"]),
    default="hold",
    show_default=True,
    help="A batch that is too small waits for the next epoch's reports, or is deleted.",
)
@click.option(
    "--codes",
    "num_codes",
    type=whole_number,
    default=0,
    metavar="N",
    help="Take in only reports with one of so many codes, each good once an epoch.",
)
@click.option("--info", default="a collection", show_default=True, help="Name of the task.")
@click.option(
    "--shuffler",
    default="127.0.0.1:8410",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where the shuffler listens; health and numbers are one port on.",
)
@click.option(
    "--analyzer",
    default="127.0.0.1:8420",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where the analyzer listens.",
)
@click.option("--shuffler-url", help="Its URL for devices; by default http and where it listens.")
@click.option("--analyzer-url", help="The same of the analyzer.")
@out_option("the task and its keys")
@json_option
def create(  # noqa: PLR0913  # one parameter an option
    *,
    text: str,
    plan_file: Path | None,
    honest_fraction: float,
    grace: int,
    num_codes: int,
    shuffler: str,
    analyzer: str,
    shuffler_url: str | None,
    analyzer_url: str | None,
    out: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Write a task, its keys, and one file of settings for each of the two servers.

    task.bin is public; hand shuffler.toml and the folder shuffler to whoever runs the shuffler,
    analyzer.toml and the folder analyzer to whoever runs the analyzer, and keep operator.key. Only
    if they are not one and the same does the shuffler protect anybody. Epochs begin now.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from shuffledp.deploy.admission import new_codes
    from shuffledp.deploy.servers.settings import write_task
    from shuffledp.deploy.task import Task
    from shuffledp.deploy.wire import ProtocolError

    fields = {name: given.pop(name) for name in _FIELDS}
    promised = {name: given.pop(name) for name in ("randomizer", "epsilon0", "epsilon", "delta")}
    asked = Asked(**given)
    require_non_negative("codes", num_codes)
    remedy = ""
    if plan_file is None:
        promise = _promise(asked, text, **promised)
    else:
        promise, remedy = _planned(plan_file, asked, text, honest_fraction, **promised)
    if out.exists():
        raise click.UsageError(f"{out} exists: choose another --out")
    operator = Ed25519PrivateKey.generate()
    made = Task(
        **fields,
        **promise,
        shuffler_url=shuffler_url or f"http://{shuffler}",
        analyzer_url=analyzer_url or f"http://{analyzer}",
        start=int(time.time()),
        honest_ppm=round(honest_fraction * 1_000_000),
        operator_key=operator.public_key().public_bytes_raw(),
    )
    try:
        made.check()
    except ProtocolError as error:
        raise DataError(f"{error}{remedy}") from None
    if 0 < num_codes < made.min_batch:
        print_warnings(
            [
                f"codes = {num_codes:,} let in fewer reports an epoch than the least batch of "
                f"{made.min_batch:,}: a batch needs several epochs, or never comes about"
            ]
        )
    write_task(
        out,
        made,
        operator,
        listen=(shuffler, analyzer),
        grace_seconds=grace,
        codes=new_codes(num_codes),
    )
    _say_task(made, out / "task.bin", as_json=as_json)


_FIELDS = ("info", "epoch_seconds", "num_epochs", "min_batch", "short_batch")


def _promise(
    asked: Asked,
    text: str,
    *,
    randomizer: str | None,
    epsilon0: float | None,
    epsilon: str | None,
    delta: str | None,
) -> dict[str, Any]:
    """Return fields of a task that options name: what is asked, and what each batch is to keep."""
    from shuffledp.deploy.asked_terms import AskedTerms

    if epsilon0 is None or epsilon is None or delta is None:
        raise click.UsageError("give --epsilon0, --epsilon and --delta, or --plan")
    question = asked.question()
    if question is None:
        raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
    name = randomizer or next(iter(question.candidates()))
    terms = AskedTerms.of(question, name, epsilon0, text)
    return {"asked": terms, "epsilon": epsilon, "delta": delta}


def _planned(
    file: Path,
    asked: Asked,
    text: str,
    honest_fraction: float,
    *,
    epsilon: str | None,
    **others: object,
) -> tuple[dict[str, Any], str]:
    """Return the same from a saved plan, all of whose users are honest; and what to try else.

    Epsilon may be another. A file of a plan is of a uniform shuffle, the only one that a sorted
    batch is: others are not saved.
    """
    from shuffledp.collection.plan import Plan
    from shuffledp.deploy.asked_terms import AskedTerms

    beside = [f"--{name}" for name, each in others.items() if each is not None]
    if beside or asked.is_given:
        what = beside[0] if beside else "the question"
        raise click.UsageError(f"--plan says what is asked, and how: leave {what} out")
    found = Plan.load(file)
    if found.rounds != 1:
        raise click.UsageError(
            f"{file} plans {found.rounds:,} rounds about the same people, and a device answers a "
            "task once: plan one round"
        )
    terms = AskedTerms.of(found.question, found.randomizer.name, found.asked_epsilon0, text)
    remedy = (
        f"; the plan is for {found.num_users:,} honest users: give --min-batch "
        f"{math.ceil(found.num_users / honest_fraction)}, plan for fewer users, or promise more "
        "with --epsilon"
    )
    said = {"epsilon": epsilon or plain(found.target_epsilon), "delta": plain(found.target_delta)}
    return {"asked": terms, **said}, remedy


@task.command(epilog="Example: shuffledp task check task/task.bin")
@click.argument("task_file", type=PATH, required=False)
@click.option("--dap", type=PATH, metavar="FILE", help="Instead of a task of ours: one of DAP.")
@click.option("--epsilon0", type=float, help="For --dap: local epsilon of every report.")
@click.option("--delta", type=float, help="For --dap: failure probability, such as 1e-8.")
@click.option(
    "--honest-fraction",
    type=share,
    help="For --dap: share of a batch that is honest for certain; by default all.",
)
@json_option
def check(
    *, task_file: Path | None, dap: Path | None, as_json: bool, **numbers: float | None
) -> None:
    """Recompute the guarantee of a task, and say what a device is asked; refuse untrue numbers.

    With --dap: what the smallest batch of a DAP task keeps if each device runs k-ary randomized
    response and hands the outcome in.
    """
    from shuffledp.deploy.servers.settings import read_task

    given = {name: each for name, each in numbers.items() if each is not None}
    if task_file is None and dap is not None:
        _check_dap(dap, given, as_json=as_json)
    elif task_file is None or dap is not None:
        raise click.UsageError("give a task, or --dap with a file")
    elif given:
        name = next(iter(given)).replace("_", "-")
        raise click.UsageError(f"--{name} is for --dap: a task says its own")
    else:
        made = read_task(task_file)
        made.check()
        _say_task(made, task_file, as_json=as_json)


def _check_dap(path: Path, numbers: dict[str, float], *, as_json: bool) -> None:
    """Print what the smallest batch of a DAP task keeps."""
    from shuffledp.deploy.dap import DapTask
    from shuffledp.deploy.database import bytes_of

    if not {"epsilon0", "delta"} <= numbers.keys():
        raise click.UsageError("--dap needs --epsilon0 and --delta: no DAP task says them")
    made = DapTask.decode(bytes_of(path))
    found = made.guarantee(**numbers)
    if as_json:
        print_json(
            {
                "task": str(path),
                "vdaf": made.vdaf,
                "num_outcomes": made.num_outcomes,
                "min_batch": made.min_batch_size,
                "num_honest": found.num_users,
                "guarantee": found.to_json_dict(),
                "epsilon0": numbers["epsilon0"],
            }
        )
        return
    batch = f"{made.min_batch_size:,} reports, of which {found.num_users:,} count"
    print_facts(
        [
            ("task", f"{path}, {made.info.decode(errors='backslashreplace')}"),
            ("aggregators", f"{made.leader_url} and {made.helper_url}"),
            ("VDAF", f"{made.vdaf}, {made.num_outcomes:,} outcomes"),
            ("least batch", batch),
            *guarantee_facts(found)[:3],
            ("if they collude", f"epsilon0 = {rounded(numbers['epsilon0'], up=True)}"),
        ]
    )


def _say_task(made: "Task", path: Path, *, as_json: bool) -> None:
    """Print what a task asks and promises."""
    if not as_json:
        print_facts([("file", str(path)), ("id", made.task_id.hex()), *task_facts(made)])
        return
    print_json(
        {
            "task": str(path),
            "task_id": made.task_id.hex(),
            "asked": made.asked.to_json_dict(),
            "min_batch": made.min_batch,
            "num_honest": made.num_honest,
            "promised": {"epsilon": float(made.epsilon), "delta": float(made.delta)},
            "guarantee": made.guarantee().to_json_dict(),
            "epsilon0": made.asked.randomizer.epsilon0,
        }
    )


def task_facts(made: "Task") -> list[tuple[str, str]]:
    """Return what somebody is to know before they answer, as it is computed here."""
    found = made.guarantee()
    return [
        ("task", re.sub(r"\s+", " ", made.info)),
        *made.asked.facts(),
        ("least batch", f"{made.min_batch:,} reports, of which {made.num_honest:,} count"),
        (
            "with a shuffler",
            f"epsilon <= {rounded(found.epsilon_upper, up=True)} at delta = {made.delta}, proved; "
            f"promised {made.epsilon}",
        ),
        ("without one", without_shuffler_line(made.asked.randomizer.profile)),
        ("shuffler", made.shuffler_url),
        ("analyzer", made.analyzer_url),
    ]


@click.command(epilog="Example: shuffledp serve shuffler --config task/shuffler.toml")
@click.argument("role", type=click.Choice(["shuffler", "analyzer"]))
@click.option("--config", type=PATH, required=True, help="The role's file of settings.")
@click.option(
    "--instance",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="A further process of a shuffler with a PostgreSQL database: listens 2 N ports on.",
)
@click.option("--check", "is_check", is_flag=True, help="Read settings and task, and end.")
def serve(*, role: str, config: Path, instance: int, is_check: bool) -> None:
    """Run one of the two servers of a task until it is told to end; prints its URL.

    The shuffler takes in sealed reports, and releases them in batches, sorted and without names.
    The analyzer fetches batches, and keeps estimates with their guarantee. Killed at any moment and
    started again the one loses no report that it acknowledged, the other spends nothing twice.
    """
    require_service()
    from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, keys_of

    is_shuffler = role == "shuffler"
    settings = (ShufflerSettings if is_shuffler else AnalyzerSettings).read(config)
    settings = settings.of_instance(instance)
    if instance and (role == "analyzer" or settings.database is None):
        raise click.UsageError(
            f"--instance {instance} needs a shuffler whose settings name a database: only there "
            "can several processes keep reports"
        )
    if is_check:
        made = settings.read_task()
        keys_of(settings, made)
        if isinstance(settings, ShufflerSettings):
            settings.admission(made)
        click.echo(f"{config} and its task are sound")
    elif isinstance(settings, ShufflerSettings):
        from shuffledp.deploy.shuffler.serving import serve_shuffler

        serve_shuffler(settings, say_url)
    else:
        from shuffledp.deploy.analyzer import serve_analyzer

        serve_analyzer(settings, say_url)


def say_url(url: str) -> None:
    """Print where a server is, at once also into a pipe."""
    click.echo(url)
    sys.stdout.flush()


@click.command(epilog="Example: shuffledp collect task/ --out results/")
@click.argument("folder", type=PATH)
@out_option("results")
@click.option("--batch", type=whole_number, metavar="N", help="By default the newest.")
@click.option(
    "--wait", type=float, metavar="SECONDS", help="At most; by default as long as it takes."
)
@overwrite_option
@json_option
def collect(
    *,
    folder: Path,
    out: Path,
    batch: int | None,
    wait: float | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Wait for a batch of the task in FOLDER, and fetch its estimates, statement and report.

    Needs operator.key beside task.bin.
    """
    require_service()
    import json

    from shuffledp.collection.output import PRIVACY_FILE, REPORT_FILE, results_folder
    from shuffledp.deploy.remote import collect_results
    from shuffledp.deploy.servers.settings import read_task, signing_key

    made = read_task(folder / "task.bin")
    key = signing_key(folder / "operator.key")
    with results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as partial:
        number = collect_results(made, key, partial, batch=batch, wait_seconds=wait)
        record = json.loads((partial / PRIVACY_FILE).read_bytes())
    if as_json:
        print_json({"batch": number, **record})
        return
    guarantee = record["guarantee"]
    print_facts(
        [
            ("batch", f"{number}, {record['num_users']:,} reports"),
            ("epsilon", f"{rounded(guarantee['epsilon']['upper'], up=True)} (proved upper bound)"),
            ("delta", made.delta),
            ("no shuffler", f"epsilon0 = {rounded(record['epsilon0'], up=True)}"),
            *_budget_facts(record["parameters"]["budget"]),
            ("report", str(out / REPORT_FILE)),
        ]
    )


def _budget_facts(budget: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the epsilon left of a budget, rounded down, and the key of the last entry."""
    if budget is None:
        return []
    left, whole = (rounded(budget[each], up=False) for each in ("left", "epsilon"))
    text = f"epsilon {left} of {whole} left at delta = {budget['delta']:g}"
    return [("budget", f"{text}; spent under {budget['spent_under'][:16]}")]
