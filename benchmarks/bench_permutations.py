"""Speed of the Mallows samplers, beside the repeated insertion model that textbooks give.

``extra_info`` has items a second. The baseline draws Kendall's model with floats: item by item it
inserts into a Python list, so it moves O(n) pointers at each step.
"""

import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.mallows import MallowsModel

# Kendall: from nearly uniform to nearly the identity; the others: half the items move.
THETAS = {
    "kendall": lambda _: (1e-8, 1e-4, 0.01, 1.0, 20.0),
    "hamming": lambda num_items: (0.01, math.log(num_items / 2)),
    "cayley": lambda num_items: (0.01, math.log(num_items)),
}
CASES = [
    (name, num_items, theta)
    for name, thetas in THETAS.items()
    for num_items in (10**5, 10**6, 10**7)
    for theta in thetas(num_items)
]


def record(benchmark, num_items):
    """Store speed beside the times."""
    if benchmark.enabled:
        speed = num_items / 1e6 / benchmark.stats.stats.min
        benchmark.extra_info["million_items_a_second"] = speed


@pytest.mark.parametrize(("name", "num_items", "theta"), CASES)
def test_sample(benchmark, name, num_items, theta):
    benchmark.group = f"{name} {num_items:.0e} items, theta = {theta:.3g}"
    model = MallowsModel(distance=name, num_items=num_items, theta=theta)
    MallowsModel(distance=name, num_items=1000, theta=theta).sample(
        Entropy.from_seed(0)
    )  # compiles
    entropy = Entropy.from_operating_system()
    benchmark.pedantic(model.sample, args=(entropy,), rounds=3)
    record(benchmark, num_items)


def insert_repeatedly(num_items, theta, generator):
    """Draw from Kendall's model by repeated insertion: item i is inserted j places from the end."""
    uniforms = generator.random(num_items)
    order = []
    for item, uniform in enumerate(uniforms.tolist()):
        # Inversion of the truncated geometric law on {0, ..., item}.
        mass = -math.expm1(-theta * (item + 1))
        overtaken = min(int(-math.log1p(-uniform * mass) / theta), item)
        order.insert(item - overtaken, item)
    return np.array(order)


@pytest.mark.parametrize(
    ("num_items", "theta"),
    [case[1:] for case in CASES if case[0] == "kendall" and case[1] < 10**6],
)
def test_repeated_insertion(benchmark, num_items, theta):
    benchmark.group = f"kendall {num_items:.0e} items, theta = {theta:.3g}"
    generator = Entropy.from_operating_system().generator()
    benchmark.pedantic(insert_repeatedly, args=(num_items, theta, generator), rounds=1)
    record(benchmark, num_items)
