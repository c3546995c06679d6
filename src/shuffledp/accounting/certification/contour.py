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
"""

import math
from dataclasses import dataclass
from functools import reduce

from flint import acb, arb

from shuffledp.accounting.certification.balls import ZERO, floor_of_lower
from shuffledp.accounting.certification.laws import Atom
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
    """Enclose (B) for any law.

    Parameters
    ----------
    atoms : tuple
        Mass and ratios of each kind of report; masses sum to at most one.
    num_users : int
        Number n of users.
    epsilon : arb
        Central epsilon >= 0.
    relative_smoothing : float
        s over the deviation of S; the ball's relative width is about t^2 times its square, where
        epsilon is t deviations.
    negligible_exponent : float
        L: nodes below e^-L of the largest are left out, at that price.
    most_operations : float
        Ball operations after which to give up.

    Returns
    -------
    arb
        A ball that holds delta.

    Raises
    ------
    OutOfRegimeError
        If it would take more operations.
    """
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
