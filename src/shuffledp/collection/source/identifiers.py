"""What each person of a table is called in lists of edges or of groups."""

from os import PathLike
from pathlib import Path

from shuffledp.collection.source.labels import MISSING_TEXTS, label_expression
from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import require_column, scan
from shuffledp.core.errors import DataError


def read_ids(path: str | PathLike[str], column: str) -> list[str]:
    """Read what each person is called in lists of edges or of groups.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file in which each row is one person.
    column : str
        Name of the column.

    Returns
    -------
    list of str
        One label a row, without spaces around it. Whole numbers are written without ``.0``.

    Raises
    ------
    DataError
        If the file or the column cannot be used, or a label is missing or occurs twice; the
        message names the rows.
    """
    location = Path(path)
    with reading(location.name):
        frame = scan(location)
        schema = frame.collect_schema()
        require_column(column, schema.names(), location)
        label = label_expression(column, schema[column]).str.strip_chars()
        labels = frame.select(label).collect().to_series()
    where = f"column {column!r} of {location.name}"
    if labels.is_empty():
        raise DataError(f"{where} has no rows: give one row a person")
    missing = (labels.is_null() | labels.is_in(list(MISSING_TEXTS))).arg_true()
    if len(missing):
        raise DataError(
            f"row {missing[0] + 1:,} of {where} has no identifier ({len(missing):,} rows lack "
            "one): give every person one"
        )
    if labels.n_unique() < len(labels):
        twice = labels.filter(labels.is_duplicated())[0]
        rows = (labels == twice).arg_true()
        raise DataError(
            f"rows {rows[0] + 1:,} and {rows[1] + 1:,} of {where} hold the same identifier "
            f"{twice!r}: each row is one person, with an identifier of their own"
        )
    return [str(text) for text in labels]
