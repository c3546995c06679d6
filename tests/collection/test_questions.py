"""Each kind of question knows its randomizers, columns and estimates."""

import json
import math

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.kinds import CHOICES, DOMAIN, KINDS, NUM_USERS, opened
from shuffledp.amplification.registry import account_delta
from shuffledp.collection.questions.question import (
    EstimateOptions,
    chosen_candidates,
    require_column,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.randomizers.base import error_at
from shuffledp.report.plan import error_text, expected_errors

# ---------------- questions
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize(("kind", "name"), CHOICES)
def test_every_candidate_plans_and_meets_the_target(kind, name):
    plan = sdp.plan(
        KINDS[kind].question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6, randomizer=name
    )
    assert plan.randomizer.name == name
    assert plan.guarantee.epsilon_upper <= 1.0
    assert plan.guarantee.delta_upper == 1e-6
    delta = account_delta(
        plan.randomizer.profile, num_users=NUM_USERS, epsilon=1.0, with_lower=False
    )
    assert delta.upper <= 1e-6
    assert 0.0 < plan.expected_standard_error < plan.question.useless_error
    assert plan.alternatives == ()


@EACH
def test_candidates_go_by_their_own_names(kind):
    for name, make in kind.question.candidates().items():
        randomizer = make(1.0)
        assert randomizer.name == name
        assert randomizer.epsilon0 <= 1.0


@EACH
def test_an_unknown_randomizer_gets_a_suggestion(kind):
    name = next(iter(kind.question.candidates()))
    with pytest.raises(ParameterError, match=rf"those for {kind.question.kind}: did you mean '"):
        chosen_candidates(kind.question, name + "x")
    assert list(chosen_candidates(kind.question, name)) == [name]


@EACH
def test_reports_that_say_nothing_have_an_infinite_error(kind):
    for make in kind.question.candidates().values():
        assert kind.question.expected_error(make(0.0), NUM_USERS) == math.inf


@EACH
def test_the_error_falls_with_users_and_epsilon0(kind):
    for make in kind.question.candidates().values():
        few, many = (kind.question.expected_error(make(1.0), users) for users in (100, 10_000))
        assert few == pytest.approx(10.0 * many)
        assert kind.question.expected_error(make(2.0), 100) < few


@EACH
@pytest.mark.parametrize("other", KINDS.values(), ids=KINDS)
def test_only_its_own_columns_are_taken(kind, other, tmp_path):
    path = tmp_path / "a.csv"
    other.table.write_csv(path)
    column = opened(other, path)
    if kind is other:
        require_column(kind.question, column)
    else:
        with pytest.raises(DomainError):
            require_column(kind.question, column)


@EACH
def test_values_in_memory_become_its_own_column(kind):
    column = kind.question.column(kind.values)
    require_column(kind.question, column)
    assert column.num_users == NUM_USERS


@EACH
def test_it_can_be_described(kind):
    question = kind.question
    assert question.describe().isprintable()
    assert len(question.labels) == kind.truth.size
    record = json.loads(json.dumps(question.to_json_dict()))
    assert record["kind"] == question.kind
    assert question.useless_error > 0.0


# ------------------------------------------------------------------ each kind


def test_closed_forms_of_sensitivity_and_uselessness():
    assert KINDS["frequencies"].question.central_sensitivity == 2.0
    assert sdp.Mean(low=-1, high=2).central_sensitivity == 3.0
    assert sdp.Mean(low=-1, high=2).useless_error == 0.75
    vector = sdp.VectorMean(names=("a", "b", "c", "d"), norm_bound=3.0)
    assert (vector.central_sensitivity, vector.useless_error) == (12.0, 1.5)


@pytest.mark.parametrize(("most", "sensitivity"), [(1, 2.0), (2, 4.0), (3, 4.0), (4, 4.0)])
def test_a_set_cannot_change_more_counts_than_there_are(most, sensitivity):
    question = sdp.AnswerSets(domain=tuple("abcd"), max_answers=most)
    assert question.central_sensitivity == sensitivity


def test_null_in_a_column_of_text_is_no_empty_set(tmp_path):
    path = tmp_path / "sets.parquet"
    pl.DataFrame({"sets": ["a;b", None, ""]}).write_parquet(path)
    question = sdp.AnswerSets(domain=("a", "b"), max_answers=2)
    with pytest.raises(DataError, match=r"1 row without an answer .*, the first is row 2"):
        sdp.collection.open_column(path, "sets", question)


def test_descriptions():
    texts = {kind: each.question.describe() for kind, each in KINDS.items()}
    assert texts == {
        "frequencies": "3 answers",
        "mean": "numbers in [0, 120]",
        "vector-mean": "vectors of 3 numbers, norm at most 1",
        "mean-by-group": "numbers in [0, 120] by 2 groups",
        "answer-sets": "up to 2 of 4 answers",
        "columns": "2 columns, 1 pair",
        "distribution": "numbers in 9 bins of [0, 9]",
    }


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda text: sdp.Categories(domain=text), "domain"),
        (lambda text: sdp.AnswerSets(domain=text, max_answers=1), "domain"),
        (lambda text: sdp.VectorMean(names=text), "names"),
    ],
)
def test_a_single_string_is_no_list(make, argument):
    with pytest.raises(ParameterError, match=f"{argument} = 'yes' is a single string"):
        make("yes")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sdp.Categories(domain=("a",)), DomainError, "only 'a'"),
        (lambda: sdp.Mean(low=1, high=0), ParameterError, "wrong way round"),
        (lambda: sdp.Mean(0, 1, name=5), DomainError, "name = 5 is no text"),
        (lambda: sdp.Mean(0, 1, name="\ud800"), DomainError, "name holds bytes that are no text"),
        (
            lambda: sdp.Distribution(bins=4, limits=(0, 1), name=None),
            DomainError,
            "name = None is no text",
        ),
        (lambda: sdp.VectorMean(names=("a",)), ParameterError, "ask for a mean"),
        (lambda: sdp.VectorMean(names=("a", "a")), ParameterError, "two different"),
        (lambda: sdp.VectorMean(names=("a", "b"), norm_bound=0), ParameterError, "norm"),
        (lambda: sdp.Categories(domain=("a", "a")), DomainError, "more than once"),
        (
            lambda: sdp.AnswerSets(domain=("a", "b"), max_answers=3),
            ParameterError,
            "max_answers = 3 is above k = 2",
        ),
        (lambda: sdp.AnswerSets(domain=("a", "b"), max_answers=0), ParameterError, "= 0"),
    ],
)
def test_impossible_questions(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_columns_with_other_limits_or_domains_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n0.1,0.2\n0.3,0.4\n")
    mean = sdp.Mean(low=0, high=1)
    vector = sdp.VectorMean(names=("x", "y"))
    sets = KINDS["answer-sets"].question
    opened = sdp.collection.open_column
    for question, column in (
        (mean, opened(path, "x", sdp.Mean(low=0, high=2))),
        (mean, opened(path, None, vector)),
        (vector, opened(path, None, sdp.VectorMean(names=("x", "y"), norm_bound=2.0))),
        # estimates would be printed under each other's names
        (vector, opened(path, None, sdp.VectorMean(names=("y", "x")))),
        (sets, sdp.AnswerSets(domain=sets.domain, max_answers=1).column([["bus"], []])),
        (sets, sdp.AnswerSets(domain=("bus", "b"), max_answers=2).column([["bus"], []])),
    ):
        with pytest.raises(DomainError):
            require_column(question, column)


# ------------------------------------------------------------------ post-processing


@pytest.mark.parametrize(
    ("kind", "step", "message"),
    [
        ("frequencies", "round", "'round' is not one of clip"),
        ("answer-sets", "round", "'round' is not one of clip"),
        ("answer-sets", "norm-sub", "only clip applies"),
        ("mean", "clip", "means are left as estimated"),
        ("vector-mean", "clip", "means are left as estimated"),
    ],
)
def test_steps_that_make_no_sense_are_refused_before_anybody_is_randomized(kind, step, message):
    question = KINDS[kind].question
    plan = sdp.plan(question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)
    column = question.column(KINDS[kind].values)
    object.__setattr__(column, "blocks", None)  # reading it would fail
    with pytest.raises(ParameterError, match=message):
        sdp.run(plan, column, post_processing=[step])
    options = EstimateOptions(post_processing=(step,))
    with pytest.raises(ParameterError, match=message):
        question.require_post_processing(options.post_processing)


def test_own_candidates_go_by_name_or_by_what_makes_them():
    from functools import partial

    from shuffledp.randomizers import KRandomizedResponse

    def maker(k, epsilon0):
        return KRandomizedResponse(domain_size=k, epsilon0=epsilon0)

    question = sdp.Categories(domain=DOMAIN, own=(KRandomizedResponse, maker, partial(maker)))
    names = list(question.candidates())
    assert names[:2] == ["k-rr", "maker"]
    assert "partial" in names[2]
    assert "own" not in repr(question)


# ---------------- expected error
# Some thirty means of squares, each within eight of its own standard errors: below 1e-13 by normal
# tails, and squares of bounded reports have tails less than a thousand times as heavy there.
FALSE_POSITIVE_RATE = 1e-10
STANDARD_ERRORS = 8.0
NUM_REPORTS = 4000
NUM_COLLECTIONS = 200
EPSILON0 = 2.0


def decoded(question, randomizer, values, label):
    """Return what each report alone would estimate, for one label."""
    reports = randomizer.randomize(values, Entropy.from_seed(11))
    if hasattr(randomizer, "scores"):
        offset, factor = randomizer.score_scale
        return offset + factor * randomizer.scores(reports)[:, label]
    p, q = randomizer.support_probabilities
    supported = randomizer.supports(reports)[:, label]
    return (supported - q) / (p - q)


def assert_variance(squares, expected):
    """Compare the mean squared deviation of reports with what was promised for one."""
    margin = STANDARD_ERRORS * squares.std(ddof=1) / math.sqrt(squares.size)
    assert abs(squares.mean() - expected) <= margin
    assert abs(squares.mean() - 1.5 * expected) > margin  # a planted wrong promise is found


@pytest.mark.parametrize("name", KINDS["frequencies"].question.candidates())
def test_frequencies(name):
    question = KINDS["frequencies"].question
    randomizer = question.candidates()[name](EPSILON0)
    # A user in three has the answer: variance of a report, given its user, averaged.
    holders = decoded(question, randomizer, np.full(NUM_REPORTS, 1), 1)
    others = decoded(question, randomizer, np.full(NUM_REPORTS, 2), 1)
    expected = question.expected_error(randomizer, 1) ** 2
    assert_variance((holders - 1.0) ** 2 / 3 + others**2 * 2 / 3, expected)


@pytest.mark.parametrize("name", KINDS["mean"].question.candidates())
def test_means(name):
    question = KINDS["mean"].question
    randomizer = question.candidates()[name](EPSILON0)
    values = np.linspace(0.0, 120.0, NUM_REPORTS)  # spread evenly, as the promise says
    samples = decoded(question, randomizer, values, 0)
    assert_variance((samples - values) ** 2, question.expected_error(randomizer, 1) ** 2)


@pytest.mark.parametrize("name", KINDS["vector-mean"].question.candidates())
def test_vectors(name):
    question = KINDS["vector-mean"].question
    randomizer = question.candidates()[name](EPSILON0)
    samples = decoded(question, randomizer, np.zeros((NUM_REPORTS, 3)), 1)
    assert_variance(samples**2, question.expected_error(randomizer, 1) ** 2)


def assert_error_of_collections(question, randomizer, values, truth):
    """Compare squared errors of many small collections of the same values with the promise."""
    num_users = len(values)
    errors = []
    for seed in range(NUM_COLLECTIONS):
        reports = randomizer.randomize(values, Entropy.from_seed(seed))
        estimates = question.estimate(randomizer, randomizer.aggregate(reports), EstimateOptions())
        errors.append(estimates.frequency - truth)
    squares = (np.array(errors) ** 2).mean(axis=1)  # of one collection, which are independent
    expected = question.expected_error(randomizer, num_users) ** 2
    margin = STANDARD_ERRORS * squares.std(ddof=1) / math.sqrt(NUM_COLLECTIONS)
    assert abs(squares.mean() - expected) <= margin
    assert abs(squares.mean() - 4.0 * expected) > margin  # a planted wrong promise is found


@pytest.mark.parametrize("name", KINDS["answer-sets"].question.candidates())
def test_answer_sets(name):
    question = sdp.AnswerSets(domain=tuple("abcd"), max_answers=2)
    column = question.column([["a", "b"], [], ["c"], ["d"]] * 8)  # each answer: one user in four
    values = np.concatenate(list(column.blocks()))
    assert_error_of_collections(question, question.candidates()[name](EPSILON0), values, 0.25)


@pytest.mark.parametrize("name", ["sampled:k-rr", "split:k-rr", "sampled:optimized-unary"])
@pytest.mark.parametrize("epsilon0", [0.5, 6.0])
def test_the_worst_error_of_a_share_of_sets_is_the_largest_and_is_said(name, epsilon0):
    plan = sdp.plan(
        sdp.AnswerSets(list("abcde"), max_answers=3),
        num_users=10_000, epsilon0=epsilon0, delta=1e-6, randomizer=name,
    )  # fmt: skip
    worst = plan.question.worst_error(plan.randomizer, 10_000)
    errors = [error_at(plan.randomizer, 10_000, index / 20) for index in range(21)]
    assert worst == max(errors) >= plan.expected_standard_error
    assert plan.to_json_dict()["worst_standard_error"] == worst
    assert ("worst case", f"standard error {error_text(plan, worst)}, whatever the answers") in (
        expected_errors(plan)
    )
