"""What questions share whose values are rows of codes, of which each is one part of the value."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.core.reports import Counts
from shuffledp.randomizers.parts import AllParts, Parts, SampledParts


class InParts(question.Shares):
    """Shares of users in the bins of several parts, one histogram each.

    A kind gives ``sizes``, the number of bins of each part, and labels for all bins in order.
    """

    __slots__ = ()

    expected_for: ClassVar[str] = "root mean square over all bins"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each part."""
        raise NotImplementedError

    @property
    def no_values(self) -> NDArray[np.int64]:
        """Values of no users."""
        return np.empty((0, len(self.sizes)), dtype=np.int64)

    @property
    def central_sensitivity(self) -> float:
        """Replacing one value changes two counts of each part by one."""
        return 2.0 * len(self.sizes)

    @property
    def expected_spread(self) -> float:
        """Variance of the share of a bin that one user in k_l has, averaged over all bins."""
        return sum(1.0 - 1.0 / size for size in self.sizes) / sum(self.sizes)

    def candidates(self) -> question.Candidates:
        """Return the randomizer that reports one part of the value, drawn at random."""
        return question.candidates_of({SampledParts.name: SampledParts}, sizes=self.sizes)

    def dummy_candidates(self) -> question.Candidates:
        """Return the randomizer that reports every part."""
        return question.candidates_of({AllParts.name: AllParts}, sizes=self.sizes)

    def expected_error(
        self, randomizer: Parts, num_users: int, dummies: question.Laws = ()
    ) -> float:
        """Return the standard error of a share, root mean square over the bins of all parts.

        The variance is a concave function of the share, and the shares of a part sum to one: that
        at 1/k_l in every bin is the largest that their mean can be.
        """
        errors = (
            size * randomizer.bin_error(part, 1.0 / size, num_users, dummies) ** 2
            for part, size in enumerate(self.sizes)
        )
        return math.sqrt(sum(errors) / sum(self.sizes))

    def shift_by_one(
        self, randomizer: Parts, num_users: int, counts: Counts | None = None
    ) -> NDArray[np.float64]:
        """Return the largest change of each bin's share, whatever part the user reports on.

        Of parts that users draw it is known once the users of each are counted; before that as if
        all parts had equally many.
        """
        return randomizer.shift_by_one(num_users, counts)

    def frequent_error(
        self,
        randomizer: Parts,
        num_users: int,
        frequency: float | None = None,
        dummies: question.Laws = (),
    ) -> float | None:
        """Return the largest standard error, over all parts, of a share of this size.

        Over all sizes, if None: the variance is concave, and known at 101 of them.
        """
        shares = np.linspace(0.0, 1.0, 101).tolist() if frequency is None else [frequency]
        return max(
            randomizer.bin_error(part, share, num_users, dummies)
            for share in shares
            for part in range(len(self.sizes))
        )
