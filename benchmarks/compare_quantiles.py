"""Shares of users below the edges of ordered bins, at one central guarantee.

Prints the table of docs/benchmarks.md: root mean square of the standard errors of the cumulative
shares. Of ours; of the published ways as formulas (Cormode, Kulkarni, Srivastava, VLDB 2019:
optimized unary encoding of the bins, or of a tree with four children a node, one level for each
public group of users, consistent by least squares); of a trusted curator's Laplace noise on the
best tree. Run it with ``python benchmarks/compare_quantiles.py``. Half a minute on one core.
"""

import math
from functools import partial

import numpy as np

import shuffledp as sdp
from shuffledp.accounting.calibration import largest_epsilon0
from shuffledp.estimation.distributions import Tree, level_sizes
from shuffledp.randomizers import make_randomizer

EPSILON, DELTA, NUM_USERS = 1.0, 1e-6, 32_561


def unary_error(sizes: tuple[int, ...], num_users: int) -> float:
    """Standard error of cumulative shares by OUE, each level asked of a share of the users."""
    number, variances = len(sizes), []
    for size in sizes:
        make = partial(make_randomizer, "optimized-unary", domain_size=size)
        epsilon0 = largest_epsilon0(
            lambda e, make=make: make(epsilon0=e).profile,
            num_users=num_users // number,
            epsilon=EPSILON,
            delta=DELTA,
        )
        p, q = make(epsilon0=epsilon0).support_probabilities
        share = 1.0 / size
        noise = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        variances.append((noise + share) * number / num_users)
    tree, edges = Tree(sizes, tuple(variances)), np.arange(1, sizes[-1])
    below = edges / sizes[-1]
    found = tree.variance(np.zeros_like(edges), edges, variances)
    return math.sqrt((found - below * (1.0 - below) / num_users).mean())


def main() -> None:
    """Print the table."""
    target = {"num_users": NUM_USERS, "epsilon": EPSILON, "delta": DELTA}
    print(f"{NUM_USERS:,} users: rms standard error of cumulative shares")
    for bins in (16, 128, 1024):
        question = sdp.Distribution(bins=bins, limits=(0, bins))
        plan = sdp.plan(question, **target)
        bare = sdp.plan(question, **target, dummies="shuffler", no_local_noise=True)
        ways = {
            "flat, OUE": unary_error((bins,), NUM_USERS),
            "tree, OUE, public groups": unary_error(level_sizes(bins), NUM_USERS),
            f"ours, {plan.randomizer.name}": plan.expected_standard_error,
            f"ours, dummies, {bare.randomizer.name}": bare.expected_standard_error,
            "curator": plan.central_model.standard_error_at_same_epsilon,
        }
        print(f"{bins} bins")
        for name, error in ways.items():
            print(f"  {name:40} {100.0 * error:.3f} %")


if __name__ == "__main__":
    main()
