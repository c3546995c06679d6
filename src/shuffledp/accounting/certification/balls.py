"""Delta of (B) in ball arithmetic, for any law and any number of users, by a contour integral.

A ball of Arb (through python-flint) is a midpoint and a radius that provably hold the exact number,
whatever is computed from it (Johansson 2017, arXiv:1611.02831). Laws are derived anew from the
profile: epsilon0 and stated atoms are the exact values of their doubles. Small numbers of users
are enumerated, by the number of reports of each kind.

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
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from flint import acb, arb, fmpq

from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

ZERO = arb(0)

# Bits beyond those that a result should have: n = 1e15 times a logarithm of n takes 56 of them.
GUARD_BITS = 64

# Smoothing of the integral over the deviation of the sum: its square is the relative width of
# epsilon, about.
SMOOTHINGS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)

# Most ball operations, some half a minute; laws that need fewer than the second are listed.
MOST_OPERATIONS, _FEW_OPERATIONS = 1e8, 3e6

# Counts of operations stop here.
_COUNTLESS = 1e18

# No tilt takes a term's weight beyond e^600, so that the choice of a fits doubles.
_LARGEST_TILT_EXPONENT = 600.0

# T is chosen so that its aliases fall below e^-60 of the answer.
_ALIAS_EXPONENT = 60.0
_ALIAS_DEVIATIONS = math.sqrt(2.0 * _ALIAS_EXPONENT)

Atom = tuple[arb, arb, arb]  # mass, ratio0, ratio1; the mass missing from 1 has ratios 0


def outward(ball: arb) -> Enclosure:
    """Return the doubles around a ball that holds a number >= 0; exact zero stays zero."""
    if ball.is_zero():
        return Enclosure(0.0, 0.0)
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    lower = math.nextafter(float(ball.lower()), -math.inf)
    return Enclosure(max(lower, 0.0), math.nextafter(float(ball.upper()), math.inf))


def up_to(ball: arb) -> arb:
    """Return a ball that holds everything from 0 to the upper end of ``ball``, if that is > 0."""
    return ZERO.union(ball.upper()) if ball.upper() > 0 else ZERO


def floor_of_lower(ball: arb) -> int:
    """Return the largest whole number that is at most every number in ``ball``."""
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    return int(ball.lower().floor().fmpz())


def _k_rr(profile: LocalProfile, size: int) -> list[list[Atom]]:
    """Return k-RR's blanket, each answer 1/(p + k - 1); for k = 2 the clone law."""
    ratio, one = arb(profile.epsilon0).exp(), arb(1)
    symbol = 1 / (ratio + (size - 1))
    return [[(symbol, ratio, one), (symbol, one, ratio), ((size - 2) * symbol, one, one)]]


def _unary(profile: LocalProfile) -> list[list[Atom]]:
    """Return the blanket l * noise of a unary encoding: weights p for bits (1,1), 1 for (0,0)."""
    epsilon0, one = arb(profile.epsilon0), arb(1)
    ratio = epsilon0.exp()
    if profile.family is RandomizerFamily.SYMMETRIC_UNARY:
        bit, low = 1 / (1 + (epsilon0 / 2).exp()), (-epsilon0 / 2).exp()
    else:
        bit, low = 1 / (1 + ratio), (1 + (-epsilon0).exp()) / 2
    single, both, neither = low * bit * (1 - bit), low * bit * bit, low * (1 - bit) * (1 - bit)
    return [[(single, ratio, one), (single, one, ratio), (both, ratio, ratio), (neither, one, one)]]


def _stated(atoms: Sequence[BlanketAtom]) -> list[list[Atom]]:
    """Return stated atoms as the exact numbers they are, in both orders of the pair if they differ.

    Atoms of equal ratios become one. Masses that add up to s > 1 by rounding are divided by s and
    ratios multiplied by s, which keeps every R_x and can only raise (B).
    """
    masses: dict[tuple[float, float], fmpq] = {}
    for atom in atoms:
        ratios = (atom.ratio0, atom.ratio1)
        masses[ratios] = masses.get(ratios, fmpq(0)) + fmpq(*atom.mass.as_integer_ratio())
    mirrored = {(ratio1, ratio0): mass for (ratio0, ratio1), mass in masses.items()}
    scale = max(sum(masses.values(), fmpq(0)), fmpq(1))
    return [
        [
            (arb(mass / scale), arb(ratio0) * arb(scale), arb(ratio1) * arb(scale))
            for (ratio0, ratio1), mass in order.items()
        ]
        for order in ([masses] if masses == mirrored else [masses, mirrored])
    ]


