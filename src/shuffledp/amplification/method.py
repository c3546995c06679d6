"""``Method``: one published or proved result, as data that the registry can choose among."""

from collections.abc import Callable
from dataclasses import dataclass, field

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
