"""Means by group from tables and memory to results, reports, devices and the command line."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collection.output import write_results
from shuffledp.core.errors import DataError, DomainError, ParameterError

# Normal tails beyond eight standard errors, some thirty comparisons.
FALSE_POSITIVE_RATE = 1e-10

GROUPS = ("north", "south", "isle")
ASKED = sdp.MeanByGroup(GROUPS, 0, 100, name="income", by="region", compare=("north", "south"))


def table_of(num_users=6_000):
    """Return groups of many, of some and of three users."""
    drawn = sdp.Entropy.from_seed(3).generator()
    where = np.where(drawn.random(num_users) < 0.7, 0, 1)
    where[:3] = 2
    income = np.clip(drawn.normal(30.0 + 20.0 * where, 10.0), 0.0, 100.0).round(2)
    return pl.DataFrame({"region": [GROUPS[each] for each in where], "income": income})


@pytest.fixture(scope="module")
def table():
    return table_of()


@pytest.fixture(scope="module")
def plan(table):
    return sdp.plan(ASKED, num_users=len(table), epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def result(plan, table):
    return sdp.run(plan, table, seed=1)


def test_a_run_finds_the_means_and_says_which_it_cannot(result, table):
    truth = table.group_by("region").agg(pl.col("income").mean(), pl.len())
    truth = {region: (mean, number) for region, mean, number in truth.iter_rows()}
    found = result.estimates
    for place, region in enumerate(GROUPS[:2]):
        mean, number = truth[region]
        assert abs(found.mean[place] - mean) < 8 * found.standard_error[place]
        error = found.sizes.standard_error[place] * len(table)
        assert abs(found.sizes.count[place] - number) < 8 * error
    assert np.isnan(found.mean[2])
    assert (found.lower[2], found.upper[2]) == (0.0, 100.0)
    assert result.root_mean_square_error < 5.0  # of groups with a statement


def test_the_report_compares_and_hides_no_group(result, tmp_path):
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Mean of north less that of south" in page
    assert "too small for a statement" in page
    assert "nan" not in page.casefold().replace("finance", "")
    text = str(result)
    assert "Estimated members" in text
    assert "0.00 to 100.00" in text


def test_json_has_no_number_for_a_group_too_small(result, tmp_path):
    write_results(result, tmp_path, parameters={}, findings={})
    record = json.loads((tmp_path / "privacy.json").read_text(encoding="utf-8"))
    assert record["estimates"][2]["mean"] is None
    assert record["compare"]["groups"] == ["north", "south"]
    low, high = record["compare"]["respondents"]
    assert low < record["compare"]["difference"] < high < 0.0
    rows = (tmp_path / "estimates.csv").read_text(encoding="utf-8").splitlines()
    assert rows[3].startswith("isle,,")


def test_a_shuffler_adds_dummies(table):
    plan = sdp.plan(
        ASKED,
        num_users=len(table),
        epsilon=1.0,
        delta=1e-6,
        dummies="shuffler",
        no_local_noise=True,
    )
    found = sdp.run(plan, table, seed=2).estimates
    truth = [table.filter(region=region)["income"].mean() for region in GROUPS]
    assert (np.abs(found.mean[:2] - truth[:2]) < 8 * found.standard_error[:2]).all()
    assert found.standard_error[0] < found.population_standard_error[0]
    assert plan.randomizer.num_bits > 1


def test_a_saved_plan_is_the_same(plan, tmp_path):
    loaded = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (loaded.question, loaded.randomizer) == (ASKED, plan.randomizer)


def test_dishonest_users_are_simulated_within_their_limit(plan, table):
    found = sdp.run(plan, table, seed=1, dishonest=60)
    assert 0.0 < found.attack.shift <= found.largest_shift(60)[0]
    assert np.isinf(found.largest_shift(60)[2])
    assert np.isfinite(plan.most_shifted)


class TestReading:
    def column(self, rows, tmp_path, question=ASKED, **reading):
        path = tmp_path / "people.csv"
        path.write_text("region,income\n" + "\n".join(rows) + "\n", encoding="utf-8")
        return sdp.collection.open_column(path, None, question, **reading)

    def test_rows_become_codes_and_numbers(self, tmp_path):
        column = self.column(["south,1.5", "north,100", " isle ,0"], tmp_path)
        assert next(column.blocks()).tolist() == [[1, 1.5], [0, 100.0], [2, 0.0]]

    def test_another_column_of_numbers_may_be_named(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("wage,region\n5,north\n6,south\n", encoding="utf-8")
        column = sdp.collection.open_column(path, "wage", ASKED)
        assert next(column.blocks()).tolist() == [[0, 5.0], [1, 6.0]]

    @pytest.mark.parametrize(
        ("row", "error", "message"),
        [
            ("west,1", DomainError, "whose group, in column .*, is outside the domain"),
            ("north,101", DomainError, r"outside \[0, 100\]"),
            ("north,much", DataError, "no number"),
            ("north,", DataError, "without an answer"),
            (",5", DataError, "without an answer"),
        ],
    )
    def test_values_that_cannot_be(self, row, error, message, tmp_path):
        with pytest.raises(error, match=message):
            self.column(["north,1", "south,2", row], tmp_path)

    def test_rows_without_either_may_be_dropped(self, tmp_path):
        rows = ["north,1", ",2", "south,", "south,200"]
        column = self.column(rows, tmp_path, missing="drop", clip=True)
        assert next(column.blocks()).tolist() == [[0, 1.0], [1, 100.0]]
        assert column.num_missing == 2

    def test_missing_numbers_are_no_category(self, tmp_path):
        with pytest.raises(ParameterError, match="makes no sense for numbers"):
            self.column(["north,1"], tmp_path, missing="category")

    def test_columns_in_memory(self):
        with pytest.raises(DataError, match="no column 'income'"):
            ASKED.column({"region": ["north", "south"]})
        column = ASKED.column({"region": ["north", "south"], "income": [1, 2]})
        assert next(column.blocks()).tolist() == [[0, 1.0], [1, 2.0]]


class TestQuestion:
    @pytest.mark.parametrize(
        ("how", "error", "message"),
        [
            ({"groups": ["a"]}, DomainError, "groups has only 'a'"),
            ({"groups": "ab"}, ParameterError, "single string"),
            ({"low": 1.0}, ParameterError, "wrong way round"),
            ({"high": np.inf}, ParameterError, "high"),
            ({"compare": ("a", "z")}, ParameterError, "not two different groups"),
            ({"compare": ("a",)}, ParameterError, "not two different groups"),
            ({"compare": "a"}, ParameterError, "single string"),
            ({"name": "x", "by": "x"}, ParameterError, "column of the numbers too"),
        ],
    )
    def test_impossible_ones(self, how, error, message):
        with pytest.raises(error, match=message):
            sdp.MeanByGroup(**({"groups": ["a", "b"], "low": 0.0, "high": 1.0} | how))

    def test_its_form_in_json(self):
        again = sdp.MeanByGroup.from_json(ASKED.to_json_dict(), ASKED.labels)
        assert again == ASKED
        assert "compare" not in sdp.MeanByGroup(GROUPS, 0, 1).to_json_dict()

    @pytest.mark.parametrize(
        ("answer", "error", "message"),
        [
            (("west", 1), DomainError, "outside the domain"),
            (("north", 101), DomainError, "outside"),
            (("north",), DataError, "1 parts"),
            ("north", DataError, "give the group and the number, such as north,0"),
            (("north", ""), DataError, "no answer"),
            (None, DataError, "no answer"),
        ],
    )
    def test_answers_on_a_device_that_cannot_be(self, answer, error, message):
        with pytest.raises(error, match=message):
            ASKED.value_of_one(answer)

    def test_a_device_answers_it(self):
        asked = sdp.deploy.AskedTerms.of(ASKED, "group-bits-1", 4.0, "What do you earn?")
        assert sdp.deploy.AskedTerms.from_json_dict(json.loads(asked.to_json())) == asked
        drawn = asked.randomizer.randomize(
            asked.question.value_of_one(("south", "12.5")), sdp.Entropy.from_seed(1)
        )
        (sent,) = asked.codec.encode(drawn)
        assert asked.codec.decode_valid([sent, b"\xff"])[1] == 1


class TestCommandLine:
    def test_run(self, table, tmp_path):
        path, out = tmp_path / "people.csv", tmp_path / "out"
        table.write_csv(path)
        words = f"run {path} --mean --by region --domain north,south,isle --range 0,100"
        words += (
            f" --column income --compare north,isle --epsilon 1 --delta 1e-6 --seed 1 --out {out}"
        )
        outcome = CliRunner().invoke(cli, words.split(), catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        assert "Mean of north less that of isle, one of them too small" in outcome.output

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("--by region --domain a,b", "--by goes with --mean"),
            ("--mean --range 0,1 --compare a,b", "--compare goes with --by"),
            ("--mean --range 0,1 --by region", "--by needs --domain"),
            ("--mean --by region --domain a,b", "--mean --range 0,120"),
            ("--mean --range 0,1 --by region --domain a,b --compare a,c", "compare = a,c are"),
        ],
    )
    def test_options_that_do_not_go_together(self, words, message):
        words = f"plan {words} --num-users 1000 --epsilon 1 --delta 1e-6"
        outcome = CliRunner().invoke(cli, words.split())
        assert outcome.exit_code != 0
        assert message in f"{outcome.output} {outcome.exception}"
