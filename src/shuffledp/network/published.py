"""The published guarantees of network shuffling, in forms that are proved, under their hypotheses.

Liew et al. 2022, arXiv:2204.03919: Theorems 5.3, 5.5 and 5.6. Proofs: docs/results/network.md.
"""

import math

from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_non_negative, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import exp_minus_one_upper, round_up
from shuffledp.core.numerics.poisson_binomial import survival_levels

_PAPER = "Liew et al. 2022, arXiv:2204.03919"
_PROOF = "proved in the shuffledp documentation, results/network"

_ASSUMPTIONS = (
    "The adversary sees who hands in which reports at the end, and knows the graph and the values "
    "of all others. He sees no earlier hop, and no user colludes with him.",
    "All counted users are honest; their reports move independently of one another and of what "
    "they say. The randomizer is pure epsilon0-LDP.",
    "Neighbouring datasets differ in one user's value; the graph and who takes part are public.",
)

# From here on e^epsilon0 is no comfortable float, and the formulas say nothing.
_LARGEST_EPSILON0 = 100.0

# Room for rounding in sums of probabilities.
_SUM_ROUNDING = 1e-13


def _constant(epsilon0: float, power: float) -> float:
    """Return p^power (p - 1) for p = e^epsilon0, rounded up."""
    loss = require_non_negative("epsilon0", epsilon0)
    if loss > _LARGEST_EPSILON0:
        return math.inf
    return round_up(math.exp(power * loss) * exp_minus_one_upper(loss), operations=512)


def _composed(constant: float, root: float, delta: float) -> float:
    """Return c^2 r^2 / 2 + c r sqrt(2 ln(1/delta)), rounded up."""
    step = constant * root
    return round_up(0.5 * step * step + step * math.sqrt(-2.0 * math.log(delta)), operations=32)


def _require_collision(collision: float) -> float:
    """Return a collision probability in (0, 1], or raise."""
    value = require_non_negative("collision", collision)
    if not 0.0 < value <= 1.0 + _SUM_ROUNDING:
        raise ParameterError(
            f"collision = {collision} is not in (0, 1]: it is the sum of squares of a law"
        )
    return min(value, 1.0)


def _bound(upper: float, method: str, theorem: str) -> Bound:
    return Bound(
        lower=None,
        upper=upper,
        method=method,
        source=f"{_PAPER}, {theorem}; {_PROOF}",
        assumptions=_ASSUMPTIONS,
    )


def published_all_epsilon(
    epsilon0: float, *, num_users: int, collision: float, delta: float
) -> Bound:
    """Return epsilon by Theorem 5.3, for reports whose holders are i.i.d. as at stationarity.

    False for others. Errs upwards. Half of delta is for the counts, half for the composition;
    ``collision`` is S, or an upper bound of it. It is the formula's value and may exceed epsilon0,
    even be ``inf``.
    """
    n = require_at_least("num_users", num_users, 1)
    spread = _require_collision(collision)
    half = 0.5 * require_open_unit("delta", delta)
    upper = _composed(_constant(epsilon0, 2.0), _count_norm(n, spread, half), half)
    return _bound(upper, "network-published-all", "Theorem 5.3")


def _count_norm(num_users: int, collision: float, delta: float) -> float:
    """Return r = sqrt(1/n + (1 - 1/n) S) + sqrt(ln(1/delta)/n), rounded up, at most 1."""
    n = float(num_users)
    mean = math.sqrt(1.0 / n + (1.0 - 1.0 / n) * collision)
    return min(round_up(mean + math.sqrt(-math.log(delta) / n), operations=16), 1.0)


def published_all_thinned_epsilon(
    epsilon0: float, *, overlaps: ArrayLike, collision: float, delta: float
) -> Bound:
    """Return epsilon by Theorem 5.3 after finitely many rounds, for the crowd of the victim's law.

    Errs upwards and may exceed epsilon0. A third of delta is for the size of the crowd, a third for
    the counts, a third for the composition.
    """
    spread = _require_collision(collision)
    third = require_open_unit("delta", delta) / 3.0 * (1.0 - _SUM_ROUNDING)
    others, _ = survival_levels(overlaps, [third])[0]
    upper = _composed(_constant(epsilon0, 2.0), _count_norm(others + 1, spread, third), third)
    return _bound(upper, "network-published-all-thinned", "Theorem 5.3")


def published_single_epsilon(epsilon0: float, *, collision: float, delta: float) -> Bound:
    """Return epsilon by Theorems 5.5 and 5.6, where empty holders send a randomized dummy.

    Errs upwards and may exceed epsilon0. With empty answers that can be told from reports it is
    false.
    """
    spread = _require_collision(collision)
    inside = require_open_unit("delta", delta)
    upper = _composed(_constant(epsilon0, 1.0), round_up(math.sqrt(spread)), inside)
    return _bound(upper, "network-published-single", "Theorems 5.5 and 5.6")
