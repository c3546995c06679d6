"""``StringSketch``: what the two sketches share, with the error that colliding strings make."""

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.frequencies import FrequencyEstimates, estimate_frequencies
from shuffledp.estimation.frequencies import (
    expected_standard_error as expected_noise,
)
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.randomizers.category_randomizer import require_same_law
from shuffledp.randomizers.strings.keyed_hash import digests_of
from shuffledp.randomizers.strings.texts import Texts

_MOST_HASHES = 2**16  # the number of a hash function fits two bytes
_MOST_CELLS = 2**26  # cells of a sketch: 512 MiB of counts, or twice that with signs

# The sum of squared frequencies is read off the sketch, and taken this many of its own standard
# errors too large.
_STANDARD_ERRORS_ABOVE = 3.0


class StringSketch(ABC):
    """Strings of an open domain, hashed to buckets by public hash functions h_0, h_1, ...

    Each user draws one of the hash functions and reports on the bucket of their string. A report
    *supports* a string with probability p if its user holds the string, with p too if it holds
    another one of the same bucket, and with probability q0 otherwise.

    Attributes
    ----------
    name : str
        Name of the sketch.
    key : bytes
        The task's public key; see `new_key`.
    num_hashes : int
        Number m of hash functions.
    num_buckets : int
        Number w of buckets of each.
    epsilon0 : float
        Local privacy loss in nats of the law that is drawn, rounded up.
    fingerprint : str
        Name of the exact law and of the key.

    Notes
    -----
    *Expectation.* If SipHash is a pseudo-random function, then over the key another string falls
    into the same bucket with probability 1/w (to within 2^-64, for equal digests). So a report of
    another string supports x with probability q = p/w + (1 - 1/w) q0, and
    (support - n q) / (p - q) is unbiased over the key *and* the reports, not for a given key.

    *Error.* Let f be the frequency of x, and f_v that of the other strings v. Given the key, users
    are independent: each draws a hash function of its own. Let C_v be the share of hash functions
    that put v into the bucket of x: independent over v, with mean 1/w and variance
    (1/w)(1 - 1/w)/m. A report of v supports x with probability s_v = q0 + (p - q0) C_v. The
    variance of the support is the mean of the conditional one, n_x p (1 - p) + sum n_v E[s_v (1 -
    s_v)], where E[s_v (1 - s_v)] = q (1 - q) - (p - q0)^2 Var C_v, plus the variance of the
    conditional mean, (p - q0)^2 sum n_v^2 Var C_v. With p - q = (1 - 1/w)(p - q0) the frequency has

        variance = V(f) / (n (p - q)^2) + (sum f_v^2 - (1 - f)/n) / (m (w - 1)),

    exactly: the noise that other randomizers have too, and what collisions add, however many users
    there are. The sum is estimated from the sketch itself; see `estimate`.
    """

    __slots__ = ()

    name: ClassVar[str]
    key: bytes
    num_hashes: int
    num_buckets: int
    epsilon0: float
    threshold: int
    fingerprint: str

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket."""

    @property
    @abstractmethod
    def bit_probabilities(self) -> tuple[float, float]:
        """Chance p of support by a report of the same bucket, and q0 by one of another bucket."""

    @property
    @abstractmethod
    def num_report_bytes(self) -> int:
        """Bytes a report."""

    @abstractmethod
    def randomize(self, values: Texts, entropy: Entropy) -> Reports:
        """Return one report for each string.

        Parameters
        ----------
        values : sequence of str, one-dimensional array of str or object, or polars.Series
            The users' strings, of at most 65,536 bytes of UTF-8 each. May be empty.
        entropy : Entropy
            Source of randomness.

        Returns
        -------
        Reports
            One row a user.

        Raises
        ------
        DomainError
            If an element is not text, or is too long; the message names its position.
        ParameterError
            If ``values`` is no such sequence.
        """

    @abstractmethod
    def aggregate(self, reports: Reports) -> Counts:
        """Return the sketch: all that an estimate for any string needs of the reports.

        Parameters
        ----------
        reports : Reports
            In any order.

        Returns
        -------
        Counts
            Exact; they add with other counts of the same law and key.

        Raises
        ------
        FingerprintError
            If the reports were made by another law, or under another key.
        DomainError
            If this law makes no such report.
        ParameterError
            If the reports have another type or shape.
        """

    @property
    @abstractmethod
    def num_counts(self) -> int:
        """Number of counts of an aggregate."""

    @abstractmethod
    def _support(self, counts: Counts, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many reports support each string, given their digests."""

    @abstractmethod
    def _colliding_pairs(self, counts: Counts) -> float:
        """Return an unbiased number of ordered pairs of users with the same hash and bucket."""

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance p that a report supports its user's string, and q that it supports another one.

        q is the mean over the key. Rounded to the nearest floats.
        """
        keep, other = self.bit_probabilities
        return keep, other + (keep - other) / self.num_buckets

    def estimate(
        self,
        data: Reports | Counts,
        *,
        dictionary: Texts,
        confidence: float = 0.95,
        interval: str = "wilson",
        simultaneous: bool = False,
    ) -> FrequencyEstimates:
        """Return the unbiased frequency of each string of a dictionary.

        Parameters
        ----------
        data : Reports or Counts
            Reports of this law, or what `aggregate` made of them.
        dictionary : sequence of str, array, or polars.Series
            Strings to ask for: at least one, no two the same. Users may hold others.
        confidence : float
            Nominal coverage, in (0, 1).
        interval : {"wilson", "wald", "clopper-pearson"}
            Kind of interval of the reports' noise; the collisions' part is added to its square.
        simultaneous : bool
            Whether all intervals hold at once with that confidence, rather than each alone.

        Returns
        -------
        FrequencyEstimates
            In the order of the dictionary. Nothing is clipped or normalised; frequencies of a
            dictionary that leaves strings out do not sum to 1.

        Raises
        ------
        FingerprintError
            If the data are of another law or key.
        DomainError
            If the dictionary is empty, repeats a string, or has an element that is not text.
        ParameterError
            If reports say nothing (epsilon0 = 0), or an option is unknown.
        DataError
            If there are no reports.

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
        counts = self.aggregate(data) if isinstance(data, Reports) else data
        require_same_law(counts.fingerprint, self.fingerprint)
        if counts.support.size != self.num_counts:
            raise ParameterError(
                f"counts has {counts.support.size} cells, not {self.num_counts}: pass on what "
                "aggregate returned"
            )
        if len(dictionary) == 0:
            raise DomainError("dictionary is empty: name at least one string to ask for")
        digests = digests_of(dictionary, self.key, argument="dictionary")
        _require_distinct(digests)
        if counts.num_reports == 0:
            raise DataError("there are no reports, so there is nothing to estimate: collect some")
        noise_only = estimate_frequencies(
            Counts(
                support=self._support(counts, digests),
                num_reports=counts.num_reports,
                fingerprint=self.fingerprint,
            ),
            support_probabilities=self.support_probabilities,
            confidence=confidence,
            interval=interval,
            simultaneous=simultaneous,
        )
        collisions = self._collision_error(counts, noise_only.frequency)
        each = simultaneous_confidence(confidence, digests.size) if simultaneous else confidence
        return _widened(noise_only, collisions, normal_quantile(each))

    def expected_standard_error(
        self, *, num_users: int, frequency: float, sum_of_other_squares: float
    ) -> float:
        """Return the standard error that an estimate will have, before any data is seen.

        Parameters
        ----------
        num_users : int
            Number n of users, at least 1.
        frequency : float
            Share f of users with the string, in [0, 1].
        sum_of_other_squares : float
            Sum of the squared frequencies of the other strings, in [(1 - f) / n, (1 - f)^2]: all
            different, or all the same. Raised to the lower end if it lies below.

        Returns
        -------
        float
            Exact over key and reports, up to rounding, for an ideal hash.

        Raises
        ------
        ParameterError
            If reports say nothing (epsilon0 = 0), or a number is out of range.
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

    def _collision_error(
        self, counts: Counts, frequency: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the standard error by collisions, or a little more, for each frequency."""
        num_users = counts.num_reports
        holders = np.clip(frequency, 0.0, 1.0) * num_users
        others = num_users - holders
        most_pairs = np.maximum(others * (others - 1.0), 0.0)
        pairs = self._same_string_pairs_upper(counts) - holders * np.maximum(holders - 1.0, 0.0)
        variance = np.clip(pairs, 0.0, most_pairs) / (num_users**2 * self._num_independent_cells)
        result: NDArray[np.float64] = np.sqrt(variance)
        return result

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


