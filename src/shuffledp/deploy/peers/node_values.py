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
    """Values of some nodes: what a randomizer takes, one row a node."""

    nodes: NDArray[np.int64]
    values: Any

    def of(self, nodes: Sequence[int]) -> Any:
        """Return the values of some of the nodes, in that order."""
        place_of = {int(node): place for place, node in enumerate(self.nodes)}
        places = np.array([place_of[node] for node in nodes], dtype=np.int64)
        return self.values[places] if _is_array(self.values) else self.values.gather(places)


def read_node_values(
    question: Question,
    table: Path,
    column: str | None,
    *,
    labels: Sequence[str] | None,
    num_nodes: int,
    id_column: str | None = None,
) -> NodeValues:
    """Read the values of nodes from a table in which each row is one user.

    Without a column of labels the row number, from 0, is the node's number, so that there must be
    as many rows as nodes.
    """
    opened = open_column(table, column, question)
    nodes = _nodes_of_rows(table, opened.num_users, labels, num_nodes, id_column)
    blocks = list(opened.blocks())
    if _is_array(blocks[0]):
        return NodeValues(nodes=nodes, values=np.concatenate(blocks))
    import polars as pl

    return NodeValues(nodes=nodes, values=pl.concat(blocks))


def _is_array(values: Any) -> bool:
    """Return whether values are no column of polars."""
    return isinstance(values, np.ndarray)


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
