"""HTTP clients of both servers, for devices, a simulated fleet, the analyzer and the operator."""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.collection.output import ESTIMATES_FILE, PRIVACY_FILE, REPORT_FILE
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress
from shuffledp.deploy import messages
from shuffledp.deploy.http_client import MOST_SHORT_BYTES, HttpClient, json_of
from shuffledp.deploy.messages import Answer, Report, Role, SignedKeys, report_id_of
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, Reason, require_whole, uint

#: Files of a result.
FILES: Final = (ESTIMATES_FILE, PRIVACY_FILE, REPORT_FILE)

#: Seconds to try again while a server does not answer.
PATIENCE_SECONDS = 60.0
_MOST_KEYS_BYTES = 1 << 16
_MOST_FILE_BYTES = 1 << 28

# Numbers of a record are below this: whole numbers in JSON may be larger than any float.
_LARGEST: Final = 1e300

# Numbers of an estimate that pages show, where it has them.
_SHOWN: Final = ("frequency", "mean", "lower", "upper")


class Server(HttpClient):
    """Client of a task's server in one role, where devices reach it; a context manager."""

    def __init__(
        self,
        task: Task,
        role: Role,
        key: Ed25519PrivateKey | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._task, self._key, self._role = task, key, role
        url = task.shuffler_url if role == "shuffler" else task.analyzer_url
        super().__init__(url, server=role, patience_seconds=patience_seconds)

    def _ask(self, method: str, path: str, most: int, content: bytes | None = None) -> bytes:
        """Make a request, signed if there is a key."""
        path, at = self._task.path + path, uint(int(time.time()), 8)
        text = messages.signed_request(self._task.task_id, method, path, at)
        token = None if self._key is None else at + self._key.sign(text)
        return self.request(method, path, content, token=token, most=most)

    def keys(self, name: str = "keys") -> SignedKeys:
        """Return the keys to which reports for this role are sealed, or its ``analyzer_keys``."""
        role = self._role if name == "keys" else "analyzer"
        return SignedKeys.decode(self._ask("GET", f"/{name}", _MOST_KEYS_BYTES), role, self._task)

    def upload(self, body: bytes) -> list[Answer]:
        """Send reports; return the answer to each."""
        answers = self._ask("POST", "/reports", MOST_SHORT_BYTES, body)
        size = messages.report_size(*self._task.sizes)
        return messages.decode_answers(answers, len(body) // size)

    def sealed(self) -> list[int]:
        """Return the numbers of batches that can be fetched."""
        return _numbers(self._said("/batches?after=0", sealed=list)["sealed"])

    def batch(self, number: int) -> bytes:
        """Return a batch; raise if it is another one, whose reports would count in its place."""
        data = self._ask("GET", f"/batches/{number}", 1 << 34)
        if (said := messages.Batch.number_of(data)) != number:
            what = f"asked for batch {number}, the shuffler answers with batch {said}"
            raise Fault.SHUFFLER.error(f"{what}: is a cache between them?", Reason.CONFLICT)
        return data

    def forget(self, number: int) -> None:
        """Acknowledge a batch as stored, so that it can be deleted."""
        self._ask("DELETE", f"/batches/{number}", MOST_SHORT_BYTES)

    def results(self) -> dict[str, Any]:
        """Return the batches with results, the kept ones, and the refused ones with reasons."""
        found = self._said("/results", batches=list, kept=list, refused=dict)
        refused = {number: str(why) for number, why in found["refused"].items()}
        numbers = {name: sorted(_numbers(found[name])) for name in ("batches", "kept")}
        return {**numbers, "refused": refused}

    def _said(self, path: str, **kinds: type) -> Any:
        """Return a JSON object that has a value of the given type under each name."""
        found = json_of(self._ask("GET", path, 1 << 20))
        if not all(isinstance(value_at(found, name), kind) for name, kind in kinds.items()):
            raise DataError(f"the answer to {path} is not one of a shuffledp server: check the URL")
        return found

    def file(self, number: int, name: str) -> bytes:
        """Return a file of a result."""
        return self._ask("GET", f"/results/{number}/{name}", _MOST_FILE_BYTES)


def _numbers(found: list[Any]) -> list[int]:
    """Return the valid numbers of batches."""
    return [each for each in found if type(each) is int and 0 <= each < 1 << 32]


def fetch_keys(shuffler: Server, analyzer: Server) -> tuple[SignedKeys, SignedKeys]:
    """Return both lists; raise if the servers serve different lists of the analyzer's keys."""
    sealing, opening = shuffler.keys(), analyzer.keys()
    if (said := shuffler.keys("analyzer_keys")) != opening:  # some devices would get other keys
        serials = f"serials {said.serial} and {opening.serial}"
        what = f"shuffler and analyzer serve other keys of the analyzer, {serials}: "
        remedy = "send nothing now; if it stays so, ask the operator"
        raise Fault.OPERATOR.error(what + remedy, Reason.CONFLICT)
    return sealing, opening


@contextmanager
def servers_of(
    task: Task, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[tuple[Server, SignedKeys, SignedKeys]]:
    """Yield a task's shuffler, and the lists of both servers' keys, as `fetch_keys` does."""
    how: Any = {"patience_seconds": patience_seconds}
    with Server(task, "shuffler", **how) as shuffler, Server(task, "analyzer", **how) as analyzer:
        yield shuffler, *fetch_keys(shuffler, analyzer)


def send_values(
    task: Task,
    values: Iterable[Any],
    *,
    num_values: int,
    codes: Sequence[bytes] | None = None,
    now: Callable[[], float] = time.time,
    on_progress: Progress | None = None,
) -> dict[str, int]:
    """Send the answers of simulated devices, each randomized once; return the counts of answers.

    ``values`` are blocks as a checked column yields them, for a search's round as
    `client.fleet_values` does; ``codes`` are one each, if any. Reports under way when this process
    is killed may be sent twice by another run: real devices keep their report, see
    `client.Client`.
    """
    asked, task_id = task.asked, task.task_id
    entropy = Entropy.from_operating_system()
    at_once = messages.most_reports(*task.sizes)
    if task.epoch_at(now()) is None:  # before the keys, which end with the task
        raise DataError(task.state_at(now()))
    counts, done = dict.fromkeys((each.name.lower() for each in Answer), 0), 0
    with servers_of(task) as (shuffler, sealing, opening):
        for each in (sealing, opening):
            each.require_current(now())
        for block in values:
            reports = asked.codec.encode(asked.randomizer.randomize(block, entropy))
            for start in range(0, len(reports), at_once):
                some = reports[start : start + at_once]
                epoch = task.epoch_at(now())
                if epoch is None:
                    raise DataError(f"{task.state_at(now())}; {done:,} reports were sent")
                keys: dict[str, Any] = {
                    "shuffler": sealing.key_of_epoch(epoch),
                    "analyzer": opening.key_from(epoch),
                }
                body = b""
                for place, report in enumerate(some, done):
                    report_id = report_id_of(codes[place] if codes else None, task_id, epoch)
                    texts = task.with_own_dummies(report, entropy)
                    ids: Any = {"report_id": report_id, "epoch": epoch}
                    body += Report.sealed_for(task, *texts, **ids, **keys).encode()
                for answer in shuffler.upload(body):
                    counts[answer.name.lower()] += 1
                done += len(some)
                if on_progress is not None:
                    on_progress("sending", done, num_values)
    return counts


def collect_results(
    task: Task,
    operator_key: Ed25519PrivateKey,
    folder: Path,
    *,
    batch: int | None = None,
    wait_seconds: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Fetch the newest result, or the result of one batch, into a folder.

    Return the batch's number and the privacy record, whose guarantee is recomputed from the task
    for the number of honest reports that the analyzer states. Waits until there is a result, at
    most ``wait_seconds``; ``on_wait`` is given the reason, and notice when the task is over.
    """
    if batch is not None:
        require_whole("batch", batch, 1, task.num_epochs + 1)
    waited, step = 0.0, min(1.0, task.epoch_seconds / 10)
    was_outside: bool | None = None
    with Server(task, "analyzer", operator_key) as analyzer:
        while True:
            found = analyzer.results()
            numbers = found["batches"]
            if (batch is None and numbers) or batch in numbers:
                break
            if str(batch) in found["refused"] or (batch is None and found["refused"]):
                reasons = "; ".join(found["refused"].values())
                raise DataError(f"the analyzer refuses what the shuffler released: {reasons}")
            if batch is not None:
                _require_to_come(task, batch, found)
            if wait_seconds is not None and waited >= wait_seconds:
                raise DataError(f"no result yet, {waited:g} seconds on: {_awaited(task)}")
            is_outside = task.epoch_at(time.time()) is None  # the task is over, or not begun
            if on_wait is not None and is_outside is not was_outside:
                on_wait(f"no result yet: {_awaited(task)}")
            was_outside = is_outside
            sleep(step)
            waited += step
        number = numbers[-1] if batch is None else batch
        for name in FILES:
            (folder / name).write_bytes(analyzer.file(number, name))
    return number, checked_record(task, (folder / PRIVACY_FILE).read_bytes())


def _require_to_come(task: Task, batch: int, found: dict[str, Any]) -> None:
    """Raise if a batch without a result will not get one: numbers only grow."""
    if batch in found["kept"] and task.adds_dummies:
        raise DataError(f"batch {batch} has no result: no report in it is valid and new")
    if batch in found["kept"]:
        what = f"the analyzer keeps batch {batch}: too few of its reports are honest for certain; "
        what += "its valid ones count with a later batch: leave --batch out"
        raise DataError(what)
    if batch < max(found["batches"], default=0):
        known = ", ".join(map(str, found["batches"]))
        raise DataError(f"there is no result of batch {batch}: choose one of {known}")


def _awaited(task: Task) -> str:
    """Return the event for which a result waits."""
    when = "when its epoch and the time of grace are over, if it has enough reports"
    return f"a batch is released {when}; {task.state_at(time.time())}"


def checked_record(task: Task, data: bytes) -> dict[str, Any]:
    """Return an analyzer's privacy record, if it is the task's and its guarantee is proved.

    Raises
    ------
    ProtocolError
        The analyzer's fault, for anything else.
    """
    found = json_of(data)
    read = functools.partial(value_at, found)
    honest, users = read("parameters", "num_honest"), read("num_users")
    epsilon, loss = read("guarantee", "epsilon", "upper"), read("epsilon0")
    delta, budget = read("guarantee", "delta"), read("parameters", "budget")
    most_loss = task.asked.randomizer.profile.epsilon0
    is_bare = loss is None and math.isinf(most_loss)
    numbers = [epsilon, delta, 0 if is_bare else loss, read("confidence")]
    if budget is not None:
        numbers += [value_at(budget, name) for name in ("left", "spent", "epsilon", "delta")]
    rows = read("estimates")
    if is_table := isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        shown = (row.get(name) for row in rows for name in _SHOWN)
        numbers += [each for each in shown if each is not None]
    is_number = all(type(each) in (int, float) and abs(each) < _LARGEST for each in numbers)
    is_keyed = budget is None or isinstance(value_at(budget, "spent_under"), str)
    is_count = type(honest) is type(users) is int and 1 <= honest <= users < 1 << 63
    is_ours = read("parameters", "task_id") == task.task_id.hex()
    if not (is_table and is_number and is_keyed and is_count and is_ours):
        what = "the privacy record is none of this task, or lacks what it should say"
        raise Fault.ANALYZER.error(f"{what}: do not publish it", Reason.MALFORMED)
    proved = task.guarantee(honest).epsilon_upper
    if task.dummies is not None:
        _check_dummies(task, found, honest)
    loss = most_loss if is_bare else loss
    if epsilon < proved * (1.0 - 1e-9) or delta != float(task.delta) or loss != most_loss:
        what = f"the analyzer states epsilon = {epsilon:.6g} at delta = {delta:g} and epsilon0 = "
        what += f"{loss:g} for {honest:,} honest reports, where {proved:.6g} is proved"
        raise Fault.ANALYZER.error(f"{what}: do not publish it", Reason.FORGED)
    record: dict[str, Any] = found
    return record


def _check_dummies(task: Task, found: Any, num_honest: int) -> None:
    """Raise unless a record states the guarantee without the task's dummies."""
    least = task.without_dummies(num_honest).epsilon_upper
    said = value_at(found, "without_dummies", "epsilon", "upper")
    number, laws = value_at(found, "num_dummies"), value_at(found, "dummies")
    is_more = type(said) in (int, float) and said >= least * (1.0 - 1e-9)
    if not (said is None or is_more) or laws != [str(task.dummies)] or type(number) is not int:
        what = f"the analyzer states epsilon = {said} without dummies, which are {number} of the "
        what += f"laws {laws}, where {least:.6g} is proved and the law is {task.dummies}"
        raise Fault.ANALYZER.error(f"{what}: do not publish it", Reason.FORGED)


def value_at(found: Any, *names: str) -> Any:
    """Return the value under names in nested JSON objects; None if there is none."""
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found
