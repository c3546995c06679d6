"""Notice, label and registry entry say what privacy.json says, and nothing stronger."""

import json

import pytest
import yaml

from shuffledp.cli.main import main
from shuffledp.collection.output import write_results
from shuffledp.collection.result import About
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.errors import DataError
from shuffledp.report.explain import FORMS, TO_FILL_IN, read_record

ABOUT = {
    "title": "Affairs | 1978",
    "question": "How often have you had an affair?",
    "organisation": "Example Institute",
    "contact": "privacy@example.org",
    "date": "2026-11-23",
}

# Of the public registry's records: what each part must have and what it may have beside.
REGISTRY = {
    "basic": (
        {"name", "data_curators", "description", "intended_use", "data_product_type"},
        {"data_product_region", "data_product_sector", "publication_date"},
    ),
    "dp_variant": ({"variant_name"}, {"data_domain", "unprotected_quantities"}),
    "privacy_loss": (
        {"privacy_unit", "privacy_parameters"},
        {"privacy_unit_details", "privacy_parameters_details"},
    ),
    "deployment_model": (
        {"model_name"},
        {"model_name_details", "actors", "release_type", "data_source_type", "access_type"},
    ),
    "accounting": ({"post_processing", "composition"}, set()),
    "implementation": (
        {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
        set(),
    ),
    "administrative": ({"status", "registry_authors", "tier"}, {"notes"}),
}


@pytest.fixture
def record(make_result, tmp_path):
    """Write privacy.json of a result and read it as the command does."""

    def make(about=None, **changes):
        result = make_result(about=About(**(about or {})), **changes)
        write_results(result, tmp_path)
        return read_record(tmp_path)

    return make


def test_the_notice_bounds_what_is_learned_with_the_shuffler_and_without(record):
    text = FORMS["notice"](record(ABOUT))
    assert text.startswith("# Affairs | 1978\n")
    assert "How often have you had an affair? Possible answers: never, once or twice" in text
    assert "chance of at most 62.3%, where tossing a coin gives 50%" in text  # e^.5/(1 + e^.5)
    assert "at most 1 in 100 million" in text
    assert "factor of at most 12.2" in text  # e^2.5
    assert "at most 92.5%" in text  # e^2.5/(1 + e^2.5)
    assert "Example Institute publish estimates from 6,366" in text
    assert text.endswith("**Questions?** privacy@example.org\n")


def test_without_a_finite_epsilon_nothing_is_promised(record):
    bound = Bound(lower=None, upper=float("inf"), method="m", source="s", assumptions=())
    unbounded = record(guarantee=Guarantee(epsilon=bound, delta=1e-8, num_users=6366))
    assert "No limit is proved" in FORMS["notice"](unbounded)
    assert "| Epsilon | without a proved bound" in FORMS["label"](unbounded)
    loss = yaml.safe_load(FORMS["registry"](unbounded))["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"delta": 1e-8}


def test_the_label_has_a_row_for_each_parameter(record):
    lines = FORMS["label"](record(ABOUT)).splitlines()
    rows = dict(line.removeprefix("| ").removesuffix(" |").split(" | ", 1) for line in lines[2:])
    assert rows["Deployment"] == "Affairs \\| 1978"
    assert rows["Epsilon"].startswith("<= 0.499967,")
    assert rows["Delta"] == "<= 1e-8"
    assert rows["Unit of privacy"] == "one user, who gives one report"
    assert "uniformly random permutation" in rows["Trusted for epsilon"]
    assert TO_FILL_IN not in "".join(lines)


def test_the_registry_entry_has_the_form_of_the_registry(record):
    entry = yaml.safe_load(FORMS["registry"](record(ABOUT)))
    assert set(entry) == {"url_slug", "deployment"}
    assert set(entry["deployment"]) == set(REGISTRY)
    for part, (required, allowed) in REGISTRY.items():
        names = set(entry["deployment"][part])
        assert required <= names <= required | allowed
    parts = entry["deployment"]
    assert parts["basic"]["data_curators"][0]["data_curator_name"] == "Example Institute"
    assert parts["basic"]["publication_date"] == "2026-11-23"
    assert parts["dp_variant"]["variant_name"] == "Approximate DP"
    assert parts["deployment_model"]["model_name"] == "Shuffle"
    parameters = parts["privacy_loss"]["privacy_parameters"]
    assert parameters["delta"] == 1e-8
    assert 0.499967 <= parameters["epsilon"] <= 0.50001  # rounded up
    assert parts["administrative"]["registry_authors"] == ["Example Institute"]


def test_what_is_not_known_is_marked(record):
    assert f"{TO_FILL_IN}: the question" in FORMS["notice"](record())
    assert "TO BE FILLED IN" in FORMS["registry"](record())


def test_many_answers_are_not_all_listed(record):
    text = FORMS["notice"](record(domain=[f"answer {i}" for i in range(40)]))
    assert "answer 11 and 28 more." in text


@pytest.mark.parametrize("form", FORMS)
def test_the_command_prints_it_or_writes_it(form, record, tmp_path, capsys):
    expected = FORMS[form](record(ABOUT))
    assert main(["explain", str(tmp_path), "--as", form]) == 0
    assert capsys.readouterr().out == expected
    out = tmp_path / "out.txt"
    assert main(["explain", str(tmp_path / "privacy.json"), "--as", form, "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(
    "changed",
    [
        *({"num_users": "many"}, {"guarantee": []}, {"guarantee": {}}, {"question": "x"}),
        *({"domain": 1}, {"num_users": 0}, {"epsilon0": -1.0}, {"epsilon0": 10**400}),
        *({"guarantee": {"epsilon": each, "delta": 0.0}} for each in (-3, "nan")),
        *({"guarantee": {"epsilon": 1.0, "delta": each}} for each in (-1, 2)),
        {"guarantee": {"epsilon": {"lower": 0.9, "upper": 0.1}, "delta": 0.0}},
    ],
)
def test_a_record_that_was_changed_beyond_use_is_refused(record, changed):
    for form in FORMS.values():
        with pytest.raises(DataError, match=r"privacy\.json is not as `shuffledp run` wrote it"):
            form({**record(), **changed})


def test_what_no_file_can_hold_is_refused_where_it_would_be_written(record):
    broken = {"domain": ["\ud800"], "randomizer": "\ud800", "about": {"title": "\ud800"}}
    refused = set()
    for name, form in FORMS.items():
        try:
            form({**record(), **broken}).encode()
        except DataError:
            refused.add(name)
    assert refused >= {"notice", "registry"}


@pytest.mark.parametrize("form", ["label", "registry"])
def test_a_guarantee_without_its_method_is_refused(form, record):
    found = record()
    del found["guarantee"]["method"]
    with pytest.raises(DataError, match=r"'method'\): restore it"):
        FORMS[form](found)


def test_of_a_simulation_and_of_other_files_nothing_is_said(record, tmp_path):
    with pytest.raises(DataError, match="simulation"):
        record(collected_by="simulation")
    written = json.loads((tmp_path / "privacy.json").read_bytes())
    del written["is_simulation"]
    (tmp_path / "privacy.json").write_text(json.dumps(written))
    with pytest.raises(DataError, match="simulation"):
        read_record(tmp_path)
    file = tmp_path / "other.json"
    with pytest.raises(DataError, match="cannot read"):
        read_record(file)
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match="cannot read"):
        read_record(file)
    file.write_text("[]")
    with pytest.raises(DataError, match="lacks"):
        read_record(file)
    file.write_text(json.dumps({"num_users": 3}))
    with pytest.raises(DataError, match="lacks domain, epsilon0"):
        read_record(file)
