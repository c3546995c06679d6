"""Certificates: a published bound recomputed wholly in ball arithmetic.

The accountant computes in doubles, with error budgets. A certificate trusts none of that: it
derives the law of the bound's method anew from the profile, in Arb balls of 128 bits or more,
encloses delta at ``bound.upper`` by a contour integral of its own, and compares. Only the theorem
itself is taken over. Certificates need python-flint, the extra ``certify``; nothing else does.

Exactness: epsilon0, epsilon, delta and the atoms that a randomizer states are the exact values of
their doubles. So a certificate says nothing about digits that stated atoms lack.
"""

from dataclasses import dataclass
from types import ModuleType

from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.checks import require_delta, require_non_negative
from shuffledp.core.errors import OutOfRegimeError, PrecisionError, needing
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile

# Precision at each level of `balls.SMOOTHINGS`: deltas of 1e-300 need a thousand bits, others few
# beyond the first.
_BITS = (128, 128, 256, 1024, 2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A proof by ball arithmetic that the upper end of a bound holds; a bound that fails raises.

    Parameters
    ----------
    statement : str
        The statement proved, as a sentence.
    enclosure : Enclosure
        delta of the law of the bound's method at the bound's epsilon, rounded outwards to doubles.
    bits : int
        Precision that was needed.
    """

    statement: str
    enclosure: Enclosure
    bits: int


def certify(profile: LocalProfile, guarantee: Guarantee) -> Certificate:
    """Prove in ball arithmetic that the computed parameter of one batch's guarantee is valid."""
    from shuffledp.amplification.registry import applicable_methods

    epsilon = require_non_negative("epsilon", guarantee.epsilon_upper)
    is_given = not isinstance(guarantee.delta, Bound)
    target = require_delta(guarantee.delta_upper) if is_given else guarantee.delta_upper
    with needing("flint", "a certificate", "shuffledp[certify]"):
        from shuffledp.accounting.certification import balls
    method = guarantee.bound.method
    if method not in balls.CERTIFIABLE:
        raise OutOfRegimeError(
            f"method {method!r} has no certificate; account with one of "
            f"{', '.join(balls.CERTIFIABLE)}"
        )
    applicable_methods(method, profile, guarantee.num_users, target if is_given else None)
    return _proved(balls, method, profile, guarantee.num_users, (epsilon, target))


def _proved(
    balls: ModuleType,
    method: str,
    profile: LocalProfile,
    num_users: int,
    at: tuple[float, float],
) -> Certificate:
    """Return the certificate, at an epsilon and a delta, of the first level that decides."""
    from flint import arb, ctx

    epsilon, target = at
    seen = "doubt"
    for level, bits in enumerate(_BITS):
        with ctx.workprec(bits + balls.GUARD_BITS):
            try:
                ball = balls.method_delta(method, profile, num_users, epsilon, level)
                found = balls.outward(ball)
            except OutOfRegimeError:
                break  # too much work, and more of it at any further level
            except PrecisionError:
                continue  # not even finite with these bits
            if ball <= arb(target):
                enclosure = Enclosure(found.lower, min(found.upper, target))
                text = (
                    f"at epsilon = {epsilon!r} and num_users = {num_users} delta lies in "
                    f"[{enclosure.lower!r}, {enclosure.upper!r}], by ball arithmetic of {bits} "
                    f"bits; {enclosure.upper!r} <= {target!r}"
                )
                return Certificate(statement=text, enclosure=enclosure, bits=bits)
            if ball > arb(target):
                raise PrecisionError(
                    f"the bound of method {method!r} does not hold: at epsilon = {epsilon!r} "
                    f"delta is at least {found.lower!r}, which is "
                    f"{float((ball - arb(target)).lower()):.3g} above {target!r}; please report "
                    "this as a bug"
                )
            seen = f"[{found.lower!r}, {found.upper!r}]"
    raise PrecisionError(
        f"undecided: at epsilon = {epsilon!r} ball arithmetic leaves delta of method {method!r} in "
        f"{seen}, around {target!r}; publish an epsilon larger by one part in a million and "
        "certify that"
    )
