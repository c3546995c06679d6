"""The two servers as devices, analyzer and operator reach them over HTTP."""

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.core.errors import DataError
from shuffledp.deploy.http_client import MOST_SHORT_BYTES, HttpClient, json_of
from shuffledp.deploy.messages import (
    Answer,
    Role,
    SignedKeys,
    decode_answers,
    report_size,
    require_agreement,
    signed_request,
)
from shuffledp.deploy.task import Task

#: Seconds to try again while a server does not answer.
PATIENCE_SECONDS = 60.0
_MOST_KEYS_BYTES = 1 << 14
_MOST_FILE_BYTES = 1 << 28


class Server:
    """A role as others reach it; a context manager."""

    def __init__(
        self,
        task: Task,
        url: str,
        role: Role,
        key: Ed25519PrivateKey | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._task_id, self._key, self._role = task.task_id, key, role
        self._operator_key = task.operator_key
        self._report_size = report_size(task.asked.codec.num_report_bytes)
        self._base = f"/tasks/{self._task_id.hex()}"
        self._http = HttpClient(url, server=role, patience_seconds=patience_seconds)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, most: int) -> bytes:
        """Make a request, signed if there is a key."""
        path = self._base + path
        token = None
        if self._key is not None:
            token = self._key.sign(signed_request(self._task_id, method, path))
        return self._http.request(method, path, token=token, most=most)

    def keys(self, name: str = "keys") -> SignedKeys:
        """Return the keys to which reports for this role are sealed, or its ``analyzer_keys``."""
        role = self._role if name == "keys" else "analyzer"
        data = self._ask("GET", f"/{name}", _MOST_KEYS_BYTES)
        return SignedKeys.decode(data, self._operator_key, role)

    def upload(self, body: bytes) -> list[Answer]:
        """Hand in reports; return what became of each."""
        number = len(body) // self._report_size
        return decode_answers(self._http.request("POST", f"{self._base}/reports", body), number)

    def sealed(self) -> list[int]:
        """Return the numbers of batches that can be fetched."""
        found = self._said("/batches?after=0", sealed=list)["sealed"]
        return [each for each in found if isinstance(each, int)]

    def batch(self, number: int) -> bytes:
        """Return a batch."""
        return self._ask("GET", f"/batches/{number}", 1 << 34)

    def forget(self, number: int) -> None:
        """Say that a batch is stored, and can be deleted."""
        self._ask("DELETE", f"/batches/{number}", MOST_SHORT_BYTES)

    def results(self) -> dict[str, Any]:
        """Return which batches have results, and which were refused, with why."""
        return self._said("/results", batches=list, refused=dict)

    def _said(self, path: str, **kinds: type) -> dict[str, Any]:
        """Return a JSON object that has something of its kind under each name."""
        found = json_of(self._ask("GET", path, 1 << 20))
        if not isinstance(found, dict) or not all(
            isinstance(found.get(name), kind) for name, kind in kinds.items()
        ):
            raise DataError(f"the answer to {path} is not one of a shuffledp server: check the URL")
        return found

    def file(self, number: int, name: str) -> bytes:
        """Return a file of a result."""
        return self._ask("GET", f"/results/{number}/{name}", _MOST_FILE_BYTES)


def fetch_keys(shuffler: Server, analyzer: Server, now: float) -> tuple[SignedKeys, SignedKeys]:
    """Return both lists, not over; raise if the servers say other things of the analyzer's."""
    sealing, opening = shuffler.keys(), analyzer.keys()
    require_agreement(shuffler.keys("analyzer_keys"), opening)
    for each in (sealing, opening):
        each.require_current(now)
    return sealing, opening
