"""Planning: which randomizer, and how much local noise, meets a central (epsilon, delta).

Privacy and mechanisms meet here: for each randomizer the accountant finds the largest epsilon0
that meets the target, and the estimators say which of them then errs least.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

from shuffledp.collection.datasets.labels import checked_domain, require_two_answers
from shuffledp.collection.guarantees import guarantee_for
from shuffledp.collection.results import Guarantee, RunResult, registered_renderer
from shuffledp.collection.run import run_plan
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.mechanisms.estimators.frequencies import expected_standard_error
from shuffledp.mechanisms.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.mechanisms.randomizers.registry import RANDOMIZERS, make_randomizer
from shuffledp.privacy.accounting.calibration import largest_epsilon0
from shuffledp.privacy.amplification.registry import account_delta

# With a larger standard error a 95 % interval is wider than [0, 1]: the estimate says nothing.
USELESS_STANDARD_ERROR = 0.25

# Advice beyond this number of users is of no use.
_MOST_USERS_ADVISED = 10**9

# Leading digits of an epsilon that is advised.
_TWO_DIGITS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A randomizer that meets the target too, with a larger error.

    Parameters
    ----------
    randomizer : CategoryRandomizer
        At the largest epsilon0 that meets the target.
    expected_standard_error : float
        Of a frequency, root mean square over the answers.
    """

    randomizer: CategoryRandomizer
    expected_standard_error: float

    def to_json_dict(self) -> dict[str, object]:
        """Return name, epsilon0 and expected standard error."""
        return {
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "expected_standard_error": self.expected_standard_error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """What another trust model costs.

    Parameters
    ----------
    epsilon_for_same_error : float
        Epsilon (nats) at which that model has the plan's standard error.
    standard_error_at_same_epsilon : float
        Standard error that it has at the plan's epsilon.
    mechanism : str
        What is compared with.
    """

    epsilon_for_same_error: float
    standard_error_at_same_epsilon: float
    mechanism: str

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {
            "mechanism": self.mechanism,
            "epsilon_for_same_error": self.epsilon_for_same_error,
            "standard_error_at_same_epsilon": self.standard_error_at_same_epsilon,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A collection that meets a central target with the least expected error.

    Parameters
    ----------
    num_users : int
        Number of users n whose reports are shuffled together.
    domain : tuple of str
        The k possible answers.
    target_epsilon, target_delta : float
        What was asked for.
    randomizer : CategoryRandomizer
        What each user runs on their own answer.
    guarantee : Guarantee
        What holds for n honest users: epsilon as a `Bound`, at most the target.
    expected_standard_error : float
        Of a frequency, root mean square over the answers; the same whatever the data.
    alternatives : tuple of Alternative
        The other randomizers, best first; the first is the runner-up.
    local_model, central_model : ModelComparison
        The same without a shuffler, and with a trusted curator.
    """

    num_users: int
    domain: tuple[str, ...]
    target_epsilon: float
    target_delta: float
    randomizer: CategoryRandomizer
    guarantee: Guarantee
    expected_standard_error: float
    alternatives: tuple[Alternative, ...]
    local_model: ModelComparison
    central_model: ModelComparison

    def run(self, answers: Iterable[object], **options: Any) -> RunResult:
        """Run the plan on data; see `shuffledp.collection.run.run_plan` for the options.

        Parameters
        ----------
        answers : AnswerColumn or iterable
            One element a user: an opened column, or values in memory.
        **options
            For example ``seed`` for a simulation, or ``confidence``.

        Returns
        -------
        RunResult
            Estimates and the guarantee of exactly this run.
        """
        return run_plan(self, answers, **options)

    def to_json_dict(self) -> dict[str, object]:
        """Return what ``shuffledp plan --json`` prints."""
        return {
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "guarantee": self.guarantee.to_json_dict(),
            "expected_standard_error": self.expected_standard_error,
            "alternatives": [each.to_json_dict() for each in self.alternatives],
            "num_users": self.num_users,
            "domain": list(self.domain),
            "local_model": self.local_model.to_json_dict(),
            "central_model": self.central_model.to_json_dict(),
        }

    def _repr_html_(self) -> str:
        return registered_renderer().plan_html(self)

    def __str__(self) -> str:
        return registered_renderer().plan_text(self)


def make_plan(
    num_users: SupportsIndex,
    domain: Iterable[object],
    epsilon: float,
    delta: float,
    *,
    randomizer: str | None = None,
) -> Plan:
    """Choose the randomizer and its epsilon0 for a central (epsilon, delta) target.

    Parameters
    ----------
    num_users : int
        Number of honest users n whose reports are shuffled together, at least 1.
    domain : iterable
        The possible answers, at least two, all different; each becomes a label, 1 as ``"1"``.
    epsilon : float
        Central target in nats, > 0.
    delta : float
        Central failure probability, in (0, 1); well below 1/n.
    randomizer : str, optional
        Name of the randomizer to use; by default the one with the least expected error.

    Returns
    -------
    Plan
        Whose ``guarantee`` meets the target.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    DomainError
        If the domain has fewer than two answers or repeats one.
    InfeasibleTargetError
        If so few users allow so much noise only that every interval would cover [0, 1]; the
        message says how many users, or which epsilon, would do.

    Notes
    -----
    Cost: about ten calls of the accountant for each randomizer; a second in all for n up to 1e6.

    Examples
    --------
    >>> plan = make_plan(100_000, ["yes", "no", "refused"], epsilon=0.5, delta=1e-8)
    >>> plan.guarantee.epsilon_upper <= 0.5
    True
    """
    users = require_at_least("num_users", num_users, 1)
    epsilon = require_positive("epsilon", epsilon)
    delta = require_open_unit("delta", delta)
    if isinstance(domain, str):
        raise ParameterError(
            f"domain = {domain!r} is a single string: give a list of answers, ['yes', 'no']"
        )
    answers = require_two_answers(checked_domain(domain), "domain")
    if randomizer is not None and randomizer not in RANDOMIZERS:
        make_randomizer(randomizer, k=len(answers), epsilon0=epsilon)  # raises, with a suggestion
    names = tuple(RANDOMIZERS) if randomizer is None else (randomizer,)
    candidates = _candidates(names, users, len(answers), epsilon, delta)
    best = candidates[0]
    if not best.expected_standard_error <= USELESS_STANDARD_ERROR:
        raise _infeasible(names, users, len(answers), epsilon, delta)
    return Plan(
        num_users=users,
        domain=answers,
        target_epsilon=epsilon,
        target_delta=delta,
        randomizer=best.randomizer,
        guarantee=_guarantee_within(best.randomizer, users, epsilon, delta),
        expected_standard_error=best.expected_standard_error,
        alternatives=candidates[1:],
        local_model=_local_model(names, best, users, len(answers), epsilon),
        central_model=_central_model(best.expected_standard_error, users, epsilon),
    )


def _candidates(
    names: Sequence[str], num_users: int, k: int, epsilon: float, delta: float
) -> tuple[Alternative, ...]:
    """Return each randomizer at its largest epsilon0, least expected error first."""
    candidates = []
    for name in names:
        epsilon0 = largest_epsilon0(
            lambda epsilon0, name=name: make_randomizer(name, k=k, epsilon0=epsilon0).profile,  # type: ignore[misc]  # mypy cannot type a default in a lambda
            num_users=num_users,
            epsilon=epsilon,
            delta=delta,
        )
        chosen = make_randomizer(name, k=k, epsilon0=epsilon0)
        candidates.append(
            Alternative(
                randomizer=chosen,
                expected_standard_error=_root_mean_square_error(chosen, num_users),
            )
        )
    return tuple(sorted(candidates, key=lambda each: each.expected_standard_error))


def _root_mean_square_error(randomizer: CategoryRandomizer, num_users: int) -> float:
    """Return the standard error of a frequency, root mean square over the k answers.

    The variance is linear in the frequency and frequencies sum to one, so this mean is the variance
    at 1/k, whatever the data.
    """
    p, q = randomizer.support_probabilities
    if not p > q:
        return math.inf
    return expected_standard_error(
        support_probabilities=(p, q), num_users=num_users, frequency=1.0 / randomizer.k
    )


def _guarantee_within(
    randomizer: CategoryRandomizer, num_users: int, epsilon: float, delta: float
) -> Guarantee:
    """Return the guarantee at ``delta``, with an upper end of at most ``epsilon``.

    Calibration proved that delta holds at ``epsilon``; inverting back ends within its tolerance
    *above* the root, which must not read as a miss.
    """
    guarantee = guarantee_for(randomizer.profile, num_users, delta=delta)
    bound = guarantee.bound
    if bound.upper <= epsilon:
        return guarantee
    proved = account_delta(
        randomizer.profile, num_users=num_users, epsilon=epsilon, with_lower=False
    )
    if proved.upper > delta:
        return guarantee
    lower = None if bound.lower is None else min(bound.lower, epsilon)
    return replace(guarantee, epsilon=replace(bound, lower=lower, upper=epsilon))


def _local_model(
    names: Sequence[str], best: Alternative, num_users: int, k: int, epsilon: float
) -> ModelComparison:
    """Return the comparison with the same reports sent without a shuffler."""
    errors = (
        _root_mean_square_error(make_randomizer(name, k=k, epsilon0=epsilon), num_users)
        for name in names
    )
    return ModelComparison(
        epsilon_for_same_error=best.randomizer.epsilon0,
        standard_error_at_same_epsilon=min(errors),
        mechanism="the best of the same randomizers, reports sent with their senders' names",
    )


def _central_model(standard_error: float, num_users: int, epsilon: float) -> ModelComparison:
    """Return the comparison with Laplace noise on the histogram of a trusted curator.

    Replacing one answer changes two counts by one, so the scale is 2/epsilon and the standard error
    of a frequency sqrt(2) (2/epsilon) / n.
    """
    product = 2.0 * math.sqrt(2.0) / num_users
    return ModelComparison(
        epsilon_for_same_error=product / standard_error,
        standard_error_at_same_epsilon=product / epsilon,
        mechanism="Laplace noise of scale 2/epsilon on each count of a trusted curator",
    )


def _infeasible(
    names: Sequence[str], num_users: int, k: int, epsilon: float, delta: float
) -> InfeasibleTargetError:
    """Return the error that says how many users, or which epsilon, would do.

    Judged by what holds for any randomizer: quicker than each one's own analysis, and since that
    allows no less noise, what is advised does.
    """

    def useful(users: int, target: float) -> bool:
        epsilon0 = largest_epsilon0(
            lambda epsilon0: LocalProfile(epsilon0=epsilon0),
            num_users=users,
            epsilon=target,
            delta=delta,
            relative_tolerance=1e-3,
        )
        randomizers = (make_randomizer(name, k=k, epsilon0=epsilon0) for name in names)
        errors = (_root_mean_square_error(each, users) for each in randomizers)
        return min(errors) <= USELESS_STANDARD_ERROR

    advice = []
    enough = next((users for users in _powers_above(num_users) if useful(users, epsilon)), None)
    if enough is not None:
        too_few = enough // 2
        while enough - too_few > max(1, enough // 50):
            middle = (too_few + enough) // 2
            too_few, enough = (too_few, middle) if useful(middle, epsilon) else (middle, enough)
        advice.append(f"{enough:,} users would do at this target")
    # Two digits, each tried as it is printed.
    steps = (digits * 10.0**power for power in range(-6, 2) for digits in _TWO_DIGITS)
    large = next((e for e in steps if e > epsilon and useful(num_users, e)), None)
    if large is not None:
        advice.append(f"epsilon >= {large:g} with {num_users:,} users")
    return InfeasibleTargetError(
        f"num_users = {num_users} is too few for epsilon = {epsilon:g}, delta = {delta:g} with {k} "
        f"answers: the noise needed would drown every estimate; {', or '.join(advice)}"
    )


def _powers_above(num_users: int) -> Iterator[int]:
    """Yield numbers of users that double, up to a billion."""
    users = 2 * num_users
    while users <= 2 * _MOST_USERS_ADVISED:
        yield users
        users *= 2