# For each method the laws of its theorem, in balls of the current precision; where the two
# orders of the pair have different laws, the larger delta counts.
LAWS: Mapping[str, Callable[[LocalProfile], list[list[Atom]]]] = MappingProxyType(
    {
        "clones": lambda profile: _k_rr(profile, 2),
        "k-rr-blanket": lambda profile: _k_rr(profile, profile.domain_size or 2),
        "unary-blanket": _unary,
        "stated-blanket": lambda profile: _stated(profile.blanket),
    }
)
CERTIFIABLE = (*LAWS, "local")


def method_delta(
    method: str, profile: LocalProfile, num_users: int, epsilon: float, level: int
) -> arb:
    """Enclose a method's delta; a higher ``level`` makes the ball narrower."""
    if method == "local":
        # delta0 + (q - delta0) (p - e)_+/(p + 1), of a report that is sent with probability q
        asked, epsilon0, delta0 = arb(epsilon), arb(profile.epsilon0), arb(profile.delta0)
        if asked >= epsilon0:
            return delta0
        sent = arb(profile.participation) - delta0
        return delta0 - sent * (asked - epsilon0).expm1() / (1 + (-epsilon0).exp())
    if epsilon >= profile.epsilon0:
        return ZERO  # epsilon0-LDP reports, however they are processed
    return reduce(
        arb.max,
        (law_delta(atoms, num_users, arb(epsilon), level) for atoms in LAWS[method](profile)),
    )


def law_delta(atoms: Sequence[Atom], num_users: int, epsilon: arb, level: int) -> arb:
    """Enclose (B) for a law, by listing where that is quick, or no slower than the integral."""
    kept = tuple(atom for atom in atoms if not atom[0].is_zero())
    if (work := enumeration_work(len(kept), num_users)) > _FEW_OPERATIONS:
        try:
            return contour_delta(
                kept,
                num_users,
                epsilon,
                SMOOTHINGS[level],
                exponent=40.0 + 5.0 * level,
                most_operations=min(work, MOST_OPERATIONS),
            )
        except OutOfRegimeError:
            if work > MOST_OPERATIONS:
                raise
    return enumerated_delta(kept, num_users, epsilon)


def contour_delta(
    atoms: tuple[Atom, ...],
    num_users: int,
    epsilon: arb,
    relative_smoothing: float,
    *,
    exponent: float = 80.0,
    most_operations: float = MOST_OPERATIONS,
) -> arb:
    """Enclose (B) for any law."""
    ratio = epsilon.exp()
    values = [ratio0 - ratio * ratio1 for _, ratio0, ratio1 in atoms]
    if all(value <= 0 for value in values):
        return ZERO
    masses = [mass for mass, _, _ in atoms]
    # The missing mass is a value 0.
    values, masses = [*values, ZERO], [*masses, 1 - sum(masses, ZERO)]
    contour = _Contour(values, masses, num_users, relative_smoothing, exponent)
    most_nodes = int(most_operations / (12.0 * len(values) + 40.0))
    return contour.positive_part(most_nodes) / num_users


