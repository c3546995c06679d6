"""A new task: its fields that a plan decides, and the folder with its keys and settings."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.collection.plan import Plan
from shuffledp.collection.questions.rounds import Search
from shuffledp.composition.release import honest_users
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.messages import report_size
from shuffledp.deploy.servers.settings import port_on, write_task
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import SIZES, ProtocolError

# Fields of a task whose operator does not state them.
_USUAL: Final[dict[str, Any]] = {
    "info": "a collection", "epoch_seconds": 86_400, "num_epochs": 30, "short_batch": "hold"
}  # fmt: skip


def first_round(question: Any, *, is_for_all: bool) -> Any:
    """Return a question as devices get it: a search for popular texts at its first round."""
    if not question.has_rounds:
        return question
    key = Entropy.from_operating_system().words(2).tobytes().hex()
    return replace(question, search=Search(key, is_for_all=is_for_all))


def promise_of(plan: Plan, text: str = "", **said: str) -> dict[str, Any]:
    """Return the fields of a task that a plan decides, with epsilon and delta as given.

    Raise `DataError` if devices cannot answer it. A plan from a file or a form assumes a uniform
    shuffle, the only kind that a sorted batch realizes.
    """
    if plan.rounds != 1 and not plan.question.has_rounds:
        raise DataError(
            f"the plan has {plan.rounds:,} rounds about the same people, and a device answers a "
            "task once: plan one round"
        )
    if plan.dummies and plan.randomizer.name != "k-rr":
        raise DataError(
            f"the plan has {plan.randomizer.name}, for which each user sends several messages, and "
            "a device answers a task with one: plan without dummies"
        )
    name, loss = plan.randomizer.name, plan.asked_epsilon0
    question = first_round(plan.question, is_for_all=bool(plan.dummies))
    asked = AskedTerms.of(question, name, loss, text, no_local_noise=math.isinf(loss))
    return {"asked": asked, "dummies": next(iter(plan.dummies), None), **said}


def sealed_sizes(plan: Plan) -> dict[str, int]:
    """Return the bytes of an upload of a plan's task by seal; none if devices cannot answer it."""
    try:
        promised = promise_of(plan)
    except DataError:
        return {}
    asked, law = promised["asked"], promised["dummies"]
    by_users = law is not None and law.sender == "users"
    slots = law.rare_number(asked.num_answers) if by_users else 1
    return {kind: report_size(asked.codec.num_report_bytes, slots, kind) for kind in SIZES}


def create_task(
    folder: Path,
    *,
    listen: tuple[str, str] = ("127.0.0.1:8410", "127.0.0.1:8420"),
    grace_seconds: float = 3_600.0,
    honest_fraction: float = 1.0,
    codes: Sequence[bytes] = (),
    remedy: str = "",
    **fields: Any,
) -> Task:
    """Write a task that begins now, its keys, and the settings of both servers into a new folder.

    Devices reach the servers where they listen, unless ``fields`` has other URLs. ``remedy`` is
    added to the error if the promise does not hold.
    """
    if folder.exists():
        raise ParameterError(f"{folder} exists: choose another folder with out=...")
    for each in listen:
        port_on(each, 1)  # of its inner port; raises before anything is written
    if fields["asked"].search:  # the devices of a round must be in one epoch
        fields["num_epochs"] = 1
    operator = Ed25519PrivateKey.generate()
    urls = (f"http://{each}" for each in listen)
    reached = dict(zip(("shuffler_url", "analyzer_url"), urls, strict=True))
    made = Task(
        **_USUAL | reached | fields,
        start=0,
        honest_ppm=honest_users(1_000_000, honest_fraction),
        operator_key=operator.public_key().public_bytes_raw(),
    )
    try:
        made.check()
    except ProtocolError as error:
        raise DataError(f"{error}{remedy}") from None
    made = replace(made, start=int(time.time()))  # the check may have taken minutes
    write_task(folder, made, operator, listen=listen, grace_seconds=grace_seconds, codes=codes)
    return made
