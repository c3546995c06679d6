"""Graphs from files: edges along which reports can be passed on, one a line."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from shuffledp.collection.source.edge_files import (
    numbers_of,
    read_edges,
    read_two_columns,
    require_named,
)
from shuffledp.collection.source.tables import PARQUET
from shuffledp.core.arrays import Integers
from shuffledp.core.errors import DataError
from shuffledp.core.lazy import pl
from shuffledp.network.graph import Graph

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_graph(path: str | PathLike[str], *, ids: Sequence[str] | None = None) -> Graph:
    r"""Read a graph from an edge list.

    Parameters
    ----------
    path : str or path-like
        A Parquet file of two columns, or text: two fields a line, separated by commas, tabs,
        semicolons or spaces; with a header or without; lines that start with ``#`` or ``%`` are
        comments.
    ids : sequence of str, optional
        The label of each person in the order of the survey, as `read_ids` gives them. Without it,
        the people are all who are named in the file.

    Returns
    -------
    Graph
        With ``ids``, user u is the person of label ``ids[u]``; a person in no edge has no
        neighbours. Without ``ids``:

        - if all names are whole numbers, users are in increasing order of these, whatever numbers
          are left out: people 5, 7 and 30 are users 0, 1 and 2. "007" is no number but a name;
        - otherwise users are in the order in which their names first appear, line by line.

        ``labels`` holds the names, unless they are exactly 0, 1, ..., n - 1.

    Raises
    ------
    DataError
        If the file cannot be read, names somebody by a text for a missing name such as ``nan`` or
        ``NA``, has weights or other further columns or a negative number, or, with ``ids``, has
        an edge of somebody unknown; the message counts them.
    ParameterError
        If ``ids`` holds a label twice.

    Notes
    -----
    Without ``ids``, the first line of text is taken for a header if neither of its fields is a
    whole number, or occurs anywhere else. An edge of a connected graph of more than two people is
    never taken for one. With ``ids``, see `read_edges`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.csv")
    ...     _ = path.write_text("from,to\nann,bob\nbob,eve\n")
    ...     read_graph(path).labels
    ('ann', 'bob', 'eve')
    """
    location = Path(path)
    if ids is None:
        return _graph_of_labels(read_two_columns(location), location)
    names = tuple(str(name) for name in ids)
    labels = None if all(name == str(row) for row, name in enumerate(names)) else names
    return Graph.from_edges(read_edges(location, ids), num_users=len(names), labels=labels)


def _graph_of_labels(table: "pl.DataFrame", location: Path) -> Graph:
    """Return the graph of edges between names that are text; see `read_graph`."""
    if location.suffix.lower() not in PARQUET and _starts_with_header(table, location.name):
        table = table[1:]
    for name in ("first", "second"):
        require_named(table[name], location.name)
    columns = [numbers_of(table[name], None) for name in ("first", "second")]
    if all(is_known.all() for _, is_known in columns):
        return _graph_of_numbers(np.stack([found for found, _ in columns], axis=1), location.name)
    both = table.select(pl.concat_list("first", "second").explode()).to_series()
    names = both.unique(maintain_order=True).to_list()  # line by line
    ends = [numbers_of(table[name], names)[0] for name in ("first", "second")]
    return Graph.from_edges(np.stack(ends, axis=1), num_users=len(names), labels=names)


def _starts_with_header(table: "pl.DataFrame", origin: str) -> bool:
    """Return True if the first line is a header: see the Notes of `read_graph`."""
    fields = table.row(0)
    if any(_WHOLE_NUMBER.fullmatch(field) for field in fields):
        return False
    if any(sum((column == field).sum() for column in table) > 1 for field in fields):
        return False
    if table.height == 1:
        raise DataError(
            f"{origin} has one line, {fields[0]!r} and {fields[1]!r}, which may be a header: if "
            "it is an edge, put a header before it"
        )
    return True


def _graph_of_numbers(pairs: Integers, origin: str) -> Graph:
    """Return the graph of edges between numbers, in increasing order of these."""
    if pairs.size == 0:
        raise DataError(f"{origin} has no rows: give an edge a row")
    if (lowest := int(pairs.min())) < 0:
        raise DataError(
            f"{origin} names somebody by {lowest}: people are numbered from 0; if it stands for "
            "a missing answer, leave such edges out"
        )
    names, edges = np.unique(pairs, return_inverse=True)
    labels = None if names[-1] == names.size - 1 else tuple(map(str, names.tolist()))
    return Graph.from_edges(edges.reshape(-1, 2), num_users=names.size, labels=labels)
