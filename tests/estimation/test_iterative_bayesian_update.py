import dataclasses
import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import (
    DataError,
    FingerprintError,
    ParameterError,
    PrecisionError,
)
from shuffledp.estimation import iterative_bayesian_update
from shuffledp.randomizers import (
    RANDOMIZERS,
    KRandomizedResponse,
    Reports,
    make_randomizer,
)

# The function hides the module of the same name, as an attribute of the package.
module = importlib.import_module("shuffledp.estimation.iterative_bayesian_update")


@pytest.fixture(params=RANDOMIZERS)
def name(request):
    return request.param


def collect(name, k, epsilon0, num_users, seed=1):
    """Return a randomizer and the reports of users of whom few have the last categories."""
    randomizer = make_randomizer(name, domain_size=k, epsilon0=epsilon0)
    weights = 1.0 / np.arange(1, k + 1) ** 2
    num_by_code = np.floor(weights / weights.sum() * num_users).astype(int)
    num_by_code[0] += num_users - num_by_code.sum()
    codes = np.repeat(np.arange(k), num_by_code)
    return randomizer, randomizer.randomize(codes, Entropy.from_seed(seed))


def likelihoods(randomizer, reports):
    """The probability of each report for each category, by the exact channel."""
    columns = randomizer.report_columns().data
    channel = np.array(randomizer.channel(), dtype=float)
    where = {row.tobytes(): column for column, row in enumerate(columns)}
    return np.array([channel[:, where[row.tobytes()]] for row in reports.data])


def codes_of(randomizer, numbers):
    """Reports of k-RR, so many of each category."""
    data = np.repeat(np.arange(len(numbers), dtype=np.uint8), numbers)
    return Reports(data=data, fingerprint=randomizer.fingerprint)


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_the_likelihood_equations_hold(name, epsilon0):
    randomizer, reports = collect(name, 5, epsilon0, 3_000)
    frequency = iterative_bayesian_update(randomizer, reports, tolerance=1e-11).frequency
    assert frequency.min() > 0.0
    assert frequency.sum() == pytest.approx(1.0, abs=1e-12)
    # Kuhn and Tucker: the gradient is the same for all categories that users have, and no larger
    # for the others. It comes from the exact channel here, not from supports and a ratio.
    exact = likelihoods(randomizer, reports)
    gradient = (exact / (exact @ frequency)[:, None]).mean(axis=0)
    assert gradient.max() <= 1.0 + 1e-10
    assert gradient[frequency > 1e-4] == pytest.approx(1.0, abs=1e-6)


def test_no_other_frequencies_make_the_reports_likelier(name):
    randomizer, reports = collect(name, 3, 1.0, 2_000)
    found = iterative_bayesian_update(randomizer, reports).frequency
    exact = likelihoods(randomizer, reports)

    def loss(logits):
        """The negative log-likelihood, of frequencies that any three numbers stand for."""
        weights = np.exp(logits - logits.max())
        return -np.log(exact @ (weights / weights.sum())).mean()

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 0.0})
    directly = np.exp(best.x - best.x.max())
    assert loss(np.log(found)) <= best.fun + 1e-9
    assert found == pytest.approx(directly / directly.sum(), abs=1e-4)


def test_the_likelihood_never_falls(name):
    randomizer, reports = collect(name, 8, 1.0, 5_000)
    points = list(itertools.islice(module.climb(randomizer, reports), 60))
    achieved = np.array([point.log_likelihood for point in points])
    assert (np.diff(achieved) >= -1e-14 * abs(achieved[0])).all()
    assert points[0].frequency == pytest.approx(1 / 8)
    # What each point promises about the best one holds for the last.
    assert (achieved[-1] - achieved <= [point.shortfall + 1e-14 for point in points]).all()


def test_an_iteration_is_the_published_one(name):
    randomizer, reports = collect(name, 4, 1.5, 500)
    points = module.climb(randomizer, reports)
    start, first = itertools.islice(points, 2)
    exact = likelihoods(randomizer, reports)
    posterior = exact * start.frequency / (exact @ start.frequency)[:, None]
    assert first.frequency == pytest.approx(posterior.mean(axis=0))


@given(zeros=st.integers(0, 300), ones=st.integers(0, 300), epsilon0=st.floats(0.3, 5.0))
def test_two_categories_have_a_closed_form(zeros, ones, epsilon0):
    if zeros + ones == 0:
        return
    randomizer = KRandomizedResponse(domain_size=2, epsilon0=epsilon0)
    p, q = randomizer.support_probabilities
    estimates = iterative_bayesian_update(
        randomizer, codes_of(randomizer, [zeros, ones]), tolerance=1e-10
    )
    unbiased = (zeros / (zeros + ones) - q) / (p - q)
    assert estimates.frequency[0] == pytest.approx(min(max(unbiased, 0.0), 1.0), abs=1e-4)


