"""Values in tables of histories as whole-number codes: booleans, categories, sets of attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from shuffledp.collection.source.labels import checked_domain, label_expression
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.monitoring.encodings.attributes import MOST_ATTRIBUTES

if TYPE_CHECKING:
    import polars as pl

ValueKind: TypeAlias = Literal["boolean", "categories", "attributes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCoding:
    """What values a history may have, and their codes. Made by `value_coding`.

    Parameters
    ----------
    kind : {"boolean", "categories", "attributes"}
        Codes are 0 and 1; or indices into ``labels``; or masks in which bit i stands for
        attribute i.
    labels : tuple of str
        The categories, or the names of the attributes; empty for booleans.
    columns : tuple of str
        The columns of the table: one, or one for each attribute.
    """

    kind: ValueKind
    labels: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def before(self) -> int:
        """The code of "nothing yet": -1 for categories, otherwise 0, which is also a value."""
        return -1 if self.kind == "categories" else 0

    @property
    def num_values(self) -> int:
        """How many running counts there are: one a category or attribute, one for a boolean."""
        return max(len(self.labels), 1)

    def allowed(self) -> str:
        """Return what a value may be, for messages."""
        if self.kind == "boolean" or len(self.columns) > 1:
            return "neither 0/1 nor true/false: give categories (--categories) for other values"
        shown = ", ".join(self.labels[:10]) + ", ..." * (len(self.labels) > 10)
        what = "category" if self.kind == "categories" else "set of attributes"
        option = "--categories" if self.kind == "categories" else "--attributes"
        return f"no {what} of the domain ({shown}): list all that can occur with {option}"

    def expression(self, schema: "pl.Schema", origin: str) -> "pl.Expr":
        """Return the expression for the codes, Int64; null where a value is none of the domain.

        Parameters
        ----------
        schema : polars.Schema
            Of the table; it has all `columns`.
        origin : str
            Name of the table, for messages.

        Raises
        ------
        DataError
            If a column is of a type that cannot hold such values.
        """
        import polars as pl

        if self.kind == "categories":
            name = self.columns[0]
            labels = label_expression(name, schema[name])
            return labels.cast(pl.Enum(self.labels), strict=False).to_physical().cast(pl.Int64)
        if self.kind == "boolean":
            return _bit(self.columns[0], schema, origin)
        if len(self.columns) > 1:
            bits = [
                _bit(name, schema, origin) * (1 << place) for place, name in enumerate(self.columns)
            ]
            return pl.sum_horizontal(bits, ignore_nulls=False)
        return _mask(self.columns[0], self.labels, schema, origin)


def value_coding(
    value: str | Sequence[str],
    *,
    categories: Sequence[object] | None = None,
    attributes: Sequence[object] | None = None,
) -> ValueCoding:
    """Return what the values of a table are.

    Parameters
    ----------
    value : str or sequence of str
        Name of the column with values; or at least two names of columns of booleans, which are
        the attributes.
    categories : sequence, optional
        The possible values of one column, at least two.
    attributes : sequence, optional
        The attributes of which each value of one column is a set, at least two, at most 62.

    Raises
    ------
    ParameterError
        If both are given, or one of them with several columns.
    DomainError
        If there are too few or too many, or one is listed twice.

    Notes
    -----
    A domain is never read from the table: which values occur would then be known without noise.
    """
    columns = (value,) if isinstance(value, str) else tuple(value)
    if not columns:
        raise ParameterError("value names no column: give the name of the column with the values")
    if (categories is not None) + (attributes is not None) + (len(columns) > 1) > 1:
        raise ParameterError(
            "give only one of categories, attributes and several columns of booleans: they are "
            "different ways to say what a value is"
        )
    if categories is not None:
        labels = checked_domain(categories)
        if len(labels) < 2:
            raise DomainError(
                f"categories has {len(labels)}, fewer than two: list all the values that "
                "can occur (--categories a,b)"
            )
        return ValueCoding(kind="categories", labels=labels, columns=columns)
    if attributes is None and len(columns) == 1:
        return ValueCoding(kind="boolean", labels=(), columns=columns)
    labels = checked_domain(columns if attributes is None else attributes)
    if not 2 <= len(labels) <= MOST_ATTRIBUTES:
        raise DomainError(
            f"{len(labels)} attributes are not in [2, {MOST_ATTRIBUTES}]: for one give a column of "
            "booleans, and leave out the rarest of too many"
        )
    return ValueCoding(kind="attributes", labels=labels, columns=columns)


def _bit(name: str, schema: "pl.Schema", origin: str) -> "pl.Expr":
    """Return 0 or 1 for a column of booleans, and null for anything else."""
    import polars as pl

    column, dtype = pl.col(name), schema[name]
    if dtype == pl.Boolean:
        return column.cast(pl.Int64)
    if dtype.is_numeric():
        return pl.when((column == 0) | (column == 1)).then(column.cast(pl.Int64, strict=False))
    if dtype == pl.String:
        text = column.str.strip_chars().str.to_lowercase()
        return (
            pl.when(text.is_in(["1", "true"]))
            .then(pl.lit(1, pl.Int64))
            .when(text.is_in(["0", "false"]))
            .then(pl.lit(0, pl.Int64))
        )
    raise DataError(
        f"column {name!r} of {origin} is of type {dtype}, which is no boolean: give booleans or "
        "0 and 1; or say which values there are with --categories or --attributes"
    )


def _mask(name: str, labels: tuple[str, ...], schema: "pl.Schema", origin: str) -> "pl.Expr":
    """Return the mask of a column of sets, and null where an attribute is not in the domain."""
    import polars as pl

    column, dtype = pl.col(name), schema[name]
    if dtype == pl.String:
        lists = column.str.split(";").list.eval(
            pl.element().str.strip_chars().filter(pl.element().str.strip_chars() != "")
        )
    elif isinstance(dtype, pl.List):
        lists = column.cast(pl.List(pl.String))
    else:
        raise DataError(
            f"column {name!r} of {origin} is of type {dtype}: give lists of attributes, or text "
            "with ; between them"
        )
    codes = pl.element().cast(pl.Enum(labels), strict=False).to_physical().cast(pl.Int64)
    places = lists.list.eval(codes).list.unique()
    is_known = ~places.list.eval(pl.element().is_null()).list.any()
    mask = places.list.eval(pl.lit(2, pl.Int64).pow(pl.element())).list.sum()
    return pl.when(is_known & column.is_not_null()).then(mask.cast(pl.Int64))
