"""Padding and sampling: each user reports one of their answers, drawn at random."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.registry import make_randomizer
from shuffledp.randomizers.sets.answers import NO_ANSWER, require_answers
from shuffledp.randomizers.sets.set_randomizer import (
    SetRandomizer,
    require_own,
    require_set_size,
)
from shuffledp.randomizers.thresholds import WORD_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledAnswers(SetRandomizer):
    """Fill up to s answers with dummies, draw one of the s, and report it at the full epsilon0.

    Parameters
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    k : int
        Number of categories, in [2, 2^32 - 2].
    max_answers : int
        The most answers s that a user may hold, in [1, k].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.

    Attributes
    ----------
    base : CategoryRandomizer
        The base, of k + 1 categories.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no randomizer has that name.

    Notes
    -----
    Source: Qin et al., "Heavy hitter estimation over set-valued data with local differential
    privacy", CCS 2016; Wang, Li, Jha, "Locally differentially private frequent itemset mining",
    S&P 2018 (arXiv:1708.06674). Without the truncation of longer sets that these allow for, the
    estimate is unbiased: longer sets are refused.

    With p and q of the base, a report supports a category that the user holds with probability
    p' = q + (p - q)/s, and any other one with probability q, so that the share f of its holders
    has the variance

        [f p' (1 - p') + (1 - f) q (1 - q)] s^2 / (n (p - q)^2)        (sampling)
        [f p1 (1 - p1) + (s - f) q1 (1 - q1)] / (n (p1 - q1)^2)        (`SplitAnswers`)

    p1 and q1 being the base's at epsilon0 / s. *Which is better*: sampling, unless the privacy is
    so weak that the draw itself makes the error, f (s - 1)/n. For a rare category and base
    optimized-unary these are s^2 / sinh(epsilon0/2)^2 against s / sinh(epsilon0/(2 s))^2, and
    sinh(s x) >= s sinh(x) makes sampling better at every epsilon0, by a factor of at least s. For
    f > 0, splitting wins from this epsilon0 on (k = 16):

    ================  =========  =========  =========  =======
    base              s          f = 0.01   f = 0.1    f = 0.5
    ================  =========  =========  =========  =======
    k-rr              2          10.9       7.5        6.2
    k-rr              3          15.5       10.4       8.1
    optimized-unary   2          12.0       7.4        4.3
    optimized-unary   3          17.2       10.4       6.1
    ================  =========  =========  =========  =======

    Cost: that of the base, and 8 random bytes a report; sorting each set.

    Examples
    --------
    >>> randomizer = SampledAnswers(base_name="k-rr", k=4, max_answers=2, epsilon0=40.0)
    >>> randomizer.name
    'sampled:k-rr'
    >>> sets = np.array([[3, 1], [-1, 3]])
    >>> [[round(p, 6) for p in randomizer.support_probabilities], randomizer.num_report_bytes]
    [[0.5, 0.0], 1]
    >>> randomizer.randomize(sets, Entropy.from_seed(1)).data.shape
    (2,)
    """

    base_name: str
    k: int
    max_answers: int
    epsilon0: float
    base: CategoryRandomizer = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k, max_answers = require_set_size(self.k, self.max_answers)
        base = make_randomizer(self.base_name, k=k + 1, epsilon0=self.epsilon0)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "max_answers", max_answers)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "epsilon0", base.epsilon0)
        fingerprint = fingerprint_of(self.name, base=base.fingerprint, k=k, max_answers=max_answers)
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def name(self) -> str:
        """``"sampled:"`` and the base's name."""
        return f"sampled:{self.base_name}"

    @property
    def num_slots(self) -> int:
        """One: a report speaks of one answer."""
        return 1

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance of support of a category that the user holds, and of another one.

        Rounded to the nearest floats.
        """
        p, q = self.base.support_probabilities
        return q + (p - q) / self.max_answers, q

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket of the base.

        Notes
        -----
        The law of a set is the mean of the base's laws over its s slots. The loss is that of the
        base, which the empty set and a set of s answers reach. Hockey-stick divergences are
        jointly convex, so those of two sets are at most the largest of two single answers; and
        telling the adversary which answers the other users drew can only help. So the base's
        blanket, for its worst pair, bounds this one too. It is not always attained.
        """
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=self.base.profile.blanket,
        )

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return the base's report on one answer of each set. See `SetRandomizer`."""
        answers = require_answers(values, k=self.k, max_answers=self.max_answers)
        slots = uniform_below(self.max_answers, answers.shape[0], entropy)
        drawn = np.take_along_axis(answers, slots.astype(np.int64)[:, None], axis=1)[:, 0]
        codes = np.where(drawn == NO_ANSWER, self.k, drawn)
        reports = self.base.randomize(codes, entropy)
        return Reports(data=reports.data, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return how many reports support each category. See `SetRandomizer`."""
        require_own(reports, self.fingerprint)
        return self._count_slots(reports.data, reports.num_reports)


def uniform_below(bound: int, count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Return independent integers, exactly uniform on [0, bound).

    Parameters
    ----------
    bound : int
        In [1, 2^64 - 1].
    count : int
        How many, at least 0.
    entropy : Entropy
        Source of randomness.

    Returns
    -------
    ndarray of uint64, shape (count,)
        Words modulo ``bound``. Words from the largest multiple of ``bound`` on are drawn again,
        which a fraction of bound / 2^64 of them are at most.

    Examples
    --------
    >>> bool((uniform_below(3, 1000, Entropy.from_seed(1)) < 3).all())
    True
    """
    require_at_least("bound", bound, 1)
    words = entropy.words(count)
    num_surplus = WORD_VALUES % bound
    if num_surplus:
        last = np.uint64(WORD_VALUES - num_surplus - 1)
        again = np.flatnonzero(words > last)
        while again.size:
            words[again] = entropy.words(again.size)
            again = again[words[again] > last]
    return words % np.uint64(bound)