@pytest.mark.parametrize(("k", "epsilon0"), [(16, 0.3), (200, 1.0), (200, 4.0)])
def test_k_randomized_response_has_a_closed_form(k, epsilon0):
    # c_v / (q + (p - q) f_v) is the same for all f_v > 0: f_v = max(0, c_v / level - q) / (p - q).
    randomizer, reports = collect("k-rr", k, epsilon0, 20_000)
    p, q = randomizer.support_probabilities
    support = randomizer.aggregate(reports).support
    low, high = 0.0, float(support.max()) / q
    for _ in range(200):
        level = (low + high) / 2
        excess = np.maximum(support / level - q, 0.0).sum() / (p - q)
        low, high = (level, high) if excess > 1.0 else (low, level)
    expected = np.maximum(support / level - q, 0.0) / (p - q)
    found = iterative_bayesian_update(randomizer, reports).frequency
    assert (expected == 0.0).any()
    assert found == pytest.approx(expected, abs=1e-3)


def test_everything_else_stays_unbiased(name):
    randomizer, reports = collect(name, 4, 1.0, 1_000)
    found = iterative_bayesian_update(
        randomizer, reports, confidence=0.9, interval="wald", simultaneous=True
    )
    unbiased = randomizer.estimate(reports, confidence=0.9, interval="wald", simultaneous=True)
    for field in dataclasses.fields(found):
        if field.name not in ("count", "frequency", "post_processing"):
            expected = getattr(unbiased, field.name)
            assert np.array_equal(getattr(found, field.name), expected), field.name
    assert found.post_processing == ("iterative-bayesian-update",)
    assert found.count == pytest.approx(1_000 * found.frequency)
    assert not found.frequency.flags.writeable


def test_the_order_of_reports_does_not_matter(name):
    randomizer, reports = collect(name, 4, 1.0, 1_000)
    backwards = Reports(data=reports.data[::-1], fingerprint=reports.fingerprint)
    one, other = (iterative_bayesian_update(randomizer, part) for part in (reports, backwards))
    assert np.array_equal(one.frequency, other.frequency)


def test_blocks_that_are_read_anew_give_the_same(name, monkeypatch):
    randomizer, reports = collect(name, 6, 1.0, 1_000)

    def tenth():
        points = module.climb(randomizer, reports)
        return next(itertools.islice(points, 9, None))

    whole = tenth()
    monkeypatch.setattr(module, "_CELLS_AT_A_TIME", 16)
    monkeypatch.setattr(module, "_CELLS_KEPT", 0)
    parts = tenth()
    assert parts.frequency == pytest.approx(whole.frequency, rel=1e-9)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2), (11,)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_distinct_reports_are_counted_whatever_their_shape(shape, dtype):
    generator = Entropy.from_seed(3).generator()
    data = generator.integers(0, 3, size=(200, *shape)).astype(dtype)
    rows, multiplicity = module._distinct_rows(data)
    expected = {}
    for row in data:
        expected[row.tobytes()] = expected.get(row.tobytes(), 0) + 1
    found = {row.tobytes(): int(times) for row, times in zip(rows, multiplicity, strict=True)}
    assert found == expected
    assert rows.shape[1:] == shape


@pytest.mark.parametrize("epsilon0", [1e-9, 60.0])
def test_extreme_losses_give_possible_frequencies(name, epsilon0):
    randomizer, reports = collect(name, 5, epsilon0, 400)
    frequency = iterative_bayesian_update(randomizer, reports).frequency
    assert np.isfinite(frequency).all()
    assert frequency.sum() == pytest.approx(1.0)
    if epsilon0 < 1.0:
        assert frequency == pytest.approx(0.2)  # reports say next to nothing against equal shares
    else:
        assert int(frequency.argmax()) == 0


def test_a_single_report_is_enough():
    randomizer = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    frequency = iterative_bayesian_update(randomizer, codes_of(randomizer, [0, 1])).frequency
    assert frequency == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)


def test_leaps_that_change_nothing_stay_where_they_are():
    randomizer = KRandomizedResponse(domain_size=4, epsilon0=1.0)
    for point in itertools.islice(module.climb(randomizer, codes_of(randomizer, [8] * 4)), 60):
        assert point.frequency == pytest.approx([0.25] * 4)
        assert point.shortfall == pytest.approx(0.0, abs=1e-12)


def test_too_few_iterations_are_an_error():
    randomizer, reports = collect("k-rr", 16, 0.5, 1_000)
    with pytest.raises(PrecisionError, match=r"after 3 iterations .* raise max_iterations"):
        iterative_bayesian_update(randomizer, reports, max_iterations=3)


def test_reports_that_say_nothing_are_refused(name):
    randomizer = make_randomizer(name, domain_size=3, epsilon0=0.0)
    reports = randomizer.randomize(np.arange(3), Entropy.from_seed(1))
    with pytest.raises(ParameterError, match="say nothing"):
        iterative_bayesian_update(randomizer, reports)


def test_reports_of_another_law_are_refused(name):
    _, reports = collect(name, 3, 1.0, 10)
    with pytest.raises(FingerprintError):
        iterative_bayesian_update(make_randomizer(name, domain_size=3, epsilon0=2.0), reports)


def test_no_reports_are_refused(name):
    randomizer, reports = collect(name, 3, 1.0, 10)
    none = Reports(data=reports.data[:0], fingerprint=reports.fingerprint)
    with pytest.raises(DataError, match="no reports"):
        iterative_bayesian_update(randomizer, none)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0.0}, {"tolerance": np.nan}, {"max_iterations": 0}]
)
def test_arguments_out_of_range_are_refused(wrong):
    randomizer, reports = collect("k-rr", 3, 1.0, 10)
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        iterative_bayesian_update(randomizer, reports, **wrong)
