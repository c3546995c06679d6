"""``Bound`` and ``Guarantee``: what every claim about privacy returns, never a bare float."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

from shuffledp.core.checks import require_at_least
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

    def at_most(self, upper: float, **changes: Any) -> "Bound":
        """Return the bound with an upper end that is proved elsewhere, if that is smaller.

        Parameters
        ----------
        upper : float
            The proved upper end.
        **changes : str or tuple of str
            Method, source or assumptions of that upper end, where they differ.

        Returns
        -------
        Bound
            Its lower end is cut at the upper one: ends that meet may cross by their rounding.
        """
        if self.upper <= upper:
            return self
        lower = None if self.lower is None else min(self.lower, upper)
        return replace(self, lower=lower, upper=upper, **changes)

    def assuming(self, *assumptions: str) -> "Bound":
        """Return the bound with more assumptions, each once."""
        return replace(self, assumptions=tuple(dict.fromkeys((*self.assumptions, *assumptions))))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Shown):
    """A central (epsilon, delta) guarantee: one of the two was given, the other was computed.

    Parameters
    ----------
    epsilon : Bound or float
        In nats; a `Bound` if it is the one that was computed.
    delta : Bound or float
        In [0, 1]; a `Bound` if it is the one that was computed.
    num_users : int
        Number of honest users whose reports are shuffled together; of the smallest batch, if there
        are several.
    rounds : int
        Number of batches about the same people.

    Raises
    ------
    ParameterError
        If not exactly one of ``epsilon`` and ``delta`` is a `Bound`, or a number is out of range.

    Examples
    --------
    >>> bound = Bound(lower=0.25, upper=0.5, method="pure", source="definition", assumptions=())
    >>> Guarantee(epsilon=bound, delta=1e-8, num_users=100).to_json_dict()["epsilon"]
    {'lower': 0.25, 'upper': 0.5}
    """

    epsilon: Bound | float
    delta: Bound | float
    num_users: int
    rounds: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, Bound) == isinstance(self.delta, Bound):
            raise ParameterError(
                f"epsilon = {self.epsilon!r} and delta = {self.delta!r}: give exactly one Bound"
            )
        name, high = ("epsilon", math.inf) if isinstance(self.delta, Bound) else ("delta", 1.0)
        if not 0.0 <= (given := getattr(self, name)) <= high:  # written so that NaN fails
            raise ParameterError(f"{name} = {given} is not in [0, {high:g}]")
        require_at_least("num_users", self.num_users, 1)
        require_at_least("rounds", self.rounds, 1)

    @property
    def bound(self) -> Bound:
        """The parameter that was computed."""
        # __post_init__ made sure that delta is a Bound where epsilon is none.
        return self.epsilon if isinstance(self.epsilon, Bound) else self.delta  # type: ignore[return-value]

    @property
    def upper(self) -> float:
        """Proved upper end of the computed parameter."""
        return self.bound.upper

    @property
    def lower(self) -> float | None:
        """Lower end of the computed parameter, proved to be unavoidable; None if not known."""
        return self.bound.lower

    @property
    def epsilon_upper(self) -> float:
        """Epsilon in nats: the proved upper bound, or as given."""
        return self.epsilon.upper if isinstance(self.epsilon, Bound) else self.epsilon

    @property
    def delta_upper(self) -> float:
        """Delta: the proved upper bound, or as given."""
        return self.delta.upper if isinstance(self.delta, Bound) else self.delta

    def assuming(self, *assumptions: str) -> "Guarantee":
        """Return the guarantee with more assumptions, each once."""
        return self._with(self.bound.assuming(*assumptions))

    def without_lower(self) -> "Guarantee":
        """Return the guarantee without its lower end."""
        return self._with(replace(self.bound, lower=None))

    def _with(self, bound: Bound) -> "Guarantee":
        """Return the guarantee with another bound on what is computed."""
        is_epsilon = self.epsilon is self.bound
        return replace(self, epsilon=bound) if is_epsilon else replace(self, delta=bound)

    def to_json_dict(self) -> dict[str, object]:
        """Return the JSON object of ``shuffledp account --json``.

        Returns
        -------
        dict
            ``epsilon``, ``delta``, ``method``, ``source``, ``assumptions``, and ``rounds`` if
            there are several. The computed one of the first two is ``{"lower", "upper"}``, the
            given one a number. A ``lower`` of ``None`` means that nothing is known, an ``upper`` of
            ``None`` that no finite bound holds (JSON has no infinity).
        """
        return {
            "epsilon": _json_number(self.epsilon),
            "delta": _json_number(self.delta),
            "method": self.bound.method,
            "source": self.bound.source,
            "assumptions": list(self.bound.assumptions),
            **({"rounds": self.rounds} if self.rounds > 1 else {}),
        }


def _json_number(value: Bound | float) -> object:
    """Return a number as it is, and a bound as ``{"lower", "upper"}`` with ``None`` for inf."""
    if not isinstance(value, Bound):
        return value
    return {"lower": value.lower, "upper": finite(value.upper)}


def finite(value: Any) -> Any:
    """Return a value for JSON, at any depth None in the place of infinities and NaN."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
