"""One small survey of every kind of question, with the truth beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shuffledp as sdp
from shuffledp.collection.question import Question

NUM_USERS = 1200
KEY = bytes(range(16))
DOMAIN = ("yes", "no", "refused")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A question, the values of `NUM_USERS` users, the truth, and the values as a table."""

    question: Question
    values: Any
    truth: NDArray[np.float64]
    table: pl.DataFrame
    open: Callable[[Path], Any]


def _frequencies() -> Kind:
    values = ["yes", "no", "no", "no", "refused", "no"] * 200
    return Kind(
        question=sdp.Categories(domain=DOMAIN),
        values=values,
        truth=np.array([1, 4, 1]) / 6,
        table=pl.DataFrame({"x": values}),
        open=lambda path: sdp.collection.open_table(path, "x", domain=DOMAIN),
    )


def _mean() -> Kind:
    values = [18.0, 35.5, 60.0, 120.0] * 300
    return Kind(
        question=sdp.Mean(low=0, high=120, name="x"),
        values=values,
        truth=np.array([np.mean(values)]),
        table=pl.DataFrame({"x": values}),
        open=lambda path: sdp.collection.open_numbers(
            path, "x", limits=sdp.collection.Range(low=0, high=120)
        ),
    )


def _vector_mean() -> Kind:
    values = np.array([[0.6, 0.8, 0.0], [-0.2, 0.1, 0.3], [0.0, 0.0, 0.0]] * 400)
    names = ("east", "north", "up")
    return Kind(
        question=sdp.VectorMean(names=names, norm_bound=1.0),
        values=values,
        truth=values.mean(axis=0),
        table=pl.DataFrame(values, schema=names),
        open=lambda path: sdp.collection.open_numbers(
            path, names, limits=sdp.collection.Ball(norm_bound=1.0)
        ),
    )


def _words() -> Kind:
    values = ["tea", "tea", "maté", "coffee", "water", "tea"] * 200
    return Kind(
        question=sdp.Words(dictionary=("tea", "coffee", "wine"), key=KEY),
        values=values,
        truth=np.array([3, 1, 0]) / 6,
        table=pl.DataFrame({"x": values}),
        open=lambda path: sdp.collection.open_words(path, "x"),
    )


def _answer_sets() -> Kind:
    values = [["bus", "bike"], ["bike"], [], ["car", "bus"]] * 300
    domain = ("bike", "bus", "car", "plane")
    return Kind(
        question=sdp.AnswerSets(domain=domain, max_answers=2),
        values=values,
        truth=np.array([2, 2, 1, 0]) / 4,
        table=pl.DataFrame({"x": [";".join(each) for each in values]}),
        open=lambda path: sdp.collection.open_answer_sets(path, "x", domain=domain, max_answers=2),
    )


KINDS = {
    kind.question.kind: kind
    for kind in (_frequencies(), _mean(), _vector_mean(), _words(), _answer_sets())
}

#: Every randomizer of every kind.
CHOICES = [(name, choice) for name, kind in KINDS.items() for choice in kind.question.candidates()]
