"""The guarantee of one shuffled collection, for whichever of epsilon and delta is not given."""

from shuffledp.collection.results import Guarantee
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.mechanisms.randomizers.registry import RANDOMIZERS, make_randomizer
from shuffledp.privacy.amplification.registry import BEST, account_delta, account_epsilon

# Of these the accountant needs no more than epsilon0, and of k-RR the number of answers.
_NAMED_FAMILIES = tuple(
    family
    for family in RandomizerFamily
    if family not in (RandomizerFamily.ANY, RandomizerFamily.OTHER)
)


def guarantee_for(
    profile: LocalProfile,
    num_users: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str = BEST,
    with_lower: bool = True,
) -> Guarantee:
    """Return what holds for ``num_users`` shuffled reports of one randomizer.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law, or ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number of honest users, at least 1.
    epsilon, delta : float, optional
        Exactly one of them: central epsilon in nats, or failure probability. The other is bounded.
    method : str
        Name of a method of the accountant; the smallest sound one by default.
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Guarantee
        The computed one of the two as a `Bound`, whose upper end is safe to publish.

    Raises
    ------
    ParameterError
        If not exactly one of epsilon and delta is given, or a parameter is out of range.
    OutOfRegimeError, PrecisionError
        As for `account_epsilon`.

    Examples
    --------
    >>> guarantee_for(LocalProfile(epsilon0=1.0), 100, epsilon=1.0).delta_upper
    0.0
    """
    if delta is not None and epsilon is None:
        bound = account_epsilon(
            profile, num_users=num_users, delta=delta, method=method, with_lower=with_lower
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)
    if epsilon is not None and delta is None:
        bound = account_delta(
            profile, num_users=num_users, epsilon=epsilon, method=method, with_lower=with_lower
        )
        return Guarantee(epsilon=float(epsilon), delta=bound, num_users=num_users)
    raise ParameterError(
        f"epsilon = {epsilon} and delta = {delta}: give exactly one of them; the other is computed"
    )


def account(
    *,
    epsilon0: float,
    num_users: int,
    epsilon: float | None = None,
    delta: float | None = None,
    randomizer: str | None = None,
    k: int | None = None,
    method: str = BEST,
) -> Guarantee:
    """Tell how private a shuffled collection is; what ``shuffledp account`` prints.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss of each report in nats, >= 0.
    num_users : int
        Number of honest users in one shuffled batch, at least 1.
    epsilon, delta : float, optional
        Exactly one of them; the other is bounded.
    randomizer : str, optional
        A name of ``RANDOMIZERS``, such as ``"k-rr"``. By default the answer holds for any
        epsilon0-LDP randomizer; naming it gives a smaller one.
    k : int, optional
        Number of possible answers, at least 2; needed for all but the unary encodings.
    method : str
        Name of a method of the accountant; the smallest sound one by default.

    Returns
    -------
    Guarantee
        The computed one of the two as a `Bound`, whose upper end is safe to publish.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or k is missing or given without a randomizer.
    OutOfRegimeError, PrecisionError
        As for `account_epsilon`.

    Examples
    --------
    >>> round(account(epsilon0=1.0, num_users=10_000, delta=1e-6).epsilon_upper, 6)
    0.043206
    """
    if randomizer is None:
        if k is not None:
            raise ParameterError(f"k = {k} needs a randomizer: without one k makes no difference")
        profile = LocalProfile(epsilon0=epsilon0)
    else:
        profile = _named_profile(randomizer, k, epsilon0)
    return guarantee_for(profile, num_users, epsilon=epsilon, delta=delta, method=method)


def _named_profile(randomizer: str, k: int | None, epsilon0: float) -> LocalProfile:
    """Return the profile of a randomizer of categories."""
    if randomizer in _NAMED_FAMILIES:
        return LocalProfile(epsilon0=epsilon0, family=RandomizerFamily(randomizer), domain_size=k)
    if randomizer not in RANDOMIZERS:
        raise ParameterError(
            f"randomizer = {randomizer!r} is not one of {', '.join(RANDOMIZERS)}; for any other "
            "one leave it out, which is safe"
        )
    if k is None:
        raise ParameterError(f"k is needed for {randomizer}: pass the number of answers")
    return make_randomizer(randomizer, k=k, epsilon0=epsilon0).profile
