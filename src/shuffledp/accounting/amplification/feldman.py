"""Hiding among the clones: Feldman, McMillan, Talwar 2021, closed and numerical.

Source: "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification by
Shuffling", arXiv:2012.12803, Theorem 3.1 and the pair of laws it rests on. Write p = e^epsilon0.

*The pair.* Every report law is at least (R_x1 + R_x1') / (2p), so each other user sends, with
probability 1/p, a report of one input of the pair, either as likely; and R_x1, R_x1' are mixtures
of two laws with weights p/(p+1), 1/(p+1) and the reverse. Hence, with C ~ Bin(n - 1, 1/p),
A ~ Bin(C, 1/2) and D ~ Bern(p/(p+1)), the pair (A + D, C - A + 1 - D) against
(A + 1 - D, C - A + D) dominates. This holds for the randomizers of an adaptive sequence too, if the
*data* are shuffled.

*As a law of (B).* The blanket has mass 1/p, half of it on either kind of report,
1/(2p) each. Against it the victim's report has the likelihood ratios h = (p/(p+1)) / (1/(2p)) =
2p^2/(p+1) and l = 2p/(p+1), so h/l = p and the mean ratio is (h + l)/(2p) = 1. The law (B) with
pair mass 1/p and ratios (h, l) is this pair, exactly. It comes from the law of `clones`, ratios
(p, 1) and mass 1/(p+1) for each kind, by spreading each atom: ratios times s = 2p/(p+1), mass
divided by s, the rest without weight. That keeps the mean and goes up in convex order, so this
bound is never below `clones`.

*The closed form* epsilon <= ln(1 + (p-1)/(p+1) (8 sqrt(p ln(4/delta)/n) + 8p/n)) is never below the
one of `feldman_2023`, which is proved there from `clones`: the ratio of the first terms is
sqrt(2p/(p+1)) >= 1, that of the second 2p/(p+1) >= 1, and p <= n/(16 ln(2/delta)) implies
p + 1 <= n/(8 ln(2/delta)). The paper prints ln(2/delta) in the regime and the authors' code has
ln(4/delta); the stricter one is required here.

The closed form of Feldman, McMillan, Talwar 2023, proved from the clone pair.

Source: "Stronger Privacy Amplification by Shuffling for Renyi and Approximate Differential
Privacy", arXiv:2208.04591. Its erratum withdraws the proof for general randomizers. The bound
follows all the same, because the law of `clones` dominates every epsilon0-LDP randomizer
(docs/results/clones.md).

*Proof.* Write p = e^epsilon0, r = 1/(p+1), L = ln(2/delta) and m = r n, so the regime says m >= 8L.
In the clone pair let N - 1 = C ~ Bin(n - 1, 2r), let D be the difference of the two counts, and put
x = (p-1) r D/N. Then P/Q = (1 + x)/(1 - x).

1. C < m - 1 has probability at most delta/2: m - 1 <= mu/2 for mu = 2r(n - 1), and by Chernoff
   Pr[C < mu/2] <= exp(-mu/8) <= exp(-2L + r/4) <= delta/2, since L >= ln 2 > r/4.
2. Given C, under P, D <= Z + 1 with Z a fair +-1 walk of C steps, and Z > sqrt(2CL) has probability
   at most e^-L = delta/2 (Hoeffding).
3. Otherwise x <= (p-1) r u with u = (sqrt(2L(N-1)) + 1)/N, which falls in N; so take N = m. With
   t = sqrt(2L/m) <= 1/2 and w = 1/m, u <= t + (1 - t/2) w < 1. Then
   P/Q - 1 = 2x/(1 - x) <= (p-1) r 2u/(1 - u), and it remains to see u/(1 - u) <= 2y for
   y = sqrt(t^2 + 2w ln 2) + w = sqrt(2 ln(4/delta)/m) + 1/m.
   From L >= ln 2, 2w ln 2 <= t^2; by concavity on that range y >= t + 2.148w. So
   2y(1 - u) - u >= 2t(1-t) - t + w (4.296(1-t) - (1 - t/2)(1 + 2t) - 4.296(1 - t/2) w). The first
   part is >= 0. The bracket is least at t = 1/2 with w = t^2/(2 ln 2) = 0.181, where it is 0.06.

So outside an event of probability delta under P, P/Q <= 1 + (p-1) r 4y, which is the closed form.
The pair is symmetric, so that is (epsilon, delta)-DP.
"""

import math

from shuffledp.accounting.amplification.atom_law import SMALLEST_DELTA, AtomLaw
from shuffledp.accounting.amplification.families import blanket_method, symmetric_law
from shuffledp.accounting.amplification.method import HAIR, Method, pure_violation
from shuffledp.core.numerics.enclosure import Enclosure, exp_minus_one_upper, round_up
from shuffledp.core.profile import LocalProfile

_SOURCE = "Feldman, McMillan, Talwar 2021, arXiv:2012.12803, Theorem 3.1"


def weak_clone_law(epsilon0: float) -> AtomLaw:
    """Return the law of one user's report in the pair of 2021, as the module derives it."""
    return symmetric_law(
        epsilon0,
        low=2.0 / (1.0 + math.exp(-epsilon0)),
        pair_mass=math.exp(-epsilon0),
        others=[(-math.expm1(-epsilon0), 0.0)],
    )


def feldman_2021_epsilon(epsilon0: float, num_users: int, delta: float) -> float:
    """Return the closed form of Theorem 3.1, rounded up, for parameters inside its regime."""
    ratio = exp_minus_one_upper(epsilon0)
    p = math.exp(epsilon0)
    log_term = math.log(4.0) - math.log(delta)
    spread = 8.0 * math.sqrt(p * log_term / num_users) + 8.0 * p / num_users
    return round_up(math.log1p(ratio / (p + 1.0) * spread), operations=32)


