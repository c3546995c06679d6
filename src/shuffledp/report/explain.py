"""What a finished collection tells others: a notice, a label, an entry for the public registry.

All three are made from ``privacy.json``, so they say what that file says and can be made at any
time later. Upper bounds are rounded up.

Sources: the registry's entries have the form of Nanayakkara, Ghazi, Vadhan, "Practitioners'
Perspectives on a Differential Privacy Deployment Registry", arXiv:2509.13509v2, as its public
records write it; the label has the rows of Dibia, Lu, Bhattacharjee, Near, Feng, "'We Need a
Standard': Toward an Expert-Informed Privacy Label for Differential Privacy", arXiv:2507.15997v1.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shuffledp.core.errors import DataError
from shuffledp.report.formatting import best_guess, brief, odds_factor, one_in, rounded, shown_label
from shuffledp.report.wording import RANDOMIZER_TITLES

TO_FILL_IN = "TO BE FILLED IN"
_MOST_ANSWERS = 12  # listed in a notice

# What happens to the randomized answers, by the shuffler's name.
_SHUFFLES = {
    "uniform": "The randomized answers of all participants are mixed before anyone looks at "
    "them, and nothing is kept that tells whose is whose.",
    "mallows": "The randomized answers are mixed among participants who are alike in public "
    "respects, such as where they live.",
    "displacement": "Each randomized answer is moved to a random place near the participant's.",
    "network": "The randomized answers are passed on at random from participant to "
    "participant, encrypted, before they are handed in.",
}


def read_record(path: Path) -> dict[str, Any]:
    """Return what ``privacy.json`` says, given the file or its folder; cost: one small file.

    Raises
    ------
    DataError
        If it is no such file, or tells of a simulation, of which nothing may be promised.
    """
    file = path / "privacy.json" if path.is_dir() else path
    try:
        record = json.loads(file.read_bytes())
        missing = {"num_users", "epsilon0", "guarantee", "shuffler", "domain"} - set(record)
    except (OSError, ValueError, TypeError):
        raise DataError(
            f"cannot read {file}: give the folder of `shuffledp run --out`, or its privacy.json"
        ) from None
    if missing:
        raise DataError(
            f"{file} lacks {', '.join(sorted(missing))}: give a privacy.json of `shuffledp run`"
        )
    if record.get("is_simulation"):
        raise DataError(
            f"{file} tells of a simulation with a seed, which protects nobody, so there is nothing "
            "to promise: run the collection without a seed"
        )
    return dict(record)


def participant_notice(record: Mapping[str, Any]) -> str:
    """Return a notice for participants in plain words, in Markdown.

    Says what is asked, what leaves the device, what an adversary may learn with the shuffler and
    without, what is not promised, and whom to ask. Bounds on chances are rounded up.
    """
    about, epsilon, delta = _about(record), _upper(record, "epsilon"), _upper(record, "delta")
    epsilon0, num_users = float(record["epsilon0"]), int(record["num_users"])
    learned = "No limit is proved on what the mixed answers tell about you."
    if epsilon is not None:
        learned = (
            "There is a limit even for somebody who sees all mixed answers and knows the true "
            f"answer of everybody else: of two answers that seemed equally likely, the true one "
            f"is guessed with a chance of at most {best_guess(epsilon, delta or 0.0)}, where "
            "tossing a coin gives 50%."
        )
        if delta:
            learned += f" The chance that this limit fails for you is at most {one_in(delta)}."
    parts = [
        f"# {about.get('title', 'How your answer is protected')}",
        f"**What is asked.** {_asked(record)}",
        "**What leaves your device.** Not your answer, but a report that is drawn by chance. Which "
        "reports are likely depends on your answer, but every report can come from every answer. "
        f"{_SHUFFLES.get(str(record['shuffler']), '')}".rstrip(),
        f"**What others can learn about you.** {learned}",
        "**If the mixing fails.** Should somebody see your randomized answer beside your name, "
        f"the odds between two answers change by a factor of at most {odds_factor(epsilon0)}, and "
        "of two equally likely answers the true one is guessed with a chance of at most "
        f"{best_guess(epsilon0, 0.0)}.",
        "**What is not promised.** What the results say about people like you is not hidden, "
        "whether you take part or not. Another collection about the same thing adds to what can "
        "be learned.",
        f"**What is published.** {about.get('organisation', 'Those who run this collection')} "
        f"publish estimates from {num_users:,} randomized answers.",
    ]
    if "contact" in about:
        parts.append(f"**Questions?** {about['contact']}")
    return "\n\n".join(parts) + "\n"


def privacy_label(record: Mapping[str, Any]) -> str:
    """Return the privacy label as a Markdown table: a parameter a row, upper bounds rounded up."""
    about, guarantee = _about(record), record["guarantee"]
    rounds = int(guarantee.get("rounds", 1))
    epsilon, delta = (
        "without a proved bound" if value is None else f"<= {brief(value)}"
        for value in (_upper(record, "epsilon"), _upper(record, "delta"))
    )
    many, a_round = ("s", " a round") if rounds > 1 else ("", "")
    rows = {
        "Deployment": about.get("title", TO_FILL_IN),
        "Organisation": about.get("organisation", TO_FILL_IN),
        "Privacy budget": f"epsilon {epsilon} in all, {rounds:,} release{many}",
        "Epsilon": f"{epsilon}, an upper bound that is proved",
        "Epsilon of each report by itself": rounded(float(record["epsilon0"]), up=True),
        "Delta": delta,
        "Unit of privacy": f"one user, who gives one report{a_round}",
        "Neighbouring datasets": "differ in the value of one user; the number of users is public",
        "Model": f"shuffle ({record['shuffler']})",
        "Mechanism": _title(record),
        "Accounting": f"{guarantee['method']}: {guarantee['source']}",
        "Trusted for epsilon": " ".join(map(str, guarantee["assumptions"])),
        "Software": f"shuffledp {record.get('shuffledp_version', '')}".rstrip(),
        "Contact": about.get("contact", TO_FILL_IN),
    }
    lines = ["| Differential privacy | |", "|---|---|"]
    for name, value in rows.items():
        cell = shown_label(str(value)).replace("|", "\\|")
        lines.append(f"| {name} | {cell} |")
    return "\n".join(lines) + "\n"


def registry_entry(record: Mapping[str, Any]) -> str:
    """Return an entry for the public registry of deployments, in YAML; the rest is marked."""
    about = _about(record)
    curator = about.get("organisation", TO_FILL_IN)
    parts = {
        "basic": {
            "name": about.get("title", TO_FILL_IN),
            "data_curators": [{"data_curator_name": curator, "data_curator_type": TO_FILL_IN}],
            "description": _asked(record),
            "intended_use": TO_FILL_IN,
            "data_product_type": "Summary statistics",
            "data_product_region": TO_FILL_IN,
            "data_product_sector": TO_FILL_IN,
            "publication_date": about.get("date", TO_FILL_IN),
        },
        **_protection(record),
        "administrative": {
            "notes": about.get("contact", ""),
            "status": "Draft",
            "registry_authors": [curator],
            "tier": 3,
        },
    }
    return "\n".join(_yaml({"url_slug": TO_FILL_IN, "deployment": parts})) + "\n"


def _protection(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return how it is protected, as the registry asks for it; epsilon rounded up."""
    guarantee = record["guarantee"]
    rounds = int(guarantee.get("rounds", 1))
    parameters = {
        name: float(brief(value))
        for name in ("epsilon", "delta")
        if (value := _upper(record, name)) is not None
    }
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if parameters.get("delta") else "Pure DP",
            "data_domain": f"One value of each of {int(record['num_users']):,} users.",
            "unprotected_quantities": "The number of users, and the possible answers.",
        },
        "privacy_loss": {
            "privacy_unit": "User-level",
            "privacy_unit_details": "Adjacent datasets differ in the value of one user.",
            "privacy_parameters": parameters,
            "privacy_parameters_details": "Proved upper bound for the shuffled reports; each "
            f"report by itself has epsilon <= {rounded(float(record['epsilon0']), up=True)}. "
            f"Source: {guarantee['source']}.",
        },
        "deployment_model": {
            "model_name": "Shuffle",
            "model_name_details": _SHUFFLES.get(str(record["shuffler"]), ""),
            "actors": " ".join(map(str, guarantee["assumptions"])),
            "release_type": "One release" if rounds == 1 else "Many releases",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "; ".join(map(str, record.get("post_processing", []))) or "None.",
            "composition": f"{guarantee['method']}, {rounds} round(s).",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TO_FILL_IN,
            "mechanisms": f"{_title(record)}, by shuffledp "
            f"{record.get('shuffledp_version', '')}. The probabilities that are accounted for are "
            "those that are drawn.",
            "justification": TO_FILL_IN,
        },
    }


