"""Randomized reports as bytes of one size, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, ShuffledpError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.base import LocalRandomizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCodec:
    """How one row of ``Reports.data`` stands in bytes: little-endian, in the row's order.

    Parameters
    ----------
    randomizer : LocalRandomizer
        Whose reports they are.
    dtype : numpy.dtype
        Of an element, in the machine's byte order.
    row_shape : tuple of int
        Shape of one report; () for a single number.
    """

    randomizer: LocalRandomizer
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]

    @classmethod
    def of(cls, randomizer: LocalRandomizer, no_values: Any) -> "ReportCodec":
        """Return the codec of a randomizer's reports.

        Parameters
        ----------
        randomizer : LocalRandomizer
            What users run.
        no_values : array-like
            An empty column of values, whose reports have the type and the shape of all others.
        """
        data = randomizer.randomize(no_values, Entropy.from_seed(0)).data
        return cls(randomizer=randomizer, dtype=data.dtype, row_shape=data.shape[1:])

    @property
    def num_report_bytes(self) -> int:
        """Bytes of every report."""
        return int(self.dtype.itemsize * np.prod(self.row_shape, dtype=np.int64))

    def encode(self, reports: Reports) -> list[bytes]:
        """Return the bytes of each report.

        Parameters
        ----------
        reports : Reports
            Of this randomizer.

        Returns
        -------
        list of bytes
            `num_report_bytes` each, in the reports' order.

        Raises
        ------
        ParameterError
            If the reports are of another type, shape or law.
        """
        data = reports.data
        is_ours = data.dtype == self.dtype and data.shape[1:] == self.row_shape
        if reports.fingerprint != self.randomizer.fingerprint or not is_ours:
            raise ParameterError(
                f"reports have the fingerprint {reports.fingerprint!r}, dtype {data.dtype} and "
                f"rows of shape {data.shape[1:]}: pass those that {self.randomizer!r} made"
            )
        flat = np.ascontiguousarray(data, dtype=self.dtype.newbyteorder("<"))
        return [row.tobytes() for row in flat.reshape(len(flat), *self.row_shape)]

    def decode(self, encoded: Sequence[bytes]) -> Reports:
        """Return the reports that bytes stand for; nothing is checked but their number.

        Parameters
        ----------
        encoded : sequence of bytes
            One report each.

        Returns
        -------
        Reports
            In that order.

        Raises
        ------
        ParameterError
            If one of them has another size.
        """
        sizes = {len(each) for each in encoded} - {self.num_report_bytes}
        if sizes:
            raise ParameterError(
                f"a report of {min(sizes)} bytes: reports of {self.randomizer.name} have "
                f"{self.num_report_bytes}"
            )
        data: NDArray[Any] = np.frombuffer(b"".join(encoded), dtype=self.dtype.newbyteorder("<"))
        data = data.astype(self.dtype).reshape(len(encoded), *self.row_shape)
        return Reports(data=data, fingerprint=self.randomizer.fingerprint)

    def decode_valid(self, encoded: Sequence[bytes]) -> tuple[Reports, int]:
        """Return the reports that the randomizer could have made, and how many it could not.

        Users are not trusted: one of them may hand in bytes that stand for no report, and that must
        not keep the others' from being counted.

        Parameters
        ----------
        encoded : sequence of bytes
            One report each, as they came.

        Returns
        -------
        reports : Reports
            Those that can be aggregated, in order.
        num_invalid : int
            How many others there were.

        Notes
        -----
        Cost: one aggregation where all are valid; each invalid one adds some log2(n) of them.
        """
        right_size = [each for each in encoded if len(each) == self.num_report_bytes]
        valid = self._counted(right_size)
        return self.decode(valid), len(encoded) - len(valid)

    def _counted(self, encoded: Sequence[bytes]) -> Sequence[bytes]:
        """Return those that can be aggregated, halving what cannot be."""
        try:
            self.randomizer.aggregate(self.decode(encoded))
        except ShuffledpError:
            if len(encoded) <= 1:
                return []
            middle = len(encoded) // 2
            return [*self._counted(encoded[:middle]), *self._counted(encoded[middle:])]
        return encoded
