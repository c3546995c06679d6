"""Edge lists: who knows whom, two people a line."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.two_columns import (
    num_header_lines,
    numbers_of,
    read_two_columns,
    require_policy,
    unknown_label,
)


def read_edges(
    path: str | PathLike[str], ids: Sequence[str] | None = None, *, unknown: str = "error"
) -> NDArray[np.int64]:
    """Read an edge list.

    Parameters
    ----------
    path : str or path-like
        A Parquet file of two columns, or text: two fields a line, separated by commas, tabs,
        semicolons or spaces; with a header or without; lines that start with ``#`` or ``%`` are
        comments.
    ids : sequence of str, optional
        The label of each person in the order of the survey, as `read_ids` gives them. Without
        it, people are named by their number, from 0.
    unknown : {"error", "drop"}
        What to do with edges to people who are not in ``ids``.

    Returns
    -------
    ndarray of int64, shape (m, 2)
        Numbers of people, in file order. Without ``ids`` they may be outside of the survey, which
        `Groups.from_graph` refuses.

    Raises
    ------
    DataError
        If the file cannot be read, or an edge names somebody unknown; the message counts them and
        names the first.
    ParameterError
        If ``unknown`` is something else.

    Notes
    -----
    The first line is taken for a header if neither of its fields stands for a person, nor occurs
    again in its column. Memory: the file, and some 50 bytes an edge.
    """
    require_policy(unknown)
    table = read_two_columns(path)
    columns = [numbers_of(table[name], ids) for name in ("first", "second")]
    edges = np.stack([numbers for numbers, _ in columns], axis=1)
    is_known = np.stack([known for _, known in columns], axis=1)
    origin = Path(path).name
    start = num_header_lines(table, origin, names_nobody=not is_known[0].any())
    is_whole = is_known[start:].all(axis=1)
    if unknown == "error" and not is_whole.all():
        row = start + int(np.argmin(is_whole))
        label = table[row, int(np.argmin(is_known[row]))]
        num_rows = int(np.count_nonzero(~is_whole))
        raise unknown_label(Path(path).name, label, num_rows=num_rows, total=is_whole.size, ids=ids)
    return edges[start:][is_whole]
