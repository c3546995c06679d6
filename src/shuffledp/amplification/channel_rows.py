"""Channel matrices in doubles: local loss, blanket, unhidden outputs, and the gains of rows.

A channel is a local randomizer written out: rows are inputs, columns outputs, entries the
probabilities Pr[output | input]. Entries of `ChannelRows` are within eight roundings of the exact
law, relatively: an exact entry to a double, the sum of its row and the quotient are four, and rows
that were divided by their sums before have four more. Minima are no worse. The laws of gains below
allow for it.

*Gains*: the law of one report's gain G = r0 - e r1 for a pair of rows, rounded one way. Let P and Q
be the rows of a pair, omega a measure on the outputs with total mass at most 1, and let every other
user send an output drawn from omega, or else nothing informative. Where omega > 0 put r0 = P /
omega, r1 = Q / omega. Then, e = e^epsilon and G = 0 with the missing mass,

    delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+] + sum over omega(y) = 0 of (P(y) - e Q(y))_+  (Z)

*Proof.* Let C ~ Bin(n - 1, gamma) others draw from omega / gamma, and let C be known. If the
victim's output y has omega(y) = 0, it stands out: y is read off, and the others' are independent of
the victim's input. This gives the second sum. Otherwise all C + 1 outputs have omega > 0, and
their set has, relative to C + 1 draws from omega / gamma, the likelihoods gamma / (C + 1) sum_i
r0(y_i) and gamma / (C + 1) sum_i r1(y_i), one term for each output that may be the victim's. The
divergence there is gamma / (C + 1) E[(G_1 + ... + G_(C+1))_+], G drawn under omega / gamma; as
Bin(n - 1, gamma)(c) gamma / (c + 1) = Bin(n, gamma)(c + 1) / n, the mean over C is the first term.

With omega = inf_x R_x the pair is one that dominates all data of the others (Balle, Bell, Gascon,
Nissim 2019, arXiv:1903.02837v2, Lemma 5.3; there omega = 0 is no separate case, since ratios
may be infinite). With omega = R_x2 it *is* the data in which all others hold x2.

*Steps up*, none of which lowers (Z), by convexity and since sums of independent terms keep the
order: raise G; spread an atom to two with the same mean; scale, (mass m, gain g) to (t m, g / t)
and 0 with the rest; take an output out of omega (then the victim's stands out). *Steps down*: lower
G; merge atoms to their mean. They bring any number of outputs to few atoms, and absorb round-off.

*Attacks*, which no analysis of a channel can go below: all other users hold one input. For every
choice of the victim's two inputs and the others' one, the divergence is (Z) with omega the row of
the others, exactly. All choices are ranked by its central-limit value, and the first few are
evaluated. The ranking proves nothing and need not: any data give a lower bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.positive_part import mean_positive_part
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# A logarithm of a quotient of two entries, each within 8 roundings: 17, and its own.
_LOG_ERROR = 32.0 * 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRatio:
    """The largest ratio of two entries of a column.

    Parameters
    ----------
    likely, unlikely, output : int
        Numbers of the two inputs and of the output, from 0.
    ratio : float
        Pr[output | likely] / Pr[output | unlikely], to the nearest; may be ``inf``.
    finite_log_ratio : float
        Logarithm of the largest *finite* ratio of any two entries of a column, in nats, rounded
        up; 0 where there is none above 1.
    """

    likely: int
    unlikely: int
    output: int
    ratio: float
    finite_log_ratio: float


def worst_ratio(rows: Floats) -> WorstRatio:
    """Find the output with the largest ratio of probabilities between two inputs."""
    highest, lowest = rows.max(axis=0), rows.min(axis=0)
    positive = np.where(rows > 0.0, rows, np.inf).min(axis=0)
    occurs = highest > 0.0
    ratios = np.ones_like(highest)
    np.divide(highest, positive, out=ratios, where=occurs)
    largest = float(ratios.max())
    revealing = np.where(lowest == 0.0, highest, 0.0)
    output = int(np.argmax(revealing if revealing.max() > 0.0 else ratios))
    column = rows[:, output]
    return WorstRatio(
        likely=int(np.argmax(column)),
        unlikely=int(np.argmin(column)),
        output=output,
        ratio=math.inf if lowest[output] == 0.0 else float(ratios[output]),
        finite_log_ratio=0.0 if largest == 1.0 else math.log(largest) * (1.0 + 1e-15) + _LOG_ERROR,
    )


UNIT_ROUND_OFF = 2.0**-53

MOST_INPUTS = 200
MOST_CELLS = 2 * 10**7

# Largest distance from 1 of the sum of a row of rounded entries.
SUM_TOLERANCE = 1e-9

# Below it the spacing of doubles is no longer relative; no randomizer draws an event so rare.
SMALLEST_ENTRY = 1e-280

# Log-ratios of entries that differ by less than their round-off.
_ROUNDED_AWAY = 1e-14

# Where an input exceeds the rarest by this factor, the crowd is taken not to hide it at all:
# any blanket below the rows is legal, and products of ratios stay within doubles.
_LARGEST_RATIO = 1e12


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChannelRows:
    """The distinct rows of a channel, and their blanket.

    Parameters
    ----------
    rows : (k, m) array
        Probabilities of the outputs that occur, read-only. Equal rows stand once.
    hidden : (m,) array
        The blanket omega: the smallest entry of each column, or 0 where that is 0 or the ratio to
        it above 1e12.
    epsilon0 : float
        Largest *finite* log-ratio of two entries of a column, in nats, rounded up.
    delta0 : float
        Largest probability, over pairs of inputs, of outputs that one sends and the other never;
        rounded up. The channel is (epsilon0, delta0)-LDP, and no smaller delta0 holds at any
        finite epsilon0.
    unresolved : float
        An epsilon0 for pairs of inputs whose rows differ, but are the same doubles; 0 if there are
        none. Their total variation is below it, too.
    """

    rows: Floats
    hidden: Floats
    epsilon0: float
    delta0: float
    unresolved: float

    @property
    def num_inputs(self) -> int:
        """Number of distinct rows."""
        return int(self.rows.shape[0])


def channel_rows(matrix: object) -> ChannelRows:
    """Check a channel matrix and prepare it for accounting."""
    entries = _checked(matrix)
    sums = [math.fsum(row) for row in entries]
    for number, total in enumerate(sums):
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            raise ParameterError(
                f"row {number + 1} of the channel matrix sums to {total:.12g}, which is not 1 to "
                "within 1e-9: give the probability of every output"
            )
    normalised = entries / np.array(sums)[:, None]
    occurring = np.ascontiguousarray(normalised[:, normalised.max(axis=0) > 0.0])
    first_of = {row.tobytes(): number for number, row in reversed(list(enumerate(occurring)))}
    rows = np.ascontiguousarray(occurring[sorted(first_of.values())])
    lowest, highest = rows.min(axis=0), rows.max(axis=0)
    hidden = np.where(lowest * _LARGEST_RATIO >= highest, lowest, 0.0)
    for array in (rows, hidden):
        array.setflags(write=False)
    given: Any = matrix
    raw = isinstance(matrix, np.ndarray)
    num_different = len({row.tobytes() if raw else tuple(row) for row in given})
    unresolved = _ROUNDED_AWAY if num_different > rows.shape[0] else 0.0
    # Over ordered pairs, the mass of outputs that the second never sends.
    columns = rows[:, lowest == 0.0]
    shares = columns @ (columns == 0.0).T.astype(np.float64)
    return ChannelRows(
        rows=rows,
        hidden=hidden,
        epsilon0=max(worst_ratio(rows).finite_log_ratio, unresolved),
        unresolved=unresolved,
        delta0=min(float(shares.max()) * (1.0 + (columns.shape[1] + 16) * UNIT_ROUND_OFF), 1.0),
    )


def channel_profile(matrix: object) -> LocalProfile:
    """Return the profile of a randomizer given as a matrix.

    ``epsilon0`` and ``delta0`` are those of `ChannelRows`, rounded up: where no entry is 0, the
    least epsilon0 and no delta0.
    """
    channel = channel_rows(matrix)
    if channel.delta0 >= 1.0:
        raise OutOfRegimeError(
            "two inputs have no output in common, so every report tells them apart and no number "
            "of users hides it: let every input send some output of every other"
        )
    return LocalProfile(
        epsilon0=channel.epsilon0,
        delta0=channel.delta0,
        family=RandomizerFamily.OTHER,
        domain_size=channel.num_inputs if channel.num_inputs > 1 else None,
        channel=lambda: matrix,  # equal only to itself, so that it can be a cache's key
    )


def rows_of(profile: LocalProfile) -> ChannelRows:
    """Return the prepared channel of a profile that has one; the last few are remembered."""
    if profile.channel is None:
        raise ParameterError("the profile has no channel matrix")
    try:
        return _remembered(profile.channel)
    except TypeError:  # unhashable channels are prepared each time
        return channel_rows(profile.channel())


@lru_cache(maxsize=4)
def _remembered(channel: Callable[[], object]) -> ChannelRows:
    return channel_rows(channel())


def _checked(matrix: object) -> Floats:
    """Return the matrix as doubles; refuse other shapes, and entries that are no probabilities."""
    try:
        entries = np.asarray(matrix, dtype=np.float64)
        is_zero = ~np.asarray(matrix, dtype=np.bool_)  # of exact numbers, which doubles may lose
    except (TypeError, ValueError):
        raise ParameterError(
            "a channel matrix needs rows of one length, of numbers: one column for each output"
        ) from None
    shape = entries.shape
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        raise ParameterError(
            f"a channel matrix of shape {shape} is none: give a row for each of two or more inputs "
            "and a column for each output"
        )
    if shape[0] > MOST_INPUTS or shape[0] * shape[1] > MOST_CELLS:
        raise ParameterError(
            f"a channel matrix of {shape[0]} by {shape[1]} is too large: at most {MOST_INPUTS} "
            f"inputs and {MOST_CELLS:.0e} entries; leave out inputs that others stand for"
        )
    usable = is_zero | ((entries >= SMALLEST_ENTRY) & (entries <= 1.0 + SUM_TOLERANCE))
    if not usable.all():  # NaN is not usable either
        row, column = (int(index) for index in np.argwhere(~usable)[0])
        raise ParameterError(
            f"entry {entries[row, column] or 'next to 0'} in row {row + 1}, column {column + 1} of "
            f"the channel matrix is neither 0 nor in [{SMALLEST_ENTRY}, 1]: give probabilities"
        )
    return entries


MOST_ATOMS = 32

# (P - Q - (e - 1) Q) / omega, with entries off by 8 roundings: 9 of P + Q, 11 of (e - 1) Q, 9 of
# the quotient, 3 to add. All in units of r0 + e r1.
_GAIN_ERROR = 40.0 * UNIT_ROUND_OFF

# Gains this close, relative to r0 + e r1, are one atom.
_SAME = 1e-13

# Beyond it, differences of gains lose the small ones.
_LARGEST_GAIN = 1e12

# Largest exponent of a factor e^(tilt G).
_LARGEST_EXPONENT = 300.0

# The contour needs at most about 31 / sqrt(width) nodes, 20 deviations apart and 9.6 / tau far.
_NODES = 31.0

# From these on an output is so rare among n reports, and its gain so large, that it stands out.
_RARE = 1e-3
_STANDS_OUT = 60.0


def blanket_delta(
    first: Floats,
    second: Floats,
    hidden: Floats,
    num_users: int,
    epsilon: float,
    *,
    width: float = 1e-7,
) -> Enclosure:
    """Enclose an upper bound on (Z) for the blanket of a channel."""
    standing_out, masses, gains, error = _law(first, second, hidden, epsilon, 1.0)
    kept = _num_kept(masses, gains, num_users)
    standing_out += float(masses[kept:] @ gains[kept:]) * (1.0 + 4.0 * error)
    masses, gains = masses[:kept], gains[:kept]
    gains = np.maximum(gains, -_STANDS_OUT / _tilt(masses, gains, num_users))
    if kept > MOST_ATOMS and gains[0] < gains[-1]:
        masses, gains = _spread(masses, gains, gains[_knots(masses, gains)])
    # Masses go down by more than their error, positive gains up by as much.
    gains = np.where(gains > 0.0, gains * (1.0 + 4.0 * error), gains)
    nodes = _NODES / math.sqrt(width)
    found = mean_positive_part(
        num_users, 0.0, masses * (1.0 - error), gains, width=width, most_nodes=nodes
    )
    upper = (found.upper + standing_out) * (1.0 + 4.0 * UNIT_ROUND_OFF)
    return Enclosure(found.lower + standing_out, upper)


def delta_of_rows(
    first: Floats,
    second: Floats,
    others: Floats,
    num_users: int,
    epsilon: float,
    *,
    width: float = 1e-6,
) -> float:
    """Return a lower bound on the divergence of explicit data: all other users hold one input."""
    proved, masses, gains, error = _law(first, second, others, epsilon, -1.0)
    kept = _num_kept(masses, gains, num_users)
    rare = float(masses[kept:].sum()) * (1.0 + 2.0 * error)
    if rare > 0.0:
        proved += _one_stands_out(masses, gains, error, kept, num_users)
    masses, gains = masses[:kept], gains[:kept]
    # With a gain far below, no sum is positive: only sums without one are counted.
    near = gains >= -_STANDS_OUT / _tilt(masses, gains, num_users)
    near &= np.abs(gains) < _LARGEST_GAIN
    if not near.any():
        return proved
    left_out = rare + float(masses[~near].sum()) * (1.0 + 2.0 * error)
    masses, gains = _merged(masses[near], gains[near], error)
    # Above the heaviest value masses go down by more than their error, below it up: each tail of
    # the law is then no more than the true one, or no less.
    heaviest = int(np.argmax(masses))
    base = float(gains[heaviest])
    up = (1.0 + 2.0 * error) / (1.0 - left_out)
    down = (1.0 - 2.0 * error) / (1.0 - left_out * (1.0 - 4.0 * error))
    factors = np.where(gains < base, up, down)
    factors[heaviest] = 0.0
    differences = gains - base
    differences -= 2.0 * UNIT_ROUND_OFF * np.abs(differences)
    nodes = _NODES / math.sqrt(width)
    found = mean_positive_part(
        num_users, base, masses * factors, differences, width=width, most_nodes=nodes
    )
    lower = found.lower * _none_of(left_out, num_users) + proved
    return max(lower * (1.0 - 8.0 * UNIT_ROUND_OFF), 0.0)


def _one_stands_out(
    masses: Floats, gains: Floats, error: float, kept: int, num_users: int
) -> float:
    """Bound from below the contribution of gains from ``kept`` on, each alone among common ones."""
    common = np.cumsum(masses) * num_users > _RARE
    common[kept:] = False
    left_out = float(masses[~common].sum()) * (1.0 + 2.0 * error)
    share, values = masses[common], gains[common]
    mean = float(share @ values) - 4.0 * error * float(share @ np.abs(values))
    crowd = (num_users - 1) * (mean / (1.0 - left_out) if mean < 0.0 else mean)
    large = gains[kept:]
    excess = large + crowd - 8.0 * UNIT_ROUND_OFF * (large + abs(crowd))
    total = float(masses[kept:] @ np.maximum(excess, 0.0)) * (1.0 - 4.0 * error)
    return total * _none_of(left_out, num_users - 1)


def _none_of(mass: float, num_reports: int) -> float:
    """Return (1 - mass)^num_reports, rounded down."""
    if mass >= 1.0 or num_reports * mass > 600.0:
        return 0.0
    return math.exp(num_reports * math.log1p(-mass)) * (1.0 - 1e-12)


def _tilt(masses: Floats, gains: Floats, num_users: int) -> float:
    """Return roughly the tilt under which the sum of all gains is centred; ``inf`` if none is > 0.

    It solves n E[G e^(tilt G)] / E[e^(tilt G)] = 2 / tilt, by bisection to some 5 %. It is at most
    300 over the largest gain; nothing rests on its accuracy.
    """
    highest = float(np.max(gains, initial=0.0))
    if highest <= 0.0:
        return math.inf
    high = math.log(_LARGEST_EXPONENT / highest)
    low, missing = high - 50.0, max(1.0 - float(masses.sum()), 0.0)
    for _ in range(10):
        middle = 0.5 * (low + high)
        tilt = math.exp(middle)
        weights = masses * np.exp(tilt * gains)
        mean = float(weights @ gains) / (float(weights.sum()) + missing)
        low, high = (low, middle) if num_users * mean > 2.0 / tilt else (middle, high)
    return math.exp(high)


def _law(
    first: Floats, second: Floats, omega: Floats, epsilon: float, direction: float
) -> tuple[float, Floats, Floats, float]:
    """Return the delta of standing out, masses and gains, and the relative error of summed masses.

    All rounded up (direction 1) or down (-1). Gains are in ascending order; of gains that differ by
    round-off the largest stands for all where they are rounded up, else the smallest. The rest of
    mass 1 gains 0.
    """
    inside, growth = omega > 0.0, math.exp(epsilon)
    outside = int(np.count_nonzero(~inside))
    slack = direction * 16.0 * UNIT_ROUND_OFF
    excess = first[~inside] * (1.0 + slack) - growth * second[~inside] * (1.0 - slack)
    standing_out = float(np.maximum(excess, 0.0).sum())
    standing_out *= 1.0 + direction * (outside + 8) * UNIT_ROUND_OFF
    first, second, masses = first[inside], second[inside], omega[inside]
    scales = (first + growth * second) / masses
    gains = ((first - second) - math.expm1(epsilon) * second) / masses
    gains += direction * _GAIN_ERROR * scales
    order = np.argsort(gains)
    gains, scales, masses = gains[order], scales[order], masses[order]
    error = (masses.size + 16) * UNIT_ROUND_OFF  # of a sum of masses, with some to spare
    if gains.size > 0:
        starts = np.flatnonzero(np.concatenate([[True], np.diff(gains) > _SAME * scales[1:]]))
        extreme = np.maximum if direction > 0.0 else np.minimum
        gains, masses = extreme.reduceat(gains, starts), np.add.reduceat(masses, starts)
    return standing_out, masses, gains, error


def _num_kept(masses: Floats, gains: Floats, num_users: int) -> int:
    """Return the number of gains of outputs with which the victim does not stand out.

    The others are so rare that hardly two of n reports have one, and one of them outweighs the
    crowd. Left in the law, such a gain would cost all accuracy; any number is valid, if less tight.
    """
    tails = np.cumsum((masses * (gains > 0.0))[::-1])[::-1]
    kept = int(np.searchsorted(-(tails * num_users), -_RARE))  # tails fall
    kept = max(kept, int(np.searchsorted(gains, 0.0, side="right")))
    if kept < gains.size and (tilt := _tilt(masses[:kept], gains[:kept], num_users)) < math.inf:
        kept = max(kept, int(np.searchsorted(gains, _STANDS_OUT / tilt)))
    return kept


def _knots(masses: Floats, gains: Floats) -> NDArray[np.integer[Any]]:
    """Return the indices of the gains to keep, in ascending order, first and last included.

    Spreading a density f over steps h costs f h^2 of variance; the least is lost, for a number of
    steps, where h goes like f^(-1/3): equal steps of the sum of mass^(1/3) gap^(2/3).
    """
    weights = np.cbrt(0.5 * (masses[1:] + masses[:-1]) * np.diff(gains) ** 2)
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    wanted = np.linspace(0.0, reached[-1], MOST_ATOMS)
    knots = np.searchsorted(reached, wanted * (1.0 - 1e-12))
    return np.unique(np.concatenate([knots, [0, gains.size - 1]]))


def _spread(masses: Floats, gains: Floats, knots: Floats) -> tuple[Floats, Floats]:
    """Spread a law onto ascending knots, the first and last of which enclose it, and 0."""
    inner = [0.0] if knots[0] < 0.0 < knots[-1] else []  # the gain of the missing mass
    knots = np.union1d(knots, inner)
    step = np.clip(np.searchsorted(knots, gains, side="right") - 1, 0, knots.size - 2)
    share = (gains - knots[step]) / (knots[step + 1] - knots[step])
    share = np.minimum(share * (1.0 + 8.0 * UNIT_ROUND_OFF), 1.0)  # up, as a raised gain is
    spread = np.bincount(step, masses * (1.0 - share), knots.size).astype(np.float64)
    spread += np.bincount(step + 1, masses * share, knots.size)
    return spread, knots


def _merged(masses: Floats, gains: Floats, error: float) -> tuple[Floats, Floats]:
    """Return at most a few atoms more than `MOST_ATOMS`, each the mean of some, rounded down."""
    if gains.size <= MOST_ATOMS:
        return masses, gains
    starts = _knots(masses, gains)
    merged = np.add.reduceat(masses, starts)
    means = np.add.reduceat(masses * gains, starts) / merged
    sizes = np.add.reduceat(masses * np.abs(gains), starts) / merged
    return merged, means - 4.0 * error * sizes


# The victim's input, its neighbour's input, and the input of all others.
Triple: TypeAlias = tuple[int, int, int]

# Relative width at which inversions stop.
_TOLERANCE = 1e-7

# Number of choices of data that are evaluated.
_MOST_EVALUATED = 24

# Most entries that the ranking looks at; beyond, it omits pairs that the blanket finds close.
_MOST_RANKED = 2 * 10**7


def attack_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return a delta that explicit data prove unavoidable, rounded down; 0 if none is proved."""
    channel = rows_of(profile)
    if epsilon >= channel.epsilon0:
        # The others hold an input that never sends the output: the victim stands out, whatever n.
        return channel.delta0 * (1.0 - 1e-9)
    ranked = _ranked(channel, num_users, epsilon)
    return max((_attack(channel, each, num_users)(epsilon) for each in ranked), default=0.0)


