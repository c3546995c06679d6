"""Design shared by clients and server: the tree over the periods, the encoding, the signs' law.

*Random signs* hide a client's changes, and each law is accounted exactly. A law of k signs is
exchangeable if the probability w of a pattern depends only on its number of minus signs. The
densities of a client's reports relative to uniform ones lie between 2^k min w and 2^k max w, and
reach them for k increments that are not 0: the local privacy loss of all reports of a client
is ln(max w / min w).

*The largest gap* of a loss ln e0 is a threshold law's: 2^k w = e0 m up to tau minus signs, m
beyond. *Proof.* Averaging over orders keeps means and the loss, so let the law be exchangeable,
F_i = 2^k w for i minus signs, min F = 1. The gap is N/D, N = 2^-k sum C(k, i) F_i (k - 2 i)/k,
D = 2^-k sum C(k, i) F_i, F_i in [1, e0]. At the maximum g, N - g D = 2^-k sum C(k, i) F_i
((k - 2 i)/k - g) <= 0 with equality for the best F (Dinkelbach 1967): F_i = e0 where (k - 2 i)/k >
g, otherwise 1. Insert C(k, i)(k - 2 i)/k = C(k-1, i) - C(k-1, i-1).
"""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import comb, floor
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import walsh_hadamard
from shuffledp.core.checks import require_at_least, require_non_negative, set_fields
from shuffledp.core.display import value_note
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.profile import MonitoringProfile
from shuffledp.randomizers import thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class SignLaw:
    """Law of the signs that hide a client's changes at its drawn level."""

    name: ClassVar[str]

    max_changes: int  # k, at least 1
    # Requested local privacy loss, in nats, in [0, inf). The attribute of the same name is the
    # loss of the law that is drawn, rounded up, which is at most the requested one.
    epsilon0: float
    # r_0 ... r_k, exactly: means of products of different signs, by their number; 0 if left out.
    correlations: tuple[Fraction, ...] = field(init=False, repr=False)
    uniform_share: Fraction = field(init=False, repr=False)  # least density over uniform reports
    identity: str = field(init=False, repr=False)  # identifies the exact law

    def _set(self, numbers: tuple[int, ...], **fields: Any) -> None:
        """Set computed fields, and the identity by its numbers."""
        set_fields(self, identity="/".join(map(str, (self.name, *numbers))), **fields)

    @property
    def gap(self) -> float:
        """Mean of a sign, r_1, to the nearest float."""
        return float(self.correlations[1])

    @property
    def pair_correlation(self) -> float:
        """Mean of the product of two signs, to the nearest float; 0 if there is one sign."""
        return float(self.correlations[2]) if len(self.correlations) > 2 else 0.0

    def profile(
        self, *, num_levels: int, alternating: bool, changing_share: float = 1.0
    ) -> MonitoringProfile:
        """Accountant's input."""
        return MonitoringProfile(
            protocol=self.name,
            epsilon0=self.epsilon0,
            max_changes=self.max_changes,
            num_levels=num_levels,
            sign_correlations=self.correlations,
            uniform_share=self.uniform_share,
            alternating=alternating,
            changing_share=changing_share,
        )

    @abstractmethod
    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the keys that each client draws, once."""


#: Largest number of signs of a pattern, a 64-bit word; the number of patterns must fit one, too.
LARGEST_NUM_SIGNS = 62

# Number of patterns unranked at a time: their arrays stay in the second-level cache.
_BLOCK = 2**14


def ball_patterns(ranks: NDArray[np.uint64], num_signs: int, radius: int) -> NDArray[np.uint64]:
    """Return the patterns of given numbers, of k signs of which at most ``radius`` are minus.

    A bijection from [0, B), in lexicographic order. Bit j - 1 is set if sign j is minus.
    """
    # Number of continuations, by signs still to come and minus signs so far.
    ways = np.zeros((num_signs + 1, num_signs + 2), dtype=np.uint64)
    ways[0, : radius + 1] = 1
    for row in range(1, num_signs + 1):
        ways[row, :-1] = ways[row - 1, :-1] + ways[row - 1, 1:]
    patterns = np.zeros(ranks.size, dtype=np.uint64)
    for start in range(0, ranks.size, _BLOCK):
        rest = ranks[start : start + _BLOCK].copy()
        minus_signs = np.zeros(rest.size, dtype=np.intp)
        for place in range(num_signs):
            # Number of patterns that continue with a plus: they come first.
            with_plus = ways[num_signs - 1 - place].take(minus_signs)
            is_minus = rest >= with_plus
            rest -= with_plus * is_minus
            minus_signs += is_minus
            patterns[start : start + _BLOCK] |= is_minus.astype(np.uint64) << np.uint64(place)
    return patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class PredrawnSigns(SignLaw):
    """k signs, at most 62, drawn once: with probability p = T / 2^64 few of them minus.

    Otherwise uniform. The j-th increment that is not 0 is reported times sign j. T is
    ``coin_threshold``; the likely patterns have at most tau = ``radius`` minus signs. With B of
    these the loss of all reports of a client is exactly ln(1 + p 2^k / ((1 - p) B)), the mean of
    the product of i signs p / B times the coefficient of z^tau in (1 - z)^(i - 1) (1 + z)^(k - i),
    and so the gap p C(k-1, tau) / B; the radius maximises it, and no exchangeable law of the same
    loss has a larger gap. For epsilon0 above 44.4 + k ln 2 the law no longer changes. Ours,
    docs/results/monitoring.md, after the idea of FutureRand (Ohrimenko, Wirth, Wu,
    arXiv:2112.12279).
    """

    name: ClassVar[str] = "predrawn-signs"

    radius: int = field(init=False, repr=False)
    coin_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        remedy = 'follow fewer changes, or use protocol = "sampled-change"'
        k = require_at_least("max_changes", self.max_changes, 1, LARGEST_NUM_SIGNS, remedy)
        asked = require_non_negative("epsilon0", self.epsilon0)
        # Excess of the densities' ratio over 1.
        extra = max(thresholds.exp_lower(asked) - 1, Fraction(0))
        balls = [_ball_size(k, radius) for radius in range(k)]
        odds = [extra * ball / (1 << k) for ball in balls]
        coins = [floor(thresholds.WORD_VALUES * each / (1 + each)) for each in odds]
        gaps = [Fraction(coins[tau] * comb(k - 1, tau), balls[tau]) for tau in range(k)]
        radius = gaps.index(max(gaps))
        coin, ball = coins[radius], balls[radius]
        sums = (_coefficient(radius, order - 1, k - order) for order in range(1, k + 1))
        likely = Fraction(coin, thresholds.WORD_VALUES)
        self._set(
            (k, radius, coin),
            max_changes=k,
            epsilon0=thresholds.log_ratio_upper(1 + likely / (1 - likely) * Fraction(1 << k, ball)),
            correlations=(Fraction(1), *(likely * Fraction(each, ball) for each in sums)),
            uniform_share=1 - likely,
            radius=radius,
            coin_threshold=coin,
        )

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the pattern of each client: bit j - 1 is set if sign j is minus."""
        k = self.max_changes
        likely = np.flatnonzero(entropy.words(size) < np.uint64(self.coin_threshold))
        patterns = entropy.words(size) >> np.uint64(64 - k)
        ranks = draw_below(entropy, likely.size, _ball_size(k, self.radius))
        patterns[likely] = ball_patterns(ranks, k, self.radius)
        return patterns