def feldman_2021_delta(epsilon0: float, num_users: int, epsilon: float) -> float:
    """Return the least delta of the regime whose closed form is at most ``epsilon``, rounded up.

    1 where there is none.
    """
    p = math.exp(epsilon0)
    spread = math.expm1(epsilon) * (p + 1.0) / max(math.expm1(epsilon0), SMALLEST_DELTA)
    root = (spread - 8.0 * p / num_users * HAIR) * math.sqrt(num_users / p) / 8.0
    if not root > 0.0:
        return 1.0
    # The closed form falls with delta, so where it leaves its regime the edge of that will do.
    exponent = min(root * root, num_users / (16.0 * p)) * (1.0 - 1e-13)
    return min(4.0 * round_up(math.exp(-exponent)) + SMALLEST_DELTA, 1.0)


def _closed_violation(profile: LocalProfile, num_users: int, delta: float | None) -> str | None:
    if (impure := pure_violation(profile)) is not None:
        return impure
    if delta == 0.0:
        return "delta > 0"
    # Where epsilon is given, some delta below 1 must be in the regime.
    log_term = math.log(4.0) - (math.log(delta) if delta is not None else 0.0)
    if profile.epsilon0 < 100.0 and math.exp(profile.epsilon0) * HAIR * log_term * 16.0 <= (
        num_users
    ):
        return None
    return "epsilon0 <= ln(num_users / (16 ln(4/delta)))"


FELDMAN_2021_CLOSED = Method(
    name="feldman-2021-closed",
    source=f"{_SOURCE}, closed form; proved from the clone pair in the shuffledp documentation",
    statement=(
        "eps <= ln(1 + (p-1)/(p+1) (8 sqrt(p ln(4/delta)/n) + 8p/n)), "
        "eps0 <= ln(n/(16 ln(4/delta)))"
    ),
    automatic=False,
    proved_here=True,
    violated_hypothesis=_closed_violation,
    epsilon=lambda profile, n, delta: Enclosure(
        0.0, feldman_2021_epsilon(profile.epsilon0, n, delta)
    ),
    delta=lambda profile, n, epsilon: Enclosure(
        0.0, feldman_2021_delta(profile.epsilon0, n, epsilon)
    ),
)

FELDMAN_2021_NUMERICAL = blanket_method(
    name="feldman-2021-numerical",
    source=f"{_SOURCE}, its pair of laws evaluated from both sides",
    statement=(
        "delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = s (p - e) or s (1 - p e), "
        "each w.p. 1/(2p), s = 2p/(p+1)"
    ),
    laws=lambda profile: [weak_clone_law(profile.epsilon0)],
    violated=pure_violation,
    automatic=False,
)


def feldman_2023_epsilon(epsilon0: float, num_users: int, delta: float) -> float:
    """Return ln(1 + (p-1) (4 sqrt(2 ln(4/delta)/((p+1) n)) + 4/n)), rounded up."""
    ratio = exp_minus_one_upper(epsilon0)
    log_term = math.log(4.0) - math.log(delta)
    spread = 4.0 * math.sqrt(2.0 * log_term / ((ratio + 2.0) * num_users)) + 4.0 / num_users
    return round_up(math.log1p(ratio * spread), operations=32)


def feldman_2023_delta(epsilon0: float, num_users: int, epsilon: float) -> float:
    """Return the least delta of the regime whose closed form is at most ``epsilon``, rounded up.

    1 where there is none.
    """
    shared = math.exp(epsilon0) + 1.0
    spread = math.expm1(epsilon) / max(math.expm1(epsilon0), SMALLEST_DELTA)
    root = (spread - 4.0 / num_users * HAIR) * math.sqrt(shared * num_users / 32.0)
    if not root > 0.0:
        return 1.0
    by_formula = 4.0 * round_up(math.exp(-root * root * (1.0 - 1e-13)))
    # The closed form falls with delta, so where it leaves its regime the edge of that will do.
    by_regime = 2.0 * round_up(math.exp(-num_users / (8.0 * shared) * (1.0 - 1e-13)))
    return min(max(by_formula, by_regime) + SMALLEST_DELTA, 1.0)


def _violation(profile: LocalProfile, num_users: int, delta: float | None) -> str | None:
    if (impure := pure_violation(profile)) is not None:
        return impure
    if delta == 0.0:
        return "delta > 0"
    # Where epsilon is given, some delta below 1 must be in the regime.
    log_term = math.log(2.0) - (math.log(delta) if delta is not None else 0.0)
    shared = (math.exp(profile.epsilon0) if profile.epsilon0 < 100.0 else math.inf) + 1.0
    if shared * HAIR * log_term * 8.0 <= num_users:
        return None
    return "epsilon0 <= ln(num_users / (8 ln(2/delta)) - 1)"


FELDMAN_2023_CLOSED = Method(
    name="feldman-2023-closed",
    source=(
        "Feldman, McMillan, Talwar 2023, arXiv:2208.04591, closed form; its proof was withdrawn "
        "for general randomizers, and replaced in the shuffledp documentation"
    ),
    statement=(
        "eps <= ln(1 + (p-1) (4 sqrt(2 ln(4/delta)/((p+1) n)) + 4/n)), "
        "eps0 <= ln(n/(8 ln(2/delta)) - 1)"
    ),
    automatic=False,
    proved_here=True,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: Enclosure(
        0.0, feldman_2023_epsilon(profile.epsilon0, n, delta)
    ),
    delta=lambda profile, n, epsilon: Enclosure(
        0.0, feldman_2023_delta(profile.epsilon0, n, epsilon)
    ),
)
