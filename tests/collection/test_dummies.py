"""A run with dummies: shuffled with the reports, taken off again, and never counted as users."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, chi2

import shuffledp as sdp
from collection.dummy_plans import (
    DELTA,
    SHUFFLERS,
    USERS,
    bare_plan,
    bits_plan,
    noisy_plan,
    plan_with,
)
from shuffledp.accounting.guarantees import guarantee_for, guarantee_of
from shuffledp.collection.dummies import draw_dummies, less_dummies
from shuffledp.collection.report_files import open_reports, reports_writer
from shuffledp.collection.run import collect
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError, PlanWarning
from shuffledp.core.reports import Reports
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.shuffling import GroupShuffling
from shuffledp.randomizers.bit_sums import BitSums

# Spread and coverage of 400 runs under three laws: tails of 1e-10 and below; and eight standard
# errors for means.
FALSE_POSITIVE_RATE = 1e-9

ANSWERS = ["a"] * 300 + ["b"] * 690 + ["c"] * 10
SHARES = np.array([0.3, 0.69, 0.01])
PLANS = (bare_plan, noisy_plan)


def collected(plan, answers=ANSWERS, **how):
    """Return the result of a run and the reports that its sink saw."""
    seen = []

    def sink(stream):
        seen.extend(reports.data.copy() for reports in stream)

    return sdp.run(plan, answers, sink=sink, **how), np.concatenate(seen)


@pytest.mark.parametrize("planned", PLANS)
def test_dummies_are_among_the_shuffled_reports_and_taken_off(planned):
    plan = planned()
    result, reports = collected(plan, seed=1)
    assert result.num_users == result.estimates.num_users == 1000
    assert len(reports) == 1000 + result.num_dummies
    assert 60 < result.num_dummies < 102  # of 3 bins with 27 each, at most 54
    assert plan.expected_dummies == 81.0
    assert plan_with(USERS).expected_dummies == pytest.approx(150.0)  # 0.05 a bin by each of 1000
    error = np.abs(result.estimates.frequency - SHARES)
    assert (error < 8 * result.estimates.standard_error).all()
    assert result.estimates.count.sum() == pytest.approx(1000)
    assert result.dummies == plan.dummies


def test_bare_reports_are_the_answers_and_dummies_of_every_bin():
    result, reports = collected(bare_plan(), seed=1)
    extra = np.bincount(reports, minlength=3) - [300, 690, 10]
    assert extra.min() >= 0
    assert extra.sum() == result.num_dummies
    # Dummies do not stand together: the rarest report, mostly theirs, is in both halves.
    rare = np.flatnonzero(reports == 2)
    assert rare[0] < len(reports) / 2 < rare[-1]


def test_a_seed_gives_the_same_again_and_without_one_the_dummies_differ():
    first, again = collected(noisy_plan(), seed=7), collected(noisy_plan(), seed=7)
    assert first[1].tolist() == again[1].tolist()
    assert len({collected(bare_plan())[0].num_dummies for _ in range(12)}) > 1
    one, entropy = plan_with("poisson:9.0"), Entropy.from_seed(1)
    assert draw_dummies(one.randomizer, one.dummies, entropy, num_users=1).size > 0


def test_users_reports_are_those_of_the_same_seed_without_dummies():
    plain = sdp.plan(
        sdp.Categories(["a", "b", "c"]),
        num_users=1000,
        epsilon0=3.0,
        delta=DELTA,
        randomizer="k-rr",
    )
    with_dummies, without = collected(noisy_plan(), seed=3)[1], collected(plain, seed=3)[1]
    extra = np.bincount(with_dummies, minlength=3) - np.bincount(without, minlength=3)
    assert extra.min() >= 0


@pytest.mark.parametrize(
    ("text", "epsilon0"), [(SHUFFLERS, math.inf), (SHUFFLERS, 2.0), ("poisson:1", math.inf)]
)
def test_estimates_are_unbiased_and_spread_by_their_standard_errors(text, epsilon0):
    num_users = 60
    plan = plan_with(text, epsilon0=epsilon0, num_users=num_users)
    answers = ["a"] * 20 + ["b"] * 39 + ["c"]
    shares = np.array([20, 39, 1]) / num_users
    found, covered = [], np.zeros(3, dtype=np.int64)
    codes = np.array([ord(each) - ord("a") for each in answers], dtype=np.uint8)
    for seed in range(400):
        how = {"num_users": num_users, "entropy": Entropy.from_seed(seed)}
        counts = collect(plan.randomizer, [codes], dummies=plan.dummies, **how)
        estimates = plan.randomizer.estimate(counts)
        found.append((estimates.frequency - shares)[0])
        covered += (estimates.lower <= shares) & (shares <= estimates.upper)
    # Standard error at the true share: the estimate's own is close to it, whatever it estimates.
    error = float(estimates.standard_error[0])
    variance = plan.dummies[0].error_variance(3, num_senders=num_users) / num_users**2
    if math.isinf(plan.randomizer.epsilon0):
        assert error == pytest.approx(math.sqrt(variance))
    scores = np.array(found) / error
    few = 400 / 2.5  # a discrete Laplace law's variance of squares is up to 2.5 times a normal's
    low, high = chi2.ppf([1e-10, 1.0 - 1e-10], few) / few
    assert 0.9 * low < (scores**2).mean() < 1.1 * high
    assert abs(scores.mean()) < 8.0 / math.sqrt(400)
    # Tails may be a twentieth above nominal where the law counts as normal.
    assert covered.min() >= binom.ppf(1e-10, 400, 1.0 - 0.05 * 1.05)


class TestGuarantees:
    def test_a_shufflers_dummies_hold_for_any_number_of_users(self):
        for answers in (ANSWERS[:20], ANSWERS * 2):
            result = sdp.run(bare_plan(), answers, seed=1)
            assert result.guarantee.epsilon_upper == bare_plan().guarantee.epsilon_upper
            assert result.warnings == bare_plan().warnings or len(answers) > 1000

    def test_users_dummies_fall_short_where_fewer_users_come(self):
        plan = plan_with(USERS)
        with pytest.warns(PlanWarning, match="1,000 users were planned and 500 answered"):
            result = sdp.run(plan, ANSWERS[:500], seed=1)
        law = plan.dummies[0]
        wanted = guarantee_for(plan.randomizer.profile, 500, delta=DELTA, dummies=law)
        assert result.guarantee.epsilon_upper == wanted.epsilon_upper > plan.target_epsilon
        with pytest.raises(DataError, match="strict"):
            sdp.run(plan, ANSWERS[:500], strict=True)

    def test_several_rounds_are_several_draws(self):
        plan = replace(plan_with("laplace:3:60"), rounds=3, _proved=())
        with pytest.warns(PlanWarning, match="one of 3 planned rounds"):
            result = sdp.run(plan, ANSWERS, seed=1)
        once = guarantee_for(plan.randomizer.profile, 1, delta=DELTA, dummies=plan.dummies[0])
        assert result.guarantee.epsilon_upper == once.epsilon_upper
        release = ShuffledRelease(
            profile=plan.randomizer.profile, num_users=1, dummies=plan.dummies[0]
        )
        together = guarantee_of(release * 3, delta=DELTA).epsilon_upper
        said = re.search(r"epsilon <= ([\d.]+) at", result.warnings[0])
        assert float(said[1]) == pytest.approx(together, rel=2e-5)

    def test_all_three_lines_are_there(self):
        result = sdp.run(noisy_plan(), ANSWERS, seed=1)
        crowd = guarantee_for(noisy_plan().randomizer.profile, 1000, delta=DELTA)
        assert result.without_dummies.epsilon_upper == crowd.epsilon_upper
        assert result.without_shuffler.epsilon0 == noisy_plan().randomizer.epsilon0
        assert sdp.run(bare_plan(), ANSWERS, seed=1).without_dummies.epsilon_upper == math.inf

    def test_without_dummies_nothing_of_this_is_said(self):
        plain = sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon=1.0, delta=DELTA)
        result = sdp.run(plain, ["a", "b"] * 50, seed=1)
        assert (result.dummies, result.num_dummies, result.without_dummies) == ((), 0, None)
        assert "dummies" not in result.to_json_dict()
        assert "umm" not in str(result)

    def test_shufflers_of_another_kind_are_refused(self):
        near = Groups.from_distance(np.arange(1000) // 4, 2, metric="absolute")
        other = GroupShuffling(shuffler=MallowsShuffler.for_groups(near, 4.0, distance="hamming"))
        with pytest.raises(ParameterError, match="not accounted for with the"):
            sdp.run(bare_plan(), ANSWERS, shuffling=other)


class TestJson:
    @pytest.mark.parametrize("planned", PLANS)
    def test_numbers_are_finite_or_null(self, planned):
        found = sdp.run(planned(), ANSWERS).to_json_dict()
        json.dumps(found, allow_nan=False)
        assert found["dummies"] == [SHUFFLERS]
        assert found["num_dummies"] > 0
        assert found["without_dummies"]["delta"] == DELTA

    def test_infinite_losses_are_null(self):
        found = sdp.run(bare_plan(), ANSWERS).to_json_dict()
        assert found["epsilon0"] is None
        assert found["without_shuffler"]["epsilon0"] is None
        assert found["without_shuffler"]["right_guess"] == 1.0
        assert found["without_dummies"]["epsilon"]["upper"] is None
        assert "inf" not in repr(sdp.run(bare_plan(), ANSWERS))


class TestEstimate:
    def test_one_report_and_no_dummy(self):
        law = DummyLaw.from_text("laplace:3.0:1")
        plan = replace(bare_plan(), dummies=(law,), _proved=())
        codes = np.array([1], dtype=np.uint8)
        one = Reports(data=codes, fingerprint=plan.randomizer.fingerprint)
        found = sdp.estimate(one, plan, num_users=1)
        assert found.num_dummies == 0
        assert found.estimates.count.tolist() == [0.0, 1.0, 0.0]

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "reports.parquet"
        sink = reports_writer(path, noisy_plan(), num_users=1000)
        return path, sdp.run(noisy_plan(), ANSWERS, sink=sink, seed=1)

    def test_a_file_of_a_run_tells_its_users(self, file):
        path, result = file
        assert open_reports(path).num_users == 1000
        found = sdp.estimate(path, noisy_plan())
        assert found.num_users == 1000
        assert found.num_dummies == result.num_dummies
        assert found.estimates.count.tolist() == result.estimates.count.tolist()
        assert found.guarantee.epsilon_upper == noisy_plan().guarantee.epsilon_upper
        assert sdp.estimate(path, noisy_plan(), num_users=1000).num_dummies == found.num_dummies

    def test_another_number_than_the_files_is_refused(self, file):
        with pytest.raises(DataError, match="is not the 1000 that the file"):
            sdp.estimate(file[0], noisy_plan(), num_users=999)

    def test_who_has_no_such_file_gives_the_number(self, file, tmp_path):
        path, result = file
        reports = next(iter(open_reports(path).blocks()))
        found = sdp.estimate(reports, noisy_plan(), num_users=1000)
        assert found.num_dummies == result.num_dummies
        pl.read_parquet(path).write_csv(tmp_path / "reports.csv")
        found = sdp.estimate(tmp_path / "reports.csv", noisy_plan(), num_users=1000)
        assert found.estimates.count.tolist() == result.estimates.count.tolist()

    @pytest.mark.parametrize(
        ("num_users", "error", "match"),
        [
            (None, ParameterError, "num_users is missing"),
            (0, ParameterError, "num_dummies = 1"),
            (-1, ParameterError, "num_users = -1"),
            (5000, ParameterError, "num_users = 5000"),
            (880, ParameterError, r"num_dummies = \d+ is not in \[0, 162\]"),
            (1075, DataError, "cannot be: the laws laplace:2.0:27 give 3 categories 81"),
        ],
    )
    def test_impossible_numbers_of_users_are_refused(self, file, num_users, error, match):
        reports = next(iter(open_reports(file[0]).blocks()))
        with pytest.raises(error, match=match):
            sdp.estimate(reports, noisy_plan(), num_users=num_users)

    def test_rows_without_a_report_cannot_be_dropped(self, file):
        with pytest.raises(ParameterError, match="would leave out dummies"):
            sdp.estimate(file[0], noisy_plan(), missing="drop")

    def test_plans_without_dummies_take_no_number(self):
        plain = sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon=1.0, delta=DELTA)
        drawn = plain.randomizer.randomize(np.zeros(100, dtype=np.int64), Entropy.from_seed(1))
        with pytest.raises(ParameterError, match="is for a plan with dummies"):
            sdp.estimate(drawn, plain, num_users=100)

    def test_one_user_among_a_shufflers_dummies_is_enough(self):
        reports = bare_plan().randomizer.randomize(np.array([1]), Entropy.from_seed(1))
        data = draw_dummies(
            bare_plan().randomizer, bare_plan().dummies, Entropy.from_seed(2), num_users=1
        )
        both = type(reports)(
            data=np.concatenate([reports.data, data]), fingerprint=reports.fingerprint
        )
        found = sdp.estimate(both, bare_plan(), num_users=1)
        assert found.guarantee.epsilon_upper == bare_plan().guarantee.epsilon_upper
        assumed = " ".join(found.guarantee.bound.assumptions)
        assert "one user's answer itself" in assumed
        assert "inf" not in assumed


def test_every_level_of_bits_has_dummies_of_its_own_law():
    laws = tuple(DummyLaw.from_text(text) for text in ("laplace:1:9", "laplace:4:40"))
    randomizer = BitSums(low=0.0, high=1.0, epsilon0=math.inf, num_bits=2)
    data = draw_dummies(randomizer, laws, Entropy.from_seed(1), num_users=50)
    counts = np.bincount(data, minlength=4)
    assert counts[:2].max() <= 18 < 40 - 20 < counts[2:].min()
    values = np.linspace(0.0, 1.0, 50)
    reports = randomizer.randomize(values, Entropy.from_seed(2))
    both = type(reports)(data=np.concatenate([reports.data, data]), fingerprint=reports.fingerprint)
    found = less_dummies(randomizer.aggregate(both), laws, num_users=50)
    assert (found.num_reports, found.num_dummies) == (100, len(data))
    estimate = randomizer.estimate(found)
    assert estimate.num_users == 50
    assert abs(estimate.mean[0] - 0.5) < 8 * estimate.standard_error[0]


def test_a_mean_bit_by_bit_is_run_and_estimated():
    plan, values = bits_plan(), np.linspace(0.0, 1.0, 1000)
    seen = []
    result = sdp.run(plan, values, seed=1, sink=seen.extend)
    assert abs(result.estimates.mean[0] - 0.5) < 8 * result.estimates.standard_error[0]
    assert result.estimates.standard_error[0] == pytest.approx(
        plan.expected_standard_error, rel=0.1
    )
    assert result.num_shuffled == 3000 + result.num_dummies
    assert result.num_shuffled == sum(each.num_reports for each in seen)
    assert f"all {result.num_shuffled:,} shuffled reports" in result._repr_html_()
    assert result.guarantee.epsilon_upper == plan.guarantee.epsilon_upper
    found = sdp.estimate(seen, plan, num_users=1000)
    assert found.estimates.mean[0] == result.estimates.mean[0]
    with pytest.raises(DataError, match="check num_users"):
        sdp.estimate(seen, plan, num_users=1100)
