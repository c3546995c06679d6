"""A task: terms that clients, shuffler and analyzer of a collection share, as bytes and a hash.

Layout: docs/explanation/deployment-format.md. Each reader of a task recomputes its guarantee and
refuses numbers that are untrue, so that a task cannot promise more than is proved.
"""

import hashlib
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal, Self

from shuffledp.accounting.account import account
from shuffledp.accounting.dummies import level_guarantee
from shuffledp.accounting.guarantees import guarantee_for, guarantee_of_crowd
from shuffledp.collection.questions.rounds import LEAST_USERS, Search
from shuffledp.composition.composition import Composable
from shuffledp.composition.release import ShuffledRelease, StatedRelease, honest_users
from shuffledp.core.bound import Guarantee
from shuffledp.core.checks import set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutOfRegimeError, ParameterError, ShuffledpError
from shuffledp.core.labels import require_text
from shuffledp.core.numerics.enclosure import float_below
from shuffledp.deploy import wire
from shuffledp.deploy.asked_terms import MOST_OWN_DUMMIES, AskedTerms
from shuffledp.deploy.wire import KEY_BYTES, SIZES, Fault, Reader, Reason, Seal, opaque, uint
from shuffledp.estimation.discovery import Round

VERSION: Final = 1

#: Treatment of a batch that is too small when its epochs are over: it waits for the next epoch's
#: reports, or is deleted.
ShortBatch = Literal["hold", "drop"]
_SHORT: Final[tuple[ShortBatch, ...]] = ("hold", "drop")

_MILLION: Final = 1_000_000
_LONGEST_TEXT: Final = 0xFFFF
_LONGEST_DECIMAL: Final = 32
_DECIMAL: Final = re.compile(r"[0-9]+(\.[0-9]+)?(e-?[0-9]{1,3})?")

#: Largest mean number of dummies of a batch; sealing them takes two minutes of a core.
MOST_DUMMIES: Final = 1_000_000

# Share of delta set aside for devices that draw more dummies than may be sent; upper bound on the
# probability of that for one device; and upper bound on the factor 2 (1 + e^epsilon) of that
# probability in delta, up to an epsilon of 44.
_SPARE: Final = 2.0**-50
_RARE: Final = 2.0**-128
_MOST_RATIO: Final = 2.0**66

# Types of extensions: the law of the dummies, and the seal of reports if not X25519 alone.
_DUMMIES: Final = 1
_SEAL: Final = 2

