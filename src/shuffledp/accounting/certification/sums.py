"""(B) in ball arithmetic for any law and any number of users, by a contour integral.

Let S = G_1 + ... + G_n, M(z) = E[e^(z G)], N a standard normal and s > 0. By convexity

    E(S)_+ <= E(S + s N)_+ = (1/2 pi i) Int M(z)^n e^(s^2 z^2 / 2) / z^2 dz,   Re z = a > 0.

*Above.* With T = 2 pi / h, Poisson's formula says of the trapezoidal sum over z = a + i k h

    (h/2 pi) Sum_k M(z)^n e^(s^2 z^2 / 2) / z^2 = Sum_j e^(-j a T) E(S + s N + j T)_+,

whose every term is >= 0: the sum is an upper bound whatever h is.

*Below.* Terms j > 0 are at most e^(-j a T) (j T + E(S + s N)_+). As x_+ <= e^(b x)/(e b), terms on
either side are at most e^(-i abs(b - a) T) M(b)^n e^(s^2 b^2 / 2)/(e b), i = abs(j), with b > a
for j < 0 and 0 < b < a for j > 0. And E(S + s N)_+ - E(S)_+ is at most s^2 times the density of
S + s N at 0, which the same sum without 1/z^2 bounds from above.

*Nodes left out.* Write phi(t) = M(a + it)/M(a), the characteristic function of G tilted; v and w
are its variance and the distance between its farthest values. abs(phi)^n is below e^-L

- for pi sqrt(L / (2 n v)) <= t <= pi / w, since 1 - abs(phi)^2 = E[1 - cos(t (G - G'))] and
  1 - cos x >= 2 (x/pi)^2 up to pi;
- as long after a node as abs(phi) + sqrt(v) (t' - t) <= e^(-L/n), by its Lipschitz constant;

and the normal factor is from t = sqrt(2 L)/s on. Left out in all: at most twice
Sum_k e^-L/(k h)^2 = e^-L pi^2/(6 h^2), over M(a)^n e^(s^2 a^2 / 2).

(B) in ball arithmetic by its definition: sums over how many reports of each kind there are.

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
from functools import reduce
from operator import mul

from flint import acb, arb, ctx

from shuffledp.accounting.certification.laws import (
    ZERO,
    Atom,
    SymmetricBalls,
    binomial_point,
    floor_of_lower,
    outer_mass,
    up_to,
    window,
)
from shuffledp.core.errors import OutOfRegimeError

# No tilt takes a term's weight beyond e^600, so that the choice of a fits doubles.
_LARGEST_TILT_EXPONENT = 600.0

# T is chosen for what its neighbours add to fall below e^-60 of the answer.
_ALIAS_EXPONENT = 60.0
_ALIAS_DEVIATIONS = math.sqrt(2.0 * _ALIAS_EXPONENT)


@dataclass(frozen=True, slots=True)
class _Terms:
    """Values of G and their masses, the missing mass included as a value 0."""

    values: list[arb]
    masses: list[arb]

    def moment(self, tilt: arb) -> arb:
        """Return M(tilt)."""
        return sum(
            (m * (tilt * g).exp() for m, g in zip(self.masses, self.values, strict=True)), ZERO
        )


def _terms(atoms: tuple[Atom, ...], epsilon: arb) -> _Terms:
    ratio = epsilon.exp()
    values = [ratio0 - ratio * ratio1 for _, ratio0, ratio1 in atoms]
    masses = [mass for mass, _, _ in atoms]
    missing = 1 - sum(masses, ZERO)
    return _Terms([*values, ZERO], [*masses, missing])


@dataclass(frozen=True, slots=True)
class _Contour:
    """The numbers that may be chosen freely: a, the deviation of S tilted, s and h."""

    tilt: float
    deviation: float
    smoothing: float
    step: float


def _choose(terms: _Terms, num_users: int, relative_smoothing: float) -> _Contour:
    """Choose a near the saddle point, n (ln M)'(a) = 2/a, and T a dozen deviations or more."""
    values = [float(value) for value in terms.values]
    unit = max(abs(value) for value in values)  # in units of which nothing overflows
    values = [value / unit for value in values]
    masses = [max(float(mass), 0.0) for mass in terms.masses]

    def moments(tilt: float) -> tuple[float, float]:
        weights = [m * math.exp(tilt * g) for m, g in zip(masses, values, strict=True)]
        total = math.fsum(weights)
        mean = math.fsum(w * g for w, g in zip(weights, values, strict=True)) / total
        spread = math.fsum(w * (g - mean) ** 2 for w, g in zip(weights, values, strict=True))
        return mean, spread / total

    low, high = _LARGEST_TILT_EXPONENT * 1e-30, _LARGEST_TILT_EXPONENT
    for _ in range(100):
        tilt = math.sqrt(low * high)
        low, high = (low, tilt) if num_users * moments(tilt)[0] > 2.0 / tilt else (tilt, high)
    deviation = math.sqrt(num_users * moments(low)[1] + 1.0 / low**2)
    # Neighbours are as unlikely as T is far, but where a leaves no room for a smaller b: there
    # e^(-a T) has to do.
    period = 1.1 * _ALIAS_DEVIATIONS * deviation
    if low * deviation < 1.5 * _ALIAS_DEVIATIONS:
        period += 2.0 * _ALIAS_EXPONENT / low
    return _Contour(
        tilt=low / unit,
        deviation=deviation * unit,
        smoothing=relative_smoothing * deviation * unit,
        step=2.0 * math.pi / (period * unit),
    )


