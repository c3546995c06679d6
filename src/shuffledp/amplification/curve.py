"""``HockeyStickCurve``: the divergences of one release, all that composition needs of it.

For a pair of laws P, Q the hockey-stick divergence H(P, Q; e^epsilon) = sum max(P - e^epsilon Q, 0)
at every epsilon determines the distribution of the privacy loss ln(P / Q), hence how the pair
composes (Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10 and Lemma 9).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure


@dataclass(frozen=True, slots=True)
class HockeyStickCurve:
    """The hockey-stick divergences of one pair of laws, or bounds for many pairs.

    Parameters
    ----------
    forward, backward : callable
        Map epsilon >= 0 (nats) to an enclosure of H(P, Q; e^epsilon) and of H(Q, P; e^epsilon).
        The upper ends of a guarantee dominate every pair of neighbours in either order, so there
        both are the same; those of explicit data may differ.
    highest : float
        An epsilon from which on both are 0; ``inf`` where there is none.
    method, source : str
        Method and source of the upper ends, as in `Bound`.

    Notes
    -----
    Negative epsilon needs no values of its own: H(P, Q; 1/e) = 1 - 1/e + H(Q, P; e) / e.
    """

    forward: Callable[[float], Enclosure]
    backward: Callable[[float], Enclosure]
    highest: float
    method: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.highest >= 0.0:
            raise ParameterError(f"highest = {self.highest} is not in [0, inf]")

    @property
    def reversed(self) -> "HockeyStickCurve":
        """The curve of the pair in the other order."""
        return replace(self, forward=self.backward, backward=self.forward)

    def strength(self, epsilon: float) -> float:
        """Return the larger lower end of the two orders at one epsilon."""
        return max(self.forward(epsilon).lower, self.backward(epsilon).lower)
