"""Group lists: who is in which group, a group and a member a line."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.edge_files import (
    num_header_lines,
    numbers_of,
    read_two_columns,
    require_policy,
    unknown_label,
)
from shuffledp.core.errors import DataError


def read_groups(
    path: str | PathLike[str], ids: Sequence[str] | None = None, *, unknown: str = "error"
) -> tuple[NDArray[np.int64], ...]:
    """Read groups, for `Groups.from_sets`.

    Parameters
    ----------
    path : str or path-like
        A Parquet file of two columns, the name of a group and a member of it; or text, in the
        forms that `read_edges` takes. A person may be in several groups.
    ids : sequence of str, optional
        The label of each person in the order of the survey, as `read_ids` gives them. Without
        it, members are named by their number, from 0.
    unknown : {"error", "drop"}
        What to do with members who are not in ``ids``.

    Returns
    -------
    tuple of ndarray of int64
        The members of each group, in file order; groups in order of first appearance. Without
        ``ids`` members may be outside of the survey, which `Groups.from_sets` refuses.

    Raises
    ------
    DataError
        If the file cannot be read, a member is unknown, or a group lists a member twice; the
        message names the first.
    ParameterError
        If ``unknown`` is something else.

    Notes
    -----
    The first line is taken for a header if its second field stands for nobody, and neither field
    occurs again in its column.
    """
    import polars as pl

    require_policy(unknown)
    table = read_two_columns(path)
    members, is_known = numbers_of(table["second"], ids)
    origin = Path(path).name
    start = num_header_lines(table, origin, names_nobody=not is_known[0])
    is_known = is_known[start:]
    if unknown == "error" and not is_known.all():
        label = table["second"][start + int(np.argmin(is_known))]
        num_rows = int(np.count_nonzero(~is_known))
        raise unknown_label(origin, label, num_rows=num_rows, total=is_known.size, ids=ids)
    named = table[start:].select(group="first", member=pl.Series(members[start:]))
    named = named.filter(pl.Series(is_known))
    if (twice := named.is_duplicated()).any():
        group, member = named.filter(twice).row(0)
        label = member if ids is None else ids[member]
        raise DataError(
            f"{origin} lists {label!r} more than once in group {group!r}: list each member once"
        )
    parts = named.group_by("group", maintain_order=True).agg("member")["member"]
    return tuple(np.asarray(part, dtype=np.int64) for part in parts)
