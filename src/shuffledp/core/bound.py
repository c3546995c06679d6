"""``Bound``: the enclosure that every claim about privacy returns, never a bare float."""

import math
import warnings
from dataclasses import dataclass

from shuffledp.core.errors import LowerEndWarning, ParameterError
from shuffledp.core.shown import Shown

# Upper ends for possible events are never below this, so ends may cross by that much.
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Shown):
    """An enclosure of a privacy parameter, with its source and its assumptions.

    Parameters
    ----------
    lower : float or None
        Proved to be unavoidable: no analysis can go below it. ``None`` where nothing is
        known. Errs downwards.
    upper : float
        The proved upper bound. Errs upwards; may be ``inf``.
    method : str
        Short name of the result used, for example ``"clones"``.
    source : str
        Where the statement is proved: title or key, arXiv id with version, theorem number.
    assumptions : tuple of str
        Everything that must hold for the number to be true, one sentence each.

    Raises
    ------
    ParameterError
        If a number is NaN or negative, or ``lower > upper``.

    Examples
    --------
    >>> Bound(lower=0.0, upper=1.0, method="pure", source="definition", assumptions=())
    Bound(upper=1, lower=0, method='pure')
    """

    lower: float | None
    upper: float
    method: str
    source: str
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.upper >= 0.0:  # written so that NaN fails
            raise ParameterError(f"upper = {self.upper} is not a non-negative number")
        if self.lower is not None and not 0.0 <= self.lower <= self.upper:
            raise ParameterError(
                f"lower = {self.lower} is not in [0, upper = {self.upper}]; "
                "a bound that crosses itself proves nothing"
            )

    @property
    def gap(self) -> float | None:
        """Relative distance ``(upper - lower) / upper``; ``None`` without a lower bound."""
        if self.lower is None:
            return None
        if self.upper == 0.0 or math.isinf(self.upper):
            return 0.0 if self.lower == self.upper else 1.0
        return (self.upper - self.lower) / self.upper

    def __repr__(self) -> str:
        lower = "None" if self.lower is None else f"{self.lower:.9g}"
        return f"Bound(upper={self.upper:.9g}, lower={lower}, method={self.method!r})"


def reconciled_lower(
    lower: float | None, upper: float, *, tolerance: float, claim: str
) -> float | None:
    """Return the lower end of a bound; None if it exceeds the upper end by more than rounding."""
    if lower is None:
        return None
    if lower > upper * (1.0 + tolerance) + _SMALLEST:
        warn_of_lower_end(
            f"{claim} gives at most {upper}, but its lower end is {lower}, which is left out: "
            "please report this as a bug"
        )
        return None
    return min(lower, upper)


def warn_of_lower_end(message: str) -> None:
    """Warn that a lower end was dropped."""
    warnings.warn(message, LowerEndWarning, stacklevel=3)
