"""The Laplace mechanism on a grid: a number with discrete Laplace noise, and its atoms.

a = s / 2^52 is the loss of one step, q = e^-a. Each end of the grid stands for all reports beyond
it. The ends are the worst pair; pairs are spread onto anchors, which raises every bound by less
than a part in a hundred, and rounded outwards: docs/results/worst-pairs.md has the proofs.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import outward_atoms, outward_pairs
from shuffledp.core.numerics.enclosure import float_above
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers.checks import fingerprint_of, set_fields
from shuffledp.randomizers.number_randomizer import (
    NumberRandomizer,
    Span,
    blocks_of,
    require_resolution,
    round_to_grid,
)

# Steps of the grid: rounding adds less than 1e-3 to the variance at any epsilon0, 1e-7 at 1.
_LARGEST_NUM_STEPS = 2**10
# The loss is a multiple of m / 2^52: near 1 it is what was asked for to 2e-13.
_UNIT_BITS = 52
_UNIT = 2**_UNIT_BITS
# No law costs more: one that hides nothing needs no accounting, and e^64 is no trouble in floats.
_LARGEST_LOSS = 64
# Scales below 2^24 steps keep all reports inside 32 bits, 64 scales around the grid included.
_LARGEST_SCALE = 2**24
# Noise is exact up to 64 scales beyond the far end of the grid, which is 64 more at most.
_CLAMPED_SCALES = 64
_LARGEST_NUM_UNITS = _CLAMPED_SCALES + _LARGEST_LOSS
# One report needs 7.8 words on average. With 2^15 at a time they stay in the second-level cache.
_WORDS_PER_REPORT = 8
_WORD_BUFFER = 2**15


class LaplaceLaw(NamedTuple):
    """Whole numbers that make up a law: steps m, and s of the scale 2^52 / s in steps."""

    num_steps: int
    rate: int

    @property
    def loss(self) -> float:
        """Local privacy loss in nats, m s / 2^52; exact."""
        return math.ldexp(self.num_steps * self.rate, -_UNIT_BITS)

    @property
    def margin(self) -> int:
        """A: how far beyond the grid reports may lie, 64 scales."""
        return _CLAMPED_SCALES * _UNIT // self.rate if self.rate else 0

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in squared steps: 1 / (2 sinh(s / 2^53)^2)."""
        return 0.5 / math.sinh(self.rate / (2 * _UNIT)) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(NumberRandomizer):
    """The Laplace mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, exactly, which is at most that.
    resolution : int, optional
        Largest number m of steps of the grid, a power of two in [1, 1024]; the default is 1024.
        Smaller ones are for tests.

    Attributes
    ----------
    law : LaplaceLaw
        The whole numbers m and s below.
    span : Span
        The range.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Notes
    -----
    Source: Dwork, McSherry, Nissim, Smith 2006; the noise by Canonne, Kamath, Steinke, "The
    discrete Gaussian for differential privacy", NeurIPS 2020, arXiv:2004.00010, Algorithm 2.

    The value is rounded, without bias, to a point i of a grid 0, ..., m. The report is i + z, where
    z has probability proportional to exp(-abs(z) s / 2^52), clamped to [-A, m + A]. No float is
    used after the rounding. The ratio of two inputs' probabilities is exp(m s / 2^52) at most,
    clamped or not, and it is attained: epsilon0 is exactly m s / 2^52, which is a float.

    m is 1024, and smaller below epsilon0 = 6e-5, so that reports fit 32 bits; s is the largest that
    costs no more than asked. A is 64 scales 2^52 / s: clamping biases a report by less than e^-64
    scales, and changes its variance by a share below 1e-23. The loss cannot exceed 64. Below
    2^-24 = 6e-8 all reports are 0, and epsilon0 is exactly 0.

    Cost: about 70 random bytes and 120 nanoseconds a report; four bytes of memory.

    Examples
    --------
    >>> randomizer = DiscreteLaplace(low=0, high=1, epsilon0=0.5)
    >>> randomizer.epsilon0
    0.5
    >>> round(randomizer.report_variance(0.0), 4)  # 2 / epsilon0^2
    8.0
    """

    name: ClassVar[str] = "laplace"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.int32)

    low: float
    high: float
    epsilon0: float
    resolution: int | None = field(default=None, repr=False, compare=False)
    span: Span = field(init=False, repr=False, compare=False)
    law: LaplaceLaw = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span = Span(self.low, self.high)
        asked = require_non_negative("epsilon0", self.epsilon0)
        law = _law_for(asked, require_resolution(self.resolution, _LARGEST_NUM_STEPS))
        fingerprint = fingerprint_of(self.name, span=span.stated, **law._asdict())
        set_fields(self, low=span.low, high=span.high, span=span, epsilon0=law.loss)
        set_fields(self, law=law, fingerprint=fingerprint)

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the atoms of the ends, the worst pair."""
        num_steps, step = self.law.num_steps, math.ldexp(self.law.rate, -_UNIT_BITS)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=laplace_blanket(num_steps, step),
            attack=laplace_attack(num_steps, step),
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return a noisy grid point for each number. See `MeanRandomizer`."""
        out = np.zeros(np.shape(values)[:1], dtype=self.report_type)
        for where, block in blocks_of(values, self.span):
            points = round_to_grid(block, self.span, num_steps=self.law.num_steps, entropy=entropy)
            if self.law.rate:  # else all reports are 0
                self._randomize_block(points, entropy, out[where])
        return Reports(data=out, fingerprint=self.fingerprint)

    def _randomize_block(
        self, points: NDArray[np.int32], entropy: Entropy, out: NDArray[np.int32]
    ) -> None:
        """Write the reports of a block."""
        from shuffledp.randomizers.number_kernels import add_noise

        smallest, largest = self._report_range
        words = np.empty(0, dtype=np.uint64)
        done = 0
        while done < points.size:
            wanted = min(_WORDS_PER_REPORT * (points.size - done) + _WORDS_PER_REPORT, _WORD_BUFFER)
            # What the report that was not finished has read comes first: it is drawn again from
            # the same words, not from others.
            words = np.concatenate([words, entropy.words(wanted)])
            written, used = add_noise(
                points[done:],
                words,
                np.uint64(self.law.rate),
                np.int64(smallest),
                np.int64(largest),
                out[done:],
            )
            done += written
            words = words[used:]

    @property
    def _report_range(self) -> tuple[int, int]:
        if self.law.rate == 0:
            return 0, 0
        return -self.law.margin, self.law.num_steps + self.law.margin

    @property
    def num_steps(self) -> int:
        """Steps m of the grid."""
        return self.law.num_steps

    @property
    def _centre(self) -> int:
        return self.law.num_steps  # also where all reports are 0

    @property
    def _slope(self) -> float:
        return float(self.law.num_steps) if self.law.rate else 0.0

    @property
    def _growth(self) -> float:
        return 1.0  # the noise is the same whatever the value

    def variance_at(self, square: float, *, rounding: float) -> float:  # noqa: ARG002 - one signature for all
        """Return the report variance, which no position changes. See `NumberRandomizer`."""
        _, factor = self.score_scale
        return factor**2 * (4.0 * self.law.noise_variance + rounding)


