"""One answer of a list: the share of users with each answer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.checks import set_fields
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.lazy import pl
from shuffledp.randomizers import registry
from shuffledp.randomizers.base import CategoryRandomizer

MAX_DISCOVERED = 10_000
"""Largest number of distinct values of a list of answers; more are identifiers or numbers."""

OTHER_LABEL = "other"

#: Caution for lists of answers that were read from the data.
WAS_READ = (
    "The {} read from the data, and the guarantee holds for a list fixed beforehand: state the "
    "possible answers as the domain."
)

#: The randomizer whose reports are answers, as dummies must be.
DUMMIES_GO_WITH = "k-rr"


@dataclass(frozen=True, slots=True, init=False)
class Categories(question.Shares):
    """Each user has exactly one of k answers; the share of each is asked for.

    Parameters
    ----------
    domain : iterable
        The possible answers, at least two, all different; each becomes a label, 1 as ``"1"``.
    own : tuple of callables
        Randomizer classes that are not registered, to choose among instead; each is called with
        ``domain_size`` and ``epsilon0``.

    Raises
    ------
    DomainError
        If there are fewer than two answers, or one is repeated.
    """

    kind: ClassVar[str] = "frequencies"
    listed: ClassVar[str] = "domain"
    checked_by: ClassVar[tuple[str, ...]] = ("domain",)
    central_sensitivity: ClassVar[float] = 2.0  # replacing one answer changes two counts by one
    has_one_label: ClassVar[bool] = True
    no_values: ClassVar[NDArray[np.int64]] = np.empty(0, dtype=np.int64)
    expected_for: ClassVar[str] = "root mean square over the answers"

    domain: tuple[str, ...]
    own: tuple[Callable[..., CategoryRandomizer], ...] = field(repr=False)

    def __init__(
        self, domain: Iterable[object], *, own: Iterable[Callable[..., CategoryRandomizer]] = ()
    ) -> None:
        set_fields(self, domain=question.checked_answers(domain), own=tuple(own))

    def candidates(self) -> question.Candidates:
        """Return all registered randomizers of categories, or the user's own ones."""
        own = {_name_of(make): make for make in self.own}
        return question.candidates_of(own or registry.RANDOMIZERS, domain_size=len(self.domain))

    def dummy_candidates(self) -> question.Candidates:
        """Return k-ary randomized response: a dummy is a report of one of the answers."""
        make = registry.RANDOMIZERS[DUMMIES_GO_WITH]
        return question.candidates_of({DUMMIES_GO_WITH: make}, domain_size=len(self.domain))

    def column(self, values: Iterable[object], *, missing: str = "error") -> columns.Column:
        """Return answers in memory as a checked column."""
        if missing == "category" and columns.MISSING_LABEL not in self.domain:
            raise DomainError(
                "missing='category' counts rows without an answer as 'missing', which is not in "
                "the domain: list it there, and plan again"
            )
        return question.Shares.column(self, values, missing=missing)

    def read(self, source: tables.Source) -> columns.Column:
        """Return a column of answers, checked."""
        return answers(source, self.domain)

    def value_of_one(self, answer: object) -> NDArray[np.int32]:
        """Return the code of one user's answer, shape (1,)."""
        place = single.place_of(single.label_of_one(answer, self.domain), self.domain)
        return np.array([place], dtype=np.int32)

    def describe(self) -> str:
        """Return the number of answers."""
        return f"{len(self.domain)} answers"


class Coding(NamedTuple):
    """Coding of one column of answers as codes, int32, in ``labels``."""

    labels: tuple[str, ...]
    place: "pl.Expr"
    #: Maps places to codes, and masks of users with no answer and with one outside.
    decode: Callable[[NDArray[Any]], tuple[NDArray[np.int32], NDArray[Any], NDArray[Any]]]
    fault: columns.Fault


def coding(source: tables.Source, listed: tuple[str, ...], *, where: str = "") -> Coding:
    """Return the coding of a source of one column by listed answers, and perhaps two more."""
    missing, other = source.reading.missing, source.reading.other
    extra = (OTHER_LABEL,) * other + (columns.MISSING_LABEL,) * (missing == "category")
    labels = listed + tuple(label for label in extra if label not in listed)
    # Recognised values: the answers, texts for "no answer", null or NaN, and all others.
    texts = listed + source.missing_texts(listed)
    nothing, outside = len(texts), len(texts) + 1
    code_of = np.arange(outside + 1, dtype=np.int32)
    code_of[len(listed) : outside] = labels.index(extra[-1]) if extra else 0
    code_of[outside] = labels.index(OTHER_LABEL) if other else 0
    (name,), (dtype,) = source.names, source.dtypes
    gap = pl.col(name).is_null() | (pl.col(name).is_nan() if dtype.is_float() else False)
    other_place = pl.when(gap).then(nothing).otherwise(outside).cast(pl.UInt32)

    def decode(places: NDArray[Any]) -> tuple[Any, ...]:
        is_outside = places == outside
        is_missing = (places >= len(listed)) & ~is_outside & (missing != "category")
        return code_of[places], is_missing, is_outside & (not other)

    shown = ", ".join(labels[:10]) + ", ..." * (len(labels) > 10)
    listing = "that list" if where else "domain=[...]"
    remedy = f"add it to {listing}, or pass other=True to count such values as {OTHER_LABEL!r}"
    place = pl.coalesce(spelt.place_expression(name, dtype, texts), other_place)
    return Coding(
        labels, place, decode, columns.Fault(f"outside the domain{where} ({shown})", remedy)
    )


def answers(source: tables.Source, domain: tuple[str, ...] | None) -> columns.Column:
    """Check a column of single answers; codes in [0, k), int32. Without a domain, discover it."""
    if source.reading.other and domain is None:
        raise ParameterError("other=True needs a domain: pass domain=[...]")
    listed = discovered(source) if domain is None else domain
    code = coding(source, listed)
    column = columns.survey(
        source,
        {"place": code.place},
        lambda batch: code.decode(batch["place"].to_numpy()),
        code.fault,
        question=None if domain is None else Categories(code.labels),
    )
    if domain is not None:
        return column
    spelt.require_two_answers(code.labels, source.where)
    cautions = (WAS_READ.format("list of answers was"), *column.cautions)
    return replace(column, question=Categories(code.labels), cautions=cautions)


def discovered(source: tables.Source) -> tuple[str, ...]:
    """Return the distinct labels of a column in a fixed order, except texts for "no answer"."""
    found: set[str] = set()
    num_rows, missing = 0, source.missing_texts()
    for batch in source.batches(source.frame.select(source.label().alias("label"))):
        num_rows += batch.height
        found.update(batch["label"].drop_nulls().unique().to_list())
        found.difference_update(missing)
        if len(found) > MAX_DISCOVERED:
            raise DomainError(
                f"{source.where} has more than {MAX_DISCOVERED:,} distinct values, so it is no "
                "list of answers: choose another column, or list the answers with domain=[...] and "
                "put the rest into one with other=True"
            )
        source.report("reading the answers", num_rows, None)
    source.report("reading the answers", num_rows, num_rows)
    return spelt.checked_domain(spelt.sorted_labels(found), source.where)


def _name_of(make: Callable[..., Any]) -> str:
    """Return the name of a randomizer class, or of another maker of randomizers."""
    name = getattr(make, "name", None)
    return name if isinstance(name, str) else getattr(make, "__name__", repr(make))
