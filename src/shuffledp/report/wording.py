"""What differs in words and units between kinds of questions: shares of users, or means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shuffledp.collection.results import Result
from shuffledp.report.formatting import fixed, percent

if TYPE_CHECKING:
    from shuffledp.collection.question import Question

#: Full names of the randomizers; one that is not listed goes by its registered name.
RANDOMIZER_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "k-rr": "k-ary randomized response",
        "symmetric-unary": "Symmetric unary encoding (basic RAPPOR)",
        "optimized-unary": "Optimized unary encoding (OUE)",
        "optimized-local-hashing": "Optimized local hashing (OLH)",
        "binary-local-hashing": "Binary local hashing (BLH)",
        "hadamard-response": "Hadamard response",
        "subset-selection": "Subset selection",
        "laplace": "Discrete Laplace noise",
        "duchi": "Duchi's one-bit mechanism",
        "piecewise": "Piecewise mechanism",
        "hybrid": "Hybrid mechanism",
        "privunit": "PrivUnit",
        "privunit-gaussian": "Gaussian PrivUnit (PrivUnitG)",
        "count-mean-sketch": "Count-mean sketch (CMS)",
        "hadamard-count-mean-sketch": "Hadamard count-mean sketch (HCMS)",
    }
)

_KINDS_OF_MEANS = ("mean", "vector-mean")

_SET_WORDS = {"sampled": "one answer drawn of each set", "split": "epsilon0 split over the answers"}


def randomizer_title(randomizer: Any) -> str:
    """Return the full name of a randomizer.

    Parameters
    ----------
    randomizer : LocalRandomizer
        Of any kind.

    Returns
    -------
    str
        Its registered name where it has no other.
    """
    name = str(randomizer.name)
    strategy, found, base = name.partition(":")
    if found and strategy in _SET_WORDS:
        return f"{RANDOMIZER_TITLES.get(base, base)}, {_SET_WORDS[strategy]}"
    return RANDOMIZER_TITLES.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How to speak about the estimates of one kind.

    Parameters
    ----------
    label, labels, estimate : str
        Headings: of what is estimated, of all of it, and of the estimate.
    plural : str
        What the estimates are, in running text.
    format : callable
        Formats a value with a number of decimals.
    unit : float
        What a standard error is multiplied by before its decimals are chosen.
    caution : str
        Why estimates may look impossible.
    tick_format, error_tick_format : str
        Of the axes of charts of estimates and of their errors, in d3's notation.
    """

    label: str
    labels: str
    estimate: str
    plural: str
    format: Callable[[float, int], str]
    unit: float
    caution: str
    tick_format: str
    error_tick_format: str


_FREQUENCIES = Wording(
    label="Answer",
    labels="Answers",
    estimate="Frequency",
    plural="frequencies",
    format=percent,
    unit=100.0,
    caution=(
        "Estimates are unbiased: noise can carry a rare answer below zero, and cutting that off "
        "would make the others too large."
    ),
    tick_format=".0%",
    error_tick_format=".2%",
)

_MEANS = Wording(
    label="Column",
    labels="Columns",
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
    tick_format="",
    error_tick_format="",
)


def wording(result: Result) -> Wording:
    """Return how to speak about this result's estimates."""
    return wording_for(result.question)


def wording_for(question: "Question") -> Wording:
    """Return how to speak about the estimates of a question, before there are any."""
    return _MEANS if question.kind in _KINDS_OF_MEANS else _FREQUENCIES


def main_estimates(result: Result) -> list[float]:
    """Return the frequencies, or the means."""
    columns = result.estimates.columns()
    values: list[float] = columns.get(
        "frequency", columns.get("mean", next(iter(columns.values())))
    ).tolist()
    return values
