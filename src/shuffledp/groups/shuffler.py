"""Shuffling within groups: people trade answers with those near them in a reference order.

The reference order sigma0 puts the members of groups close together. In its coordinates the places
are rearranged by a permutation pi with probability proportional to exp(-theta d(pi)), a Mallows
model around the identity: the person at place j gets the answer of the person at place pi(j).
Among people that is sigma* = sigma0 pi sigma0^-1.

Why it protects (Theorem 4.3 of the paper): if data sets differ by a rearrangement inside a group G,
then an output that comes from one by pi comes from the other by kappa pi, where kappa moves only
the places of G. The distances of the two differ by at most the sensitivity Delta of d to G, so the
probabilities of any output differ by a factor of at most exp(theta Delta). This is
d_sigma-privacy with alpha = theta Delta.

The paper's Algorithm 1 prints sigma* = sigma0^-1 sigma_hat with sigma_hat = sigma0 pi, which is not
private: with five people, the group {1, 3, 5} and sigma0 = (1 3 5 2 4) the factor is exp(7 theta)
where exp(3 theta) is claimed. The form above is what its Appendix A.10 does in the example.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Integers
from shuffledp.core.entropy import Entropy
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsModel, mallows_model
from shuffledp.groups.permutations import alpha_above, require_alpha, require_reports, theta_below
from shuffledp.groups.reference_orders import ReferenceOrder, choose_reference_order, sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class MallowsShuffler:
    """Permutes answers near where they were, so that nobody's neighbours give them away.

    Made by `for_groups`, which finds a reference order and the theta of a wanted alpha.

    Parameters
    ----------
    reference : ReferenceOrder
        Where people stand while they are shuffled, and the rank distance of the model.
    theta : float
        Concentration of the Mallows model, in [0, inf]: 0 is a uniform shuffle of everybody, inf
        leaves all as it was.
    groups, alpha : Groups and float, optional
        What `for_groups` was asked for, which a result reports.

    Notes
    -----
    Source: this module; Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of
    Shuffling", ICLR 2022, arXiv:2106.06603v3, Algorithm 1, Theorems 4.3 and 4.4. It assumes
    that the permutation is drawn independently of the answers and kept secret, and that groups
    and reference order are made from public data. Cost: the model's sampler, and two
    random accesses a row.

    Examples
    --------
    >>> groups = Groups.from_distance([20, 21, 35, 36], 1, metric="absolute")
    >>> shuffler = MallowsShuffler.for_groups(groups, 2.0)
    >>> shuffler.theta, shuffler.alpha_for(groups)
    (2.0, 2.0)
    >>> answers = np.array([3, 1, 4, 1])
    >>> sorted(shuffler.shuffle(answers, Entropy.from_operating_system()).tolist())
    [1, 1, 3, 4]
    """

    #: What results call it.
    name: ClassVar[str] = "mallows"

    reference: ReferenceOrder
    theta: float
    groups: Groups | None = field(default=None, repr=False, compare=False)
    alpha: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", self.model.theta)

    @classmethod
    def for_groups(
        cls,
        groups: Groups,
        alpha: SupportsFloat,
        *,
        distance: str = "kendall",
        coordinates: ArrayLike | None = None,
        metric: str = "euclidean",
    ) -> Self:
        """Return a shuffler that is (alpha, groups)-d_sigma-private and moves people little.

        Parameters
        ----------
        groups : Groups
            Who is hidden among whom.
        alpha : float
            The privacy wanted, in [0, inf]: the order inside each group changes the probability of
            any output by a factor of at most e^alpha. 0 is a uniform shuffle of everybody; inf
            shuffles nothing.
        distance : {"kendall", "hamming", "cayley"}
            The rank distance of the model. Only Kendall's keeps people near their places.
        coordinates, metric
            Help to find the reference order; see `choose_reference_order`.

        Returns
        -------
        MallowsShuffler
            With theta = alpha / Delta rounded down, so that theta Delta <= alpha exactly. If every
            group is one person, there is nothing to hide, and theta is inf.
        """
        wanted = require_alpha(alpha)
        mallows_model(distance, groups.num_users, 0.0)  # refuses what cannot be drawn
        reference = choose_reference_order(
            groups, distance=distance, coordinates=coordinates, metric=metric
        )
        theta = theta_below(wanted, reference.sensitivity)
        return cls(reference=reference, theta=theta, groups=groups, alpha=wanted)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return self.reference.num_users

    @property
    def model(self) -> MallowsModel:
        """The law of the permutation in the coordinates of the reference order."""
        return mallows_model(self.reference.distance, self.reference.num_users, self.theta)

    def alpha_for(self, groups: Groups) -> float:
        """Return the alpha that this shuffler gives to any groups of the same people.

        theta Delta(groups), never below the exact product; the paper's Theorem 4.4, for the exact
        sensitivity. Inf if theta is inf and some group has two members. Cost: O(memberships).
        """
        exact = sensitivity(self.reference.distance, groups, self.reference.places)
        return alpha_above(self.theta, exact)

    def draw(self, entropy: Entropy) -> Integers:
        """Draw sigma*: person i gets the answer of person ``sigma[i]``.

        Exactly of this law given uniform words. Whoever sees it sees through the shuffle.
        """
        order = self.reference.order
        sigma = np.empty_like(order)
        sigma[order] = order[self.model.sample(entropy)]
        return sigma

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows rearranged; row i of the result lies in the place of person i.

        Parameters
        ----------
        reports : ndarray, shape (num_users, ...)
            Row i is the report of person i. Not changed.
        entropy : Entropy
            As for `draw`.

        Returns
        -------
        ndarray
            A new C-contiguous array of the same shape and type: row i is the report of some
            person near i in the reference order.

        Raises
        ------
        ParameterError
            If ``reports`` is a single number, holds Python objects, or has not one row a person.
        """
        require_reports(reports, self.num_users)
        return np.ascontiguousarray(reports[self.draw(entropy)])
