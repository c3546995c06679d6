"""Exact shuffled divergences of tiny channels: over all data, in floats; of the worst, in integers.

A channel is a list of rows of Fractions, ``channel[x][y] = Pr[report y | value x]``. The adversary
sees how many reports of each kind there are. Reports whose columns are proportional say the same
and are merged first: which of them it was is drawn without looking at the data. Nothing here
shares code or formulas with the package, nor with the oracle of the accountant's own tests.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
from mpmath import mp, mpf

from shuffledp.accounting.guarantees import guarantee_for

# Floats of the sweep over all data are off by less; the worst data are checked without any slack.
RELATIVE, ABSOLUTE = 1e-12, 2e-15

# Histograms up to this number are added up in integers, too.
_MOST_EXACT = 4000

# Grid of sums over many users: 60 standard deviations wide.
_POINTS = 2**16


def merged(channel):
    """Return the channel with proportional columns added up, in integers of one denominator."""
    columns = {}
    for column in zip(*channel, strict=True):
        scale = next((entry for entry in column if entry), None)
        if scale is None:
            continue  # a report that is never made
        shape = tuple(entry / scale for entry in column)
        columns[shape] = columns.get(shape, 0) + scale
    denominator = math.lcm(
        *((part * total).denominator for shape, total in columns.items() for part in shape)
    )
    rows = zip(
        *([int(part * total * denominator) for part in s] for s, total in columns.items()),
        strict=True,
    )
    return [list(row) for row in rows], denominator


@cache
def _places(num_outputs, num_reports):
    """Histograms by number: where each goes when one report of each kind is added."""
    small = list(itertools.combinations_with_replacement(range(num_outputs), num_reports))
    index = {
        reports: i
        for i, reports in enumerate(
            itertools.combinations_with_replacement(range(num_outputs), num_reports + 1)
        )
    }
    return np.array([[index[tuple(sorted((*h, y)))] for y in range(num_outputs)] for h in small])


def _one_more(law, row, num_reports):
    """Return the law of the histogram after one more report, of law ``row``."""
    places = _places(len(row), num_reports)
    size = math.comb(len(row) + num_reports, num_reports + 1)
    grown = np.zeros(size, dtype=law.dtype)
    for y, chance in enumerate(row):
        grown[places[:, y]] += law * chance  # different histograms stay different
    return grown


def exponential(epsilon, *, upwards):
    """Return e^epsilon as a Fraction, off by less than one part in 10^35 in that direction."""
    with mp.workdps(50):
        value = mp.exp(mpf(epsilon)) * (1 + mpf(10) ** -36 * (1 if upwards else -1))
        mantissa, exponent = int(value.man), int(value.exp)
    return Fraction(mantissa) * Fraction(2) ** exponent


class Shuffled:
    """delta(epsilon) of ``num_users`` shuffled reports, the largest over all neighbouring data."""

    def __init__(self, channel, num_users):
        self.num_users = num_users
        self.rows, self.denominator = merged(channel)
        floats = [np.array([float(Fraction(c, self.denominator)) for c in r]) for r in self.rows]
        values = range(len(self.rows))
        laws = {(): np.ones(1)}
        for count in range(num_users - 1):
            laws = {
                (*others, x): _one_more(law, floats[x], count)
                for others, law in laws.items()
                for x in values
                if not others or x >= others[-1]
            }
        self._full = {
            others: np.array([_one_more(law, row, num_users - 1) for row in floats])
            for others, law in laws.items()
        }
        self._num_histograms = next(iter(self._full.values())).shape[1]
        self._exact = {}

    def worst(self, epsilon):
        """Return delta at ``epsilon`` in floats, and the data (others, x, x') that reach it."""
        e = math.exp(epsilon)
        best, where = -1.0, None
        for others, laws in self._full.items():
            for x, p in enumerate(laws):
                deltas = np.maximum(p - e * laws, 0.0).sum(axis=1)
                other = int(deltas.argmax())
                if deltas[other] > best:
                    best, where = float(deltas[other]), (others, x, other)
        return best, where

    def worst_of_all(self, epsilon):
        """Do what `worst` does in integers, for losses that no float can tell from none."""
        e = exponential(epsilon, upwards=True)
        return max(
            (self.exact(e, (others, *pair)), (others, *pair))
            for others in self._full
            for pair in itertools.permutations(range(len(self.rows)), 2)
        )

    def delta(self, epsilon, where):
        """Return the divergence of one pair of data in floats."""
        others, x, other = where
        laws = self._full[others]
        return float(np.maximum(laws[x] - math.exp(epsilon) * laws[other], 0.0).sum())

    @property
    def is_small(self):
        """Whether divergences are affordable in integers."""
        return self._num_histograms <= _MOST_EXACT

    def exact(self, e, where):
        """Return the divergence of one pair of data at the ratio ``e``, a Fraction; exact."""
        p, q = self._integer_laws(where)
        top, bottom = e.as_integer_ratio()
        excess = p * bottom - q * top
        positive = sum(int(each) for each in excess if each > 0)
        return Fraction(positive, bottom * self.denominator**self.num_users)

    def _integer_laws(self, where):
        if where not in self._exact:
            others, x, other = where
            law = np.array([1], dtype=object)
            for count, value in enumerate(others):
                law = _one_more(law, self.rows[value], count)
            self._exact[where] = tuple(
                _one_more(law, self.rows[value], self.num_users - 1) for value in (x, other)
            )
        return self._exact[where]


def agreeing_delta(channel, where, num_users, epsilon):
    """Return delta of the pair x, x' where all others hold one value, ``where`` = (x, x', value).

    With r the law of that value it is E[(G_1 + ... + G_n)_+] / n, G = (R_x - e R_x') / r over
    reports of law r. Each G is moved to the two points of a grid around it, with the mean kept,
    and the sum's law is a convolution: off by one part in ten thousand at most, where delta is
    above 1e-9.
    """
    p, q, r = (channel[x] for x in where)  # floats
    gains = (p - math.exp(epsilon) * q) / r
    mean = float(r @ gains)
    step = 60.0 * math.sqrt(num_users * float(r @ (gains - mean) ** 2)) / _POINTS
    below = np.floor(gains / step)
    share = gains / step - below
    one = np.zeros(_POINTS)
    np.add.at(one, below.astype(np.int64) % _POINTS, r * (1.0 - share))
    np.add.at(one, (below.astype(np.int64) + 1) % _POINTS, r * share)
    law = np.fft.irfft(np.fft.rfft(one) ** num_users, _POINTS)
    places = np.arange(_POINTS) - _POINTS // 2 + round(num_users * mean / step)
    return float(np.maximum(places * step, 0.0) @ law[places % _POINTS]) / num_users


# Many randomizers are the same law at tiny sizes; their guarantees are asked for once.
published = cache(guarantee_for)

SHARES = (0.0, 0.05, 0.3, 0.6, 0.9, 0.999, 1.0 - 1e-9, 1.0)
DELTAS = (1e-12, 1e-6, 1e-3, 0.03, 0.3)


def check_guarantee(channel, profile, num_users, *, shares=SHARES, deltas=DELTAS, by_floats=True):
    """Fail unless all that is published for the profile encloses the truth about the channel.

    Returns the largest of exact delta over published delta, to tell sharp bounds from lax ones.
    Without ``by_floats`` even the search for the worst data is done in integers.
    """
    truth = Shuffled(channel, num_users)
    find = truth.worst if by_floats else truth.worst_of_all
    strictest = 0.0
    for share in shares:
        epsilon = profile.epsilon0 * share
        bound = published(profile, num_users, epsilon=epsilon).delta
        _, where = find(epsilon)
        _check_delta(truth, epsilon, bound, where, 2.0 * math.ulp(profile.epsilon0))
        if share < 0.99 and bound.upper > 0.0:
            strictest = max(strictest, truth.delta(epsilon, where) / bound.upper)
    for delta in deltas:
        bound = published(profile, num_users, delta=delta).epsilon
        _, where = find(bound.upper)
        below = find(bound.lower * (1.0 - 1e-10))[1] if bound.lower else where
        _check_epsilon(truth, delta, bound, where, below)
    return strictest


def _check_delta(truth, epsilon, bound, where, shift):
    """Fail unless ``bound`` encloses the exact delta of the data ``where``.

    What is unavoidable is computed from the profile's epsilon0, which is rounded up; so the lower
    end may be that of an epsilon smaller by ``shift``.
    """
    facts = (epsilon, bound, where, truth.delta(epsilon, where))
    if not truth.is_small:
        slack = ABSOLUTE * (1.0 + epsilon)
        assert bound.upper >= truth.delta(epsilon, where) * (1.0 - RELATIVE) - slack, facts
        return
    assert Fraction(bound.upper) >= truth.exact(exponential(epsilon, upwards=True), where), facts
    if bound.lower is not None:
        ratio = exponential(max(epsilon - shift, 0.0), upwards=False)
        most = truth.exact(ratio, where) * (1 + Fraction(RELATIVE))
        assert Fraction(bound.lower) <= most, (*facts, float(most))


def _check_epsilon(truth, delta, bound, where, where_below):
    """Fail unless the least epsilon for ``delta`` lies inside; with the worst data at each end."""
    facts = (delta, bound, where, where_below)
    if not truth.is_small:
        slack = ABSOLUTE * (1.0 + bound.upper)
        assert truth.delta(bound.upper, where) <= delta * (1.0 + RELATIVE) + slack, facts
        return
    assert truth.exact(exponential(bound.upper, upwards=True), where) <= Fraction(delta), facts
    if bound.lower:
        below = exponential(bound.lower * (1.0 - 1e-10), upwards=False)
        assert truth.exact(below, where_below) >= Fraction(delta * (1.0 - RELATIVE)), facts
