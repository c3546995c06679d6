"""Which sum evaluates which law, how narrowly, and when it is too much work."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce

from flint import arb

from shuffledp.accounting.certification.balls import GUARD_BITS, ZERO, outward
from shuffledp.accounting.certification.binary import (
    BinaryBalls,
    Pair,
    worst_delta,
)
from shuffledp.accounting.certification.closed_forms import CLOSED_FORMS
from shuffledp.accounting.certification.contour import contour_delta
from shuffledp.accounting.certification.laws import (
    UPPER_LAWS,
    Atom,
    Law,
    Recipe,
    SymmetricBalls,
    binary_ends,
    explicit_data,
)
from shuffledp.accounting.certification.sums import (
    enumerated_delta,
    enumeration_work,
    symmetric_delta,
    symmetric_work,
)
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

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
    """Enclose (B) for a law; a higher ``level`` makes the ball narrower.

    Raises
    ------
    OutOfRegimeError
        If that is too much work, or nothing narrower is to be had.
    """
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