FORMS = {"notice": participant_notice, "label": privacy_label, "registry": registry_entry}


def _about(record: Mapping[str, Any]) -> dict[str, str]:
    """Return title, question, organisation, contact and date, as far as they were given."""
    return {name: str(value) for name, value in (record.get("about") or {}).items() if value}


def _upper(record: Mapping[str, Any], name: str) -> float | None:
    """Return the upper end of epsilon or delta; None if no finite one is proved."""
    value = record["guarantee"][name]
    upper = value["upper"] if isinstance(value, Mapping) else value
    return None if upper is None else float(upper)


def _title(record: Mapping[str, Any]) -> str:
    """Return the full name of the randomizer."""
    name = str(record.get("randomizer", TO_FILL_IN))
    return RANDOMIZER_TITLES.get(name, name)


def _asked(record: Mapping[str, Any]) -> str:
    """Return the question and its possible answers."""
    question = _about(record).get("question", f"{TO_FILL_IN}: the question as it is put.")
    if record.get("question", {}).get("kind") != "frequencies":
        return question
    answers = [shown_label(str(answer)) for answer in record["domain"]]
    more = len(answers) - _MOST_ANSWERS
    listed = ", ".join(answers[:_MOST_ANSWERS]) + (f" and {more:,} more" if more > 0 else "")
    return f"{question} Possible answers: {listed}."


def _yaml(value: Mapping[str, Any], indent: str = "") -> list[str]:
    """Return nested mappings as lines of YAML, texts in double quotes as JSON has them."""
    lines = []
    for name, each in value.items():
        if isinstance(each, Mapping):
            lines += [f"{indent}{name}:", *_yaml(each, indent + "  ")]
        elif isinstance(each, list):
            lines.append(f"{indent}{name}:")
            for item in each:
                first, *rest = _yaml(item) if isinstance(item, Mapping) else [json.dumps(item)]
                lines += [f"{indent}  - {first}", *(f"{indent}    {line}" for line in rest)]
        else:
            text = json.dumps(each, ensure_ascii=False)
            # Readers of YAML 1.1 take 1e-06 for a text and 1.0e-06 for a number.
            bare = isinstance(each, float) and "." not in text
            lines.append(f"{indent}{name}: {text.replace('e', '.0e') if bare else text}")
    return lines
