"""Distributions of numbers, from the question to files and pages."""

import json
import math

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.estimation.post_processing import norm_sub
from shuffledp.report.run import figure_of_cumulative, figure_of_estimates

# Seeded comparisons within eight standard errors, some fifty of them, by normal tails.
FALSE_POSITIVE_RATE = 1e-11
STANDARD_ERRORS = 8.0

TARGET = {"epsilon": 1.0, "delta": 1e-6}


def numbers(num_users, seed=1):
    """Return numbers in [0, 100], more small ones than large ones."""
    return 100.0 * sdp.Entropy.from_seed(seed).generator().beta(2.0, 4.0, num_users)


class TestQuestion:
    def test_bins(self):
        question = sdp.Distribution([0, 18, 65.5, 120])
        assert question.labels == ("[0, 18)", "[18, 65.5)", "[65.5, 120]")
        column = question.column([0, 17.999, 18, 65.5, 120])
        assert next(column.blocks()).tolist() == [0, 0, 1, 2, 2]
        assert question.value_of_one("120").tolist() == [2]
        assert question.value_of_one(17).tolist() == [0]
        assert sdp.Distribution(bins=10, limits=(0, 1)).edges[3] == 0.3
        assert sdp.Distribution([-1e300, 1 / 3, 1e300]).labels[0] == "[-1e+300, 0.3333333333333333)"

    def test_it_is_written_as_json(self):
        from shuffledp.collection.questions import question_from_json

        question = sdp.Distribution([0, 1 / 3, 1], quantiles=(0.9,), name="x")
        written = json.loads(json.dumps(question.to_json_dict()))
        assert question_from_json(written, question.labels) == question

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "give edges alone, or bins and limits"),
            ({"edges": [0, 1, 2], "bins": 3}, "give edges alone"),
            ({"bins": 3}, "give edges alone"),
            ({"limits": (0, 1)}, "give edges alone"),
            ({"bins": 3, "limits": 1.0}, "limits = 1.0 are not two numbers"),
            ({"bins": 3, "limits": (0, 1), "quantiles": 0.5}, "quantiles = 0.5 is a single value"),
            ({"edges": [0, 1]}, "number of bins = 1 is below 2"),
            ({"bins": 1, "limits": (0, 1)}, "bins = 1 is below 2"),
            ({"bins": 4097, "limits": (0, 1)}, "bins = 4097 is above 4,096: merge bins"),
            ({"bins": 2, "limits": (1, 0)}, "high"),
            ({"bins": 2, "limits": (0, math.inf)}, "high"),
            ({"edges": [0, 2, 1]}, "edges have 2.0, 1.0 in a row"),
            ({"edges": [0, 1, 1]}, "edges have 1.0, 1.0 in a row"),
            ({"edges": [0, math.nan, 1]}, "edges = nan is not finite"),
            ({"edges": [0, 1, 10**400]}, "0 is not finite: give a finite number"),
            ({"edges": [0, "x", 1]}, "edges = 'x' is not a number"),
            ({"bins": 2, "limits": (0, 1), "quantiles": [0.5, 1.0]}, r"quantiles = 1.0 is not in"),
            ({"bins": 2, "limits": (0, 1), "quantiles": [math.nan]}, "quantiles = nan"),
        ],
    )
    def test_bad_questions(self, given, message):
        with pytest.raises(ParameterError, match=message):
            sdp.Distribution(**given)

    def test_numbers_outside_of_the_bins(self, tmp_path):
        question = sdp.Distribution([0, 1, 2])
        with pytest.raises(DomainError, match=r"outside \[0, 2\].*2 rows of 3 hold such values"):
            question.column([1.5, 2.1, -0.1])
        with pytest.raises(DomainError, match="outside"):
            question.value_of_one(2.1)
        with pytest.raises(DataError, match="without an answer"):
            question.column([1.5, None, 1.0])
        path = tmp_path / "x.csv"
        path.write_text("x\n1.5\n2.1\n-7\n")
        column = sdp.collection.open_column(path, "x", question, clip=True)
        assert next(column.blocks()).tolist() == [1, 1, 0]

    def test_post_processing(self):
        plan = sdp.plan(sdp.Distribution(bins=16, limits=(0, 100)), num_users=500, **TARGET)
        with pytest.raises(ParameterError, match="clip leaves shares that do not sum to 1"):
            sdp.run(plan, numbers(500), seed=1, post_processing=["clip"])
        found = sdp.run(plan, numbers(500), seed=1, post_processing=["norm-sub"]).estimates
        assert (np.diff(found.cumulative) >= 0.0).all()
        assert found.frequency.sum() == pytest.approx(1.0)


