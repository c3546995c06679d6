"""Bounds of a channel's blanket for all pairs of inputs, with ceilings that rule out most pairs.

For every lambda > 0, x_+ <= e^(lambda x) / (e lambda), so that with M = E[e^(lambda G)]

    (1/n) E[(G_1 + ... + G_n)_+] <= M^n / (n e lambda).

As e^(a - b) - 1 = (e^a - 1)(e^-b - 1) + (e^a - 1) + (e^-b - 1), M - 1 is, for all ordered pairs of
k rows over m outputs, one product of matrices of k by m and m by k. At some five or ten times the
truth, a ceiling is enough to pass over most pairs of a channel whose rows are not alike.

*A randomizer given as a matrix.* With omega = inf_x R_x each pair of inputs has the bound (Z) of
`channel_rows`, in both orders; the guarantee is the largest of them. The matrix may be any: pairs
need not be symmetric, and entries may be 0. Then omega is 0 there, the likelihood ratio of two
inputs may be infinite, and the bound needs neither epsilon0 nor delta0 (compare Takagi, Liew,
arXiv:2601.19154).

(Z) is convex in (P, Q) for a fixed omega, so a bound for all pairs of rows holds for inputs
whose laws are mixtures of rows: they need no rows of their own, and lower no minimum.

Pairs are evaluated from the largest of `ceilings` down, until a ceiling is below the largest bound
found. Pairs whose columns are the same up to their order are evaluated once.
"""

import math
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b

import numpy as np

from shuffledp.amplification.channel_rows import UNIT_ROUND_OFF, ChannelRows, blanket_delta, rows_of
from shuffledp.amplification.method import Method
from shuffledp.core.arrays import Floats
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

# Multiples of the tilt that suits the widest pair.
_TILTS = (0.5, 0.7, 1.0, 1.4, 2.0)

# Largest exponent of a single factor.
_LARGEST_EXPONENT = 300.0

# Outputs at a time, so that temporary arrays stay small.
_COLUMNS = 8192

# Largest error by underflow.
_SMALLEST = 1e-307


def _blocks(*arrays: Floats) -> Iterator[list[Floats]]:
    """Yield the arrays in blocks of outputs, which bound the size of temporary arrays."""
    for start in range(0, arrays[0].shape[-1], _COLUMNS):
        yield [each[..., start : start + _COLUMNS] for each in arrays]


def ceilings(channel: ChannelRows, num_users: int, epsilon: float) -> Floats:
    """Return upper bounds on the blanket's bound, rounded up, for all ordered pairs of inputs."""
    ratio = math.exp(epsilon)
    found = _standing_out(channel.rows[:, channel.hidden == 0.0], ratio) + _SMALLEST
    with np.errstate(over="ignore"):
        found += np.exp(_crowded(channel, num_users, ratio)) * (1.0 + 1e-12)
    np.fill_diagonal(found, -math.inf)
    return found


def _crowded(channel: ChannelRows, num_users: int, ratio: float) -> Floats:
    """Return logarithms of ceilings on the first term, the least over some tilts."""
    inside = channel.hidden > 0.0
    shape = channel.num_inputs, channel.num_inputs
    if not inside.any():
        return np.full(shape, -math.inf)
    omega, least = channel.hidden[inside], np.full(shape, math.inf)
    relative = channel.rows[:, inside] / omega
    drift, spread = num_users * (ratio - 1.0), num_users * _widest(relative, omega, ratio)
    if spread <= 0.0:
        return least
    tilt = (drift + math.sqrt(drift * drift + 4.0 * spread)) / (2.0 * spread)
    for multiple in _TILTS:
        used = min(multiple * tilt, _LARGEST_EXPONENT / (float(relative.max()) * ratio))
        growth = _growth(relative, omega, used, ratio)
        exponents = num_users * np.log1p(growth) - math.log(num_users * used) - 1.0
        least = np.minimum(least, exponents)
    return least


def _widest(relative: Floats, omega: Floats, ratio: float) -> float:
    """Return approximately the largest variance of a gain over all pairs."""
    products = (relative * omega) @ relative.T
    squares = np.diag(products)
    moments = squares[:, None] + ratio**2 * squares[None, :] - 2.0 * ratio * products
    return max(float(moments.max()) - (ratio - 1.0) ** 2, 0.0)


def _growth(relative: Floats, omega: Floats, tilt: float, ratio: float) -> Floats:
    """Return E[e^(tilt G)] - 1 for all ordered pairs, rounded up."""
    growth, sizes = np.zeros((2, len(relative), len(relative)))
    for block, weights in _blocks(relative, omega):
        up = np.expm1(tilt * block) * weights
        down = np.expm1(-tilt * ratio * block)
        products = up @ down.T  # all of one sign
        alone, other = up.sum(axis=1)[:, None], (down @ weights)[None, :]
        growth += products + alone + other
        sizes += alone - other - products
    # An exponent x <= 300 is off by 2 entries' error and 3 roundings, so e^x - 1 by (1 + x) times
    # that; the sums, by one rounding for each output.
    count = omega.size + 64 + 32 * _LARGEST_EXPONENT
    return growth + count * UNIT_ROUND_OFF * sizes


def _standing_out(rows: Floats, ratio: float) -> Floats:
    """Return the second term for all ordered pairs, rounded up; no column here is hidden."""
    total: Floats = np.zeros((len(rows), len(rows)))
    for (block,) in _blocks(rows):
        for number, row in enumerate(block):
            excess = row * (1.0 + 1e-14) - ratio * block * (1.0 - 1e-14)
            total[number] += np.maximum(excess, 0.0).sum(axis=1)
    total *= 1.0 + (rows.shape[1] + 16) * UNIT_ROUND_OFF
    return total


