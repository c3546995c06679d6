"""The closed forms among the methods in ball arithmetic, solved for delta at a given epsilon.

Each returns a ball that holds the form's delta, 1 where the form has none; hypotheses are decided
in ball arithmetic too. Statements and sources: `local` and `erlingsson`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from flint import arb

from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.profile import LocalProfile

ONE = arb(1)


def _local(profile: LocalProfile, _num_users: int, epsilon: arb) -> arb:
    """Return delta0 + (1 - delta0) (p - e)_+/(p + 1)."""
    epsilon0, delta0 = arb(profile.epsilon0), arb(profile.delta0)
    if epsilon >= epsilon0:
        return delta0
    return delta0 - (1 - delta0) * (epsilon - epsilon0).expm1() / (1 + (-epsilon0).exp())


def _growth(epsilon0: arb) -> arb:
    """Return e^(2 epsilon0) (e^epsilon0 - 1)."""
    return (2 * epsilon0).exp() * epsilon0.expm1()


def _erlingsson(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(num_users > 1, "num_users > 1")
    step = 2 * _growth(epsilon0) / num_users
    spread = (epsilon - num_users * step * step.expm1()) / step
    return (-spread * spread / (2 * num_users)).exp() if spread > 0 else ONE


def _erlingsson_moderate(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(4 * (3 * epsilon0).exp() <= num_users, "epsilon0 <= ln(num_users / 4) / 3")
    growth = _growth(epsilon0)
    spread = (epsilon - 6 * growth * growth / num_users) / growth
    return (-spread * spread * num_users / 8).exp() if spread > 0 else ONE


def _erlingsson_small(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(num_users >= 1000 and epsilon0 < arb(0.5), "num_users >= 1000 and epsilon0 < 1/2")
    delta = (-((epsilon / (12 * epsilon0)) ** 2) * num_users).exp()
    return delta if 100 * delta < 1 else ONE


def _require(holds: bool, hypothesis: str) -> None:
    if not holds:
        raise OutOfRegimeError(
            f"the theorem needs {hypothesis}, which does not hold in ball arithmetic; "
            "use method='best'"
        )


# Profile, num_users and epsilon to delta.
CLOSED_FORMS: Mapping[str, Callable[[LocalProfile, int, arb], arb]] = MappingProxyType(
    {
        "local": _local,
        "erlingsson": _erlingsson,
        "erlingsson-moderate": _erlingsson_moderate,
        "erlingsson-small": _erlingsson_small,
    }
)
