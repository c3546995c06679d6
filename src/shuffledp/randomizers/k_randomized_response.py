"""k-ary randomized response: say the truth, or with some probability any other category."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Integers, Words
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily, mirrored, outward_atoms
from shuffledp.core.reports import Reports
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import Channel, SettledRandomizer
from shuffledp.randomizers.thresholds import WORD_VALUES, response_law, response_ratio

# Words are drawn for this many reports at a time: 256 KiB of words stay in the second-level cache
# between the generator that writes them and the loop that reads them.
_BLOCK = 2**15

# Reports counted at a time, at least: counting takes eight bytes for each.
_COUNTED = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class KRandomizedResponse(SettledRandomizer):
    """k-ary randomized response; Warner's binary randomized response for k = 2.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf]; then of the law drawn, rounded up. At
        inf there is no noise, and a report is the truth: only dummies hide it.

    Attributes
    ----------
    threshold : int
        T: each category but the true one is reported with probability exactly T / 2^64; 0 without
        noise.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Notes
    -----
    Source: Warner 1965 (k = 2); Kairouz, Bonawitz, Ramage, ICML 2016. One 64-bit word w a report:
    if w < (k - 1) T the report is other category number floor(w / T), else the truth. The loss is
    ln((2^64 - (k - 1) T) / T). It cannot exceed 64 ln 2 = 44.4, where T = 1, unless it is infinite.

    Where T would reach floor(2^64 / k), no different probabilities of denominator 2^64 are close
    enough together. Then the report is w mod k, whatever the truth, and epsilon0 is exactly 0.
    This happens below 2 k^2 / 2^64 at most: 3e-17 for k = 16, 1e-5 for k = 10 million.

    Cost: 8 random bytes and a few nanoseconds a report; 1, 2 or 4 bytes of memory.

    Examples
    --------
    >>> randomizer = KRandomizedResponse(domain_size=3, epsilon0=0.6931471805599454)
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['1/2', '1/4', '1/4']
    >>> KRandomizedResponse(domain_size=3, epsilon0=0.0).epsilon0
    0.0
    """

    name: ClassVar[str] = "k-rr"
    largest_channel: ClassVar[int] = 64
    may_be_bare: ClassVar[bool] = True

    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        if math.isinf(epsilon0):
            return {"threshold": 0}, math.inf
        threshold, loss = response_law(epsilon0, self.domain_size)
        is_blind = threshold == WORD_VALUES // self.domain_size
        return {"threshold": threshold}, 0.0 if is_blind else loss

    @property
    def _ignores_input(self) -> bool:
        """True if T is so large that the report is drawn without looking at the truth."""
        return self.epsilon0 == 0.0

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that the report is a category if that is the truth, and if not, as floats."""
        if self._ignores_input:
            return 1.0 / self.domain_size, 1.0 / self.domain_size
        truth = WORD_VALUES - (self.domain_size - 1) * self.threshold
        return truth / WORD_VALUES, self.threshold / WORD_VALUES

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, and the blanket T / 2^64 per category.

        For the pair (x1, x1') the output x1 has ratios (p, 1), x1' has (1, p), and each of the
        other k - 2 has (1, 1); see Balle, Bell, Gascon, Nissim, arXiv:1903.02837.
        """
        k = self.domain_size
        if not self.threshold:
            return self._profile(family=RandomizerFamily.K_RANDOMIZED_RESPONSE)
        ratio = Fraction(1) if self._ignores_input else response_ratio(self.threshold, k)
        mass = 1 / (ratio + k - 1)
        rest = (k - 2) * mass
        blanket = outward_atoms([*mirrored(mass, ratio, 1), (rest, 1, 1)])
        return self._profile(*blanket, family=RandomizerFamily.K_RANDOMIZED_RESPONSE)

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each code. See `CategoryRandomizer`."""
        truth = checks.require_codes(values, self.domain_size)
        out = np.empty(truth.size, dtype=checks.code_type(self.domain_size))
        if not self.threshold:
            out[:] = truth
            return Reports(data=out, fingerprint=self.fingerprint)
        for start in range(0, truth.size, _BLOCK):
            block = truth[start : start + _BLOCK]
            drawn, part = entropy.words(block.size), out[start : start + _BLOCK]
            if self._ignores_input:
                part[:] = drawn % np.uint64(self.domain_size)
            else:
                part[:] = moved_on(block, drawn, self.threshold, self.domain_size)
        return Reports(data=out, fingerprint=self.fingerprint)

    def report_for(self, category: int) -> NDArray[Any]:
        """Return the category itself."""
        return np.array([category], dtype=checks.code_type(self.domain_size))

    def supports(self, reports: Reports) -> Booleans:
        """Category that each report names. See `CategoryRandomizer`."""
        supported: Booleans = self._codes(reports)[:, None] == np.arange(self.domain_size)
        return supported

    def _support(self, reports: Reports) -> Integers:
        """Return the number of reports that name each category."""
        return histogram(self._codes(reports), self.domain_size)

    def _codes(self, reports: Reports) -> NDArray[Any]:
        """Return the categories that the reports name, once checked."""
        law = self.fingerprint, checks.code_type(self.domain_size), self.domain_size
        return checks.require_whole_reports(reports, *law)

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row)."""
        k, other = self.domain_size, Fraction(self.threshold, WORD_VALUES)
        if not self._ignores_input:
            return self._two_valued(1 - (k - 1) * other, other)
        whole, extra = divmod(WORD_VALUES, k)
        codes = range(self.report_columns().num_reports)
        return (tuple(Fraction(whole + (y < extra), WORD_VALUES) for y in codes),) * k

    def _columns(self) -> NDArray[Any]:
        """Return the codes 0, 1, ..., k - 1."""
        return np.arange(self.domain_size, dtype=checks.code_type(self.domain_size))


def moved_on(codes: NDArray[Any], words: Words, threshold: int, k: int) -> Words:
    """Return report i from true code i and word i: symbol number min(w // T, k - 1) past the truth.

    Numbering the symbols from the one after the truth, around the circle, puts the truth itself
    last, as number k - 1: "other symbol number w // T if w < (k - 1) T, else the truth".
    """
    # No step takes a time that depends on the code: quotients by one number are products.
    reports: Words = np.minimum(words // np.uint64(threshold), np.uint64(k - 1))
    reports += codes.astype(np.uint64) + np.uint64(1)
    reports -= np.uint64(k) * (reports >= np.uint64(k))
    return reports


def histogram(codes: NDArray[Any], size: int) -> Integers:
    """Return the number of occurrences of each whole number below ``size``, unchecked."""
    counts = np.zeros(size, dtype=np.int64)
    if codes.dtype == np.uint8 and codes.flags.c_contiguous and codes.size >= 8 * _COUNTED:
        # Two codes at a time, as one number of two bytes, halve the number of steps.
        even = codes.size // 2 * 2
        pairs = histogram(codes[:even].view(np.uint16), 1 << 16).reshape(256, 256)
        counts += (pairs.sum(axis=0) + pairs.sum(axis=1))[:size]
        codes = codes[even:]
    step = max(_COUNTED, 8 * size)
    for start in range(0, codes.size, step):
        counts += np.bincount(codes[start : start + step], minlength=size)
    return counts
