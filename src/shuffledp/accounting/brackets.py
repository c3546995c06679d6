"""Between which numbers epsilon lies, for k-ary randomized response over a grid."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsFloat

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_open_unit
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.progress import Progress

GRID_NUM_USERS = tuple(10**decade for decade in range(3, 10))
GRID_EPSILON0 = (0.5, 1.0, 2.0, 4.0, 6.0)
GRID_K = (2, 4, 16, 128)

_K_RR = RandomizerFamily.K_RANDOMIZED_RESPONSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """One point of the grid.

    Parameters
    ----------
    domain_size : int
        Number of possible answers.
    epsilon0 : float
        Local privacy loss, in nats.
    num_users : int
        Number of honest users.
    bound : Bound
        On epsilon: its upper end is safe to publish, and no analysis can go below its lower end.
    """

    domain_size: int
    epsilon0: float
    num_users: int
    bound: Bound

    def to_json_dict(self) -> dict[str, object]:
        """Return ``k``, ``epsilon0``, ``num_users``, ``lower``, ``upper``, ``gap``, ``method``."""
        return {
            "k": self.domain_size,
            "epsilon0": self.epsilon0,
            "num_users": self.num_users,
            "lower": self.bound.lower,
            "upper": self.bound.upper,
            "gap": self.bound.gap,
            "method": self.bound.method,
        }


def bracket_grid(
    delta: SupportsFloat, *, ks: Iterable[int] = GRID_K, progress: Progress | None = None
) -> tuple[Bracket, ...]:
    """Bracket epsilon for k-RR; what ``shuffledp bounds --grid`` prints."""
    delta = require_open_unit("delta", delta)
    profiles = [
        (k, LocalProfile(epsilon0=epsilon0, family=_K_RR, domain_size=k))
        for k in ks
        for epsilon0 in GRID_EPSILON0
    ]
    total = len(profiles) * len(GRID_NUM_USERS)
    found: list[Bracket] = []
    for k, profile in profiles:
        for num_users in GRID_NUM_USERS:
            if progress is not None:
                progress("bracketing", len(found), total)
            bound = account_epsilon(profile, num_users=num_users, delta=delta)
            found.append(
                Bracket(domain_size=k, epsilon0=profile.epsilon0, num_users=num_users, bound=bound)
            )
    if progress is not None:
        progress("bracketing", total, total)
    return tuple(found)