def _law_for(epsilon0: float, largest_num_steps: int) -> LaplaceLaw:
    """Return the law of the largest loss m s / 2^52 that is at most ``epsilon0``.

    m is chosen by powers of two of epsilon0, which are themselves losses of every grid; so the
    loss that comes out is asked for on the same grid, and gives the same law again.
    """
    asked = Fraction(min(epsilon0, float(_LARGEST_LOSS)))
    num_steps = largest_num_steps
    while num_steps > 1 and num_steps > asked * _LARGEST_SCALE:
        num_steps //= 2
    if num_steps > asked * _LARGEST_SCALE:
        return LaplaceLaw(num_steps, 0)
    return LaplaceLaw(num_steps, math.floor(asked * _UNIT / num_steps))


# Anchors a side besides the middle, and the most atoms: both sides and the middle.
_ANCHORS = 20
MOST_ATOMS = 2 * _ANCHORS + 1
# Anchors are equally spaced in ratio^theta. theta = 1/2 adds the least variance; for losses above
# 4 it is chosen smaller, so that the moderate ratios, which then decide, keep some anchors too.
_LARGEST_EXPONENT = 0.5
_LARGEST_SCALED_LOSS = 2.0
# Digits of masses and ratios, and what they are stated too large or too small by.
_DIGITS = 60
_PAIR_ERROR, _SHARE_ERROR, _NEUTRAL_ERROR = Decimal("1e-45"), Decimal("1e-40"), Fraction("1e-30")


