"""The analyzer: opens batches, counts valid new reports, spends the budget, publishes results.

It sees reports without names, order, times and ids. A result counts the records that the shuffler
released, without records released before, records that do not open, and reports that no randomizer
makes. Each user is hidden among the honest users of the part in which the analyzer saw the report:
a batch's records under one key. All dishonest reports may be in that part.

A part with too few honest reports is kept until it can be counted with others, since the shuffler
has forgotten it; the guarantee holds for the smallest part that is counted. With a shuffler's
dummies no part is too small: each has its own, and the guarantee needs no other report. The
shuffler then publishes the number of true reports; invalid reports are among these, since dummies
are always valid. If devices send dummies a batch is one part, and the shuffler states its number
of devices.

Results lie in folders named by their batch's number, and are served to the operator.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from shuffledp.accounting.ledger import Ledger
from shuffledp.collection.counting import Engine
from shuffledp.collection.plan import plan
from shuffledp.collection.result import About, Result
from shuffledp.collection.run import estimate
from shuffledp.collection.shuffling import FinishedShuffling
from shuffledp.core.bound import Guarantee
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.reports import Counts, Reports
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.database import Keeper, Layout
from shuffledp.deploy.messages import Batch, inner_info, split
from shuffledp.deploy.servers import batches as batching
from shuffledp.deploy.servers.batches import PAGE, Store
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, MailKey, Reason
from shuffledp.engines.processes import Processes

_NOT_YET: Final = -1

# Standard deviations from the mean beyond which a number of dummies is unusual.
_UNUSUAL: Final = 7.0

_TABLES: Final = (
    # A batch that is kept as a whole has no result.
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, root BLOB NOT NULL UNIQUE, "
    "is_kept INTEGER NOT NULL DEFAULT 0)",
    # One row a record, so that none is counted in two batches; for the life of the task.
    "CREATE TABLE records (digest BLOB PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID",
    # Parts that were not counted with their batch: their valid reports, one after the other, and
    # the batch that they were counted with.
    "CREATE TABLE parts (batch INTEGER, key INTEGER, num_honest INTEGER NOT NULL, "
    "reports BLOB NOT NULL, counted_in INTEGER NOT NULL, num_users INTEGER, "
    "PRIMARY KEY (batch, key))",
)
_STORE: Final = Layout(
    kind="analyzer store",
    mark=b"sdpa",
    version=3,
    tables=_TABLES,
    steps={2: ("ALTER TABLE parts ADD COLUMN num_users INTEGER",)},
)


class Part(NamedTuple):
    """Part of a batch that the analyzer sees together: the reports under one key."""

    batch: int
    key: int
    #: Lower bound on the number of honest reports among the valid ones.
    num_honest: int
    #: The valid reports.
    texts: Sequence[bytes]
    #: Number of users who sent these: one a report, unless devices send dummies.
    num_users: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Opened batch: its valid, distinct and new ``reports``, with guarantee and counts."""

    number: int
    root: bytes
    reports: Reports
    #: Central epsilon at the task's delta, for the honest reports of the smallest part.
    guarantee: Guarantee
    #: Numbers of records released, repeated from an earlier batch, not opened, not valid, and kept
    #: for a later batch; of reports that the shuffler holds back or has dropped; and of reports of
    #: earlier batches that are counted here.
    counts: Mapping[str, int]
    #: Honest reports of the smallest part; they alone protect if the shuffler adds no dummies.
    num_honest: int
    #: Number of dummies among ``reports``, and number of draws from their law.
    num_dummies: int = 0
    num_draws: int = 0
    #: The ledger after this batch; None without a ledger.
    ledger: Ledger | None = None

    @property
    def num_users(self) -> int:
        """Number of users' reports among ``reports``."""
        return self.reports.num_reports - self.num_dummies


