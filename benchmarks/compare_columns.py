"""Cross-tables of all pairs of eight columns of the UCI Adult census, at one central guarantee.

Prints the table of docs/benchmarks.md: ours, the published ways of several attributes as formulas
(SPL, SMP and RS+FD of Arcolezi et al., CIKM 2021, each pair an attribute, with k-RR or optimized
unary encoding, whichever errs less), and a trusted curator's Gaussian mechanism. Run it with the
folder of the file: ``python benchmarks/compare_columns.py data``. About a minute on one core.
"""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import shuffledp as sdp
from shuffledp.accounting.calibration import largest_epsilon0
from shuffledp.accounting.dummies import gaussian_parameter
from shuffledp.randomizers import make_randomizer

EPSILON, DELTA = 1.0, 1e-6
PLACES = {"workclass": 1, "education": 3, "marital": 5, "occupation": 6, "relationship": 7}
PLACES |= {"race": 8, "sex": 9, "income": 14}


def adult(folder: str) -> pl.DataFrame:
    """The eight columns."""
    census = pl.read_csv(Path(folder) / "adult.data", has_header=False, infer_schema=False)
    census = census.drop_nulls()
    return pl.DataFrame({name: census[:, at].str.strip_chars() for name, at in PLACES.items()})


def rms(sizes: tuple[int, ...], error_of: dict[int, float]) -> float:
    """Root mean square of the errors over all cells."""
    return math.sqrt(sum(size * error_of[size] ** 2 for size in sizes) / sum(sizes))


def best_error(size: int, num_users: int, epsilon0: float = 0.0, *, of: int = 1) -> float:
    """Standard error of k-RR or OUE about all users, of whom one in ``of`` reports.

    At ``epsilon0``, or else the largest that those who report allow, by the law's own analysis.
    """
    share, found = 1.0 / size, []
    for name in ("k-rr", "optimized-unary"):
        make = partial(make_randomizer, name, domain_size=size)
        own = epsilon0 or largest_epsilon0(
            lambda e, make=make: make(epsilon0=e).profile,
            num_users=num_users // of,
            epsilon=EPSILON,
            delta=DELTA,
        )
        p, q = make(epsilon0=own).support_probabilities
        noise = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        found.append((of * noise + (of - 1) * share * (1.0 - share)) / num_users)
    return math.sqrt(min(found))


def fake_data_error(size: int, num_users: int, epsilon0: float, of: int) -> float:
    """Standard error of RS+FD[GRR]: one attribute at a larger loss, fake data for the others."""
    larger = math.log(of * math.expm1(epsilon0) + 1.0)
    q = 1.0 / (math.exp(larger) + size - 1.0)
    p, share = math.exp(larger) * q, 1.0 / size
    chance = (q + share * (p - q)) / of + (of - 1) / (of * size)
    variance = of**2 * chance * (1.0 - chance) / (p - q) ** 2 - share * (1.0 - share)
    return math.sqrt(variance / num_users)


def main() -> None:
    """Print the table."""
    table = adult(sys.argv[1])
    num_users = table.height
    domains = {name: sorted(table[name].unique()) for name in table.columns}
    question = sdp.Columns(domains, pairs="all")
    sizes, number = question.sizes, len(question.pairs)
    target = {"num_users": num_users, "epsilon": EPSILON, "delta": DELTA}
    print(f"{num_users:,} users, {number} pairs, {sum(sizes):,} cells: rms standard error")
    generic = largest_epsilon0(lambda e: sdp.LocalProfile(epsilon0=e), **target)
    ways = {
        "SPL, split": {k: best_error(k, num_users, generic / number) for k in set(sizes)},
        "SMP, public sample": {k: best_error(k, num_users, of=number) for k in set(sizes)},
        "RS+FD[GRR]": {k: fake_data_error(k, num_users, generic, number) for k in set(sizes)},
    }
    for name, errors in ways.items():
        print(f"{name:<44}{100 * rms(sizes, errors):10.4f}%")
    cells = slice(question.num_margins, None)
    for name, how in {
        "shuffledp, one part of each user": {},
        "shuffledp, all parts among dummies": {"dummies": "shuffler", "no_local_noise": True},
    }.items():
        plan = sdp.plan(question, **target, **how)
        print(f"{name:<44}{100 * plan.expected_standard_error:10.4f}%")
        found = sdp.run(plan, table, seed=1, post_processing=["consistent"]).estimates
        error = float(np.sqrt((found.standard_error[cells] ** 2).mean()))
        print(f"{'    made consistent':<44}{100 * error:10.4f}%")
    noise = math.sqrt(2 * number) / (gaussian_parameter(EPSILON, DELTA) * num_users)
    print(f"{'trusted curator, Gaussian noise':<44}{100 * noise:10.4f}%")


if __name__ == "__main__":
    main()
