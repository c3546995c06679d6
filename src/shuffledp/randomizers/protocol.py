"""``LocalRandomizer``: the one Protocol of everything that a user runs on their own value."""

from fractions import Fraction
from typing import Any, Protocol

from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Aggregate, Reports

# Probabilities of outputs (columns) given inputs (rows); each row sums to exactly 1.
Channel = tuple[tuple[Fraction, ...], ...]


class Estimates(Protocol):
    """What every estimator returns: unbiased values, and how far they may be off."""

    @property
    def standard_error(self) -> NDArray[Any]:
        """Of each unbiased value about these users: the randomization alone."""
        ...

    @property
    def population_standard_error(self) -> NDArray[Any]:
        """The same about a population that the users are a random sample of."""
        ...

    @property
    def lower(self) -> NDArray[Any]:
        """Lower ends of the confidence intervals."""
        ...

    @property
    def upper(self) -> NDArray[Any]:
        """Upper ends of the confidence intervals."""
        ...

    @property
    def num_users(self) -> int:
        """Number of reports."""
        ...

    @property
    def confidence(self) -> float:
        """Nominal coverage of the intervals."""
        ...


class LocalRandomizer(Protocol):
    """A law that each user applies once to their own value, before anything leaves their hands.

    ``epsilon0`` and ``profile`` account for exactly the law that is drawn. To add a randomizer of
    your own, start from `CategoryRandomizer` or `MeanRandomizer`, which leave little to write.
    """

    @property
    def name(self) -> str:
        """Registered name, for example ``"k-rr"``."""
        ...

    @property
    def epsilon0(self) -> float:
        """Local privacy loss in nats of the law drawn, rounded up; at most what was asked for."""
        ...

    @property
    def profile(self) -> LocalProfile:
        """All that the accountant needs to know."""
        ...

    @property
    def fingerprint(self) -> str:
        """Name of the exact law: changes with the family and with every parameter of it."""
        ...

    @property
    def num_report_bytes(self) -> int:
        """Bytes that one report takes in ``Reports.data``."""
        ...

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one fresh report for each value; axis 0 is the users, and may be empty."""
        ...

    def aggregate(self, reports: Reports) -> Aggregate:
        """Return all that an estimator needs of the reports; aggregates of one law add."""
        ...

    def estimate(self, data: Any, *, confidence: float = 0.95) -> Estimates:
        """Return unbiased estimates from reports, or from what `aggregate` made of them."""
        ...
