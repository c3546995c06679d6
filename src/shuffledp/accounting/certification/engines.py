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

Which sum evaluates which law, how narrowly, and when it is too much work.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import accumulate
from operator import mul

from flint import arb

from shuffledp.accounting.certification.laws import (
    CLOSED_FORMS,
    GUARD_BITS,
    UPPER_LAWS,
    ZERO,
    Atom,
    Law,
    Recipe,
    SymmetricBalls,
    binary_ends,
    binomial_point,
    explicit_data,
    outer_mass,
    outward,
    up_to,
    window,
)
from shuffledp.accounting.certification.sums import (
    contour_delta,
    enumerated_delta,
    enumeration_work,
    symmetric_delta,
    symmetric_work,
)
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

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
        """Enclose one pair's delta, O(sqrt(n)) operations."""
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
    """Enclose the largest delta over all data, as far as needed to tell it from ``target``."""
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


__all__ = ["CERTIFIABLE", "GUARD_BITS", "Claim", "attacks", "outward", "upper_delta"]

# Methods that have a certificate.
CERTIFIABLE = (*UPPER_LAWS, "binary-exact", *CLOSED_FORMS)

# Ball operations after which to give up: some ten seconds.
MOST_OPERATIONS = 3e7

# From here on an integral is faster than sums over two numbers, and as narrow as needed.
_MOST_SUM_OPERATIONS = 5e6

# Below this many, listing all outcomes is faster than an integral.
_FEW_OPERATIONS = 3e6

# Smoothing of the integral over the deviation of the sum: its square is the relative width of
# epsilon, about. Much less than the last takes too many nodes.
_SMOOTHINGS = (1e-3, 5e-5, 5e-6, 1e-6)

# Numbers of users up to which all data of binary randomized response are affordable, about.
_MOST_BINARY_USERS = 100_000


@dataclass(frozen=True, slots=True)
class Claim:
    """Which delta is asked for, and which value it is to be told from."""

    profile: LocalProfile
    num_users: int
    epsilon: float
    target: float

    @property
    def tail_exponent(self) -> float:
        """Windows leave out e^-tail_exponent, far below the target."""
        return 50.0 - math.log(max(self.target, 1e-310))


def law_delta(law: Law, claim: Claim, level: int) -> arb:
    """Enclose (B) for a law; a higher ``level`` makes the ball narrower."""
    users, epsilon = claim.num_users, arb(claim.epsilon)
    exponent = claim.tail_exponent + 40.0 * level
    if isinstance(law, SymmetricBalls):
        if symmetric_work(law, users, exponent) <= _MOST_SUM_OPERATIONS:
            return symmetric_delta(law, users, epsilon, exponent)
        atoms = law.atoms
    else:
        atoms = law
    atoms = tuple(atom for atom in atoms if not atom[0].is_zero())
    work = enumeration_work(len(atoms), users)
    if work > _FEW_OPERATIONS and level < len(_SMOOTHINGS):
        with suppress(OutOfRegimeError):
            return contour_delta(
                atoms,
                users,
                epsilon,
                relative_smoothing=_SMOOTHINGS[level],
                negligible_exponent=80.0 + 20.0 * level,
                most_operations=MOST_OPERATIONS,
            )
    if work <= MOST_OPERATIONS:
        return enumerated_delta(atoms, users, epsilon)
    raise _too_much_work(claim, law, atoms, exponent)


def _too_much_work(
    claim: Claim, law: Law, atoms: tuple[Atom, ...], exponent: float
) -> OutOfRegimeError:
    """Return an error that names the largest number of users that would do."""

    def feasible(users: int) -> bool:
        work = enumeration_work(len(atoms), users)
        if isinstance(law, SymmetricBalls):
            work = min(work, 2.0 * symmetric_work(law, users, exponent))
        return work <= MOST_OPERATIONS

    low, high = 1, claim.num_users
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if feasible(middle) else (low, middle)
    return refusal(claim, low)