@dataclass(slots=True)
class _Sums:
    """The two trapezoidal sums over M(a)^n e^(s^2 a^2 / 2), and a bound for nodes left out."""

    positive_part: arb
    density: arb


class _Nodes:
    """The nodes z = a + i k h, k >= 0, that are not known to be negligible."""

    def __init__(
        self, terms: _Terms, num_users: int, contour: _Contour, negligible_exponent: float
    ) -> None:
        tilt = arb(contour.tilt)
        self._num_users, self._contour = num_users, contour
        self._exponent = negligible_exponent
        self.moment = terms.moment(tilt)
        self._values = terms.values
        self._weights = [
            mass * (tilt * value).exp() / self.moment
            for mass, value in zip(terms.masses, terms.values, strict=True)
        ]
        pairs = list(zip(self._weights, self._values, strict=True))
        mean = sum((weight * value for weight, value in pairs), ZERO)
        self._variance = sum((weight * (value - mean) ** 2 for weight, value in pairs), ZERO)
        self._threshold = (-arb(negligible_exponent) / num_users).exp()

    def sums(self, most_nodes: int) -> _Sums:
        """Add up the nodes; refuse where more than ``most_nodes`` have to be looked at."""
        tilt, step = arb(self._contour.tilt), arb(self._contour.step)
        square = arb(self._contour.smoothing) ** 2
        near, far, last = self._ranges()
        slope = self._variance.sqrt().upper() * step
        positive_part, density = ZERO, ZERO
        node, looked_at = 0, 0
        while node <= last:
            if near < node < far:
                node = far
                continue
            looked_at += 1
            if looked_at > most_nodes:
                raise OutOfRegimeError(f"more than {most_nodes} nodes of a contour integral")
            t = node * step
            phi = self._characteristic(t)
            room = self._threshold - abs(phi)
            if room > 0:
                node += floor_of_lower(room / slope) + 1
                continue
            z = acb(tilt, t)
            value = phi**self._num_users * (square * (z * z - tilt * tilt) / 2).exp()
            share = 1 if node == 0 else 2  # z and its conjugate
            positive_part += share * (value / (z * z)).real
            density += share * value.real
            node += 1
        left_out = (-arb(self._exponent)).exp()
        radius = (left_out * arb.pi() ** 2 / (3 * step * step)).upper()
        # Beyond the last node the normal factor falls by e^(-s^2 t h) a node.
        beyond = 1 / -(-square * last * step * step).expm1()
        dense = (2 * left_out * (last + 1 + beyond)).upper()
        return _Sums(positive_part + arb(0, radius), density + arb(0, dense))

    def _ranges(self) -> tuple[int, int, int]:
        """Return k up to which nodes matter for sure, from which again, and the last that may."""
        pi, step, exponent = arb.pi(), arb(self._contour.step), self._exponent
        width = (reduce(arb.max, self._values) - reduce(arb.min, self._values)).upper()
        near = (pi * (exponent / (2 * self._num_users * self._variance)).sqrt() / step).upper()
        first = floor_of_lower(pi / width / step)
        last = floor_of_lower(arb(2 * exponent).sqrt() / self._contour.smoothing / step) + 1
        if not near < first:
            return first, first, last
        return floor_of_lower(near) + 1, first, last

    def _characteristic(self, t: arb) -> acb:
        real, imaginary = ZERO, ZERO
        for weight, value in zip(self._weights, self._values, strict=True):
            sine, cosine = (t * value).sin_cos()
            real += weight * cosine
            imaginary += weight * sine
        return acb(real, imaginary)


