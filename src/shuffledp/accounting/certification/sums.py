"""(B) in ball arithmetic by its definition: sums over how many reports of each kind there are.

*Symmetric laws.* With C pair reports, Z others of the first kind and n - C - Z of the second, G_1 +
... + G_n = alpha D - x, where D is a fair walk of C steps, alpha = (h - l)(1 + e)/2 and
x = (e - 1) W, W the total weight. Since E[D; heads >= m] = m b(C, m) exactly,

    E(alpha D - x)_+ = alpha m b(C, m) - x T(C, m),

b and T point and upper tail probability of Bin(C, 1/2) and m the least number of heads with
alpha (2m - C) > x. As C and m grow by one, b and T follow by an operation or two. For given C, m is
the same for whole runs of Z, over which Z and its mean are summed. Where balls cannot tell whether
a number of heads counts, it is left out and at most what it could add is put into the radius.

*Other laws* are summed over all numbers of reports of each kind, for small n.

Outside the windows of C and Z, every report adds at most the gain h - e l, and only pair reports
add; the mass out there is bounded by Chernoff.
"""

import math
from dataclasses import dataclass
from operator import mul

from flint import arb, ctx

from shuffledp.accounting.certification.balls import (
    ZERO,
    binomial_point,
    floor_of_lower,
    outer_mass,
    up_to,
    window,
)
from shuffledp.accounting.certification.laws import Atom, SymmetricBalls

# Ball operations of one number of pair reports, and of one cell of both numbers.
_ROW_OPERATIONS, _CELL_OPERATIONS = 90, 3

# More operations than this need not be told apart.
_COUNTLESS = 1e18


def symmetric_work(law: SymmetricBalls, num_users: int, tail_exponent: float) -> float:
    """Return about how many ball operations `symmetric_delta` takes: O(sqrt(n)), or O(n) with Z."""
    first, last = window(num_users, float(law.pair_mass), tail_exponent)
    cells = 0
    if not law.rest_mass.is_zero():
        low, high = window(num_users, float(law.rest_mass), tail_exponent)
        cells = high - low
    series = math.sqrt(0.35 * ctx.prec * last)  # of the first row's tail
    rows = float(last - first + 1)
    return 6.0 * series + rows * (_ROW_OPERATIONS + _CELL_OPERATIONS * cells)


class _FairTail:
    """T(c, m) = Pr[Bin(c, 1/2) >= m] and b(c, m - 1), 1 <= m <= c + 1, as c and m grow."""

    def __init__(self, flips: int, heads: int) -> None:
        half = arb(1) / 2
        self.flips, self.heads = flips, heads
        self.before = binomial_point(flips, heads - 1, half, half)  # b(c, m - 1)
        point, total, outcome = self.point, ZERO, heads
        while outcome <= flips:
            total += point
            ratio = arb(flips - outcome) / (outcome + 1)  # below 1, since 2m > c, and falling
            point *= ratio
            outcome += 1
            if outcome % 16 == 0 and point < total.mid() * arb(2) ** -ctx.prec:
                total += up_to(point / (1 - ratio))
                break
        self.tail = total

    @property
    def point(self) -> arb:
        """b(c, m), exactly zero for m = c + 1."""
        return self.before * (self.flips - self.heads + 1) / self.heads

    def more_heads(self) -> None:
        """Go from m to m + 1, at most c + 1."""
        self.before = self.point
        self.tail -= self.before
        self.heads += 1

    def more_flips(self) -> None:
        """Go from c to c + 1."""
        self.tail += self.before / 2
        self.before *= arb(self.flips + 1) / (2 * (self.flips - self.heads + 2))
        self.flips += 1

    def copy(self) -> "_FairTail":
        """Return one that can go its own way."""
        other = object.__new__(_FairTail)
        other.flips, other.heads = self.flips, self.heads
        other.before, other.tail = self.before, self.tail
        return other