class _Contour:
    """The integral for one law of G, with its free parameters a, s, h and L.

    a is near the saddle point, n (ln M)'(a) = 2/a, and T a dozen deviations of S tilted or more.
    """

    def __init__(
        self,
        values: list[arb],
        masses: list[arb],
        num_users: int,
        relative_smoothing: float,
        exponent: float,
    ) -> None:
        self._values, self._masses, self._num_users = values, masses, num_users
        self._exponent = exponent
        unit = max(abs(float(value)) for value in values)  # in units of which nothing overflows
        gains = [float(value) / unit for value in values]
        floats = [max(float(mass), 0.0) for mass in masses]

        def moments(tilt: float) -> tuple[float, float]:
            weights = [m * math.exp(tilt * g) for m, g in zip(floats, gains, strict=True)]
            total = math.fsum(weights)
            mean = math.fsum(w * g for w, g in zip(weights, gains, strict=True)) / total
            spread = math.fsum(w * (g - mean) ** 2 for w, g in zip(weights, gains, strict=True))
            return mean, spread / total

        low, high = _LARGEST_TILT_EXPONENT * 1e-30, _LARGEST_TILT_EXPONENT
        for _ in range(100):
            tilt = math.sqrt(low * high)
            low, high = (low, tilt) if num_users * moments(tilt)[0] > 2.0 / tilt else (tilt, high)
        deviation = math.sqrt(num_users * moments(low)[1] + 1.0 / low**2)
        # Aliases fall with T as the tails of the law do, unless a leaves no room for a smaller b:
        # then only as e^(-a T).
        period = 1.1 * _ALIAS_DEVIATIONS * deviation
        if low * deviation < 1.5 * _ALIAS_DEVIATIONS:
            period += 2.0 * _ALIAS_EXPONENT / low
        self._deviation = deviation * unit
        self._tilt, self._step = arb(low / unit), arb(2.0 * math.pi / (period * unit))
        self._smoothing = arb(relative_smoothing * deviation * unit)
        self._moment = self._moment_at(self._tilt)
        self._weights = [
            mass * (self._tilt * value).exp() / self._moment
            for mass, value in zip(masses, values, strict=True)
        ]
        pairs = list(zip(self._weights, values, strict=True))
        mean = sum((weight * value for weight, value in pairs), ZERO)
        self._variance = sum((weight * (value - mean) ** 2 for weight, value in pairs), ZERO)

    def _moment_at(self, tilt: arb) -> arb:
        """Return M(tilt)."""
        pairs = zip(self._masses, self._values, strict=True)
        return sum((mass * (tilt * value).exp() for mass, value in pairs), ZERO)

    def positive_part(self, most_nodes: int) -> arb:
        """Enclose E(S)_+."""
        positive_part, density = self._sums(most_nodes)
        period = 2 * arb.pi() / self._step
        scale = self._moment**self._num_users
        scale *= (self._smoothing**2 * self._tilt**2 / 2).exp()
        upper = scale * positive_part / period
        density = scale * density / period
        lower = upper - self._smoothing**2 * density.upper() - self._aliases(period, upper)
        return lower.union(upper)

    def _sums(self, most_nodes: int) -> tuple[arb, arb]:
        """Return both sums over M(a)^n e^(s^2 a^2 / 2), with a bound for nodes left out.

        Nodes are z = a + i k h, k >= 0, but for those known to be negligible. Refuses where more
        than ``most_nodes`` have to be evaluated.
        """
        tilt, step, square = self._tilt, self._step, self._smoothing**2
        threshold = (-arb(self._exponent) / self._num_users).exp()
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
            room = threshold - abs(phi)
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
        return positive_part + arb(0, radius), density + arb(0, dense)

    def _ranges(self) -> tuple[int, int, int]:
        """Return the end of the first range of k that may matter, and both ends of the second."""
        pi, step, exponent = arb.pi(), self._step, self._exponent
        width = (reduce(arb.max, self._values) - reduce(arb.min, self._values)).upper()
        near = (pi * (exponent / (2 * self._num_users * self._variance)).sqrt() / step).upper()
        first = floor_of_lower(pi / width / step)
        last = floor_of_lower(arb(2 * exponent).sqrt() / self._smoothing / step) + 1
        return floor_of_lower(near) + 1 if near < first else first, first, last

    def _characteristic(self, t: arb) -> acb:
        real, imaginary = ZERO, ZERO
        for weight, value in zip(self._weights, self._values, strict=True):
            sine, cosine = (t * value).sin_cos()
            real += weight * cosine
            imaginary += weight * sine
        return acb(real, imaginary)

    def _aliases(self, period: arb, upper: arb) -> arb:
        """Return an upper bound on the terms j != 0 of Poisson's sum."""

        def sum_by(other_tilt: arb) -> arb:
            """Sum e^(-i abs(b - a) T) M(b)^n e^(s^2 b^2 / 2) / b over i >= 1."""
            log_peak = self._num_users * self._moment_at(other_tilt).log()
            log_peak += (self._smoothing * other_tilt) ** 2 / 2
            falling = (-abs(other_tilt - self._tilt) * period).exp()
            return log_peak.exp() / other_tilt * falling / (1 - falling)

        tilt, shift = self._tilt, _ALIAS_DEVIATIONS / self._deviation
        # Sum_j x^j = x/(1 - x) and Sum_j j x^j = x/(1 - x)^2
        shrink = (-tilt * period).exp()
        below = shrink / (1 - shrink) * (period / (1 - shrink) + upper.upper())
        if tilt > 1.2 * shift:
            below = below.min(sum_by(tilt - shift))
        return sum_by(tilt + shift) + below


def enumeration_work(num_atoms: int, num_users: int) -> float:
    """Return the number of ball operations of `enumerated_delta`, as far as it is predictable."""
    work = 6.0
    for i in range(1, num_atoms + 1):
        work *= (num_users + i) / i
        if work > _COUNTLESS:
            break
    return work


def enumerated_delta(atoms: tuple[Atom, ...], num_users: int, epsilon: arb) -> arb:
    """Enclose (B) for any law, by enumerating the numbers of reports of each kind."""
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
