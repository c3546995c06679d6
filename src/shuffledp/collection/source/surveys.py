"""Real surveys with sensitive questions, as packaged with statsmodels (an optional dependency)."""

import importlib
from collections import Counter
from dataclasses import dataclass, field

from shuffledp.core.errors import DataError, ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One question of a survey that statsmodels packages, with everybody's true answer."""

    name: str
    title: str
    question: str
    domain: tuple[str, ...]
    answers: tuple[str, ...] = field(repr=False)

    @property
    def true_frequencies(self) -> tuple[float, ...]:
        """Share of respondents with each answer, in the order of the domain."""
        counts = Counter(self.answers)
        return tuple(counts[answer] / len(self.answers) for answer in self.domain)


_PARTIES = (
    "strong Democrat",
    "weak Democrat",
    "independent, leans Democrat",
    "independent",
    "independent, leans Republican",
    "weak Republican",
    "strong Republican",
)


def _affair(time_spent: float) -> str:
    """Return whether any time was spent in extramarital affairs."""
    return "yes" if time_spent > 0.0 else "no"


def _party(code: float) -> str:
    """Return the party identification of that code."""
    return _PARTIES[int(code)]


# For each survey: title, question, column, domain, and what a value of the column means.
_SURVEYS = {
    "fair": (
        "Redbook survey of 6,366 married women (Fair 1978, Journal of Political Economy)",
        "Have you had an extramarital affair?",
        "affairs",
        ("yes", "no"),
        _affair,
    ),
    "anes96": (
        "American National Election Study 1996, 944 respondents",
        "Which party do you identify with?",
        "PID",
        _PARTIES,
        _party,
    ),
}

SURVEY_NAMES = tuple(_SURVEYS)


def load_survey(name: str) -> Survey:
    """Return a question of Fair's survey of affairs (6,366 women) or of ANES 1996 (944 voters)."""
    if name not in _SURVEYS:
        raise ParameterError(f"survey {name!r} is not one of {', '.join(_SURVEYS)}")
    title, question, column, domain, meaning = _SURVEYS[name]
    try:
        module = importlib.import_module(f"statsmodels.datasets.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "statsmodels":
            raise
        raise DataError(
            "the surveys come with statsmodels, which is not installed: run "
            "pip install 'shuffledp[datasets]', or pip install statsmodels"
        ) from None
    values = module.load_pandas().data[column]
    return Survey(
        name=name,
        title=title,
        question=question,
        domain=domain,
        answers=tuple(meaning(value) for value in values),
    )
