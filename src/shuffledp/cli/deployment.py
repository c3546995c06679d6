"""``shuffledp task``, ``serve`` and ``collect``: a collection across many devices."""

import math
import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.asked import QUESTION, Asked
from shuffledp.cli.options import cli, options, require_service, taken
from shuffledp.collection.dummies import protect_alone
from shuffledp.collection.output import ESTIMATES_FILE, REPORT_FILE
from shuffledp.core.bound import finite
from shuffledp.core.dummies import DummyLaw
from shuffledp.report import dummies, wording
from shuffledp.report.formatting import given as plain
from shuffledp.report.formatting import rounded

_MOST_CODES = 10_000_000  # which take a minute to write, and half a gigabyte
_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")

LISTEN = """
    Addresses:
    --shuffler ADDRESS:PORT  Address of the shuffler; health and metrics are one port on.
        [default: 127.0.0.1:8410]
    --analyzer ADDRESS:PORT  Address of the analyzer.  [default: 127.0.0.1:8420]
    """


def _is_url(url: str) -> bool:
    """Return True for a URL of a server, with a host and a port that clients can ask."""
    try:
        parts = urlsplit(url)
        return bool(_URL.fullmatch(url) and parts.hostname and parts.port != 0)
    except ValueError:  # of the port, or of an unclosed bracket
        return False


@cli.group()
def task() -> None:
    """Make or check a task, on which devices, shuffler and analyzer agree."""


@task.command(
    epilog="Example: shuffledp task create --domain yes,no --epsilon0 2 --epsilon 0.2 --delta 1e-8 "
    "--min-batch 10000 --epoch 1d --out task/"
)
@options(
    f"""
    Question:
    {QUESTION}
    text=--question TEXT  Wording of the question, which devices show.  [=]
    --info TEXT           Name of the task.  [default: a collection]
    Privacy:
    --epsilon0 FLOAT  Local epsilon of every report.
    --epsilon X  Promised epsilon of each batch, in nats.
    --delta X  Promised delta of each batch, such as 1e-8.
    {shared.RANDOMIZER}
    plan_file=--plan FILE
        Take question, randomizer, epsilon0, epsilon, delta and dummies from `shuffledp plan --out`.
    --dummies LAW
        The shuffler adds dummies of each answer, such as laplace:2.025:27: then epsilon holds
        whoever else lies, also with --min-batch 1. Or each device sends some of each answer on
        average: poisson:0.05. Only with k-rr.
    --no-local-noise  Instead of --epsilon0: send answers as they are, hidden by dummies alone. The
        shuffler and the analyst together would see every answer.
    Batches:
    --min-batch N  Fewest reports in a released batch: distinct ones that the shuffler can open.
        [required]
    --honest-fraction SHARE
        Share of an epoch's reports that is honest for certain: only these count.  [default: 1.0]
    num_codes=--codes N
        Number of codes: accept reports with a code only, each code once an epoch.  [=0]
    epoch_seconds=--epoch DURATION  Time in which reports are gathered for a batch, such as 30s,
        15m, 6h or 1d.  [default: 1d]
    --num-epochs N  Number of epochs; the first begins now.  [default: 30]
    --grace DURATION  Time after an epoch in which its reports are still accepted.  [default: 1h]
    --short-batch [hold|drop]  Add a batch that is too small to the next epoch's reports, or delete
        it.  [default: hold]
    --seal [x25519|hybrid]
        Encryption of reports to both servers. Somebody who records x25519 reports and breaks X25519
        later learns whose report is whose; hybrid adds ML-KEM-768, and 2,176 bytes a report.
        [default: x25519]
    {LISTEN}
    --shuffler-url TEXT  URL of the shuffler for devices; by default http and its address.
    --analyzer-url TEXT  URL of the analyzer for devices.
    Output:
    {shared.OUT.format("the task and its keys")}
    {shared.JSON}
    """,
    epsilon=str,
    delta=str,
)
def create(
    *, text: str, plan_file: Path | None, honest_fraction: float, out: Path, **given: Any
) -> None:
    """Write a task, its keys, and the settings of its two servers.

    task.bin is public. Give shuffler.toml and the folder shuffler to the shuffler's operator, and
    analyzer.toml and the folder analyzer to the analyzer's; keep operator.key. The shuffler
    protects only if these are different people. Epochs begin now.
    """
    from shuffledp.deploy.creating import create_task
    from shuffledp.deploy.messages import new_codes

    fields = taken(given, "info", "epoch_seconds", "num_epochs", "min_batch", "short_batch", "seal")
    names = ("randomizer", "epsilon0", "epsilon", "delta", "dummies", "no_local_noise")
    promised = taken(given, *names)
    asked, num_codes = Asked(given), given["num_codes"]
    if not 0 <= num_codes <= _MOST_CODES:
        raise click.UsageError(f"--codes {num_codes} is not in [0, {_MOST_CODES:,}]: make fewer")
    remedy = ""
    if plan_file is not None:
        promise, remedy = _planned(plan_file, asked, text, honest_fraction, **promised)
    else:
        promise = _promised(asked, text, **promised)
    urls = {name: given[name] for name in ("shuffler_url", "analyzer_url") if given[name]}
    for name, url in urls.items():
        if not _is_url(url):
            what = f"--{name.replace('_', '-')} {url!r} is no URL"
            raise click.UsageError(f"{what}: write it like https://shuffler.example")
    made = create_task(
        out,
        listen=(given["shuffler"], given["analyzer"]),
        grace_seconds=given["grace"],
        honest_fraction=honest_fraction,
        codes=new_codes(num_codes),
        remedy=remedy,
        **fields | promise | urls,
    )
    if 0 < num_codes < made.min_batch:
        few = f"codes = {num_codes:,} let in fewer reports an epoch than the least batch of "
        console.print_warnings(
            [f"{few}{made.min_batch:,}: a batch needs several epochs, or never comes about"]
        )
    say_task(made, out / "task.bin")


