"""Whatever polars says about a file becomes one line."""

import polars as pl
import pytest

from shuffledp.collection.source.tables import reading
from shuffledp.core.errors import DataError, DomainError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (pl.exceptions.ComputeError("first\nsecond"), "^cannot read f: first$"),
        (pl.exceptions.ComputeError(""), "^cannot read f: unknown error$"),
        (PermissionError(13, "no"), "^cannot read f: permission denied$"),
    ],
)
def test_errors_become_one_line(error, message):
    with pytest.raises(DataError, match=message), reading("f"):
        raise error


def test_own_errors_pass():
    with pytest.raises(DomainError, match="mine"), reading("f"):
        raise DomainError("mine")
