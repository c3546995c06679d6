"""Several columns at once: from tables to shares, cross-tables and associations."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import shuffledp as sdp
from adversarial import exact
from shuffledp.collection.questions.columns import MOST_BINS, UnlistedColumns, read_domains
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.run import collect
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.randomizers.parts import AllParts, SampledParts

# Probability that correct code fails this module: coverages of 26 intervals in four settings.
FALSE_POSITIVE_RATE = 1e-9
NUM_RUNS, CONFIDENCE = 300, 0.9

DOMAINS = {"age": ["young", "mid", "old"], "vote": ["yes", "no"], "car": ["a", "b", "c"]}
ASKED = sdp.Columns(DOMAINS, pairs="all")


def survey(num_users=1200):
    """Return columns of answers that depend on each other."""
    rng = sdp.Entropy.from_seed(1).generator()
    ages = rng.choice(DOMAINS["age"], num_users, p=[0.5, 0.3, 0.2])
    votes = np.where(rng.random(num_users) < np.where(ages == "old", 0.9, 0.4), "yes", "no")
    return {"age": ages, "vote": votes, "car": rng.choice(DOMAINS["car"], num_users)}


def truth_of(table):
    """Return the true share of every label."""
    shares = []
    for label in ASKED.labels:
        held = [each.split("=") for each in label.split(" & ")]
        shares.append(np.mean(np.all([table[n] == answer for n, answer in held], axis=0)))
    return np.array(shares)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(), ("consistent",)], ids=["apart", "consistent"])
@pytest.mark.parametrize("epsilon0", [4.0, math.inf])
def test_intervals_cover_and_estimates_are_unbiased(epsilon0, steps):
    table = survey()
    codes = np.concatenate(list(ASKED.column(table).blocks()))
    truth, laws = truth_of(table), ()
    randomizer = SampledParts(sizes=ASKED.sizes, epsilon0=epsilon0) if epsilon0 < 9 else None
    if randomizer is None:
        randomizer = AllParts(sizes=ASKED.sizes, epsilon0=epsilon0)
        laws = (DummyLaw.from_text("gaussian:6:48"),) * 3
    entropy, found = sdp.Entropy.from_seed(2), []
    options = EstimateOptions(confidence=CONFIDENCE, post_processing=steps)
    for _ in range(NUM_RUNS):
        how = {"num_users": len(codes), "entropy": entropy.spawn(), "dummies": laws}
        found.append(ASKED.estimate(randomizer, collect(randomizer, [codes], **how), options))
    assert all(each.post_processing == steps for each in found)
    level = FALSE_POSITIVE_RATE / (2 * 2 * truth.size * 2)
    held = np.sum([(e.lower <= truth) & (truth <= e.upper) for e in found], axis=0)
    # Supports are whole numbers, so that coverage jumps around its nominal value.
    assert (held >= binom.ppf(level, NUM_RUNS, CONFIDENCE - 0.01)).all()
    assert (held <= binom.isf(level, NUM_RUNS, CONFIDENCE + 0.01)).all()
    off = np.mean([each.frequency - truth for each in found], axis=0)
    assert np.all(np.abs(off) < 8 * found[0].standard_error / math.sqrt(NUM_RUNS))


@pytest.mark.slow
def test_rare_cells_of_consistent_tables_are_covered():
    # By normal intervals a cell of nobody was covered in 0.76 of the runs, and all at once in 0.33.
    rng = sdp.Entropy.from_seed(1).generator()
    laws = ([0.9, 0.08, 0.02], [0.97, 0.03], [0.6, 0.39, 0.01])
    table = {
        name: rng.choice(answers, 200, p=law)
        for (name, answers), law in zip(DOMAINS.items(), laws, strict=True)
    }
    codes, truth = np.concatenate(list(ASKED.column(table).blocks())), truth_of(table)
    randomizer, entropy = SampledParts(sizes=ASKED.sizes, epsilon0=8.0), sdp.Entropy.from_seed(2)
    held = {False: 0, True: 0}
    for _ in range(NUM_RUNS):
        counts = randomizer.aggregate(randomizer.randomize(codes, entropy))
        for is_at_once in held:
            options = EstimateOptions(post_processing=("consistent",), simultaneous=is_at_once)
            found = ASKED.estimate(randomizer, counts, options)
            covered = (found.lower <= truth) & (truth <= found.upper)
            held[is_at_once] += covered.all() if is_at_once else covered
    level = FALSE_POSITIVE_RATE / (2 * truth.size)
    assert binom.cdf(held[False], NUM_RUNS, 0.94).min() > level
    assert binom.cdf(held[True], NUM_RUNS, 0.94) > level
    assert binom.cdf(0.76 * NUM_RUNS, NUM_RUNS, 0.94) < level


def test_consistent_tables_agree_and_err_less():
    plan = sdp.plan(ASKED, num_users=1200, epsilon=2.0, delta=1e-6)
    apart, made = (
        sdp.run(plan, survey(), seed=3, post_processing=steps).estimates
        for steps in ((), ("consistent",))
    )
    labels = list(ASKED.labels)
    for column, answer in (("age", "old"), ("vote", "no"), ("car", "b")):
        own = made.frequency[labels.index(f"{column}={answer}")]
        for pair in ASKED.pairs:
            if column in pair:
                cells = [
                    made.frequency[place]
                    for place, label in enumerate(labels)
                    if " & " in label
                    and {each.split("=")[0] for each in label.split(" & ")} == set(pair)
                    and f"{column}={answer}" in label.split(" & ")
                ]
                assert sum(cells) == pytest.approx(own, abs=1e-12)
    cells = slice(ASKED.num_margins, None)
    before, after = ((each.standard_error[cells] ** 2).mean() for each in (apart, made))
    assert after < 0.8 * before
    assert (apart.interval, made.interval) == ("wilson, score for sums", "score")
    assert made.associations == apart.associations


def test_associations_are_found_and_written(tmp_path):
    plan = sdp.plan(ASKED, num_users=1200, epsilon=2.0, delta=1e-6)
    result = sdp.run(plan, survey(), seed=4)
    first, *_ = written = json.loads(json.dumps(result.to_json_dict()["associations"]))
    assert (first["first"], first["second"], first["degrees_of_freedom"]) == ("age", "vote", 2)
    assert first["p_value"] < 1e-3
    assert [each["p_value"] > 1e-3 for each in written[1:]] == [True, True]
    assert "age and vote" in str(result)
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "age by vote, with 95% intervals" in page
    assert "as if these users were a sample" in page


def test_a_column_in_no_pair_is_a_part_of_its_own():
    asked = sdp.Columns(DOMAINS, pairs=[("vote", "age")])
    assert asked.parts == (("car",), ("vote", "age"))
    assert asked.sizes == (3, 6)
    column = asked.column(survey())
    (block,) = column.blocks()
    plan = sdp.plan(asked, num_users=1200, epsilon=2.0, delta=1e-6)
    estimates = sdp.run(plan, column, seed=5).estimates
    assert estimates.interval == "wilson, score for sums"
    assert block[:, 1].max() == 5
    alone = sdp.run(sdp.plan(sdp.Columns(DOMAINS), num_users=1200, epsilon=2.0, delta=1e-6),
                    survey(), seed=5)  # fmt: skip
    assert (alone.estimates.interval, alone.estimates.associations) == ("wilson", ())


@pytest.mark.parametrize("pairs", [None, "all", [("age", "vote")]])
def test_the_error_of_a_result_is_of_the_cells_that_the_plan_names(pairs):
    plan = sdp.plan(sdp.Columns(DOMAINS, pairs=pairs), num_users=1200, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, survey(), seed=1)
    assert result.root_mean_square_error == pytest.approx(plan.expected_standard_error, rel=0.03)


@pytest.mark.parametrize("pairs", ["all", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]])
def test_lower_ends_are_those_of_answers_that_exist(pairs):
    """Among four columns of two answers no three rows differ in all six pairs."""
    asked = sdp.Columns({name: ["0", "1"] for name in "abcd"}, pairs=pairs)
    randomizer = asked.candidates()["sampled-parts"](2.0)
    rows = np.array(list(itertools.product([0, 1], repeat=4)))
    places = [["abcd".index(name) for name in part] for part in asked.parts]
    codes = np.stack([2 * rows[:, one] + rows[:, other] for one, other in places], axis=1)
    chances = np.array(randomizer.levels[0].channel())
    channel = np.concatenate([chances[each] for each in codes.T], axis=1) / Fraction(len(places))
    truth = exact.Shuffled(channel.tolist(), 2)
    for epsilon in (0.2, 1.0):
        found = sdp.account(randomizer.profile, num_users=2, epsilon=epsilon)
        worst, _ = truth.worst(epsilon)
        assert 0.99 * worst < found.lower <= worst * (1.0 + 1e-9)
        assert worst <= found.upper * (1.0 + 1e-9)


def test_json_and_devices():
    written = json.loads(json.dumps(ASKED.to_json_dict()))
    assert sdp.Columns.from_json(written, ASKED.labels) == ASKED
    with pytest.raises(DomainError, match="labels are not those"):
        sdp.Columns.from_json(written, ASKED.labels[1:])
    answer = {"age": "old", "vote": "no", "car": "a"}
    assert ASKED.parts == (("age", "vote"), ("age", "car"), ("vote", "car"))
    assert ASKED.value_of_one(answer).tolist() == [[5, 6, 3]]
    assert ASKED.value_of_one(["vote=no", "age=old", "car=a"]).tolist() == [[5, 6, 3]]
    terms = sdp.deploy.AskedTerms.of(ASKED, "sampled-parts", 2.0)
    assert sdp.deploy.AskedTerms.from_json_dict(json.loads(terms.to_json())) == terms
    assert terms.codec.num_report_bytes == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "there is no answer"),
        ("old", "of no columns"),
        (["age=old", "vote=no"], "not one of each of age, vote, car"),
        (["age=old", "vote=no", "vote=yes", "car=a"], "name a column twice"),
        ({"age": "old", "vote": "", "car": "a"}, "there is no answer"),
        ({"age": "older", "vote": "no", "car": "a"}, "outside the domain"),
    ],
)
def test_answers_of_a_device_that_are_refused(answer, message):
    with pytest.raises((DataError, DomainError), match=message):
        ASKED.value_of_one(answer)


@pytest.mark.parametrize(
    ("domains", "pairs", "message"),
    [
        ([], None, "names no answers"),
        (["age"], None, "give the possible ones of each column"),
        ({"age": ["old"]}, None, "'age' has only 'old': .* with domains="),
        ({"age": ["old", "old"]}, None, "lists 'old' more than once"),
        ({"age": "old"}, None, "single string"),
        (DOMAINS, "some", "give 'all', or pairs"),
        (DOMAINS, [("age", "age")], "give two different ones"),
        (DOMAINS, [("age", "sex")], "give two different ones of age, vote, car"),
        (DOMAINS, [("age", "vote", "car")], "give two different ones"),
        (DOMAINS, [("age", "vote"), ("vote", "age")], "twice: give each pair once"),
        (
            {"a": ["1", "2 & b=1"], "b": ["1", "2"], "a=2 & b": ["1", "2"]},
            [("a", "b")],
            "label two",
        ),
        ({"a": ["b=c", "d"], "a=b": ["c", "d"]}, None, "'a=b=c' would label two shares, since"),
    ],
)
def test_questions_that_are_refused(domains, pairs, message):
    with pytest.raises((ParameterError, DomainError), match=message):
        sdp.Columns(domains, pairs=pairs)


def test_too_many_cells_are_refused_with_pairs_that_would_do():
    many = {name: range(size) for name, size in (("a", 400), ("b", 400), ("c", 20), ("d", 30))}
    with pytest.raises(DomainError, match="200,600 cells") as refused:
        sdp.Columns(many, pairs="all")
    advised = str(refused.value).split("pairs = ")[1].split(" would do")[0]
    pairs = [each.split(":") for each in advised.split(",")]
    assert ["c", "d"] in pairs
    assert ["a", "b"] not in pairs
    assert sum(sdp.Columns(many, pairs=pairs).sizes) <= MOST_BINS


@pytest.mark.parametrize("make", [SampledParts, AllParts])
def test_one_user_moves_no_share_by_more(make):
    randomizer, rng = make(sizes=ASKED.sizes, epsilon0=2.0), sdp.Entropy.from_seed(7).generator()
    rows = np.concatenate(list(ASKED.column(survey(60)).blocks()))
    drawn = randomizer.randomize(rows, sdp.Entropy.from_seed(8))
    options, width = EstimateOptions(), len(drawn.data) // len(rows)

    def shares(data):
        made = randomizer.aggregate(
            sdp.collection.Reports(data=data, fingerprint=drawn.fingerprint)
        )
        return ASKED.estimate(randomizer, made, options).frequency, made

    before, counts = shares(drawn.data)
    bound = ASKED.shift_by_one(randomizer, 60, counts)
    for place in range(len(ASKED.labels)):
        data = drawn.data.copy()
        user = rng.integers(60)
        data[user * width : (user + 1) * width] = ASKED.worst_report(randomizer, place)
        after, seen = shares(data)
        most = np.maximum(bound, ASKED.shift_by_one(randomizer, 60, seen))
        assert (np.abs(after - before) <= most * (1 + 1e-9)).all()
        assert make is SampledParts or after[place] >= before[place] - 1e-12


@pytest.mark.parametrize("steps", [("norm-sub",), ("clip", "consistent")])
def test_other_post_processing_is_refused(steps):
    with pytest.raises(ParameterError, match="only consistent and clip apply"):
        ASKED.require_post_processing(steps)


def test_clipped_after_they_were_made_consistent():
    plan = sdp.plan(ASKED, num_users=1200, epsilon=1.0, delta=1e-6)
    made = sdp.run(plan, survey(), seed=6, post_processing=("consistent", "clip")).estimates
    assert made.post_processing == ("consistent", "clip")
    assert made.frequency.min() >= 0.0
    assert made.associations


def test_missing_values_and_others_in_one_column(tmp_path):
    table = pl.DataFrame({"a": ["x", "y", None, "x"], "b": ["1", "2", "1", "3"]})
    table.write_csv(tmp_path / "t.csv")
    asked, path = sdp.Columns({"a": ["x", "y"], "b": ["1", "2"]}), tmp_path / "t.csv"
    opened = sdp.collection.open_column
    with pytest.raises(DomainError, match="outside the domain of column 'b'"):
        opened(path, None, asked, missing="drop")
    with pytest.raises(DataError, match="1 row without an answer"):
        opened(path, None, asked, other=True)
    column = opened(path, None, asked, missing="category", other=True)
    read = column.question
    assert dict(read.domains)["b"] == ("1", "2", "other", "missing")
    assert np.concatenate(list(column.blocks())).tolist() == [[0, 0], [1, 1], [3, 0], [0, 2]]
    column = opened(path, None, asked, missing="drop", other=True)
    assert (column.num_users, column.num_missing) == (3, 1)
    with pytest.raises(DomainError, match="which the domain of 'a' lacks"):
        asked.column(table, missing="category")


def test_values_in_memory_that_are_refused():
    asked = sdp.Columns({"a": ["x", "y"], "b": ["1", "2"]})
    with pytest.raises(DataError, match="values has no column 'b'"):
        asked.column({"a": ["x", "y"]})
    with pytest.raises(DataError, match="give a data frame"):
        asked.column([["x", "1"]])
    with pytest.raises(DataError, match="one row a user"):
        asked.column({"a": ["x", "y"], "b": ["1"]})


def test_answers_read_from_the_data_come_with_a_caution(tmp_path):
    pl.DataFrame(survey()).write_csv(tmp_path / "t.csv")
    unlisted = UnlistedColumns(("age", "vote"), "all")
    column = sdp.collection.open_column(tmp_path / "t.csv", None, unlisted)
    assert "lists of answers were read from the data" in column.cautions[0]
    assert column.question.pairs == (("age", "vote"),)
    with pytest.raises(ParameterError, match="'age' twice"):
        UnlistedColumns(("age", "age"))


def test_files_of_domains(tmp_path):
    path = tmp_path / "domains.json"
    path.write_text(json.dumps(DOMAINS), encoding="utf-8")
    assert read_domains(path, ["vote", "age"]) == {k: DOMAINS[k] for k in ("vote", "age")}
    with pytest.raises(DataError, match="lists no answers of column 'sex'"):
        read_domains(path, ["sex"])
    with pytest.raises(DataError, match="cannot read the domains"):
        read_domains(tmp_path / "none.json", ["age"])
    for text in ("[1]", "{", '{"age": "old"}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="no JSON object with a list"):
            read_domains(path, ["age"])
