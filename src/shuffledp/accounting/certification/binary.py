"""Shuffled binary randomized response in ball arithmetic, for every number of ones of the others.

With q = 1/(1 + e^epsilon0), j ones and l zeros among the others, S = Bin(j, 1 - q) + Bin(l, q) and
f, F its point and cumulated probabilities,

    delta_(j,l) = gain f(m) - (e - 1) F(m - 1),   gain = 1 - q - e q,

m the last s with gain f(s) > loss f(s - 1), loss = e (1 - q) - q. One more user is post-processing,
so a ones and l zeros dominate every j with a <= j <= n - 1 - l: stretches of j are settled by one
pair, and halved where that is too coarse, down to single j.

Convolutions are cut to the windows of the two binomials after tilting by x = gain/loss <= 1, around
which the terms of f(m) and F(m - 1) concentrate: what is left out has at most x^-m E[x^S] times the
tilted mass outside the windows.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

from flint import arb

from shuffledp.accounting.certification.balls import (
    ZERO,
    binomial_point,
    outer_mass,
    up_to,
    window,
)
from shuffledp.core.errors import OutOfRegimeError

# Ball operations of an entry of a window: making it, and two or three convolutions with it.
_ENTRY_OPERATIONS = 8


@dataclass(frozen=True, slots=True)
class Pair:
    """Numbers of ones and of zeros among the others."""

    ones: int
    zeros: int


class BinaryBalls:
    """delta of pairs of neighbouring data at one epsilon < epsilon0, each as a ball.

    Parameters
    ----------
    epsilon0, epsilon : float
        Exact doubles, 0 <= epsilon < epsilon0.
    tail_exponent : float
        Windows leave out about e^-tail_exponent of the terms.
    most_operations : float
        Ball operations after which to give up, over the object's whole life.
    """

    def __init__(
        self, epsilon0: float, epsilon: float, tail_exponent: float, most_operations: float
    ) -> None:
        local, central = arb(epsilon0), arb(epsilon)
        total = local.exp() + 1
        self._q, self._keep = 1 / total, local.exp() / total
        self._gain = central.exp() * (local - central).expm1() / total
        self._loss = (local + central).expm1() / total
        self._slope = central.expm1()
        self._tilt = max(float(self._gain / self._loss), 1e-300) if epsilon > 0.0 else 1.0
        self._tail_exponent = tail_exponent
        self._left = most_operations

    def delta(self, pair: Pair) -> arb:
        """Enclose one pair's delta, O(sqrt(n)) operations.

        Raises
        ------
        OutOfRegimeError
            If all such calls together have taken too many operations.
        """
        high = _Tilted(pair.ones, self._keep, self._q, self._tilt, self._tail_exponent)
        low = _Tilted(pair.zeros, self._q, self._keep, self._tilt, self._tail_exponent)
        self._left -= _ENTRY_OPERATIONS * (high.size + low.size)
        if self._left < 0:
            raise OutOfRegimeError("more ball operations than affordable")
        sums = _TwoBinomials(high, low, arb(self._tilt))
        m = sums.guess
        while m <= sums.last and not self._excess(sums, m + 1) <= 0:
            m += 1
        while m > 0 and self._excess(sums, m) <= 0:
            m -= 1
        value = self._gain * sums.point(m) - self._slope * sums.cumulated(m - 1)
        # From m + 1 on nothing is gained. P/Q falls, so if something is at m - 1, only the term of
        # m itself may have been counted against its sign.
        if m > 0 and not self._excess(sums, m - 1) >= 0:
            return value.union(arb(1))
        return value + up_to(-self._excess(sums, m))

    def _excess(self, sums: "_TwoBinomials", s: int) -> arb:
        """Return P(s) - e Q(s)."""
        return self._gain * sums.point(s) - self._loss * sums.point(s - 1)


class _Tilted:
    """A binomial in the window of its tilted law, by x."""

    def __init__(
        self, trials: int, success: arb, failure: arb, tilt: float, tail_exponent: float
    ) -> None:
        moment = failure + success * tilt
        tilted, complement = success * tilt / moment, failure / moment
        self.trials, self.moment = trials, moment**trials  # E[x^X]
        self.centre = trials * float(tilted)
        self.first, self.last = window(trials, float(tilted), tail_exponent)
        self.outside = outer_mass(trials, tilted, complement, first=self.first, last=self.last)
        self.size = self.last - self.first + 1
        self._law = success, failure

    @cached_property
    def points(self) -> list[arb]:
        """Probabilities in the window."""
        success, failure = self._law
        point, odds = binomial_point(self.trials, self.first, success, failure), success / failure
        points = [point]
        for k in range(self.first, self.last):
            point = point * odds * (self.trials - k) / (k + 1)
            points.append(point)
        return points


class _TwoBinomials:
    """f and F of the sum S of two independent binomials."""

    def __init__(self, first: _Tilted, second: _Tilted, tilt: arb) -> None:
        self._first, self._second, self._tilt = first, second, tilt
        self._left_out = first.moment * second.moment * (first.outside + second.outside)
        self._points: dict[int, arb] = {}
        self.last = first.trials + second.trials
        self.guess = min(max(round(first.centre + second.centre), 0), self.last)

    def _missing(self, s: int) -> arb:
        """Return a ball for what lies outside the windows and sums to at most s."""
        return up_to(self._left_out * self._tilt**-s)

    def point(self, s: int) -> arb:
        """Return f(s)."""
        if not 0 <= s <= self.last:
            return ZERO
        if s not in self._points:
            one, two = self._first, self._second
            start, end = max(one.first, s - two.last), min(one.last, s - two.first)
            row = one.points[max(start - one.first, 0) : max(end - one.first + 1, 0)]
            column = two.points[max(s - end - two.first, 0) : max(s - start - two.first + 1, 0)]
            mass = sum(map(mul, row, reversed(column)), ZERO)
            self._points[s] = mass + self._missing(s)
        return self._points[s]

    def cumulated(self, s: int) -> arb:
        """Return F(s)."""
        one, two = self._first, self._second
        heads = list(accumulate(one.points))
        # Y at most s - last of X: any X in its window goes with it.
        free = min(s - one.last, two.last) - two.first + 1
        mass = heads[-1] * sum(two.points[: max(free, 0)], ZERO)
        # Then one X less for each Y more.
        start, end = max(s - one.last + 1, two.first), min(s - one.first, two.last)
        if start <= end:
            row = two.points[start - two.first : end - two.first + 1]
            column = heads[s - end - one.first : s - start - one.first + 1]
            mass += sum(map(mul, row, reversed(column)), ZERO)
        return mass + self._missing(s)


def worst_delta(balls: BinaryBalls, num_users: int, target: arb) -> arb:
    """Enclose the largest delta over all data, as far as needed to tell it from ``target``.

    Returns
    -------
    arb
        If it is at most ``target``: a ball that holds the largest delta. Otherwise a ball that
        holds the delta of some data, and is not certainly at most ``target``.
    """
    others = num_users - 1
    ends = [balls.delta(Pair(0, others)), balls.delta(Pair(others, 0))]
    for ball in ends:
        if not ball <= target:
            return ball
    largest = ends[0].max(ends[1])
    highest, first, length = largest.upper(), 0, 1
    while first <= others:
        last = min(first + length - 1, others)
        ball = balls.delta(Pair(first, others - last))
        if ball <= target:
            highest = highest.max(ball.upper())
            first, length = last + 1, length + 1 + length // 4
        elif first == last:
            return ball
        else:
            length = 1 + (last - first) // 2
    return largest.union(highest)
