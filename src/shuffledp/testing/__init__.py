"""Checks of the contract of every randomizer of categories, for use on one's own randomizers.

``check_randomizer(make)`` runs them all on randomizers of several sizes and losses. The
checks that carry the privacy claim compare in exact arithmetic with the channel matrix that the
randomizer states, and one compares drawn reports with it. None needs a test framework.
"""

from collections.abc import Mapping
from types import MappingProxyType

from shuffledp.testing import collecting, law
from shuffledp.testing.law import (
    Check,
    ContractError,
    Make,
    NothingToCheck,
    check_samples_follow_channel,
)

__all__ = [
    "CATEGORY_CHECKS",
    "Check",
    "ContractError",
    "Make",
    "NothingToCheck",
    "check_randomizer",
    "check_samples_follow_channel",
]

#: Name of each check, and its function: all of `law`, then all of `collecting`.
CATEGORY_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        name.removeprefix("check_").replace("_", "-"): check
        for module in (law, collecting)
        for name, check in vars(module).items()
        if name.startswith("check_") and check is not check_samples_follow_channel
    }
)


def check_randomizer(make: Make) -> tuple[str, ...]:
    """Check that a randomizer of categories keeps every promise.

    Parameters
    ----------
    make : callable
        Returns a randomizer for ``(k, epsilon0)``, given by position.

    Returns
    -------
    tuple of str
        Names of the checks passed, keys of `CATEGORY_CHECKS`. Checks that do not apply are
        missing: without a `channel` and `report_columns` the exact checks cannot be made, the
        one of epsilon0 among them.

    Raises
    ------
    ContractError
        At the first promise broken; the message begins with the name of the check.

    Notes
    -----
    The channel is the randomizer's own statement. Statistics check that reports follow it, for
    a few laws; see `check_samples_follow_channel`. Cost: a few seconds.

    Examples
    --------
    >>> from shuffledp.randomizers import KRandomizedResponse
    >>> passed = check_randomizer(lambda k, _: KRandomizedResponse(domain_size=k, epsilon0=1.0))
    Traceback (most recent call last):
    shuffledp....ContractError: epsilon0-is-at-most-asked: k-rr (k = 2, epsilon0 = 1.0) costs ...
    """
    passed = []
    for name, check in CATEGORY_CHECKS.items():
        try:
            check(make)
            passed.append(name)
        except NothingToCheck:
            continue
        except ContractError as broken:
            raise ContractError(f"{name}: {broken}") from broken
        except Exception as error:
            raise ContractError(f"{name}: {type(error).__name__}: {error}") from error
    return tuple(passed)
