"""A client: randomizes an answer once, keeps the report, and sends the same one until it arrives.

It needs neither compiled loops nor tables: `numpy` and `cryptography` are enough, and `httpx` if
it sends by itself.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import KEY_BYTES, Entropy, draw_below
from shuffledp.core.errors import DataError, needing
from shuffledp.deploy.database import Database, Keeper, Layout
from shuffledp.deploy.messages import Answer, Report, SealKey, SignedKeys, report_id_of, split
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, Reason

_TABLES: Final = (
    "CREATE TABLE reports (round INTEGER PRIMARY KEY, id BLOB NOT NULL, "
    "epoch INTEGER NOT NULL, report BLOB NOT NULL, is_done INTEGER NOT NULL)",
)
_STORE: Final = Layout(kind="client store", mark=b"sdpc", version=1, tables=_TABLES)

# Answers after which sending again changes nothing. A late report stays late: under an id of the
# next epoch, a report whose first answer was lost would count twice.
_FINAL: Final = (Answer.ACCEPTED, Answer.REPLAYED, Answer.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the tasks that a user agrees to.

    Parameters
    ----------
    max_epsilon0 : float
        Largest local epsilon of a report, in nats: the user's protection if the shuffler fails.
    least_batch : int
        Smallest number of reports in a batch with the user's report, at least 1; by default 2, as
        a shuffler that releases single reports hides nobody, unless it adds the task's dummies:
        with them a limit of 2 is met by any batch.
    operator_key : bytes, optional
        Public key of the only operator whose tasks are accepted; by default any operator.
    no_local_noise : bool
        Whether answers may be sent without noise, so that shuffler and analyst together would see
        them, if ``max_epsilon0`` is infinite too; refused by default.

    Examples
    --------
    >>> Limits(max_epsilon0=2.0).least_batch
    2
    """

    max_epsilon0: float = float("inf")
    least_batch: int = 2
    operator_key: bytes | None = None
    no_local_noise: bool = False

    def require(self, task: Task) -> None:
        """Raise unless the user agrees to a task."""
        loss, least = task.asked.rounds * task.asked.randomizer.epsilon0, self.least_batch
        if loss == float("inf") and not self.no_local_noise:
            what = "the task sends answers without noise: shuffler and analyst together would see "
            what += "yours; leave it out, or agree with no_local_noise (--no-local-noise)"
            raise Fault.OPERATOR.error(what, Reason.LIMIT)
        if task.adds_dummies and least == 2:
            least = 1
        if not (loss <= self.max_epsilon0 and task.min_batch >= least):
            asked = f"epsilon0 = {loss:.6g} and batches of at least {task.min_batch:,} reports"
            agreed = f"{self.max_epsilon0:g} and {self.least_batch:,}"
            what = f"the task asks for {asked}; the limits are {agreed}: "
            raise Fault.OPERATOR.error(f"{what}leave it out, or agree to more", Reason.LIMIT)
        if self.operator_key not in {None, task.operator_key}:
            what = f"the task is of the operator {task.operator_key.hex()}, not of the one that "
            raise Fault.OPERATOR.error(f"{what}you named: send nothing", Reason.FORGED)


class Kept(NamedTuple):
    """A randomized report as the client keeps it; the answer itself is kept nowhere."""

    report_id: bytes
    epoch: int
    #: The report in bytes; if devices send dummies, it and its dummies in bytewise order.
    report: bytes


