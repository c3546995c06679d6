"""The main job on the UCI Adult census: occupations, means and quantiles of age and hours, tables.

Skipped where the file is absent; see conftest.py.
"""

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp

RANDOMIZERS = (
    "k-rr",
    "symmetric-unary",
    "optimized-unary",
    "subset-selection",
    "hadamard-response",
)
EPSILON, DELTA = 1.0, 1e-6

# Estimates are compared at 8 standard errors, some 50 of them: below 1e-12 by normal tails, and
# the exact tails of sums of 32,561 bounded reports are less than a hundred times as heavy there.
FALSE_POSITIVE_RATE = 1e-10
STANDARD_ERRORS = 8.0


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_occupations(census, name):
    path, frame = census
    domain = sorted(frame["occupation"].unique())
    plan = sdp.plan(
        sdp.Categories(domain), num_users=len(frame), epsilon=EPSILON, delta=DELTA, randomizer=name
    )
    assert plan.guarantee.epsilon_upper <= EPSILON
    result = sdp.run(plan, sdp.collection.open_column(path, "occupation", plan.question), seed=2)
    truth = np.array([(frame["occupation"] == answer).mean() for answer in domain])
    error = np.abs(result.estimates.frequency - truth)
    assert (error <= STANDARD_ERRORS * result.estimates.standard_error).all()
    # The plan's error is the root mean square of the standard errors.
    rms = float(np.sqrt((result.estimates.standard_error**2).mean()))
    assert rms == pytest.approx(plan.expected_standard_error, rel=0.02)


def test_the_plan_takes_the_best_of_them(census):
    _, frame = census
    domain = sorted(frame["occupation"].unique())
    best = sdp.plan(sdp.Categories(domain), num_users=len(frame), epsilon=EPSILON, delta=DELTA)
    for name in RANDOMIZERS:
        named = sdp.plan(
            sdp.Categories(domain),
            num_users=len(frame),
            epsilon=EPSILON,
            delta=DELTA,
            randomizer=name,
        )
        assert best.expected_standard_error <= 1.02 * named.expected_standard_error


@pytest.mark.parametrize("name", ["duchi", "piecewise"])
@pytest.mark.parametrize(("column", "high"), [("age", 120), ("hours", 100)])
def test_means(census, column, high, name):
    path, frame = census
    plan = sdp.plan(
        sdp.Mean(0, high), num_users=len(frame), epsilon=EPSILON, delta=DELTA, randomizer=name
    )
    numbers = sdp.collection.open_column(path, column, plan.question)
    estimates = sdp.run(plan, numbers, seed=3).estimates
    error = abs(estimates.mean[0] - frame[column].mean())
    assert error <= STANDARD_ERRORS * estimates.standard_error[0]


def test_a_vector_of_age_and_hours(census, tmp_path):
    _, frame = census
    table = frame.select(age=pl.col("age") / 150, hours=pl.col("hours") / 150)
    table.write_parquet(tmp_path / "vectors.parquet")
    plan = sdp.plan(
        sdp.VectorMean(["age", "hours"]), num_users=len(frame), epsilon=EPSILON, delta=DELTA
    )
    vectors = sdp.collection.open_column(tmp_path / "vectors.parquet", None, plan.question)
    estimates = sdp.run(plan, vectors, seed=4).estimates
    truth = np.array([table["age"].mean(), table["hours"].mean()])
    assert (np.abs(estimates.mean - truth) <= STANDARD_ERRORS * estimates.standard_error).all()


@pytest.mark.parametrize("steps", [(), ("consistent",)])
def test_education_income_and_sex_with_their_tables(census, steps):
    path, frame = census
    names = ["education", "income", "sex"]
    domains = {name: sorted(frame[name].unique()) for name in names}
    question = sdp.Columns(domains, pairs="all")
    plan = sdp.plan(question, num_users=len(frame), epsilon=EPSILON, delta=DELTA)
    values = sdp.collection.open_column(path, None, question)
    estimates = sdp.run(plan, values, seed=5, post_processing=steps).estimates
    held = [
        [
            frame[name] == answer
            for name, _, answer in (e.partition("=") for e in label.split(" & "))
        ]
        for label in question.labels
    ]
    truth = np.array([np.mean(np.all(each, axis=0)) for each in held])
    error = np.abs(estimates.frequency - truth)
    # Errors at the estimates, not below those that the plan expects of a rare cell.
    least = min(plan.randomizer.bin_error(part, 0.0, len(frame)) for part in range(3))
    assert (error <= STANDARD_ERRORS * np.maximum(estimates.standard_error, least)).all()
    assert max(each.p_value for each in estimates.associations) < 1e-6


@pytest.mark.parametrize("how", [{}, {"dummies": "shuffler", "max_epsilon0": 6.0}])
@pytest.mark.parametrize(("column", "high"), [("age", 120), ("hours", 100)])
def test_quantiles(census, column, high, how):
    path, frame = census
    question = sdp.Distribution(range(high + 1), quantiles=(0.05, 0.25, 0.5, 0.75, 0.95))
    plan = sdp.plan(question, num_users=len(frame), epsilon=EPSILON, delta=DELTA, **how)
    numbers = sdp.collection.open_column(path, column, question)
    result = sdp.run(plan, numbers, seed=6, confidence=1.0 - 1e-12, simultaneous=True)
    for share, found in result.quantiles:
        truth = np.quantile(frame[column].to_numpy(), share, method="inverted_cdf")
        assert found.lower <= truth <= found.upper
        assert share in {0.05, 0.95} or found.upper - found.lower <= 14.0
    estimates = result.estimates
    truth = np.array([(frame[column] < edge).mean() for edge in range(1, high + 1)])
    error = np.abs(estimates.cumulative - truth)
    assert (error <= STANDARD_ERRORS * estimates.cumulative_standard_error + 1e-9).all()


@pytest.mark.parametrize("how", [{}, {"dummies": "shuffler", "no_local_noise": True}])
def test_hours_by_occupation(census, how):
    path, frame = census
    groups = sorted(frame["occupation"].unique())
    asked = sdp.MeanByGroup(groups, 0, 100, name="hours", by="occupation")
    plan = sdp.plan(asked, num_users=len(frame), epsilon=EPSILON, delta=DELTA, **how)
    found = sdp.run(plan, sdp.collection.open_column(path, None, asked), seed=4).estimates
    truth = np.array([frame.filter(occupation=each)["hours"].mean() for each in groups])
    is_stated = ~np.isnan(found.mean)
    assert is_stated.sum() > 10  # of groups of 9 to 4,140 people
    error = np.abs(found.mean - truth)[is_stated]
    assert (error <= STANDARD_ERRORS * found.standard_error[is_stated]).all()
    sizes = np.array([frame.filter(occupation=each).height for each in groups])
    away = np.abs(found.sizes.count - sizes) / len(frame)
    assert (away <= STANDARD_ERRORS * found.sizes.standard_error).all()
    first, second = groups[3], groups[-1]
    value, lower, upper = found.difference(first, second)
    expected = truth[3] - truth[-1]
    assert abs(value - expected) <= STANDARD_ERRORS * (upper - lower) / 3.9
