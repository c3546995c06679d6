"""One collection seen by differential privacy and by leakage, side by side.

The two answer different questions, and may rank mechanisms differently. Differential privacy bounds
what changes if one person's value does, whoever looks; a vulnerability is how often a given
adversary guesses a value right. Shuffled true answers have no finite epsilon, and whoever knows all
others reads off the missing one, while who knows nobody learns next to nothing.

Source: after Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Sections IV to VI.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionView:
    """What differential privacy and leakage say of one collection.

    Parameters
    ----------
    name : str
        Of the mechanism.
    epsilon : Bound
        Central epsilon at the delta that was asked for; inf where there is none.
    uninformed : Bound
        How often one person's value is guessed right by who knows nobody's; values are uniform and
        independent.
    strong : Bound
        The same for who knows all others' values, for the worst such values.
    """

    name: str
    epsilon: Bound
    uninformed: Bound
    strong: Bound

    def to_json_dict(self) -> dict[str, Any]:
        """Return plain values for a program; None for an epsilon that is not finite."""
        finite = math.isfinite(self.epsilon.upper)
        return {
            "name": self.name,
            "epsilon": self.epsilon.upper if finite else None,
            "uninformed": [self.uninformed.lower, self.uninformed.upper],
            "strong": [self.strong.lower, self.strong.upper],
        }


def compare_views(
    num_users: SupportsIndex,
    num_values: SupportsIndex,
    truths: Iterable[float],
    *,
    delta: SupportsFloat,
) -> tuple[CollectionView, ...]:
    """Return both views of k-ary randomized response, shuffled and not, and of a shuffler alone.

    Parameters
    ----------
    num_users : int
        n >= 1.
    num_values : int
        k >= 2.
    truths : iterable of float
        Chances in [1/k, 1) that a report is true. 1 is the shuffler alone, which is always there.
    delta : float
        Of the central guarantee, in [0, 1).

    Returns
    -------
    tuple of CollectionView
        The shuffler alone, then for each truth the randomizer without a shuffler, and with it.

    Raises
    ------
    ParameterError
        If a number is out of range.
    OutOfRegimeError
        If a truth is below 1/k.

    Notes
    -----
    Cost: an account, an expected maximum load and a search for the worst knowledge for each truth;
    up to some seconds.

    Examples
    --------
    >>> alone, noise, both = compare_views(200, 2, [0.9], delta=1e-6)
    >>> alone.epsilon.upper, alone.strong.upper, round(alone.uninformed.upper, 4)
    (inf, 1.0, 0.5282)
    >>> round(noise.epsilon.upper, 4), round(noise.uninformed.upper, 4)
    (2.1972, 0.9)
    >>> round(both.epsilon.upper, 4), round(both.uninformed.upper, 4), round(both.strong.upper, 4)
    (1.1462, 0.5225, 0.5378)
    """
    users = require_at_least("num_users", num_users, 1)
    values = require_at_least("num_values", num_values, 2)
    allowed = require_delta(delta)
    views = [_shuffler_alone(users, values)]
    for truth in truths:
        views.extend(_with_noise(users, values, truth, allowed))
    return tuple(views)


def _shuffler_alone(num_users: int, num_values: int) -> CollectionView:
    """Return the view of true answers in random order."""
    from shuffledp.leakage.uninformed.closed_forms import shuffler_vulnerability

    return CollectionView(
        name="shuffler alone",
        # If all others have one value, the last one shows: delta would have to be 1.
        epsilon=_exactly(math.inf, "definition"),
        uninformed=shuffler_vulnerability(num_users, num_values),
        strong=_exactly(1.0, "definition"),
    )


def _with_noise(
    num_users: int, num_values: int, truth: float, delta: float
) -> tuple[CollectionView, CollectionView]:
    """Return the views of randomized response, without a shuffler and with it."""
    from shuffledp.leakage.channels.builders import checked_truth
    from shuffledp.leakage.informed.knowledge import worst_knowledge
    from shuffledp.leakage.uninformed.closed_forms import shuffled_vulnerability

    p = float(checked_truth(truth, num_values))
    if p == 1.0:
        raise ParameterError("truths has a 1: that is the shuffler alone, which is there anyway")
    ratio = max(p * (num_values - 1) / (1.0 - p), 1.0)
    epsilon0 = math.log(ratio) * (1.0 + 1e-15) + 1e-15
    profile = LocalProfile(
        epsilon0=epsilon0,
        family=RandomizerFamily.K_RANDOMIZED_RESPONSE,
        domain_size=num_values,
    )
    seen = _exactly(p, "definition")
    alone = CollectionView(
        name=f"randomizer alone, p = {p:g}",
        epsilon=account_epsilon(profile, num_users=1, delta=delta),
        uninformed=seen,
        strong=seen,
    )
    both = CollectionView(
        name=f"both, p = {p:g}",
        epsilon=account_epsilon(profile, num_users=num_users, delta=delta),
        uninformed=shuffled_vulnerability(num_users, num_values, p),
        strong=worst_knowledge(num_users, num_values, p).vulnerability,
    )
    return alone, both


def _exactly(value: float, method: str) -> Bound:
    """Return a bound whose ends are one number."""
    return Bound(lower=value, upper=value, method=method, source="definition", assumptions=())
