"""Which value belongs to which node of the graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.question import Question
from shuffledp.collection.questions import AnswerSets, VectorMean
from shuffledp.collection.source.columns import open_column
from shuffledp.collection.source.edge_files import read_ids
from shuffledp.core.errors import DataError, ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValues:
    """Values of some nodes, rising: what a randomizer takes, one row a node."""

    nodes: NDArray[np.int64]
    values: Any

    def of(self, nodes: Sequence[int]) -> Any:
        """Return the values of some of the nodes, in that order."""
        return _rows(self.values, np.searchsorted(self.nodes, np.asarray(nodes, dtype=np.int64)))


def parse_users(text: str) -> tuple[int, ...]:
    """Return the numbers that a list such as ``0-99,150`` names, rising; ranges with both ends."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        ends = (first, last) if dash else (first, first)
        if not all(end.isascii() and end.isdigit() and len(end) < 12 for end in ends):
            raise ParameterError(
                f"users = {text!r} is no list of numbers and ranges: write it like 0-99,150"
            )
        low, high = (int(end) for end in ends)
        if not 0 <= high - low < 10_000_000:
            raise ParameterError(
                f"users = {text!r}: {part.strip()} is no rising range of at most 10 million numbers"
            )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def read_node_values(
    question: Question,
    table: Path,
    column: str | None,
    *,
    labels: Sequence[str] | None,
    num_nodes: int,
    id_column: str | None = None,
    users: Sequence[int] | None = None,
) -> NodeValues:
    """Read the values of nodes from a table in which each row is one user.

    Without a column of labels the row number, from 0, is the node's number, so that there must be
    as many rows as nodes.
    """
    opened = open_column(table, column, question)
    nodes = _nodes_of_rows(table, opened.num_users, labels, num_nodes, id_column)
    order = np.argsort(nodes, kind="stable")
    rising = nodes[order]
    wanted = rising if users is None else np.asarray(users, dtype=np.int64)
    places = np.minimum(np.searchsorted(rising, wanted), rising.size - 1)
    if (absent := np.flatnonzero(rising[places] != wanted)).size:
        raise DataError(
            f"{table.name} has no row for {_name(int(wanted[absent[0]]), labels)}: leave it out of "
            "the users, or give a table with a row for each of them"
        )
    blocks = list(opened.blocks())
    values = blocks[0] if len(blocks) == 1 else _joined(blocks)
    return NodeValues(nodes=wanted, values=_rows(values, order[places]))


def value_of_one(question: Question, node: int, answer: str) -> NodeValues:
    """Return the value of a single user, given as text."""
    if isinstance(question, VectorMean | AnswerSets):
        raise ParameterError(f"an answer to {question.kind} is no single text: give a table")
    return NodeValues(nodes=np.array([node]), values=question.value_of_one(answer))


def _nodes_of_rows(
    table: Path,
    num_rows: int,
    labels: Sequence[str] | None,
    num_nodes: int,
    id_column: str | None,
) -> NDArray[np.int64]:
    """Return the number of the node that each row is about."""
    if id_column is None:
        if num_rows != num_nodes:
            raise DataError(
                f"{table.name} has {num_rows:,} rows and the graph {num_nodes:,} nodes: name the "
                "column of labels with --id, or give one row a node, in the nodes' order"
            )
        return np.arange(num_nodes)
    known = labels if labels is not None else [str(node) for node in range(num_nodes)]
    number_of = {label: number for number, label in enumerate(known)}
    found = [number_of.get(label) for label in read_ids(table, id_column)]
    if None in found:
        label = read_ids(table, id_column)[found.index(None)]
        raise DataError(
            f"{table.name} names {label!r} in column {id_column!r}, who is no node of the graph: "
            "leave the row out, or look for another spelling"
        )
    return np.asarray(found, dtype=np.int64)


def _joined(blocks: list[Any]) -> Any:
    """Return blocks of values as one."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    import polars as pl

    return pl.concat(blocks)


def _rows(values: Any, places: NDArray[np.int64]) -> Any:
    """Return some rows of values."""
    return values[places] if isinstance(values, np.ndarray) else values.gather(places)


def _name(node: int, labels: Sequence[str] | None) -> str:
    """Return what the user calls a node."""
    if labels is None or not 0 <= node < len(labels):
        return f"node {node:,}"
    return f"node {node:,}, {labels[node]!r}"
