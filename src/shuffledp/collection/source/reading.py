"""What can go wrong with a file, said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from shuffledp.core.errors import DataError


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Turn what polars raises about a file into one clear `DataError`.

    Parameters
    ----------
    origin : str
        Name of the file, for the message.

    Raises
    ------
    DataError
        In place of any error of polars.
    """
    import polars as pl

    try:
        yield
    except pl.exceptions.NoDataError:
        raise DataError(f"{origin} is empty: it has not even a header line") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"cannot read {origin}: {_reason(error)}") from None
    except PermissionError:
        raise DataError(f"cannot read {origin}: permission denied") from None


def _reason(error: BaseException) -> str:
    """Return one line that says what is wrong with a file."""
    text = str(error)
    if "end with PAR1" in text or "header and footer" in text:
        return "it is no complete Parquet file (truncated, or another format)"
    if "utf-8" in text.lower():
        return "it is not text in UTF-8; convert it (for example with iconv) and try again"
    if "more fields" in text:
        return "a row has more fields than the header; quote values that contain the separator"
    if "could not parse" in text:
        return "a row cannot be parsed; look for a quotation mark that is never closed"
    return (text.splitlines() or ["unknown error"])[0]
