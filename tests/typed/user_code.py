"""A program of a user, for `test_user_code`: it must pass mypy --strict as it is."""

import numpy as np
from numpy.typing import NDArray

import shuffledp as sdp
from shuffledp.estimation import FrequencyEstimates, MeanEstimates

answers = ["yes"] * 300 + ["no"] * 700

plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-6)
result: sdp.Result[FrequencyEstimates] = sdp.run(plan, answers, seed=1)
frequency: NDArray[np.float64] = result.estimates.frequency
upper: float = result.guarantee.epsilon_upper

ages = sdp.plan(sdp.Mean(0, 120), num_users=1000, epsilon=1.0, delta=1e-6, randomizer="duchi")
mean: sdp.Result[MeanEstimates] = sdp.run(ages, range(18, 98), seed=1)
middle: NDArray[np.float64] = mean.estimates.mean

reports = plan.randomizer.randomize(np.array([0, 1, 1]), sdp.Entropy.from_seed(1))
again: sdp.Result[FrequencyEstimates] = sdp.estimate(reports, plan)


def shown(anything: sdp.Result) -> str:
    """Take the result of any question."""
    return str(anything)


print(shown(result), shown(mean), sdp.account(plan.randomizer.profile, num_users=50, delta=1e-6))
print(sdp.calibrate(num_users=1000, epsilon=1.0, delta=1e-6).epsilon0)
law = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=1.0)
year: sdp.accounting.Composition = sdp.ShuffledRelease(profile=law.profile, num_users=100) * 365

limited = sdp.plan(
    sdp.Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-6, max_epsilon0=2.0
)
guess: float = limited.without_shuffler.right_guess
reloaded: sdp.Plan = sdp.Plan.load(limited.save("plan.json"))
from_file: sdp.Result = sdp.estimate("reports.csv", reloaded, missing="drop", strict=True)
columns: dict[str, list[object]] = result.to_dict()
table: dict[str, list[object]] = sdp.account(epsilon0=[1, 2], num_users=50, delta=1e-6).to_dict()
central: float = sdp.account(epsilon0=1.0, num_users=50, delta=1e-6).epsilon_upper