def _promised(
    asked: Asked,
    text: str,
    *,
    randomizer: str | None,
    epsilon0: float | None,
    no_local_noise: bool,
    dummies: DummyLaw | None,
    **promised: str | None,
) -> dict[str, Any]:
    """Return the promise that the options state."""
    if no_local_noise and (epsilon0 is not None or dummies is None):
        wrong = "leave --epsilon0 out" if epsilon0 is not None else "give --dummies"
        raise click.UsageError(f"--no-local-noise sends answers that only dummies hide: {wrong}")
    loss = math.inf if no_local_noise else epsilon0
    if None in {loss, *promised.values()}:
        raise click.UsageError("give --epsilon0, --epsilon and --delta, or --plan")
    if math.isinf(loss or 0.0) and not no_local_noise:
        raise click.UsageError("epsilon0 = inf: say --no-local-noise in its place, with --dummies")
    name = "k-rr" if randomizer is None and dummies is not None else randomizer
    terms = asked.terms(
        name, loss or 0.0, text, no_local_noise=no_local_noise, with_dummies=dummies is not None
    )
    return {"asked": terms, "dummies": dummies, **promised}


def _planned(
    file: Path,
    asked: Asked,
    text: str,
    honest_fraction: float,
    *,
    epsilon: str | None,
    **others: object,
) -> tuple[dict[str, Any], str]:
    """Return the promise of a saved plan, whose users are all honest, and advice for an error.

    The option --epsilon replaces the planned epsilon.
    """
    from shuffledp.deploy.creating import promise_of

    if beside := shared.flags_given(others) or ["the question"] * asked.is_given:
        raise click.UsageError(f"--plan says what is asked, and how: leave {beside[0]} out")
    found = sdp.Plan.load(file)
    remedy = (
        f"; the plan is for {found.num_users:,} honest users: give --min-batch "
        f"{math.ceil(found.num_users / honest_fraction)}, plan for fewer users, or promise more "
        "with --epsilon"
    )
    if protect_alone(found.dummies):
        remedy = ""
    return promise_of(
        found, text, epsilon=epsilon or plain(found.target_epsilon), delta=plain(found.target_delta)
    ), remedy


@task.command(epilog="Example: shuffledp task check task/task.bin")
@click.argument("task_file", type=shared.PATH, required=False)
@options(
    f"""
    DAP:
    --dap FILE  TaskConfiguration of DAP (draft-ietf-ppm-dap-18), instead of a task of shuffledp.
    --epsilon0 FLOAT  Local epsilon of each device, in nats.
    --delta FLOAT  Central delta of a batch, such as 1e-8.
    --honest-fraction SHARE  Share of a batch that is honest for certain; by default all.
    Output:
    {shared.JSON}
    """,
)
def check(*, task_file: Path | None, dap: Path | None, **numbers: float | None) -> None:
    """Recompute the guarantee of a task, and print its question; refuse untrue numbers.

    With --dap: compute the guarantee of the smallest batch of a DAP task whose devices submit the
    outcome of k-ary randomized response.
    """
    from shuffledp.deploy.servers.settings import read_task

    if task_file is None and dap is not None:
        _check_dap(dap, **{name: each for name, each in numbers.items() if each is not None})
    elif task_file is None or dap is not None:
        raise click.UsageError("give a task, or --dap with a file")
    elif given := shared.flags_given(numbers):
        raise click.UsageError(f"{given[0]} is for --dap: a task says its own")
    else:
        made = read_task(task_file)
        made.check()
        say_task(made, task_file)


