"""Files that ``task create`` writes and servers read: task, keys, a file of settings a role.

Settings are TOML, and name files for all that is secret; paths in them are relative to the file.
Unknown settings are refused.

Keys are destroyed when they are no longer needed, and new ones made before they run out. The key
of an epoch is never replaced, for devices may have sealed to it; new ones are of later epochs.
Destruction of files is effective on disks that do not keep deleted data: leave the folder of keys
out of backups and snapshots.
"""

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.core.errors import DataError, ShuffledpError, telling
from shuffledp.core.files import replace_file, sync_folder, whole_folder, write_new
from shuffledp.deploy import messages
from shuffledp.deploy.database import bytes_of
from shuffledp.deploy.messages import NUM_KEYS, Codes, Role, SealKey, SignedKeys
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import KEY_BYTES, SIZES, MailKey, Seal, mail_key, new_mail_key

_Decoded = TypeVar("_Decoded")

#: File beside the keys of epochs with the numbers of batches that were handed out.
HANDED_OUT: Final = "handed_out"

_CODES = "shuffler/codes.txt"
_LEAST: Final = {"grace_seconds": 0.0, "poll_seconds": 0.001, "max_epoch_reports": 1.0}
_PUBLIC: Final = re.compile("[0-9a-fA-F]{64}")

# Settings that a running server applies when they are read again.
_RELOADED = {
    "public_keys", "analyzer_keys", "sealing_keys", "opening_keys", "codes", "max_epoch_reports"
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of both roles."""

    role: ClassVar[Role]

    task: Path
    #: Folder for the role's database, and for batches or results.
    store: Path
    #: List of public keys that clients seal to, signed by the operator.
    public_keys: Path
    #: Address at which it listens, ADDRESS:PORT; beyond this machine behind a proxy with TLS.
    listen: str
    #: Address of its health checks and metrics, for the operator alone.
    inner: str
    #: URL of a PostgreSQL database, which several processes may share; by default there is a
    #: SQLite file in ``store``. A password belongs in a file: ``?passfile=PATH``.
    database: str | None = None
    #: Ledger of the users who answer, from which each batch is spent before it leaves this server;
    #: a file of its own for each server. None by default.
    ledger: Path | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; raise `DataError` for an unknown or a missing setting."""
        written, known = _written(path), {each.name: each for each in fields(cls)}
        for name, value in written.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, cutoff=0.8)
                meant = f"; {near[0]!r} was perhaps meant" if near else ""
                whose = f"the {cls.role}'s{meant}"
                raise DataError(f"{path} has a setting {name!r}, which is none of {whose}")
            written[name] = _typed(path, name, value, known[name].type)
        required = (name for name, each in known.items() if each.default is MISSING)
        if missing := [name for name in required if name not in written]:
            raise DataError(f"{path} lacks {', '.join(missing)}")
        return cls(**written)

    def of_instance(self, number: int) -> Self:
        """Return the settings of a further process of the role, with ports raised by 2 x number."""
        listen, inner = (port_on(each, 2 * number) for each in (self.listen, self.inner))
        return replace(self, listen=listen, inner=inner)

    def lists(self) -> dict[str, bytes]:
        """Return the served lists of keys, by name."""
        paths = {"keys": self.public_keys, "analyzer_keys": getattr(self, "analyzer_keys", None)}
        return {name: bytes_of(path) for name, path in paths.items() if path is not None}

    def read_again(self, read: Callable[[], Self]) -> Self:
        """Read the settings again; raise if one differs that a running server cannot change."""
        after = read()
        changed = [
            each.name
            for each in fields(self)
            if each.name not in _RELOADED and getattr(self, each.name) != getattr(after, each.name)
        ]
        if changed or read_task(after.task).task_id != read_task(self.task).task_id:
            what = f"{', '.join(changed) or 'the task'} changed: start the server again for that"
            raise DataError(what)
        return after

    def require_store(self) -> None:
        """Raise unless there is a store, put back from a backup perhaps."""
        if self.database is None and not (self.store / f"{self.role}.db").is_file():
            what = f"{self.store} holds no store of the {self.role}: put its backup back there"
            raise DataError(what)


