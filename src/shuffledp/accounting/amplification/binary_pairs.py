"""Divergences of shuffled binary randomized response between neighbouring data, for many at once.

See `binary_randomized_response` for what they are. Point and tail probabilities of the sum of two
binomials S = Bin(num_high, 1 - q) + Bin(num_low, q) have no closed form, but its generating
function phi(z) has, and the trapezoidal rule on a circle abs(z) = r converges faster than any
power: with M nodes it gives Pr[S = s] plus aliases r^M Pr[S = s + M] + ..., which a tilt r near the
saddle point makes negligible. Only about twenty nodes are not negligible themselves, whatever the
number of users.

*Error budget.* Library functions may be off by eight u = 2^-53 of their result, as those of NumPy
may. Where a node matters its phase is the sum of num_high + num_low angles, each off by some
twenty u of at most 1 / sd(S) and half of them weighted by sqrt(q): 4e-15 sqrt(n) of the largest
term in the sum leaves room for twice that, and 1e-12 for all that does not grow with n.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.numerics.binomial import Numbers

# ln 1e-300: no smaller divergence is told from 0.
_LOG_SMALLEST = -690.7755278982137

# Nodes whose factor exp(-variance (1 - cos)) is below exp(-42) = 6e-19 are left out.
_NEGLIGIBLE = 42.0

# Pairs times nodes that are looked at together.
_BLOCK = 1 << 14


class TwoBinomials(NamedTuple):
    """Laws of S, one for each pair of numbers; and q in (0, 1/2)."""

    num_high: Numbers
    num_low: Numbers
    q: float

    def chances(self, r: ArrayLike) -> tuple[Numbers, Numbers, Numbers]:
        """Return tilted by r^s the chance of a likely one, that of none, and of an unlikely one."""
        r = np.asarray(r, np.float64)
        scale = self.q + (1.0 - self.q) * r
        return (1.0 - self.q) * r / scale, self.q / scale, self.q * r / (1.0 - self.q + self.q * r)

    def tilted_moments(self, r: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return mean and variance of S under the law tilted by r^s, 0 < r <= 1."""
        high, off, low = self.chances(r)
        mean = self.num_high * high + self.num_low * low
        return mean, self.num_high * high * off + self.num_low * low * (1.0 - low)

    @np.errstate(all="ignore")
    def saddle_tilt(self, s: Numbers) -> Numbers:
        """Return the r > 0 under which the tilted mean of S is s: a root of a quadratic."""
        q, high, low = self.q, self.num_high, self.num_low
        pq = q * (1.0 - q)
        a, c = (high + low - s) * pq, s * pq
        b = (high - s) * (1.0 - q) ** 2 + (low - s) * q * q  # s may be next to num_high
        root = np.sqrt(b * b + 4.0 * a * c)
        return np.where(b >= 0.0, 2.0 * c / (b + root), (root - b) / (2.0 * a))

    def log_tilted_mass(self, s: Numbers, r: Numbers) -> tuple[Numbers, Numbers]:
        """Return ln(r^-s E[r^S]), at least ln Pr[S = s], and the size of its terms; 0 < r <= 1."""
        q, gap = self.q, 1.0 - r  # exact where it matters, near r = 1
        # Counted from num_high where that is likely: of certain ones nothing is left to cancel.
        likely = (1.0 - q) * r > q
        near = np.log1p(np.where(likely, q * gap / r, -(1.0 - q) * gap))
        logs = np.where(likely | (gap < 0.5), near, np.log(q + (1.0 - q) * r))
        power = np.where(likely, s - self.num_high, s) * _log_tilt(r)
        high, low = self.num_high * logs, self.num_low * np.log1p(-q * gap)
        return high + low - power, np.abs(high) + np.abs(low) + np.abs(power)

    def nodes(self, s: Numbers, r: Numbers) -> tuple[Numbers, Numbers]:
        """Return the number of nodes of the sum at s, and the last one that is not negligible."""
        mean, variance = self.tilted_moments(r)
        # One period must take the tilted law past nine deviations, and the plain law from s to nine
        # beyond its mean, hence the shift.
        plain = self.num_high * (1.0 - self.q) + self.num_low * self.q
        shift = np.abs(plain - s) + np.abs(mean - s)
        last = np.ceil(4.6 * np.sqrt(variance) + 0.5 * shift + 10.0)
        angle = 2.0 * np.arcsin(np.sqrt(np.minimum(0.5 * _NEGLIGIBLE / variance, 1.0)))
        seen = np.floor(angle * (2.0 * last + 1.0) / (2.0 * math.pi))
        return 2.0 * last + 1.0, np.where(
            variance > 0.5 * _NEGLIGIBLE, np.minimum(last, seen), last
        )

    @np.errstate(all="ignore")
    def points_and_tail(self, s: Numbers, r: Numbers) -> Numbers:
        """Return Pr[S = s - 1], Pr[S = s], Pr[S = s + 1] and Pr[S <= s - 1], one a row.

        The last row is the size of the logarithm in what they all have been multiplied by.
        """
        num_nodes, last = self.nodes(s, r)
        most = max(int(_BLOCK // (last.max(initial=0.0) + 1.0)), 1)
        if s.size > most:
            parts = [slice(i, i + most) for i in range(0, s.size, most)]
            return np.hstack([self._replace(
                num_high=self.num_high[part], num_low=self.num_low[part]
            ).points_and_tail(s[part], r[part]) for part in parts])  # fmt: skip
        log_scale, log_size = self.log_tilted_mass(s, r)
        high, off, low = (each[:, None] for each in self.chances(r))
        num_high, num_low, tilt = (each[:, None] for each in (self.num_high, self.num_low, r))
        node = np.arange(last.max(initial=0.0) + 1.0)
        theta = 2.0 * math.pi * node / num_nodes[:, None]
        versine, sine = 2.0 * np.sin(0.5 * theta) ** 2, np.sin(theta)
        log_modulus = 0.5 * (
            num_high * np.log1p(-2.0 * high * off * versine)
            + num_low * np.log1p(-2.0 * low * (1.0 - low) * versine)
        )
        # Likely ones are counted from num_high: the phase of those that are certain is exact.
        likely = high > 0.5
        counted, turn = np.where(likely, off, high), np.where(likely, -num_high, num_high)
        phase = (
            turn * np.arctan2(counted * sine, 1.0 - counted * versine)
            + num_low * np.arctan2(low * sine, 1.0 - low * versine)
            + np.where(likely, num_high - s[:, None], -s[:, None]) * theta
        )
        modulus = np.exp(log_modulus) * np.where(node == 0.0, 1.0, 2.0) * (node <= last[:, None])
        real, imaginary = modulus * np.cos(phase), modulus * np.sin(phase)
        cosine = 1.0 - versine
        before, after = real * cosine - imaginary * sine, real * cosine + imaginary * sine
        # 1/(1 - r e^{i theta}), and one power less of e^{i theta} in the tail than at s
        real_gap, imaginary_gap = 1.0 - tilt * cosine, -tilt * sine
        turned = imaginary * cosine + real * sine
        tail = (before * real_gap + turned * imaginary_gap) / (real_gap**2 + imaginary_gap**2)
        sums = np.stack([each.sum(axis=1) for each in (before, real, after, tail)])
        sums *= np.exp(log_scale) / num_nodes * np.stack([r, np.ones_like(r), 1.0 / r, r])
        sums[3] -= 1.0 / np.expm1(-num_nodes * _log_tilt(r))  # aliases
        return np.vstack([sums, log_size])


def _log_tilt(r: Numbers) -> Numbers:
    """Return ln r, as accurate as r is near 1."""
    return np.where(r > 0.5, np.log1p(r - 1.0), np.log(r))


class BinaryPairs:
    """Deltas at one epsilon between data in which others hold so many ones and so many zeros.

    The victim's zero becomes a one. Numbers are arrays; epsilon is below epsilon0.
    """

    def __init__(self, epsilon0: float, epsilon: float) -> None:
        # p = e^epsilon0, e = e^epsilon; p - e without cancellation, as they may be close.
        ratio_minus_one, self._slope = math.expm1(epsilon0), math.expm1(epsilon)
        excess = math.exp(epsilon) * math.expm1(epsilon0 - epsilon)
        ratio = ratio_minus_one + 1.0
        self._q = 1.0 / (ratio + 1.0)
        self._gain = excess * self._q
        self._log_gain = math.log(excess) + math.log(self._q) if excess > 0.0 else -math.inf
        # P(s) > e Q(s) while f(s-1)/f(s) < kappa; f log-concave, so the optimal set is {s <= m}.
        self._kappa = excess / (ratio_minus_one + ratio * self._slope)
        # Delta of the victim's report alone, rounded up: that of any pair is no larger.
        self.own = excess / (ratio_minus_one + 2.0) * (1.0 + 1e-14)

    @np.errstate(all="ignore")
    def log_upper(self, ones: Numbers, zeros: Numbers) -> Numbers:
        """Return a Chernoff bound on ln delta, rounded up; constant cost.

        delta <= gain f(m) <= gain r^-M E[r^S] for 0 < r <= 1 and M >= m. The mode of S tilted by
        kappa is such an M, and within 1 of its mean (Darroch 1964); docs/results/binary-exact.md.
        """
        law, others = TwoBinomials(ones, zeros, self._q), ones + zeros
        mean, _ = law.tilted_moments(self._kappa)
        last = np.floor(mean + 2.0 + 2e-15 * others)  # more than the rounding of the mean
        r = np.minimum(law.saddle_tilt(last), 1.0)
        exponent, size = law.log_tilted_mass(last, r)
        bound = np.where(last >= others, 0.0, np.minimum(exponent + 4e-15 * size, 0.0))
        return self._log_gain + bound + 1e-12

    @np.errstate(all="ignore")
    def _summed(self, ones: Numbers, zeros: Numbers) -> tuple[Numbers, Numbers]:
        """Return delta and its error."""
        law, others = TwoBinomials(ones, zeros, self._q), ones + zeros
        root = np.sqrt(others)
        below_pole = np.exp(-0.7 / np.maximum(root * math.sqrt(self._q * (1.0 - self._q)), 1.0))
        mean, _ = law.tilted_moments(self._kappa)
        s = np.clip(np.floor(mean + 1.0), 1.0, np.maximum(others, 1.0))
        delta, error = np.full(s.shape, self._gain), np.full(s.shape, 1e-12 * self._gain)
        direction, i = np.zeros(s.shape), np.flatnonzero(others > 0.0)
        while i.size:
            law = TwoBinomials(ones[i], zeros[i], self._q)
            tilt = np.minimum(law.saddle_tilt(s[i]), below_pole[i])
            before, here, after, tail, log_size = law.points_and_tail(s[i], tilt)
            down = (before > self._kappa * here) & (direction[i] <= 0.0)
            up = ~down & (here < self._kappa * after) & (s[i] < others[i]) & (direction[i] >= 0.0)
            lone = down & (s[i] == 1.0)  # only s = 0 is left in the set
            delta[i] = self._gain * np.where(lone, before, here) - np.where(
                lone, 0.0, self._slope * tail
            )
            # All four come from one sum, so each has the round-off of the largest.
            largest = np.where(lone, before, np.maximum(np.maximum(before, here), after))
            size = self._gain * largest + np.where(
                lone, 0.0, self._slope * np.maximum(tail, largest)
            )
            error[i] = size * (1e-12 + 4e-15 * root[i])
            error[i] += delta[i] * (1e-12 + 8e-15 * root[i] + 2e-15 * log_size)
            direction[i] = np.where(up, 1.0, np.where(down, -1.0, 0.0))
            s[i] += direction[i]
            i = i[(up | down) & ~lone]
        return delta, error

    def lower(self, ones: Numbers, zeros: Numbers) -> Numbers:
        """Return delta, rounded down; 0 where it is proved to be below 1e-300."""
        found = np.zeros(ones.shape)
        i = np.flatnonzero(~(self.log_upper(ones, zeros) < _LOG_SMALLEST))
        delta, error = self._summed(ones[i], zeros[i])
        found[i] = np.maximum(delta - error, 0.0)
        return found

    def upper(self, ones: Numbers, zeros: Numbers, enough: float) -> Numbers:
        """Return delta, rounded up, or any upper bound that is at most ``enough``."""
        log_upper = self.log_upper(ones, zeros)
        least = max(_LOG_SMALLEST, math.log(max(enough, 1e-300)) - 1e-12)
        i = np.flatnonzero(~(log_upper < least))
        delta, error = self._summed(ones[i], zeros[i])
        found = np.exp(log_upper)
        found[i] = np.minimum(delta + error, self.own)
        return found