def _check_dap(path: Path, **numbers: float) -> None:
    """Print the guarantee of the smallest batch of a DAP task."""
    from shuffledp.deploy.dap import DapTask
    from shuffledp.deploy.database import bytes_of

    if not {"epsilon0", "delta"} <= numbers.keys():
        raise click.UsageError("--dap needs --epsilon0 and --delta: no DAP task says them")
    made = DapTask.decode(bytes_of(path))
    law: Any = {"randomizer": "k-rr", "domain_size": made.num_outcomes} | numbers
    found = sdp.account(num_users=made.min_batch_size, **law)
    record = {
        "task": str(path),
        "vdaf": made.vdaf,
        "num_outcomes": made.num_outcomes,
        "min_batch": made.min_batch_size,
        "num_honest": found.num_users,
        "guarantee": found.to_json_dict(),
        "epsilon0": numbers["epsilon0"],
    }
    facts = [
        ("task", f"{path}, {made.info.decode(errors='backslashreplace')}"),
        ("aggregators", f"{made.leader_url} and {made.helper_url}"),
        ("VDAF", f"{made.vdaf}, {made.num_outcomes:,} outcomes"),
        ("least batch", f"{made.min_batch_size:,} reports, of which {found.num_users:,} count"),
        *wording.guarantee_facts(found)[:3],
        ("if they collude", f"epsilon0 = {rounded(numbers['epsilon0'], up=True)}"),
    ]
    if not console.print_json(record):
        console.print_facts(facts)


def say_task(made: "sdp.deploy.Task", path: Path) -> None:
    """Print the question and the promise of a task."""
    from shuffledp.deploy.messages import report_size

    if not console.is_json():
        console.print_facts([("file", str(path)), ("id", made.task_id.hex()), *task_facts(made)])
        return
    record = {
        "task": str(path),
        "task_id": made.task_id.hex(),
        "asked": made.asked.to_json_dict(),
        "min_batch": made.min_batch,
        "num_honest": made.num_honest,
        "promised": {"epsilon": float(made.epsilon), "delta": float(made.delta)},
        "guarantee": made.guarantee().to_json_dict(),
        "epsilon0": finite(made.asked.randomizer.epsilon0),
    }
    if made.seal != "x25519":
        record |= {"seal": made.seal, "upload_bytes": report_size(*made.sizes)}
    if made.dummies is not None:
        record |= {
            "dummies": str(made.dummies),
            "without_dummies": made.without_dummies().to_json_dict(),
        }
    console.print_json(record)


def task_facts(made: "sdp.deploy.Task") -> list[tuple[str, str]]:
    """Return the information for participants, computed here."""
    from shuffledp.deploy.messages import report_size
    from shuffledp.report.page import rendered_rows

    info, size = re.sub(r"\s+", " ", made.info), report_size(*made.sizes)
    return rendered_rows(
        "task.txt", made=made, info=info, upload_bytes=size, wording=wording, dummies=dummies
    )


@cli.command(epilog="Example: shuffledp collect task/ --out results/")
@click.argument("folder", type=shared.PATH)
@options(
    f"""
    Batch:
    --batch N  Number of the batch; by default the newest.
    --wait SECONDS  Longest wait; by default unlimited.
    {shared.RESULTS}
    """,
)
def collect(
    *, folder: Path, out: Path, batch: int | None, wait: float | None, overwrite: bool
) -> None:
    """Wait for a batch of the task in FOLDER, and fetch its results.

    Needs operator.key beside task.bin.
    """
    require_service()
    from shuffledp.deploy.remote import collect_results
    from shuffledp.deploy.servers.settings import folder_of, read_task, signing_key
    from shuffledp.report.page import rendered_rows

    folder = folder_of(folder)
    made = read_task(folder / "task.bin")
    key = signing_key(folder / "operator.key")
    with console.new_folder(out, overwrite=overwrite) as new:
        number, record = collect_results(
            made, key, new, batch=batch, wait_seconds=wait, on_wait=partial(click.echo, err=True)
        )
    if console.print_json({"batch": number, **record}):
        return
    facts = rendered_rows(
        "collected.txt",
        made=made,
        number=number,
        record=record,
        rounds=made.asked.rounds,
        wording=wording,
        dummies=dummies,
    )
    files = {"estimates": ESTIMATES_FILE, "report": REPORT_FILE}.items()
    console.print_facts([*facts, *((name, str(out / file)) for name, file in files)])
