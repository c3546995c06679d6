"""Real surveys with sensitive questions, as packaged with statsmodels (an optional dependency)."""

import importlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from shuffledp.core.errors import DataError


class Survey(NamedTuple):
    """One question of a survey, with everybody's true answer."""

    name: str
    title: str
    question: str
    domain: tuple[str, ...]
    answers: tuple[str, ...]


_PARTIES = (
    "strong Democrat",
    "weak Democrat",
    "independent, leans Democrat",
    "independent",
    "independent, leans Republican",
    "weak Republican",
    "strong Republican",
)

# For each survey: name, title, question, column, domain, and what a value of the column means.
_SURVEYS: tuple[tuple[str, str, str, str, tuple[str, ...], Callable[[float], str]], ...] = (
    (
        "fair",
        "Redbook survey of 6,366 married women (Fair 1978, Journal of Political Economy)",
        "Have you had an extramarital affair?",
        "affairs",
        ("yes", "no"),
        lambda time_spent: "yes" if time_spent > 0.0 else "no",
    ),
    (
        "anes96",
        "American National Election Study 1996, 944 respondents",
        "Which party do you identify with?",
        "PID",
        _PARTIES,
        lambda code: _PARTIES[int(code)],
    ),
)


def surveys() -> Iterator[Survey]:
    """Yield questions of Fair's survey of affairs (6,366 women) and of ANES 1996 (944 voters)."""
    for name, title, question, column, domain, meaning in _SURVEYS:
        try:
            module = importlib.import_module(f"statsmodels.datasets.{name}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "statsmodels":
                raise
            raise DataError(
                "the surveys come with statsmodels, which is not installed: run "
                "pip install 'shuffledp[datasets]', or pip install statsmodels"
            ) from None
        answers = tuple(map(meaning, module.load_pandas().data[column]))
        yield Survey(name, title, question, domain, answers)
