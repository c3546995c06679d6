"""Success probability of an adversary who knows the values of some or all other users.

n users report through one randomizer R and are shuffled. The others matter only by the law
G of their histogram, and with q the target's prior

    V = sum over histograms h of max_x q_x sum_y R_xy G(h - e_y).                              (1)

`strong_vulnerability` takes the first of these ways that applies.

- *One user*, *no noise* (reports of known users drop out), *no information*.
- *Mode*: k-RR, two values of equal prior: V = 1/2 + (p - 1/2) max_h G(h), at any n. This is eq. 10
  of the source with the maximum inside the sum, where it belongs.
- *Uniform crowd*: nobody is known, all uniform: eq. 17 of the source.
- *Count*: two different reports: (1) over the numbers of one of them, at any n.
- *Histograms*: (1) over all histograms within reach, up to 2e6 of them.
- *Ends*: the blanket bound above; below, the number of reports of one value, or the prior; narrowed
  by `exchangeable_vulnerability` where all others are alike, and by a *coarse lattice*.

*The worst knowledge.* Two values and k-RR: half of the others for each value where n - 1 is even;
else all knowledge is compared up to 500 others, and lies between computed ends beyond. More values:
all counts are compared where they are few; else ends that hold for every knowledge. *Proof for two
values.* G is the law of a sum of independent coins, hence unimodal: the sum of max(G(h), G(h - 1))
is 1 + max G. The modulus of its characteristic function is the same for every count c, as
abs(1 - p + p e^(i theta)) = abs(p + (1 - p) e^(i theta)), and where half of the others have each
value the phase at the mode is zero. Further proofs: docs/results/leakage.md.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Section V; the rest is ours,
docs/results/leakage.md.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.leakage.channel import checked_prior, float_channel
from shuffledp.leakage.counts import blanket
from shuffledp.leakage.counts import others as laws
from shuffledp.leakage.counts.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.counts.fullest_bin import alike_excess, excess_share
from shuffledp.leakage.counts.others import Coins, Kind, Response
from shuffledp.leakage.uninformed import exchangeable_vulnerability

SOURCE = (
    "Jurado, Gonze, Alvim, Palamidessi, CSF 2023, hal-04349295v1, Section V, corrected and "
    "extended in the shuffledp documentation, results/leakage"
)
ASSUMPTIONS = (
    "The adversary guesses one target's value once, and knows its prior law.",
    "Only the histogram of the reports is released.",
    "Known values of the others are true, and unknown ones are independent with one known law.",
)


# Most entries of a channel that is written out.
_MOST_ENTRIES = 250_000

# Ends closer than this, relative to the leakage, are close enough.
_ENOUGH = 1e-6


class Situation(NamedTuple):
    """One target of a given prior among others of known and of unknown values."""

    randomizer: Response | Floats  # or shape (k, m), rows sum to one
    prior: Floats  # shape (k,); of the target and of users with unknown values
    counts: tuple[int, ...]  # number of the others known to have each value
    num_unknown: int

    @property
    def num_users(self) -> int:
        """Number of users, the target included."""
        return 1 + sum(self.counts) + self.num_unknown

    @property
    def uniform_response(self) -> Response | None:
        """The randomizer where it is k-ary randomized response and the prior uniform."""
        is_uniform = bool(np.all(self.prior == self.prior[0]))
        return self.randomizer if is_uniform and isinstance(self.randomizer, Response) else None

    @property
    def num_outcomes(self) -> int:
        """Number of different reports."""
        given = self.randomizer
        return given.domain_size if isinstance(given, Response) else len(given[0])

    def rows(self) -> Floats:
        """Return the channel matrix; k^2 numbers for randomized response."""
        given = self.randomizer
        return given.matrix() if isinstance(given, Response) else given

    def unshuffled(self) -> Enclosure:
        """Enclose the success probability given the target's own report."""
        if isinstance(self.randomizer, Response):
            return _rounded_out(self.randomizer.unshuffled(self.prior))
        return _rounded_out(laws.unshuffled(self.randomizer, self.prior))

    def guess_before(self) -> Enclosure:
        """Enclose the success probability before anything is seen."""
        return _rounded_out(float(self.prior.max()))

    def kinds(self) -> list[Kind]:
        """Return the others with the laws of their reports."""
        rows = self.rows()
        mixed = self.prior @ rows
        laws = [*zip(self.counts, rows, strict=True), (self.num_unknown, mixed / math.fsum(mixed))]
        return [Kind(count, law) for count, law in laws if count > 0]

    def mode(self, value: int, response: Response) -> Enclosure:
        """Enclose the largest chance of a number of others who report ``value``; uniform prior."""
        among, even = self.counts[value], Fraction(1, response.domain_size)
        others = Coins(sum(self.counts) - among, response.answer)
        return laws.mode_mass([Coins(among, response.truth), others, Coins(self.num_unknown, even)])


