"""Words and numbers shared by pages, notebooks and terminals: names, units, rows of estimates.

Kinds of questions differ in the words for their estimates: shares of users, or means. A shuffle has
its words in a module of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from shuffledp.collection.questions.question import INTERVALS_ABOUT
from shuffledp.collection.result import Result
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.profile import LocalProfile
from shuffledp.report.formatting import (
    best_guess,
    brief,
    counted,
    decimals_for,
    fixed,
    given,
    odds_factor,
    percent,
    rounded,
    shorten,
    shown_label,
)

if TYPE_CHECKING:
    from shuffledp.collection.questions.question import Question

#: Full names of the randomizers; a randomizer without one goes by its registered name.
RANDOMIZER_TITLES = {
    "k-rr": "k-ary randomized response",
    "symmetric-unary": "Symmetric unary encoding (basic RAPPOR)",
    "optimized-unary": "Optimized unary encoding (OUE)",
    "optimized-local-hashing": "Optimized local hashing (OLH)",
    "hadamard-response": "Hadamard response",
    "subset-selection": "Subset selection",
    "duchi": "Duchi's one-bit mechanism",
    "piecewise": "Piecewise mechanism",
    "privunit": "PrivUnit",
    "sampled-parts": "k-ary randomized response on one part of the answers, drawn in private",
    "all-parts": "k-ary randomized response on every part of the answers",
    "sampled-levels": "A level of a tree drawn at random",
    "all-levels": "Every level of a tree",
    "group-bits-1": "k-ary randomized response of group and bit",
}

#: Holders of true answers, by the way of collection: a line of every guarantee.
TRUE_ANSWERS = {
    "devices": "with each user alone: reports were randomized on users' own devices",
    "table": "with the holder of the table, who is trusted with all of them",
    "simulation": "with whoever ran this simulation",
    "planned": "with each user alone if devices randomize; with a table's holder if `run` does",
}

#: Title of reports without local noise, for any encoding.
BARE = "Answers as they are"

#: Remaining protection of reports without local noise.
TOGETHER = "the shuffler and the analyst together would see every answer"

#: Text for the mean of a group whose interval is the whole range.
TOO_SMALL = "too small for a statement"

#: Condition of a guarantee that counts on no other user.
WHATEVER = ", whatever the others send"

# Suffixes of the columns with numbers of members.
_MEMBER_ENDS = ("", "_lower", "_upper")

_UNNAMED_MEAN = "mean"  # the name that `Mean` has if none is given
_LONGEST_NAMED = 40  # characters of a label in a sentence

_SET_WORDS = {"sampled": "one answer drawn of each set", "split": "epsilon0 split over the answers"}


def randomizer_title(randomizer: Any) -> str:
    """Return the full name of a randomizer."""
    if math.isinf(randomizer.epsilon0):
        return BARE
    name = str(randomizer.name)
    strategy, found, base = name.partition(":")
    if found and strategy in _SET_WORDS:
        return f"{RANDOMIZER_TITLES.get(base, base)}, {_SET_WORDS[strategy]}"
    return title_of(name)


def title_of(name: str) -> str:
    """Return the full name of a randomizer of this name, which may end in a number of levels."""
    base, _, number = name.rpartition("-")
    if base in RANDOMIZER_TITLES and number.isdigit():
        return f"{RANDOMIZER_TITLES[base]}, {counted(int(number), 'level')}"
    return RANDOMIZER_TITLES.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Words about the estimates of one kind."""

    label: str  # heading of the labels, in the singular
    estimate: str  # heading of the estimates
    plural: str  # their name in running text
    format: Callable[[float, int], str]  # formats a value with a number of decimals
    unit: float  # factor of standard errors before decimals are chosen
    caution: str  # reason why estimates may look impossible
    is_share: bool  # True if charts show percent
    choices: str = ""  # introduces the list of labels, if a value is one of them