def _ball_size(k: int, radius: int) -> int:
    """Return B, the number of patterns with at most ``radius`` minus signs."""
    return sum(comb(k, i) for i in range(radius + 1))


def _coefficient(power: int, minus: int, plus: int) -> int:
    """Return the coefficient of z^power in (1 - z)^minus (1 + z)^plus."""
    return sum((-1) ** i * comb(minus, i) * comb(plus, power - i) for i in range(power + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledChange(SignLaw):
    """The client of Erlingsson et al.: one change out of k is reported, by randomized response.

    The gap is (2b - 1) / k; at most one sign of a client carries information.

    Given the reported change the density of a client's reports is 2b, 2 (1 - b) or 1; the average
    lies in [2 (1 - b), 2b] and reaches both ends if there are 2k periods. If i of k reports are
    turned it is 1 + gap (k - 2i), as for pre-drawn signs with densities F_i = 1 + gap (k - 2i) and
    max F / min F = e^epsilon0, so no larger than the best threshold's. Equality would need F_i in
    {min F, max F} for all i but one with (k - 2i)/k = gap > 0; for k >= 2 some i >= k/2 lies
    strictly between.
    """

    name: ClassVar[str] = "sampled-change"

    flip_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        max_changes = require_at_least("max_changes", self.max_changes, 1)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = thresholds.settle(asked, thresholds.response_law)
        twice = Fraction(2 * threshold, thresholds.WORD_VALUES)
        self._set(
            (max_changes, threshold),
            max_changes=max_changes,
            epsilon0=epsilon0,
            correlations=(Fraction(1), (1 - twice) / max_changes),
            uniform_share=twice,
            flip_threshold=threshold,
        )

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the number of the change that counts for each client, uniform on 1 ... k."""
        return draw_below(entropy, size, self.max_changes) + np.uint64(1)


#: Laws of the signs by name, the default first.
SIGN_LAWS: Mapping[str, type[SignLaw]] = {
    each.name: each for each in (PredrawnSigns, SampledChange)
}


def sign_law(name: str, *, max_changes: int, epsilon0: float) -> SignLaw:
    """Return the law of the signs of this name."""
    if name not in SIGN_LAWS:
        raise ParameterError(f"protocol = {name!r} is not one of {', '.join(SIGN_LAWS)}")
    return SIGN_LAWS[name](max_changes=max_changes, epsilon0=epsilon0)


_LARGEST_PERIODS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTree:
    """Dyadic intervals of the periods 1 ... d, for any d in [1, 2^40].

    Node j of level h, both from 1, is the interval of periods (j - 1) 2^(h-1) + 1 ... j 2^(h-1), if
    it ends at d or before; level 1 has the single periods. Levels without a complete node are left
    out: floor(log2 d) + 1 remain. Source: arXiv:1811.12469v2, section 3, for d a power of two.
    """

    periods: int  # d, in [1, 2^40]; any number, not only powers of two
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        remedy = "take longer periods"
        periods = require_at_least("periods", self.periods, 1, _LARGEST_PERIODS, remedy)
        sizes = (periods >> height for height in range(periods.bit_length() - 1))
        set_fields(self, periods=periods, offsets=tuple(accumulate(sizes, initial=0)))

    @property
    def num_levels(self) -> int:
        """L = floor(log2 d) + 1."""
        return len(self.offsets)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all levels, below 2 d."""
        return self.offsets[-1] + 1  # the last level has one node

    def nodes_at(self, level: int) -> int:
        """Return the number of nodes of a level: floor(d / 2^(level-1))."""
        return self.periods >> (level - 1)

    def offset(self, level: int) -> int:
        """Return the flat index, from 0, of the first node of a level; leaves come first."""
        return self.offsets[level - 1]

    def levels_ending_at(self, t: int) -> range:
        """Return the levels with a node that ends at period t: 1 up to some level."""
        return range(1, (t & -t).bit_length() + 1)

    def require_through(self, through: SupportsIndex, name: str = "through") -> int:
        """Return the last requested period, in [1, periods]; raise otherwise."""
        return require_at_least(name, through, 1, self.periods, "plan more periods from the start")


#: Code of a missing value: before the first one, or after a user has left.
NOTHING = -1

_ENCODING_DIGITS = 32  # 128 bits

# Largest number of labels in a message.
_MOST_NAMED = 8

# One-hot columns multiply the variance by K, Hadamard columns by 4: equal at K = 4, where estimates
# from Hadamard columns share all reports.
_FEWEST_FOR_HADAMARD = 4


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of a value as bits of columns, and decoding of sums of reports to counts.

    A client draws a column for each node of its level, publicly, uniformly and afresh, and reports
    on B(column, value at the node's end) - B(column, value before its start); B(column, nothing) =
    0. A value's code is its place among the K labels, -1 is nothing. ``"boolean"``, K = 1: on, or
    nothing (arXiv:1811.12469v2). ``"one-hot"``, K = 2 and 3: B = 1 for the column's own value.
    ``"hadamard"``: C columns, the least power of two above K; B = 1 where H = (-1)^(number of ones
    of row & column) is +1, a value's row being its code + 1. The average over columns of
    H[w + 1, column] B(column, v) is 1/2 if v = w and 0 otherwise, for rows are orthogonal and row 0
    is no value's. Columns of Acharya, Sun, Zhang, "Hadamard response", AISTATS 2019
    (arXiv:1802.04705); tracking their bits over time is ours.
    """

    labels: tuple[Hashable, ...] = (True,)  # counted values; one for a state that is on or off
    numbers: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        labels: tuple[Any, ...] = self.labels
        numbers: dict[Any, int] = {}
        for label in labels:
            # Only NaN differs from itself: whether it is found among the labels would be chance.
            if label is None or not isinstance(label, Hashable) or label != label:  # noqa: PLR0124
                raise DomainError(
                    f"domain holds {label!r}: give texts, numbers or other constants; None stands "
                    "for a user without a value, and needs no label"
                )
            if label in numbers:
                raise DomainError(f"domain holds {label!r} twice: give each value once")
            numbers[label] = len(numbers)
        set_fields(self, numbers=numbers)

    @classmethod
    def of(cls, domain: Iterable[Hashable] | None) -> "Encoding":
        """Return the encoding of values of a domain; None: a state that is on or off."""
        if domain is None:
            return cls()
        if isinstance(domain, str):
            raise DomainError(f"domain = {domain!r} is a text: give a list of values")
        labels = tuple(domain)
        if len(labels) < 2:
            raise DomainError(
                f"domain holds {len(labels)} values, fewer than 2: for states that are on or off "
                "leave the domain out"
            )
        return cls(labels)

    @property
    def name(self) -> str:
        """Name of the encoding."""
        if len(self.labels) == 1:
            return "boolean"
        return "one-hot" if len(self.labels) < _FEWEST_FOR_HADAMARD else "hadamard"

    @property
    def fingerprint(self) -> str:
        """Digest of the encoding and its labels, in their order."""
        stated = "/".join([self.name, *(f"{type(each).__name__}={each!r}" for each in self.labels)])
        digest = hashlib.sha256(f"shuffledp monitoring encoding/{stated}".encode()).hexdigest()
        return digest[:_ENCODING_DIGITS]

    @property
    def num_columns(self) -> int:
        """Number of columns, C >= 1."""
        size = len(self.labels)
        return 1 << size.bit_length() if self.name == "hadamard" else size

    @property
    def domain_size(self) -> int:
        """Number of estimates, K."""
        return len(self.labels)

    @property
    def variance_factor(self) -> float:
        """Variance of an estimate, relative to a count of one bit from the same reports."""
        return 4.0 if self.name == "hadamard" else float(len(self.labels))

    @property
    def changing_share(self) -> float:
        """Upper bound on the share of columns that show a change of the value; in (0, 1]."""
        if self.name == "hadamard":
            return 0.5  # two rows differ in half of the columns
        return min(2.0 / len(self.labels) * (1.0 + math.ulp(1.0)), 1.0)

    def code(self, value: Any) -> int:
        """Return the code of a value as a user states it; ``None`` has the code of no value."""
        if value is None:
            return NOTHING
        if self.name == "boolean":
            if isinstance(value, (bool, np.bool_, int, np.integer)) and 0 <= int(value) <= 1:
                return int(value) - 1
            raise DomainError(
                f"the value{value_note(value)} is not a state: give True, False, 1, 0, or None for "
                "a user without one; other values need a domain"
            )
        if isinstance(value, Hashable) and value in self.numbers:
            return self.numbers[value]
        named = ", ".join(map(repr, self.labels[:_MOST_NAMED]))
        more = ", ..." if len(self.labels) > _MOST_NAMED else ""
        raise DomainError(
            f"the value{value_note(value)} is not among the {len(self.labels)} values of the "
            f"domain ({named}{more}): declare it when the collection is set up, map it to one of "
            "these, or give None for none"
        )

    def bits(self, columns: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.int8]:
        """Return B for columns and codes."""
        shown: NDArray[np.bool_] = columns == codes
        if self.name == "hadamard":
            rows = codes.astype(np.int64) + 1
            shown = (np.bitwise_count(rows & columns) % 2 == 0) & (rows != 0)
        return shown.astype(np.int8)

    def decode(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Return unbiased counts from sums of signs a column (last axis), scaled by L / gap."""
        if self.name == "hadamard":
            return 2 * walsh_hadamard(sums)[..., 1 : self.domain_size + 1]
        return sums * self.num_columns


_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorDesign:
    """Periods, changes, privacy and encoding of a longitudinal collection.

    Parameters
    ----------
    periods : int
        d, at least 1: fixed when the collection starts.
    max_changes : int
        k, in [1, periods]: changes of a user's value that are followed. The first value counts as a
        change unless it is the code of no value (False for booleans).
    epsilon0 : float
        Local privacy loss, in nats, of all reports of a user. The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most the given one.
    protocol : str
        Law of the signs: ``"predrawn-signs"``, or ``"sampled-change"`` as in Erlingsson et al.
    domain : sequence, optional
        Possible values of each user, who has one or none; by default a state that is on or off.

    Attributes
    ----------
    tree : PeriodTree
        The dyadic tree over the periods.
    law : SignLaw
        The law of the signs.
    encoding : Encoding
        Encoding of values as bits: one-hot columns below four values, Hadamard columns from there
        on, whichever has the smaller error.

    Raises
    ------
    ParameterError
        If a number is out of range, or ``epsilon0`` so small that reports would carry nothing.
    DomainError
        If the domain has fewer than two values, repeats one, or is a text.

    Examples
    --------
    >>> design = MonitorDesign(periods=8, max_changes=1, epsilon0=1.0986122886681098)  # ln 3
    >>> round(design.scale, 9)  # 4 levels, a sign is right with probability 3/4
    8.0
    """

    periods: int
    max_changes: int
    epsilon0: float
    protocol: str = "predrawn-signs"
    domain: Iterable[Hashable] | None = None
    tree: PeriodTree = field(init=False, repr=False, compare=False)
    law: SignLaw = field(init=False, repr=False, compare=False)
    encoding: Encoding = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tree = PeriodTree(periods=self.periods)
        law = sign_law(self.protocol, max_changes=self.max_changes, epsilon0=self.epsilon0)
        if law.max_changes > tree.periods:
            raise ParameterError(
                f"max_changes = {law.max_changes} is above periods = {tree.periods}: a value "
                f"changes at most once a period; give max_changes = {tree.periods} or less"
            )
        if not law.gap > 0.0:
            raise ParameterError(
                f"epsilon0 = {self.epsilon0} lets reports say nothing about the values: give a "
                "larger one, for example 1"
            )
        encoding = Encoding.of(self.domain)
        set_fields(
            self,
            periods=tree.periods,
            max_changes=law.max_changes,
            epsilon0=law.epsilon0,
            domain=None if self.domain is None else encoding.labels,
            tree=tree,
            law=law,
            encoding=encoding,
        )

    @property
    def num_levels(self) -> int:
        """Number of levels of the tree, L, of which a client draws one."""
        return self.tree.num_levels

    @property
    def scale(self) -> float:
        """L / gap: a node's sum of signs times this is unbiased for the sum of the increments.

        Rounded to the nearest float.
        """
        return self.tree.num_levels / self.law.gap

    @property
    def profile(self) -> MonitoringProfile:
        """Accountant's input."""
        # Increments of a bit alternate +1, -1, ...: the central guarantee is sharper then.
        is_bit, share = self.encoding.domain_size == 1, self.encoding.changing_share
        levels = self.tree.num_levels
        return self.law.profile(num_levels=levels, alternating=is_bit, changing_share=share)

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that identify all that client and server must agree on.

        Returns
        -------
        str
            A prefix of SHA-256 of periods, exact law of the signs, and encoding, including the
            labels of its values: a server that numbers them otherwise would count wrong changes.
        """
        named = f"{self.tree.periods}/{self.law.identity}/{self.encoding.fingerprint}"
        digest = hashlib.sha256(f"shuffledp monitoring/{named}".encode()).hexdigest()
        return digest[:_FINGERPRINT_DIGITS]
