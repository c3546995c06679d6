"""One small survey of every kind of question, with the truth beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shuffledp as sdp
from shuffledp.collection.questions import open_column
from shuffledp.collection.questions.question import Question
from shuffledp.collection.source.columns import Column

NUM_USERS = 1200
DOMAIN = ("yes", "no", "refused")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A question, the values of `NUM_USERS` users, the truth, and the values as a table."""

    question: Question
    values: Any
    truth: NDArray[np.float64]
    table: pl.DataFrame


def _frequencies() -> Kind:
    values = ["yes", "no", "no", "no", "refused", "no"] * 200
    return Kind(
        question=sdp.Categories(domain=DOMAIN),
        values=values,
        truth=np.array([1, 4, 1]) / 6,
        table=pl.DataFrame({"x": values}),
    )


def _mean() -> Kind:
    values = [18.0, 35.5, 60.0, 120.0] * 300
    return Kind(
        question=sdp.Mean(low=0, high=120, name="x"),
        values=values,
        truth=np.array([np.mean(values)]),
        table=pl.DataFrame({"x": values}),
    )


def _vector_mean() -> Kind:
    values = np.array([[0.6, 0.8, 0.0], [-0.2, 0.1, 0.3], [0.0, 0.0, 0.0]] * 400)
    names = ("east", "north", "up")
    return Kind(
        question=sdp.VectorMean(names=names, norm_bound=1.0),
        values=values,
        truth=values.mean(axis=0),
        table=pl.DataFrame(values, schema=names),
    )


def _mean_by_group() -> Kind:
    values = pl.DataFrame(
        {"side": ["left", "right", "left", "left"] * 300, "x": [18.0, 35.5, 60.0, 120.0] * 300}
    )
    return Kind(
        question=sdp.MeanByGroup(("left", "right"), 0, 120, name="x", by="side"),
        values=values,
        truth=np.array([66.0, 35.5]),
        table=values,
    )


def _answer_sets() -> Kind:
    values = [["bus", "bike"], ["bike"], [], ["car", "bus"]] * 300
    domain = ("bike", "bus", "car", "plane")
    return Kind(
        question=sdp.AnswerSets(domain=domain, max_answers=2),
        values=values,
        truth=np.array([2, 2, 1, 0]) / 4,
        table=pl.DataFrame({"x": [";".join(each) for each in values]}),
    )


def _columns() -> Kind:
    rows = [("young", "yes"), ("young", "no"), ("old", "no"), ("old", "no")] * 300
    table = pl.DataFrame(rows, schema=["age", "vote"], orient="row")
    domains = {"age": ("young", "old"), "vote": ("yes", "no")}
    return Kind(
        question=sdp.Columns(domains, pairs="all"),
        values=table,
        truth=np.array([2, 2, 1, 3, 1, 1, 0, 2]) / 4,
        table=table,
    )


def _distribution() -> Kind:
    values = [0.0, 0.5, 3.2, 3.9, 7.0, 9.0] * 200
    return Kind(
        question=sdp.Distribution(bins=9, limits=(0, 9), name="x"),
        values=values,
        truth=np.array([2, 0, 0, 2, 0, 0, 0, 1, 1]) / 6,
        table=pl.DataFrame({"x": values}),
    )


KINDS = {
    kind.question.kind: kind
    for kind in (
        _frequencies(),
        _mean(),
        _vector_mean(),
        _mean_by_group(),
        _answer_sets(),
        _columns(),
        _distribution(),
    )
}

#: Every randomizer of every kind.
CHOICES = [(name, choice) for name, kind in KINDS.items() for choice in kind.question.candidates()]


def opened(kind: Kind, path: Path) -> Column:
    """Return the values of a kind in a file."""
    column = None if kind.question.table_columns else "x"
    return open_column(path, column, kind.question)
