"""``GroupBits``: a number and the group of its user, both private, as messages (group, bit)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_at_least, require_extended
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.group_means import GroupMeanEstimates, GroupNoise, estimate_group_means
from shuffledp.randomizers import checks
from shuffledp.randomizers.bit_sums import LARGEST_NUM_BITS, levels_of_bits, weights_of_bits
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.number_randomizer import Span, blocks_of, round_to_grid
from shuffledp.randomizers.parts import AllParts


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBits(AllParts):
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
    convexity). Where the number of users that one message hides among lets anything be said of
    groups, epsilon0 is so large that no other randomizer of 2 g codes errs less.

    Examples
    --------
    >>> law = GroupBits(num_groups=2, low=0, high=7, epsilon0=np.inf, num_bits=3)
    >>> law.randomize(np.array([[1, 5.0]]), Entropy.from_seed(1)).data.tolist()  # bits 1, 0, 1
    [3, 6, 11]
    """

    prefix: ClassVar[str] = "group-bits"

    sizes: tuple[int, ...] = field(init=False, repr=False)
    num_groups: int
    low: float
    high: float
    num_bits: int
    span: Span = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        number, span = require_at_least("num_groups", self.num_groups, 2), Span(self.low, self.high)
        num_bits = require_at_least("num_bits", self.num_bits, 1, LARGEST_NUM_BITS)
        asked = require_extended("epsilon0", self.epsilon0, "give the local loss in nats")
        if num_bits > 1:
            levels = levels_of_bits(num_bits, asked, domain_size=2 * number)
        else:
            levels = (KRandomizedResponse(domain_size=2 * number, epsilon0=asked),)
        laws = ",".join(level.fingerprint for level in levels)
        stated = checks.fingerprint_of(self.prefix, span=span.stated, laws=laws)
        checks.set_fields(self, num_groups=number, low=span.low, high=span.high, span=span)
        asked = levels[0].epsilon0 if num_bits == 1 else asked
        checks.set_fields(self, sizes=(2 * number,) * num_bits, num_bits=num_bits, epsilon0=asked)
        checks.set_fields(self, levels=levels, fingerprint=stated)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name with the number of bits, ``group-bits-9``."""
        return f"{self.prefix}-{self.num_bits}"

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: k-RR for one message, else all messages as one report."""
        if self.num_bits == 1:
            return self.levels[0].profile
        return LocalProfile(epsilon0=self.epsilon0, family=RandomizerFamily.OTHER)

    @property
    def _weights(self) -> Floats:
        """Share of the range that the bit of each level is worth; 1 in all."""
        return weights_of_bits(self.num_bits)

    @property
    def _chances(self) -> Floats:
        """For each level the chances of a code that is the truth, and of another; shape (2, B)."""
        return np.array([level.support_probabilities for level in self.levels]).T

    @property
    def dummy_shares(self) -> tuple[float, ...]:
        """How the variances of the levels' dummies are related for the least error."""
        return tuple((self.gains**2 / self._weights).tolist())

    @property
    def influence(self) -> float:
        """Largest change of n times a group's total by other messages of one user."""
        return float(self._weights @ (1.0 / self.gains))

    def report_for(self, place: int) -> NDArray[Any]:
        """Return a one of the group at each level: what raises its mean most."""
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
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs != pairs.round(0))[:, 0].any():
            raise ParameterError(
                f"values has shape {pairs.shape}: give one row of two numbers a user, the code of "
                "the group, a whole number, and the value"
            )
        rows = np.empty((len(pairs), self.num_bits), dtype=np.int64)
        groups = checks.require_codes(pairs[:, 0].astype(np.int64), self.num_groups)
        below, steps = np.arange(self.num_bits)[::-1], 2**self.num_bits - 1
        for where, block in blocks_of(pairs[:, 1], self.span):
            points = round_to_grid(block, self.span, num_steps=steps, entropy=entropy)
            rows[where] = 2 * groups[where, None] + (points[:, None] >> below & 1)
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
        scale, more = self._weights**2 / (p - q) ** 2 / num_users, p * (1.0 - p) - q * (1.0 - q)
        one, both = q * (1.0 - q) + added * (1.0 - 1.0 / k), -(q**2) - added / k
        change, is_bit = q * (q - p), number == 1
        rounding = 0.25 / (2.0**number - 1.0) ** 2 / num_users
        found = GroupNoise(
            one=float(scale @ one),
            both=float(scale @ both),
            fixed=0.0 if is_bit else float(scale @ np.maximum(more, 0.0)) + rounding,
            mixed=float(scale @ (more * is_bit - 2.0 * change)),
            size=float(scale @ (more + 2.0 * change)),
        )
        population = found._replace(mixed=found.mixed + 1.0 / num_users)
        return population if is_bit else found, population

    def totals(self, counts: Counts) -> tuple[int, Floats]:
        """Return the number of users, and the totals of all levels, added by weight."""
        found = AllParts.estimate(self, counts, interval="wald")
        shares = found.frequency.reshape(self.num_bits, self.num_groups, 2)
        return found.num_users, np.tensordot(self._weights, shares, axes=1).T

    def estimate(  # type: ignore[override]
        self, data: Reports | Counts, *, groups: tuple[str, ...] = (), **how: Any
    ) -> GroupMeanEstimates:
        """Return the mean and the size of each group, and how far they may be off.

        ``data`` are reports of this law, or counts of them and of known dummies, as for
        `AllParts.estimate`; the options are those of `estimate_group_means`.
        """
        counts = self.aggregate(data) if isinstance(data, Reports) else data
        num_users, totals = self.totals(counts)
        return estimate_group_means(
            totals,
            groups=groups or tuple(map(str, range(self.num_groups))),
            limits=(self.low, self.high),
            noise=self.noise(num_users, counts.dummies),
            num_users=num_users,
            **how,
        )
