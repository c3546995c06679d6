"""Several answers of a list: the share of users who give each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.checks import set_fields
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.lazy import pl
from shuffledp.randomizers import answer_sets


@dataclass(frozen=True, slots=True, init=False)
class AnswerSets(question.Shares):
    """Each user has up to ``max_answers`` of k answers; the share of each is asked for.

    Parameters
    ----------
    domain : iterable
        The possible answers, at least two, all different.
    max_answers : int
        Largest number of answers of a user, in [1, k]; known without looking at the data.

    Raises
    ------
    DomainError
        If there are fewer than two answers, or one is repeated.
    ParameterError
        If ``max_answers`` is out of range.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> read = sdp.AnswerSets(["news", "sport", "culture"], max_answers=2)
    >>> plan = sdp.plan(read, num_users=4_000, epsilon=1.0, delta=1e-6)
    >>> sdp.run(plan, [["news"], ["news", "sport"]] * 2_000, seed=1).to_dict()["value"]
    ['news', 'sport', 'culture']
    """

    kind: ClassVar[str] = "answer-sets"
    stated: ClassVar[tuple[str, ...]] = ("max_answers",)
    listed: ClassVar[str] = "domain"
    checked_by: ClassVar[tuple[str, ...]] = ("domain", "max_answers")
    reads: ClassVar[tuple[str, ...]] = ("missing", "separator", "truncate")

    domain: tuple[str, ...]
    max_answers: int

    def __init__(self, domain: Iterable[object], *, max_answers: SupportsIndex) -> None:
        labels = question.checked_answers(domain)
        _, most = answer_sets.require_set_size(len(labels), max_answers)
        set_fields(self, domain=labels, max_answers=most)

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity: a replaced set changes by one up to 2 ``max_answers`` of k counts."""
        return float(min(2 * self.max_answers, len(self.domain)))

    @property
    def no_values(self) -> NDArray[np.int64]:
        """Sets of no users."""
        return np.empty((0, self.max_answers), dtype=np.int64)

    def candidates(self) -> question.Candidates:
        """Return both ways to report a set, with each registered randomizer of categories."""
        return question.candidates_of(
            answer_sets.ANSWER_SET_RANDOMIZERS,
            domain_size=len(self.domain),
            max_answers=self.max_answers,
        )

    @property
    def expected_for(self) -> str:
        """Case in which the expected error holds."""
        return f"for an answer that one user in {len(self.domain)} gives"

    worst_error = question.Shares.frequent_error

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step but ``"clip"``."""
        question.Shares.require_post_processing(self, steps)
        if set(steps) - {"clip"}:
            raise ParameterError(
                f"post-processing {', '.join(steps)} is not for sets: only clip applies"
            )

    def source_of(self, values: Iterable[Iterable[str]]) -> tables.Source:
        """Return sets in memory as a column."""
        return tables.source_of_sets(values)

    def read(self, source: tables.Source) -> columns.Column:
        """Return a column of sets, checked; codes in [0, k), then -1, shape (m, max_answers).

        An empty text is an empty set; null is missing.
        """
        separator, truncate = source.reading.separator, source.reading.truncate
        if not separator:
            raise ParameterError(
                "separator is empty: give what stands between two answers, such as ;"
            )
        (name,), (dtype,) = source.names, source.dtypes
        is_text = dtype == pl.String
        if not is_text and not (isinstance(dtype, pl.List) and dtype.inner == pl.String):
            raise DataError(
                f"column {name!r} is of type {dtype}: give text with separators, or lists of text"
            )
        lists = pl.col(name)
        if is_text:
            label, absent = source.label(), [*filter(None, source.missing_texts(self.domain))]
            empty = lists.fill_null("") if source.separator else lists  # null is missing
            held = pl.when(~label.is_in(absent).fill_null(value=False)).then(empty)
            lists = held.str.split(separator)
        code = pl.col("answer").cast(pl.Enum(list(self.domain)), strict=False).to_physical()

        def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
            flat = (
                batch.with_row_index("owner")
                .explode("answer")
                .with_columns(spelt.label_expression("answer", pl.String()))
                .filter(pl.col("answer").is_not_null() & (pl.col("answer") != ""))
                .unique(["owner", "answer"], keep="first", maintain_order=True)
                .with_columns(code.alias("code"))
            )
            owners = flat["owner"].to_numpy().astype(np.int64)
            codes = flat["code"].fill_null(0).to_numpy().astype(np.int32)
            sizes = np.bincount(owners, minlength=batch.height)
            strays = owners[flat["code"].is_null().to_numpy()]
            is_outside = np.bincount(strays, minlength=batch.height) > 0
            places = np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]
            kept = places < self.max_answers
            table = np.full((batch.height, self.max_answers), answer_sets.NO_ANSWER, dtype=np.int32)
            table[owners[kept], places[kept]] = codes[kept]
            is_missing = batch["answer"].is_null().to_numpy()
            return table, is_missing, is_outside, (sizes > self.max_answers) & (not truncate)

        fewer = f"raise it, or pass truncate=True to keep the first {self.max_answers} of each user"
        return columns.survey(
            source,
            {"answer": lists},
            decode,
            columns.Fault("with an answer outside the domain", "add it to domain=[...]"),
            columns.Fault(f"of more than max_answers = {self.max_answers} answers", fewer),
            question=self,
            unless="sets of answers",
        )

    def value_of_one(self, answer: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the codes of one user's different answers, then -1, shape (1, max_answers)."""
        if spelt.is_gap(answer):
            raise single.no_answer()
        try:
            labels = [spelt.formed(each) for each in tables.listed(answer) if each is not None]
        except (TypeError, AttributeError):
            raise DataError("the answers are no list of text: give a list, [] for none") from None
        codes = [single.place_of(label, self.domain) for label in dict.fromkeys(labels) if label]
        if len(codes) > self.max_answers:
            raise DomainError(
                f"there are {len(codes)} answers: give at most max_answers = {self.max_answers}"
            )
        row = np.full((1, self.max_answers), answer_sets.NO_ANSWER, dtype=np.int32)
        row[0, : len(codes)] = codes
        return row

    def describe(self) -> str:
        """Return the number of answers, and the largest number a user may give."""
        return f"up to {self.max_answers} of {len(self.domain)} answers"
