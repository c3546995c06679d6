"""The mean positive part of a sum of i.i.d. terms, enclosed at a cost that does not depend on n.

Write S = G_1 + ... + G_n and kappa(z) = ln E[e^(z G)]. For any theta > 0, on z = theta + i t,

    E[S_+] = (1 / 2 pi) integral of e^(n kappa(z)) / z^2 dt.                                     (1)

*Smoothing.* Let N be Gaussian of mean 0 and standard deviation tau, independent of S; its factor is
e^(tau^2 z^2 / 2). By Jensen E[(S + N)_+] >= E[S_+]. On the other side, with phi the normal density,

    0 <= E[(s + N)_+] - s_+ = tau (phi(u) - u Phi(-u)) <= tau phi(u),   u = abs(s) / tau,

and tau phi(s / tau) is tau^2 times the density of N at -s. So

    (1 / 2 pi) integral of e^(n kappa(z) + tau^2 z^2 / 2) (1 / z^2 - tau^2) dt
        <= E[S_+] <= (1 / 2 pi) integral of e^(n kappa(z) + tau^2 z^2 / 2) / z^2 dt.             (2)

The integrand falls like e^(-tau^2 t^2 / 2) whatever the law of G, lattice or not, and the two ends
are within about (tau / sd(S))^2 of each other in units of the threshold.

*Quadrature.* The trapezoidal sum of step 2 pi / T gives the integral plus its aliases: for every
k <> 0, e^(-k theta T) E[(S + N + k T)_+]. All are positive, so they err upwards, and Chernoff
bounds what must be taken off the lower end. theta is near the saddle point, where the tilted law of
S is centred, which keeps relative accuracy however small the answer is.

*Few outcomes.* If outcomes are few, they are listed instead. If terms other than the two most
frequent values are rare, all outcomes with at most a certain number of them are listed, and
Chernoff bounds the rest. If no smoothing is fine enough, the result is capped by E[G_+]: by Jensen
(1 / n) E[S_+] falls with n.

*Cost.* Nodes at which the modulus of e^(n kappa) has fallen below e^-46 are passed over. If the law
is spread finely enough for tau to leave no other place (n times the mass off the heaviest atom
above about 1e9), some fifty nodes are left. Otherwise the modulus may come back to 1 further up,
and up to ``most_nodes`` nodes are visited; a Lipschitz bound passes over most of them.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure

if TYPE_CHECKING:
    from shuffledp.core.numerics.positive_part_kernels import Terms

# No double below this keeps its relative accuracy; upper ends for possible events are no smaller.
SMALLEST_UPPER = 1e-300

# Nodes of the contour integral at most, and nodes times values.
MOST_NODES, _FEWEST_NODES = 2e5, 1e4
_MOST_WORK = 6e5

# First width tried, unless the requested one is nearly as wide, and the relative width of the
# result, over ``width``, that is enough.
_COARSEST, _WIDE, _ENOUGH = 1e-4, 1e-5, 10.0

# A result above the bound from one term by this factor is lost in round-off: no width helps.
_LOST = 100.0
# Most terms of a mean, a number that is exact as a float.
LARGEST_NUM_TERMS = 10**15

# Most outcomes that are listed one by one; deviations of a binomial law that are listed, on both
# sides together; and the relative round-off of a step.
_MOST_OUTCOMES, _DEVIATIONS, _ROUND_OFF = 300_000, 25.0, 1e-15
_UNIT_ROUND_OFF = 2.0**-53
_LARGEST_UNIT = 800  # binary exponent; its exponential does not overflow


def few_nodes(domain_size: int) -> float:
    """Return a budget of nodes for one of many points of a curve."""
    return max(2e3, min(2e4, 1e5 / domain_size))


def mean_positive_part(
    num_terms: int,
    base: float,
    masses: NDArray[np.float64],
    differences: NDArray[np.float64],
    *,
    width: float = 1e-8,
    most_nodes: float = MOST_NODES,
) -> Enclosure:
    """Enclose E[(G_1 + ... + G_n)_+] / n for i.i.d. terms with finitely many values.

    Parameters
    ----------
    num_terms : int
        Number n of terms, 1 to 1e15.
    base : float
        The value that G has with the mass missing from 1. The heaviest value is the best choice.
    masses : (m,) array
        Probabilities of the other values, >= 0 and with a sum of at most 1, each right to a few
        roundings.
    differences : (m,) array
        Those values minus ``base``, finite.
    width : float
        Width aimed at, relative to the threshold of the sum: (tau / sd)^2 above. Where the sum has
        few values, a node budget may leave it wider.
    most_nodes : float
        Node budget; less with more than three values.

    Returns
    -------
    Enclosure
        Exactly 0 where no value is positive; otherwise ``upper`` is at least 1e-300.

    Raises
    ------
    ParameterError
        If a number is not as above.

    Notes
    -----
    Error budget: 16 + m roundings of n E[abs(e^(theta D) - 1)], which is about 1e-14 sqrt(n) of
    the result, and those of each node's phase. Cost: microseconds to tens of milliseconds,
    whatever n.

    Examples
    --------
    A fair walk of two steps: E[S_+] = 1/2.

    >>> found = mean_positive_part(2, -1.0, np.array([0.5]), np.array([2.0]))
    >>> found.lower <= 0.25 <= found.upper <= 0.2501
    True
    """
    users = require_at_least("num_terms", num_terms, 1, LARGEST_NUM_TERMS)
    matters = (masses != 0.0) & (differences != 0.0)
    order = np.argsort(-masses[matters], kind="stable")
    masses, differences = masses[matters][order], differences[matters][order]
    total = math.fsum(masses)
    if not (np.all(masses > 0.0) and total <= 1.0 + 1e-12 and math.isfinite(base)):
        raise ParameterError(f"masses with a sum of {total} and base = {base} are no law")
    if not np.all(np.isfinite(differences)):
        raise ParameterError("differences must be finite")
    if base + float(np.max(differences, initial=0.0)) <= 0.0:
        return Enclosure(0.0, 0.0)
    if differences.size == 0:
        return Enclosure(base, base)
    # In one sum: 1 - total has an absolute error of some 1e-16, too large for a rare base value.
    rest = math.fsum((1.0, *-masses))
    from shuffledp.core.numerics.positive_part_kernels import Terms

    law = Terms(float(users), base, max(rest, 0.0), masses, differences)
    if _num_listed(law, users) <= _MOST_OUTCOMES:
        found: Enclosure | None = _listed(law, users)
    else:
        found = _listed_while_rare(law, max(0.01 * width, 1e-10))
    if found is not None:
        alone = _alone(law)
        return Enclosure(min(found.lower, alone), min(found.upper, alone))
    mean = base + math.fsum(masses * differences)
    if mean > 0.0:
        # E[S_+] = E[S] + E[(-S)_+]: a contour is short where the sum seldom is positive.
        slack = 4.0 * _UNIT_ROUND_OFF * (abs(base) + math.fsum(masses * np.abs(differences)))
        opposite = law._replace(base=-base, differences=-differences)
        negative = _by_contour(opposite, width, most_nodes)
        return Enclosure(max(mean + negative.lower - slack, 0.0), mean + negative.upper + slack)
    return _by_contour(law, width, most_nodes)


def _alone(law: "Terms") -> float:
    """Return the upper end for one term."""
    return _listed(law._replace(number=1.0), 1).upper


def _by_contour(law: "Terms", width: float, most_nodes: float) -> Enclosure:
    """Enclose the same by a contour integral, in units of a power of two."""
    from shuffledp.core.numerics.positive_part_kernels import enclose_positive_part

    if law.base + float(np.max(law.differences, initial=0.0)) <= 0.0:
        return Enclosure(0.0, 0.0)
    unit = law.exponent
    scaled, log_unit = law.scaled(-unit), unit * math.log(2.0)
    nodes = min(most_nodes, max(_FEWEST_NODES, _MOST_WORK / law.size))
    attempt = width if width >= _WIDE else _COARSEST
    alone = _alone(law)
    while True:
        # Where nothing is near 0, the coarsest smoothing already is as good as exact.
        lower, upper = enclose_positive_part(scaled, attempt, nodes, log_unit)
        lost = lower <= 0.0 and upper > _LOST * alone
        if upper - lower <= _ENOUGH * width * upper or attempt <= width or lost:
            break
        # Both ends approach one another like the width: a step known to fall short is left out.
        short = 0.01 * (upper - lower) > 2.0 * _ENOUGH * width * upper
        attempt = width if short or attempt < 101.0 * width else 0.01 * attempt
    return Enclosure(min(lower, alone), max(min(upper, alone), SMALLEST_UPPER))


def _num_listed(law: "Terms", most: int) -> float:
    """Return the approximate number of outcomes with ``most`` terms off the two first values."""
    others, first = law.size - 1, law.masses[0]
    if most * others > _MOST_OUTCOMES:
        return math.inf  # there are more rows than that
    rows = math.comb(most + others, others)
    if rows > _MOST_OUTCOMES:
        return math.inf  # perhaps too many for a float
    odd = first / max(1.0 - math.fsum(law.masses[1:]), first)
    spread = 1.0 + math.sqrt(law.number * odd * (1.0 - odd))
    return rows * min(_DEVIATIONS * spread, law.number + 1.0)


def _listed(law: "Terms", most: int) -> Enclosure:
    """Enclose the same by listing outcomes with at most ``most`` terms off the two first values."""
    from shuffledp.core.numerics.positive_part_kernels import enumerate_positive_part

    # Small chances may underflow where values are huge: the two are combined in logarithms.
    unit, size = min(max(law.exponent, 0), _LARGEST_UNIT), law.size
    found = enumerate_positive_part(
        law.scaled(-unit), most if size > 1 else 0, unit * math.log(2.0)
    )
    value, terms, exponent = found
    # A value, and an exponent, is a sum of m + 2 products.
    slack = _ROUND_OFF * (2.0 + size) * ((1.0 + exponent) * value + terms)
    lower = value - slack if value > SMALLEST_UPPER else 0.0
    return Enclosure(max(lower, 0.0), max(value + slack, SMALLEST_UPPER))


def _listed_while_rare(law: "Terms", negligible: float) -> Enclosure | None:
    """Enclose the same by listing, where all but two values are so rare that this can be done."""
    expected = max(law.number * math.fsum(law.masses[1:]), SMALLEST_UPPER)
    frequent = max(law.base, law.base + float(law.differences[0]), 0.0)
    largest = max(float(np.max(law.differences)), 0.0) * expected / law.number + frequent
    most, tail = 1, math.inf
    found = Enclosure(0.0, math.inf)
    # The limit grows slowly: listing twice as many terms costs 2^m as much.
    while tail > negligible * found.lower:
        most += (most + 1) // 2
        if most >= 2 * law.number or _num_listed(law, most) > _MOST_OUTCOMES:
            return None
        if most <= 2.0 * expected:
            continue
        found = _listed(law, min(most, int(law.number)))
        # Chernoff: E[N; N > most] = expected * Pr[Bin(n - 1, q) >= most]; Pr[N > most] is smaller.
        tail = math.exp(most - expected - most * math.log(most / expected)) * largest * 1.01
    return Enclosure(found.lower, found.upper + tail)
