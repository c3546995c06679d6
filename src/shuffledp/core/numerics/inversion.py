"""Inversion of decreasing functions that ends on a proved side, not near a root."""

import math
from collections.abc import Callable


def last_above_first_below(
    function: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    *,
    guess: float | None = None,
    spread: float = 1e-6,
    relative_tolerance: float = 1e-9,
) -> tuple[float, float]:
    """Bracket where a decreasing function falls to a target.

    Parameters
    ----------
    function : callable
        Non-increasing on [low, high], non-negative; taken to be at most ``target`` at ``high``.
    target : float
        Positive.
    low, high : float
        0 <= low <= high.
    guess : float, optional
        Where to look first; a good one saves most of the evaluations.
    spread : float
        How far from the guess, relatively, to look next, in (0, 1): about as far as it is off.
    relative_tolerance : float
        The bracket ends narrower than this times its upper end.

    Returns
    -------
    above, below : float
        ``function(above) > target`` and ``function(below) <= target``, both evaluated (save
        ``below == high``); ``above = below = low`` where the function starts at or below it.

    Notes
    -----
    Secant steps on the logarithm, each aimed slightly past the root so that both ends move;
    bisection whenever a step fails to halve the bracket. About ten evaluations, five with a guess.

    Examples
    --------
    >>> above, below = last_above_first_below(lambda x: 1.0 / x, 0.5, 1.0, 10.0)
    >>> above < 2.0 <= below and below - above < 1e-8
    True
    """

    def excess(point: float) -> float:
        value = function(point)
        # A value equal to the target may be the least that there is: no secant leads from there.
        return math.log(value / target) if value > 0.0 and value != target else -math.inf

    ends = _surround(excess, low, high, guess, spread)
    if ends is None:
        return low, low
    above, at_above, below, at_below = ends
    bisect = at_below == -math.inf
    while below - above > relative_tolerance * below:
        width = below - above
        point = 0.5 * (above + below)
        if not bisect:
            root = above + width * at_above / (at_above - at_below)
            # Step a little beyond the root, towards the farther end, to close in from that side.
            nudge = max(0.4 * relative_tolerance * below, 0.01 * min(root - above, below - root))
            point = root + nudge if root - above < below - root else root - nudge
        if not above < point < below:
            point = 0.5 * (above + below)
            if not above < point < below:
                break  # nothing representable is left between the ends
        at_point = excess(point)
        if at_point > 0.0:
            above, at_above = point, at_point
        else:
            below, at_below = point, at_point
        bisect = below - above > 0.5 * width or at_below == -math.inf
    return above, below


def _surround(
    excess: Callable[[float], float], low: float, high: float, guess: float | None, spread: float
) -> tuple[float, float, float, float] | None:
    """Return two ends around the root and the function's logs there; None if it is below at low.

    From a guess the search widens by factors of thirty, from ``spread`` on.
    """
    above, at_above, below, at_below = low, math.nan, high, -math.inf
    point, direction = high if guess is None else guess, 0.0
    while low < point < high:
        at_point = excess(point)
        if at_point > 0.0:
            above, at_above = point, at_point
        else:
            below, at_below = point, at_point
        last, direction = direction, math.copysign(1.0, at_point)
        if last * direction < 0.0:
            break
        point *= 1.0 + direction * spread
        spread *= 30.0
    if math.isnan(at_above):
        at_above = excess(low)
    return (above, at_above, below, at_below) if at_above > 0.0 else None
