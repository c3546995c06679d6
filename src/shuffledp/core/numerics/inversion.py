"""Inversion of monotone functions that ends on a proved side, not near a root."""

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
    """Bracket the point at which a decreasing function falls to a target.

    Parameters
    ----------
    function : callable
        Non-increasing on [low, high], non-negative; taken to be at most ``target`` at ``high``.
    target : float
        Positive.
    low, high : float
        0 <= low <= high.
    guess : float, optional
        First point to evaluate; a good one saves most of the evaluations.
    spread : float
        Relative distance of the next point from the guess, in (0, 1): about the guess's error.
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
        # A value equal to the target may be the minimum: no secant step starts there.
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


# Whole numbers up to this are found exactly, larger ones to one part in this number.
_EXACT_BELOW = 10_000

# Power-law steps in a row that may fail to halve the bracket.
_PATIENCE = 4

# Longest step in the logarithm, and overshoot of the first step beyond the target.
_LONGEST_STEP, _FIRST_BEYOND = math.log(1e4), 0.05


def last_within(cost: Callable[[int], float], target: float, *, most: int) -> int:
    """Return the largest number, at most ``most``, whose increasing cost is within the target.

    Exact below 10,000, otherwise less than one part in ten thousand too small.
    """
    if most < 1:
        return 0
    enough, _ = neighbours(cost, target, power=0.5, most=most)
    return enough


def neighbours(
    cost: Callable[[int], float],
    target: float,
    *,
    power: float,
    most: int,
    least: int = 0,
    guess: float = 1.0,
    exact_below: int = _EXACT_BELOW,
) -> tuple[int, int]:
    """Return two whole numbers, low and high, between which a monotone cost crosses the target.

    They are adjacent below ``exact_below``, and beyond it at most one part in that number apart.
    The cost is assumed to be about proportional to a power of the number, positive or negative.
    An end that was never evaluated is ``least`` or ``most`` + 1. After four steps in a row that do
    not halve the bracket comes ``most``, or bisection in the logarithm; so after a step beyond it.
    """
    low, high = least, most + 1
    point, slow = int(min(max(guess, low + 1.0), most)), 0
    known: list[tuple[float, float]] = []
    while True:
        width, found = math.log(high / max(low, 0.5)), cost(point)
        if 0.0 < found / target < math.inf:
            known.append((math.log(point), math.log(found / target)))
        if (found <= target) == (power > 0.0):
            low = point
        else:
            high = point
        if high - low <= max(1, low // exact_below):
            return low, high
        slow = 0 if math.log(high / max(low, 0.5)) <= 0.5 * width else slow + 1
        is_trusted = bool(known) and slow < _PATIENCE
        point = _by_power_law(known, power, exact_below) if is_trusted else low
        # Barely beyond the bracket, where its overshoot leads: the crossing is at that end.
        if is_trusted and (high > most or 0.9 * low <= point <= 1.1 * high):
            point = min(max(point, low + 1), high - 1)
        elif not low < point < high:  # where the cost hardly changes, perhaps to the end, or jumps
            point = most if high > most else max(math.isqrt(max(low, 1) * high), low + 1)
            slow = 0


def _by_power_law(known: list[tuple[float, float]], power: float, exact_below: int) -> int:
    """Return a number slightly beyond the crossing; ``known`` are logarithms, at least one.

    The law goes through the two values nearest to the target, if its power is about the one
    stated. The overshoot is large enough for the other end of the bracket to close in as well.
    """
    nearest = sorted(known, key=lambda each: abs(each[1]))[:2]
    (place, excess), slope, least = nearest[0], power, _FIRST_BEYOND
    if len(nearest) == 2:
        local = (nearest[1][1] - excess) / (nearest[1][0] - place)
        if 0.2 < local / power < 5.0:
            slope, least = local, 0.4 / exact_below
    step = min(max(-excess / slope, -_LONGEST_STEP), _LONGEST_STEP)
    return round(math.exp(place + step + math.copysign(max(least, 0.02 * abs(step)), step)))