# Fields of the layout in order: name, type, and bytes of the number or of the length.
_FIELDS: Final = (
    ("info", "text", 1),
    ("shuffler_url", "text", 2),
    ("analyzer_url", "text", 2),
    ("start", "uint", 8),
    ("epoch_seconds", "uint", 4),
    ("num_epochs", "uint", 4),
    ("min_batch", "uint", 8),
    ("honest_ppm", "uint", 4),
    ("short_batch", "uint", 1),
    ("report_bytes", "uint", 2),
    ("asked", "opaque", 2),
    ("epsilon", "text", 1),
    ("delta", "text", 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One collection: its question, epochs, and promise for each batch; made by the operator.

    Parameters
    ----------
    info : str
        Name of the task, 1 to 255 bytes of UTF-8.
    shuffler_url, analyzer_url : str
        Addresses of the servers.
    start : int
        Seconds since 1970 at which the first epoch begins.
    epoch_seconds : int
        Length of an epoch, at least 1; a report reveals no more about its time than its epoch.
    num_epochs : int
        Number of epochs, at least 1.
    min_batch : int
        Smallest number of distinct valid reports in a batch that is released.
    honest_ppm : int
        Lower bound on the honest share of the distinct reports of any epoch, in millionths, 1 to
        1,000,000; only honest reports hide others. All others may be in one part of a batch.
    short_batch : {"hold", "drop"}
        Treatment of a batch that is too small: it waits for the next epoch's reports, or is
        deleted.
    asked : AskedTerms
        The question, and the randomizer that each client runs on the answer.
    epsilon, delta : str
        Promise for each batch of at least ``min_batch`` reports; exact decimals, as written.
    operator_key : bytes
        Ed25519 public key that signs lists of keys, 32 bytes.
    dummies : DummyLaw, optional
        Law of the number of dummies of each possible answer, released with the reports; only with
        ``k-rr``. A table, if the shuffler adds them: then epsilon holds even if all other users are
        dishonest, and batches of one report are safe. Or "poisson", if each device sends some with
        its report: then epsilon needs the same number of honest devices as without dummies.
    seal : {"x25519", "hybrid"}
        Encryption of reports to both servers. With "hybrid" an adversary who records reports today
        can link them to their senders later only by breaking both X25519 and ML-KEM-768; a report
        takes 2,176 bytes more.

    Raises
    ------
    ParameterError
        If a field is out of range; if dummies do not go with the randomizer, or are too many; if a
        round of a search has several epochs, or too few honest reports.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> task = Task(
    ...     info="a survey", shuffler_url="https://s.example", analyzer_url="https://a.example",
    ...     start=1_800_000_000, epoch_seconds=86_400, num_epochs=30, min_batch=10_000,
    ...     honest_ppm=900_000, short_batch="hold", epsilon="0.12", delta="1e-8",
    ...     asked=sdp.deploy.AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0),
    ...     operator_key=bytes(32),
    ... )
    >>> task.check()  # what it promises is proved
    >>> Task.decode(task.encode()) == task
    True
    >>> task.num_honest, task.epoch_at(1_800_090_000)
    (9000, 1)
    """

    info: str
    shuffler_url: str
    analyzer_url: str
    start: int
    epoch_seconds: int
    num_epochs: int
    min_batch: int
    honest_ppm: int
    short_batch: ShortBatch
    asked: AskedTerms
    epsilon: str
    delta: str
    operator_key: bytes
    dummies: DummyLaw | None = None
    seal: Seal = "x25519"
    #: Largest number of records that a device may send, including the report.
    num_slots: int = field(init=False, repr=False, compare=False)
    #: SHA-256 of the task, which differs if any field differs.
    task_id: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._require_dummies()
        own = None if self.adds_dummies else self.dummies
        set_fields(self, num_slots=own.rare_number(self.asked.num_answers) if own else 1)
        require_text("info or a URL of the task", self.info, self.shuffler_url, self.analyzer_url)
        for name, value, first, last in (
            ("start", self.start, 0, 2**64 - 1),
            ("epoch_seconds", self.epoch_seconds, 1, 2**32 - 1),
            ("num_epochs", self.num_epochs, 1, 2**32 - 1),
            ("min_batch", self.min_batch, 1, 2**64 - 1),
            ("honest_ppm", self.honest_ppm, 1, _MILLION),
            ("bytes of info", len(self.info.encode()), 1, 255),
            ("bytes of shuffler_url", len(self.shuffler_url.encode()), 1, _LONGEST_TEXT),
            ("bytes of analyzer_url", len(self.analyzer_url.encode()), 1, _LONGEST_TEXT),
            ("bytes of the question as JSON", len(self.asked.to_json()), 1, _LONGEST_TEXT),
            ("bytes of a report", self.asked.codec.num_report_bytes, 1, _LONGEST_TEXT),
            ("bytes of operator_key", len(self.operator_key), KEY_BYTES, KEY_BYTES),
        ):
            wire.require_whole(name, value, first, last + 1)
        self._require_round()
        if self.short_batch not in _SHORT:
            raise ParameterError(f"short_batch = {self.short_batch!r} is not one of {_SHORT}")
        if self.seal not in SIZES:
            raise ParameterError(f"seal = {self.seal!r} is not one of {tuple(SIZES)}")
        if not _decimal("epsilon", self.epsilon) > 0:
            raise ParameterError(f"epsilon = {self.epsilon} is not above 0")
        if not 0 < _decimal("delta", self.delta) < 1:
            raise ParameterError(f"delta = {self.delta} is not in (0, 1)")
        set_fields(self, task_id=hashlib.sha256(self.encode()).digest())

    def _require_dummies(self) -> None:
        """Raise unless dummies look like reports and can be sealed, or none are needed."""
        law, randomizer = self.dummies, self.asked.randomizer
        if law is None:
            if math.isinf(randomizer.epsilon0):
                raise ParameterError(
                    "epsilon0 = inf: without local noise only dummies hide an answer; give dummies "
                    "such as laplace:2.025:27, or a finite epsilon0"
                )
            return
        most, whose = (MOST_DUMMIES, "batch") if self.adds_dummies else (MOST_OWN_DUMMIES, "device")
        self.asked.require_dummies(law, most, whose)

    def _require_round(self) -> None:
        """Raise for a round of a search that splits its devices, or has too few of them."""
        if self.asked.search is None:
            return
        if self.asked.search.is_for_all != self.adds_dummies or self.num_slots > 1:
            raise ParameterError(
                f"dummies = {self.dummies} do not go with this search: devices answer every round "
                "with a shuffler's dummies, and only then"
            )
        if self.num_epochs != 1:
            raise ParameterError(
                f"num_epochs = {self.num_epochs} parts the devices of a round, all of which hide "
                "each other: give num_epochs = 1, and longer epochs"
            )
        rounds: int = self.asked.question.num_rounds
        if self.adds_dummies:
            return
        if (least := LEAST_USERS * rounds) > self.num_honest:
            batch = math.ceil(least * _MILLION / self.honest_ppm)
            raise ParameterError(
                f"min_batch = {self.min_batch:,} is too small for {rounds} rounds of {LEAST_USERS} "
                f"honest reports: give min_batch = {batch:,}"
            )

    @property
    def round(self) -> int:
        """Number of this round of a search, counted from 1; 1 for other tasks."""
        return 1 + (len(self.asked.search.done) if self.asked.search else 0)

    @property
    def collection_id(self) -> bytes:
        """Id shared by all rounds of a search under one promise; the task's own id otherwise."""
        search = self.asked.search
        if search is None or search.is_for_all:
            return self.task_id
        question: Any = self.asked.question
        first = replace(question, search=Search(search.key))
        same = {"info": "a search", "shuffler_url": "of all", "analyzer_url": "rounds", "start": 0}
        whole: Any = same | {"asked": replace(self.asked, question=first), "epoch_seconds": 1}
        return wire.digest(b"search", replace(self, **whole).encode())

    def after(self, record: Any, **fields: Any) -> Self:
        """Return the task of the next round of a search, from the JSON of this round's result.

        ``fields`` replace other fields of the next task, such as its start.

        Raises
        ------
        DataError
            If the result is another task's, or no round is left.
        """
        search = self.asked.search
        question: Any = self.asked.question
        if search is None:
            raise DataError("the task is no round of a search: make one with discover")
        try:
            of, found = record["parameters"]["task_id"], record["discovery"]
            rounds = tuple(Round(**each) for each in found["rounds"])
            left = tuple(sorted(bytes.fromhex(each).hex() for each in found.get("left", ())))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError("it is no result of a search's round: give one of collect") from None
        if of != self.task_id.hex():
            raise DataError(
                f"the result is of task {of}, and this is {self.task_id.hex()}, round {self.round}:"
                " give the folder of the same round's result"
            )
        if not left:
            raise DataError(
                f"the search is over after round {self.round} of {question.num_rounds}: its result "
                "is that of the whole search"
            )
        if rounds[:-1] != search.done or [each.num_left for each in rounds[-1:]] != [len(left)]:
            raise DataError(
                "the result was changed: its rounds are not those before, or another number of "
                "prefixes is left; collect it anew"
            )
        after = replace(question, search=replace(search, left=left, done=rounds))
        return replace(self, asked=replace(self.asked, question=after), **fields)

    @property
    def adds_dummies(self) -> bool:
        """True if the shuffler adds dummies, so that a report needs no other one to hide it."""
        return self.dummies is not None and self.dummies.sender == "shuffler"

    @property
    def sizes(self) -> tuple[int, int, Seal]:
        """Bytes of a randomized report, slots of a device, and the seal."""
        return self.asked.codec.num_report_bytes, self.num_slots, self.seal

    @property
    def record_bytes(self) -> int:
        """Bytes of a record of a batch: the key's number, the seal and a report."""
        return 1 + self.asked.codec.num_report_bytes + SIZES[self.seal].added

    def with_own_dummies(self, report: bytes, entropy: Entropy) -> list[bytes]:
        """Return a user's report and the dummies that the device sends, if any, in bytewise order.

        With probability below 2^-128 more are drawn than may be sent; they are then drawn anew.
        """
        if self.dummies is None or self.adds_dummies:
            return [report]
        made = self.asked.dummies(self.dummies, entropy)
        while len(made) >= self.num_slots:
            made = self.asked.dummies(self.dummies, entropy)
        return sorted([report, *made])

    @property
    def num_honest(self) -> int:
        """Lower bound on the number of honest reports in the smallest batch.

        At least 1 with a shuffler's dummies, which hide even a single report.
        """
        if self.adds_dummies:
            return max(1, self.min_batch * self.honest_ppm // _MILLION)
        return honest_users(self.min_batch, self.honest_ppm / _MILLION)

    def most_dishonest(self, num_reports: int) -> int:
        """Return the largest number of dishonest reports among distinct ones, rounded up."""
        return num_reports - num_reports * self.honest_ppm // _MILLION

    def most_hidden(self, num_dishonest: int, *, num_junk: int, num_opened: int) -> int:
        """Return the largest number of dishonest reports among the valid ones.

        ``num_junk`` of ``num_opened`` reports are known to be dishonest. If they alone exceed the
        bound, the honest share is broken, and is assumed of the other reports.
        """
        if num_junk <= num_dishonest:
            return num_dishonest - num_junk
        return self.most_dishonest(num_opened - num_junk)

    @property
    def path(self) -> str:
        """Path of the task at both servers, below which all else is."""
        return f"/tasks/{self.task_id.hex()}"

    def nth_epoch(self, seconds: float) -> int:
        """Return the epoch of a time, as if the task had no first or last one."""
        return int((seconds - self.start) // self.epoch_seconds)

    def epoch_at(self, seconds: float) -> int | None:
        """Return the epoch of a time in seconds since 1970; None outside all of them."""
        epoch = self.nth_epoch(seconds)
        return epoch if 0 <= epoch < self.num_epochs else None

    @property
    def end(self) -> int:
        """Seconds since 1970 at which the last epoch ends."""
        return self.start + self.num_epochs * self.epoch_seconds

    def state_at(self, seconds: float) -> str:
        """Return the task's state in words (not begun, running, over) at a time since 1970."""
        begun, left = seconds - self.start, self.end - seconds
        if begun < 0:
            return f"the task has not begun: its first epoch begins in {-begun:,.0f} seconds"
        if left > 0:
            return f"the task goes on: its last epoch ends in {left:,.0f} seconds"
        return f"the task is over: its last epoch ended {-left:,.0f} seconds ago"

    def release(self, num_honest: int) -> Composable:
        """Return a batch as an entry of a ledger, by the honest reports of its smallest part.

        For a search with dummies it covers one round. A shuffler's dummies need no other report,
        honest or not. If devices send dummies, delta covers the probability that one draws more
        than it may send, up to an epsilon of 44 in all.
        """
        users = 1 if self.adds_dummies else num_honest
        profile = self.asked.randomizer.profile
        made = ShuffledRelease(profile=profile, num_users=users, dummies=self.dummies)
        if self.num_slots == 1:
            return made
        return made + StatedRelease(epsilon=0.0, delta=users * _RARE * _MOST_RATIO)

    def guarantee(self, num_honest: int | None = None) -> Guarantee:
        """Return the guarantee among honest reports, by default of the smallest batch.

        Epsilon is a proved upper bound at the task's delta. With a shuffler's dummies it does not
        depend on the number. Of a round of a search it holds for all rounds, any of which may be
        the smallest batch.
        """
        law, delta = self.asked.randomizer.profile, float(self.delta)
        honest = self.num_honest if num_honest is None else num_honest
        if self.asked.search is not None:
            honest = min(honest, self.num_honest)
        if self.dummies is None:
            return account(law, num_users=honest, delta=delta)
        if self.adds_dummies and self.asked.rounds > 1:
            how: Any = {"delta": delta, "rounds": self.asked.rounds}
            return level_guarantee([law], [self.dummies], **how).without_lower()
        if self.adds_dummies:
            return guarantee_for(law, 1, delta=delta, dummies=self.dummies)
        how = {"delta": delta * (1.0 - _SPARE), "with_lower": False}
        with suppress(OutOfRegimeError):  # too few devices for the theorem
            found = guarantee_for(law, honest, dummies=self.dummies, **how)
            if self._spares(honest, found.epsilon_upper):
                return replace(found, epsilon=replace(found.bound, lower=None), delta=delta)
        return self.without_dummies(honest)

    def _spares(self, num_honest: int, epsilon: float) -> bool:
        """Return True if a tiny part of delta covers devices that draw too many dummies to send.

        Both laws of the adversary's view change by this probability in total variation.
        """
        failure = num_honest * _RARE * (1.0 + math.exp(min(epsilon, 99.0)))
        return 2.0 * failure <= float(self.delta) * _SPARE

    def without_dummies(self, num_honest: int | None = None) -> Guarantee:
        """Return the guarantee if nobody sends the task's dummies; it may be infinite.

        Only the party that adds dummies can verify that there are any.
        """
        honest = self.num_honest if num_honest is None else num_honest
        law = self.asked.randomizer.profile
        rounds = self.asked.rounds
        crowd = guarantee_of_crowd(law, honest, delta=float(self.delta), rounds=rounds)
        return crowd if rounds == 1 else crowd.without_lower()

    def keeps(self, num_honest: int) -> bool:
        """Return True if the task's promise is proved for this number of honest reports.

        One bound on delta at the promised epsilon costs a fraction of the search for the least
        epsilon, which matters on devices: the search runs only if the bound does not suffice.
        """
        epsilon, law = _decimal("epsilon", self.epsilon), self.asked.randomizer.profile
        least = epsilon if math.isinf(law.epsilon0) else min(epsilon, Fraction(law.epsilon0))
        users, delta = 1 if self.adds_dummies else num_honest, _decimal("delta", self.delta)
        if self.num_slots > 1:
            delta *= Fraction(1.0 - _SPARE) * self._spares(users, float(least))
        if (rounds := self.asked.rounds) > 1:
            together = self.release(users) * rounds
            left = together.delta(float_below(epsilon), with_lower=False).upper
        else:
            left = guarantee_for(
                law, users, epsilon=float_below(least), with_lower=False, dummies=self.dummies
            ).delta_upper
        return left <= delta or self.guarantee(num_honest).epsilon_upper <= epsilon

    def check(self) -> None:
        """Prove the promise anew for the smallest batch; raise if it does not hold.

        Raises
        ------
        ProtocolError
            The operator's fault, if epsilon is below the proved bound. Nothing else is wrong with
            such a task, but no client should answer it and no server should serve it.
        """
        if self.keeps(self.num_honest):
            return
        said = f"epsilon = {self.epsilon} at delta = {self.delta}"
        proved = f"{self.guarantee().epsilon_upper:.6g}"
        remedy = "raise epsilon, or give dummies of a larger scale, or lower epsilon0"
        if not self.adds_dummies:
            proved += f" for {self.num_honest:,} honest reports"
            remedy = "raise epsilon or the least batch, or lower epsilon0"
        what = f"the task promises {said} and what is proved is {proved}: "
        raise Fault.OPERATOR.error(what + remedy, Reason.FORGED)

    def encode(self) -> bytes:
        """Return the task as bytes; equal tasks have equal bytes."""
        values = {name: getattr(self, name) for name, *_ in _FIELDS if hasattr(self, name)}
        values["short_batch"] = _SHORT.index(self.short_batch)
        values["report_bytes"] = self.asked.codec.num_report_bytes
        values["asked"] = self.asked.to_json()
        values |= {name: values[name].encode() for name, kind, _ in _FIELDS if kind == "text"}
        written = (
            uint(values[name], size) if kind == "uint" else opaque(values[name], size)
            for name, kind, size in _FIELDS
        )
        extensions = b""
        if self.dummies is not None:
            extensions = uint(_DUMMIES, 2) + opaque(str(self.dummies).encode(), 2)
        if self.seal != "x25519":
            extensions += uint(_SEAL, 2) + opaque(self.seal.encode(), 2)
        head = uint(VERSION, 2) + b"".join(written) + self.operator_key
        return head + opaque(extensions, 2)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the task that bytes encode; the guarantee is not checked, see `check`.

        Raises
        ------
        ProtocolError
            The operator's fault, for bytes that encode no task, or are not its only encoding.
        """
        reader = Reader(data, "task", Fault.OPERATOR)
        if reader.uint(2) != VERSION:
            what = "it is no task, or of another version: give task.bin, or update shuffledp"
            raise reader.error(what, Reason.MISMATCH)
        read: dict[str, Any] = {name: getattr(reader, kind)(size) for name, kind, size in _FIELDS}
        read["operator_key"] = reader.take(KEY_BYTES)
        extensions, texts = Reader(reader.opaque(2), "task's extensions", Fault.OPERATOR), {}
        while not extensions.is_at_end:
            if (kind := extensions.uint(2)) not in (_DUMMIES, _SEAL):
                raise reader.error("it has an extension that is not known: update shuffledp")
            texts[kind] = extensions.opaque(2).decode("ascii", "replace")
        reader.finish()
        dummies = texts.get(_DUMMIES)
        report_bytes, short = read.pop("report_bytes"), read["short_batch"]
        if short >= len(_SHORT):
            raise reader.error(f"short_batch {short} is not in [0, {len(_SHORT)})")
        try:
            read["asked"] = AskedTerms.from_json_dict(json.loads(read["asked"]))
            read["dummies"] = None if dummies is None else DummyLaw.from_text(dummies)
            read["seal"] = texts.get(_SEAL, "x25519")
            task = cls(**read | {"short_batch": _SHORT[short]})
        except (ShuffledpError, ValueError, RecursionError) as error:
            raise reader.error(str(error)) from None
        if task.asked.codec.num_report_bytes != report_bytes or task.encode() != data:
            raise reader.error("it is written in another way than tasks are, or says another size")
        return task


def _decimal(name: str, text: str) -> Fraction:
    """Return the number that a decimal such as 0.5 or 1e-8 stands for, exactly."""
    if len(text) > _LONGEST_DECIMAL or not _DECIMAL.fullmatch(text):
        raise ParameterError(f"{name} = {text!r} is not a short decimal number such as 0.5 or 1e-8")
    return Fraction(text)