@lru_cache(maxsize=64)
def laplace_blanket(num_steps: int, step: float) -> tuple[BlanketAtom, ...]:
    """Return at most 41 atoms that dominate the blanket of every pair of values.

    ``step`` is the loss a of one step in nats, m a <= 64. Both ratios have mean 1 to a few units in
    the last place. Exact up to 32 steps but for rounding, else spread. No bound of these floats is
    below that of the law. Cost O(m), a few milliseconds, once for each law.
    """
    if step == 0.0:
        return (BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),)
    with localcontext(prec=_DIGITS):
        pairs, middle = _half_law(num_steps, Decimal(step))
        top = Fraction(pairs[0][1])
        if num_steps >= MOST_ATOMS:
            pairs, added = _spread(pairs, step * num_steps)
            middle += 2 * added
    listed = [(Fraction(mass), Fraction(ratio)) for mass, ratio in pairs]
    found = outward_pairs(
        [
            *((mass, ratio, 1) for mass, ratio in listed),
            *((mass, 1, ratio) for mass, ratio in listed),
            (Fraction(middle) - _NEUTRAL_ERROR, 1, 1),
        ]
    )
    one = 1 / (top + 1)
    return found or outward_atoms([(one, top, 1), (one, 1, top)])


def laplace_attack(num_steps: int, step: float) -> tuple[BlanketAtom, ...]:
    """Return the law of the ends' ratios where all others hold the lower end.

    At most 41 atoms, those of neighbouring reports merged; masses and ratios right to 1e-13.
    """
    if step == 0.0:
        return (BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),)
    places = np.arange(num_steps + 1)
    masses = math.tanh(0.5 * step) * np.exp(-step * places)
    masses[0] = 1.0 / (1.0 + math.exp(-step))
    masses[-1] = math.exp(-step * num_steps) / (1.0 + math.exp(-step))
    if num_steps < MOST_ATOMS:
        cells = places
    else:
        exponent = _exponent(step * num_steps)
        scaled = np.exp(exponent * step * (2 * places - num_steps))
        share = (scaled - scaled[0]) / (scaled[-1] - scaled[0])
        # The ends, which have masses of their own, stay apart.
        cells = 1 + np.minimum((share * (MOST_ATOMS - 2)).astype(np.int64), MOST_ATOMS - 3)
        cells[0], cells[-1] = 0, MOST_ATOMS - 1
    own = np.bincount(cells, masses)
    other = np.bincount(cells, masses[::-1])
    return tuple(
        BlanketAtom(mass=mass, ratio0=1.0, ratio1=share / mass)
        for mass, share in zip(own.tolist(), other.tolist(), strict=True)
        if mass > 0.0
    )


def _half_law(num_steps: int, step: Decimal) -> tuple[list[tuple[Decimal, Decimal]], Decimal]:
    """Return masses and ratios r0 left of the middle, 1e-45 too large, and the mass there."""
    fall, above = (-step).exp(), 1 + _PAIR_ERROR
    share, middle = (1 - fall) / (1 + fall), Decimal(0)
    mass, ratio = (-step * num_steps).exp(), (step * num_steps).exp()
    pairs = [(mass / (1 + fall) * above, ratio * above)]
    for _ in range((num_steps - 1) // 2):
        mass, ratio = mass / fall, ratio * fall * fall
        pairs.append((share * mass * above, ratio * above))
    if num_steps % 2 == 0:
        middle = share * (-step * num_steps / 2).exp()
    return pairs, middle


def _spread(
    pairs: list[tuple[Decimal, Decimal]], loss: float
) -> tuple[list[tuple[Decimal, Decimal]], Decimal]:
    """Return masses and ratios of the anchors that pairs are spread onto, and the mass at 1."""
    exponent = _exponent(loss)
    powers = math.expm1(exponent * loss) * (np.arange(1, _ANCHORS) / _ANCHORS)
    inner = (1.0 + np.expm1(np.log1p(powers) / exponent)).tolist()
    anchors = [Decimal(each) for each in (1.0, *inner, float_above(Fraction(pairs[0][1])))]
    spread = [Decimal(0)] * (_ANCHORS + 1)
    for mass, ratio in pairs:
        cell = min(bisect_right(anchors, ratio), _ANCHORS) - 1
        share = (ratio - anchors[cell]) / (anchors[cell + 1] - anchors[cell])
        spread[cell] += mass * (1 - share + _SHARE_ERROR)
        spread[cell + 1] += mass * (share + _SHARE_ERROR)
    return list(zip(spread, anchors, strict=True))[1:], spread[0]


def _exponent(loss: float) -> float:
    """Return theta."""
    return min(_LARGEST_EXPONENT, _LARGEST_SCALED_LOSS / loss)