class TestPlan:
    @pytest.mark.parametrize(("bins", "levels"), [(2, 1), (8, 1), (64, 1), (1024, 4)])
    def test_a_tree_where_it_errs_less(self, bins, levels):
        question = sdp.Distribution(bins=bins, limits=(0, 1))
        plan = sdp.plan(question, num_users=100_000, **TARGET)
        assert plan.randomizer.name == f"sampled-levels-{levels}"
        assert plan.guarantee.epsilon_upper <= 1.0
        errors = [plan.expected_standard_error]
        errors += [each.expected_standard_error for each in plan.alternatives]
        assert errors[0] <= 1.02 * min(errors)

    def test_dummies_come_close_to_a_curator(self):
        question = sdp.Distribution(bins=1024, limits=(0, 1))
        how = {"dummies": "shuffler", "no_local_noise": True}
        plan = sdp.plan(question, num_users=100_000, **TARGET, **how)
        assert plan.randomizer.name == "all-levels-5"
        curator = plan.central_model.standard_error_at_same_epsilon
        assert plan.expected_standard_error < curator
        (law,) = set(plan.dummies)
        factor = plan.randomizer.dummy_factor / 100_000
        assert plan.expected_standard_error == pytest.approx(
            factor * math.sqrt(law.variance / 10.0), rel=0.01
        )
        # A limit of the local loss is shared out: with few levels noise is less.
        capped = sdp.plan(question, num_users=100_000, **TARGET, dummies="shuffler", max_epsilon0=6)
        assert capped.randomizer.name == "all-levels-1"
        assert plan.frequent_error() is None

    def test_the_error_to_expect_is_found(self):
        for how in ({}, {"dummies": "shuffler", "max_epsilon0": 6.0}):
            question = sdp.Distribution(bins=32, limits=(0, 1))
            plan = sdp.plan(question, num_users=32_000, **TARGET, **how)
            result = sdp.run(plan, np.arange(32_000) / 32_000, seed=1)
            assert result.root_mean_square_error == pytest.approx(
                plan.expected_standard_error, rel=0.02
            )
            population = (result.estimates.cumulative_population_standard_error[:-1] ** 2).mean()
            assert math.sqrt(population) == pytest.approx(
                plan.expected_population_standard_error, rel=0.02
            )

    @pytest.mark.slow
    def test_it_is_saved(self, tmp_path):
        question = sdp.Distribution(bins=64, limits=(0, 1), quantiles=(0.1,))
        for how in ({}, {"dummies": "shuffler", "max_epsilon0": 6.0}):
            plan = sdp.plan(question, num_users=1000, **TARGET, **how)
            loaded = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
            assert (loaded.question, loaded.randomizer) == (question, plan.randomizer)
            assert loaded.dummies == plan.dummies

    def test_reports_without_noise_say_nothing_at_0(self):
        question = sdp.Distribution(bins=9, limits=(0, 1))
        law = question.candidates()["sampled-levels-2"](0.0)
        assert question.expected_error(law, 10) == math.inf


@pytest.fixture(scope="module", params=["crowd", "dummies"])
def result(request):
    how = {} if request.param == "crowd" else {"dummies": "shuffler", "max_epsilon0": 6.0}
    question = sdp.Distribution(bins=50, limits=(0, 100), name="minutes")
    plan = sdp.plan(question, num_users=20_000, **TARGET, **how)
    return sdp.run(plan, numbers(20_000), seed=2)


