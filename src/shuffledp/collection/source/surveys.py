"""Real surveys with sensitive questions, as packaged with statsmodels (an optional dependency)."""

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from shuffledp.core.errors import needing


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


def surveys() -> Iterator[Survey]:
    """Yield questions of Fair's survey of affairs (6,366 women) and of ANES 1996 (944 voters)."""
    yield Survey(
        "fair",
        "Redbook survey of 6,366 married women (Fair 1978, Journal of Political Economy)",
        "Have you had an extramarital affair?",
        ("yes", "no"),
        tuple("yes" if spent > 0.0 else "no" for spent in _column("fair", "affairs")),
    )
    yield Survey(
        "anes96",
        "American National Election Study 1996, 944 respondents",
        "Which party do you identify with?",
        _PARTIES,
        tuple(_PARTIES[int(code)] for code in _column("anes96", "PID")),
    )


def _column(survey: str, column: str) -> Any:
    """Return a column of a survey in statsmodels."""
    with needing("statsmodels", "a survey for the demo", "shuffledp[datasets]"):
        module = importlib.import_module(f"statsmodels.datasets.{survey}")
    return module.load_pandas().data[column]
