"""All methods by name, and the choice of the smallest sound one.

The answer is always a `Bound`: proved at its upper end, and with a lower end that explicit data
prove unavoidable wherever such data are known.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from shuffledp.amplification import clones_and_families as families
from shuffledp.amplification import closed_forms
from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.binary_randomized_response import BINARY_EXACT
from shuffledp.amplification.channel_blanket import CHANNEL_BLANKET
from shuffledp.amplification.dummies import added_sentence
from shuffledp.amplification.local import APPROXIMATE_LOCAL, LOCAL
from shuffledp.amplification.lower_bounds import unavoidable_delta, unavoidable_epsilon
from shuffledp.amplification.method import Method
from shuffledp.amplification.stated_blanket import STATED_BLANKET
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.checks import require_at_least, require_delta, require_non_negative
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily
from shuffledp.core.progress import logger

BEST = "best"

# From the most specific to the most general; the first of equals is named.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            BINARY_EXACT,
            families.K_RR_BLANKET,
            families.UNARY_BLANKET,
            STATED_BLANKET,
            CHANNEL_BLANKET,
            families.CLONES,
            APPROXIMATE_LOCAL,
            LOCAL,
            closed_forms.FELDMAN_2023_CLOSED,
            families.FELDMAN_2021_NUMERICAL,
            closed_forms.FELDMAN_2021_CLOSED,
            closed_forms.BLANKET_BENNETT,
            closed_forms.BLANKET_HOEFFDING,
            closed_forms.ERLINGSSON,
            closed_forms.ERLINGSSON_MODERATE,
            closed_forms.ERLINGSSON_SMALL,
        )
    }
)

# Assumptions of every method; a Bound repeats them because they are part of the claim.
SHUFFLE_ASSUMPTIONS = (
    "The adversary sees the multiset of reports and nothing that tells whose or in which order: "
    "the shuffler is uniform and colludes with nobody who sees the reports.",
    "All counted users are honest: each applies this randomizer once to one value, with fresh "
    "secret randomness. Users who collude with the adversary or send nothing do not count.",
    "Neighbouring datasets differ in one user's value; the number of users is public.",
)

#: Assumptions where a shuffler's dummies are enough: none on the other users.
DUMMY_ASSUMPTIONS = (
    SHUFFLE_ASSUMPTIONS[0],
    "The other users may do what they like.",
    SHUFFLE_ASSUMPTIONS[2],
)

# Relative error budget of two ends that meet.
_MEETING = 1e-8

# Beyond this the windows of the sums no longer fit a minute; double precision ends at 9e15.
_MOST_USERS = 10**15


def account_epsilon(
    profile: LocalProfile,
    *,
    num_users: int,
    delta: float,
    method: str = BEST,
    with_lower: bool = True,
    dummies: DummyLaw | None = None,
) -> Bound:
    """Bound the central epsilon of one uniformly shuffled collection.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number n of honest users in the batch, 1 to 1e15.
    delta : float
        Central delta, in [0, 1).
    method : str
        A key of `METHODS`, or ``"best"`` for the smallest sound one.
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.
    dummies : DummyLaw, optional
        Law of the reports that belong to nobody and are shuffled with the others, of every possible
        report: added by the shuffler, when ``num_users=1`` stands for all others being dishonest,
        or by each of the users. They never raise the bound.

    Returns
    -------
    Bound
        On epsilon in nats. ``upper`` errs upwards and is proved; ``lower`` errs downwards.

    Raises
    ------
    ParameterError
        If an argument is out of range or the method unknown.
    OutOfRegimeError
        If the method's theorem does not apply; the message names the hypothesis.
    PrecisionError
        If round-off dominates the answer.

    Notes
    -----
    Cost: milliseconds to tenths of a second at any n, up to about a second where delta is tiny.

    Examples
    --------
    >>> bound = account_epsilon(LocalProfile(epsilon0=1.0), num_users=10_000, delta=1e-6)
    >>> round(bound.upper, 8), bound.method
    (0.04320616, 'clones')
    >>> account_epsilon(LocalProfile(epsilon0=1.0), num_users=10_000, delta=0.0).upper
    1.0
    >>> bare, dummies = LocalProfile(epsilon0=math.inf), DummyLaw.from_text("laplace:2.025:27")
    >>> bound = account_epsilon(bare, num_users=1, delta=7.9e-7, dummies=dummies)
    >>> round(bound.lower, 6), round(bound.upper, 6)
    (0.987654, 0.987654)
    """
    delta = require_delta(delta)
    if dummies is not None:
        asked = {"num_users": num_users, "delta": delta, "method": method}
        return _with_dummies(account_epsilon, profile, dummies, asked, with_lower=with_lower)
    if delta < profile.delta0:
        raise OutOfRegimeError(
            f"delta = {delta:.6g} is below delta0 = {profile.delta0:.6g}, with which a report may "
            "reveal everything: no epsilon is known there; ask for a larger delta"
        )
    chosen = applicable_methods(method, profile, num_users, delta)
    if delta == 0.0 and method not in {BEST, LOCAL.name}:
        raise OutOfRegimeError(
            f"method {method!r} needs delta > 0; at delta = 0 use method='local' or 'best'"
        )
    if delta == 0.0 or _is_extreme(profile):
        chosen = [LOCAL]  # for delta = 0 see the attack below
    results = _evaluate(chosen, num_users, lambda each, users: each.epsilon(profile, users, delta))
    if math.isinf(profile.epsilon0) and all(math.isinf(found.upper) for _, found in results):
        raise OutOfRegimeError(
            "epsilon0 = inf: without local noise no finite epsilon holds at any number of users "
            "unless dummies hide the reports; pass dummies, or a finite epsilon0"
        )
    attack: float | None = None
    if profile.epsilon0 == 0.0:
        attack = 0.0
    elif with_lower and delta == 0.0 and profile.family is not RandomizerFamily.OTHER:
        # All n reports equal the victim's value: a likelihood ratio of e^epsilon0, whatever n.
        # A randomizer without a family need not reach its epsilon0.
        attack = profile.epsilon0 * (1.0 - 4.0 * math.ulp(1.0))
    elif with_lower and not _is_extreme(profile):
        # What is unavoidable at a tiny delta is at delta = 0, too.
        attack = unavoidable_epsilon(profile, num_users, max(delta, SMALLEST_DELTA))
    found = _smallest(results, attack, with_lower=with_lower)
    logger.debug("%d users, delta = %g: epsilon about %.4g", num_users, delta, found.upper)
    return found


def account_delta(
    profile: LocalProfile,
    *,
    num_users: int,
    epsilon: float,
    method: str = BEST,
    with_lower: bool = True,
    width: float = 0.0,
    dummies: DummyLaw | None = None,
) -> Bound:
    """Bound the central delta of one uniformly shuffled collection at a given epsilon.

    Parameters
    ----------
    profile, num_users, method, with_lower, dummies
        As for `account_epsilon`.
    epsilon : float
        Central epsilon in nats, >= 0.
    width : float
        Largest excess of the upper end over the narrowest one, relative to epsilon, where that
        saves time: for a search that is far from its answer, >= 0. 0 is as narrow as it gets.

    Returns
    -------
    Bound
        On delta. An upper end is at least 1e-300 unless delta is exactly 0, as it is from epsilon0
        on.

    Raises
    ------
    ParameterError, OutOfRegimeError, PrecisionError
        As for `account_epsilon`.

    Examples
    --------
    >>> account_delta(LocalProfile(epsilon0=1.0), num_users=10, epsilon=1.0).upper
    0.0
    """
    epsilon = require_non_negative("epsilon", epsilon)
    width = require_non_negative("width", width)
    if dummies is not None:
        asked = {"num_users": num_users, "epsilon": epsilon, "method": method, "width": width}
        return _with_dummies(account_delta, profile, dummies, asked, with_lower=with_lower)
    chosen = applicable_methods(method, profile, num_users, None)
    if _is_extreme(profile):
        chosen = [LOCAL]
    attack: float | None = None
    if epsilon >= profile.epsilon0 and profile.delta0 == 0.0:
        results = [(LOCAL, Enclosure(0.0, 0.0))]
        attack = 0.0
    else:
        # The lower end of an exact method is worth its time.
        results = _evaluate(
            chosen,
            num_users,
            lambda each, users: each.delta(
                profile, users, epsilon, 0.0 if with_lower and each.is_exact else width
            ),
        )
        # delta is 0 only from epsilon0 on; below it, underflow must not make it 0.
        results = [
            (each, Enclosure(found.lower, max(found.upper, SMALLEST_DELTA)))
            for each, found in results
        ]
        if with_lower and not _is_extreme(profile):
            attack = unavoidable_delta(profile, num_users, epsilon)
    found = _smallest(results, attack, with_lower=with_lower)
    logger.debug("%d users, epsilon = %g: delta about %.4g", num_users, epsilon, found.upper)
    return found


def _with_dummies(
    account: Callable[..., Bound],
    profile: LocalProfile,
    law: DummyLaw,
    asked: dict[str, Any],
    *,
    with_lower: bool,
) -> Bound:
    """Return the least of the bounds with dummies and of the bound without them.

    Dummies ignore the values: adding them is post-processing. A named method is evaluated without
    them.
    """
    users = require_at_least("num_users", asked["num_users"], 1)
    found: list[Bound] = []
    lower = None
    if asked["method"] == BEST:
        from shuffledp.amplification.dummy_crowds import dummy_ends

        target = {name: asked[name] for name in ("epsilon", "delta") if name in asked}
        uppers, lower = dummy_ends(profile, users, law, with_lower=with_lower, **target)
        for curve, upper in uppers.items():
            is_alone = curve.method.startswith("shuffler-dummies")
            assumed = DUMMY_ASSUMPTIONS if is_alone else SHUFFLE_ASSUMPTIONS
            found.append(
                Bound(
                    lower=None,
                    upper=upper,
                    method=curve.method,
                    source=curve.source,
                    assumptions=(*assumed, added_sentence(law)),
                )
            )
    unknown = (OutOfRegimeError, PrecisionError) if asked["method"] == BEST else ()
    with suppress(*unknown):
        found.append(account(profile, **asked, with_lower=False))
    if all(math.isinf(each.upper) for each in found):
        raise OutOfRegimeError(
            f"dummies = {law} give no finite epsilon here: ask for a larger delta, or give a wider "
            "law or local noise"
        )
    return least_over(found, lower)


def _evaluate(
    chosen: list[Method], num_users: int, enclose: Callable[[Method, int], Enclosure]
) -> list[tuple[Method, Enclosure]]:
    """Return each method's bound; among several, methods dominated by round-off are skipped."""
    if len(chosen) == 1:
        return [(chosen[0], _for_fewer(chosen[0], num_users, enclose))]
    results = []
    for each in chosen:
        with suppress(PrecisionError):
            results.append((each, _for_fewer(each, num_users, enclose)))
    return results


