"""A closed form for the Renyi divergence of one shuffled release of any epsilon0-LDP randomizer.

*Proof.* Write p = e^epsilon0, r = 1/(p+1), k = (p-1)/(p+1) = tanh(epsilon0/2). The
clone pair dominates at every epsilon (docs/results/clones.md), hence in every
f-divergence. Let M be the mean of its two laws, N - 1 ~ Bin(n - 1, 2r) and D the difference of the
two counts: under M, D is a sum of N fair signs, and the laws are (1 + x) M and (1 - x) M with
x = k D/N. For order a > 1 and b = 2a - 1, with x = tanh u and since D is symmetric,

    exp((a-1) D_a) = E h(x^2),  h = (1/2) ((1+x)^a (1-x)^(1-a) + (1-x)^a (1+x)^(1-a))
                                  = cosh(bu) / cosh(u).

1. *Chord.* h is convex in z = x^2, because 2 dh/dz = b sinh(bu)/sinh(u) + (b sinh(bu) sinh(u) -
   cosh(bu) cosh(u)) increases in u: the first part does for b >= 1, and the derivative of the
   second is (b^2 - 1) cosh(bu) sinh(u). So h <= 1 + (h(k^2) - 1) x^2/k^2, and E[x^2/k^2] = E[1/N]:

       exp((a-1) D_a) - 1 <= E[1/N] (h(k^2) - 1),   E[1/N] = (1 - (1 - 2r)^n) / (2 r n),

   where h(k^2) = exp((a-1) D_a(RR)) is that of one binary randomized response.
2. *Tail.* cosh(bu) <= cosh(u) cosh(c u), c^2 = b^2 - 1 = 4a(a-1), coefficient by coefficient: with
   fair signs s, s' it says (E (s + c s')^2)^j <= E (s + c s')^(2j). While abs(x) <= y, abs(u) is at
   most (artanh(y)/y) abs(x), since artanh is convex; and E cosh(v D/N) = cosh(v/N)^N <=
   exp(v^2/(2N)) given N. Elsewhere h <= h(k^2). So for every m and every y in (0, k],

       exp((a-1) D_a) <= exp(2a(a-1) (k artanh(y)/y)^2 / m)
                         + h(k^2) (Pr[N < m] + Pr[abs(x) > y given N >= m]),

   the last at most 2 exp(-y^2 m / (2 k^2)) (Hoeffding), and 0 for y = k.

The published closed forms of Girgis et al. (arXiv:2105.05180) and of arXiv:2208.04591 are left out:
their statements could not be checked word by word, and these are of the same order.
"""

import math

from shuffledp.core.numerics.enclosure import round_up

# Exponentials beyond this are kept as logarithms.
_LARGEST_EXPONENT = 600.0

# Shares of the mean of N - 1, and of the largest x, at which the tail is cut; any are valid.
_CUTS = tuple(1.0 - 2.0 ** (-0.5 * i) for i in range(1, 40))
_SHARES = tuple(2.0 ** (-0.5 * i) for i in range(30))


def blanket_renyi_upper(order: float, epsilon0: float, num_users: int) -> float:
    """Return a bound on the Renyi divergence of any shuffled randomizer, rounded up."""
    n = float(num_users)
    log_excess = _log_excess(order, epsilon0)
    local = _log_one_plus(0.0, log_excess)
    chord = _log_one_plus(math.log(_mean_inverse_upper(epsilon0, n)), log_excess)
    least = min(chord, local, _tail(order, epsilon0, n, local))
    return min(round_up(least / (order - 1.0)), epsilon0)


def _log_excess(order: float, epsilon0: float) -> float:
    """Return ln(h - 1) at x = k, h - 1 = (p^(a-1) - 1)(1 - p^-a) p/(p+1), rounded up; -inf at 0."""
    growth = (order - 1.0) * epsilon0
    shrunk = -math.expm1(-order * epsilon0)
    if growth <= 0.0 or shrunk <= 0.0:
        return -math.inf
    log_growth = growth if growth > 50.0 else math.log(math.expm1(growth))
    log_excess = log_growth + math.log(shrunk) - math.log1p(math.exp(-epsilon0))
    return log_excess + 1e-14 * (abs(log_growth) + abs(math.log(shrunk)) + 1.0)


def _log_one_plus(log_factor: float, log_excess: float) -> float:
    """Return ln(1 + e^(log_factor + log_excess)), rounded up."""
    log_term = log_factor + log_excess
    if log_term < _LARGEST_EXPONENT:
        return round_up(math.log1p(math.exp(log_term)), operations=16)
    return round_up(log_term, operations=16) + 1e-200


def _mean_inverse_upper(epsilon0: float, n: float) -> float:
    """Return E[1/N] = (1 - (1 - 2r)^n) / (2 r n), rounded up, at most 1."""
    double = 2.0 / (math.exp(min(epsilon0, _LARGEST_EXPONENT)) + 1.0)
    if double * n < 1e-9:
        return 1.0
    # 1 - (1 - 2r)^n, at most 1
    hit = -math.expm1(n * math.log1p(-double)) if double < 0.5 else 1.0
    return min(round_up(hit / (double * n), operations=64) * (1.0 + 1e-13), 1.0)


def _tail(order: float, epsilon0: float, n: float, local: float) -> float:
    """Return the smallest of the second part's bounds on (a-1) D_a over some m and y, rounded up.

    ``local`` is ln h(k^2), rounded up.
    """
    if epsilon0 == 0.0:
        return 0.0
    mean = 2.0 * (n - 1.0) / (math.exp(min(epsilon0, _LARGEST_EXPONENT)) + 1.0)
    largest = math.tanh(0.5 * epsilon0)
    best = math.inf
    for cut in _CUTS:
        # C >= cut * mean but for exp(-mean (1 - cut)^2 / 2), so N >= cut * mean + 1
        least = cut * mean + 1.0
        few = math.exp(-0.5 * mean * (1.0 - cut) ** 2)
        for share in _SHARES:
            if share == 1.0:
                slope, far = 0.5 * epsilon0, 0.0
            else:
                slope = math.atanh(share * largest) / share
                far = 2.0 * math.exp(-0.5 * share * share * least)
            inside = 2.0 * order * (order - 1.0) * slope * slope / least * (1.0 + 1e-13)
            outside = local + math.log(few + far + 1e-300) + 1e-13 * (local + 1.0)
            larger, smaller = max(inside, outside), min(inside, outside)
            best = min(best, larger + math.log1p(math.exp(smaller - larger)))
    return best