def require_sizes(num_hashes: SupportsIndex, num_buckets: SupportsIndex) -> tuple[int, int]:
    """Return both numbers if they are powers of two in their ranges, else raise.

    Powers of two, so that uniform random bits are uniform hash functions and buckets.
    """
    hashes = _require_power_of_two("num_hashes", num_hashes, least=1, most=_MOST_HASHES)
    buckets = _require_power_of_two(
        "num_buckets", num_buckets, least=2, most=_MOST_CELLS // _MOST_HASHES * 2**10
    )
    if hashes * buckets > _MOST_CELLS:
        raise ParameterError(
            f"num_hashes * num_buckets = {hashes * buckets} is above {_MOST_CELLS}: the server "
            "keeps a count for each; take fewer hash functions"
        )
    return hashes, buckets


def _require_power_of_two(name: str, value: SupportsIndex, *, least: int, most: int) -> int:
    """Return ``value`` as an int if it is a power of two in [least, most], else raise."""
    number = require_at_least(name, value, least)
    if number & (number - 1) or number > most:
        nearest = min(2 ** max(number.bit_length() - 1, 1), most)
        raise ParameterError(
            f"{name} = {number} is not a power of two in [{least}, {most}]: try {nearest}"
        )
    return number


def _require_distinct(digests: NDArray[np.uint64]) -> None:
    """Raise `DomainError` if two strings of the dictionary have the same digest.

    Different strings do so with probability 2^-64, and then have the same estimate.
    """
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    is_repeated = first[inverse] != np.arange(digests.size)
    if is_repeated.any():
        position = int(np.argmax(is_repeated))
        raise DomainError(
            f"dictionary[{position}] repeats dictionary[{first[inverse[position]]}]: ask for each "
            "string once"
        )


def _widened(
    estimates: FrequencyEstimates, collisions: NDArray[np.float64], quantile: float
) -> FrequencyEstimates:
    """Return the estimates with the collisions' standard error in their errors and intervals.

    A constant added to the variance adds its product with the squared quantile to the squared
    half-width of both kinds of interval, and leaves their centres where they are.
    """
    centre = 0.5 * (estimates.lower + estimates.upper)
    half_width = np.hypot(0.5 * (estimates.upper - estimates.lower), quantile * collisions)
    return dataclasses.replace(
        estimates,
        standard_error=np.hypot(estimates.standard_error, collisions),
        population_standard_error=np.hypot(estimates.population_standard_error, collisions),
        lower=centre - half_width,
        upper=centre + half_width,
    )
