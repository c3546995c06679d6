"""``BitSums``, ``GroupBits``: a number is rounded to a grid without bias; its bits are messages.

With ``GroupBits`` a message names the group of its user, too, which is as private. A sum of numbers
is a sum of their bits with weights, so that the number of ones at each level is all that it needs.
With dummies at each level, in both bins, that has the error of a trusted curator's noise: see
docs/results/dummies.md. *Proof.* Given the rounded number u the levels are independent. Each is a
release of (D1) or (D1') there, or shows nothing where bits agree, so the product of all levels
dominates. Level b has mu_b^2 = 2 g_b^2/v_b for dummies of variance v_b; by Cauchy and Schwarz
sum w_b^2 v_b/(2 g_b^2) times sum 2 g_b^2/v_b >= (sum w_b)^2 = 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_at_least, require_extended, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.group_means import GroupMeanEstimates, GroupNoise, estimate_group_means
from shuffledp.estimation.intervals import SupportLaw, normal_quantile
from shuffledp.estimation.means import MeanEstimates
from shuffledp.randomizers import checks
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.number_randomizer import Span, blocks_of, round_to_grid
from shuffledp.randomizers.parts import AllParts, Messages

#: Most bits: grids of numbers have up to 2^20 steps.
LARGEST_NUM_BITS = 20

# A local loss is shared out over the levels in whole multiples of this part of it.
_SHARES = 1023


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits(Messages):
    """Weights of the bits, and their drawing, common to `BitSums` and `GroupBits`."""

    sizes: tuple[int, ...] = field(init=False, repr=False)
    low: float
    high: float
    num_bits: int
    span: Span = field(init=False, repr=False, compare=False)

    def _settle_bits(self, domain_size: int) -> None:
        """Set the fields, for messages of this many possible codes, but for the fingerprint."""
        span, asked = Span(self.low, self.high), self.epsilon0
        number = require_at_least("num_bits", self.num_bits, 1, LARGEST_NUM_BITS)
        asked = require_extended("epsilon0", asked, "give the local loss in nats")
        set_fields(self, low=span.low, high=span.high, span=span, num_bits=number)
        levels = self._levels(asked, domain_size)
        set_fields(self, sizes=(domain_size,) * number, epsilon0=asked, levels=levels)

    def _levels(self, epsilon0: float, domain_size: int) -> tuple[KRandomizedResponse, ...]:
        """Return k-RR for each level, the highest bit first; all of the loss together or less."""
        levels = tuple(
            # The product may overflow, and would be no noise at all.
            KRandomizedResponse(
                domain_size=domain_size, epsilon0=min(epsilon0 * units / _SHARES, epsilon0)
            )
            for units in _shares(self.num_bits, epsilon0)
        )
        if not all(p > q for p, q in (level.support_probabilities for level in levels)):
            raise ParameterError(
                f"epsilon0 = {epsilon0} is too small for {self.num_bits} bits, some of which would "
                "say nothing: give a larger one, or fewer bits"
            )
        return levels

    @property
    def name(self) -> str:
        """Name with the number of bits, ``bit-sums-9``."""
        return f"{self.prefix}-{self.num_bits}"

    @property
    def weights(self) -> Floats:
        """Share of the range that the bit of each level is worth; 1 in all."""
        return weights_of_bits(self.num_bits)

    @property
    def dummy_shares(self) -> tuple[float, ...]:
        """Ratios of the variances of the levels' dummies for the least error."""
        return tuple((self.gains**2 / self.weights).tolist())

    @property
    def largest_change(self) -> float:
        """Largest change of n times a mean position in [0, 1] by other messages of one user."""
        return float(self.weights @ (1.0 / self.gains))

    def _bits(
        self, values: NDArray[Any], entropy: Entropy
    ) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield the places of some users and the bits of each level, the highest first."""
        below, steps = np.arange(self.num_bits, dtype=np.int32)[::-1], 2**self.num_bits - 1
        for where, block in blocks_of(values, self.span):
            points = round_to_grid(block, self.span, num_steps=steps, entropy=entropy)
            yield where, points >> below[:, None] & 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BitSums(Bits):
    """Rounding to a grid of 2^B - 1 steps, then one message for each of the B bits.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss of all messages of a user, in nats, in (0, inf]; at inf bits are sent as
        they are, and only dummies hide them.
    num_bits : int
        B, in [1, 20].

    Attributes
    ----------
    levels : tuple of KRandomizedResponse
        Randomizer of the bit of each level, the highest bit first.

    Notes
    -----
    A message is the code 2 b + bit for the levels b = 0, ..., B - 1. ``Reports.data`` holds
    messages, *not users*: B for each user, of which each must be shuffled as a report of its own,
    for the accounts assume that nothing links the levels.

    The loss is shared out over the levels so that the error is least: bit b has the weight
    w_b = 2^(B - 1 - b) / (2^B - 1) and the noise variance w_b^2 / (4 sinh^2(epsilon0_b / 2)).

    Cost: 8 random bytes a value and, with local noise, 8 a message; one byte a message.

    Examples
    --------
    >>> randomizer = BitSums(low=0, high=7, epsilon0=math.inf, num_bits=3)
    >>> randomizer.randomize(np.array([5.0]), Entropy.from_seed(1)).data.tolist()  # bits 1, 0, 1
    [1, 2, 5]
    """

    prefix: ClassVar[str] = "bit-sums"

    def __post_init__(self) -> None:
        self._settle_bits(domain_size=2)
        laws = ",".join(str(level.threshold) for level in self.levels)
        stated = checks.fingerprint_of(self.prefix, span=self.span.stated, thresholds=laws)
        set_fields(self, fingerprint=stated)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return the messages of each number, one user after the other.

        ``values`` are numbers, shape (n,), n = 0 too; the messages have shape (n B,). Raises as
        `NumberRandomizer.randomize`.
        """
        out = np.empty((*np.shape(values)[:1], self.num_bits), dtype=np.uint8)
        for where, bits in self._bits(values, entropy):
            for b, level in enumerate(self.levels):
                out[where, b] = 2 * b + level.randomize(bits[b], entropy).data
        return Reports(data=out.reshape(-1), fingerprint=self.fingerprint)

    @property
    def influence(self) -> float:
        """Largest change of an estimated sum by other messages of one user, one at each level."""
        return self.span.width * self.largest_change

    def report_for(self, coordinate: int) -> NDArray[Any]:  # noqa: ARG002  # there is one
        """Return a one at each level: the messages of one user that raise the mean most."""
        return np.arange(1, 2 * self.num_bits, 2, dtype=np.uint8)

    def estimate(  # type: ignore[override]
        self, data: Reports | Counts, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> MeanEstimates:
        """Return the unbiased mean, with standard error and interval.

        Parameters
        ----------
        data : Reports or Counts
            Messages of this law without dummies; or counts of them, with the laws of the dummies of
            each level among ``dummies``, and ``num_reports`` messages of users.
        confidence : float
            Nominal coverage, in (0, 1).
        simultaneous : bool
            As for other randomizers; there is one mean.

        Returns
        -------
        MeanEstimates
            Rounding is counted as if every value lay halfway between two points of the grid. For a
            population the variance of the values counts as mean times distance from the other end,
            the largest: the messages of a user are not linked, so that it is not known.

        Raises
        ------
        DataError
            If there are no users, or their messages are not one for each level besides dummies.
        """
        num_users, counts = self._counted(data)
        dummies = self.dummy_variance([law for level in counts for law in level.dummies])
        zeros, ones = np.array([level.support for level in counts], dtype=np.float64).T
        position = 0.5 + float(self.weights @ ((ones - zeros) / self.gains)) / (2.0 * num_users)
        mean = self.low + self.span.width * position
        rounding = 0.25 / (2.0**self.num_bits - 1.0) ** 2
        noise = (self.local_variance + rounding) / num_users
        noise += dummies / num_users**2
        error, quantile = math.sqrt(noise), normal_quantile(confidence)
        # The largest variance of values in [0, 1] whose mean is as close to 1/2 as it may be.
        distance = max(abs(position - 0.5) - quantile * error, 0.0)
        spread = max(0.25 - distance**2, 0.0) / num_users
        errors, wider = (
            np.array([self.span.width * math.sqrt(each)]) for each in (noise, noise + spread)
        )
        return MeanEstimates(
            mean=np.array([mean]),
            standard_error=errors,
            population_standard_error=wider,
            lower=mean - quantile * errors,
            upper=mean + quantile * errors,
            num_users=num_users,
            confidence=confidence,
            is_simultaneous=simultaneous,
        )

    @property
    def local_variance(self) -> float:
        """Variance that local noise adds to one user's position in [0, 1]."""
        return float(self.weights**2 @ (1.0 / self.gains**2 - 1.0)) / 4.0

    def dummy_variance(self, dummies: Sequence[DummyLaw]) -> float:
        """Variance that the dummies of each level, or none, add to the sum of the positions.

        Half of (w / gain)^2 times the variance per bin: ones less zeros count by half.
        """
        if len(dummies) not in (0, self.num_bits):
            raise ParameterError(
                f"dummies are of {len(dummies)} laws, not one for each of {self.num_bits} levels"
            )
        variances = np.array([law.variance for law in dummies] or [0.0] * self.num_bits)
        return float((self.weights / self.gains) ** 2 @ variances) / 2.0

    def mean_report_variance(self) -> float:
        """Return the variance of one user's decoded value, without dummies, in squared units.

        Averaged over values spread evenly over the range.
        """
        rounding = 1.0 / (6.0 * (2.0**self.num_bits - 1.0) ** 2)
        return self.span.width**2 * (self.local_variance + rounding)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBits(Bits, AllParts):
    """Rounding to a grid of 2^B - 1 steps; k-RR of (group, bit), a message for each of the B bits.

    Parameters
    ----------
    num_groups : int
        g, at least 2.
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss of all messages of a user, in nats, in (0, inf]; at inf they are sent as
        they are, and only dummies hide them.
    num_bits : int
        B, in [1, 20].

    Notes
    -----
    The parts of `AllParts`, of 2 g codes 2 group + bit each, are the bits, the highest first; loss
    and dummies are shared out as by `BitSums`.

    With one bit it is 1 with the chance (value - low) / (high - low). The law of a report is then a
    mixture of those of k-RR for both bits, so that the blanket of k-RR lies below it, and its
    divergences are at most those of k-RR, whose pairs of codes are values at the ends (joint
    convexity). Where enough users hide a message for groups to be estimated at all, epsilon0 is so
    large that no other randomizer of 2 g codes errs less.

    Examples
    --------
    >>> law = GroupBits(num_groups=2, low=0, high=7, epsilon0=np.inf, num_bits=3)
    >>> law.randomize(np.array([[1, 5.0]]), Entropy.from_seed(1)).data.tolist()  # bits 1, 0, 1
    [3, 6, 11]
    """

    prefix: ClassVar[str] = "group-bits"

    num_groups: int

    def __post_init__(self) -> None:
        number = require_at_least("num_groups", self.num_groups, 2)
        self._settle_bits(domain_size=2 * number)
        laws = ",".join(level.fingerprint for level in self.levels)
        stated = checks.fingerprint_of(self.prefix, span=self.span.stated, laws=laws)
        loss = self.levels[0].epsilon0 if self.num_bits == 1 else self.epsilon0
        set_fields(self, num_groups=number, epsilon0=loss, fingerprint=stated)

    def _levels(self, epsilon0: float, domain_size: int) -> tuple[KRandomizedResponse, ...]:
        """Return k-RR for each level; with one bit it is known what it costs, down to 0."""
        if self.num_bits == 1:
            return (KRandomizedResponse(domain_size=domain_size, epsilon0=epsilon0),)
        return Bits._levels(self, epsilon0, domain_size)

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: k-RR for one message, else all messages as one report."""
        if self.num_bits == 1:
            return self.levels[0].profile
        return LocalProfile(epsilon0=self.epsilon0, family=RandomizerFamily.OTHER)

    @property
    def _chances(self) -> Floats:
        """Chances of a code that is the truth, and of another, for each level; shape (2, B)."""
        return np.array([level.support_probabilities for level in self.levels]).T

    @property
    def influence(self) -> float:
        """Largest change of n times a group's total by other messages of one user."""
        return self.largest_change

    def report_for(self, place: int) -> NDArray[Any]:
        """Return a one of the group at each level: the messages that raise its mean most."""
        starts = np.array([bins.start for bins in self.part_slices])
        report: NDArray[Any] = self.report_columns().data[starts + 2 * place + 1]
        return report

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return the messages of each row (code of the group, number), one user after the other.

        ``values`` are finite numbers, shape (n, 2), n = 0 too; the messages have shape (n B,).
        `DomainError` names the first code or number that is out of range, and `ParameterError` is
        raised for another type or shape.
        """
        pairs = checks.plain_array(values)
        is_table = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iuf"
        is_whole = is_table and np.isfinite(pairs[:, 0]) & (pairs[:, 0] == np.round(pairs[:, 0]))
        if not np.all(is_whole):
            raise ParameterError(
                f"values has shape {pairs.shape}: give one row of two numbers a user, the code of "
                "the group, a whole number, and the value"
            )
        rows = np.empty((len(pairs), self.num_bits), dtype=np.int64)
        groups = checks.require_codes(pairs[:, 0].astype(np.int64), self.num_groups)
        for where, bits in self._bits(pairs[:, 1], entropy):
            rows[where] = 2 * groups[where, None] + bits.T
        return AllParts.randomize(self, rows, entropy)

    def noise(
        self, num_users: int, dummies: tuple[DummyLaw, ...] = ()
    ) -> tuple[GroupNoise, GroupNoise]:
        """Return the noise about these users, and about a population.

        Members differ by at most h r (1 - r) / n, which drawing them adds for a population, and
        rounding each value to one bit in all; more bits are counted as if every value lay halfway
        between two points of the grid, and the noise of members' messages at its largest.
        """
        (p, q), k, number = self._chances, self.sizes[0], self.num_bits
        laws = [dummies[b::number] for b in range(number)]
        added = np.array([sum(law.variance for law in own) for own in laws]) / num_users
        scale, more = self.weights**2 / (p - q) ** 2 / num_users, p * (1.0 - p) - q * (1.0 - q)
        one, both = q * (1.0 - q) + added * (1.0 - 1.0 / k), -(q**2) - added / k
        change, is_bit = q * (q - p), number == 1
        rounding = 0.25 / (2.0**number - 1.0) ** 2 / num_users
        found = GroupNoise(
            one=float(scale @ one),
            both=float(scale @ both),
            fixed=0.0 if is_bit else float(scale @ np.maximum(more, 0.0)) + rounding,
            mixed=float(scale @ (more * is_bit - 2.0 * change)),
            size=float(scale @ (more + 2.0 * change)),
            step=float((self.weights / (p - q)).max()) / num_users,
        )
        population = found._replace(mixed=found.mixed + 1.0 / num_users)
        return population if is_bit else found, population

    def totals(self, counts: Counts) -> tuple[int, Floats]:
        """Return the number of users, and the totals of all levels, added by weight."""
        num_users, parts = self._counted(counts)
        shares = np.reshape(self._frequencies(parts), (self.num_bits, self.num_groups, 2))
        return num_users, np.tensordot(self.weights, shares, axes=1).T

    def estimate(  # type: ignore[override]
        self, data: Reports | Counts, *, groups: tuple[str, ...] = (), **how: Any
    ) -> GroupMeanEstimates:
        """Return the mean and the size of each group, with their errors.

        ``data`` are reports of this law, or counts of them and of known dummies, as for
        `AllParts.estimate`; the options are those of `estimate_group_means`.
        """
        counts = self.aggregate(data) if isinstance(data, Reports) else data
        num_users, totals = self.totals(counts)
        if self.num_bits == 1 and not counts.dummies:  # either code of a group supports it
            p, q = self.levels[0].support_probabilities
            how["support"] = SupportLaw(p + q, 2.0 * q, num_users)
        return estimate_group_means(
            totals,
            groups=groups or tuple(map(str, range(self.num_groups))),
            limits=(self.low, self.high),
            noise=self.noise(num_users, counts.dummies),
            num_users=num_users,
            **how,
        )


def weights_of_bits(num_bits: int) -> Floats:
    """Return 2^(B - 1 - b) / (2^B - 1) for each level b."""
    weights: Floats = 2.0 ** np.arange(num_bits, dtype=np.float64)[::-1] / (2.0**num_bits - 1.0)
    return weights


@lru_cache(maxsize=64)
def _shares(num_bits: int, epsilon0: float) -> tuple[int, ...]:
    """Return the share of each level in the local loss, in units; less than all by rounding.

    One unit after the other goes where it takes most off the error, which is optimal, for the
    error of each level is a convex function of its loss.
    """
    if math.isinf(epsilon0):
        return (1,) * num_bits

    def variance(b: int, units: int) -> float:
        # Squares neither overflow nor underflow; near these ends nothing is gained any more.
        half = min(max(epsilon0 * units / _SHARES / 2.0, 1e-150), 300.0)
        return float(weights[b] ** 2 / math.sinh(half) ** 2)

    weights, given = weights_of_bits(num_bits).tolist(), [1] * num_bits
    gains = [variance(b, 1) - variance(b, 2) for b in range(num_bits)]
    # One unit is left over, for the rounding of products.
    for _ in range(_SHARES - 1 - num_bits):
        b = gains.index(max(gains))
        given[b] += 1
        gains[b] = variance(b, given[b]) - variance(b, given[b] + 1)
    return tuple(given)