class _Cells:
    """Joint probabilities of C and Z, up to the factor of C that `row_factor` gives.

    n! a^C/C! m^Z/Z! b^(n-C-Z)/(n-C-Z)! as three tables, one a number.
    """

    def __init__(self, law: SymmetricBalls, num_users: int, tail_exponent: float) -> None:
        self._law, self._num_users = law, num_users
        self.first, self.last = window(num_users, float(law.pair_mass), tail_exponent)
        self.first = max(self.first, 1)  # without pair reports nothing is gained
        self.low, self.high = 0, 0
        if not law.rest_mass.is_zero():
            self.low, self.high = window(num_users, float(law.rest_mass), tail_exponent)
        self._fewest = max(num_users - self.last - self.high - 1, 0)
        most = num_users - self.first - self.low
        self._rests = _exponential_terms(law.rest_mass, self.low, self.high + 1)
        self._bases = _exponential_terms(law.base_mass, self._fewest, most)
        others = law.rest_mass + law.base_mass
        self._rest_share, self._base_share = law.rest_mass / others, law.base_mass / others

    def row_factors(self) -> list[arb]:
        """Return n! a^C / C! for each number of pair reports in the window."""
        scale = arb(self._num_users + 1).lgamma().exp()
        terms = _exponential_terms(self._law.pair_mass, self.first, self.last)
        return [scale * term for term in terms]

    def last_of(self, pairs: int) -> int:
        """Return the largest Z in the window that leaves no negative number of reports."""
        return min(self.high, self._num_users - pairs)

    def point(self, pairs: int, rests: int) -> arb:
        """Return the probability of one cell, zero where C + Z > n."""
        bases = self._num_users - pairs - rests
        if bases < 0:
            return ZERO
        return self._rests[rests - self.low] * self._bases[bases - self._fewest]

    def run(self, pairs: int, start: int, end: int) -> tuple[arb, arb]:
        """Return the probability of start <= Z <= end and E[Z] there.

        The latter from E[Z - N q; Z >= z] = z (1 - q) f(z) for Z ~ Bin(N, q).
        """
        bases = self._num_users - pairs - start - self._fewest
        stop = bases - (end - start) - 1
        column = self._bases[bases : stop if stop >= 0 else None : -1]
        mass: arb = sum(map(mul, self._rests[start - self.low : end + 1 - self.low], column), ZERO)
        if self._law.rest_mass.is_zero():
            return mass, ZERO
        edges = start * self.point(pairs, start) - (end + 1) * self.point(pairs, end + 1)
        mean = (self._num_users - pairs) * self._rest_share
        return mass, mean * mass + self._base_share * edges

    def left_out(self) -> arb:
        """Return an upper bound of E[C; outside the window]."""
        law, users = self._law, self._num_users
        others = law.rest_mass + law.base_mass
        # E[C; C in A] = n a Pr[1 + Bin(n - 1, a) in A]
        pairs = outer_mass(
            users - 1, law.pair_mass, others, first=self.first - 1, last=self.last - 1
        )
        if law.rest_mass.is_zero():
            return users * law.pair_mass * pairs
        not_rest = law.pair_mass + law.base_mass
        rests = outer_mass(users, law.rest_mass, not_rest, first=self.low, last=self.high)
        return users * (law.pair_mass * pairs + rests)


def _exponential_terms(base: arb, first: int, last: int) -> list[arb]:
    """Return base^k / k! for k = first .. last."""
    term = arb(1)
    if first > 0:
        term = (first * base.log() - arb(first + 1).lgamma()).exp()
    terms = [term]
    for k in range(first + 1, last + 1):
        term = term * base / k
        terms.append(term)
    return terms


