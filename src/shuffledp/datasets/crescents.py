"""Crescents: synthetic people whose private label follows from where they live, at three scales.

Two clusters (warm, cool) lie apart. In each, two crescents (red and orange, blue and green)
interlock. Half of each crescent is light, half is dark. So a label can be told at three
granularities: 8 labels by the halves, 4 by the crescents, 2 by the clusters; and the scale at which
reports are shuffled decides which of them remain.

This follows the description of Fig. 1 of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy
Implications of Shuffling", ICLR 2022, arXiv:2106.06603v3. Their generator is not given there; the
numbers below are ours.
"""

from dataclasses import dataclass
from typing import Final, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy

#: The eight labels, by code: cluster, crescent, half.
LABELS: Final = (
    "dark red",
    "light red",
    "dark orange",
    "light orange",
    "dark blue",
    "light blue",
    "dark green",
    "light green",
)

# A crescent is a half circle of this radius; positions scatter around it with this deviation.
_RADIUS = 1.0
_SCATTER = 0.09
# The second crescent is the first one upside down, so much to the right and up: they interlock.
_SECOND_CRESCENT = (1.0, 0.45)
# From one cluster to the other: far beyond the crescents' own height of about 2.
_SECOND_CLUSTER = (0.0, -3.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crescents:
    """People at public positions, with private labels.

    Parameters
    ----------
    points : ndarray of float64, shape (n, 2)
        Public positions.
    labels : ndarray of uint8, shape (n,)
        Index into `LABELS`; private.
    """

    points: NDArray[np.float64]
    labels: NDArray[np.uint8]

    def __post_init__(self) -> None:
        for each in (self.points, self.labels):
            each.setflags(write=False)


def coarser(labels: NDArray[np.integer], num_ways: int) -> NDArray[np.integer]:
    """Return labels merged to a coarser granularity.

    Parameters
    ----------
    labels : ndarray of int
        Indices into `LABELS`.
    num_ways : {8, 4, 2}
        How many labels are left: all, one a crescent, one a cluster.

    Returns
    -------
    ndarray of int
        In [0, num_ways).

    Examples
    --------
    >>> coarser(np.arange(8), 4).tolist(), coarser(np.arange(8), 2).tolist()
    ([0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1])
    """
    return labels // (len(LABELS) // num_ways)


def draw_crescents(num_users: SupportsIndex, entropy: Entropy) -> Crescents:
    """Draw positions and labels.

    Parameters
    ----------
    num_users : int
        At least 8.
    entropy : Entropy
        Where they come from; seeded for a set that can be drawn again.

    Returns
    -------
    Crescents
        In random order. Each label has floor(n/8) people or one more. The place along a crescent
        is uniform over its half, and both coordinates get independent normal noise of deviation
        0.09 (the crescent's radius is 1).

    Raises
    ------
    ParameterError
        If there are fewer than 8 people.

    Examples
    --------
    >>> crescents = draw_crescents(16, Entropy.from_seed(1))
    >>> np.bincount(crescents.labels).tolist()
    [2, 2, 2, 2, 2, 2, 2, 2]
    """
    count = require_at_least("num_users", num_users, len(LABELS))
    generator = entropy.generator()
    labels = generator.permutation(np.arange(count) % len(LABELS))
    cluster, crescent, half = labels // 4, labels // 2 % 2, labels % 2
    angle = np.pi / 2 * (half + generator.random(count))
    upside_down = 1.0 - 2.0 * crescent
    across = upside_down * _RADIUS * np.cos(angle)
    up = upside_down * _RADIUS * np.sin(angle)
    points = np.column_stack(
        [
            across + crescent * _SECOND_CRESCENT[0] + cluster * _SECOND_CLUSTER[0],
            up + crescent * _SECOND_CRESCENT[1] + cluster * _SECOND_CLUSTER[1],
        ]
    )
    points += _SCATTER * generator.standard_normal(points.shape)
    return Crescents(points=points, labels=labels.astype(np.uint8))