class Client(Keeper):
    """One user's part in one task; a context manager that holds the store.

    Parameters
    ----------
    task : Task
        The task; its guarantee is computed anew.
    store : path, optional
        File for the randomized report, readable by its owner only. By default a file of the task
        in the user's folder for state, so that nobody answers twice by mistake.
    limits : Limits, optional
        Limits that the user agrees to, by default any task that releases no single reports.

    Raises
    ------
    ProtocolError
        The operator's fault, if the task promises more than is proved, or is beyond the limits.
    DataError
        If the store is another task's, or in use.

    Notes
    -----
    The answer itself is kept nowhere. Killed at any moment and started again with the same store it
    sends the same report under the same id, which counts once; with the same dummies, if the task
    has devices send some.

    Examples
    --------
    >>> import tempfile
    >>> import shuffledp as sdp
    >>> asked = sdp.deploy.AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0)
    >>> task = sdp.deploy.Task(
    ...     info="a survey", shuffler_url="https://s.example", analyzer_url="https://a.example",
    ...     start=0, epoch_seconds=86_400, num_epochs=100_000, min_batch=10_000, honest_ppm=900_000,
    ...     short_batch="hold", epsilon="0.12", delta="1e-8", asked=asked, operator_key=bytes(32),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Client(task, f"{folder}/device.db") as client:
    ...         kept = client.report("yes")  # randomized, and on disk; then client.send()
    ...         client.report("no") == kept
    True
    """

    def __init__(
        self,
        task: Task,
        store: str | os.PathLike[str] | None = None,
        *,
        limits: Limits | None = None,
    ) -> None:
        task.check()
        (limits or Limits()).require(task)
        self.task, self._round = task, task.round
        self._draws = task.asked.search is not None and not task.asked.search.is_for_all
        # Names of facts end with the round, since all rounds of a search share one store.
        self._of_round = f" of round {task.round}" if task.asked.search else ""
        if store is None:
            store = default_store(task)
            store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._store = Database(Path(store), _STORE, collection=task.collection_id)
        try:
            self._require_round()
        except BaseException:
            self.close()
            raise

    def _require_round(self) -> None:
        """Raise for a round of a search whose draw is not in this store, or of two tasks."""
        if not self._draws:
            return
        if self._round > 1 and self._fact("turn", "") is None:
            raise DataError(
                f"this is round {self._round} of a search, and the store knows none before with "
                "the same promise: a device that did not answer round 1, or lost its store, cannot "
                "join, for it would answer twice; leave it out, or give the store of round 1 with "
                "store=..."
            )
        if self._fact("task") not in {None, self.task.task_id}:
            raise DataError(
                f"round {self._round} of this search was answered here in another task: a device "
                "answers each round once; send nothing"
            )

    def _fact(self, name: str, of: str | None = None) -> Any:
        """Return the fact of this task, or of the whole search, under a name."""
        return self._store.fact(name + (self._of_round if of is None else of))

    def _note(self, name: str, value: int | bytes) -> None:
        """Store a fact of this task."""
        self._store.set_fact(name + self._of_round, value)

    @property
    def num_missed(self) -> int:
        """Number of earlier rounds of a search not known to have a report of this device.

        Its reports in other rounds are hidden by fewer reports than the task states.
        """
        if not self._draws:
            return 0
        sent = (Answer.ACCEPTED, Answer.REPLAYED)
        answers = (self._fact("answer", f" of round {each}") for each in range(1, self._round))
        return sum(each not in sent for each in answers)

    def report(
        self,
        value: Any,
        now: float | None = None,
        *,
        code: bytes | None = None,
        entropy: Entropy | None = None,
    ) -> Kept:
        """Randomize an answer, once; later calls return the same report, whatever the answer.

        The report is on disk before this returns. Its epoch is the epoch of ``now``, seconds since
        1970, by default the clock's time. ``code`` is for tasks that admit only holders of codes; a
        report that was not admitted gets its id from the code that is given now.

        Raises
        ------
        DataError
            If the value is not a possible answer.
        ProtocolError
            If the task takes no reports at this time.
        """
        if (kept := self.kept()) is not None:
            return kept if code is None else self._with_code(kept, code)
        now = time.time() if now is None else now
        epoch = self.task.epoch_at(now)
        if epoch is None:
            reason = Reason.EARLY if now < self.task.start else Reason.LATE
            raise Fault.CALLER.error(self.task.state_at(now), reason)
        asked, entropy = self.task.asked, entropy or Entropy.from_operating_system()
        question: Any = asked.question
        values, turn = question.value_of_one(value), None
        if asked.search is not None:
            turn = self._turn(entropy) if self._draws else None
            values = question.round_codes(values, turn)
        reports = asked.randomizer.randomize(values, entropy)
        report_id = report_id_of(code, self.task.task_id, epoch)
        texts = self.task.with_own_dummies(asked.codec.encode(reports)[0], entropy)
        found = Kept(report_id, epoch, b"".join(texts))
        with self._store.transaction():
            self._store.change("INSERT INTO reports VALUES (?, ?, ?, ?, 0)", (self._round, *found))
            if turn is not None:
                self._store.set_fact("turn", int(turn[0]))
                self._note("task", self.task.task_id)
        return found

    def _turn(self, entropy: Entropy) -> NDArray[np.int64]:
        """Return the round that this device answers, drawn once for the whole search."""
        known, question = self._fact("turn", ""), self.task.asked.question
        if known is None:
            known = draw_below(entropy, 1, question.num_rounds)[0]
        return np.array([known], dtype=np.int64)

    def _with_code(self, kept: Kept, code: bytes) -> Kept:
        """Return the kept report, under the id of a code if it was refused under another.

        A report that may have arrived keeps its id: under another one it would count twice. Hence
        the refusal is forgotten with the id that it is about.
        """
        if self._fact("answer") != Answer.NOT_ADMITTED:
            return kept
        report_id = report_id_of(code, self.task.task_id, kept.epoch)
        with self._store.transaction():
            changed = report_id, self._round
            self._store.change("UPDATE reports SET id = ? WHERE round = ?", changed)
            self._store.change("DELETE FROM facts WHERE name = ?", ("answer" + self._of_round,))
        return kept._replace(report_id=report_id)

    def kept(self) -> Kept | None:
        """Return the randomized report, also once it is done; None if there is none."""
        query = "SELECT id, epoch, report FROM reports WHERE round = ?"
        rows = self._store.rows(query, (self._round,))
        return Kept(*rows[0]) if rows else None

    def _kept_to_send(self) -> Kept:
        """Return the randomized report; raise if there is none."""
        if (kept := self.kept()) is None:
            raise DataError("there is no report to send: answer first")
        return kept

    def choose_keys(
        self, *, shuffler: SignedKeys, analyzer: SignedKeys, now: float
    ) -> tuple[SealKey, SealKey]:
        """Return the keys to seal the kept report to: the shuffler's and the analyzer's.

        Raises
        ------
        ProtocolError
            For a list that has expired, or has a smaller serial than one that was seen before.
        """
        lists = {"shuffler_serial": shuffler, "analyzer_serial": analyzer}
        for name, each in lists.items():
            each.require_current(now, self._fact(name) or 0)
        kept = self._kept_to_send()
        with self._store.transaction():
            for name, each in lists.items():
                self._note(name, each.serial)
        return shuffler.key_of_epoch(kept.epoch), analyzer.key_from(kept.epoch)

    def sealed(self, *, shuffler: SealKey, analyzer: SealKey) -> bytes:
        """Return the kept report sealed anew for these keys, under the same id."""
        kept, size = self._kept_to_send(), self.task.asked.codec.num_report_bytes
        return Report.sealed_for(
            self.task,
            *split(kept.report, size),
            report_id=kept.report_id,
            epoch=kept.epoch,
            shuffler=shuffler,
            analyzer=analyzer,
        ).encode()

    def send(self, now: float | None = None, *, patience_seconds: float = 60.0) -> Answer:
        """Send the kept report, and return the shuffler's answer; once it is done, send nothing.

        A report answered with EARLY, UNKNOWN_KEY or NOT_ADMITTED may be sent again later; all other
        answers are final. ``now`` is the time, seconds since 1970, by default the clock's.

        Raises
        ------
        DataError
            If there is no report yet.
        ProtocolError
            If a server breaks the protocol, or its keys are over, old or not the other's.
        NoAnswerError
            If a server does not answer in this time: nothing is lost, send again later.
        """
        if self.is_done:
            return Answer(self._fact("answer"))
        self._kept_to_send()  # raises before any server is asked for keys
        with needing("httpx", "sending", "httpx"):
            from shuffledp.deploy.remote import servers_of
        with servers_of(self.task, patience_seconds) as (shuffler, sealing, opening):
            now = time.time() if now is None else now
            outer, inner = self.choose_keys(shuffler=sealing, analyzer=opening, now=now)
            (answer,) = shuffler.upload(self.sealed(shuffler=outer, analyzer=inner))
        self.done(answer)
        return answer

    @property
    def is_done(self) -> bool:
        """True if nothing is left to send."""
        query = "SELECT is_done FROM reports WHERE round = ?"
        return bool(self._store.value(query, (self._round,)))

    def done(self, answer: Answer = Answer.ACCEPTED) -> None:
        """Store the shuffler's answer; if it is final, the report is not sent again."""
        with self._store.transaction():
            if answer in _FINAL:
                change = "UPDATE reports SET is_done = 1 WHERE round = ?"
                self._store.change(change, (self._round,))
            self._note("answer", int(answer))


