"""What an adversary can guess about one person in one collection: ``account_leakage``."""

import math
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_finite, require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.rounding import round_up
from shuffledp.leakage.account import Adversary, LeakageAccount
from shuffledp.leakage.adversary import Scene
from shuffledp.leakage.priors import checked_prior

#: Largest numbers of users and of values that are accounted for.
MOST_USERS, MOST_VALUES = 10**9, 10**4

# Largest channel matrices that are taken.
_MOST_CELLS = 10**6

# Priors whose entries differ by less are uniform: their own round-off.
_UNIFORM = 1e-15


def account_leakage(
    *,
    num_users: SupportsIndex,
    num_values: SupportsIndex | None = None,
    truth: SupportsFloat | None = None,
    epsilon0: SupportsFloat | None = None,
    channel: Any = None,
    adversary: Adversary = "uninformed",
    prior: ArrayLike | None = None,
    known: Sequence[SupportsIndex] | None = None,
    entropy: Entropy | None = None,
) -> LeakageAccount:
    """Tell how often a guess at one person's value is right, before and after a collection.

    Compares users who randomize without a shuffler, a shuffler of true values, and both together.

    Parameters
    ----------
    num_users : int
        Number of users, the person among them, in [1, 1e9].
    num_values : int, optional
        Number k of possible values, in [2, 1e4]. Needed for k-ary randomized response, unless a
        prior says it.
    truth : float, optional
        Probability p, in [1/k, 1], that k-ary randomized response tells the truth.
    epsilon0 : float, optional
        Its local privacy loss in nats, in [0, inf), instead: p = e^epsilon0 / (e^epsilon0 + k - 1),
        rounded up.
    channel : array_like, shape (k, m), or Channel, optional
        Law of the report of each value, for any other randomizer; at most 1e6 entries.
    adversary : {"uninformed", "partial", "strong"}
        Knows nobody's value, those that ``known`` counts, or all others' values.
    prior : array_like of float, shape (k,), optional
        What it believes of the person, and independently of everybody it does not know; sums to 1.
        Uniform by default.
    known : sequence of int, optional
        How many of the others have each value. For ``"partial"`` at most ``num_users - 1`` in all,
        and for ``"strong"`` as many; by default the values from which a strong adversary guesses
        best.
    entropy : Entropy, optional
        For the sizes where only a simulation is quick enough; the operating system's by default.

    Returns
    -------
    LeakageAccount
        Its bounds enclose the exact probabilities: by round-off where there is a quick formula,
        else by proved bounds, or by limits that fail with the probability that ``assumptions``
        state.

    Raises
    ------
    ParameterError
        If not exactly one of truth, epsilon0 and channel is given, or an argument is out of range.
    OutOfRegimeError
        If truth < 1/k.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Sections IV and V, and their
    extensions in docs/results.

    Examples
    --------
    >>> account = account_leakage(num_users=200, num_values=2, truth=0.9)
    >>> account.sentence
    "An adversary guesses one person's answer right 52.25 % of the time instead of 50 %."
    """
    if adversary not in get_args(Adversary):
        raise ParameterError(
            f"adversary = {adversary!r} is not one of {', '.join(get_args(Adversary))}"
        )
    users = require_at_least("num_users", num_users, 1)
    if users > MOST_USERS:
        raise ParameterError(
            f"num_users = {users} is above 1e9: give fewer; the leakage falls with them"
        )
    values, matrix = _values(num_values, channel, prior)
    loss, chance = _loss_and_truth(values, truth, epsilon0, matrix)
    scene = Scene(
        num_users=users,
        num_values=values,
        truth=chance,
        epsilon0=loss,
        matrix=matrix,
        prior=checked_belief(prior, values),
        entropy=Entropy.from_operating_system() if entropy is None else entropy,
    )
    return scene.account(adversary, _counts(known, adversary, users - 1, values))


def _values(
    num_values: SupportsIndex | None, channel: Any, prior: ArrayLike | None
) -> tuple[int, NDArray[np.float64] | None]:
    """Return the number of values, and the channel matrix where one was given."""
    matrix = None if channel is None else _matrix(channel)
    found = None if matrix is None else matrix.shape[0]
    if num_values is not None:
        asked = require_at_least("num_values", num_values, 1)
        if found is not None and asked != found:
            raise ParameterError(
                f"num_values (k) = {asked} and the channel has {found} rows: leave num_values out"
            )
        found = asked
    if found is None and prior is not None:
        found = len(np.atleast_1d(np.asarray(prior)))
    if found is None:
        raise ParameterError("num_values (k) is needed: give the number k of possible answers")
    if found < 2:
        raise ParameterError(
            f"num_values (k) = {found} is below 2: with a single possible answer there is nothing "
            "to guess; give an integer >= 2"
        )
    if found > MOST_VALUES:
        raise ParameterError(f"num_values (k) = {found} is above {MOST_VALUES}: give fewer values")
    return found, matrix