def attack_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
    """Return an epsilon that explicit data prove unavoidable, rounded down; 0 if none is proved."""
    channel = rows_of(profile)
    if delta < channel.delta0 * (1.0 - 1e-9):
        raise OutOfRegimeError(
            f"delta = {delta:.6g} is below {channel.delta0:.6g}, the chance that some input sends "
            "what another never does: no epsilon is enough; use a larger delta"
        )
    found = 0.0
    for _ in range(2):  # ranked first for epsilon = 0, then near the answer
        for triple in _ranked(channel, num_users, found):
            found, _ = last_above_first_below(
                _attack(channel, triple, num_users),
                delta,
                found,
                channel.epsilon0,
                relative_tolerance=_TOLERANCE,
            )
    return found


def _attack(channel: ChannelRows, triple: Triple, num_users: int) -> Callable[[float], float]:
    """Return a lower bound on delta of these data, as a function of epsilon."""
    first, second, others = channel.rows[list(triple)]
    return partial(delta_of_rows, first, second, others, num_users)


def _ranked(channel: ChannelRows, num_users: int, epsilon: float) -> list[Triple]:
    """Return the choices of data with the largest central-limit deltas, which are evaluated."""
    pairs = _pairs(channel)
    scores = np.array([_scores(channel.rows, pair, num_users, epsilon) for pair in pairs])
    size = channel.num_inputs
    order = np.argsort(-scores, axis=None, kind="stable")[:_MOST_EVALUATED]
    return [(*pairs[int(flat) // size], int(flat) % size) for flat in order]


def _pairs(channel: ChannelRows) -> list[tuple[int, int]]:
    """Return the ordered pairs to rank: all, or those that differ most relative to the blanket."""
    size, num_outputs = channel.rows.shape
    affordable = max(_MOST_RANKED // (size * num_outputs), 2 * _MOST_EVALUATED)
    inside = channel.hidden > 0.0
    weighted = channel.rows[:, inside] / np.sqrt(channel.hidden[inside])
    products = weighted @ weighted.T
    squares = np.diag(products)
    distances = squares[:, None] + squares[None, :] - 2.0 * products
    # Outputs outside the blanket count most.
    outside = channel.rows[:, ~inside]
    for number, row in enumerate(outside):
        distances[number] += 1e6 * np.abs(row - outside).sum(axis=1)
    np.fill_diagonal(distances, -math.inf)
    order = np.argsort(-distances, axis=None, kind="stable")[: size * (size - 1)]
    return [divmod(int(flat), size) for flat in order[:affordable]]


def _scores(rows: Floats, pair: tuple[int, int], num_users: int, epsilon: float) -> Floats:
    """Return logarithms of the approximate delta of a pair, for each input of all others."""
    ratio = math.exp(epsilon)
    first, second = rows[pair[0]], rows[pair[1]]
    difference = first - ratio * second
    inside = rows > 0.0
    omega = np.where(inside, rows, 1.0)
    mean = np.where(inside, difference, 0.0).sum(axis=1)
    ratios = np.minimum(np.abs(difference) / omega, 1e100)
    variance = np.where(inside, np.abs(difference) * ratios, 0.0).sum(axis=1) - mean * mean
    standing_out = np.where(inside, 0.0, np.maximum(difference, 0.0)).sum(axis=1)
    deviation = np.sqrt(np.maximum(variance, 1e-300) * num_users)
    bar = num_users * mean / deviation
    # E (bar + N)_+ for a standard normal N, nearly: bar_+ + phi(bar) / (1 + bar^2).
    with np.errstate(divide="ignore", over="ignore"):
        tail = -0.5 * bar * bar - np.log(2.5 * (1.0 + bar * bar))
        crowded = np.logaddexp(np.log(np.maximum(bar, 0.0)), tail) + np.log(deviation / num_users)
        scores: Floats = np.logaddexp(crowded, np.log(standing_out))
    return scores
