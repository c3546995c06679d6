"""``Method``, one published or proved result, and ``HockeyStickCurve``, what composition needs.

For a pair of laws P, Q the hockey-stick divergence H(P, Q; e^epsilon) = sum max(P - e^epsilon Q, 0)
at every epsilon determines the distribution of the privacy loss ln(P / Q), hence how the pair
composes (Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10 and Lemma 9).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile

# A hypothesis that holds in its last digits only is taken to fail.
HAIR = 1.0 + 1e-14


def pure_violation(
    profile: LocalProfile, _num_users: int = 1, _delta: float | None = None
) -> str | None:
    """Return the hypothesis that a result on pure epsilon0-LDP needs, or None where it holds."""
    if profile.delta0 == 0.0:
        return None
    return "delta0 = 0 (pure epsilon0-LDP; 'approximate-local' is for delta0 > 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An upper bound on the privacy loss of one uniform shuffle.

    Parameters
    ----------
    name : str
        Value of ``method=`` and ``--method``.
    source : str
        Title or authors, arXiv id with version, theorem.
    statement : str
        One sentence a reader can check against the source.
    epsilon, delta : callable
        ``(profile, num_users, delta)`` and ``(profile, num_users, epsilon, width)`` to an enclosure
        of the *bound's own* value; unless ``is_exact``, only its upper end is meaningful. A method
        may return any end up to the optional ``width`` wider, relative to epsilon, if that saves
        time; 0 is as narrow as it gets.
    assumptions : tuple of str
        Assumptions beyond the ones common to all methods.
    automatic : bool
        Whether "best" tries it. Closed forms that another method always beats need not be.
    proved_here : bool
        Whether the documentation has a proof of our own; otherwise the source is the only one.
    is_exact : bool
        Whether the lower end of its enclosures is attained by some data, hence unavoidable.
    violated_hypothesis : callable
        ``(profile, num_users, delta)`` to a sentence naming the hypothesis that fails, or ``None``.
        ``delta`` is ``None`` where epsilon is the one given.
    """

    name: str
    source: str
    statement: str
    epsilon: Callable[[LocalProfile, int, float], Enclosure] = field(repr=False)
    delta: Callable[..., Enclosure] = field(repr=False)
    assumptions: tuple[str, ...] = ()
    automatic: bool = True
    proved_here: bool = False
    is_exact: bool = False
    violated_hypothesis: Callable[[LocalProfile, int, float | None], str | None] = field(
        default=pure_violation, repr=False
    )


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
