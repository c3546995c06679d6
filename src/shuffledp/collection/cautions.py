"""What is allowed but should make a user think twice, one sentence each."""

import math

from shuffledp.collection.group_facts import GroupFacts
from shuffledp.collection.results import Guarantee

# A shuffle that leaves more than this share of epsilon0 hardly amplifies.
_HARDLY = 0.9


def delta_cautions(delta: float, num_users: int) -> tuple[str, ...]:
    """Return a warning if ``delta`` is so large that it permits publishing someone's answer.

    Parameters
    ----------
    delta : float
        Failure probability, in [0, 1).
    num_users : int
        Number of users.

    Returns
    -------
    tuple of str
        Empty where ``delta < 1 / num_users``.

    Examples
    --------
    >>> delta_cautions(1e-8, 1000)
    ()
    >>> len(delta_cautions(0.01, 1000))
    1
    """
    if delta * num_users < 1.0:
        return ()
    return (
        f"delta = {delta:g} is not below 1/num_users = {1 / num_users:g}: publishing one user's "
        f"answer in the clear would meet it; ask for a far smaller one, such as "
        f"{0.001 / num_users:.0e}.",
    )


def amplification_cautions(
    guarantee: Guarantee, epsilon0: float, facts: GroupFacts
) -> tuple[str, ...]:
    """Return a warning if a shuffle within groups amplifies far less than a uniform one might.

    Parameters
    ----------
    guarantee : Guarantee
        Of the release; its lower end is that of a uniform shuffle.
    epsilon0 : float
        Of the randomizer.
    facts : GroupFacts
        Of its groups and its shuffler.

    Returns
    -------
    tuple of str
        Empty where epsilon is below nine tenths of epsilon0, where the lower end is above a half of
        epsilon, and where alpha is infinite.
    """
    epsilon, lower = guarantee.epsilon_upper, guarantee.lower or 0.0
    if math.isinf(facts.alpha) or epsilon < _HARDLY * epsilon0 or lower > 0.5 * epsilon:
        return ()
    share = f"central epsilon is {epsilon:.3g}, and epsilon0 = {epsilon0:.3g}"
    if facts.rank_distance == "kendall":
        return (
            f"Kendall's distance gives next to no central amplification here: {share}. Within "
            "groups it promises alpha all the same. --shuffler displacement, or --rank-distance "
            "hamming or cayley, which do not keep reports near, may give a smaller epsilon.",
        )
    return (
        f"There is next to no central amplification here: {share}. Somebody has few others nearby "
        "to hide among; a smaller alpha moves reports farther.",
    )