class TestResult:
    def test_estimates(self, result):
        values = numbers(20_000)
        found, edges = result.estimates, np.array(result.question.edges)
        truth = np.array([(values < edge).mean() for edge in edges[1:]])
        errors = found.cumulative_standard_error
        assert (np.abs(found.cumulative - truth) <= STANDARD_ERRORS * errors + 1e-9).all()
        assert found.cumulative[-1] == 1.0
        assert errors[-1] == 0.0
        share = found.between(20, 50)
        exact = ((values >= 20) & (values < 50)).mean()
        assert abs(share.value - exact) < STANDARD_ERRORS * (share.upper - share.value)
        whole = found.between(0, 100)
        assert whole == pytest.approx((1.0, 1.0, 1.0))
        wider = found.between(20, 50, about="population")
        assert wider.upper - wider.lower > share.upper - share.lower
        for (asked, quantile), exact in zip(
            result.quantiles, np.quantile(values, [0.25, 0.5, 0.75]), strict=True
        ):
            assert quantile.lower <= quantile.value <= quantile.upper
            assert quantile.lower - 4.0 <= exact <= quantile.upper + 4.0
            population = found.quantiles(asked, about="population")[0]
            assert population.lower <= quantile.lower <= quantile.upper <= population.upper

    def test_the_band_is_wider_than_single_intervals(self, result):
        found = result.estimates
        lower, upper = found.cumulative_interval()
        low, high = found.cumulative_interval(simultaneous=True)
        assert (low[:-1] < lower[:-1]).all()
        assert (high[:-1] > upper[:-1]).all()
        assert found.columns()["cumulative_upper"].tolist() == upper.tolist()

    def test_post_processing_leaves_all_intervals(self, result):
        found = result.estimates
        moved = norm_sub(found)
        for about in ("respondents", "population"):
            for one, other in zip(
                found.cumulative_interval(about=about),
                moved.cumulative_interval(about=about),
                strict=True,
            ):
                assert one.tolist() == other.tolist()
            assert moved.between(20, 50, about=about)[1:] == found.between(20, 50, about=about)[1:]
        assert moved.population_lower.tolist() == found.population_lower.tolist()

    def test_bad_ranges(self, result):
        with pytest.raises(ParameterError, match=r"low = 21 is no edge .* nearest are 20 and 22"):
            result.estimates.between(21, 50)
        with pytest.raises(ParameterError, match="low = 50 is not below high = 20"):
            result.estimates.between(50, 20)
        for value in (0.0, 1.0, math.nan):
            with pytest.raises(ParameterError, match="probability"):
                result.estimates.quantiles(value)

    def test_files_and_pages(self, result, tmp_path):
        record = json.loads(json.dumps(result.to_json_dict()))
        assert [each["quantile"] for each in record["quantiles"]] == [0.25, 0.5, 0.75]
        assert record["estimates"][-1]["cumulative"] == 1.0
        text = str(result)
        assert "Median of the values, " in text
        assert "25% quantile: " in text
        page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
        assert 'id="chart-cumulative"' in page
        assert 'id="chart-estimates"' in page
        assert "95% simultaneous intervals, holds all of them at once" in page
        assert "each of 50" in figure_of_estimates(result).description
        assert "75% quantile" in page
        figure = figure_of_cumulative(result)
        assert len(figure.legend) == 4
        assert len(figure.rows) == 51

    def test_more_bins_than_can_be_seen_are_drawn_as_a_line_alone(self, tmp_path):
        plan = sdp.plan(sdp.Distribution(bins=200, limits=(0, 100)), num_users=900, **TARGET)
        found = sdp.run(plan, numbers(900), seed=1)
        page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
        assert 'id="chart-cumulative"' in page
        assert 'id="chart-estimates"' not in page

    def test_other_questions_have_no_quantiles(self):
        plan = sdp.plan(sdp.Categories(["a", "b"]), num_users=99, **TARGET)
        other = sdp.run(plan, ["a", "b", "b"] * 33, seed=1)
        assert other.quantiles == ()
        assert figure_of_cumulative(other) is None
        assert "quantiles" not in other.to_json_dict()

    def test_everybody_says_the_same(self):
        for bins in (2, 64):
            plan = sdp.plan(sdp.Distribution(bins=bins, limits=(0, 64)), num_users=500, **TARGET)
            found = sdp.run(plan, np.full(500, 40.0), seed=1).estimates
            median = found.quantiles(0.5)[0]
            assert median.lower <= 40.0 <= median.upper

    def test_of_a_sample_of_the_users(self, result):
        found = result.estimates.for_all_users(80_000)
        own, population = (
            found.cumulative_standard_error,
            found.cumulative_population_standard_error,
        )
        is_inside = (found.cumulative > 0.0) & (found.cumulative < 1.0)
        assert (own > result.estimates.cumulative_standard_error)[is_inside].all()
        assert (own < population)[is_inside].all()

    def test_devices(self):
        question = sdp.Distribution(bins=64, limits=(0, 64))
        asked = sdp.deploy.AskedTerms.of(question, "sampled-levels-3", 4.0, "How long?")
        assert sdp.deploy.AskedTerms.from_json_dict(json.loads(asked.to_json())) == asked
        values = np.concatenate([question.value_of_one(each) for each in range(64)])
        reports = asked.randomizer.randomize(np.tile(values, 99), sdp.Entropy.from_seed(1))
        encoded = asked.codec.encode(reports)
        decoded, invalid = asked.codec.decode_valid([*encoded, b"\xff"])
        assert invalid == 1
        estimates = question.estimate(asked.randomizer, asked.randomizer.aggregate(decoded),
                                      EstimateOptions())  # fmt: skip
        assert abs(estimates.cumulative[31] - 0.5) < 8 * estimates.cumulative_standard_error[31]


