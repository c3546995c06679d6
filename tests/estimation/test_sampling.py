"""Estimates about everybody from the reports of some: exact sampling variance, wider intervals."""

import math
from itertools import combinations

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Counts, Sums
from shuffledp.estimation.frequencies import estimate_frequencies
from shuffledp.estimation.means import NoiseLaw, estimate_means

# Without noise of a randomizer, so that sampling is the only error.
EXACT = (1.0, 0.0)
SILENT = NoiseLaw(share=0.0)


def sums_of(values):
    rows = np.asarray(values, dtype=float).reshape(len(values), -1)
    return Sums(
        total=rows.sum(axis=0),
        total_of_squares=(rows**2).sum(axis=0),
        num_reports=len(rows),
        fingerprint="",
    )


def frequencies(support, num_reports, probabilities=EXACT, **options):
    counts = Counts(support=np.array(support), num_reports=num_reports, fingerprint="")
    return estimate_frequencies(counts, support_probabilities=probabilities, **options)


def test_the_sampling_variance_is_that_of_all_samples():
    values = [1, 1, 0, 0, 0, 1, 0]
    share = sum(values) / len(values)
    found = [
        frequencies([sum(sample), 4 - sum(sample)], 4).for_all_users(len(values))
        for sample in combinations(values, 4)
    ]
    estimates = np.array([each.frequency[0] for each in found])
    assert estimates.mean() == pytest.approx(share)
    # Taken at the true share; the estimate takes it at the estimated one.
    unit = (7 - 4) / (4 * 6)
    assert estimates.var() == pytest.approx(unit * share * (1.0 - share))
    for each in found:
        at = each.frequency[0]
        assert each.standard_error[0] == pytest.approx(math.sqrt(unit * at * (1.0 - at)))
        assert each.count[0] == pytest.approx(7 * at)
        assert each.num_users == 7


@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_are_wider_and_hold_the_others(simultaneous):
    sample = frequencies([40, 35, 55], 100, (0.6, 0.3), simultaneous=simultaneous)
    everybody = sample.for_all_users(1_000)
    assert (everybody.lower < sample.lower).all()
    assert (everybody.upper > sample.upper).all()
    assert (everybody.standard_error > sample.standard_error).all()
    assert (everybody.frequency == sample.frequency).all()
    assert (everybody.interval, everybody.confidence) == (sample.interval, sample.confidence)
    # More people who are not seen make it wider still, to a limit.
    more = sample.for_all_users(1_000_000)
    assert (more.upper - more.lower > everybody.upper - everybody.lower).all()


def test_an_interval_adds_the_variances():
    sample = frequencies([50], 100, (0.75, 0.25))
    everybody = sample.for_all_users(10_000)
    # Its frequency is one half, where a share's variance is largest.
    added = 1.959963984540054**2 * (10_000 - 100) / (100 * 9_999) / 4.0
    own = ((sample.upper[0] - sample.lower[0]) / 2.0) ** 2
    assert everybody.upper[0] == pytest.approx(0.5 + math.sqrt(own + added))
    assert everybody.lower[0] == pytest.approx(0.5 - math.sqrt(own + added))


def test_an_answer_that_no_report_supports_may_still_exist():
    sample = frequencies([0, 100], 100)
    assert sample.upper[0] == 0.0
    everybody = sample.for_all_users(1_000_000)
    # Where up to three of a hundred have it, a sample of a hundred may well hold none of them.
    assert everybody.upper[0] > 0.03


def test_who_is_seen_whole_is_left_alone():
    sample = frequencies([3, 1], 4)
    assert sample.for_all_users(4) is sample


def test_a_mean_strays_as_all_samples_say():
    values = np.array([1.0, 5.0, 2.0, 2.0, 9.0, 0.0, 3.0])
    samples = [values[list(rows)] for rows in combinations(range(7), 4)]
    found = [estimate_means(sums_of(sample), noise=SILENT).for_all_users(7) for sample in samples]
    assert np.mean([each.mean[0] for each in found]) == pytest.approx(values.mean())
    variance = np.var([each.mean[0] for each in found])
    # Unbiased: the mean of the estimated variances over all samples is that of the samples' means.
    assert np.mean([each.standard_error[0] ** 2 for each in found]) == pytest.approx(variance)
    for each, sample in zip(found, samples, strict=True):
        assert each.population_standard_error[0] == pytest.approx(sample.std(ddof=1) / 2.0)
        margin = 1.959964 * each.standard_error[0]
        assert each.upper[0] - each.mean[0] == pytest.approx(margin)
        assert each.lower[0] == pytest.approx(each.mean[0] - margin)
        assert each.num_users == 7


def test_simultaneous_means_of_a_sample_stay_simultaneous():
    rows = np.array([[0.0, 5.0, 1.0], [2.0, 1.0, 1.5], [4.0, 3.0, 4.0]])
    each = estimate_means(sums_of(rows), confidence=1 - 0.05 / 3).for_all_users(9)
    together = estimate_means(sums_of(rows), simultaneous=True).for_all_users(9)
    assert together.lower == pytest.approx(each.lower)
    assert together.upper == pytest.approx(each.upper)


def test_fewer_users_than_reports_are_refused():
    with pytest.raises(ParameterError, match="num_users = 3 is below the number of reports, 4"):
        frequencies([3, 1], 4).for_all_users(3)