#: By the type of a setting: accepted types, and their name in messages.
_KINDS: Final[dict[type, tuple[Any, str]]] = {
    Path: (str, "a path"),
    str: (str, "text"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
}


def _typed(path: Path, name: str, value: Any, kind: Any) -> Any:
    """Return the value of a setting; raise `DataError` for a wrong type, or out of range."""
    kind = (get_args(kind) or (kind,))[0]  # a setting may also be missing
    (taken, said), least = _KINDS[kind], _LEAST.get(name)
    is_no_path = kind is Path and (value == "" or "\0" in str(value))
    if not isinstance(value, taken) or isinstance(value, bool) or is_no_path:
        raise DataError(f"{path}: {name} = {value!r} is not {said}")
    if least is not None and not least <= value < math.inf:
        raise DataError(f"{path}: {name} = {value} is not in [{least:g}, inf)")
    if name in {"listen", "inner"}:
        address_of(value)
    if name in {"shuffler", "analyzer", "signs_as"} and not _PUBLIC.fullmatch(value):
        raise DataError(f"{path}: {name} = {value!r} is no public key of 64 hexadecimal digits")
    return path.parent / value if kind is Path else value


def _written(path: Path) -> dict[str, Any]:
    """Return the settings of a file."""
    with telling(f"read {path}", (OSError, ValueError), kind=DataError):
        return tomllib.loads(path.read_text("utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerSettings(Settings):
    """Settings of the shuffler; the folder of keys has one an epoch, and is in no backup."""

    role = "shuffler"

    signing_key: Path
    sealing_keys: Path
    #: The analyzer's list, so that devices can check that both servers serve the same one.
    analyzer_keys: Path
    #: Ed25519 public key with which the analyzer signs requests, hexadecimal.
    analyzer: str
    #: The public half of the signing key, with which the analyzer verifies batches, hexadecimal.
    signs_as: str
    #: Seconds after an epoch in which its reports are still taken in.
    grace_seconds: float = 3600.0
    #: URL such as s3://bucket/prefix below which batches lie until they are fetched; by default
    #: they are files in ``store``. Credentials come from the environment, as S3's tools take them.
    batches: str | None = None
    #: File of codes, one a line, which reports need to be taken in; none by default.
    codes: Path | None = None
    #: Number of reports with which an epoch is full: more are refused, so that no disk fills up.
    max_epoch_reports: int = 10_000_000
    #: The law of the task's dummies, by which the shuffler's owner agrees to add them.
    dummies: str | None = None

    def admission(self, task: Task) -> Codes | None:
        """Return the codes that admit reports, None to admit all."""
        if self.codes is None:
            return None
        admitted = Codes(codes_of(self.codes), task.task_id)
        num_open = int(self.grace_seconds // task.epoch_seconds) + 3  # including the next epoch
        admitted.require_room(min(num_open, task.num_epochs))
        return admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzerSettings(Settings):
    """Settings of the analyzer."""

    role = "analyzer"

    identity_key: Path
    #: Folder of keys that open reports, by number.
    opening_keys: Path
    #: Ed25519 public key that signs batches, hexadecimal.
    shuffler: str
    #: Seconds between requests to the shuffler.
    poll_seconds: float = 60.0


def read_settings(path: Path) -> ShufflerSettings | AnalyzerSettings:
    """Read a file of either role."""
    if "identity_key" in _written(path):
        return AnalyzerSettings.read(path)
    return ShufflerSettings.read(path)


def folder_of(path: Path) -> Path:
    """Return a task's folder, which may be named by its task.bin."""
    return path.parent if path.name == "task.bin" else path


def _decoded(path: Path, decode: Callable[[bytes], _Decoded]) -> _Decoded:
    """Decode the content of a file; an error names the file."""
    data = bytes_of(path)
    try:
        return decode(data)
    except ShuffledpError as error:
        raise DataError(f"cannot use {path}: {error}") from None


def read_task(path: Path) -> Task:
    """Read a task, or the one of a folder; its guarantee is not checked."""
    return _decoded(path / "task.bin" if path.is_dir() else path, Task.decode)


def codes_of(path: Path) -> list[bytes]:
    """Read codes, one a line."""
    try:
        return messages.read_codes(bytes_of(path).decode())
    except (DataError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no file of codes: {error}") from None


def signing_key(path: Path) -> Ed25519PrivateKey:
    """Read a key for signatures."""
    return Ed25519PrivateKey.from_private_bytes(_key_of(path))


def sealing_keys(folder: Path, kind: Seal = "x25519") -> dict[int, MailKey]:
    """Read the keys of a folder: the shuffler's by epoch, the analyzer's by number."""
    numbers = sorted(int(path.stem) for path in folder.glob("*.key") if path.stem.isdecimal())
    return {number: mail_key(kind, _key_of(key_path(folder, number))) for number in numbers}


def key_path(folder: Path, number: int) -> Path:
    """Return the path of the key of an epoch, or of a number."""
    return folder / f"{number}.key"


def read_list(path: Path, task: Task, role: Role) -> SignedKeys:
    """Read a server's list of keys, signed by the task's operator."""
    return _decoded(path, lambda data: SignedKeys.decode(data, role, task))


def _key_of(path: Path) -> bytes:
    """Return the 32 bytes of a key, which the file has in hexadecimal."""
    data = bytes_of(path)
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise DataError(f"{path} holds no key of {KEY_BYTES} bytes in hexadecimal")
    return key


def write_task(
    folder: Path,
    task: Task,
    operator: Ed25519PrivateKey,
    *,
    listen: tuple[str, str],
    grace_seconds: float,
    codes: Sequence[bytes] = (),
) -> None:
    """Write a task with new keys and one file of settings a role, into a new folder."""
    shuffler, analyzer = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    epochs = range(min(task.num_epochs, SIZES[task.seal].most_keys))
    sealing, opening = {n: new_mail_key(task.seal) for n in epochs}, new_mail_key(task.seal)
    signer = _Operator(operator, task, grace_seconds)
    sealing_list = signer.signed("shuffler", sealed_to(sealing), len(sealing))
    opening_list = signer.signed("analyzer", [SealKey(number=0, public_key=_public(opening))], 1)
    with telling(f"write {folder}"), whole_folder(folder) as made:
        for role in ("shuffler", "analyzer"):
            for name in (role, f"{role}/keys", f"{role}/store"):
                (made / name).mkdir(mode=0o700)
        write_new(made / "task.bin", task.encode(), mode=0o644)
        write_new(made / "shuffler/keys.bin", sealing_list, mode=0o644)
        for name in ("shuffler/analyzer_keys.bin", "analyzer/keys.bin"):
            write_new(made / name, opening_list, mode=0o644)
        write_key(made / "operator.key", operator)
        write_key(made / "shuffler/signing.key", shuffler)
        write_key(made / "analyzer/identity.key", analyzer)
        write_key(made / "analyzer/keys/0.key", opening)
        for number, key in sealing.items():
            write_key(made / f"shuffler/keys/{number}.key", key)
        # No batch yet; beside the keys, which are in no backup.
        write_new(made / "shuffler/keys" / HANDED_OUT, b"", mode=0o600)
        if codes:
            lines = "".join(f"{messages.write_code(code)}\n" for code in codes)
            write_new(made / _CODES, lines.encode(), mode=0o600)
        own: dict[str, dict[str, str | float]] = {
            "shuffler": {
                "analyzer_keys": "shuffler/analyzer_keys.bin",
                "signing_key": "shuffler/signing.key",
                "sealing_keys": "shuffler/keys",
                "analyzer": _public(analyzer).hex(),
                "signs_as": _public(shuffler).hex(),
                "grace_seconds": grace_seconds,
                **({"codes": _CODES} if codes else {}),
                **({"dummies": str(task.dummies)} if task.adds_dummies else {}),
            },
            "analyzer": {
                "identity_key": "analyzer/identity.key",
                "opening_keys": "analyzer/keys",
                "shuffler": _public(shuffler).hex(),
                "poll_seconds": min(60.0, task.epoch_seconds / 4),
            },
        }
        for (role, settings), address in zip(own.items(), listen, strict=True):
            settings |= {
                "task": "task.bin",
                "store": f"{role}/store",
                "public_keys": f"{role}/keys.bin",
                "listen": address,
                "inner": port_on(address, 1),
            }
            # Texts and numbers are written alike in TOML and JSON.
            lines = "".join(f"{name} = {json.dumps(each)}\n" for name, each in settings.items())
            write_new(made / f"{role}.toml", lines.encode(), mode=0o644)


def write_key(path: Path, key: Any) -> None:
    """Write a private key into a new file, readable by its owner only."""
    write_new(path, key.private_bytes_raw().hex().encode() + b"\n", mode=0o600)


def sealed_to(keys: Mapping[int, MailKey]) -> list[SealKey]:
    """Return the public keys of epochs, newest first."""
    return [
        SealKey(number=epoch % NUM_KEYS, public_key=_public(key), first_epoch=epoch)
        for epoch, key in sorted(keys.items(), reverse=True)
    ]


class _Operator(NamedTuple):
    """Operator's key for signing lists of keys."""

    key: Ed25519PrivateKey
    task: Task
    grace: float

    def signed(self, role: Role, keys: list[SealKey], serial: int) -> bytes:
        """Sign the list of keys of epochs below ``serial``, or of the analyzer's keys.

        A list ends one epoch after the last report of its last epoch is taken in.
        """
        last = serial if role == "shuffler" else self.task.num_epochs
        until = self.task.start + (last + 1) * self.task.epoch_seconds + int(self.grace) + 1
        made = SignedKeys(serial=serial, not_after=until, keys=tuple(keys))
        return made.signed(self.key, role, self.task).encode()


def _public(key: Any) -> bytes:
    """Return the bytes of a public key."""
    public: bytes = key.public_key().public_bytes_raw()
    return public


def address_of(listen: str) -> tuple[str, int]:
    """Return address and port; raise for anything else."""
    host, _, port = listen.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 0xFFFF:
        raise DataError(f"listen = {listen!r} is not ADDRESS:PORT, such as 127.0.0.1:8410")
    return host.strip("[]"), int(port)


def port_on(listen: str, number: int) -> str:
    """Return the same address with a higher port; port 0, for any free one, stays."""
    host, port = listen.rpartition(":")[0], address_of(listen)[1]
    address_of(moved := f"{host}:{port + number if port else 0}")  # raises beyond the last port
    return moved


def destroy_key(folder: Path, number: int) -> bool:
    """Overwrite and delete the key of an epoch, or of a number; False if there is none."""
    path = key_path(folder, number)
    with telling(f"destroy {path}"), suppress(FileNotFoundError):
        with path.open("r+b") as file:
            file.write(b"0" * path.stat().st_size)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(folder)
        return True
    return False


def destroy_opening_key(settings: AnalyzerSettings, number: int, now: float | None) -> bool:
    """Destroy an old key of the analyzer; False if gone, `DataError` if still needed.

    ``now`` is None if the clock cannot be trusted.
    """
    if now is None:
        what = "the clock is more than an epoch from when the analyzer ran last"
        raise DataError(f"{what}: set it right, or start the analyzer with --accept-clock if it is")
    task = read_task(settings.task)
    listed, present = read_list(settings.public_keys, task, "analyzer"), task.nth_epoch(now)
    used = listed.key_from(max(0, present)).first_epoch
    if number in {key.number for key in listed.keys if key.first_epoch >= used}:
        what = f"key {number} is what devices seal to now or later"
        raise DataError(f"{what}: run shuffledp keys rotate, and wait until the next key is used")
    return destroy_key(settings.opening_keys, number)


def keys_of(settings: ShufflerSettings | AnalyzerSettings, task: Task) -> dict[int, Any]:
    """Return a server's private keys; raise if one does not match its list.

    Reports sealed to such a key would never open.
    """
    if isinstance(settings, ShufflerSettings):
        folder = settings.sealing_keys
    else:
        folder = settings.opening_keys
    role = settings.role
    if not folder.is_dir():  # all keys in it may have been destroyed, but the folder stays
        raise DataError(f"cannot read {folder}: it is no folder; put the keys back where they were")
    listed = read_list(settings.public_keys, task, role)
    public = {each.number: each.public_key for each in listed.keys}
    keys = sealing_keys(folder, task.seal)
    for number, key in keys.items():
        is_listed = role == "analyzer" or listed.serial - NUM_KEYS <= number < listed.serial
        said = public.get(number % NUM_KEYS) if is_listed else None
        if said is not None and said != key.public_key().public_bytes_raw():
            what = "is another key than the list that devices get: put back the keys and the list "
            raise DataError(f"{key_path(folder, number)} {what}that were made together")
    return keys


def rotate(folder: Path, now: float) -> tuple[range, SealKey | None]:
    """Make the analyzer's next key, and keys of epochs as far as possible; sign the lists.

    The analyzer's is used from the second epoch to begin from now, so that the lists are with both
    servers in time and each epoch has one key. Return the epochs with new keys and the analyzer's
    new key; None if one is to come already, or no epoch is left. Private keys are on disk before
    the lists name them. A run that was interrupted can be repeated.
    """
    task, operator = read_task(folder / "task.bin"), signing_key(folder / "operator.key")
    grace = ShufflerSettings.read(folder / "shuffler.toml").grace_seconds
    signer = _Operator(operator, task, grace)
    shuffler, analyzer = folder / "shuffler", folder / "analyzer"
    listed, present = read_list(analyzer / "keys.bin", task, "analyzer"), task.nth_epoch(now)
    last = max(key.first_epoch for key in listed.keys)
    before = read_list(shuffler / "keys.bin", task, "shuffler")
    if (oldest := before.serial - len(before.keys)) > present + 1:
        what = f"the list of keys begins with epoch {oldest:,}, and by this clock it is epoch "
        what += f"{present:,}: the clock is wrong, or was when they were made; set it right, or "
        raise DataError(f"{what}put back the folder from before, unless devices saw the new list")
    first = max(0, task.nth_epoch(now - grace))
    most = SIZES[task.seal].most_keys
    epochs = range(max(first, before.serial), min(task.num_epochs, first + most))
    made = {epoch: new_mail_key(task.seal) for epoch in epochs}
    _write_keys(shuffler / "keys", made)
    if made:
        kept = range(max(first, before.serial - len(before.keys)), before.serial)
        known = [*sealed_to(made), *(before.key_of_epoch(epoch) for epoch in reversed(kept))]
        replace_file(shuffler / "keys.bin", signer.signed("shuffler", known, epochs.stop))
    used_from = max(0, present + 2)
    if not last < used_from < task.num_epochs:
        return epochs, None
    opening, number = new_mail_key(task.seal), listed.serial % NUM_KEYS
    _write_keys(analyzer / "keys", {number: opening})
    key = SealKey(number=number, public_key=_public(opening), first_epoch=used_from)
    keys = [key, *(each for each in listed.keys if each.number != number)]
    after = signer.signed("analyzer", keys[:most], listed.serial + 1)
    for path in (shuffler / "analyzer_keys.bin", analyzer / "keys.bin"):
        replace_file(path, after)
    return epochs, key


def _write_keys(folder: Path, keys: dict[int, MailKey]) -> None:
    """Write keys that no list names yet; replace those left by an interrupted run."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for number, key in keys.items():
        destroy_key(folder, number)
        write_key(key_path(folder, number), key)
    sync_folder(folder)
