"""What a collection returns."""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from shuffledp import Categories, Mean
from shuffledp.collection.cautions import delta_cautions
from shuffledp.collection.result import Result
from shuffledp.core import shown
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Counts, Sums
from shuffledp.estimation.frequencies import estimate_frequencies
from shuffledp.estimation.means import estimate_means
from shuffledp.randomizers.registry import make_randomizer

# ---------------- results
ENDS = ("lower", "upper", "population_lower", "population_upper")
ERRORS = ("standard_error", "population_standard_error", *ENDS)


def bound(lower: float | None = 0.25, upper: float = 0.5) -> Bound:
    return Bound(
        lower=lower, upper=upper, method="clones", source="[A]", assumptions=("one", "two")
    )


def run_result(**changes: object) -> Result:
    randomizer = make_randomizer("k-rr", domain_size=2, epsilon0=1.0)
    counts = Counts(support=np.array([60, 40]), num_reports=100, fingerprint=randomizer.fingerprint)
    fields = {
        "num_users": 100,
        "question": Categories(domain=("yes", "no")),
        "randomizer": randomizer,
        "guarantee": Guarantee(epsilon=bound(), delta=1e-8, num_users=100),
        "estimates": estimate_frequencies(
            counts, support_probabilities=randomizer.support_probabilities
        ),
        "collected_by": "devices",
        "target_epsilon": 0.5,
        "target_delta": 1e-8,
    }
    return Result(**{**fields, **changes})


def mean_result() -> Result:
    sums = Sums(
        total=np.array([3000.0]),
        total_of_squares=np.array([1e6]),
        num_reports=100,
        fingerprint="f",
    )
    question = Mean(low=0, high=120, name="age")
    return run_result(question=question, estimates=estimate_means(sums))


class TestGuarantee:
    def test_its_ends_are_those_of_the_computed_one(self):
        assert Guarantee(epsilon=bound(), delta=1e-8, num_users=9).upper == 0.5
        assert Guarantee(epsilon=1.0, delta=bound(), num_users=9).lower == 0.25

    def test_the_computed_one_is_an_object_and_the_given_one_a_number(self):
        assert Guarantee(epsilon=bound(), delta=1e-8, num_users=9).to_json_dict() == {
            "epsilon": {"lower": 0.25, "upper": 0.5},
            "delta": 1e-8,
            "method": "clones",
            "source": "[A]",
            "assumptions": ["one", "two"],
        }
        computed_delta = Guarantee(epsilon=1.0, delta=bound(), num_users=9).to_json_dict()
        assert computed_delta["epsilon"] == 1.0
        assert computed_delta["delta"] == {"lower": 0.25, "upper": 0.5}

    def test_upper_values_are_found_on_either_side(self):
        by_delta = Guarantee(epsilon=bound(), delta=1e-8, num_users=9)
        assert (by_delta.epsilon_upper, by_delta.delta_upper) == (0.5, 1e-8)
        assert by_delta.bound is by_delta.epsilon
        by_epsilon = Guarantee(epsilon=1.0, delta=bound(), num_users=9)
        assert (by_epsilon.epsilon_upper, by_epsilon.delta_upper) == (1.0, 0.5)
        assert by_epsilon.bound is by_epsilon.delta

    def test_json_has_neither_infinity_nor_an_invented_lower_bound(self):
        unknown = Guarantee(epsilon=bound(None, math.inf), delta=1e-8, num_users=9)
        assert unknown.to_json_dict()["epsilon"] == {"lower": None, "upper": None}

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-8), (bound(), bound())])
    def test_exactly_one_is_computed(self, epsilon, delta):
        with pytest.raises(ParameterError, match="exactly one"):
            Guarantee(epsilon=epsilon, delta=delta, num_users=9)

    def test_somebody_takes_part(self):
        with pytest.raises(ParameterError, match="num_users = 0"):
            Guarantee(epsilon=bound(), delta=1e-8, num_users=0)


class TestResult:
    def test_json_keys_are_the_promised_ones(self):
        record = run_result().to_json_dict()
        promised = ["num_users", "randomizer", "epsilon0", "guarantee", "estimates"]
        assert list(record)[:5] == promised
        assert record["guarantee"]["epsilon"] == {"lower": 0.25, "upper": 0.5}
        first = record["estimates"][0]
        assert list(first) == ["value", "count", "frequency", *ERRORS]
        assert first["value"] == "yes"
        assert first["count"] == pytest.approx(100 * first["frequency"])
        assert record["question"] == {"kind": "frequencies"}

    def test_means_have_neither_counts_nor_frequencies(self):
        record = mean_result().to_json_dict()
        assert list(record["estimates"][0]) == ["value", "mean", *ERRORS]
        assert record["estimates"][0]["value"] == "age"
        assert record["estimates"][0]["mean"] == pytest.approx(30.0)
        assert record["interval"] == "normal"
        assert record["post_processing"] == []
        assert record["question"] == {"kind": "mean", "name": "age", "low": 0.0, "high": 120.0}

    def test_json_is_made_of_plain_values(self):
        record = run_result(collected_by="simulation", warnings=("careful",)).to_json_dict()
        again = json.loads(json.dumps(record, allow_nan=False))
        assert again == record
        assert again["is_simulation"] is True
        assert again["warnings"] == ["careful"]

    @pytest.mark.parametrize("domain", [("yes",), ("yes", "no", "refused")])
    def test_domain_and_estimates_agree(self, domain):
        with pytest.raises(ParameterError, match=f"and {len(domain)} labels"):
            run_result(question=SimpleNamespace(labels=domain))

    def test_repr_is_one_line_and_says_if_it_is_a_simulation(self):
        text = repr(run_result(collected_by="simulation"))
        assert "\n" not in text
        assert "collected_by='simulation'" in text


class TestRenderer:
    def test_each_view_is_left_to_the_renderer(self, monkeypatch):
        class Plain:
            def write_report(self, result, path):
                return Path(path)

            def notebook_html(self, result):
                return f"<b>{result.num_users}</b>"

            def terminal_text(self, result):
                return f"{result.num_users} users"

        monkeypatch.setattr(shown, "_renderers", [])
        monkeypatch.setitem(sys.modules, "plain", Plain())
        shown.register_renderer("plain")
        result = run_result()
        assert result.report("a.html") == Path("a.html")
        assert result._repr_html_() == "<b>100</b>"
        assert str(result) == "100 users"

    def test_without_one_the_error_says_what_to_do(self, monkeypatch):
        monkeypatch.setattr(shown, "_renderers", [])
        with pytest.raises(RuntimeError, match="import shuffledp"):
            run_result().report("a.html")


# ---------------- cautions
@pytest.mark.parametrize(("delta", "warns"), [(1e-3, True), (2e-3, True), (9.99e-4, False)])
def test_the_threshold_is_one_in_the_number_of_users(delta, warns):
    assert bool(delta_cautions(delta, 1000)) is warns


def test_the_warning_names_both_numbers_and_a_way_out():
    (caution,) = delta_cautions(0.01, 1000)
    assert "delta = 0.01" in caution
    assert "1/num_users = 0.001" in caution
    assert "1e-06" in caution
