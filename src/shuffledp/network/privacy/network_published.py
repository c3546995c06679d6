"""The published guarantees of network shuffling, in forms that are proved, under their hypotheses.

Source: Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via
Random Walks", SIGMOD 2022, arXiv:2204.03919: Lemma 5.1, Theorems 5.3, 5.5 and 5.6. Write p =
e^epsilon0. All need pure epsilon0-LDP. `network_walk` is far smaller.

**All, Theorem 5.3.** The holders of the n reports are i.i.d. with collision probability S = sum of
P(j)^2. Then (epsilon, delta1 + delta2)-DP with

    epsilon = c^2 r^2 / 2 + c r sqrt(2 ln(1/delta1)),
    r = sqrt(1/n + (1 - 1/n) S) + sqrt(ln(1/delta2) / n),

c = p^2 (p - 1) as printed, c = p^1.5 (p - 1) by the proof below. A total delta is cut in halves.

*Proof.* Let L_j count the reports at place j. E||L||^2 = n + n (n-1) S, and moving one report
changes the norm by at most sqrt(2), so by McDiarmid's inequality ||L||_2 <= n r save with
probability delta2. Given L the arrangement is uniform, since the holders are exchangeable. Sort the
places by descending L. Put the victim into the first position of the first place, the others
uniformly into the rest, and exchange the victim with a uniform position I. Release place by place.
Given I = i, what is released before the place B of position i has a likelihood R_xi(y) for the
first position's report y: between some b and p b. For positions k released before, it has a factor
between 1/p and p more, so at least b/p. With z = (positions released before)/n, then, B holds I
with probability at most

    t = p (L_B/n) / (1 - z + z/p).

On both datasets B is released from mixtures of the same mu0 (I elsewhere) with mu1 and mu1' (I in
B), of weights s, s' <= t. mu1/mu0, mu1'/mu0 lie in [1/p, p] and mu1/mu1' <= p, so the losses are at
most ln(1 + t (p - 1)), as for `erlingsson_composed`. In the first place s = s' = L_1/n, and mu1/mu0
= a may reach p^2, as two positions change; (1 + s (a-1))/(1 + s (a/p - 1)) grows with a, and at
a = p^2 is at most 1 + s p (p - 1), the same. So the loss of B is at most p (p-1) (L_B/n) h(z), h(z)
= 1/(1 - z (1 - 1/p)) <= p: the printed c. As h grows with z and L falls, Chebyshev's sum inequality
gives sum (L_B/n)^2 h^2 <= (sum (L_B/n)^2) times the integral of h^2 over [0, 1], which is p. The
heterogeneous composition of Kairouz, Oh, Viswanath 2017, arXiv:1311.0776, Theorem 3.5, ends it. ∎

**All, after finitely many rounds.** Positions are not exchangeable then, and the proof above fails.
With the overlaps kappa_i of `network_walk`, at least m - 1 others share the victim's law save with
probability d0, and all else is revealed: the theorem for n = m, S that of the victim's law, and
d0 + delta1 + delta2. A total delta is cut in thirds.

**Single, Theorems 5.5, 5.6.** Each holder hands in one of the reports held, or *a report of the
same randomizer for a fixed value* where none is held. Then (epsilon, delta)-DP with

    epsilon = c^2 S / 2 + c sqrt(2 S ln(1/delta)),

S of the victim's own law, after any number of rounds, whatever the others do: c = p (p - 1) as
printed, c = p^0.5 (p - 1) by the proof below.

*Proof.* Reveal which value each place hands in if the victim's report is left out, z_j: of one of
the others or the fixed one. The victim's report replaces that of place j with probability Q_j <=
P_v(j), and of none otherwise. Release by descending Q. As above, place j shows the victim's with
probability at most t = Q_j h(z), z the sum of the Q before: here the likelihoods of the places not
yet released are equal. Losses are at most (p-1) Q_j h(z), and as before sum (Q_j h)^2 <= p S. ∎

With an empty answer that is told from a report this is false: a victim's report at a place where
nobody else's can be is seen to be his. The number is refused for those.

**Equation 7**, S <= sum pi^2 + (1 - gap)^(2t), holds on regular graphs. On others Theorem 5.3 with
it is false after finitely many rounds: on the complete graph of 10^6 users and one more who hangs
on one of them, after one round, that one's report is at its only neighbour, who holds nothing else
with probability 0.37. `collision_upper` is a bound for all graphs.

*Proof.* P_i(j) = sqrt(pi_j/pi_i) (f f^T + B)_ij with f = sqrt(pi), B f = 0, ||B|| <= lambda^t. Let
e = P_i - pi, so e_j = sqrt(pi_j/pi_i) (B g)_j with g = unit_i - sqrt(pi_i) f, ||g||^2 = 1 - pi_i.
Then S = sum pi^2 + 2 sum pi_j e_j + sum e_j^2, the last is at most (pi_max/pi_i) lambda^2t
(1 - pi_i), and sum pi_j e_j = <pi^1.5 - (sum pi^2) f, B g>/sqrt(pi_i). On a regular graph the
middle term is 0. ∎
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_non_negative, require_open_unit
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import exp_minus_one_upper, round_up
from shuffledp.core.numerics.poisson_binomial import survival_levels

CONSTANTS = ("printed", "sharpened")

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
_ROUNDING = 1e-13


def _constant(epsilon0: float, power: float, *, constant: str) -> float:
    """Return c = p^power (p - 1), rounded up; printed powers are larger than sharpened by 1/2."""
    if constant not in CONSTANTS:
        raise ParameterError(f"constant = {constant!r} is not one of {CONSTANTS}")
    loss = require_non_negative("epsilon0", epsilon0)
    if loss > _LARGEST_EPSILON0:
        return math.inf
    exponent = power if constant == "sharpened" else power + 0.5
    return round_up(math.exp(exponent * loss) * exp_minus_one_upper(loss), operations=512)


def _composed(constant: float, root: float, delta: float) -> float:
    """Return c^2 r^2 / 2 + c r sqrt(2 ln(1/delta)), rounded up."""
    step = constant * root
    return round_up(0.5 * step * step + step * math.sqrt(-2.0 * math.log(delta)), operations=32)


def _require_collision(collision: float) -> float:
    """Return a collision probability in (0, 1], or raise."""
    value = require_non_negative("collision", collision)
    if not 0.0 < value <= 1.0 + _ROUNDING:
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
    epsilon0: float,
    *,
    num_users: int,
    collision: float,
    delta: float,
    is_exchangeable: bool,
    constant: str = "sharpened",
) -> Bound:
    """Return epsilon by Theorem 5.3, for reports whose holders are i.i.d.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, >= 0, of a pure randomizer.
    num_users : int
        Number n of reports, at least 1.
    collision : float
        S, or an upper bound of it, in (0, 1]: sum of pi^2, which is Gamma/n.
    delta : float
        Total failure probability in (0, 1): half of it for the counts, half for the composition.
    is_exchangeable : bool
        Whether all holders have one law, as at stationarity. After finitely many rounds they do
        not: see `published_all_thinned_epsilon`.
    constant : {"sharpened", "printed"}
        p^1.5 (p - 1), or the larger p^2 (p - 1) of the paper.

    Returns
    -------
    Bound
        ``upper`` errs upwards. It is the formula's value and may exceed epsilon0, even be ``inf``.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If the holders are not exchangeable.

    Notes
    -----
    Source: Theorem 5.3 of the paper; the module has the proof.

    Examples
    --------
    >>> asked = {"num_users": 10_000, "collision": 1e-4, "delta": 2e-6, "is_exchangeable": True}
    >>> round(published_all_epsilon(0.5, **asked).upper, 4)
    0.3729
    >>> published_all_epsilon(0.0, **asked).upper
    0.0
    """
    if not is_exchangeable:
        raise OutOfRegimeError(
            "Theorem 5.3 needs exchangeable holders, all of one law as at stationarity, and was "
            "told that they are not; use published_all_thinned_epsilon or network_walk_epsilon"
        )
    n = require_at_least("num_users", num_users, 1)
    spread = _require_collision(collision)
    half = 0.5 * require_open_unit("delta", delta)
    factor = _constant(epsilon0, 1.5, constant=constant)
    upper = _composed(factor, _count_norm(n, spread, half), half)
    return _bound(upper, f"network-published-all/{constant}", "Theorem 5.3")


def _count_norm(num_users: int, collision: float, delta: float) -> float:
    """Return r = sqrt(1/n + (1 - 1/n) S) + sqrt(ln(1/delta)/n), rounded up, at most 1."""
    n = float(num_users)
    mean = math.sqrt(1.0 / n + (1.0 - 1.0 / n) * collision)
    return min(round_up(mean + math.sqrt(-math.log(delta) / n), operations=16), 1.0)


def published_all_thinned_epsilon(
    epsilon0: float,
    *,
    overlaps: ArrayLike,
    collision: float,
    delta: float,
    constant: str = "sharpened",
) -> Bound:
    """Return epsilon by Theorem 5.3 after finitely many rounds, for the crowd of the victim's law.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, >= 0, of a pure randomizer.
    overlaps : array_like of float, shape (n - 1,)
        kappa_i of the others with the victim's law, as for `network_walk_epsilon`, missing nothing.
    collision : float
        S of the victim's law, or an upper bound, in (0, 1].
    delta : float
        Total failure probability in (0, 1): a third for the size of the crowd, a third for the
        counts, a third for the composition.
    constant : {"sharpened", "printed"}
        As for `published_all_epsilon`.

    Returns
    -------
    Bound
        For this victim; ``upper`` errs upwards and may exceed epsilon0.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: ours, from Theorem 5.3; the module has the proof.

    Examples
    --------
    >>> found = published_all_thinned_epsilon(
    ...     0.5, overlaps=[1.0] * 9999, collision=1e-4, delta=3e-6
    ... )
    >>> round(found.upper, 4)
    0.3729
    """
    spread = _require_collision(collision)
    third = require_open_unit("delta", delta) / 3.0 * (1.0 - _ROUNDING)
    factor = _constant(epsilon0, 1.5, constant=constant)
    others, _ = survival_levels(overlaps, [third])[0]
    upper = _composed(factor, _count_norm(others + 1, spread, third), third)
    return _bound(upper, f"network-published-all-thinned/{constant}", "Theorem 5.3")


def published_single_epsilon(
    epsilon0: float,
    *,
    collision: float,
    delta: float,
    dummies_are_reports: bool,
    constant: str = "sharpened",
) -> Bound:
    """Return epsilon by Theorems 5.5 and 5.6, where empty holders send a randomized dummy.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, >= 0, of a pure randomizer.
    collision : float
        S of the victim's own law after the rounds that were made, or an upper bound, in (0, 1].
    delta : float
        Failure probability in (0, 1).
    dummies_are_reports : bool
        Whether a holder of nothing sends a report of the same randomizer, for a fixed value, that
        nobody can tell from others. With empty answers the theorem is false.
    constant : {"sharpened", "printed"}
        p^0.5 (p - 1), or the larger p (p - 1) of the paper.

    Returns
    -------
    Bound
        For this victim; ``upper`` errs upwards and may exceed epsilon0.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If empty answers can be told from reports.

    Notes
    -----
    Source: Theorems 5.5 and 5.6 of the paper; the module has the proof.

    Examples
    --------
    >>> found = published_single_epsilon(
    ...     0.5, collision=1e-4, delta=1e-6, dummies_are_reports=True, constant="printed"
    ... )
    >>> round(found.upper, 4)
    0.0563
    """
    if not dummies_are_reports:
        raise OutOfRegimeError(
            "Theorem 5.5 needs dummies that are reports of the same randomizer, and was told that "
            "empty answers can be told from reports; use network_walk_epsilon"
        )
    spread = _require_collision(collision)
    inside = require_open_unit("delta", delta)
    factor = _constant(epsilon0, 0.5, constant=constant)
    upper = _composed(factor, round_up(math.sqrt(spread)), inside)
    return _bound(upper, f"network-published-single/{constant}", "Theorems 5.5 and 5.6")


def published_collision(
    stationary_law: ArrayLike, *, second_eigenvalue: float, rounds: int, is_regular: bool
) -> float:
    """Return S <= sum pi^2 + lambda^(2t), equation 7, on a regular graph.

    Parameters
    ----------
    stationary_law : array_like of float, shape (n,)
        pi; uniform on a regular graph.
    second_eigenvalue : float
        lambda, or an upper bound of it, in [0, 1]; 1 - lambda is the spectral gap.
    rounds : int
        Number t of rounds, >= 0.
    is_regular : bool
        Whether all users have the same degree.

    Returns
    -------
    float
        Upper bound of the collision probability of every report's holder, at most 1. Errs upwards.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If the graph is not regular.

    Examples
    --------
    >>> round(published_collision([0.25] * 4, second_eigenvalue=0.5, rounds=2, is_regular=True), 12)
    0.3125
    """
    if not is_regular:
        raise OutOfRegimeError(
            "equation 7 needs a regular graph, and was told that degrees differ: Theorem 5.3 with "
            "it is false there; use collision_upper"
        )
    law = _require_law(stationary_law)
    rate = _require_rate(second_eigenvalue)
    t = require_at_least("rounds", rounds, 0)
    return min(round_up(float((law**2).sum()) + rate ** (2 * t), operations=4096), 1.0)


def collision_upper(
    stationary_law: ArrayLike, start: int, *, second_eigenvalue: float, rounds: int
) -> float:
    """Return an upper bound of S, the collision probability of a report's holder, on any graph.

    Parameters
    ----------
    stationary_law : array_like of float, shape (n,)
        pi_j = degree_j / (2 m), all positive.
    start : int
        User i at whom the report starts.
    second_eigenvalue : float
        lambda, or an upper bound of it, in [0, 1].
    rounds : int
        Number t of rounds, >= 0.

    Returns
    -------
    float
        sum pi^2 + 2 lambda^t sqrt((1/pi_i - 1) (sum pi^3 - (sum pi^2)^2)) + lambda^(2t)
        (pi_max/pi_i) (1 - pi_i), rounded up, at most 1.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: ours; the module has the proof.

    Examples
    --------
    >>> round(collision_upper([0.25] * 4, 0, second_eigenvalue=0.5, rounds=2), 12)
    0.296875
    """
    law = _require_law(stationary_law)
    i = require_at_least("start", start, 0)
    if i >= len(law):
        raise ParameterError(
            f"start = {start} is not one of the {len(law)} users: they count from 0"
        )
    rate = _require_rate(second_eigenvalue)
    decay = rate ** require_at_least("rounds", rounds, 0)
    mine, squares = float(law[i]), float((law**2).sum())
    # Centred, so that nothing cancels where degrees are nearly equal.
    spread = float((law * (law - squares) ** 2).sum())
    cross = 2.0 * decay * math.sqrt(max((1.0 / mine - 1.0) * spread, 0.0))
    tail = decay * decay * (float(law.max()) / mine) * (1.0 - mine)
    return min(round_up(squares + cross + tail, operations=4096), 1.0)


def _require_law(law: ArrayLike) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return a law with positive entries that sum to 1, or raise."""
    values = np.asarray(law, dtype=np.float64)
    if values.ndim != 1 or not np.all(values > 0.0) or not abs(values.sum() - 1.0) < 2e-13:
        raise ParameterError(
            "stationary_law is no list of positive probabilities that add up to 1: give "
            "degrees / (2 m) of a connected graph"
        )
    return values


def _require_rate(second_eigenvalue: float) -> float:
    """Return lambda in [0, 1], or raise."""
    rate = require_non_negative("second_eigenvalue", second_eigenvalue)
    if rate > 1.0:
        raise ParameterError(f"second_eigenvalue = {rate} is above 1: no walk has such a one")
    return rate
