"""Who may send: anybody, or whoever has one of the codes that the operator gave out.

A code is 16 random bytes, handed to one person. The id of a report is derived from code, task and
epoch, so that the shuffler, which was given the codes, admits one report a code and epoch: the one
whose id it is. Nothing else changes on the way, and what is sent again is still the same report.
Ids of two epochs or tasks tell nobody without the code that they are of one person.

Blind signatures would keep even who takes part from the shuffler. They need a raw RSA operation
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

# Of all epochs together, about 100 bytes each; with the fewest epochs below.
_MOST_IDS_KEPT: Final = 2_000_000


class Codes:
    """Admits the ids that derive from codes.

    Where anybody is admitted only the honest fraction stands between one owner and many reports.
    """

    def __init__(self, codes: Iterable[bytes], task_id: bytes) -> None:
        self._codes, self._task_id = tuple(codes), task_id
        # Several epochs are open at once while one's time of grace lasts: who names them in turn
        # must not have all ids computed each time.
        self._most_epochs = max(2, _MOST_IDS_KEPT // max(1, len(self._codes)))
        self._ids: dict[int, frozenset[bytes]] = {}

    def admits(self, epoch: int, report_id: bytes) -> bool:
        """Return whether the id is that of a code; the first of an epoch costs a hash a code."""
        ids = self._ids.get(epoch)
        if ids is None:
            ids = frozenset(report_id_of(code, self._task_id, epoch) for code in self._codes)
            self._ids = dict([*self._ids.items(), (epoch, ids)][-self._most_epochs :])
        return report_id in ids


def report_id_of(code: bytes | None, task_id: bytes, epoch: int) -> bytes:
    """Return the only report id that a code has in an epoch of a task; without one, a fresh id."""
    if code is None:
        return Entropy.from_operating_system().words(REPORT_ID_BYTES // 8).tobytes()
    return hashlib.sha256(b"sdp1c" + code + task_id + uint(epoch, 4)).digest()[:REPORT_ID_BYTES]


def new_codes(number: int) -> list[bytes]:
    """Return codes, drawn by the operating system's randomness."""
    drawn = Entropy.from_operating_system().words(number * CODE_BYTES // 8).tobytes()
    return [drawn[at : at + CODE_BYTES] for at in range(0, len(drawn), CODE_BYTES)]


def write_code(code: bytes) -> str:
    """Return a code as people copy it: letters and digits, with what tells a typo."""
    letters = base64.b32encode(code + _check(code)).decode("ascii")
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))


def read_code(text: str) -> bytes:
    """Return the code that a text spells; hyphens, spaces and capitals do not matter."""
    letters = "".join(text.split()).replace("-", "")
    try:
        # Who copies from paper writes 0 for O and 1 for I, which the alphabet does not have.
        read = base64.b32decode(letters, casefold=True, map01=b"I")
    except ValueError:
        read = b""
    code = read[:CODE_BYTES]
    if len(read) != CODE_BYTES + _CHECK_BYTES or read[CODE_BYTES:] != _check(code):
        raise DataError("it is no code: a letter is wrong or missing; copy all 8 groups of 4 again")
    return code


def read_codes(text: str) -> list[bytes]:
    """Return codes, one a line; raise for a line that is none, and for one that is there twice."""
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
    """Return what tells a typo."""
    return hashlib.sha256(b"sdp1 code" + code).digest()[:_CHECK_BYTES]
