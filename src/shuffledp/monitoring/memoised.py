"""``MemoisedReports``: one report for each value, which a device sends in all periods.

For a question that is asked again every period with a shuffler's dummies: the releases compose as
releases of the reports themselves, and an adversary who sees all reports of a user sees one draw a
value, not one a period. See docs/results/dummies.md.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import SupportsIndex

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, FingerprintError, ShuffledpError, telling
from shuffledp.core.files import hidden_beside, sync_folder, write_new
from shuffledp.core.reports import Reports
from shuffledp.randomizers.base import CategoryRandomizer


class MemoisedReports:
    """Reports of one user, drawn once for every possible value and kept in a file.

    Parameters
    ----------
    path : str or path-like
        State of this device for one question, secret; made if there is none. If it is removed, the
        next reports are new draws, which cost epsilon0 each once more.
    randomizer : CategoryRandomizer
        Law of the reports; a file of another law is refused.
    entropy : Entropy, optional
        Source of the draws, by default the operating system's generator.

    Raises
    ------
    DataError
        If the file is damaged: it is never replaced.
    FingerprintError
        If it is of another law.
    OutputError
        If it cannot be written, as where there is no such folder, or are no hard links.

    Notes
    -----
    All draws are on disk before the first report is returned, and nothing is written later, so
    that a device that is stopped at any moment goes on with the same reports or has sent none.
    Processes that start at once share the draws of the first.

    An adversary who links a user's reports learns *when* a report changed or came back, hence that
    the value did: epsilon0 for each distinct value is between histories in which the same periods
    share a value. Between others, such as a, b, a and a, b, c, there is no limit.

    Examples
    --------
    >>> import tempfile
    >>> from shuffledp.randomizers import KRandomizedResponse
    >>> law = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = MemoisedReports(f"{folder}/state", law).report(2)
    ...     again = MemoisedReports(f"{folder}/state", law).report(2)
    >>> bool(first.data[0] == again.data[0])
    True
    """

    __slots__ = ("_reports",)

    def __init__(
        self,
        path: str | os.PathLike[str],
        randomizer: CategoryRandomizer,
        *,
        entropy: Entropy | None = None,
    ) -> None:
        location = Path(path)
        if not location.exists():
            source = Entropy.from_operating_system() if entropy is None else entropy
            _write(location, randomizer.randomize(np.arange(randomizer.domain_size), source))
        self._reports = _read(location, randomizer)

    def report(self, code: SupportsIndex) -> Reports:
        """Return the report of a value, given as its position in the domain: always the same."""
        place = require_at_least("code", code, 0, self._reports.num_reports - 1)
        kept = self._reports
        return Reports(data=kept.data[place : place + 1], fingerprint=kept.fingerprint)


def _write(path: Path, reports: Reports) -> None:
    """Make the file of these reports, on disk on return, unless it exists by now."""
    partial = hidden_beside(path)
    with telling(f"write {path}"):
        try:
            write_new(partial, _text(reports).encode("ascii"), mode=0o600)
            with suppress(FileExistsError):  # another process was first: its draws count
                os.link(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        sync_folder(path.parent)


def _text(reports: Reports) -> str:
    """Return the text of a file; its checksum is against accidents, and anybody can forge it."""
    state = {"fingerprint": reports.fingerprint, "reports": reports.data.tolist()}
    digest = hashlib.sha256(json.dumps(state).encode("ascii")).hexdigest()
    return json.dumps(state | {"checksum": digest[:16]})


def _read(path: Path, randomizer: CategoryRandomizer) -> Reports:
    """Return the checked reports of a file."""
    empty = randomizer.randomize(np.arange(0), Entropy.from_seed(0)).data
    shape = randomizer.domain_size, *empty.shape[1:]
    try:
        state = json.loads(text := path.read_text(encoding="ascii"))
        data = np.array(state["reports"], dtype=empty.dtype).reshape(shape)
        reports = Reports(data=data, fingerprint=str(state["fingerprint"]))
        randomizer.aggregate(reports)
        is_whole = text == _text(reports)
    except FingerprintError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        ShuffledpError,
    ):
        is_whole = False
    if not is_whole:
        raise DataError(
            f"{path.name} is no state of memoised reports, or damaged: restore a copy, since new "
            "draws would cost epsilon0 once more"
        )
    return reports
