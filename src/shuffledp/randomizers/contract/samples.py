"""Whether reports are drawn from the channel: a test that errs at a known rate, without tables."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import Reports
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.contract.tools import SMALL_K, ExactLaw, Make, demand

# Probability that correct reports fail `check_samples_follow_channel`.
_FALSE_POSITIVE_RATE = 1e-12
_SAMPLES = 100_000  # a category, where all checks are run


def check_samples_follow_channel(
    randomizer: CategoryRandomizer, *, seed: int, num_reports: int = 1_000_000
) -> None:
    """Check that reports are drawn from the channel, and each independently of the one before.

    Parameters
    ----------
    randomizer : CategoryRandomizer
        With a `channel` and `report_columns`.
    seed : int
        Of the simulation, >= 0. The same seed gives the same answer.
    num_reports : int
        Reports drawn for each category, at least 2.

    Raises
    ------
    ContractError
        If the reports are too unlikely: with a probability of at most 1e-12 if they are correct.
    ParameterError
        If the randomizer has no channel, or an argument is out of range.

    Notes
    -----
    Source: Chernoff's bound (1952): a share s of n reports, each with probability p, is that far
    above p or further with probability at most exp(-n KL(s, p)), and likewise below, for the
    divergence KL of two coins. Bonferroni over all reports of all categories, and over all pairs
    of a report and the next one. The bound holds for every n and p. A share p is found wrong when
    it is off by more than about 8 sqrt(p / n).
    """
    n = require_at_least("num_reports", num_reports, 2)
    law = ExactLaw.of(randomizer)
    k, num_columns = len(law.channel), len(law.channel[0])
    codes = np.repeat(np.arange(k), n)
    reports = randomizer.randomize(codes, Entropy.from_seed(seed))
    columns = _columns_of(law, reports).reshape(k, n)
    num_cells = k * (num_columns + num_columns**2)
    least_log = math.log(_FALSE_POSITIVE_RATE / (2 * num_cells))
    for code, row in enumerate(law.channel):
        probabilities = np.array(row, dtype=np.float64)
        drawn = columns[code]
        _demand_shares(drawn, probabilities, least_log, f"{law} draws, for category {code}, report")
        pairs = drawn[: n // 2 * 2].reshape(-1, 2) @ np.array([num_columns, 1])
        joint = np.outer(probabilities, probabilities).reshape(-1)
        what = f"{law} does not draw reports independently: for category {code}, pair"
        _demand_shares(pairs, joint, least_log, what)


def _demand_shares(
    cells: NDArray[np.int64], probabilities: NDArray[np.float64], least_log: float, what: str
) -> None:
    """Raise `ContractError` if a cell is hit so often, or so rarely, that Chernoff objects."""
    shares = np.bincount(cells, minlength=probabilities.size) / cells.size
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(shares > 0.0, shares * np.log(shares / probabilities), 0.0)
        missed = (1.0 - shares) * np.log((1.0 - shares) / (1.0 - probabilities))
    divergence = hit + np.where(shares < 1.0, missed, 0.0)
    worst = int(divergence.argmax())
    demand(
        -cells.size * float(divergence[worst]) >= least_log,
        f"{what} {worst} with a share of {shares[worst]:.6g}, not {probabilities[worst]:.6g}",
    )


def _columns_of(law: ExactLaw, reports: Reports) -> NDArray[np.int64]:
    """Return the column of the channel that each report stands for."""
    data = np.concatenate([law.columns.data, reports.data])
    width = data.dtype.itemsize * math.prod(data.shape[1:])
    rows = np.zeros((len(data), -(-width // 8) * 8), dtype=np.uint8)
    rows[:, :width] = np.ascontiguousarray(data).reshape(len(data), -1).view(np.uint8)
    words = rows.view(np.uint64)
    keys, number = np.unique(
        words[:, 0] if words.shape[1] == 1 else words, axis=0, return_inverse=True
    )
    num_columns = law.columns.num_reports
    demand(len(keys) == num_columns, f"{law} draws reports that report_columns does not list")
    column_of = np.empty(num_columns, dtype=np.int64)
    column_of[number[:num_columns]] = np.arange(num_columns)
    return column_of[number[num_columns:]]


def check_samples(make: Make) -> bool:
    """Check that reports of few categories and two losses pass `check_samples_follow_channel`."""
    randomizers = [make(k, epsilon0) for k, epsilon0 in itertools.product(SMALL_K, (0.5, 2.0))]
    stating = [each for each in randomizers if each.profile.channel is not None]
    for randomizer in stating:
        check_samples_follow_channel(randomizer, seed=1, num_reports=_SAMPLES)
    return bool(stating)
