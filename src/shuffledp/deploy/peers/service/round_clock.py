"""When a relay moves on: from registration through the rounds to the handing in of reports.

No clock is read here: whoever asks says what time it is.
"""

from dataclasses import dataclass, field

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError

CLOCK_MODES = ("interval", "all", "manual")


@dataclass(slots=True, kw_only=True)
class RoundClock:
    """Says when the present phase is over.

    Parameters
    ----------
    mode : {"interval", "all", "manual"}
        How rounds end: after ``round_seconds``, so that nothing but the clock decides; as soon as
        every registered user has sent, at the latest after ``round_seconds``; or when told.
    round_seconds : float
        Length of a round, > 0.
    register_seconds : float, optional
        Registration ends when all users have registered, at the latest after this time; without
        it, all are waited for.
    hand_in_seconds : float, optional
        Handing in ends when all registered users have handed in, at the latest after this time; by
        default ten rounds.

    Raises
    ------
    ParameterError
        If the mode is unknown or a time is not > 0.

    Notes
    -----
    A relay that was stopped and started anew begins the phase that it was in from its start: who
    could not reach it meanwhile has the whole time again.

    Examples
    --------
    >>> clock = RoundClock(mode="all", round_seconds=5.0)
    >>> clock.begin(100.0)
    >>> clock.is_over("round", now=101.0, is_complete=False)
    False
    >>> clock.is_over("round", now=101.0, is_complete=True)
    True
    >>> clock.is_over("round", now=105.0, is_complete=False)
    True
    """

    mode: str = "interval"
    round_seconds: float = 5.0
    register_seconds: float | None = None
    hand_in_seconds: float | None = None
    _since: float = field(default=0.0, init=False)
    _is_told: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.mode not in CLOCK_MODES:
            raise ParameterError(f"clock = {self.mode!r} is not one of {', '.join(CLOCK_MODES)}")
        require_positive("round_seconds", self.round_seconds)
        for name in ("register_seconds", "hand_in_seconds"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))

    def begin(self, now: float) -> None:
        """Begin a phase at ``now``, in seconds of any clock that never goes back."""
        self._since = now
        self._is_told = False

    def tell(self) -> None:
        """End the present phase, whatever the time."""
        self._is_told = True

    def is_over(self, phase: str, *, now: float, is_complete: bool) -> bool:
        """Return whether the present phase is over.

        Parameters
        ----------
        phase : {"registration", "round", "hand-in"}
            The present one.
        now : float
            By the same clock as for `begin`.
        is_complete : bool
            Whether all users have registered, sent or handed in.
        """
        if self._is_told:
            return True
        if phase == "round" and self.mode == "interval":
            is_complete = False  # the pace must say nothing about who was how fast
        elif phase == "round" and self.mode == "manual":
            return False
        limit = self._limit(phase)
        return is_complete or (limit is not None and now - self._since >= limit)

    def seconds_left(self, phase: str, *, now: float) -> float | None:
        """Return after how many seconds the phase ends at the latest; None if nobody knows."""
        limit = self._limit(phase)
        return None if limit is None else max(0.0, self._since + limit - now)

    def _limit(self, phase: str) -> float | None:
        """Return the longest time that the phase lasts."""
        if phase == "registration":
            return self.register_seconds
        if self.mode == "manual":
            return None
        if phase == "hand-in":
            return self.hand_in_seconds or 10.0 * self.round_seconds
        return self.round_seconds