def contour_delta(
    atoms: tuple[Atom, ...],
    num_users: int,
    epsilon: arb,
    *,
    relative_smoothing: float,
    negligible_exponent: float,
    most_operations: float,
) -> arb:
    """Enclose (B) for any law."""
    terms = _terms(atoms, epsilon)
    if all(value <= 0 for value in terms.values):
        return ZERO
    contour = _choose(terms, num_users, relative_smoothing)
    nodes = _Nodes(terms, num_users, contour, negligible_exponent)
    sums = nodes.sums(int(most_operations / (12.0 * len(terms.values) + 40.0)))
    tilt, step, smoothing = arb(contour.tilt), arb(contour.step), arb(contour.smoothing)
    period = 2 * arb.pi() / step
    scale = nodes.moment**num_users * (smoothing**2 * tilt**2 / 2).exp()
    upper = scale * sums.positive_part / period
    density = scale * sums.density / period
    lower = (
        upper - smoothing**2 * density.upper() - _aliases(terms, num_users, contour, period, upper)
    )
    return lower.union(upper) / num_users


def _aliases(terms: _Terms, num_users: int, contour: _Contour, period: arb, upper: arb) -> arb:
    """Return an upper bound of the terms j != 0 of Poisson's sum."""
    tilt, shift = arb(contour.tilt), _ALIAS_DEVIATIONS / contour.deviation
    above = _alias_sum(terms, num_users, contour, period, tilt + shift)
    # Sum_j x^j = x/(1 - x) and Sum_j j x^j = x/(1 - x)^2
    shrink = (-tilt * period).exp()
    below = shrink / (1 - shrink) * (period / (1 - shrink) + upper.upper())
    if tilt > 1.2 * shift:
        below = below.min(_alias_sum(terms, num_users, contour, period, tilt - shift))
    return above + below


def _alias_sum(
    terms: _Terms, num_users: int, contour: _Contour, period: arb, other_tilt: arb
) -> arb:
    """Return the sum over i >= 1 of e^(-i abs(b - a) T) M(b)^n e^(s^2 b^2 / 2) / b."""
    log_peak = num_users * terms.moment(other_tilt).log()
    log_peak += (arb(contour.smoothing) * other_tilt) ** 2 / 2
    falling = (-abs(other_tilt - contour.tilt) * period).exp()
    return log_peak.exp() / other_tilt * falling / (1 - falling)


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
    """Enclose (B) for a symmetric law."""
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
    """Return how many ball operations `enumerated_delta` takes, as far as they can be counted."""
    work = 6.0
    for i in range(1, num_atoms + 1):
        work *= (num_users + i) / i
        if work > _COUNTLESS:
            break
    return work


def enumerated_delta(atoms: tuple[Atom, ...], num_users: int, epsilon: arb) -> arb:
    """Enclose (B) for any law, by all numbers of reports of each kind."""
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
