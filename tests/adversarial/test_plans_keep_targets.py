"""No plan promises what it does not give: targets are checked afresh for every candidate."""

import math

import pytest

from shuffledp import (
    AnswerSets,
    Categories,
    Mean,
    VectorMean,
)
from shuffledp.accounting.calibration import largest_epsilon0
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.amplification.registry import account_delta
from shuffledp.collection.choices import Target, guarantee_within
from shuffledp.collection.plan import plan as make_plan
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import InfeasibleTargetError
from shuffledp.randomizers.registry import RANDOMIZERS

KINDS = ("frequencies", "mean", "vector-mean", "answer-sets")


def question(kind, k):
    """A question of that kind, of about k answers."""
    answers = [str(i) for i in range(k)]
    match kind:
        case "frequencies":
            return Categories(domain=answers)
        case "mean":
            return Mean(low=-1, high=3)
        case "vector-mean":
            return VectorMean(names=tuple(answers[:40]))
    return AnswerSets(domain=answers, max_answers=min(k, 3))


def assert_kept(plan):
    """Fail unless the plan and each of its alternatives meet the target."""
    epsilon, delta = plan.target_epsilon, plan.target_delta
    assert plan.guarantee.epsilon_upper <= epsilon
    for randomizer in (plan.randomizer, *(each.randomizer for each in plan.alternatives)):
        profile = randomizer.profile
        found = guarantee_for(profile, plan.num_users, epsilon=epsilon, with_lower=False)
        assert found.delta_upper <= delta, randomizer
        within = guarantee_within(randomizer, Target(plan.num_users, epsilon, delta))
        assert within.epsilon_upper <= epsilon, randomizer
        assert within.epsilon.lower is None or within.epsilon.lower <= within.epsilon.upper


def check_random_plans(kind, seed, count):
    """Check plans for random targets, and return how many of them are feasible."""
    generator = Entropy.from_seed(seed).generator()
    feasible = 0
    for _ in range(count):
        k = int(10 ** generator.uniform(0.31, 2.0))
        num_users = int(10 ** generator.uniform(0.0, 6.0))
        epsilon = float(10 ** generator.uniform(-1.5, 1.0))
        delta = float(10 ** -generator.uniform(2.0, 12.0))
        try:
            plan = make_plan(
                question(kind, max(k, 2)), num_users=num_users, epsilon=epsilon, delta=delta
            )
        except InfeasibleTargetError:
            continue
        assert_kept(plan)
        feasible += 1
    return feasible


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_random_targets(kind):
    assert check_random_plans(kind, seed=KINDS.index(kind), count=3) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_random_targets(kind):
    assert check_random_plans(kind, seed=10 + KINDS.index(kind), count=4) >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_targets_at_the_ends_of_what_is_possible(kind):
    for num_users, epsilon, delta in ((3, 10.0, 1e-6), (6, 50.0, 1e-9), (10**6, 39.99, 1e-300)):
        assert_kept(make_plan(question(kind, 3), num_users=num_users, epsilon=epsilon, delta=delta))


def shape(randomizer):
    """What jumps as epsilon0 grows: the number of buckets, or the size of subsets."""
    return getattr(randomizer, "num_buckets", None) or randomizer.subset_size


def jumps(name, k):
    """Return the epsilon0s at which the shape of a randomizer changes, up to 6."""
    make = RANDOMIZERS[name]
    found = []
    low = 0.05
    while low < 6.0:
        high = low + 0.05
        before = shape(make(domain_size=k, epsilon0=low))
        if shape(make(domain_size=k, epsilon0=high)) != before:
            below, above = low, high
            while above - below > 1e-14 * above:
                middle = 0.5 * (below + above)
                is_before = shape(make(domain_size=k, epsilon0=middle)) == before
                below, above = (middle, above) if is_before else (below, middle)
                if middle in (below, above) and math.nextafter(below, math.inf) >= above:
                    break
            found.append((below, above))
        low = high
    return found


@pytest.mark.parametrize(("name", "k"), [("optimized-local-hashing", 40), ("subset-selection", 16)])
def test_calibration_where_the_law_jumps(name, k):
    make = RANDOMIZERS[name]

    def profile_for(epsilon0):
        return make(domain_size=k, epsilon0=epsilon0).profile

    found = jumps(name, k)
    assert len(found) >= 3
    for i, (below, above) in enumerate(found[:4]):
        num_users, share = ((3, 0.6), (1000, 0.2))[i % 2]
        for around in (below, above):
            target = {"num_users": num_users, "epsilon": share * around}
            reached = account_delta(profile_for(around), **target, with_lower=False).upper
            for delta in (reached * (1.0 - 1e-9), reached, reached * (1.0 + 1e-9)):
                chosen = largest_epsilon0(profile_for, **target, delta=delta)
                given = account_delta(profile_for(chosen), **target, with_lower=False)
                assert given.upper <= delta