# Sorting more columns than this costs more than evaluating a pair anew.
_MOST_SORTED_COLUMNS = 512

# Relative width at which inversions stop.
_TOLERANCE = 1e-8

# Least width of the bound of a pair.
_LEAST_WIDTH = 1e-7

# Relative error that a profile's stated losses may have.
_ACCURACY = 1e-9


class _Pairs:
    """The bounds of all ordered pairs of rows of one channel, for n users."""

    def __init__(self, channel: ChannelRows, num_users: int, width: float = 0.0) -> None:
        self._channel = channel
        self._num_users = num_users
        self._width = max(width, _LEAST_WIDTH)
        self._keys: dict[tuple[int, int], object] = {}

    def delta(self, pair: tuple[int, int], epsilon: float) -> float:
        """Return the bound of one ordered pair."""
        first, second = self._channel.rows[list(pair)]
        law = first, second, self._channel.hidden
        return blanket_delta(*law, self._num_users, epsilon, width=self._width).upper

    def _key(self, pair: tuple[int, int]) -> object:
        """Return a key that is equal for pairs whose columns differ only in their order."""
        if self._channel.hidden.size > _MOST_SORTED_COLUMNS:
            return pair
        if pair not in self._keys:
            columns = np.vstack([self._channel.rows[list(pair)], self._channel.hidden])
            listed = columns[:, np.lexsort(columns)].tobytes()
            self._keys[pair] = blake2b(listed, digest_size=16).digest()
        return self._keys[pair]

    def _unsettled(
        self, epsilon: float, settled: set[object]
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Yield ordered pairs with their ceilings, the largest first, and mark them as settled."""
        found = ceilings(self._channel, self._num_users, epsilon)
        size = self._channel.num_inputs
        for flat in np.argsort(-found, axis=None, kind="stable")[: size * (size - 1)]:
            pair = divmod(int(flat), size)
            if (key := self._key(pair)) not in settled:
                settled.add(key)
                yield pair, float(found[pair])

    def largest_delta(self, epsilon: float) -> float:
        """Return the largest bound of all pairs."""
        largest = 0.0
        for pair, ceiling in self._unsettled(epsilon, set()):
            if ceiling <= largest:
                break
            largest = max(largest, self.delta(pair, epsilon))
        return largest

    def least_epsilon(self, delta: float, highest: float) -> float:
        """Return the least epsilon at which no pair's bound is above ``delta``.

        It is raised from 0, pair by pair; a pair that has been settled stays so, as its bound falls
        with epsilon.
        """
        epsilon, settled, raised = 0.0, set[object](), True
        while raised:
            raised = False
            for pair, ceiling in self._unsettled(epsilon, settled):
                if ceiling <= delta:
                    break
                if raised := self.delta(pair, epsilon) > delta:
                    delta_of = partial(self.delta, pair)
                    _, epsilon = last_above_first_below(
                        delta_of, delta, epsilon, highest, relative_tolerance=_TOLERANCE
                    )
                    break
        return epsilon


def violated_hypothesis(
    profile: LocalProfile, _num_users: int, delta: float | None = None
) -> str | None:
    """Return the hypothesis that a profile does not meet, or None."""
    if profile.family is not RandomizerFamily.OTHER or profile.channel is None:
        return "a randomizer that states its channel matrix"
    channel = rows_of(profile)
    if channel.epsilon0 > LARGEST_EPSILON0:
        return f"finite log-ratios of at most {LARGEST_EPSILON0:g} in the channel matrix"
    if profile.epsilon0 < channel.epsilon0 * (1.0 - _ACCURACY) - _ACCURACY:
        return f"an epsilon0 that covers the channel's log-ratio of {channel.epsilon0:.9g}"
    if profile.delta0 < channel.delta0 * (1.0 - _ACCURACY):
        return f"a delta0 that covers the channel's own, {channel.delta0:.9g}"
    if delta is not None and delta < channel.delta0:
        return (
            f"a delta of at least {channel.delta0:.9g}, the chance that some input sends what "
            "another never does"
        )
    return None


def _epsilon(profile: LocalProfile, num_users: int, delta: float) -> Enclosure:
    channel = rows_of(profile)
    found = _Pairs(channel, num_users).least_epsilon(delta, channel.epsilon0)
    return Enclosure(0.0, max(found, channel.unresolved))


def _delta(profile: LocalProfile, num_users: int, epsilon: float, width: float = 0.0) -> Enclosure:
    channel = rows_of(profile)
    if epsilon >= channel.epsilon0:  # no finite ratio is larger
        return Enclosure(0.0, channel.delta0)
    found = _Pairs(channel, num_users, width).largest_delta(epsilon)
    return Enclosure(0.0, max(found, channel.unresolved if epsilon < channel.unresolved else 0.0))


CHANNEL_BLANKET = Method(
    name="channel-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for the smallest entries of the "
    "channel matrix and every pair of inputs; entries of 0 as proved in the shuffledp "
    "documentation",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+] + sum over omega = 0 of "
    "(R_x1 - e R_x1')_+, omega = inf_x R_x, G = r0 - e r1",
    assumptions=(
        "The channel matrix is the law of the randomizer that runs, each row divided by its sum: "
        "every input has a row or is a mixture of rows, every output a column.",
    ),
    proved_here=True,
    violated_hypothesis=violated_hypothesis,
    epsilon=_epsilon,
    delta=_delta,
)