class TestCommands:
    def invoke(self, *words):
        return CliRunner().invoke(cli, [*map(str, words)])

    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "x.csv"
        pl.DataFrame({"x": numbers(2000).round(2)}).write_csv(path)
        return path

    def test_run(self, table, tmp_path):
        how = ["--column", "x", "--epsilon", 1, "--delta", "1e-6", "--seed", 1]
        out = tmp_path / "out"
        outcome = self.invoke("run", table, *how, "--quantiles", ".1,.5", "--range", "0,100",
                              "--bins", 20, "--out", out, "--simultaneous")  # fmt: skip
        assert outcome.exit_code == 0, outcome.output
        assert "Median of the values" in outcome.output
        record = json.loads((out / "privacy.json").read_text(encoding="utf-8"))
        assert record["question"]["name"] == "x"
        assert len(record["quantiles"]) == 2
        rows = pl.read_csv(out / "estimates.csv")
        assert rows["cumulative"][-1] == 1.0
        assert rows.height == 20
        edges = self.invoke("run", table, *how, "--histogram", "--bins", "0,20,50,100",
                            "--out", tmp_path / "edges", "--json")  # fmt: skip
        assert self.invoke("run", table, *how[:-2], "--histogram", "--range", "0,100",
                           "--out", tmp_path / "real").exit_code == 0  # fmt: skip
        explained = self.invoke("explain", tmp_path / "real", "--as", "notice")
        assert explained.exit_code == 0, explained.output
        assert [each["value"] for each in json.loads(edges.stdout)["estimates"]] == [
            "[0, 20)", "[20, 50)", "[50, 100]",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--quantiles", ".5"], "--quantiles needs either --range"),
            (["--histogram", "--bins", "0,1,2", "--range", "0,2"], "--histogram needs either"),
            (["--mean", "--range", "0,1", "--bins", "3"], "--bins is for --quantiles"),
            (["--bins", "3"], "--bins is for --quantiles"),
            (["--quantiles", ".5", "--histogram", "--range", "0,1"], "ask different questions"),
            (["--quantiles", ".5;.7", "--range", "0,1"], "not a list of numbers"),
            (["--quantiles", "1.5", "--range", "0,1"], "quantiles = 1.5 is not in (0, 1)"),
            (["--histogram", "--bins", "0,5,3"], "edges have 5.0, 3.0 in a row"),
        ],
    )
    def test_bad_words(self, words, message):
        outcome = self.invoke("plan", "--num-users", 100, "--epsilon", 1, "--delta", "1e-6", *words)
        assert outcome.exit_code != 0
        assert message in outcome.output + str(outcome.exception)