def strong_vulnerability(
    randomizer: Any,
    known_counts: Sequence[SupportsIndex],
    *,
    prior: ArrayLike | None = None,
    num_unknown: SupportsIndex = 0,
) -> Bound:
    """Return the success probability of the best adversary who knows others' values.

    Parameters
    ----------
    randomizer : float, int, Fraction, Channel or array_like of shape (k, m)
        A number is the truth p in [1/k, 1] of k-ary randomized response; 1 for a shuffler alone.
        Row x of a channel is the law of the report of value x.
    known_counts : sequence of int, length k
        Number of the others known to have each value, all but the target and ``num_unknown``. n is
        one more than the sum of all, at most 1e10.
    prior : array_like of float, shape (k,), optional
        Law of the target's value, and of each value that is not known; uniform if not given.
    num_unknown : int
        Further users, whose values are not known.

    Returns
    -------
    Bound
        ``lower <= V <= upper``, outwards by the stated round-off. ``method`` is the way that was
        taken: see the module.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a law is invalid, sizes do not fit, or a number is out of range.

    Notes
    -----
    Under a millisecond for k-RR with two values of equal prior, 0.1 s for two different reports at
    n = 1e9; at most two seconds for histograms: k = 3 up to n of about 25 000, k = 4 up to 200,
    k = 5 up to 35. Beyond that ends, the upper one too high by up to a third of the leakage.
    Rows of a channel are divided by their sums; of two reports, the probabilities of the second are
    taken as exact.

    Source: docs/results/leakage.md.

    Examples
    --------
    Of 200 others all have value 1, or half of them (the source's Figure 3).

    >>> round(strong_vulnerability(0.8, [0, 200]).upper, 5)
    0.52111
    >>> round(strong_vulnerability(0.8, [100, 100]).upper, 5)
    0.52116
    """
    return _bound(*_found(_checked(randomizer, known_counts, prior, num_unknown)))


def _checked(
    randomizer: Any, known: Sequence[SupportsIndex], prior: ArrayLike | None, unknown: SupportsIndex
) -> Situation:
    """Return the situation for arguments as in `strong_vulnerability`, or raise."""
    counts = tuple(require_at_least("known_counts", count, 0) for count in known)
    if len(counts) < 2:
        raise ParameterError(
            f"known_counts has {len(counts)} entries: give a count for each of at least two values"
        )
    unknown = require_at_least("num_unknown", unknown, 0)
    require_at_least("num_users", 1 + sum(counts) + unknown, 1, laws.MOST_USERS)
    law: Floats = checked_prior(prior, len(counts))
    if not isinstance(randomizer, Real):
        matrix = float_channel(randomizer)
        if len(matrix) != len(counts):
            raise ParameterError(
                f"known_counts has {len(counts)} entries, the channel {len(matrix)} rows"
            )
        return Situation(matrix / matrix.sum(axis=1, keepdims=True), law, counts, unknown)
    response = Response.of(randomizer, len(counts))  # type: ignore[arg-type]  # checked there
    if response.truth == 1 and unknown > 0:
        # Reports of known users are known: the histogram without them is equivalent.
        counts = (0,) * len(counts)
    return Situation(response, law, counts, unknown)