def _for_fewer(
    method: Method, num_users: int, enclose: Callable[[Method, int], Enclosure]
) -> Enclosure:
    """Return the bound of a method; where round-off dominates, its upper end for fewer users.

    Further reports can be added afterwards, so a bound for fewer users holds for all of them.
    """
    try:
        return enclose(method, num_users)
    except PrecisionError:
        if num_users == 1:
            raise
        return Enclosure(0.0, _for_fewer(method, num_users // 2, enclose).upper)


def _is_extreme(profile: LocalProfile) -> bool:
    """Return True if reports ignore the values, or reveal them beyond what a crowd can hide."""
    hides_everything = profile.epsilon0 == 0.0 and profile.delta0 == 0.0
    return hides_everything or profile.epsilon0 > LARGEST_EPSILON0


def applicable_methods(
    method: str, profile: LocalProfile, num_users: int, delta: float | None
) -> list[Method]:
    """Return the methods to evaluate: the one named, or all that apply and may be smallest.

    Refuses a number of users out of range, and a method of that name that does not apply.
    """
    require_at_least("num_users", num_users, 1)
    if num_users > _MOST_USERS:
        raise ParameterError(
            f"num_users = {num_users} is above {_MOST_USERS:.0e}: account for 1e15 users instead, "
            "more users only lower epsilon"
        )
    if method == BEST:
        return [
            each
            for each in METHODS.values()
            if each.automatic and each.violated_hypothesis(profile, num_users, delta) is None
        ]
    if str(method) not in METHODS:
        near = get_close_matches(str(method), METHODS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"method = {method!r} is not one of {', '.join((BEST, *METHODS))}{hint}"
        )
    named = METHODS[method]
    if (violated := named.violated_hypothesis(profile, num_users, delta)) is not None:
        at = f"epsilon0 = {profile.epsilon0:.6g}, num_users = {num_users}"
        at += f", delta = {delta:.3g}" if delta is not None else ""
        raise OutOfRegimeError(
            f"method {method!r} needs {violated} ({named.source}), but {at}; method={BEST!r} "
            "applies everywhere"
        )
    return [named]


def _smallest(
    results: list[tuple[Method, Enclosure]], attack: float | None, *, with_lower: bool
) -> Bound:
    """Return the smallest upper end as a `Bound`, over the largest lower end that is proved."""
    method, enclosure = min(results, key=lambda result: result[1].upper)
    if math.isinf(enclosure.upper):
        raise OutOfRegimeError(
            f"method {method.name!r} gives no finite bound here; use method={BEST!r}"
        )
    proved = [] if attack is None else [attack]
    if with_lower:
        proved += [result.lower for each, result in results if each.is_exact]
    bound = Bound(
        lower=None,
        upper=enclosure.upper,
        method=method.name,
        source=method.source,
        assumptions=SHUFFLE_ASSUMPTIONS + method.assumptions,
    )
    return least_over([bound], max(proved, default=None))


def carried_over(
    bound: Bound, *, method: str, upper: float, source: str, assumptions: tuple[str, ...]
) -> Bound:
    """Return a bound on a uniform shuffle as one on another release, with no lower end.

    The assumptions of the other release take the place of the uniform shuffle's.
    """
    extra = tuple(text for text in bound.assumptions if text not in SHUFFLE_ASSUMPTIONS)
    return replace(
        bound,
        lower=None,
        upper=upper,
        method=method,
        source=source,
        assumptions=assumptions + extra,
    )


def least_over(found: Iterable[Bound], lower: float | None) -> Bound:
    """Return the bound with the smallest upper end, over a lower end that all of them have."""
    best = min(found, key=lambda each: each.upper)
    kept = reconciled_lower(lower, best.upper, tolerance=_MEETING, claim=f"method {best.method!r}")
    return replace(best, lower=kept)
