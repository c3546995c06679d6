"""A program of a user, for `test_user_code`: it must pass mypy --strict as it is.

What a notebook, somebody with parameters to justify and a device do is in it.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import shuffledp as sdp
from shuffledp.deploy import Answer, AskedTerms, Client, Limits, Task
from shuffledp.deploy.client import Kept
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
sizes: list[float] = [
    each.guarantee.epsilon_upper
    for each in sdp.plan(plan.question, num_users=[50, 1000], epsilon=1.0, delta=1e-6).rows
]
guess: float = limited.without_shuffler.right_guess
reloaded: sdp.Plan = sdp.Plan.load(limited.save("plan.json"))
from_file: sdp.Result = sdp.estimate("reports.csv", reloaded, missing="drop", strict=True)
columns: dict[str, list[object]] = result.to_dict()
table = result.to_pandas()
page: Path = result.report("report.html", about=sdp.collection.About(title="A survey"))

guarantee: sdp.Guarantee = sdp.account(plan.randomizer.profile, num_users=1000, delta=1e-6)
bound: sdp.Bound = guarantee.bound
unavoidable: float | None = bound.lower
compared = sdp.compare_bounds(epsilon0=1.0, num_users=1000, delta=1e-6)
best: float = compared.best
methods: list[str] = [each.method.name for each in compared.useful]
numbers = np.array([50, 1000])
of_numpy: sdp.Guarantee = sdp.account(
    epsilon0=np.float32(1.0), num_users=numbers.max(), delta=np.float64(1e-6)
)
planned: list[sdp.Plan[FrequencyEstimates]] = [
    sdp.plan(sdp.Categories(["a", "b"]), num_users=each, epsilon=np.float32(1.0), delta=1e-6)
    for each in numbers
]
print(sdp.calibrate(num_users=np.int64(50), epsilon=np.float32(1.0), delta=1e-6))
print(sdp.compare_bounds(epsilon0=np.float32(1.0), num_users=np.int64(50), delta=1e-6))
brackets: dict[str, list[object]] = sdp.account(epsilon0=[1, 2], num_users=50, delta=1e-6).to_dict()
central: float = sdp.account(epsilon0=1.0, num_users=50, delta=1e-6).epsilon_upper

asked: AskedTerms = AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0, "Well?")


def report_of(task: Task, answer: str, now: float) -> bytes:
    """Take part in a task on a device, within what its user agrees to."""
    with Client(task, Path("device.db"), limits=Limits(max_epsilon0=3.0)) as client:
        kept: Kept = client.report(answer, now)
        told: Answer = client.send(patience_seconds=5.0)
    print(told.name)
    return kept.report


def told(data: bytes) -> float:
    """Read a task, and say what it keeps."""
    return Task.decode(data).guarantee().epsilon_upper
