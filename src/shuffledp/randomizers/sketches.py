"""Strings of open domains: a sketch, which needs no list of the possible values beforehand.

It hashes strings to buckets under a public key, and differs from a `CategoryRandomizer` in two
ways: its values are strings, and an estimate is asked for a dictionary of strings. Once the reports
are in, any dictionary may be tried, without limit: that is post-processing.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from shuffledp.core.arrays import Bytes, Floats, Integers
from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.frequencies import FrequencyEstimates, estimate_frequencies
from shuffledp.estimation.frequencies import expected_standard_error as expected_noise
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.randomizers import checks, keyed_hash
from shuffledp.randomizers import unary_encoding as unary
from shuffledp.randomizers.thresholds import WORD_VALUES, response_law, settle

_MOST_HASHES = 2**16  # the number of a hash function fits two bytes
_MOST_BUCKETS = 2**20
_MOST_CELLS = 2**26  # cells of a sketch: 512 MiB of counts, or twice that with signs
# The sum of squared frequencies is read off the sketch, and taken this many of its own standard
# errors too large.
_STANDARD_ERRORS_ABOVE = 3.0


# A report begins with the number of its hash function, little-endian.
_HEADER_BYTES = 2
# Rows are drawn for about this many bytes at a time, and stay in the cache while they are copied.
_BLOCK_BYTES = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketch:
    """Count-mean sketch: one-hot bits of the bucket under a random hash function, each flipped.

    Each user draws one of the public hash functions h_0, h_1, ... and reports on the bucket of
    their string. A report *supports* a string with probability p if its user holds the string, with
    p too if it holds another one of the same bucket, and with probability q0 otherwise.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.
    key : bytes
        The task's public key, 16 bytes; see `new_key`.
    num_hashes : int
        Number m of hash functions, a power of two in [1, 65536].
    num_buckets : int
        Number w of buckets, a power of two in [2, 2^20]; num_hashes * num_buckets <= 2^26.

    Attributes
    ----------
    threshold : int
        T: each bit is flipped with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law and of the key, carried by its reports.

    Notes
    -----
    Source: Apple Differential Privacy Team, "Learning with privacy at scale", 2017, algorithm CMS;
    the loss equals that in symmetric unary encoding, 2 ln((2^64 - T) / T), as the hash function's
    number is independent of the string.

    A report is 2 + ceil(w / 8) bytes: the hash function j, and w packed bits. The aggregate counts
    in cell j w + l the reports of hash function j with bit l set, and after these m w cells, for
    each j, its reports.

    *Expectation.* If SipHash is a pseudo-random function, then over the key another string falls
    into the same bucket with probability 1/w (to within 2^-64, for equal digests). So a report of
    another string supports x with probability q = p/w + (1 - 1/w) q0, and
    (support - n q) / (p - q) is unbiased over the key *and* the reports, not for a given key.

    *Error.* Let f be the frequency of x, and f_v of another string v. Given the key, users
    are independent: each draws a hash function of its own. Let C_v be the share of hash functions
    that put v into the bucket of x: independent over v, with mean 1/w and variance
    (1/w)(1 - 1/w)/m. A report of v supports x with probability s_v = q0 + (p - q0) C_v. The
    variance of the support is the mean of the conditional one, n_x p (1 - p) + sum n_v E[s_v (1 -
    s_v)], where E[s_v (1 - s_v)] = q (1 - q) - (p - q0)^2 Var C_v, plus the variance of the
    conditional mean, (p - q0)^2 sum n_v^2 Var C_v. With p - q = (1 - 1/w)(p - q0) the frequency has

        variance = V(f) / (n (p - q)^2) + (sum f_v^2 - (1 - f)/n) / (m (w - 1)),

    exactly: the noise that other randomizers have too, and what collisions add, however many users
    there are. The sum is estimated from the sketch itself; see `estimate`.

    Cost: about w random bytes and w / 8 bytes of memory a report; 8 m w bytes on the server.

    Examples
    --------
    >>> sketch = CountMeanSketch(epsilon0=8.0, key=bytes(16), num_hashes=16, num_buckets=64)
    >>> reports = sketch.randomize(["yes"] * 700 + ["no"] * 300, Entropy.from_seed(1))
    >>> estimates = sketch.estimate(reports, dictionary=["yes", "no", "who?"])
    >>> bool((abs(estimates.frequency - [0.7, 0.3, 0.0]) < 0.1).all())
    True
    """

    name: ClassVar[str] = "count-mean-sketch"

    epsilon0: float
    key: bytes
    num_hashes: int = 1024
    num_buckets: int = 1024
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = keyed_hash.require_key(self.key)
        # Powers of two, so that uniform random bits are uniform hash functions and buckets.
        num_hashes = checks.require_power_of_two("num_hashes", self.num_hashes, 1, _MOST_HASHES)
        num_buckets = checks.require_power_of_two("num_buckets", self.num_buckets, 2, _MOST_BUCKETS)
        if num_hashes * num_buckets > _MOST_CELLS:
            raise ParameterError(
                f"num_hashes * num_buckets = {num_hashes * num_buckets} is above {_MOST_CELLS}: "
                "the server keeps a count for each; take fewer hash functions"
            )
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle(asked, partial(response_law, num_flips=2))
        law = {"num_hashes": num_hashes, "num_buckets": num_buckets, "threshold": threshold}
        fingerprint = checks.fingerprint_of(self.name, key=key.hex(), **law)
        checks.set_fields(self, epsilon0=epsilon0, fingerprint=fingerprint, **law)

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report: 2 + ceil(num_buckets / 8)."""
        return _HEADER_BYTES + unary.bytes_per_row(self.num_buckets)

    @property
    def num_counts(self) -> int:
        """How many counts an aggregate has, one a cell and one a hash function."""
        return self.num_hashes * self.num_buckets + self.num_hashes

    @property
    def bit_probabilities(self) -> tuple[float, float]:
        """Chance p that a bit is set, given it is the user's, and q0, given it is not."""
        return (WORD_VALUES - self.threshold) / WORD_VALUES, self.threshold / WORD_VALUES

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket.

        Given the hash function the law is symmetric unary encoding of num_buckets categories. The
        blanket is its blanket, for two strings that no hash function puts into one bucket. Where
        one does, both ratios are one and the same variable; that is the coupling of the two which
        is smallest in convex order, so such pairs are dominated.
        """
        flip = Fraction(self.threshold, WORD_VALUES)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=unary.unary_blanket(self.num_buckets, 1 - flip, flip),
        )

    def randomize(self, values: keyed_hash.Texts, entropy: Entropy) -> Reports:
        """Return one report for each string, one row a user: its hash function and its bits.

        ``values`` is a sequence of str, a one-dimensional array of str or object, or a
        polars.Series; each has at most 65,536 bytes of UTF-8. `DomainError` names the position of
        what is no such text.
        """
        digests = keyed_hash.digests_of(values, self.key)
        out = np.empty((digests.size, self.num_report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK_BYTES // self.num_report_bytes)
        for start in range(0, digests.size, step):
            block = slice(start, start + step)
            hashes = entropy.words(digests[block].size) & np.uint64(self.num_hashes - 1)
            buckets = keyed_hash.buckets_of(
                digests[block], hashes, key=self.key, num_buckets=self.num_buckets
            )
            out[block, 0] = hashes & np.uint64(0xFF)
            out[block, 1] = hashes >> np.uint64(8)
            out[block, _HEADER_BYTES:] = unary.randomize_rows(
                buckets, self.num_buckets, entropy, threshold=self.threshold, is_fair=False
            )
        return Reports(data=out, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return the sketch, all that an estimate of any string needs; sketches add.

        How often each bit of each hash function is set, and the reports of each hash function.
        """
        rows, hashes = self._rows(reports)
        cells, num_reports = unary.bit_sums(
            rows, hashes, num_tables=self.num_hashes, first=_HEADER_BYTES
        )
        bits_set = cells.reshape(self.num_hashes, -1)[:, : self.num_buckets]
        return Counts(
            support=np.concatenate([bits_set.reshape(-1), num_reports]),
            num_reports=hashes.size,
            fingerprint=self.fingerprint,
        )

    def _rows(self, reports: Reports) -> tuple[Bytes, Integers]:
        """Return the rows and their hash functions, if this law could have made them."""
        of_law = self.fingerprint, np.dtype(np.uint8), (self.num_report_bytes,)
        rows: Bytes = checks.require_reports(reports, *of_law)
        hashes = rows[:, 0] + 256 * rows[:, 1].astype(np.int64)
        is_possible = hashes < self.num_hashes
        if self.num_buckets < 8:
            is_possible &= rows[:, -1] >> np.uint8(self.num_buckets) == 0
        exist = f"(num_hashes = {self.num_hashes}, num_buckets = {self.num_buckets})"
        checks.require_possible(is_possible, f"has a hash function or a bucket beyond {exist}")
        return rows, hashes

    @property
    def influence(self) -> float:
        """Largest change of a string's estimated count by another report of one user."""
        p, q = self.support_probabilities
        return 1.0 / (p - q) if p > q else math.inf

    def report_for(self, text: str) -> Bytes:
        """Return a report of the first hash function that supports a string, one row."""
        digests, first = keyed_hash.digests_of([text], self.key), np.zeros(1, dtype=np.uint64)
        buckets = keyed_hash.buckets_of(digests, first, key=self.key, num_buckets=self.num_buckets)
        bits = np.arange(8 * (self.num_report_bytes - _HEADER_BYTES)) == buckets[:, None]
        header = np.zeros((1, _HEADER_BYTES), dtype=np.uint8)
        return np.hstack([header, np.packbits(bits, axis=1, bitorder="little")])

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance p that a report supports its user's string, and q, over the key, another one."""
        keep, other = self.bit_probabilities
        return keep, other + (keep - other) / self.num_buckets

    def estimate(
        self,
        data: Reports | Counts,
        *,
        dictionary: keyed_hash.Texts,
        confidence: float = 0.95,
        interval: str = "wilson",
        simultaneous: bool = False,
    ) -> FrequencyEstimates:
        """Return the unbiased frequency of each string of a dictionary, in its order.

        Parameters
        ----------
        data : Reports or Counts
            Reports of this law, or what `aggregate` made of them.
        dictionary : sequence of str, array, or polars.Series
            Strings to ask for: at least one, no two the same. Users may hold others.
        confidence, interval, simultaneous
            As for `estimate_frequencies`; the collisions' part is added to the square of the
            interval.

        Notes
        -----
        The collisions' part needs the sum of squared frequencies of the *other* strings, known or
        not. Pairs of users with the same hash function and the same bucket give an unbiased
        estimate of it. It is taken three of its standard errors too large, and never above the
        worst case, where all others hold one string; so standard errors rather err upwards.

        Collisions are few and skewed where one string holds most of the users and num_hashes /
        num_buckets is about 1: then an interval of normal quantiles misses more often than it
        says. It is reports' noise that dominates below about num_hashes * num_buckets users.

        Cost: 20 ns times num_hashes a string.
        """
        from shuffledp.randomizers.randomizer_kernels import sum_cells

        counts = self.aggregate(data) if isinstance(data, Reports) else data
        checks.require_same_law(counts.fingerprint, self.fingerprint)
        if counts.support.size != self.num_counts:
            raise ParameterError(
                f"counts has {counts.support.size} cells, not {self.num_counts}: pass on what "
                "aggregate returned"
            )
        if len(dictionary) == 0:
            raise DomainError("dictionary is empty: name at least one string to ask for")
        digests = keyed_hash.digests_of(dictionary, self.key, argument="dictionary")
        # Different strings share a digest with probability 2^-64, and then have the same estimate.
        _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
        is_repeated = first[inverse] != np.arange(digests.size)
        if is_repeated.any():
            position = int(np.argmax(is_repeated))
            raise DomainError(
                f"dictionary[{position}] repeats dictionary[{first[inverse[position]]}]: ask for "
                "each string once"
            )
        if counts.num_reports == 0:
            raise DataError("there are no reports, so there is nothing to estimate: collect some")
        support = np.zeros(digests.size, dtype=np.int64)
        words = keyed_hash.derived_words(self.key, keyed_hash.BUCKETS)
        sum_cells(self._cells(counts), digests, *words, support)
        noise_only = estimate_frequencies(
            dataclasses.replace(counts, support=support),
            support_probabilities=self.support_probabilities,
            confidence=confidence,
            interval=interval,
            simultaneous=simultaneous,
        )
        collisions = self._collision_error(counts, noise_only.frequency)
        each = simultaneous_confidence(confidence, digests.size) if simultaneous else confidence
        # A constant added to the variance adds its product with the squared quantile to the squared
        # half-width of both kinds of interval, and leaves their centres where they are.
        centre = 0.5 * (noise_only.lower + noise_only.upper)
        half_width = 0.5 * (noise_only.upper - noise_only.lower)
        half_width = np.hypot(half_width, normal_quantile(each) * collisions)
        return dataclasses.replace(
            noise_only,
            standard_error=np.hypot(noise_only.standard_error, collisions),
            population_standard_error=np.hypot(noise_only.population_standard_error, collisions),
            lower=centre - half_width,
            upper=centre + half_width,
        )

    def expected_standard_error(
        self, *, num_users: int, frequency: float, sum_of_other_squares: float
    ) -> float:
        """Return the standard error that an estimate will have, before any data is seen.

        Exact over key and reports, for an ideal hash and a share ``frequency`` of ``num_users``.
        ``sum_of_other_squares`` of the other strings' frequencies is in [(1 - f) / n, (1 - f)^2]:
        all different, or all the same.
        """
        noise = expected_noise(
            support_probabilities=self.support_probabilities,
            num_users=num_users,
            frequency=frequency,
        )
        if not 0.0 <= sum_of_other_squares <= 1.0:
            raise ParameterError(
                f"sum_of_other_squares = {sum_of_other_squares} is not in [0, 1]: it is a sum of "
                "squared shares of users; take (1 - frequency)^2 if nothing is known"
            )
        pairs = max(sum_of_other_squares - (1.0 - frequency) / num_users, 0.0)
        return math.sqrt(noise**2 + pairs / self._num_independent_cells)

    @property
    def _num_independent_cells(self) -> int:
        """Number m (w - 1), by which collisions are thinned out."""
        return self.num_hashes * (self.num_buckets - 1)

    def _collision_error(self, counts: Counts, frequency: Floats) -> Floats:
        """Return the standard error by collisions, or a little more, for each frequency."""
        num_users = counts.num_reports
        holders = np.clip(frequency, 0.0, 1.0) * num_users
        others = num_users - holders
        most_pairs = np.maximum(others * (others - 1.0), 0.0)
        pairs = self._same_string_pairs_upper(counts) - holders * np.maximum(holders - 1.0, 0.0)
        variance = np.clip(pairs, 0.0, most_pairs) / (num_users**2 * self._num_independent_cells)
        return np.asarray(np.sqrt(variance))

    def _same_string_pairs_upper(self, counts: Counts) -> float:
        """Return a number of ordered pairs of users with the same string, on the large side.

        Two users draw the same hash function with probability 1/m, and with different strings then
        meet in a bucket with probability 1/w. So E = m * (pairs that collide) has the mean
        A + (n (n - 1) - A)/w, A being the pairs looked for. Its noise: each of about n^2/m pairs of
        reports of one hash function adds w products of two deviations, each of variance s = q0
        (1 - q0)/(p - q0)^2; that is a standard error of n s sqrt(2 w m). Besides, the number of
        collisions depends on the key, with a standard error of at most A sqrt(2/(m (w - 1))).
        """
        num_users, num_hashes, num_buckets = counts.num_reports, self.num_hashes, self.num_buckets
        keep, other = self.bit_probabilities
        chance = 1.0 / num_buckets
        all_pairs = float(num_users) * (num_users - 1)
        noise = num_users * (other * (1.0 - other) / (keep - other) ** 2)
        noise *= math.sqrt(2.0 * num_buckets * num_hashes)
        collisions = num_hashes * self._colliding_pairs(counts)
        pairs = collisions - all_pairs * chance + _STANDARD_ERRORS_ABOVE * noise
        by_key = _STANDARD_ERRORS_ABOVE * math.sqrt(2.0 / self._num_independent_cells)
        if by_key >= 1.0:
            return all_pairs
        return min(max(pairs / (1.0 - chance) / (1.0 - by_key), 0.0), all_pairs)

    def _colliding_pairs(self, counts: Counts) -> float:
        """Return an unbiased number of ordered pairs of users with the same hash and bucket.

        With y = bit - q0, the sum over l of y_il y_i'l has the mean (p - q0)^2 if users i and i'
        have the same bucket of the same hash function, and 0 if another bucket. The squared sums
        of a cell over its users hold these products, and the squares y_il^2, which are known.
        """
        keep, other = self.bit_probabilities
        cells = self._cells(counts)
        num_reports = counts.support[cells.size :]
        deviations = cells - other * num_reports[:, None]
        bits_set = float(cells.sum())
        squares = (1.0 - 2.0 * other) * bits_set
        squares += counts.num_reports * self.num_buckets * other**2
        return (float(np.vdot(deviations, deviations)) - squares) / (keep - other) ** 2

    def _cells(self, counts: Counts) -> Integers:
        """Return the number of reports with each bit set: hash functions by buckets."""
        cells = counts.support[: self.num_hashes * self.num_buckets]
        return cells.reshape(self.num_hashes, self.num_buckets)