def _matrix(channel: Any) -> NDArray[np.float64]:
    """Return the channel matrix as checked doubles."""
    from shuffledp.leakage.channels.channel import Channel

    law = channel if isinstance(channel, Channel) else Channel.from_matrix(channel)
    if law.num_inputs * law.num_outputs > _MOST_CELLS:
        raise ParameterError(
            f"channel has {law.num_inputs} by {law.num_outputs} entries, above {_MOST_CELLS:.0e}: "
            "merge outputs that say the same"
        )
    return law.to_dense()


def _loss_and_truth(
    num_values: int,
    truth: SupportsFloat | None,
    epsilon0: SupportsFloat | None,
    matrix: NDArray[np.float64] | None,
) -> tuple[float, float | None]:
    """Return the local loss, and the chance of the truth for k-ary randomized response."""
    given = [
        name
        for name, value in (("truth", truth), ("epsilon0", epsilon0), ("channel", matrix))
        if value is not None
    ]
    if len(given) != 1:
        raise ParameterError(
            f"{' and '.join(given) or 'none'} of truth (p), epsilon0 and channel given: give "
            "exactly one, which says how answers are randomized"
        )
    if matrix is not None:
        from shuffledp.accounting.amplification.channel_loss import worst_ratio

        return _log(worst_ratio(matrix).ratio), None
    others = num_values - 1
    if truth is None:
        loss = require_non_negative("epsilon0", epsilon0 or 0.0)
        return loss, _truth_upper(loss, num_values)
    chance = require_finite("truth (p)", truth)
    _require_truth(chance, num_values)
    return _log(math.inf if chance == 1.0 else chance * others / (1.0 - chance)), chance


def _truth_upper(epsilon0: float, num_values: int) -> float:
    """Return p for a local loss, rounded up: more truth never leaks less."""
    if epsilon0 == 0.0:
        return 1.0 / num_values
    return min(round_up(1.0 / (1.0 + (num_values - 1) * math.exp(-epsilon0))), 1.0)


def _log(ratio: float) -> float:
    """Return the logarithm of a ratio >= 1, which may be infinite."""
    return math.inf if ratio == math.inf else math.log(max(ratio, 1.0))


def _require_truth(truth: float, num_values: int) -> None:
    """Raise unless the truth is at least as likely as any other report, and a probability."""
    if not truth <= 1.0:
        raise ParameterError(f"truth (p) = {truth} is not in [1/k, 1]: it is a probability")
    if truth >= 1.0 / num_values:
        return
    remedy = "use the channel matrix instead"
    if num_values == 2 and truth >= 0.0:
        remedy = f"p = {1.0 - truth:.6g} is the same randomizer with its two reports swapped"
    raise OutOfRegimeError(
        f"truth (p) = {truth} is below 1/k = {1.0 / num_values:.6g}: the formulas hold where the "
        f"truth is at least as likely as any other report (p >= 1/k); {remedy}"
    )


def checked_belief(prior: ArrayLike | None, num_values: int) -> NDArray[np.float64] | None:
    """Return a prior as checked doubles; None where it is uniform.

    Parameters
    ----------
    prior : array_like of float, shape (num_values,), or None
        Sums to 1 within 1e-9.
    num_values : int
        k.
    """
    if prior is None:
        return None
    law: NDArray[np.float64] = checked_prior(prior, num_values)
    return None if float(law.max() - law.min()) <= _UNIFORM else law


def _counts(
    known: Sequence[SupportsIndex] | None, adversary: str, num_others: int, num_values: int
) -> tuple[int, ...] | None:
    """Return what is known of the others, as far as this adversary knows anything."""
    if known is None:
        if adversary == "partial":
            raise ParameterError(
                'known is needed for a "partial" adversary: how many of the others have each value'
            )
        return None
    if adversary == "uninformed":
        raise ParameterError(
            'known is for an adversary who knows something: choose "strong" or "partial"'
        )
    counts = tuple(
        require_at_least(f"known[{place}]", count, 0) for place, count in enumerate(known)
    )
    if len(counts) != num_values:
        raise ParameterError(
            f"known has {len(counts)} counts and there are {num_values} values: give one a value"
        )
    total = sum(counts)
    if total > num_others or (adversary == "strong" and total < num_others):
        wanted = "exactly" if adversary == "strong" else "at most"
        raise ParameterError(
            f"known counts {total:,} users, and there are {num_others:,} besides the one guessed "
            f"at: the counts must add up to {wanted} num_users - 1 = {num_others}"
        )
    return counts
