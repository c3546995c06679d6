"""Rounds of a search for popular texts: randomizers of users, and state of earlier rounds.

On one machine only users who drew a round send a report in it. Devices send in every round, so
that the drawn round stays secret: a report in one, and the same "no part" in all others.
"""

import re
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.discovery import Round
from shuffledp.randomizers import checks

#: Mean number of users a round, so that no round is left empty.
LEAST_USERS: Final = 100

_KEY: Final = re.compile("[0-9a-f]{32}")

# Above this no collection is possible, and doubles do not count exactly.
_MOST: Final = 2**53


@dataclass(frozen=True, slots=True, repr=False)
class OneRound:
    """A randomizer with which each user answers one of several rounds, drawn in secret.

    Its blanket hides a report among the reports of all rounds, whatever bins later rounds have (see
    docs/results/worst-pairs.md). Further properties of a single histogram are not used.
    """

    base: Any

    assumptions: ClassVar[tuple[str, ...]] = (
        "Each user answers one round, drawn by an independent secret coin: nobody who sees the "
        "reports knows who answers which.",
    )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def __repr__(self) -> str:
        return repr(self.base)

    @property
    def profile(self) -> LocalProfile:
        """Profile of a report, with its blanket alone."""
        law: LocalProfile = self.base.profile
        return replace(law, family=RandomizerFamily.OTHER, attack=(), channel=None)


@dataclass(frozen=True, slots=True, repr=False)
class DrawnRound(OneRound):
    """The same law on devices, each of which sends in every round.

    A value is a code below k, or k for no part; a report is the row (1, report of ``base``), or
    (0, 0) for no part. Counts have one bin more, the number of reports without a part.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        *OneRound.assumptions,
        "Each honest device sends in every round of the search: one that misses a round hides "
        "nobody, and what it sends in others is hidden by fewer.",
    )

    @property
    def fingerprint(self) -> str:
        """Name of the exact law."""
        return checks.fingerprint_of("drawn-round", base=self.base.fingerprint)

    @property
    def num_report_bytes(self) -> int:
        """Bytes of a report."""
        return 2 * int(self.base.num_report_bytes)

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each code, or k; n = 0 too."""
        codes = checks.require_codes(values, self.domain_size + 1)
        takes_part = codes < self.domain_size
        drawn = self.base.randomize(codes[takes_part], entropy).data
        data = np.zeros((len(codes), 2), dtype=drawn.dtype)
        data[takes_part, 0], data[takes_part, 1] = 1, drawn
        return Reports(data=data, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return the support of each bin, then the number of reports without a part."""
        checks.require_same_law(reports.fingerprint, self.fingerprint)
        parts, drawn = reports.data[:, 0], reports.data[:, 1]
        checks.require_possible(
            (parts == 1) | ((parts == 0) & (drawn == 0)),
            "is {}, neither a report nor no part",
            parts,
        )
        own = Reports(data=drawn[parts == 1], fingerprint=self.base.fingerprint)
        support = np.append(self.base.aggregate(own).support, reports.num_reports - own.num_reports)
        number = reports.num_reports
        return Counts(support=support, num_reports=number, fingerprint=self.fingerprint)

    def of_part(self, counts: Counts) -> Counts:
        """Return the counts of reports with a part, of the law ``base``."""
        number = counts.num_reports - int(counts.support[-1])
        law = self.base.fingerprint
        return Counts(support=counts.support[:-1], num_reports=number, fingerprint=law)


@dataclass(frozen=True, slots=True)
class Search:
    """State of a search among devices, as its next task states it.

    Parameters
    ----------
    key : str
        32 hexadecimal digits that identify the search among the operator's.
    is_for_all : bool
        True if every device answers every round, as with a shuffler's dummies; else one, drawn.
    left : tuple of str
        The prefixes that are kept, in hexadecimal digits, each only once.
    done : tuple of Round
        The earlier rounds.
    """

    key: str
    is_for_all: bool = False
    left: tuple[str, ...] = ("",)
    done: tuple[Round, ...] = ()

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ParameterError(f"key = {self.key!r} is not 32 hexadecimal digits")
        if not isinstance(self.is_for_all, bool):
            raise ParameterError(f"is_for_all = {self.is_for_all!r} is neither True nor False")
        if sorted(set(self.left)) != list(self.left):
            raise ParameterError("left holds a prefix twice, or not in order: take a result's")
        for each in self.done:
            for name, number in each._asdict().items():
                require_at_least(name, number, int(name == "num_users"), _MOST)

    @classmethod
    def from_json(cls, written: Any) -> "Search":
        """Return the search that `to_json_dict` wrote."""
        done = tuple(Round(*each) for each in written["done"])
        return cls(str(written["key"]), written["is_for_all"], tuple(written["left"]), done)

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self) | {"left": list(self.left), "done": [list(each) for each in self.done]}
