"""What each role is told: one TOML file, which names files for all that is secret.

Paths in it are relative to the file. Whatever it does not know it refuses.
"""

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.core.errors import DataError
from shuffledp.deploy.admission import Admission, Anybody, Codes, read_codes, write_code
from shuffledp.deploy.database import bytes_of, write_new
from shuffledp.deploy.messages import NUM_KEYS, Role, SealKey, SignedKeys
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import KEY_BYTES

_CODES = "shuffler/codes.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What both roles need."""

    task: Path
    #: Folder for the role's database, and for batches or results.
    store: Path
    #: List of public keys that clients seal to, signed by the operator.
    public_keys: Path
    #: Where it listens, ADDRESS:PORT; beyond this machine behind a proxy with TLS.
    listen: str
    #: Where it tells of its health and of numbers, for the operator alone.
    inner: str
    #: URL of a PostgreSQL database, which several processes may share; by default there is a
    #: SQLite file in ``store``. A password belongs in a file: ``?passfile=PATH``.
    database: str | None = None
    #: Budget of those who answer, from which each batch is spent before it leaves this server; a
    #: file of its own for each server. None by default.
    ledger: Path | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; raise `DataError` for a name it should not have, or lacks."""
        written = _written(path)
        known = [each.name for each in fields(cls)]
        for name in written:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                meant = f"; {near[0]!r} was perhaps meant" if near else ""
                raise DataError(f"{path} has a setting {name!r}, which is not known{meant}")
        missing = [
            each.name
            for each in fields(cls)
            if each.name not in written and each.default is MISSING
        ]
        if missing:
            raise DataError(f"{path} lacks {', '.join(missing)}")
        is_path = {each.name: "Path" in str(each.type) for each in fields(cls)}
        for name, value in written.items():
            written[name] = path.parent / str(value) if is_path[name] else value
        return cls(**written)

    def of_instance(self, number: int) -> Self:
        """Return the settings of a further process of the role: its ports are 2 x number on."""
        listen, inner = (_port_on(each, 2 * number) for each in (self.listen, self.inner))
        return replace(self, listen=listen, inner=inner)

    def read_task(self) -> Task:
        """Return the task, its guarantee recomputed."""
        task = read_task(self.task)
        task.check()
        return task


def _written(path: Path) -> dict[str, Any]:
    """Return what a file of settings says."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerSettings(Settings):
    """The shuffler's: the folder of keys has one an epoch, and is in no backup."""

    signing_key: Path
    sealing_keys: Path
    #: The analyzer's list, so that devices can see that both servers serve the same one.
    analyzer_keys: Path
    #: Ed25519 public key by which the shuffler knows the analyzer, hexadecimal.
    analyzer: str
    #: Seconds after an epoch in which its reports are still taken in.
    grace_seconds: float = 3600.0
    #: URL such as s3://bucket/prefix below which batches lie until they are fetched; by default
    #: they are files in ``store``. Credentials come from the environment, as S3's tools take them.
    batches: str | None = None
    #: Codes, one a line, without which nobody's report is taken in; none by default.
    codes: Path | None = None

    def admission(self, task: Task) -> Admission:
        """Return who may send."""
        return Anybody() if self.codes is None else Codes(codes_of(self.codes), task.task_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzerSettings(Settings):
    """The analyzer's."""

    identity_key: Path
    #: Folder of keys that open reports, by number.
    opening_keys: Path
    #: Ed25519 public key that signs batches, hexadecimal.
    shuffler: str
    #: Seconds between questions to the shuffler.
    poll_seconds: float = 60.0


def read_settings(path: Path) -> ShufflerSettings | AnalyzerSettings:
    """Read a file of either role."""
    if "identity_key" in _written(path):
        return AnalyzerSettings.read(path)
    return ShufflerSettings.read(path)


def read_task(path: Path) -> Task:
    """Read a task; its numbers are not checked."""
    return Task.decode(bytes_of(path))


def codes_of(path: Path) -> list[bytes]:
    """Read codes, one a line."""
    try:
        return read_codes(bytes_of(path).decode())
    except (DataError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no file of codes: {error}") from None


def signing_key(path: Path) -> Ed25519PrivateKey:
    """Read a key for signatures."""
    return Ed25519PrivateKey.from_private_bytes(_key_of(path))


def sealing_keys(folder: Path) -> dict[int, X25519PrivateKey]:
    """Read the keys of a folder: the shuffler's by epoch, the analyzer's by number."""
    numbers = sorted(int(path.stem) for path in folder.glob("*.key") if path.stem.isdecimal())
    return {
        number: X25519PrivateKey.from_private_bytes(_key_of(key_path(folder, number)))
        for number in numbers
    }


def key_path(folder: Path, number: int) -> Path:
    """Return where the key of an epoch lies, or that of a number."""
    return folder / f"{number}.key"


def read_list(path: Path, task: Task, role: Role) -> SignedKeys:
    """Read a server's list of keys, which the task's operator has signed."""
    return SignedKeys.decode(bytes_of(path), task.operator_key, role)


def _key_of(path: Path) -> bytes:
    """Return the 32 bytes of a key, written as hexadecimal."""
    try:
        key = bytes.fromhex(bytes_of(path).decode("ascii").strip())
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
    epochs = range(min(task.num_epochs, NUM_KEYS))
    sealing, opening = {n: X25519PrivateKey.generate() for n in epochs}, X25519PrivateKey.generate()
    folder.mkdir(parents=True)
    for role in ("shuffler", "analyzer"):
        for name in (role, f"{role}/keys", f"{role}/store"):
            (folder / name).mkdir(mode=0o700)
    opening_keys = opening_list(task, operator, opening, 1, grace_seconds).encode()
    public = {
        "task.bin": task.encode(),
        "shuffler/keys.bin": shuffler_list(
            task, operator, sealed_to(sealing), len(sealing), grace_seconds
        ).encode(),
        "shuffler/analyzer_keys.bin": opening_keys,
        "analyzer/keys.bin": opening_keys,
    }
    for name, data in public.items():
        write_new(folder / name, data, mode=0o644)
    secrets: dict[str, Any] = {
        "operator.key": operator,
        "shuffler/signing.key": shuffler,
        "analyzer/identity.key": analyzer,
        "analyzer/keys/0.key": opening,
        **{f"shuffler/keys/{number}.key": key for number, key in sealing.items()},
    }
    for name, key in secrets.items():
        write_key(folder / name, key)
    if codes:
        lines = "".join(f"{write_code(code)}\n" for code in codes)
        write_new(folder / _CODES, lines.encode(), mode=0o600)
    _write_settings(
        folder / "shuffler.toml",
        task="task.bin",
        store="shuffler/store",
        public_keys="shuffler/keys.bin",
        analyzer_keys="shuffler/analyzer_keys.bin",
        listen=listen[0],
        inner=_port_on(listen[0], 1),
        signing_key="shuffler/signing.key",
        sealing_keys="shuffler/keys",
        analyzer=_public(analyzer).hex(),
        grace_seconds=grace_seconds,
        **({"codes": _CODES} if codes else {}),
    )
    _write_settings(
        folder / "analyzer.toml",
        task="task.bin",
        store="analyzer/store",
        public_keys="analyzer/keys.bin",
        listen=listen[1],
        inner=_port_on(listen[1], 1),
        identity_key="analyzer/identity.key",
        opening_keys="analyzer/keys",
        shuffler=_public(shuffler).hex(),
        poll_seconds=min(60.0, task.epoch_seconds / 4),
    )


def write_key(path: Path, key: Any) -> None:
    """Write a private key into a new file, for its owner only."""
    write_new(path, key.private_bytes_raw().hex().encode() + b"\n", mode=0o600)


def sealed_to(keys: Mapping[int, X25519PrivateKey]) -> list[SealKey]:
    """Return the public keys of epochs, newest first."""
    return [
        SealKey(number=epoch % NUM_KEYS, public_key=_public(key))
        for epoch, key in sorted(keys.items(), reverse=True)
    ]


def shuffler_list(
    task: Task, operator: Ed25519PrivateKey, keys: list[SealKey], serial: int, grace: float
) -> SignedKeys:
    """Sign the shuffler's list, of the keys of epochs below ``serial``."""
    until = _end_of_list(task, serial, grace)
    return SignedKeys.signed(operator, "shuffler", serial=serial, not_after=until, keys=keys)


def opening_list(
    task: Task, operator: Ed25519PrivateKey, key: X25519PrivateKey, serial: int, grace: float
) -> SignedKeys:
    """Sign the analyzer's list, of its newest key alone: older ones would split batches."""
    keys, until = sealed_to({serial - 1: key}), _end_of_list(task, task.num_epochs, grace)
    return SignedKeys.signed(operator, "analyzer", serial=serial, not_after=until, keys=keys)


def _end_of_list(task: Task, num_epochs: int, grace: float) -> int:
    """Return when a list ends, an epoch after the last report of its last epoch is taken in."""
    return task.start + (num_epochs + 1) * task.epoch_seconds + int(grace) + 1


def _write_settings(path: Path, **settings: str | float) -> None:
    """Write settings as TOML, which has texts and numbers as JSON has them."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    write_new(path, ("\n".join(lines) + "\n").encode(), mode=0o644)


def _public(key: Any) -> bytes:
    """Return the bytes of a public key."""
    public: bytes = key.public_key().public_bytes_raw()
    return public


def address_of(listen: str) -> tuple[str, int]:
    """Return address and port; raise for anything else."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 0xFFFF:
        raise DataError(f"listen = {listen!r} is not ADDRESS:PORT, such as 127.0.0.1:8410")
    return host.strip("[]"), int(port)


def _port_on(listen: str, number: int) -> str:
    """Return the same address, so many ports on; port 0, which is any free one, stays."""
    host, port = address_of(listen)
    return f"{host}:{port + number if port else 0}"