_FREQUENCIES = Wording(
    label="Answer",
    estimate="Frequency",
    plural="frequencies",
    format=percent,
    unit=100.0,
    caution=(
        "Estimates are unbiased: noise can carry a rare answer below zero, and cutting that off "
        "would make the others too large."
    ),
    is_share=True,
)

_MEANS = Wording(
    label="Column",
    estimate="Mean",
    plural="means",
    format=fixed,
    unit=1.0,
    caution=(
        "Estimates are unbiased: noise can carry a mean beyond the limits of the values, and "
        "cutting that off would make it wrong on average. For Duchi's mechanism and for vectors, "
        "whose reports do not tell noise from the spread of the values, standard errors are upper "
        "bounds."
    ),
    is_share=False,
)


#: Words about each kind of question; any other kind is about shares of users.
WORDS = {
    "frequencies": replace(_FREQUENCIES, choices="Possible answers"),
    "answer-sets": _FREQUENCIES,
    "distribution": replace(_FREQUENCIES, label="Bin"),
    "mean": _MEANS,
    "vector-mean": _MEANS,
    "mean-by-group": replace(
        _MEANS,
        label="Group",
        caution=(
            "A mean is the ratio of two estimates without bias, and can lie beyond the limits of "
            "the values. One bit a number does not tell noise from the spread of the values: "
            "standard errors are upper bounds then."
        ),
        choices="Possible groups",
    ),
    "heavy-hitters": replace(_FREQUENCIES, label="Text"),
}


def wording(question: "Question") -> Wording:
    """Return the words for the estimates of a question."""
    return WORDS.get(question.kind, _FREQUENCIES)