@dataclass(frozen=True, slots=True)
class _Walk:
    """alpha D - (e - 1) W for one law, number of users and epsilon."""

    step: arb  # alpha
    slope: arb  # e - 1
    base_load: arb  # (e - 1) n w of the second kind of others
    pair_load: arb  # what a pair report adds to that
    rest_load: arb  # what one of the first kind of others adds

    def load(self, pairs: int, rests: int) -> arb:
        """Return (e - 1) W."""
        return self.base_load + pairs * self.pair_load + rests * self.rest_load

    def first_heads(self, pairs: int, rests: int) -> int:
        """Return a number of heads below which the sum is certainly not positive."""
        if self.slope.is_zero():
            return pairs // 2 + 1
        least = floor_of_lower((pairs + self.load(pairs, rests) / self.step) / 2) + 1
        return min(max(least, pairs // 2 + 1), pairs + 1)


def symmetric_delta(law: SymmetricBalls, num_users: int, epsilon: arb, tail_exponent: float) -> arb:
    """Enclose (B) for a symmetric law.

    Parameters
    ----------
    law : SymmetricBalls
        With epsilon0 > ``epsilon``.
    num_users : int
        Number n of users.
    epsilon : arb
        Central epsilon >= 0.
    tail_exponent : float
        The windows leave out about e^-tail_exponent, which goes into the radius.

    Returns
    -------
    arb
        A ball that holds delta. Cost `symmetric_work`.
    """
    ratio, slope = epsilon.exp(), epsilon.expm1()
    gain = law.low * ratio * (law.epsilon0 - epsilon).expm1()
    difference = law.low * law.epsilon0.expm1()
    walk = _Walk(
        step=difference * (1 + ratio) / 2,
        slope=slope,
        base_load=slope * num_users * law.base_weight,
        pair_load=slope * (law.low + difference / 2 - law.base_weight),
        rest_load=slope * (law.rest_weight - law.base_weight),
    )
    cells = _Cells(law, num_users, tail_exponent)
    tail = _FairTail(cells.first, walk.first_heads(cells.first, cells.low))
    total = ZERO
    for pairs, factor in enumerate(cells.row_factors(), start=cells.first):
        total += factor * _row(walk, cells, pairs, tail)
        tail.more_flips()
    return (total + up_to(gain * cells.left_out())) / num_users


def _row(walk: _Walk, cells: _Cells, pairs: int, tail: _FairTail) -> arb:
    """Return the sum over Z for one C; leaves ``tail`` at the number of heads of the first Z."""
    rests, last, total = cells.low, cells.last_of(pairs), ZERO
    own = tail
    while rests <= last:
        excess = walk.step * (2 * own.heads - pairs) - walk.load(pairs, rests)
        if not excess > 0:
            if own.heads > pairs:
                break  # not even heads alone are enough, here and at any larger Z
            if not excess <= 0:
                # Undecided: later Z have less excess, so this is the most that is left out.
                total += up_to(excess) * own.point * cells.run(pairs, rests, last)[0]
            own.more_heads()
            continue
        end = last
        if walk.rest_load > 0:
            end = min(rests + floor_of_lower(excess / walk.rest_load), last)
        mass, mean = cells.run(pairs, rests, end)
        load = walk.load(pairs, 0)
        total += mass * (walk.step * own.heads * own.point - load * own.tail)
        total -= mean * walk.rest_load * own.tail
        if own is tail:
            own = tail.copy()
        rests = end + 1
    return total


def enumeration_work(num_atoms: int, num_users: int) -> float:
    """Return how many ball operations `enumerated_delta` takes, as far as they can be counted.

    Examples
    --------
    >>> enumeration_work(2, 3)  # six for each of C(5, 2) outcomes
    60.0
    """
    work = 6.0
    for i in range(1, num_atoms + 1):
        work *= (num_users + i) / i
        if work > _COUNTLESS:
            break
    return work


def enumerated_delta(atoms: tuple[Atom, ...], num_users: int, epsilon: arb) -> arb:
    """Enclose (B) for any law, by all numbers of reports of each kind.

    Examples
    --------
    One report of binary randomized response, p = 3: delta(0) is its total variation, 1/2.

    >>> atoms = ((arb(0.25), arb(3), arb(1)), (arb(0.25), arb(1), arb(3)))
    >>> float(enumerated_delta(atoms, 1, arb(0)))
    0.5
    """
    ratio = epsilon.exp()
    kinds = [(mass, ratio0 - ratio * ratio1) for mass, ratio0, ratio1 in atoms]
    missing = 1 - sum((mass for mass, _ in kinds), ZERO)
    others = [arb(1)]  # missing^k / k!
    for count in range(1, num_users + 1):
        others.append(others[-1] * missing / count)

    def total(index: int, remaining: int, value: arb, weight: arb) -> arb:
        if index == len(kinds):
            if value <= 0:
                return ZERO
            return weight * others[remaining] * (value if value > 0 else up_to(value))
        mass, term = kinds[index]
        result = ZERO
        for count in range(remaining + 1):
            if count:
                weight, value = weight * mass / count, value + term
            result += total(index + 1, remaining - count, value, weight)
        return result

    return total(0, num_users, ZERO, arb(num_users + 1).gamma()) / num_users
