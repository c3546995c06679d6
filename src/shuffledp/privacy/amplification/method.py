"""``Method``: one published or proved result, as data that the registry can choose among."""

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
    supersedes : tuple of str
        Methods that are never smaller where this one applies, so that "best" can skip them.
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
    """

    name: str
    source: str
    statement: str
    assumptions: tuple[str, ...] = ()
    automatic: bool = True
    supersedes: tuple[str, ...] = ()
    proved_here: bool = False
    is_exact: bool = False
    violated_hypothesis: Callable[[LocalProfile, int, float | None], str | None]
    epsilon: Callable[[LocalProfile, int, float], Enclosure]
    delta: Callable[[LocalProfile, int, float], Enclosure]
