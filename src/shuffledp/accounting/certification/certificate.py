"""Certificates: a published bound recomputed wholly in ball arithmetic.

The accountant computes in doubles, with error budgets. A certificate trusts none of that: it
derives the law of the bound's method anew from the profile, in Arb balls of 128 bits or more,
encloses delta at ``bound.upper`` by sums or an integral of its own, and compares. Only the theorem
itself is taken over. Certificates need python-flint, the extra ``certify``; nothing else does.

What is exact: epsilon0, epsilon, delta and the atoms that a randomizer states are the exact numbers
that their doubles are. So a certificate says nothing about digits that stated atoms lack.

Cost: sums of O(sqrt(n)) terms for `clones`, of O(n) for `k-rr-blanket`, O(n) for `binary-exact`;
for other laws, and where sums are too long, a contour integral, which large n makes easier.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_non_negative
from shuffledp.core.errors import (
    MissingPackageError,
    OutOfRegimeError,
    ParameterError,
    PrecisionError,
)
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile, RandomizerFamily

if TYPE_CHECKING:
    from flint import arb

    from shuffledp.accounting.certification.engines import Claim

# From 128 bits up to 4096: deltas of 1e-300 need a thousand.
_LEVELS = 6
_FIRST_BITS = 128

_MOST_USERS = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A proof by ball arithmetic that a bound holds.

    Parameters
    ----------
    statement : str
        What is proved, as a sentence.
    enclosure : Enclosure
        delta at the bound's epsilon, rounded outwards to doubles: of the law of the bound's method,
        or of one that dominates it, or 0 where epsilon is at least epsilon0.
    bits : int
        Precision that was needed.
    holds : bool
        Always true: what does not hold is raised, not returned.
    lower_holds : bool or None
        Whether explicit data prove the bound's lower end too; ``None`` if it has none, or if that
        could not be decided, as the statement then says.
    """

    statement: str
    enclosure: Enclosure
    bits: int
    holds: bool
    lower_holds: bool | None = None


def certify_epsilon(
    profile: LocalProfile, *, num_users: int, bound: Bound, delta: float
) -> Certificate:
    """Prove in ball arithmetic that ``bound.upper`` is a valid epsilon for ``delta``."""
    delta = require_delta(delta)
    epsilon = _require_certifiable(profile, num_users, bound, delta)
    engines = _engines()
    claim = engines.Claim(profile, num_users, epsilon, delta)
    enclosure, bits = _prove_upper(engines, claim, bound.method)
    text = (
        f"at epsilon = {epsilon!r} and num_users = {num_users} delta lies in "
        f"[{enclosure.lower!r}, {enclosure.upper!r}], by ball arithmetic of {bits} bits; "
        f"{enclosure.upper!r} <= {delta!r}"
    )
    if bound.lower is None:
        return Certificate(statement=text, enclosure=enclosure, bits=bits, holds=True)
    below = engines.Claim(profile, num_users, bound.lower, delta)
    reached = f"explicit data have a delta of at least {delta!r} at epsilon = {bound.lower!r}"
    proved: bool | None = True
    if bound.lower == 0.0:
        reached = "the lower end is 0"
    elif delta == 0.0:
        proved = _local_ratio_is_reached(profile, bound.lower)
        reached = "with all values equal likelihood ratios reach e^epsilon0"
    else:
        proved = _prove_lower(engines, below)
    return _with_lower(text, enclosure, bits, proved, reached)


def certify_delta(
    profile: LocalProfile, *, num_users: int, bound: Bound, epsilon: float
) -> Certificate:
    """Prove in ball arithmetic that ``bound.upper`` is a valid delta at ``epsilon``."""
    epsilon = require_non_negative("epsilon", epsilon)
    claimed = _require_certifiable(profile, num_users, bound, None)
    engines = _engines()
    claim = engines.Claim(profile, num_users, epsilon, claimed)
    enclosure, bits = _prove_upper(engines, claim, bound.method)
    text = (
        f"at epsilon = {epsilon!r} and num_users = {num_users} delta lies in "
        f"[{enclosure.lower!r}, {enclosure.upper!r}], by ball arithmetic of {bits} bits; "
        f"{enclosure.upper!r} <= {claimed!r}"
    )
    if bound.lower is None:
        return Certificate(statement=text, enclosure=enclosure, bits=bits, holds=True)
    reached = f"explicit data have a delta of at least {bound.lower!r}"
    proved: bool | None = True
    if bound.lower > 0.0:
        below = engines.Claim(profile, num_users, epsilon, bound.lower)
        proved = _prove_lower(engines, below)
    return _with_lower(text, enclosure, bits, proved, reached)


