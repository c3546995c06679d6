"""Theorems 5.3, 5.5 and 5.6 of Liew et al., arXiv:2204.03919, in forms that are proved.

Pure epsilon0-LDP reports, p = e^epsilon0. S is the collision probability of the law of the holder:
that two independent copies of a report end at one place, r = sqrt(1/n + (1 - 1/n) S) +
sqrt(ln(1/delta)/n). Counterexamples to the theorems as printed are in docs/results/network.md. All
numbers err upwards but for rounding, and may exceed epsilon0.

*Theorem 5.3.* L_j counts the reports at j, p = e^epsilon0. E norm(L)^2 = n + n (n - 1) S, and
moving one report changes the norm by at most sqrt(2): by McDiarmid norm(L) <= n r except with
probability delta_2. Given L the arrangement is uniform. Sort places by descending L, put the victim
first in the first place and the others uniformly; exchange the victim with a uniform position I;
release place by place. Given I = i in a place B not yet released, what was released has a
likelihood R_(x_i)(y) for the first position's report y up to a common factor, between some b and p
b; for i released before another factor in [1/p, p]. With z the share of positions released before,
B holds I with probability at most t = p (L_B/n)/(1 - z + z/p). On both datasets B shows a mixture
of the same mu_0 (I elsewhere) with mu_1, mu_1', of weights s, s' <= t <= 1 (t may be cut there),
and a = mu_1/mu_0, b = mu_1'/mu_0 in [1/p, p], a/b <= p. The loss is at most ln(1 + t (p - 1)), as
(1 + s (a - 1))/(1 + s' (b - 1)) <= 1 + t (p - 1): clear for b >= 1; for a <= 1 the ratio is at most
1/(1 - t (1 - 1/p)) <= 1 + t (p - 1); and for b < 1 < a, where b >= a/p, it is at most (1 + t (a -
1))/(1 - t (1 - a/p)), which increases in a and is 1 + t (p - 1) at a = p. In the first place s = s'
= L_1/n and a = mu_1/mu_0 may reach p^2; (1 + s (a - 1))/(1 + s (a/p - 1)) grows with a and is at
most 1 + s p (p - 1). With h(z) = 1/(1 - z (1 - 1/p)) <= p the loss of B is at most p (p - 1)
(L_B/n) h(z). As L falls and h grows, Chebyshev's sum inequality gives sum (L_B/n)^2 h^2 <= sum
(L_B/n)^2 times the integral of h^2 over [0, 1], which is p; heterogeneous composition (Kairouz, Oh,
Viswanath 2017, arXiv:1311.0776, Theorem 3.5) ends it. After finitely many rounds positions are not
exchangeable and the proof fails.

*Theorems 5.5 and 5.6.* A holder of nothing sends a report of the same randomizer for a fixed value.
Reveal which value each place sends if the victim's report is left out; that report replaces the one
of place j with probability Q_j <= P_v(j). Release by descending Q: place j shows the victim's with
probability at most Q_j h(z), z the sum of Q before; sum (Q_j h)^2 <= p S as before.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def all_epsilon(epsilon0: float, *, num_users: int, collision: float, delta: float) -> float:
    """Return epsilon by Theorem 5.3, for holders that are i.i.d. as at stationarity.

    Half of delta is for the counts, half for the composition.

    >>> round(all_epsilon(0.1, num_users=10**6, collision=1e-6, delta=1e-6), 4)
    0.0036
    """
    return _all(epsilon0, num_users, collision, 0.5 * delta)


def thinned_epsilon(
    epsilon0: float, *, overlaps: ArrayLike, collision: float, delta: float
) -> float:
    """Return epsilon by Theorem 5.3 after finitely many rounds, for those who share one law.

    A third of delta is for their number, by Bernstein's inequality, a third for the counts, a third
    for the composition.
    """
    chances, exponent = np.asarray(overlaps, np.float64), math.log(3.0 / delta)
    variance = float((chances * (1.0 - chances)).sum())
    reach = exponent / 3.0 + math.sqrt(exponent * exponent / 9.0 + 2.0 * exponent * variance)
    others = max(math.floor(float(chances.sum()) - reach), 0)
    return _all(epsilon0, others + 1, collision, delta / 3.0)


def single_epsilon(epsilon0: float, *, collision: float, delta: float) -> float:
    """Return epsilon by Theorems 5.5 and 5.6, where empty holders send a randomized dummy.

    With empty answers that can be told from reports it is false.
    """
    return _composed(epsilon0, math.sqrt(min(collision, 1.0)), delta, power=1.0)


def _all(epsilon0: float, num_users: int, collision: float, delta: float) -> float:
    """Return Theorem 5.3, with delta for the counts and as much for the composition."""
    mean = math.sqrt(1.0 / num_users + (1.0 - 1.0 / num_users) * min(collision, 1.0))
    root = min(mean + math.sqrt(-math.log(delta) / num_users), 1.0)
    return _composed(epsilon0, root, delta, power=2.0)


def _composed(epsilon0: float, root: float, delta: float, *, power: float) -> float:
    """Return c^2 r^2 / 2 + c r sqrt(2 ln(1/delta)), c = p^power (p - 1)."""
    step = math.exp(power * epsilon0) * math.expm1(epsilon0) * root
    return 0.5 * step * step + step * math.sqrt(-2.0 * math.log(delta))


def largest_collision(law: NDArray[np.float64], chi_squares: NDArray[np.float64]) -> float:
    """Return at least the largest S of some reports, from variances of P_i / pi under pi.

    Equation 7 of the paper holds on regular graphs only; this holds on all. *Proof.* P_i(j) =
    sqrt(pi_j/pi_i) (f f^T + B)_ij with f = sqrt(pi), B f = 0 and norm(B) <= lambda^t. So e = P_i -
    pi has e_j = sqrt(pi_j/pi_i) (B g)_j, g = u_i - sqrt(pi_i) f, norm(g)^2 = 1 - pi_i. Then S =
    sum pi^2 + 2 sum pi_j e_j + sum e_j^2, and sum pi_j e_j = <pi^1.5 - (sum pi^2) f, B g>/
    sqrt(pi_i).

    >>> largest_collision(np.full(4, 0.25), np.array([0.0, 3.0]))  # everywhere alike, or at home
    1.0
    """
    largest, mean = float(law.max()), float(law @ law)
    spread = math.sqrt(float(law @ np.square(law - mean)))
    by_mean = mean + 2.0 * spread * np.sqrt(chi_squares) + largest * chi_squares
    return min(float(np.minimum(by_mean, largest * (1.0 + chi_squares)).max()), 1.0)