def refusal(claim: Claim, users: int) -> OutOfRegimeError:
    """Return the error for what is too much work, with a number of users that is not."""
    return OutOfRegimeError(
        f"to certify num_users = {claim.num_users} so narrowly takes more than "
        f"{MOST_OPERATIONS:.0e} ball operations; account for and certify num_users = {users} "
        "or fewer: delta falls with num_users, so that bounds the larger one too"
    )


def upper_delta(method: str, claim: Claim, level: int) -> tuple[arb, bool]:
    """Enclose a method's delta, and tell whether the ball is that of its theorem's own law.

    If it is not, the ball belongs to a law that dominates it: good to prove, not to disprove.
    """
    profile, users = claim.profile, claim.num_users
    if method in CLOSED_FORMS and (method == "local" or claim.epsilon < profile.epsilon0):
        return CLOSED_FORMS[method](profile, users, arb(claim.epsilon)), True
    if claim.epsilon >= profile.epsilon0:
        return ZERO, True  # epsilon0-LDP reports, however they are processed
    if method == "binary-exact":
        return _binary_delta(claim, level), True
    return _least_delta(UPPER_LAWS[method], claim, level)


def _least_delta(recipes: tuple[Recipe, ...], claim: Claim, level: int) -> tuple[arb, bool]:
    """Return the first ball at most the target, else the last that is affordable."""
    target = arb(claim.target)
    found: tuple[arb, bool] | None = None
    refused: OutOfRegimeError | None = None
    for recipe in recipes:
        try:
            ball = _larger_delta(recipe, claim, level)
        except OutOfRegimeError as error:
            refused = error
            continue
        found = ball, recipe is recipes[-1]
        if ball <= target:
            break
    if found is None:
        raise refused or AssertionError("a method without laws")
    return found


def _larger_delta(recipe: Recipe, claim: Claim, level: int) -> arb:
    """Enclose the larger delta of the two orders of the pair, where they differ."""
    balls = [law_delta(law, claim, level) for law in recipe(claim.profile)]
    return reduce(arb.max, balls)


def _binary_delta(claim: Claim, level: int) -> arb:
    try:
        return worst_delta(_binary_balls(claim, level), claim.num_users, arb(claim.target))
    except OutOfRegimeError:
        raise refusal(claim, min(_MOST_BINARY_USERS, claim.num_users // 4)) from None


def _binary_balls(claim: Claim, level: int) -> BinaryBalls:
    profile, exponent = claim.profile, 40.0 + 20.0 * level
    return BinaryBalls(profile.epsilon0, claim.epsilon, exponent, MOST_OPERATIONS)


def attacks(claim: Claim) -> list[Callable[[int], arb]]:
    """Return explicit data, each as a function of the level that encloses its delta.

    These raise `OutOfRegimeError` where that is too much work.
    """
    profile = claim.profile
    if claim.epsilon >= profile.epsilon0:
        return []  # there delta is 0, and proves nothing
    if profile.delta0 > 0.0 and profile.family is not RandomizerFamily.ANY:
        return []  # the laws here are those of pure randomizers, which only the class contains
    is_binary = (
        profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.domain_size == 2
    )
    found: list[Callable[[int], arb]] = []
    if is_binary or profile.family is RandomizerFamily.ANY:
        found += [partial(_binary_end, claim, False), partial(_binary_end, claim, True)]
    found += [partial(_larger_delta, recipe, claim) for recipe in explicit_data(profile)]
    if is_binary:
        found.append(partial(_binary_delta, claim))
    return found


def _binary_end(claim: Claim, ones: bool, level: int) -> arb:
    """Return the delta of binary randomized response where all others hold the same."""
    others = claim.num_users - 1
    try:
        pair = Pair(others, 0) if ones else Pair(0, others)
        return _binary_balls(claim, level).delta(pair)
    except OutOfRegimeError:
        return law_delta(binary_ends(claim.profile)[ones], claim, level)