def _engines() -> ModuleType:
    """Import what needs python-flint."""
    try:
        from shuffledp.accounting.certification import engines
    except ModuleNotFoundError as error:
        if error.name != "flint":
            raise
        raise MissingPackageError(
            "certificates need python-flint: run pip install 'shuffledp[certify]'", name="flint"
        ) from None
    return engines


def _require_certifiable(
    profile: LocalProfile, num_users: int, bound: Bound, delta: float | None
) -> float:
    """Return the bound's upper end, if its method applies and has a certificate."""
    from shuffledp.accounting.amplification.registry import METHODS

    if require_at_least("num_users", num_users, 1) > _MOST_USERS:
        raise ParameterError(
            f"num_users = {num_users} is above {_MOST_USERS:.0e}: certify for 1e15 users instead, "
            "more users only lower epsilon"
        )
    known = _engines().CERTIFIABLE
    if bound.method not in known:
        raise OutOfRegimeError(
            f"method {bound.method!r} has no certificate; account with one of {', '.join(known)}"
        )
    violated = METHODS[bound.method].violated_hypothesis(profile, num_users, delta)
    if violated is not None:
        raise OutOfRegimeError(
            f"method {bound.method!r} needs {violated}: pass the profile, num_users and delta that "
            "the bound was computed for"
        )
    return require_non_negative("bound.upper", bound.upper)


def _prove_upper(engines: ModuleType, claim: "Claim", method: str) -> tuple[Enclosure, int]:
    """Return the enclosure of delta and the bits, or raise."""
    from flint import arb, ctx

    seen = ""
    for level in range(_LEVELS):
        bits = _FIRST_BITS << level
        with ctx.workprec(bits + engines.GUARD_BITS):
            try:
                ball, is_own = engines.upper_delta(method, claim, level)
                enclosure = engines.outward(ball)
            except OutOfRegimeError:
                if not seen:
                    raise
                break
            except PrecisionError:
                continue  # not even a number at so few bits
            target = arb(claim.target)
            if ball <= target:
                return Enclosure(enclosure.lower, min(enclosure.upper, claim.target)), bits
            if is_own and ball > target:
                excess = float((ball - target).lower())
                raise PrecisionError(
                    f"the bound of method {method!r} does not hold: at epsilon = "
                    f"{claim.epsilon!r} delta is at least {enclosure.lower!r}, which is "
                    f"{excess:.3g} above {claim.target!r}; please report this as a bug"
                )
            seen = f"[{enclosure.lower!r}, {enclosure.upper!r}]"
    raise PrecisionError(
        f"undecided: at epsilon = {claim.epsilon!r} ball arithmetic leaves delta of method "
        f"{method!r} in {seen or 'doubt'}, around {claim.target!r}; publish an epsilon larger "
        "by one part in a million and certify that"
    )


def _prove_lower(engines: ModuleType, claim: "Claim") -> bool | None:
    """Tell whether explicit data have delta at least the target; None if it is not decided."""
    from flint import ctx

    undecided = claim.profile.channel is not None or claim.profile.delta0 > 0.0
    for attack in engines.attacks(claim):
        decision: bool | None = None
        for level in range(_LEVELS):
            with ctx.workprec((_FIRST_BITS << level) + engines.GUARD_BITS):
                decision = _reaches(attack, claim, level)
            if decision is not None:
                break
        if decision:
            return True
        undecided = undecided or decision is None
    return None if undecided else False


def _reaches(attack: "Callable[[int], arb]", claim: "Claim", level: int) -> bool | None:
    """Tell whether one attack reaches the target at one level."""
    from flint import arb

    try:
        ball = attack(level)
    except (OutOfRegimeError, PrecisionError):
        return None
    if ball >= arb(claim.target):
        return True
    return False if ball < arb(claim.target) else None


def _local_ratio_is_reached(profile: LocalProfile, lower: float) -> bool | None:
    """Tell whether all values equal make a likelihood ratio of e^lower: at delta = 0."""
    if profile.family is RandomizerFamily.OTHER or profile.delta0 > 0.0:
        return None
    return lower <= profile.epsilon0


def _with_lower(
    text: str, enclosure: Enclosure, bits: int, proved: bool | None, reached: str
) -> Certificate:
    """Return the certificate with a word on the lower end, or raise if nothing proves it."""
    if proved is False:
        raise PrecisionError(
            f"no explicit data on record prove the lower end, though all were evaluated: not true "
            f"is that {reached}; please report this as a bug"
        )
    if proved is None:
        reached = "the lower end is not certified: no data on record decide it"
    return Certificate(
        statement=f"{text}; {reached}",
        enclosure=enclosure,
        bits=bits,
        holds=True,
        lower_holds=proved,
    )
