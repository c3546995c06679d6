"""Tables of numbers as data frames of whichever library is at hand."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Frames(Shown):
    """Numbers by column, as plain Python, polars or pandas."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Mapping[str, ArrayLike]:
        """Return columns of equal lengths by their names."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of Python values."""
        return {name: np.asarray(each).tolist() for name, each in self.columns().items()}

    def to_polars(self) -> "pl.DataFrame":
        """Return a data frame of polars, one row each."""
        import polars as pl

        return pl.DataFrame(self.to_dict())

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame of pandas, which has to be installed, one row each."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())
