"""What a randomizer for collections over time tells the accountant."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringProfile:
    """The privacy law of a client that reports on a changing value, as the accountant sees it.

    A client draws one level of the dyadic tree over the periods and reports a sign at the end of
    each node of that level: a uniform sign where its value did not change, the change times a
    random sign where it did. The law of those random signs is what this profile describes.

    Parameters
    ----------
    protocol : str
        Name of the law of the signs, for example ``"predrawn-signs"``.
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports; rounded up.
    max_changes : int
        k: changes of the value that a client follows, at least 1.
    num_levels : int
        L: levels of the tree, of which a client draws one uniformly; at least 1.
    sign_correlations : tuple of Fraction
        r_i, exactly: the mean of the product of i different signs. r_0 = 1; r_1 is the gap; those
        that are left out, up to r_k, are 0.
    uniform_share : Fraction
        The least density of a user's whole set of reports relative to uniform reports, exactly:
        with that probability a user's reports can be taken to be uniform, whatever the value did.
    alternating : bool
        Whether nonzero increments alternate in sign and begin with +, as for a bit that
        starts at 0 do. ``False`` assumes nothing.

    Raises
    ------
    ParameterError
        If a number is NaN or out of range.

    Examples
    --------
    >>> profile = MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=1.1, max_changes=2, num_levels=4,
    ...     sign_correlations=(Fraction(1), Fraction(1, 4)), uniform_share=Fraction(1, 2),
    ...     alternating=True)
    >>> profile.gap, profile.correlation(2)
    (0.25, Fraction(0, 1))
    """

    protocol: str
    epsilon0: float
    max_changes: int
    num_levels: int
    sign_correlations: tuple[Fraction, ...]
    uniform_share: Fraction
    alternating: bool

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        set_field("epsilon0", require_non_negative("epsilon0", self.epsilon0))
        set_field("max_changes", require_at_least("max_changes", self.max_changes, 1))
        set_field("num_levels", require_at_least("num_levels", self.num_levels, 1))
        _require_correlations(self.sign_correlations, self.max_changes)
        if not 0 <= self.uniform_share <= 1:
            raise ParameterError(
                f"uniform_share = {float(self.uniform_share)} is not in [0, 1]: it is a probability"
            )

    @property
    def gap(self) -> float:
        """r_1, the mean of a sign, rounded to the nearest float; exact in `sign_correlations`."""
        return float(self.correlation(1))

    def correlation(self, order: int) -> Fraction:
        """Return r_i, the mean of the product of ``order`` different signs, exactly.

        Parameters
        ----------
        order : int
            i >= 0. Beyond the correlations on record the answer is 0.

        Returns
        -------
        Fraction
            In [-1, 1].
        """
        order = require_at_least("order", order, 0)
        return self.sign_correlations[order] if order < len(self.sign_correlations) else Fraction(0)


def _require_correlations(correlations: tuple[Fraction, ...], max_changes: int) -> None:
    """Raise unless r_0 = 1, r_1 >= 0, all lie in [-1, 1], and there are no more than r_k."""
    is_counted = 1 <= len(correlations) <= max_changes + 1 and correlations[0] == 1
    is_positive = min(correlations[1:2], default=0) >= 0
    if not (is_counted and is_positive and all(-1 <= each <= 1 for each in correlations)):
        raise ParameterError(
            f"sign_correlations has {len(correlations)} entries: give r_0 = 1 and at most "
            f"max_changes = {max_changes} more in [-1, 1]; where r_1 < 0, exchange the two signs"
        )
