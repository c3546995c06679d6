"""Many rounds of shuffled binary randomized response: how private they are, in a tenth of a second.

The composition of `shuffledp.accounting` asks for the exact divergence of one round at some hundred
epsilons, and with a million users that may take twenty seconds. Here the divergence is enclosed
more widely and much faster, which moves epsilon by less than one part in a hundred.

*Above.* Adding a user is post-processing. So the others' data with a ones and n - 1 - w - a zeros
dominate all data with a, a + 1, ..., a + w ones among n - 1 others, and the largest divergence of
n / w such data, each of one computation, is at least that of all n (see the documentation,
results/binary-exact). The curve of these maxima is composed with itself (Zhu, Dong, Wang 2022,
arXiv:2106.08567v4, Theorem 10).

*Below.* All other users hold zero in every round: what nobody's analysis can go below.
"""

import functools
import math

from shuffledp.accounting.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.accounting.amplification.local import single_report_delta
from shuffledp.accounting.amplification.registry import SHUFFLE_ASSUMPTIONS
from shuffledp.accounting.calibration import LARGEST_EPSILON0, epsilon0_of_strength
from shuffledp.accounting.composed_bounds import SAME_USERS
from shuffledp.accounting.privacy_loss import HockeyStickCurve
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.checks import (
    require_at_least,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.numerics.inversion import last_above_first_below

# Data of the others at which the divergence of one round is computed; epsilon errs by half a part
# in so many.
_STRETCHES = 128
_GROUP = 8

# What discretisation may take off the lower end: narrower lattices cost more time.
_LOWER_ACCURACY = 4e-3

# Relative width to which epsilon0 is found: well below what the stretches cost.
_TOLERANCE = 1e-3
_GUESSES = 2

# What is closer to the sum of all losses than this, relatively, is not composed for.
_CLOSE = 1.0 - 1e-3

# Rounding of a sum of equal terms.
_SLACK = 1.0 - 1e-12

_SMALLEST = 1e-300

# Below this squares of losses vanish, and losses are only added up.
_LEAST_EPSILON0 = 1e-150

# Ends may cross by as much as the lattices are wide.
_MEETING = 1e-6

_SOURCE = (
    "exact divergence of one round, stretches of data dominated by fewer users; product of "
    "dominating pairs: Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10"
)
_PURE_SOURCE = "Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, Theorem 3.16"


def binary_rounds_epsilon(epsilon0: float, *, num_users: int, rounds: int, delta: float) -> Bound:
    """Bound epsilon of rounds in which the same users send a bit by randomized response.

    ``upper`` errs upwards, by less than 1 % where many users hide each other; ``lower`` errs
    downwards.
    """
    loss, users, times, allowed = _checked(epsilon0, num_users, rounds, delta)
    pure = _pure(loss, times)
    upper, method, source = pure, "pure composition", _PURE_SOURCE
    product = _upper(loss, users, times, allowed)
    if product < pure:
        upper, method, source = product, "composed binary-exact, in stretches", _SOURCE
    lower = reconciled_lower(
        _lower(loss, users, times, allowed),
        upper,
        tolerance=_MEETING,
        claim=method,
    )
    return Bound(
        lower=lower,
        upper=upper,
        method=method,
        source=source,
        assumptions=(*SHUFFLE_ASSUMPTIONS, *SAME_USERS),
    )


def binary_rounds_epsilon0(
    *, num_users: int, rounds: int, epsilon: float, delta: float
) -> Enclosure:
    """Enclose the largest epsilon0 at which so many rounds meet a central target."""
    _, users, times, allowed = _checked(0.0, num_users, rounds, delta)
    target = require_positive("epsilon", epsilon)
    certain = target / times * _SLACK  # whatever the crowd
    if certain >= LARGEST_EPSILON0:
        return Enclosure(LARGEST_EPSILON0, LARGEST_EPSILON0)
    met = functools.partial(_upper, num_users=users, rounds=times, delta=allowed)
    missed = functools.partial(_lower, num_users=users, rounds=times, delta=allowed)
    strength = target * math.sqrt(users / (4.0 * times * math.log(1.0 / allowed)))
    guess = epsilon0_of_strength(strength, certain)
    for _ in range(_GUESSES):  # epsilon is about in proportion to the strength
        found = met(guess)
        if 0.0 < found < math.inf:
            strength = 2.0 * math.sinh(0.5 * guess) * target / found
            guess = epsilon0_of_strength(strength, certain)

    def bracket(cost: "functools.partial[float]") -> tuple[float, float]:
        most, least = 1.0 / LARGEST_EPSILON0, 1.0 / certain
        above, below = last_above_first_below(
            lambda inverse: cost(1.0 / inverse),
            target,
            most,
            least,
            guess=min(max(1.0 / guess, most), least),
            spread=_TOLERANCE,
            relative_tolerance=_TOLERANCE,
        )
        return 1.0 / below, 1.0 / above

    lower = max(bracket(met)[0], certain)
    return Enclosure(lower, max(bracket(missed)[1], lower))


def _checked(
    epsilon0: float, num_users: int, rounds: int, delta: float
) -> tuple[float, int, int, float]:
    """Return the arguments once checked."""
    loss = require_non_negative("epsilon0", epsilon0)
    if loss > LARGEST_EPSILON0:
        raise ParameterError(
            f"epsilon0 = {loss} is above {LARGEST_EPSILON0:g}: such reports hide nothing; add up "
            "their losses"
        )
    users = require_at_least("num_users", num_users, 1)
    times = require_at_least("rounds", rounds, 1)
    return loss, users, times, require_open_unit("delta", delta)


def _pure(epsilon0: float, rounds: int) -> float:
    """Return the sum of all losses, whatever the crowd."""
    return round_up(rounds * epsilon0, operations=2)


def _upper(epsilon0: float, num_users: int, rounds: int, delta: float) -> float:
    """Return an epsilon that is enough, ``inf`` where round-off dominates."""
    from shuffledp.accounting.composition import certain_epsilon, compose_curves

    if epsilon0 < _LEAST_EPSILON0:
        return _pure(epsilon0, rounds)
    parts = [(_dominating_curve(epsilon0, num_users), rounds)]
    if certain_epsilon(parts, delta, upper=True) >= _pure(epsilon0, rounds) * _CLOSE:
        return _pure(epsilon0, rounds)
    try:
        loss = compose_curves(parts, smallest_delta=delta, upper=True, aimed=True)
        return loss.epsilon(delta)
    except PrecisionError:
        return math.inf


def _lower(epsilon0: float, num_users: int, rounds: int, delta: float) -> float:
    """Return an epsilon that explicit data make unavoidable, 0 where round-off dominates."""
    from shuffledp.accounting.composition import certain_epsilon, compose_curves

    if epsilon0 < _LEAST_EPSILON0:
        return 0.0
    exact = BinaryRandomizedResponse(epsilon0, num_users)
    curve = HockeyStickCurve(
        forward=functools.partial(exact.enclose_extreme, others_hold_one=False),
        backward=functools.partial(exact.enclose_extreme, others_hold_one=True),
        highest=epsilon0,
    )
    certain = certain_epsilon([(curve, rounds)], delta, upper=False)
    if certain >= _pure(epsilon0, rounds) * _CLOSE:
        return certain
    try:
        loss = compose_curves(
            [(curve, rounds)],
            smallest_delta=delta,
            upper=False,
            accuracy=_LOWER_ACCURACY,
            aimed=True,
        )
        return loss.epsilon(delta)
    except PrecisionError:
        return 0.0


def _dominating_curve(epsilon0: float, num_users: int) -> HockeyStickCurve:
    """Return a curve above the divergences of one round, whatever the others' data."""
    from shuffledp.accounting.amplification.binary_randomized_response_kernels import (
        pair_divergence_upper,
    )

    groups = _groups(num_users)

    def enclose(epsilon: float) -> Enclosure:
        if epsilon >= epsilon0:
            return Enclosure(0.0, 0.0)
        gain, slope = math.expm1(epsilon0), math.expm1(epsilon)
        excess = math.exp(epsilon) * math.expm1(epsilon0 - epsilon)

        def above(stretch: tuple[float, float]) -> float:
            return pair_divergence_upper(*stretch, gain, slope, excess, _SMALLEST)

        largest = 0.0
        for bound, group in sorted(((above(whole), of) for whole, of in groups), reverse=True):
            if bound <= largest:  # so are all that follow
                break
            largest = max(largest, min(bound, max(map(above, group))))
        single = single_report_delta(epsilon0, epsilon)
        return Enclosure(0.0, max(min(largest, single), _SMALLEST))

    return HockeyStickCurve(forward=enclose, backward=enclose, highest=epsilon0)


def _groups(
    num_users: int,
) -> list[tuple[tuple[float, float], tuple[tuple[float, float], ...]]]:
    """Return stretches of the others' data, in groups of neighbours.

    A stretch is stated by the ones and zeros that all its data have in common; a group by those
    that all its stretches have, which dominates each of them. Where few data matter, most groups
    are ruled out as a whole.
    """
    others = num_users - 1
    length = max(num_users // _STRETCHES, 1)

    def common(first: int, last: int) -> tuple[float, float]:
        return float(first), float(max(others - last, 0))

    starts = range(0, others + 1, length)
    return [
        (
            common(group[0], group[-1] + length - 1),
            tuple(common(first, first + length - 1) for first in group),
        )
        for group in (starts[i : i + _GROUP] for i in range(0, len(starts), _GROUP))
    ]