def _found(situation: Situation) -> tuple[str, Enclosure]:
    """Return the result of the first way that applies, and its name."""
    found = _without_listing(situation)
    if found is not None:
        return found
    before, prior = situation.guess_before().lower, situation.prior
    if situation.num_outcomes * prior.size > _MOST_ENTRIES:
        return "ends", vulnerability_ends(situation)
    within = before, situation.unshuffled().upper
    kinds, joint = situation.kinds(), prior[:, None] * situation.rows()
    if situation.num_outcomes == 2:
        coins = [Coins(n, min(Fraction(float(shares[1])), Fraction(1))) for n, shares in kinds]
        return "count", laws.best_guess(laws.report_law(coins), joint).clipped(*within)
    listed = laws.by_histograms(kinds, joint)
    if listed is not None:
        return "histograms", listed.clipped(*within)
    method, ends = "ends", vulnerability_ends(situation)
    if len(kinds) == 1:
        alike = exchangeable_vulnerability(
            situation.num_users, situation.rows(), prior=prior, crowd=kinds[0].law, work=0.0
        )
        other = Enclosure(alike.lower or 0.0, alike.upper)
        method, ends = _narrower((method, ends), (alike.method, other))
    if ends.upper - ends.lower > _ENOUGH * (ends.upper - before):
        blocks = coarse_vulnerability(kinds, joint)
        if blocks is not None:
            method, ends = _narrower((method, ends), ("coarse lattice", blocks.clipped(*within)))
    return method, ends


def _narrower(first: tuple[str, Enclosure], second: tuple[str, Enclosure]) -> tuple[str, Enclosure]:
    """Return the intersection of both bounds; the first alone where the second adds nothing."""
    (_, one), (method, other) = first, second
    lower, upper = max(one.lower, other.lower), min(one.upper, other.upper)
    says_more = lower <= upper and (lower > one.lower or upper < one.upper)
    return (method, Enclosure(lower, upper)) if says_more else first


