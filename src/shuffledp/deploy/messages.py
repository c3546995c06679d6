"""Messages between clients, shuffler and analyzer, as bytes; nothing here reads or writes.

Layout: docs/explanation/deployment-format.md. A client seals a randomized report twice: for the
analyzer, and around that for the shuffler. The outer seal is bound to task, epoch and report id, so
that a copy under another id does not open; the inner one to the task alone. Records of a batch are
sorted by their bytes: their order reveals nothing beyond the multiset.

A task admits reports from any sender, or from holders of codes that the operator gave out: 16
random bytes each, handed to one person. The id of a report then derives from code, task and epoch,
so that the shuffler, which was given the codes, admits one report a code and epoch. Nothing else in
the protocol changes, and a report that is sent again has the same id. Ids of two epochs or tasks
cannot be linked to one person without the code. Blind signatures would hide even the participants
from the shuffler, but need a raw RSA operation (RFC 9474) or an OPRF (RFC 9497), and `cryptography`
offers neither.
"""

import base64
import hashlib
import struct
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Literal, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.core.checks import set_fields
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.deploy import wire
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import SIZES, Fault, Reader, Reason, Seal, seal, uint

REPORT_ID_BYTES: Final = 16

#: Seconds by which the time of a signed request may differ from the server's clock.
REQUEST_SECONDS: Final = 300

#: Largest number of reports in one upload, and of bytes.
MOST_REPORTS: Final = 1000
MOST_UPLOAD_BYTES: Final = 1 << 22

# Size of the number of records, which precedes them where a device may send several.
_COUNT_BYTES: Final = 2

#: Number of distinct key numbers: the key of an epoch has the number ``epoch % NUM_KEYS``.
NUM_KEYS: Final = 256

_LONG_KEY: Final = SIZES["hybrid"].public_key
_BATCH_MAGIC: Final = b"sdpB\x00\x02"
_DUMMIES_MAGIC: Final = b"sdpB\x00\x03"  # its head also has the number of true reports
_KEYS_LABEL: Final = b"sdp1 keys "

#: Server that owns a list of keys; signed with it, so that neither list passes for the other.
Role = Literal["shuffler", "analyzer"]


class Answer(IntEnum):
    """Outcome of a report; the answer to an upload has one byte for each report, in order.

    Examples
    --------
    >>> Answer(2).name
    'LATE'
    """

    ACCEPTED = 0
    REPLAYED = 1  # another report has its id: on a repeated upload, the same one sealed anew
    LATE = 2  # its epoch is over, and it is not known any more if an earlier copy came in time
    EARLY = 3  # its epoch has not begun
    UNKNOWN_KEY = 4
    NOT_ADMITTED = 5  # its id derives from no code that the shuffler was given