# Module by the name of a shuffle: its function `words` takes that name, facts or None, and the way
# of collection. A new shuffle is a line here.
_SHUFFLES = {
    "mallows": "shuffledp.report.groups",
    "displacement": "shuffledp.report.groups",
    "network": "shuffledp.report.network",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleWords:
    """Words about a shuffle; those about a uniform one by default."""

    #: Treatment of the randomized answers, for a notice to participants.
    notice: str = (
        "The randomized answers of all participants are mixed before anyone looks at them, and "
        "no list is kept of which is whose."
    )
    #: Clause about the treatment of the reports.
    done: str = "a shuffler removed who said what"
    #: The adversary's view, if it is not the shuffled reports.
    seen: str = ""
    #: Title of the paragraph about a failure of the shuffle, and time of the randomization.
    failure: tuple[str, str] = ("If the shuffler fails.", "before it was shuffled")
    #: Section of the report: its template with its values, its anchor and title.
    template: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    section: tuple[str, str] = ("", "")
    #: Further paragraphs of the privacy statement, as titles and texts.
    paragraphs: tuple[tuple[str, str], ...] = ()
    #: Tables of names and values, by their titles.
    tables: tuple[tuple[str, list[tuple[str, str]]], ...] = ()

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Names and values for the terminal."""
        return [row for _, rows in self.tables for row in rows]


def shuffle_words(
    shuffler: str, facts: Any = None, *, collected_by: str = "devices"
) -> ShuffleWords:
    """Return the words about a shuffle, by its name and facts."""
    if shuffler not in _SHUFFLES:
        return ShuffleWords()
    module: Any = import_module(_SHUFFLES[shuffler])
    found: ShuffleWords = module.words(shuffler, facts, collected_by=collected_by)
    return found


def words_of_result(result: Result) -> ShuffleWords:
    """Return the words about the shuffle of a result."""
    return shuffle_words(result.shuffler, result.facts, collected_by=result.collected_by)


def main_estimates(result: Result) -> list[float]:
    """Return the frequencies, or the means."""
    columns = result.estimates.columns()
    found = next(each for each in ("frequency", "mean", *columns) if each in columns)
    return list(columns[found].tolist())


def estimate_table(
    result: Result, *, is_narrow: bool = False
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and a row for each label: a count if any, estimate, errors, intervals.

    A narrow table is about these users or a population, as requested; a wide one about both.
    """
    estimates, words = result.estimates, wording(result.question)
    errors = estimates.standard_error.tolist()
    decimals = decimals_for([words.unit * error for error in errors])

    def texts(values: list[float]) -> list[str]:
        return [
            TOO_SMALL if math.isnan(value) else words.format(value, decimals) for value in values
        ]

    table = {words.label: [shown_label(label) for label in result.domain]}
    counts = estimates.columns().get("count")
    if counts is not None:
        count_decimals = decimals_for([result.num_users * error for error in errors])
        table["Estimated count"] = [fixed(count, count_decimals) for count in counts.tolist()]
    below = estimates.columns().get("cumulative")
    if below is not None:
        table["Below its end"] = texts(below.tolist())
    members = [estimates.columns().get(f"members{end}", np.empty(0)) for end in _MEMBER_ENDS]
    if members[0].size:
        sizes = zip(*([fixed(each, 0) for each in ends.tolist()] for ends in members), strict=True)
        table["Estimated members"] = [f"{each} ({low} to {high})" for each, low, high in sizes]
    table[words.estimate] = texts(main_estimates(result))
    for about in (result.interval_about,) if is_narrow else INTERVALS_ABOUT:
        error, lower, upper = (texts(each) for each in errors_and_ends(result, about=about))
        whose = "Population standard error" if about == "population" else "Standard error"
        ends = (" to ".join(each) for each in zip(lower, upper, strict=True))
        table |= {whose: error, interval_name(result, about=about): list(ends)}
    return tuple(table), list(zip(*table.values(), strict=True))


def errors_and_ends(result: Result, *, about: str) -> tuple[list[float], ...]:
    """Return standard errors, lower and upper ends about these users, or about a population."""
    prefix = "population_" if about == "population" else ""
    names = (prefix + name for name in ("standard_error", "lower", "upper"))
    return tuple(getattr(result.estimates, name).tolist() for name in names)


def interval_name(result: Result, *, about: str) -> str:
    """Return the name of an interval: ``95% interval``."""
    confidence = given(round(100.0 * result.estimates.confidence, 6))
    whose = "population " if about == "population" else ""
    kind = "simultaneous " if result.estimates.is_simultaneous else ""
    return f"{confidence}% {whose}{kind}interval"


def finding(result: Result) -> str:
    """Return the main answer in one sentence: the mean, or the largest of several estimates.

    For a distribution with quantiles, the one nearest to the median.
    """
    if not result.domain:
        return f"Nothing was found that enough of these {result.num_users:,} users have."
    whose = f"these {result.num_users:,} users"
    if result.interval_about == "population":
        whose = f"the population that {whose} are a random sample of"
    if result.quantiles:
        nearest = min(range(len(result.quantiles)), key=lambda i: abs(result.quantiles[i][0] - 0.5))
        name, text = quantile_facts(result)[nearest]
        return f"{name} of the values, {text}, among {whose}."
    (*_, interval), rows = estimate_table(result, is_narrow=True)
    values, words = main_estimates(result), wording(result.question)
    stated = [place for place, value in enumerate(values) if not math.isnan(value)]
    if not stated:
        return f"None of {len(rows):,} groups is large enough for a statement about its mean."
    label, *_, estimate, _, ends = rows[max(stated, key=lambda place: values[place])]
    label = shorten(label, _LONGEST_NAMED).replace("\u2026", "...")  # terminals may be ASCII
    what = f"{words.estimate} of {'the values' if label == _UNNAMED_MEAN else label}"
    if len(rows) > 1:
        what = f"Largest of {len(rows):,} estimated {words.plural}: {label}"
    if compared := getattr(result.estimates, "findings", {}).get("compare"):
        what, estimate, ends = _comparison(result, compared)
    return f"{what}, {estimate}, among {whose} ({interval}: {ends})."


def _comparison(result: Result, compared: Any) -> tuple[str, str, str]:
    """Return the words for a difference of two groups, and its estimate and interval."""
    names = (shorten(each, _LONGEST_NAMED) for each in compared["groups"])
    what = "Mean of {} less that of {}".format(*names).replace("\u2026", "...")
    ends = compared["population" if result.interval_about == "population" else "respondents"]
    decimals = decimals_for([0.25 * (ends[1] - ends[0])])
    value, *texts = (fixed(each, decimals) for each in (compared["difference"], *ends))
    return what, f"one of them {TOO_SMALL}" if value == "nan" else value, " to ".join(texts)


def quantile_facts(result: Result) -> list[tuple[str, str]]:
    """Return the names of quantiles with their estimates and intervals."""
    interval = interval_name(result, about=result.interval_about)
    facts = []
    for share, (value, lower, upper) in result.quantiles:
        name = "Median" if share == 0.5 else f"{given(100.0 * share)}% quantile"
        width = (upper - lower) / 4.0 or 1.0
        found = fixed(value, decimals_for([width]))
        facts.append((name, f"{found} ({interval}: {given(lower)} to {given(upper)})"))
    return facts


def upper_text(value: Bound | float) -> str:
    """Return a bound rounded up, or a given number in its exact form if that is short."""
    return rounded(value.upper, up=True) if isinstance(value, Bound) else brief(value)


def guarantee_text(guarantee: Guarantee) -> str:
    """Return both upper bounds on one line."""
    epsilon, delta = upper_text(guarantee.epsilon), upper_text(guarantee.delta)
    return f"epsilon <= {epsilon} at delta <= {delta}"


def local_limits(profile: LocalProfile, *, rounds: int = 1) -> tuple[str, str]:
    """Return the largest factor of the odds, and the probability of a right guess, rounded up.

    For an adversary who sees the sender of each report, of all rounds together. The guess is
    between two answers that seemed equally likely, as for the central guarantee, and not among all
    answers, as in `Result.without_shuffler`.
    """
    epsilon0, delta0 = rounds * profile.epsilon0, min(1.0, rounds * profile.delta0)
    return odds_factor(epsilon0), best_guess(epsilon0, delta0)


def local_loss(profile: LocalProfile, *, rounds: int = 1) -> str:
    """Return the local privacy loss of all rounds, for display beside a randomizer's name."""
    if math.isinf(profile.epsilon0):
        return "no local noise"
    name = "epsilon0" if rounds == 1 else f"epsilon of {rounds:,} rounds"
    return f"{name} = {rounded(rounds * profile.epsilon0, up=True)}"


def local_figure(profile: LocalProfile, *, rounds: int = 1) -> tuple[str, str]:
    """Return the local loss and its meaning, for a strip of figures."""
    meaning = _local_meaning("odds up to {}, right guess up to {}", profile, rounds)
    return local_loss(profile, rounds=rounds), meaning


def without_shuffler_line(profile: LocalProfile, *, rounds: int = 1) -> str:
    """Return the local loss and its meaning on one line."""
    words = "odds change by up to {}, a guess between two answers is right up to {}"
    return f"{local_loss(profile, rounds=rounds)}: {_local_meaning(words, profile, rounds)}"


def _local_meaning(words: str, profile: LocalProfile, rounds: int) -> str:
    """Return words about both `local_limits`; other ones for reports without local noise."""
    if math.isinf(profile.epsilon0):
        return TOGETHER
    return words.format(*local_limits(profile, rounds=rounds))


def true_answers(collected_by: str, *, is_bare: bool) -> str:
    """Name the holders of true answers; reports may be the answers themselves."""
    if is_bare and collected_by in {"devices", "planned"}:
        return f"with each user, without local noise: {TOGETHER}"
    return TRUE_ANSWERS[collected_by]


def trust_facts(result: Result) -> list[tuple[str, str]]:
    """Return the holders of true answers; for a holder of all, a trusted curator's error too."""
    is_bare = math.isinf(result.randomizer.epsilon0)
    rows = [("true answers", true_answers(result.collected_by, is_bare=is_bare))]
    curator = result.central_model
    if curator is not None and math.isfinite(curator.standard_error_at_same_epsilon):
        words = wording(result.question)
        errors = (curator.standard_error_at_same_epsilon, result.root_mean_square_error)
        decimals = decimals_for([words.unit * each for each in errors])
        theirs, ours = (words.format(each, decimals) for each in errors)
        text = f"standard error {theirs} at the same epsilon and delta = 0, against {ours} here"
        rows.append(("trusted curator", f"{text} (root mean square): {curator.mechanism}"))
    return rows


def dishonest_facts(subject: Any) -> list[tuple[str, str]]:
    """Return the largest change of an estimate by dishonest users, and any simulated change.

    For a plan or a result.
    """
    number, is_share = subject.num_dishonest, wording(subject.question).is_share
    if math.isinf(most := subject.most_shifted):
        return [("dishonest users", "no limit is known of how far they can move an estimate")]
    text = f"{number:,} of {subject.num_users:,} can move an estimate by up to "
    text += rounded(100.0 * most, up=True, digits=3) + "%" if is_share else rounded(most, up=True)
    if getattr(getattr(subject, "estimates", None), "post_processing", ()):
        text += " before post-processing"
    attack = getattr(subject, "attack", None)
    if attack is not None and not math.isnan(attack.shift):
        moved = rounded(100.0 * attack.shift if is_share else attack.shift, up=False, digits=3)
        label = shorten(attack.label, _LONGEST_NAMED).replace("\u2026", "...")
        text += f"; here they moved {shown_label(label)} by {moved}{'%' * is_share}"
    rows = [("dishonest users", text)]
    if found := subject.dishonest_prospects:
        seen = getattr(subject, "estimates", None)
        is_over = seen is not None and not seen.discovery.left
        rows += _of_search(liars=found, number=number, is_over=is_over)
    return rows


def finding_rows(findings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and texts of facts about a search for texts; empty for other questions."""
    found = findings.get("discovery")
    return [] if found is None else _of_search(found=found)


def _of_search(found: Any = None, **liars: Any) -> list[tuple[str, str]]:
    """Return names and texts about what a search finds, or about what liars do to it."""
    from shuffledp.report.page import rendered_rows

    return rendered_rows("search.txt", found=found, **liars)


def guarantee_facts(guarantee: Guarantee, *, is_for_any: bool = False) -> list[tuple[str, str]]:
    """Return the proved upper bound first, then its gap to the lower bound.

    With a shuffler's dummies it holds for any number of users.
    """
    bound, name = guarantee.bound, computed_name(guarantee)
    other, value = "delta", guarantee.delta_upper
    if name == "delta":
        other, value = "epsilon", guarantee.epsilon_upper
    which = WHATEVER if is_for_any else ""
    users = f"any number{which}" if is_for_any else f"{guarantee.num_users:,}"
    batches = [("users", users)]
    if guarantee.rounds != 1:
        batches = [("rounds", f"{guarantee.rounds:,}"), ("users", f"{users} in the smallest batch")]
    return [
        (name, f"{rounded(bound.upper, up=True, digits=6)} (proved upper bound)"),
        ("gap", gap_text(bound, name) + which * (bound.lower is not None)),
        (other, given(value)),
        *batches,
        ("method", bound.method),
        ("source", bound.source),
    ]


def computed_name(guarantee: Guarantee) -> str:
    """Name the parameter that was computed."""
    return "epsilon" if isinstance(guarantee.epsilon, Bound) else "delta"


def gap_text(bound: Bound, name: str) -> str:
    """Return the gap between a bound and the proved lower bound."""
    if bound.lower is None or bound.gap is None:
        return "not known"
    gap = gap_percent(bound.gap) if bound.gap else "none"
    lower = rounded(bound.lower, up=False, digits=6)
    return f"{gap}: no analysis can show {name} below {lower}"


def gap_percent(gap: float) -> str:
    """Return a relative gap, rounded to few digits of percent."""
    if gap == 0.0:
        return "0%"
    return "below 0.001%" if gap < 1e-5 else percent(gap, 1 if gap >= 0.01 else 3)


def same_width(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, the first column to the left and the others to the right."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [set_cell_size(first, widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells))
    return lines
