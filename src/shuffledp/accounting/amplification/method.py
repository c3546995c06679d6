"""``Method``: one published or proved result, as data that the registry can choose among.

Hypotheses that several results share, as the sentences that ``violated_hypothesis`` returns.
"""

from collections.abc import Callable
from dataclasses import dataclass

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An upper bound on the privacy loss of one uniform shuffle.

    Parameters
    ----------
    name : str
        What ``method=`` and ``--method`` take.
    source : str
        Title or authors, arXiv id with version, theorem.
    statement : str
        One sentence a reader can check against the source.
    assumptions : tuple of str
        What it needs beyond the assumptions of every method.
    automatic : bool
        Whether "best" tries it. Closed forms that another method always beats need not be.
    proved_here : bool
        Whether the documentation has a proof of our own; otherwise the source is the only one.
    is_exact : bool
        Whether the lower end of its enclosures is attained by some data, hence unavoidable.
    violated_hypothesis : callable
        ``(profile, num_users, delta)`` to a sentence naming the hypothesis that fails, or ``None``.
        ``delta`` is ``None`` where epsilon is the one given.
    epsilon, delta : callable
        ``(profile, num_users, delta)`` and ``(profile, num_users, epsilon)`` to an enclosure of
        the *bound's own* value; unless ``is_exact``, only its upper end says anything.
    epsilon_above, delta_above : callable, optional
        The same upper ends alone, where that saves time; at any width >= 0 of the enclosure,
        relative to epsilon, as a last argument of ``delta_above``. A width of 0 stands for the one
        that ``delta`` has.
    """

    name: str
    source: str
    statement: str
    assumptions: tuple[str, ...] = ()
    automatic: bool = True
    proved_here: bool = False
    is_exact: bool = False
    violated_hypothesis: Callable[[LocalProfile, int, float | None], str | None]
    epsilon: Callable[[LocalProfile, int, float], Enclosure]
    delta: Callable[[LocalProfile, int, float], Enclosure]
    epsilon_above: Callable[[LocalProfile, int, float], float] | None = None
    delta_above: Callable[[LocalProfile, int, float, float], float] | None = None

    def epsilon_ends(
        self, profile: LocalProfile, num_users: int, delta: float, *, with_lower: bool
    ) -> Enclosure:
        """Return ``epsilon``, whose lower end may be 0 if it is not asked for or says nothing."""
        if self.epsilon_above is None or (with_lower and self.is_exact):
            return self.epsilon(profile, num_users, delta)
        return Enclosure(0.0, self.epsilon_above(profile, num_users, delta))

    def delta_ends(
        self,
        profile: LocalProfile,
        num_users: int,
        epsilon: float,
        *,
        with_lower: bool,
        width: float = 0.0,
    ) -> Enclosure:
        """Return ``delta``, whose lower end may be 0 if it is not asked for or says nothing."""
        if self.delta_above is None or (with_lower and self.is_exact):
            return self.delta(profile, num_users, epsilon)
        return Enclosure(0.0, self.delta_above(profile, num_users, epsilon, width))


# In doubt about the last digits of a hypothesis, it is taken to fail.
HAIR = 1.0 + 1e-14


def pure_violation(profile: LocalProfile) -> str | None:
    """Return the hypothesis that a result on pure epsilon0-LDP needs, or None where it holds."""
    if profile.delta0 == 0.0:
        return None
    return "delta0 = 0 (pure epsilon0-LDP; 'approximate-local' is for delta0 > 0)"