def _without_listing(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return bounds that need no law of the others, or their mode or fullest bin alone."""
    response, given = situation.uniform_response, situation.randomizer
    if situation.num_users == 1:
        return "one user", situation.unshuffled()
    if given.kept == 0 if isinstance(given, Response) else len(given[0]) == 1:
        return "no information", situation.guess_before()
    if isinstance(given, Response) and given.kept == 1 and situation.num_unknown == 0:
        return "no noise", Enclosure(1.0, 1.0)
    if response is not None and response.domain_size == 2:
        return "mode", response.leaked(situation.mode(1, response), 0.5)
    if response is not None and situation.num_unknown == situation.num_users - 1:
        share = excess_share(situation.num_users, response.domain_size)
        return "uniform crowd", response.leaked(share)
    return None


def vulnerability_ends(situation: Situation) -> Enclosure:
    """Enclose the success probability of the best guess, at any size."""
    response, given, users = situation.uniform_response, situation.randomizer, situation.num_users
    lower, counts = situation.guess_before().lower, situation.counts
    if isinstance(given, Response):
        upper = blanket.blanket_vulnerability_upper(users, *given, situation.prior)
    else:
        upper = blanket.channel_blanket_upper(users, given, prior=situation.prior)
    if response is not None:
        # The count that varies least is the most informative. Of equal counts one is enough.
        truth, answer = response.truth, response.answer
        choose = min if truth * (1 - truth) >= answer * (1 - answer) else max
        mode = situation.mode(counts.index(choose(counts)), response)
        lower = max(lower, response.leaked(mode, 1.0 / response.domain_size).lower)
        if max(counts) == users - 1:
            lower = max(lower, concentrated_lower(users, response))
    return Enclosure(min(lower, upper), upper)


def concentrated_lower(num_users: int, response: Response) -> float:
    """Return a lower end where all others are known to have one value: guess among the rest.

    0 where it would take long.
    """
    found = None
    if 0 < response.answer < response.truth and response.domain_size > 2:
        found = alike_excess(num_users, response.domain_size - 1, response.answer)
    if found is None:
        return 0.0
    share = found.lower / (num_users * float(response.answer))
    return response.leaked(Enclosure(share, share), 1.0 / response.domain_size).lower


def _rounded_out(value: float) -> Enclosure:
    """Return the ends around a number that is eight roundings, and no cancellation, from exact."""
    return Enclosure(round_down(value), round_up(value)).clipped()


def _bound(method: str, found: Enclosure) -> Bound:
    """Return the bound, with its source and assumptions."""
    return found.bound(method, SOURCE, ASSUMPTIONS)


# Two values: most others for which every c is compared.
_MOST_SCANNED = 500

# Most counts times cells of a box, most counts (fewer where values differ in kind), and most values
# with which knowledge is compared.
_MOST_WORK, _MOST_COUNTS, _MOST_NAMED, _MOST_VALUES = 2e7, 2_000, 1_000, 8

# The worst case of fewer users serves for up to this many times the others.
_FEWER = 1.5


def worst_knowledge(
    num_users: int, randomizer: Any, prior: Floats
) -> tuple[Bound, tuple[int, ...] | None]:
    """Return V for the others' values that help the adversary most, and these values if known.

    Where there are too many to compare, ends for k-ary randomized response and a uniform prior,
    else the upper end of fewer users, with no lower one: the worst case of more is no worse.
    ``randomizer`` is as in `strong_vulnerability`.
    """
    others, values = num_users - 1, prior.size
    situation = _checked(randomizer, [0] * (values - 1) + [others], prior, 0)
    response = situation.uniform_response
    if others == 0 or (response is not None and response.kept in (0, 1)):
        # All knowledge is worth the same: nobody else, no information or no noise.
        return _bound(*_found(situation)), situation.counts
    if response is not None and values == 2 and (others % 2 == 0 or others > _MOST_SCANNED):
        return _nearly_balanced(others, response)
    compared, counts = others, _comparable(situation, others)
    if not counts:
        compared = bisect_left(range(1, others), True, key=lambda n: not _comparable(situation, n))
        counts = _comparable(situation, compared) or [(0,) * values]
    if response is not None and compared < others and others > _FEWER * compared:
        return _bound("ends of all knowledge", _ends_of_all(others, response, 1.0)), None
    found = [(each, _found(situation._replace(counts=each))[1]) for each in counts]
    worst, ends = max(found, key=lambda pair: pair[1].upper)
    lower = max(each.lower for _, each in found)
    bound = _bound("all knowledge", Enclosure(lower, ends.upper))
    if sum(worst) == others:
        return bound, worst
    if response is None:
        return replace(bound, lower=None), None
    return _bound("ends of all knowledge", _ends_of_all(others, response, ends.upper)), None


def _ends_of_all(others: int, response: Response, most: float) -> Enclosure:
    """Return ends for every knowledge; the lower from the most even, the most uneven, and none."""
    values = response.domain_size
    upper = min(blanket.blanket_vulnerability_upper(others + 1, values, response.truth), most)
    even = strong_vulnerability(response.truth, _even(others, values)).lower or 0.0
    # An adversary who knows others' values guesses no worse than one who knows none.
    none = response.leaked(excess_share(others + 1, values)).lower
    lower = max(even, concentrated_lower(others + 1, response), none)
    return Enclosure(min(lower, upper), upper)


def _even(others: int, values: int) -> tuple[int, ...]:
    """Return counts that differ by one at most, ascending."""
    share, rest = divmod(others, values)
    return (share,) * (values - rest) + (share + 1,) * rest


def _comparable(situation: Situation, others: int) -> list[tuple[int, ...]]:
    """Return the possible counts of others' values, none if there are too many to compare."""
    values, is_rising = situation.prior.size, situation.uniform_response is not None
    if values > _MOST_VALUES:
        return []
    most = _MOST_COUNTS if is_rising else _MOST_NAMED
    counts = [*islice(_all_counts(others, values, is_rising=is_rising), most + 1)]
    even = situation._replace(counts=_even(others, values))
    cells = math.prod(laws.histogram_box(even.kinds()).lengths) if situation.num_outcomes > 2 else 0
    return counts if len(counts) <= most and len(counts) * cells <= _MOST_WORK else []


def _nearly_balanced(others: int, response: Response) -> tuple[Bound, tuple[int, ...] | None]:
    """Return V for two values where half of the others, or nearly, have each."""
    half = others // 2
    # All characteristic functions have the same modulus, and for even numbers the phase is 0. The
    # worst case does not get worse with more users: for odd numbers, one user less bounds it.
    most = laws.mode_mass([Coins(half, response.truth), Coins(half, response.answer)])
    if others % 2 == 0:
        return _bound("balanced", response.leaked(most, 0.5)), (half, half)
    least = laws.mode_mass([Coins(half, response.truth), Coins(others - half, response.answer)])
    found = response.leaked(Enclosure(least.lower, most.upper), 0.5)
    return _bound("nearly balanced", found), None


def _all_counts(
    total: int, parts: int, *, is_rising: bool, least: int = 0
) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of ``parts`` numbers >= ``least`` with this sum, maybe rising ones alone."""
    if parts == 1:
        yield (total,)
        return
    for first in range(least, (total // parts if is_rising else total) + 1):
        least = first if is_rising else 0
        for others in _all_counts(total - first, parts - 1, is_rising=is_rising, least=least):
            yield (first, *others)