@dataclass(frozen=True, slots=True, kw_only=True)
class SealKey:
    """A public key to which reports are sealed, and its number in [0, 255]."""

    number: int
    public_key: bytes
    #: Epoch of a shuffler's key; first epoch in which an analyzer's key is used.
    first_epoch: int = 0

    def encode(self) -> bytes:
        """Return the key as bytes: its epoch, then DAP's HpkeConfig."""
        kind: Seal = "hybrid" if len(self.public_key) == _LONG_KEY else "x25519"
        config = uint(self.number, 1) + SIZES[kind].suite + wire.opaque(self.public_key, 2)
        return uint(self.first_epoch, 4) + config

    @classmethod
    def read(cls, reader: Reader, kind: Seal) -> Self:
        """Read a key of the given kind from a message."""
        first_epoch, number = reader.uint(4), reader.uint(1)
        wrong = f"a key is of another suite than {kind}, the task's"
        reader.expect(SIZES[kind].suite, wrong, Reason.MISMATCH)
        public_key = reader.opaque(2)
        if len(public_key) != SIZES[kind].public_key or not wire.is_mail_key(public_key):
            raise reader.error(f"a key is no {kind} public key that can be sealed to")
        return cls(number=number, public_key=public_key, first_epoch=first_epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedKeys:
    """The keys of one server, numbered and signed for a task by its operator; newest first."""

    #: Number of keys that the server was ever given. A later list has a larger serial.
    serial: int
    #: Seconds since 1970 after which the list must not be used.
    not_after: int
    keys: tuple[SealKey, ...]
    signature: bytes = b""

    def signed(self, operator: Ed25519PrivateKey, role: Role, task: Task) -> Self:
        """Return the list, signed by the operator for a server of a task."""
        text = _signed_keys(role, task, replace(self, signature=b"").encode())
        return replace(self, signature=operator.sign(text))

    def encode(self) -> bytes:
        """Return the list as bytes."""
        keys = wire.opaque(b"".join(each.encode() for each in self.keys), 2)
        return uint(self.serial, 8) + uint(self.not_after, 8) + keys + self.signature

    @classmethod
    def decode(cls, data: bytes, role: Role, task: Task) -> Self:
        """Return the list if the operator has signed it for a server of a task; raise otherwise."""
        reader = Reader(data, "list of keys", Fault.OPERATOR)
        serial, not_after = reader.uint(8), reader.uint(8)
        inner = Reader(reader.opaque(2), "list of keys", Fault.OPERATOR)
        text = reader.read_so_far()
        signature = reader.take(wire.SIGNATURE_BYTES)
        reader.finish()
        if not wire.is_signed(signature, task.operator_key, _signed_keys(role, task, text)):
            reason = f"the task's operator has not signed it as the {role}'s of this task"
            raise reader.error(reason, Reason.FORGED)
        keys = []
        while not inner.is_at_end:
            keys.append(SealKey.read(inner, task.seal))
        if not len(keys) == len({k.number for k in keys}) == len({k.first_epoch for k in keys}) > 0:
            raise reader.error("it has no key, or two of one number or epoch")
        return cls(serial=serial, not_after=not_after, keys=tuple(keys), signature=signature)

    def key_of_epoch(self, epoch: int) -> SealKey:
        """Return the shuffler's key of an epoch; raise if the list has none."""
        return self.key_from(epoch, first=epoch)

    def key_from(self, epoch: int, first: int = 0) -> SealKey:
        """Return the analyzer's key of an epoch: the newest one in use by then."""
        begun = [each for each in self.keys if first <= each.first_epoch <= epoch]
        if not begun:
            what = f"the list has no key for epoch {epoch}: its operator should run "
            raise Fault.OPERATOR.error(f"{what}shuffledp keys rotate", Reason.UNKNOWN)
        return max(begun, key=lambda key: key.first_epoch)

    def require_current(self, now: float, least_serial: int = 0) -> None:
        """Raise for a list that has expired, or is older than one seen before."""
        if now > self.not_after:
            what = f"the list of keys ended {now - self.not_after:.0f} seconds ago: check the "
            what += "clock; if it is right, the operator should run shuffledp keys rotate"
            raise Fault.OPERATOR.error(what, Reason.LATE)
        if self.serial < least_serial:
            what = f"the list of keys has serial {self.serial}, and {least_serial} was seen "
            what += "before: an old list is put forward; send nothing, and ask the operator"
            raise Fault.OPERATOR.error(what, Reason.CONFLICT)


def _signed_keys(role: Role, task: Task, text: bytes) -> bytes:
    """Return the signed bytes of a list of keys."""
    return _KEYS_LABEL + role.encode() + b" " + task.task_id + text


@dataclass(frozen=True, slots=True)
class Report:
    """A report on its way to the shuffler: sealed twice, with an id that its client drew.

    Its client's dummies, if the task has users send some, are sealed in with it.
    """

    report_id: bytes
    epoch: int
    #: Number of the shuffler's key.
    key: int
    sealed: bytes

    @classmethod
    def sealed_for(
        cls,
        task: Task,
        *reports: bytes,
        report_id: bytes,
        epoch: int,
        shuffler: SealKey,
        analyzer: SealKey,
    ) -> Self:
        """Seal a randomized report anew; an id always belongs to the same report.

        If the task has devices send dummies, ``reports`` includes them, and nothing outside the
        seals reveals their number.
        """
        number, info = uint(analyzer.number, 1), inner_info(task.task_id)
        records = sorted(number + seal(each, analyzer.public_key, info) for each in reports)
        text = b"".join(records)
        if task.num_slots > 1:
            left = task.num_slots - len(records)
            text = uint(len(records), _COUNT_BYTES) + text + bytes(left * len(records[0]))
        sealed = seal(text, shuffler.public_key, outer_info(task.task_id, epoch, report_id))
        return cls(report_id=report_id, epoch=epoch, key=shuffler.number, sealed=sealed)

    def encode(self) -> bytes:
        """Return the report as bytes, of one length for every report of a task."""
        return self.report_id + uint(self.epoch, 4) + uint(self.key, 1) + self.sealed


def report_size(report_bytes: int, num_slots: int = 1, kind: Seal = "x25519") -> int:
    """Return the size of a `Report` of a task in bytes."""
    record = 1 + report_bytes + SIZES[kind].added
    text = record * num_slots + _COUNT_BYTES * (num_slots > 1)
    return REPORT_ID_BYTES + 4 + 1 + text + SIZES[kind].added


def most_reports(report_bytes: int, num_slots: int = 1, kind: Seal = "x25519") -> int:
    """Return the largest number of reports in an upload of a task."""
    return min(MOST_REPORTS, MOST_UPLOAD_BYTES // report_size(report_bytes, num_slots, kind))


def records_of(text: bytes, record_size: int, num_slots: int = 1) -> list[bytes]:
    """Return the records in the text that one device sealed; none if the text is malformed.

    Records must be sorted, distinct, and under one key of the analyzer: a device that could spread
    dummies over several keys would choose in which parts of a batch they count.
    """
    if num_slots > 1:
        number, text = int.from_bytes(text[:_COUNT_BYTES]), text[_COUNT_BYTES:]
        end = number * record_size
        if len(text) != num_slots * record_size or number > num_slots or any(text[end:]):
            return []
        text, num_slots = text[:end], number
    records = split(text, record_size)
    is_whole = len(text) == num_slots * record_size
    is_one = len({record[0] for record in records}) == 1
    return records if is_whole and is_one and records == sorted(set(records)) else []


def shares_in(page: Iterable[bytes | None], keys: Container[int], task: Task) -> list[bytes]:
    """Return the share of each device whose text opened and is well-formed: its joined records.

    Shares differ only in the analyzer's key, in the seals and in the number of records.
    """
    sizes = task.record_bytes, task.num_slots
    found = (b"".join(records_of(each, *sizes)) for each in page if each)
    return [each for each in found if each and each[0] in keys]


def apart(held: frozenset[bytes], new: Iterable[bytes], size: int) -> frozenset[bytes]:
    """Return held and new shares, without new shares that repeat a record of another share.

    Shares of honest devices never do. A record sent often could otherwise give a batch with more
    reports than records, which is invalid.
    """
    both = held.union(new)
    if all(len(share) == size for share in both):
        return both
    found, seen = set(held), {record for share in held for record in split(share, size)}
    for share in sorted(both - held):
        if seen.isdisjoint(records := split(share, size)):
            found.add(share)
            seen.update(records)
    return frozenset(found)


def classes(sizes: Mapping[int, int], least: int, *, is_one: bool) -> set[int]:
    """Return the keys of the classes of at least this size, or of the largest such class only."""
    keys = sorted((size, key) for key, size in sizes.items() if size >= least)
    return {key for _, key in (keys[-1:] if is_one else keys)}


def split(text: bytes, size: int) -> list[bytes]:
    """Return the pieces of a text, each of this size except perhaps the last."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def decode_upload(body: bytes, task: Task) -> list[Report]:
    """Return the reports in a body; raise, as the client's fault, for a body of another size."""
    sizes = task.sizes
    size, most = report_size(*sizes), most_reports(*sizes)
    number, left = divmod(len(body), size)
    if left or not 1 <= number <= most:
        what = f"upload: {len(body):,} bytes are not 1 to {most:,} reports of {size} bytes"
        raise Fault.CLIENT.error(f"{what}: send reports of this task, and no more at once")
    layout = f">{REPORT_ID_BYTES}sIB{size - REPORT_ID_BYTES - 5}s"
    return [Report(*fields) for fields in struct.iter_unpack(layout, body)]


def signed_request(task_id: bytes, method: str, path: str, time: bytes) -> bytes:
    """Return the signed bytes of a restricted request, its time in 8 bytes."""
    return b"sdp1 request " + task_id + time + f"{method} {path}".encode()


def decode_answers(body: bytes, number: int) -> list[Answer]:
    """Return the answer to each of ``number`` reports; otherwise raise, as the shuffler's fault."""
    reader = Reader(body, "answer to an upload", Fault.SHUFFLER)
    if len(body) != number:
        raise reader.error(f"{len(body):,} bytes for {number:,} reports")
    unknown = set(body) - set(Answer)
    if unknown:
        raise reader.error(f"answer {min(unknown)} is unknown: update shuffledp", Reason.MISMATCH)
    return [Answer(each) for each in body]


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch that the shuffler releases: records in bytewise order, which reveals nothing."""

    task: Task
    number: int
    first_epoch: int
    last_epoch: int
    #: Number of distinct reports opened for the batch, including those held back or dropped, and
    #: upper bound on the number of dishonest ones among them.
    num_opened: int
    num_dishonest: int
    #: In bytewise order, whatever order they are given in.
    records: tuple[bytes, ...]
    #: Number of true reports, where the other records are dummies; None for a task without dummies.
    num_true: int | None = None
    signature: bytes = b""
    #: SHA-256 of the records; identifies the batch, and its entry in a ledger.
    root: bytes = field(init=False)

    def __post_init__(self) -> None:
        records = tuple(sorted(self.records))
        set_fields(self, records=records, root=hashlib.sha256(b"".join(records)).digest())

    def signed(self, shuffler: Ed25519PrivateKey) -> Self:
        """Return the batch, signed by the shuffler of its task."""
        found = copy(self)  # `replace` would sort and hash all records again
        set_fields(found, signature=shuffler.sign(self._head()))
        return found

    def _head(self) -> bytes:
        """Return the signed bytes: all but the records, which their root represents."""
        task, epochs = self.task, (self.first_epoch, self.last_epoch)
        numbers = wire.numbers(*epochs, self.number, task.record_bytes)
        magic, counts = _BATCH_MAGIC, [self.num_opened, self.num_dishonest, len(self.records)]
        if self.num_true is not None:
            magic, counts = _DUMMIES_MAGIC, [*counts, self.num_true]
        written = b"".join(uint(number, 8) for number in counts)
        return magic + task.task_id + numbers + written + self.root

    @property
    def num_dummies(self) -> int:
        """Number of dummies among the records."""
        return 0 if self.num_true is None else len(self.records) - self.num_true

    @property
    def num_held(self) -> int:
        """Number of reports that were opened for the batch and are not in it."""
        return self.num_opened - len(self.records) + self.num_dummies

    @staticmethod
    def number_of(data: bytes) -> int:
        """Return the number that a batch claims to have, which `decode` has yet to check."""
        start = len(_BATCH_MAGIC) + wire.DIGEST_BYTES + 2 * wire.NUMBER_BYTES
        return int.from_bytes(data[start : start + wire.NUMBER_BYTES], "big")

    def encode(self) -> Iterator[bytes]:
        """Yield the batch as bytes: head, signature, then record by record."""
        yield self._head() + self.signature
        yield from self.records

    @classmethod
    def decode(cls, data: bytes, task: Task, shuffler_key: bytes) -> Self:
        """Return the batch if the shuffler of this task has signed it; raise otherwise."""
        reader, has_dummies = Reader(data, "batch", Fault.SHUFFLER), task.dummies is not None
        wrong = "it is no batch of this version, or only one of batch and task has dummies"
        reader.expect(_DUMMIES_MAGIC if has_dummies else _BATCH_MAGIC, wrong, Reason.MISMATCH)
        reader.expect(task.task_id, "it is of another task", Reason.MISMATCH)
        first, last, number, size = (reader.uint(4) for _ in range(4))
        num_opened, num_dishonest, count = (reader.uint(8) for _ in range(3))
        num_true = reader.uint(8) if has_dummies else None
        root = reader.take(wire.DIGEST_BYTES)
        head = reader.read_so_far()
        signature = reader.take(wire.SIGNATURE_BYTES)
        if not wire.is_signed(signature, shuffler_key, head):
            raise reader.error("the shuffler has not signed it", Reason.FORGED)
        if size != task.record_bytes or first > last:
            raise reader.error("its records have another size, or its epochs run backwards")
        true = count if num_true is None else num_true
        if not max(true, num_dishonest) <= num_opened or true > count:
            raise reader.error(
                "it has more records than were opened for it, or more dishonest ones"
            )
        body = reader.take(count * size)
        reader.finish()
        counts, records = (num_opened, num_dishonest), tuple(split(body, size))
        batch = cls(task, number, first, last, *counts, records, num_true, signature)
        if (batch.records, batch.root) != (records, root):
            if hashlib.sha256(body).digest() != root:
                raise reader.error("its records are not those that were signed", Reason.FORGED)
            raise reader.error("its records are not sorted")
        return batch


def outer_info(task_id: bytes, epoch: int, report_id: bytes) -> bytes:
    """Return the associated data of the outer seal."""
    return b"sdp1s" + hashlib.sha256(task_id + uint(epoch, 4) + report_id).digest()


def inner_info(task_id: bytes) -> bytes:
    """Return the associated data of the inner seal, without the epoch: batches may merge."""
    return b"sdp1a" + hashlib.sha256(task_id).digest()


# --------------------------------------------------------------------- codes
CODE_BYTES: Final = 16

_CHECK_BYTES: Final = 4  # a typo goes unseen once in 2^32
_GROUP: Final = 4  # letters between hyphens

# Largest number of ids kept at a time, over all epochs, 100 bytes each.
_MOST_IDS: Final = 1 << 23


class Codes:
    """Admits the ids that derive from codes.

    Without codes only the honest fraction bounds the reports that one person sends.
    """

    def __init__(self, codes: Iterable[bytes], task_id: bytes) -> None:
        self._codes, self._task_id = tuple(codes), task_id
        self._ids: dict[int, frozenset[bytes]] = {}  # by epoch

    def require_room(self, num_epochs: int) -> None:
        """Raise unless the ids of this number of epochs can be kept."""
        if len(self._codes) * num_epochs > _MOST_IDS:
            what = f"{len(self._codes):,} codes with {num_epochs:,} epochs open at once are more "
            what += f"than {_MOST_IDS:,} ids: shorten grace_seconds, or make the epochs longer"
            raise DataError(what)

    def prepare(self, epochs: Iterable[int]) -> None:
        """Compute the ids of these epochs, and forget all others.

        One hash a code and new epoch, a second for a million: call it in a thread, before an epoch.
        """
        self._ids = {epoch: self._ids.get(epoch) or self._ids_of(epoch) for epoch in epochs}

    def _ids_of(self, epoch: int) -> frozenset[bytes]:
        """Return the ids of an epoch."""
        return frozenset(report_id_of(each, self._task_id, epoch) for each in self._codes)

    def admits(self, epoch: int, report_id: bytes) -> bool | None:
        """Return True if the id belongs to a code; None where the epoch is not prepared.

        Requests of strangers cause no computation.
        """
        found = self._ids.get(epoch)
        return None if found is None else report_id in found


def report_id_of(code: bytes | None, task_id: bytes, epoch: int) -> bytes:
    """Return the only report id that a code has in an epoch of a task; without one, a fresh id."""
    if code is None:
        return Entropy.from_operating_system().words(REPORT_ID_BYTES // 8).tobytes()
    return hashlib.sha256(b"sdp1c" + code + task_id + uint(epoch, 4)).digest()[:REPORT_ID_BYTES]


def new_codes(number: int) -> list[bytes]:
    """Return codes, drawn from the operating system's randomness."""
    drawn = Entropy.from_operating_system().words(number * CODE_BYTES // 8).tobytes()
    return [drawn[at : at + CODE_BYTES] for at in range(0, len(drawn), CODE_BYTES)]


def write_code(code: bytes) -> str:
    """Return a code as people copy it: letters and digits, with check digits against typos."""
    letters = base64.b32encode(code + _check(code)).decode("ascii")
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))


def read_code(text: str) -> bytes:
    """Return the code that a text spells; hyphens, spaces and capitals do not matter."""
    letters = "".join(text.split()).replace("-", "")
    try:
        # People who copy from paper write 0 for O and 1 for I, which the alphabet does not have.
        read = base64.b32decode(letters, casefold=True, map01=b"I")
    except ValueError:
        read = b""
    code = read[:CODE_BYTES]
    if len(read) != CODE_BYTES + _CHECK_BYTES or read[CODE_BYTES:] != _check(code):
        raise DataError("it is no code: a letter is wrong or missing; copy all 8 groups of 4 again")
    return code


def read_codes(text: str) -> list[bytes]:
    """Return codes, one a line; raise for a line that is no code, and for a repeated code."""
    codes: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            code = read_code(line)
        except DataError as error:
            raise DataError(f"line {number}: {error}") from None
        if code in codes:
            raise DataError(f"lines {codes[code]} and {number} are the same code: remove one")
        codes[code] = number
    if not codes:
        raise DataError("there is no code in it")
    return list(codes)


def _check(code: bytes) -> bytes:
    """Return the check digits of a code."""
    return hashlib.sha256(b"sdp1 code" + code).digest()[:_CHECK_BYTES]
