"""HTTP clients: of any server that is not trusted, and of the two servers of a task.

Answers are bounded in size and time. Every request may be repeated without harm, so a failed
request or a lost answer is tried again. Waiting times double from 0.1 to 5 seconds, each shortened
by a random part so that clients do not come back all at once.

Devices, a simulated fleet, the analyzer and the operator reach the servers of a task with it.
"""

import functools
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.collection.output import ESTIMATES_FILE, PRIVACY_FILE, REPORT_FILE
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.core.progress import Progress
from shuffledp.deploy import messages
from shuffledp.deploy.database import Keeper
from shuffledp.deploy.messages import Answer, Report, Role, SignedKeys, report_id_of
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, Reason, require_whole, uint

#: Largest size of a short answer: a status, an acknowledgement, an error.
MOST_SHORT_BYTES = 1 << 14

_LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
_SHORTEST_SECONDS = 60.0
_LEAST_BYTES_A_SECOND = 50_000.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_REQUEST_SECONDS = 30.0
_FIRST_SERVER_FAULT = 500
_LONGEST_REASON = 300
_GOOD = range(200, 300)
_TOO_SLOW = 408


class NoAnswerError(ShuffledpError, ConnectionError):
    """The server does not answer; a restarted program continues with its saved state."""


class RefusedError(ShuffledpError, ValueError):
    """The server refuses a request as wrong, with a status below 500 that is not 2xx."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


def cautions_about(url: str, server: str) -> list[str]:
    """Return a warning about a remote server without encryption in transit."""
    host = _host(url, server)
    if url.lower().startswith("https:") or host in _LOOPBACK_HOSTS:
        return []
    return [
        f"the {server} at {host} is asked over http: whoever is on the way sees who takes "
        "part and when, and can cut users off; use https"
    ]


class HttpClient(Keeper):
    """A connection to a server, with patience in seconds; messages name it by ``server``."""

    def __init__(
        self, url: str, *, server: str, patience_seconds: float, client: httpx.Client | None = None
    ) -> None:
        # A proxy of the environment must not come between two programs of one machine.
        is_near = _host(url, server) in _LOOPBACK_HOSTS
        self._url, self._server = url.rstrip("/"), server
        self._patience = patience_seconds
        self._jitter = Entropy.from_operating_system()
        self._client = client or httpx.Client(timeout=_REQUEST_SECONDS, trust_env=not is_near)
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        token: bytes | None = None,
        most: int = MOST_SHORT_BYTES,
    ) -> bytes:
        """Return the body of the answer to a request, at most ``most`` bytes; tried until it comes.

        `RefusedError` means that trying again would not change anything, and `DataError` that the
        answer is too large, or compressed.
        """
        headers = {"Accept-Encoding": "identity"}
        if token is not None:
            headers["Authorization"] = f"Signature {token.hex()}"
        give_up, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                status, body = self._answer(method, path, content, headers, most)
                if status in _GOOD:
                    return body
                problem = _reason(status, body)
                if status < _FIRST_SERVER_FAULT and status != _TOO_SLOW:
                    raise RefusedError(problem, status=status)
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
            if time.monotonic() + wait > give_up:
                patience = f"in {self._patience:g} seconds ({problem})"
                raise NoAnswerError(
                    f"no answer from the {self._server} at {self._url} {patience}: see whether it "
                    "runs, then start this again; nothing is lost"
                )
            random = float(self._jitter.words(1)[0] >> 11) * 2.0**-53
            time.sleep(wait * (0.5 + 0.5 * random))
            wait = min(2.0 * wait, _LONGEST_WAIT)

    def _answer(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str], most: int
    ) -> tuple[int, bytes]:
        """Return status and body of an answer: uncompressed, up to a size, until a deadline."""
        url = self._url + path
        request = self._client.build_request(method, url, content=content, headers=headers)
        request.extensions["trace"] = self._note_socket
        size = most + len(content or b"")
        deadline = threading.Timer(_SHORTEST_SECONDS + size / _LEAST_BYTES_A_SECOND, self._cut)
        deadline.daemon = True
        deadline.start()
        try:
            with closing(self._client.send(request, stream=True)) as response:
                return response.status_code, self._body(response, request.url.path, most)
        finally:
            deadline.cancel()

    def _note_socket(self, event: str, told: dict[str, Any]) -> None:
        """Remember the connection in use; httpx reports each one."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = told["return_value"].get_extra_info("socket")

    def _cut(self) -> None:
        """End the connection in use, so that the thread that waits for it stops waiting."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _body(self, response: httpx.Response, path: str, most: int) -> bytes:
        """Return the body of an answer."""
        answer = f"the {self._server}'s answer to {path}"
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise DataError(f"{answer} is compressed, which was not asked for: check the URL")
        if response.is_error or response.is_redirect:
            most = MOST_SHORT_BYTES
        pieces, size = [], 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > most:
                what = f"larger than {most:,} bytes, the most that an honest one has"
                raise DataError(f"{answer} is {what}: do not trust the {self._server}")
            pieces.append(piece)
        return b"".join(pieces)


def json_of(body: bytes) -> Any:
    """Return the JSON value of a body; None if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _host(url: str, server: str) -> str:
    """Return the host of a server's URL."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            httpx.URL(url)
            return parts.hostname
    except (ValueError, httpx.InvalidURL):
        pass
    raise ParameterError(f"{server} = {url!r} is no URL: write it like http://127.0.0.1:8000")


def _reason(status: int, body: bytes) -> str:
    """Return the server's message in one line."""
    try:
        return str(json_of(body)["error"])[:_LONGEST_REASON]
    except (KeyError, TypeError):
        return f"HTTP {status}"


# --------------------------------------------------------------------- servers of a task
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
                    body += Report.sealed_for(
                        task, *texts, report_id=report_id, epoch=epoch, **keys
                    ).encode()
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