def default_store(task: Task) -> Path:
    """Return the default path of the store of a task, or of all rounds of a search."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "shuffledp" / f"{task.collection_id.hex()}.db"


def fleet_turns(task: Task, num_values: int) -> NDArray[np.uint64]:
    """Return the round that each simulated device answers, from a secret of this machine's user.

    The secret is kept in the default store, so that all rounds use the same draws.
    """
    path = default_store(task)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Database(path, _STORE, collection=task.collection_id) as store:
        if (key := store.fact("fleet")) is None:
            if task.round > 1:
                raise DataError(
                    f"{path} has no secret of a fleet that answered round 1 of this search: start "
                    "with that round, as the same user"
                )
            key = Entropy.from_operating_system().words(KEY_BYTES // 8).tobytes()
            with store.transaction():
                store.set_fact("fleet", key)
    return draw_below(Entropy.from_key(key), num_values, task.asked.question.num_rounds)


def fleet_values(task: Task, texts: Iterable[Any], num_values: int) -> Iterator[NDArray[np.int32]]:
    """Yield the values of simulated devices in a round of a search, each with its own draw."""
    question: Any = task.asked.question
    draws = task.asked.search is not None and not task.asked.search.is_for_all
    turns, done = fleet_turns(task, num_values) if draws else None, 0
    for block in texts:
        own = None if turns is None else turns[done : done + len(block)]
        yield question.round_codes(block, own)
        done += len(block)
