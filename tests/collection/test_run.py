"""A plan on data: the estimates are near the truth, and the guarantee is that of the very run."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.source.opened import answers_from_values, open_table
from shuffledp import Categories
from shuffledp.collection.output import results_folder
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.report_files import open_reports, reports_writer
from shuffledp.collection.run import run as run_plan
from shuffledp.collection.shuffling import UNIFORM, UniformShuffling
from shuffledp.core.errors import DataError, DomainError, ParameterError, PlanWarning
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.shuffling import GroupShuffling

# Eight standard errors for three answers: below 4e-15 for a normal law, and by Bernstein's
# inequality below this for sums of 1000 bounded terms.
FALSE_POSITIVE_RATE = 1e-9

DOMAIN = ("yes", "no", "refused")
QUESTION = Categories(domain=DOMAIN)
ANSWERS = ["yes"] * 200 + ["no"] * 700 + ["refused"] * 100


@pytest.fixture(scope="module")
def plan():
    return sdp.plan(
        sdp.Categories(DOMAIN), num_users=1000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )


def test_estimates_are_near_the_truth(plan):
    result = sdp.run(plan, ANSWERS, seed=1)
    error = np.abs(result.estimates.frequency - [0.2, 0.7, 0.1])
    assert (error < 8 * result.estimates.standard_error).all()
    assert result.estimates.post_processing == ()


def test_the_result_says_what_was_run(plan):
    result = sdp.run(plan, ANSWERS, seed=1)
    assert (result.num_users, result.domain) == (1000, DOMAIN)
    assert result.randomizer is plan.randomizer
    assert result.guarantee == plan.guarantee
    assert (result.target_epsilon, result.target_delta) == (1.0, 1e-6)
    assert result.shuffler == "uniform"
    assert result.warnings == ()


def test_only_a_seed_makes_a_simulation(plan):
    assert sdp.run(plan, ANSWERS, seed=0).is_simulation
    assert not sdp.run(plan, ANSWERS).is_simulation


def test_a_seed_gives_the_same_estimates_again(plan):
    first, second, other = (sdp.run(plan, ANSWERS, seed=seed) for seed in (3, 3, 4))
    assert first.to_json_dict() == second.to_json_dict()
    assert first.to_json_dict() != other.to_json_dict()


def test_fewer_answers_than_planned_are_accounted_and_warned_about(plan):
    with pytest.warns(PlanWarning, match="1,000 users were planned and 100 answered"):
        result = sdp.run(plan, ANSWERS[::10], seed=1)
    assert result.guarantee.num_users == 100
    assert result.guarantee.epsilon_upper > 1.0
    assert result.warnings[0].startswith("1,000 users were planned and 100 answered")


def test_a_result_knows_where_its_reports_were_drawn(plan):
    drawn = plan.randomizer.randomize(np.zeros(1000, dtype=int), sdp.Entropy.from_seed(1))
    assert sdp.estimate(drawn, plan).collected_by == "devices"
    assert sdp.run(plan, ANSWERS).collected_by == "table"
    assert sdp.run(plan, ANSWERS, seed=1).collected_by == "simulation"


def test_strict_refuses_what_falls_short_of_the_plan(plan):
    with pytest.raises(DataError, match=r"100 answered, so epsilon is .* strict=True refuses"):
        sdp.run(plan, ANSWERS[::10], strict=True)
    assert sdp.run(plan, ANSWERS, strict=True, seed=1).guarantee == plan.guarantee
    drawn = plan.randomizer.randomize(np.zeros(100, dtype=int), sdp.Entropy.from_seed(1))
    with pytest.raises(DataError, match="strict=True refuses"):
        sdp.estimate(drawn, plan, strict=True)


def test_arguments_that_changed_places_are_named_without_their_values(plan):
    for call, message in (
        (lambda: sdp.run(ANSWERS, plan), "plan is a list: give what shuffledp.plan returns"),
        (lambda: sdp.estimate(plan, ANSWERS), "plan is a list"),
        (lambda: sdp.plan(ANSWERS, num_users=9, epsilon=1, delta=0.1), "question is a list: give"),
        (lambda: sdp.run(plan, ANSWERS, post_processing="clip"), "'clip': give a list"),
        (lambda: sdp.estimate(ANSWERS, plan), "reports holds a str: give a file, or Reports"),
        (lambda: sdp.estimate(None, plan), "reports holds a NoneType: give a file, or Reports"),
    ):
        with pytest.raises(sdp.ShuffledpError, match=message) as error:
            call()
        assert ANSWERS[0] not in str(error.value)


def test_more_answers_than_planned_are_accounted_silently(plan):
    result = sdp.run(plan, ANSWERS * 2, seed=1)
    assert result.guarantee.epsilon_upper < 1.0
    assert result.warnings == ()


def test_a_list_read_from_the_data_is_an_assumption():
    answers = answers_from_values(ANSWERS)
    plan = sdp.plan(answers.question, num_users=answers.num_users, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, answers, seed=1)
    assert "read from the data" in result.warnings[0]
    assert result.warnings[0] in result.guarantee.bound.assumptions
    assert result.warnings[0] in result.to_json_dict()["guarantee"]["assumptions"]


def test_a_large_delta_is_warned_about():
    plan = sdp.plan(sdp.Categories(DOMAIN), num_users=1000, epsilon=1.0, delta=0.01)
    assert "not below 1/num_users" in sdp.run(plan, ANSWERS, seed=1).warnings[0]


def test_the_domain_must_be_that_of_the_plan(plan):
    with pytest.raises(DomainError, match="the values were not checked for 3 answers"):
        run_plan(plan, answers_from_values(ANSWERS))


def test_values_outside_the_domain_are_refused(plan):
    with pytest.raises(DomainError, match=r"row 2 of .* outside the domain"):
        sdp.run(plan, ["yes", "maybe"])


def test_confidence_is_passed_on(plan):
    result = sdp.run(plan, ANSWERS, seed=1, confidence=0.5)
    assert result.estimates.confidence == 0.5


def test_a_fixed_randomizer_reports_its_epsilon():
    setting = make_plan(
        QUESTION, num_users=1000, randomizer="symmetric-unary", epsilon0=1.0, delta=1e-6
    )
    result = run_plan(setting, ANSWERS, seed=1)
    assert result.randomizer.name == "symmetric-unary"
    assert result.target_epsilon == result.guarantee.epsilon_upper < 1.0
    with pytest.raises(ParameterError, match="did you mean 'k-rr'"):
        make_plan(QUESTION, num_users=9, randomizer="krr", epsilon0=1.0, delta=1e-6)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_saved_reports_are_shuffled_and_give_the_same_counts(tmp_path, plan, suffix):
    path = tmp_path / f"answers.{suffix}"
    getattr(pl.DataFrame({"answer": ANSWERS}), f"write_{suffix}")(path)
    answers = open_table(path, "answer", domain=DOMAIN)
    sink = reports_writer(tmp_path / "reports.parquet", plan)
    result = run_plan(plan, answers, seed=1, sink=sink, scratch=tmp_path)
    saved = pl.read_parquet(tmp_path / "reports.parquet")["report"].cast(pl.String)
    p, q = plan.randomizer.support_probabilities
    support = [saved.to_list().count(answer) for answer in DOMAIN]
    count = (np.array(support) - 1000 * q) / (p - q)
    np.testing.assert_allclose(count, result.estimates.count)
    assert saved[:200].to_list().count("yes") < 150  # the first 200 rows of the file say "yes"


STAGES = ("reading the answers", "checking", "randomizing", "counting")


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_at_any_stage_leaves_nothing(tmp_path, stage):
    path = tmp_path / "answers.csv"
    pl.DataFrame({"answer": ANSWERS}).write_csv(path)

    def interrupt(at, _done, _total):
        if at == stage:
            raise KeyboardInterrupt

    # Polars before 2.0 passes on what a source raises as an error of its own.
    kinds = (KeyboardInterrupt, pl.exceptions.ComputeError)
    ended = pytest.raises(kinds, check=lambda error: "KeyboardInterrupt" in repr(error))
    with ended, results_folder(tmp_path / "results") as folder:
        answers = open_table(path, "answer", on_progress=interrupt)
        plan = sdp.plan(answers.question, num_users=answers.num_users, epsilon=1.0, delta=1e-6)
        sink = reports_writer(folder / "reports.parquet", plan)
        run_plan(plan, answers, sink=sink, scratch=folder, on_progress=interrupt)
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers.csv"]


def test_data_that_change_after_planning_are_refused(tmp_path, plan):
    path = tmp_path / "answers.csv"
    pl.DataFrame({"answer": ANSWERS}).write_csv(path)
    answers = open_table(path, "answer", domain=DOMAIN)
    pl.DataFrame({"answer": ANSWERS[:-1]}).write_csv(path)
    with pytest.raises(DataError, match="changed while it was being read"):
        run_plan(plan, answers)


def test_settings_are_frozen():
    setting = make_plan(QUESTION, num_users=10, randomizer="k-rr", epsilon0=1.0, delta=1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setting.num_users = 11


# ---------------------------------------------------------------- other shuffles than planned
def within_groups(num_users=1000):
    near = Groups.from_distance(np.arange(num_users) // 4, 2, metric="absolute")
    return GroupShuffling(shuffler=MallowsShuffler.for_groups(near, 4.0, distance="hamming"))


def test_the_guarantee_is_that_of_the_shuffle_that_took_place(plan):
    within = within_groups()
    with pytest.warns(PlanWarning, match="was the mallows shuffler"):
        result = sdp.run(plan, ANSWERS, shuffling=within, seed=1)
    found = within.guarantee(plan.randomizer.profile, 1000, delta=1e-6)
    assert result.guarantee == found
    assert found.epsilon_upper > plan.guarantee.epsilon_upper  # near their users, seen better
    assert result.shuffler == "mallows"
    assert result.warnings[0].startswith("The plan was for the uniform shuffler and 1,000 users, ")


def test_a_plan_knows_its_shuffle():
    within = within_groups()
    arranged = sdp.plan(QUESTION, num_users=1000, epsilon=1.0, delta=1e-6, shuffling=within)
    result = sdp.run(arranged, ANSWERS, seed=1)
    assert result.shuffler == "mallows"
    assert result.guarantee == arranged.guarantee
    assert result.warnings == ()
    uniform = sdp.run(arranged, ANSWERS, shuffling=UNIFORM, seed=1)
    assert uniform.guarantee == UNIFORM.guarantee(arranged.randomizer.profile, 1000, delta=1e-6)
    assert uniform.guarantee.epsilon_upper < arranged.guarantee.epsilon_upper
    assert uniform.warnings == ()


def test_any_uniform_shuffle_is_as_planned(plan):
    result = sdp.run(plan, ANSWERS, shuffling=UniformShuffling(), seed=1)
    assert result.guarantee == plan.guarantee


# ---------------------------------------------------------------- reports that are there already
def test_reports_are_estimated_as_a_run_does(plan, tmp_path):
    path = tmp_path / "reports.parquet"
    result = sdp.run(plan, ANSWERS, sink=reports_writer(path, plan), seed=1)
    for reports in (open_reports(path), list(open_reports(path).blocks())):
        again = sdp.estimate(reports, plan)
        np.testing.assert_array_equal(again.estimates.frequency, result.estimates.frequency)
        assert again.guarantee.epsilon_upper == result.guarantee.epsilon_upper
        assert again.guarantee.bound.assumptions[-1].startswith("Each report was drawn once")
        assert not again.is_simulation


def test_fewer_reports_than_planned_are_accounted_for(plan):
    drawn = plan.randomizer.randomize(np.zeros(100, dtype=int), sdp.Entropy.from_seed(1))
    with pytest.warns(PlanWarning, match="100 answered"):
        result = sdp.estimate(drawn, plan, confidence=0.5, post_processing=["clip"])
    assert result.num_users == result.guarantee.num_users == 100
    assert result.warnings[0].startswith("1,000 users were planned and 100 answered")
    assert result.estimates.confidence == 0.5
    assert result.estimates.post_processing == ("clip",)


def test_reports_of_another_law_and_too_few_are_refused(plan):
    other = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=0.5)
    drawn = other.randomize(np.zeros(100, dtype=int), sdp.Entropy.from_seed(1))
    with pytest.raises(ParameterError, match="another law than the plan's made these reports"):
        sdp.estimate(drawn, plan)
    one = plan.randomizer.randomize(np.zeros(1, dtype=int), sdp.Entropy.from_seed(1))
    for reports in ([], one):
        with pytest.raises(DataError, match="at least two users"):
            sdp.estimate(reports, plan)
