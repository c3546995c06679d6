"""Which value belongs to which node of the graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import open_column
from shuffledp.collection.questions.question import Question, has_parts
from shuffledp.collection.source.edge_files import read_ids
from shuffledp.core.errors import DataError, ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValues:
    """Values of some nodes: what a randomizer takes, one row a node."""

    nodes: NDArray[np.int64]
    values: Any

    def of(self, nodes: Sequence[int]) -> Any:
        """Return the values of some of the nodes, in that order."""
        order = np.argsort(self.nodes)
        places = order[np.searchsorted(self.nodes, nodes, sorter=order)]
        is_array = isinstance(self.values, np.ndarray)
        return self.values[places] if is_array else self.values.gather(places)


def read_node_values(
    question: Question,
    table: Path,
    column: str | None,
    *,
    labels: Sequence[str] | None,
    num_nodes: int,
    id_column: str | None = None,
    **ways: Any,
) -> NodeValues:
    """Read the values of nodes from a table in which each row is one user.

    Without a column of labels the row number, from 0, is the node's number, so that there must be
    one row per node. ``ways`` of reading as in `open_column`.
    """
    opened = open_column(table, column, question, **ways)
    nodes = np.arange(num_nodes)
    if id_column is not None:
        known = map(str, range(num_nodes)) if labels is None else labels
        number_of = {label: number for number, label in enumerate(known)}
        ids = read_ids(table, id_column, **ways)
        for label in ids:
            if label not in number_of:
                named = f"{label!r} in column {id_column!r}, who is no node of the graph"
                raise DataError(
                    f"{table.name} names {named}: leave the row out, or see its spelling"
                )
        nodes = np.array([number_of[label] for label in ids], dtype=np.int64)
    elif opened.num_users != num_nodes:
        raise DataError(
            f"{table.name} has {opened.num_users:,} rows and the graph {num_nodes:,} nodes: name "
            "the column of labels with --id, or give one row a node, in the nodes' order"
        )
    blocks: list[Any] = list(opened.blocks())
    if isinstance(blocks[0], np.ndarray):
        return NodeValues(nodes=nodes, values=np.concatenate(blocks))
    import polars as pl

    return NodeValues(nodes=nodes, values=pl.concat(blocks))


def value_of_one(question: Question, node: int, answer: str) -> NodeValues:
    """Return the value of a single user, given as text."""
    if has_parts(question):
        raise ParameterError(f"an answer to {question.kind} is no single text: give a table")
    return NodeValues(nodes=np.array([node]), values=question.value_of_one(answer))
