"""Admission of reports: from any sender, or from holders of codes that the operator gave out.

A code is 16 random bytes, handed to one person. The id of a report is derived from code, task and
epoch, so that the shuffler, which was given the codes, admits one report a code and epoch. Nothing
else in the protocol changes, and a report that is sent again has the same id. Ids of two epochs or
tasks cannot be linked to one person without the code.

Blind signatures would hide even the participants from the shuffler. They need a raw RSA operation
(RFC 9474) or an OPRF (RFC 9497), and `cryptography` offers neither.
"""

import base64
import hashlib
from collections.abc import Iterable
from typing import Final

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.deploy.messages import REPORT_ID_BYTES
from shuffledp.deploy.wire import uint

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
