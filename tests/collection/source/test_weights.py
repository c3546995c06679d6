"""Public weights: who is drawn, estimates of the users' weight and their errors, and refusals."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collection import open_column
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.source.weights import drawn
from shuffledp.core.errors import DataError, DomainError, ParameterError

ADULT = Path(__file__).parents[4] / "shared" / "data" / "adult.data"

FALSE_POSITIVE_RATE = 1e-9
RUNS, NUM_USERS, DELTA = 300, 1_200, 1e-6
EACH = FALSE_POSITIVE_RATE / 16

DRAWN = sdp.Entropy.from_seed(9).generator()
HAS = DRAWN.random(NUM_USERS) < 0.4
# Heavier where the answer is yes, so that a plain share of all users is wrong.
WEIGHTS = DRAWN.uniform(0.5, 1.0, NUM_USERS) * np.where(HAS, 3.0, 1.0)
ANSWERS = np.where(HAS, "yes", "no").tolist()
NUMBERS = np.where(HAS, DRAWN.uniform(5, 10, NUM_USERS), DRAWN.uniform(0, 4, NUM_USERS))
SHARE = float(WEIGHTS[HAS].sum() / WEIGHTS.sum())
MEAN = float(NUMBERS @ WEIGHTS / WEIGHTS.sum())
QUESTIONS = {
    "shares": (sdp.Categories(["yes", "no"]), ANSWERS, SHARE),
    "mean": (sdp.Mean(0, 10), NUMBERS, MEAN),
    "below": (
        sdp.Distribution(edges=(0, 4.5, 10)),
        NUMBERS,
        float(WEIGHTS[NUMBERS < 4.5].sum() / WEIGHTS.sum()),
    ),
    "columns": (
        sdp.Columns({"vote": ["yes", "no"], "seen": ["a", "b"]}),
        {"vote": ANSWERS, "seen": ["a", "b"] * (NUM_USERS // 2)},
        SHARE,
    ),
    "groups": (
        sdp.MeanByGroup(["yes", "no"], 0, 10, by="vote", name="hours"),
        {"vote": ANSWERS, "hours": NUMBERS},
        float(NUMBERS[HAS] @ WEIGHTS[HAS] / WEIGHTS[HAS].sum()),
    ),
}


def plan_of(kind, **how):
    how = {"num_users": sdp.Weights(WEIGHTS).fewest_drawn, "epsilon0": 4.0, "delta": DELTA} | how
    return sdp.plan(QUESTIONS[kind][0], **how)


def estimates_of(kind, seed, randomizer):
    """One run without its guarantee, which takes most of the time."""
    question, values, _ = QUESTIONS[kind]
    column = drawn(question.column(values), sdp.Weights(WEIGHTS), seed)
    entropy = sdp.Entropy.from_seed(seed)
    reports = randomizer.randomize(np.concatenate(list(column.blocks())), entropy)
    return question.estimate(randomizer, randomizer.aggregate(reports), EstimateOptions())


def first(estimates):
    return (estimates.frequency if hasattr(estimates, "frequency") else estimates.mean)[0]


# --------------------------------------------------------------------- who is drawn
def test_each_user_is_drawn_in_proportion_to_the_weight():
    weights = sdp.Weights(np.tile([1.0, 2.0, 8.0], 20_000), most_weight=4.0)
    those = weights.draw(seed=1).reshape(-1, 3)
    assert those[:, 2].all()  # trimmed
    for place, chance in enumerate([0.25, 0.5]):
        number = int(those[:, place].sum())
        assert binom.isf(EACH / 2, 20_000, chance) >= number >= binom.ppf(EACH / 2, 20_000, chance)
    assert not (weights.draw() == weights.draw()).all()  # by the operating system
    assert (weights.draw(seed=1) == weights.draw(seed=1)).all()


def test_what_is_known_of_weights():
    weights = sdp.Weights([1.0, 1.0, 1.0, 5.0] * 50)
    assert (weights.num_users, weights.most_weight, weights.ratio) == (200, 5.0, 2.5)
    assert weights.design_effect == pytest.approx(28 / 4 / 4)
    assert str(weights) == (
        "200 users with public weights up to 2.5 times their mean, design effect 1.75"
    )
    trimmed = sdp.Weights([1.0, 1.0, 1.0, 5.0] * 50, most_weight=2.0)
    assert trimmed.ratio == pytest.approx(1.6)
    same = sdp.Weights(np.full(70, 0.3))
    assert (same.ratio, same.design_effect, same.fewest_drawn) == (1.0, 1.0, 70)
    assert same.draw().all()
    assert sdp.Weights([1e-9] * 9 + [1.0]).fewest_drawn == 1


def test_fewer_than_the_fewest_are_hardly_ever_drawn():
    # Exactly: the law of a sum of coins with the users' own chances.
    own = np.linspace(0.05, 1.0, 400)
    law = np.ones(1)
    for chance in own:
        law = np.convolve(law, [1.0 - chance, chance])
    fewest = sdp.Weights(own).fewest_drawn
    assert law[:fewest].sum() <= 1e-3
    assert fewest > 0.8 * own.sum()


def test_who_is_drawn_does_not_depend_on_the_answers():
    plan = plan_of("shares", randomizer="k-rr")
    found = [
        sdp.run(plan, [answer] * NUM_USERS, weights=WEIGHTS, seed=3) for answer in ("yes", "no")
    ]
    mask = sdp.Weights(WEIGHTS).draw(seed=3)
    assert found[0].num_users == found[1].num_users == mask.sum()


# --------------------------------------------------------------------- estimates
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(QUESTIONS))
def test_estimates_are_unbiased_and_intervals_cover(kind):
    law, truth = plan_of(kind).randomizer, QUESTIONS[kind][2]
    low, high, off = 0, 0, []
    for seed in range(RUNS):
        found = estimates_of(kind, seed, law)
        off.append((first(found) - truth) / found.population_standard_error[0])
        low += found.population_lower[0] > truth
        high += found.population_upper[0] < truth
    # Errors are at most as stated, and normal: the mean of so many is within 6.8 of its own.
    assert abs(np.mean(off)) < 6.8 / math.sqrt(RUNS)
    assert low + high <= binom.isf(EACH, RUNS, 0.06)
    assert np.std(off) > 0.5  # and not far too wide


@pytest.mark.slow
def test_the_error_of_the_draw_is_counted():
    # The negative control: randomization alone covers too seldom where it is small.
    law = plan_of("shares", epsilon0=12.0).randomizer
    own = population = 0
    for seed in range(RUNS):
        found = estimates_of("shares", seed, law)
        own += found.lower[0] <= SHARE <= found.upper[0]
        population += found.population_lower[0] <= SHARE <= found.population_upper[0]
    assert own < binom.ppf(EACH, RUNS, 0.95) < population


@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_every_question_is_asked_of_those_drawn(kind):
    _, values, truth = QUESTIONS[kind]
    result = sdp.run(plan_of(kind), values, weights=WEIGHTS, seed=1)
    mask = sdp.Weights(WEIGHTS).draw(seed=1)
    assert result.num_users == mask.sum() < NUM_USERS
    assert result.guarantee.num_users == result.num_users
    plain = plan_of(kind, num_users=result.num_users)
    assert result.guarantee.epsilon_upper == pytest.approx(plain.guarantee.epsilon_upper)
    found = result.estimates
    assert abs(first(found) - truth) < 7 * found.population_standard_error[0]
    assert result.interval_about == "population"
    known = result.to_json_dict()["weights"]
    assert (known["num_users"], known["most_weight"]) == (NUM_USERS, WEIGHTS.max())
    said = f"Drawn by public weights: {result.num_users:,} of 1,200 users, each with"
    assert any(said in each for each in result.guarantee.epsilon.assumptions)


def test_a_wrong_weight_shows():
    # The negative control: users counted alike are off by far more than the error.
    result = sdp.run(plan_of("shares"), ANSWERS, weights=np.ones(NUM_USERS), seed=1)
    assert result.num_users == NUM_USERS
    found = result.estimates
    assert abs(found.frequency[0] - SHARE) > 6 * found.population_standard_error[0]


def test_texts_are_found_among_those_drawn():
    texts = np.where(HAS, "heavy", "light").tolist()
    asked = sdp.HeavyHitters(max_bytes=5, most=3, bits=16)
    plan = sdp.plan(asked, num_users=500, epsilon0=12.0, delta=DELTA)
    result = sdp.run(plan, texts, weights=WEIGHTS, seed=1)
    assert set(result.domain) == {"heavy", "light"}
    place = result.domain.index("heavy")
    found = result.estimates
    assert abs(found.frequency[place] - SHARE) < 6 * found.population_standard_error[place]


def test_sets_are_drawn_from():
    sets = sdp.AnswerSets(["yes", "no"], max_answers=1)
    plan = sdp.plan(sets, num_users=500, epsilon0=8.0, delta=DELTA)
    values = [[each] for each in ANSWERS]
    found = sdp.run(plan, values, weights=WEIGHTS, seed=1).estimates
    assert abs(found.frequency[0] - SHARE) < 6 * found.population_standard_error[0]


@pytest.mark.parametrize("kind", ["shares", "mean", "columns"])
def test_dummies_hide_those_drawn(kind):
    how = {"epsilon0": None, "epsilon": 1.0, "dummies": "shuffler", "max_epsilon0": 8.0}
    _, values, truth = QUESTIONS[kind]
    result = sdp.run(plan_of(kind, **how), values, weights=WEIGHTS, seed=1)
    assert result.dummies
    found = result.estimates
    assert abs(first(found) - truth) < 6 * found.population_standard_error[0]


def test_liars_are_among_those_drawn():
    result = sdp.run(plan_of("shares"), ANSWERS, weights=WEIGHTS, seed=2, dishonest=60)
    assert 0.2 * result.most_shifted < result.attack.shift <= result.most_shifted


def test_strata_are_weights():
    # Half of the population is rural, and one of four who answered.
    rural = np.arange(NUM_USERS) % 4 == 0
    answers = np.where(rural, "yes", "no").tolist()
    weights = np.where(rural, 0.5 / 0.25, 0.5 / 0.75)
    result = sdp.run(plan_of("shares", epsilon0=8.0), answers, weights=weights, seed=1)
    found = result.estimates
    assert abs(found.frequency[0] - 0.5) < 6 * found.population_standard_error[0]
    assert result.weights.ratio == pytest.approx(2.0)


# --------------------------------------------------------------------- tables
@pytest.fixture
def table(tmp_path):
    path = tmp_path / "survey.csv"
    rows = zip(ANSWERS, NUMBERS, WEIGHTS, strict=True)
    lines = [f"{answer},{number},{weight}" for answer, number, weight in rows]
    path.write_text("answer,hours,weight\n" + "\n".join([*lines, ",3,9.5"]) + "\n")
    return path


def run(*words):
    return CliRunner().invoke(cli, ["run", *map(str, words)])


def test_the_command_line_draws_by_a_column(table, tmp_path):
    words = ["--column", "answer", "--domain", "yes,no", "--weight", "weight", "--epsilon0", 3]
    words += ["--delta", DELTA, "--missing", "drop", "--seed", 1, "--out", tmp_path / "out"]
    outcome = run(table, *words)
    assert outcome.exit_code == 0, outcome.output
    assert "Drawn by public weights" in outcome.output
    record = json.loads((tmp_path / "out" / "privacy.json").read_text())
    known = record["weights"]
    assert known["most_weight"] == pytest.approx(WEIGHTS.max())  # not 9.5, without an answer
    assert known["ratio"] == pytest.approx(WEIGHTS.max() / WEIGHTS.mean())
    in_memory = sdp.run(
        sdp.plan(QUESTIONS["shares"][0], num_users=500, epsilon0=3.0, delta=DELTA),
        ANSWERS,
        weights=WEIGHTS,
        seed=1,
    )
    assert record["num_users"] == in_memory.num_users
    found = record["estimates"][0]
    assert found["frequency"] == pytest.approx(in_memory.estimates.frequency[0])
    assert "Drawn by public weights" in (tmp_path / "out" / "report.html").read_text()


def test_a_plan_is_carried_out_with_trimmed_weights(table, tmp_path):
    plan = sdp.plan(QUESTIONS["mean"][0], num_users=300, epsilon=1.0, delta=DELTA)
    words = ["--column", "hours", "--plan", plan.save(tmp_path / "plan.json")]
    words += ["--weight", "weight", "--most-weight", 2, "--seed", 1, "--out", tmp_path / "out"]
    outcome = run(table, *words)
    assert outcome.exit_code == 0, outcome.output
    record = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert record["weights"]["most_weight"] == 2.0
    assert record["guarantee"]["epsilon"]["upper"] < 1.0


def plan_on_command_line(*words):
    how = ["--domain", "yes,no", "--epsilon", 1, "--delta", DELTA, "--randomizer", "k-rr"]
    return CliRunner().invoke(cli, ["plan", *map(str, (*words, *how))])


def test_a_plan_counts_on_those_drawn(table):
    asked = ["--weights", table, "--weight", "weight", "--most-weight", 2]
    outcome = plan_on_command_line(*asked, "--json")
    assert outcome.exit_code == 0, outcome.output
    record = json.loads(outcome.stdout)
    weights = sdp.Weights([*WEIGHTS, 9.5], most_weight=2.0)
    assert record["weights"] == pytest.approx(weights.to_json_dict())
    assert record["num_users"] == weights.fewest_drawn


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--weight weight --num-users 9", "--weights and --weight go together"),
        ("--weights survey.csv", "--weights and --weight go together"),
        ("--most-weight 2 --num-users 9", "--weights and --weight go together"),
        ("--weights survey.csv --weight weight --num-users 9", "leave out --num-users"),
        ("--weights survey.csv --weight weight --epsilon0 1", "is for finding another number"),
    ],
)
def test_a_plan_refuses_what_does_not_go_with_weights(words, said, table, monkeypatch):
    monkeypatch.chdir(table.parent)
    outcome = plan_on_command_line(*words.split())
    assert outcome.exit_code == 2
    assert said in " ".join(outcome.output.split())


@pytest.mark.parametrize("bad", ["", "0", "-1", "nan", "inf", "heavy"])
def test_a_row_without_a_weight_is_refused(bad, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text(f"answer,weight\nyes,1\nno,{bad}\nno,2\n")
    with pytest.raises(
        DomainError, match=r"row 2 .* weight, in column 'weight', is no finite number"
    ):
        open_column(path, "answer", QUESTIONS["shares"][0], weight="weight")


def test_rows_without_an_answer_need_no_weight(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text("answer,weight\nyes,2\n,\nno,2\n")
    column = open_column(path, "answer", QUESTIONS["shares"][0], weight="weight", missing="drop")
    assert (column.num_users, column.weights.num_users) == (2, 2)
    assert np.concatenate(list(column.blocks())).tolist() == [0, 1]


def test_a_weight_that_is_an_answer_is_refused(table):
    with pytest.raises(ParameterError, match=r"weight = 'hours'.* public"):
        open_column(table, "hours", QUESTIONS["mean"][0], weight="hours")
    with pytest.raises(ParameterError, match="most_weight = 2"):
        open_column(table, "hours", QUESTIONS["mean"][0], most_weight=2)


def test_options_that_do_not_go_together_are_refused(table, tmp_path):
    how = ["--column", "answer", "--epsilon0", 3, "--delta", DELTA, "--out", tmp_path / "out"]
    others = ["--shuffler", "mallows", "--alpha", 1, "--groups-by", "hours", "--radius", 1]
    outcome = run(table, *how, "--weight", "weight", *others)
    assert outcome.exit_code == 2
    assert "takes none of" in outcome.output


# --------------------------------------------------------------------- refusals
@pytest.mark.parametrize("bad", [0.0, -2.0, math.nan, math.inf])
def test_bad_weights_are_named(bad):
    with pytest.raises(DomainError, match=r"weights\[1\] = .* is not positive and finite"):
        sdp.Weights([1.0, bad])
    with pytest.raises(ParameterError, match="most_weight"):
        sdp.Weights([1.0], most_weight=bad)
    with pytest.raises(ParameterError, match="so far above all weights"):
        sdp.Weights([1.0], most_weight=1e200)


def test_what_makes_no_sense_is_refused(table):
    for wrong in ([], [[1.0]], "abc", [10**400], [True, True], [1j]):
        with pytest.raises(DataError, match="weights"):
            sdp.Weights(wrong)
    plan = plan_of("mean")
    with pytest.raises(DataError, match=r"2 weights for 1,200 values"):
        sdp.run(plan, NUMBERS, weights=[1.0, 2.0], seed=1)
    with pytest.raises(DataError, match=r"the weights draw . of 1,200 users"):
        sdp.run(plan, NUMBERS, weights=[1e-300] * (NUM_USERS - 1) + [1.0], seed=1)
    column = open_column(table, "hours", QUESTIONS["mean"][0])
    with pytest.raises(ParameterError, match="weights go with values in memory"):
        sdp.run(plan, column, weights=WEIGHTS, seed=1)


@pytest.mark.skipif(not ADULT.exists(), reason="the shared data sets are not here")
def test_adults_final_weights():
    with ADULT.open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) > 12]
    own, hours = np.array([[float(row[2]), float(row[12])] for row in rows]).T
    weights = sdp.Weights(own, most_weight=5e5)
    assert weights.ratio < 3
    plan = sdp.plan(sdp.Mean(0, 99), num_users=weights.fewest_drawn, epsilon=1.0, delta=1e-7)
    result = sdp.run(plan, hours, weights=weights, seed=1)
    assert result.guarantee.epsilon_upper <= 1.0
    trimmed = np.minimum(own, 5e5)
    truth = trimmed @ hours / trimmed.sum()
    error = result.estimates.population_standard_error[0]
    assert abs(result.estimates.mean[0] - truth) < 6 * error
    assert error < 0.4