class Analyzer(Keeper):
    """One task's analyzer; a context manager that holds its store."""

    _store: Store

    def __init__(
        self,
        task: Task,
        folder: Path,
        *,
        shuffler_key: bytes,
        opening_keys: Mapping[int, MailKey],
        ledger: Path | None = None,
        database: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        """``shuffler_key`` verifies batches; a ledger is charged before a result is returned.

        ``database`` is a URL of PostgreSQL; by default the store is a file in ``folder``. An engine
        opens seals, by default a process for each core where there are many.
        """
        task.check()
        self.task = task
        self._ledger, self._shuffler_key = ledger, shuffler_key
        self._engine = engine
        self.replace_keys(opening_keys)
        self._store = batching.open_store(folder, database, _STORE, collection=task.task_id)

    def replace_keys(self, opening_keys: Mapping[int, MailKey]) -> None:
        """Open with other keys from now on."""
        self._keys = {n: key.private_bytes_raw() for n, key in opening_keys.items()}

    def take(self, data: bytes) -> Opened | None:
        """Open a batch; opening it again gives the same result, and spends nothing more.

        Return None if all its reports are kept, to be counted with later batches.

        Raises
        ------
        ProtocolError
            The shuffler's fault, for bytes that are no batch of this task, or another batch under a
            number that was taken.
        BudgetError
            If the ledger does not cover it: then none of its records is noted as seen.
        """
        has_dummies, adds_dummies = self.task.dummies is not None, self.task.adds_dummies
        batch = Batch.decode(data, self.task, self._shuffler_key)
        self._require_keys(batch)
        codec, ledger = self.task.asked.codec, None
        with self._store.transaction():
            query = "SELECT number, root FROM batches WHERE number = ? OR root = ?"
            known = self._store.rows(query, (batch.number, batch.root))
            if any(tuple(each) != (batch.number, batch.root) for each in known):
                what = "its number or its records were taken before, with others: there are two"
                raise Fault.SHUFFLER.error(f"batch {batch.number}: {what}", Reason.CONFLICT)
            if self.task.num_slots > 1 and len({record[0] for record in batch.records}) > 1:
                what = f"batch {batch.number} has records under several keys, so nobody knows how "
                raise Fault.SHUFFLER.error(f"{what}many devices each part is of")
            fresh = self._fresh(batch)
            texts, num_unopened = self._texts(fresh)
            own = self._parts(batch, fresh, texts)
            num_invalid = len(fresh) - num_unopened - sum(len(part.texts) for part in own)
            if adds_dummies:
                own = self._with_reports(batch, own)
            if not known:
                together = own if adds_dummies else _together(self.task, [*own, *self._kept()])
                self._keep_all_but(together, batch.number, own)
            query = "SELECT key FROM parts WHERE batch = ?"
            kept = set(self._store.column(query, (batch.number,)))
            earlier = self._kept(batch.number)
            counted = [part for part in own if part.key not in kept] + earlier
            least = max(1, min((part.num_honest for part in counted), default=1))
            if counted and self._ledger is not None:
                ledger = batching.spend_for_batch(self._ledger, self.task, batch, num_honest=least)
        if not counted:
            return None
        return Opened(
            number=batch.number,
            root=batch.root,
            reports=codec.decode([text for part in counted for text in part.texts]),
            guarantee=self.task.guarantee(least),
            num_honest=least,
            num_dummies=batch.num_dummies
            if adds_dummies
            else sum(len(part.texts) - part.num_users for part in counted),
            num_draws=len({record[0] for record in batch.records}) if has_dummies else 0,
            counts={
                "num_released": len(batch.records),
                "num_held": batch.num_held,
                "num_repeated": len(batch.records) - len(fresh),
                "num_unopened": num_unopened,
                "num_invalid": num_invalid,
                "num_kept": sum(len(part.texts) for part in own if part.key in kept),
                "num_earlier": sum(len(part.texts) for part in earlier),
            },
            ledger=ledger,
        )

    def _require_keys(self, batch: Batch) -> None:
        """Raise if nothing opens, or dummies cannot be distinguished from what does not open."""
        used = {record[0] for record in batch.records}
        missing = used - self._keys.keys()
        if missing and (batch.num_dummies or missing == used):
            numbers = ", ".join(map(str, sorted(missing)))
            so = "so nobody knows which are dummies" if batch.num_dummies else "and no others"
            what = f"batch {batch.number} has records sealed to key {numbers}, which is not here, "
            what += f"{so}: put that key back, and start again"
            raise Fault.ANALYZER.error(what, Reason.UNKNOWN)

    def _with_reports(self, batch: Batch, own: list[Part]) -> list[Part]:
        """Return the parts of a batch with dummies; none if no report in it is valid and new."""
        num_users = sum(len(part.texts) for part in own) - batch.num_dummies
        if num_users < 0:
            what = f"batch {batch.number} has {batch.num_dummies:,} dummies, and fewer records "
            raise Fault.SHUFFLER.error(f"{what}are valid and new: there are fewer, or they repeat")
        return own if num_users else []

    def _parts(
        self, batch: Batch, fresh: Sequence[bytes], texts: Mapping[int, list[bytes]]
    ) -> list[Part]:
        """Return a batch's parts, each with a lower bound on its number of honest reports.

        Records under a key that is not here are no junk: they may be honest.
        """
        task, num_opened, codec = self.task, batch.num_opened, self.task.asked.codec
        valid = {key: codec.encode(codec.decode_valid(each)[0]) for key, each in texts.items()}
        num_users = {key: len(each) for key, each in valid.items()}
        num_junk = sum(record[0] in self._keys for record in fresh) - sum(num_users.values())
        if task.num_slots > 1:
            # A device sends at most num_slots junk records; each repeat may be another device's.
            num_junk = -(-num_junk // task.num_slots)
            users = (batch.num_true or 0) - num_junk - (len(batch.records) - len(fresh))
            num_users = {key: max(0, min(users, number)) for key, number in num_users.items()}
        most = max(batch.num_dishonest, task.most_dishonest(num_opened))
        hidden = task.most_hidden(most, num_junk=num_junk, num_opened=num_opened)
        if task.adds_dummies:
            hidden += batch.num_dummies  # all may be in any one part
        return [
            Part(batch.number, key, max(0, num_users[key] - hidden), found, num_users[key])
            for key, found in valid.items()
            if found
        ]

    def _keep_all_but(self, counted: Sequence[Part], number: int, own: Sequence[Part]) -> None:
        """Note the parts that are counted with a batch, and keep its own parts that are not."""
        is_kept = "UPDATE batches SET is_kept = ? WHERE number = ?"
        self._store.change(is_kept, (int(not counted), number))
        change = "UPDATE parts SET counted_in = ? WHERE batch = ? AND key = ?"
        for part in counted:  # its own parts have no row to update
            self._store.change(change, (number, part.batch, part.key))
        for part in own:
            if part not in counted:
                data = b"".join(part.texts)
                row = (number, part.key, part.num_honest, data, _NOT_YET, part.num_users)
                self._store.change("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)", row)

    def _kept(self, counted_in: int = _NOT_YET) -> list[Part]:
        """Return parts that were not counted with their batch: with a later one, or not yet."""
        size, found = self.task.asked.codec.num_report_bytes, []
        query = "SELECT batch, key, num_honest, reports, num_users FROM parts WHERE counted_in = ?"
        for batch, key, num_honest, data, users in self._store.rows(query, (counted_in,)):
            texts = split(data, size)
            num_users = len(texts) if users is None else users
            found.append(Part(batch, key, num_honest, texts, num_users))
        return sorted(found)

    def _fresh(self, batch: Batch) -> Sequence[bytes]:
        """Return the records that were in no earlier batch, and note that they are in this one."""
        self._store.insert_new("batches", "number, root", [(batch.number, batch.root)])
        digests = [hashlib.sha256(record).digest()[:16] for record in batch.records]
        rows = [(digest, batch.number) for digest in sorted(digests)]  # the order of the table
        if self._store.insert_new("records", "digest, batch", rows) == len(rows):
            return batch.records
        record_of = dict(zip(digests, batch.records, strict=True))
        query = "SELECT digest, batch FROM records WHERE digest"
        for digest, number in batching.rows_among(self._store, query, list(record_of)):
            if number != batch.number:
                del record_of[digest]
        return list(record_of.values())

    def _texts(self, records: Sequence[bytes]) -> tuple[dict[int, list[bytes]], int]:
        """Return the opened records by the number of their key, and the number of unopened ones."""
        texts: dict[int, list[bytes]] = {}
        info = inner_info(self.task.task_id)
        with Processes() as processes:
            engine = self._engine or processes.map
            for number, key in self._keys.items():
                sealed = [(info, each[1:]) for each in records if each[0] == number]
                pages = (sealed[at : at + PAGE] for at in range(0, len(sealed), PAGE))
                # The key is part of the function: an engine may store the pages.
                opened = engine(partial(batching.open_texts, self.task.seal, key), pages)
                found = [text for page in opened for text in page]
                texts[number] = [text for text in found if text is not None]
        return texts, len(records) - sum(map(len, texts.values()))

    def taken(self) -> dict[int, bytes]:
        """Return the hash of the records of each batch that has a result, by number."""
        query = "SELECT number, root FROM batches WHERE is_kept = 0 ORDER BY number"
        return dict(self._store.rows(query))

    def kept(self) -> list[int]:
        """Return the numbers of batches without a result, whose reports count with later ones."""
        return self._store.column("SELECT number FROM batches WHERE is_kept = 1")


def _together(task: Task, parts: Sequence[Part]) -> list[Part]:
    """Return the parts to count together: none if they have too few honest reports.

    These are the parts with the most honest reports, until their total reaches the number in the
    smallest batch, and each other part for which the task's promise holds. So a part that is too
    small for the promise does not weaken the guarantee of larger parts.
    """
    parts = sorted(parts, key=lambda part: part.num_honest, reverse=True)
    sizes = [part.num_honest for part in parts]
    ends = zip(sizes, accumulate(sizes), strict=True)
    least = next((size for size, total in ends if total >= task.num_honest), math.inf)

    def hides(part: Part) -> bool:
        return part.num_honest >= least or task.keeps(max(1, part.num_honest))

    return [] if least == math.inf else list(takewhile(hides, parts))


def result_of(task: Task, opened: Opened) -> Result:
    """Return estimates and guarantee of a batch, as for any other collection."""
    asked = task.asked
    # The guarantee counts honest reports only.
    deployed = FinishedShuffling(account=lambda *_: opened.guarantee)
    planned = plan(
        asked.question,
        num_users=opened.num_users,
        epsilon0=asked.epsilon0,
        delta=float(task.delta),
        randomizer=asked.randomizer.name,
        shuffling=deployed,
        dummies=task.dummies or "none",
    )
    planned = replace(planned, target_epsilon=float(task.epsilon))
    if task.dummies is None:
        found = estimate(opened.reports, planned)
    else:
        found = estimate(_less_dummies(task.dummies, asked, opened), planned)
        found = replace(found, without_dummies=task.without_dummies(opened.num_honest))
    today = datetime.now(UTC).date().isoformat()
    about = About(title=task.info, question=asked.text, date=today)
    return replace(found, about=about, warnings=(*found.warnings, *_cautions(task, opened)))


def _less_dummies(law: DummyLaw, asked: AskedTerms, opened: Opened) -> Counts:
    """Return the counts less the dummies, which a shuffler draws anew for each class."""
    counted: Any = asked.randomizer.aggregate(opened.reports)
    counts: Counts
    if law.sender == "users":
        counts = counted.less_dummies(law, num_users=opened.num_users)
    else:
        number, laws = opened.num_dummies, (law,) * opened.num_draws
        counts = replace(counted, num_reports=opened.num_users, num_dummies=number, dummies=laws)
    return counts


def _cautions(task: Task, opened: Opened) -> Iterator[str]:
    """Yield the differences between a batch and the task's description."""
    held, earlier, kept = (opened.counts[f"num_{name}"] for name in ("held", "earlier", "kept"))
    guarantee = opened.guarantee
    if held:
        yield (
            f"The shuffler opened {held:,} more reports for this batch, and holds them back or has "
            "dropped them: too few have their key."
        )
    if kept:
        yield (
            f"{kept:,} more reports are kept for a later batch: too few of those beside them are "
            "honest for certain."
        )
    if earlier:
        yield (
            f"{earlier:,} of these reports are of earlier batches, which had too few honest ones. "
            f"The analyzer saw each by itself, so the guarantee counts the {guarantee.num_users:,} "
            "honest reports of the least of them."
        )
    if task.num_slots > 1:
        law: Any = task.dummies
        usual = opened.num_users * law.mean * task.asked.num_answers
        if abs(opened.num_dummies - usual) > _UNUSUAL * (1.0 + math.sqrt(usual)):
            yield (
                f"Devices sent {opened.num_dummies:,} dummies, where their law gives {usual:,.0f}, "
                f"or {math.sqrt(usual):,.0f} more or less: some keep to another law. Each may send "
                f"{task.num_slots - 1:,}, all of one answer."
            )
    if not task.keeps(guarantee.num_users):
        yield (
            f"The task promised epsilon = {task.epsilon} at delta = {task.delta}, and for some of "
            f"these reports only epsilon = {math.ceil(guarantee.epsilon_upper * 1e4) / 1e4:g} "
            "holds: more reports were dishonest than its honest share allows."
        )


def batch_facts(task: Task, opened: Opened) -> dict[str, object]:
    """Return the provenance of a result, as JSON values."""
    ledger, root = opened.ledger, opened.root.hex()
    return {
        "task_id": task.task_id.hex(),
        "task": task.info,
        "batch": opened.number,
        "batch_sha256": root,
        **opened.counts,
        "num_honest": opened.num_honest,
        "honest_fraction": task.honest_ppm / 1_000_000,
        "budget": ledger
        and {
            "spent_under": root,
            "epsilon": ledger.epsilon,
            "delta": ledger.delta,
            "spent": ledger.spent.upper,
            "left": ledger.remaining,
        },
    }
