"""``MallowsModel``: the one Protocol of every law of permutations around the identity.

A Mallows model with concentration theta and distance d gives a permutation pi of n items the
probability exp(-theta d(pi, identity)) / psi, where the partition function psi makes the
probabilities sum to 1. The privacy of shuffling within groups is a statement about ratios of these
probabilities (Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR
2022, arXiv:2106.06603v3), so each model here is drawn exactly, tails included.
"""

from typing import ClassVar, Protocol, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations.cayley import CayleyMallows
from shuffledp.groups.permutations.hamming import HammingMallows
from shuffledp.groups.permutations.kendall import KendallMallows


class MallowsModel(Protocol):
    """A law of permutations that prefers those near the identity.

    A permutation is an array ``pi`` of shape (num_items,): ``pi[i]`` is the item at place i.
    """

    #: "kendall", "hamming" or "cayley".
    distance: ClassVar[str]

    @property
    def num_items(self) -> int:
        """Number of items, at least 1."""
        ...

    @property
    def theta(self) -> float:
        """Concentration, in [0, inf]: 0 is the uniform law, inf the identity."""
        ...

    def sample(self, entropy: Entropy) -> NDArray[np.int64]:
        """Draw a permutation, exactly from this law if the words of ``entropy`` are uniform."""
        ...

    def log_partition(self) -> float:
        """Return ln psi, psi being the sum of exp(-theta d(pi)) over all permutations."""
        ...

    def mean_distance(self) -> float:
        """Return the mean of the distance from the identity."""
        ...

    def variance_of_distance(self) -> float:
        """Return the variance of the distance from the identity."""
        ...

    def log_probability(self, pi: ArrayLike) -> float:
        """Return the natural logarithm of the probability of one permutation."""
        ...

    def mean_displacement(self) -> float | None:
        """Return the mean of abs(pi[i] - i), over the law and over the places i.

        None where it would take longer than a few seconds; then it is quicker to draw.
        """
        ...


#: Every model, by the name of its distance.
MALLOWS_MODELS: dict[str, type[KendallMallows | HammingMallows | CayleyMallows]] = {
    model.distance: model for model in (KendallMallows, HammingMallows, CayleyMallows)
}


def mallows_model(distance: str, num_items: SupportsIndex, theta: SupportsFloat) -> MallowsModel:
    """Return the Mallows model of a distance.

    Parameters
    ----------
    distance : str
        "kendall" (inversions), "hamming" (places whose item moved) or "cayley" (swaps needed).
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf]: 0 is the uniform law, inf the identity.

    Returns
    -------
    MallowsModel
        The law proportional to exp(-theta distance).

    Raises
    ------
    ParameterError
        If the distance has no model, or an argument is out of range.

    Examples
    --------
    >>> mallows_model("kendall", 3, 0.0).mean_distance()
    1.5
    """
    model = MALLOWS_MODELS.get(distance)
    if model is None:
        raise ParameterError(
            f"distance = {distance!r} has no Mallows model: choose one of {list(MALLOWS_MODELS)}"
        )
    return model(num_items=num_items, theta=theta)  # type: ignore[arg-type]
