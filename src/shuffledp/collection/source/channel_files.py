"""Channel matrices in files: rows inputs, columns outputs, entries Pr[output | input].

Text is read exactly, as fractions. If every row sums to exactly 1, the matrix *is* the law. Where
decimals were rounded, a row sums to 1 nearly, and is divided by its sum. What is accounted for is
then the law after that, which is not quite the one that was meant, and nothing in the file tells
how far off a small entry is: `ChannelMatrix.caution` says so, and fractions like 1/3 avoid it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.channel_rows import (
    SUM_TOLERANCE,
    channel_profile,
    worst_ratio,
)
from shuffledp.collection.source.channel_cells import Cells, parse_entry, read_cells
from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import DataError
from shuffledp.core.profile import LocalProfile

Exact: TypeAlias = tuple[tuple[Fraction, ...], ...]

# Exact laws of more entries are kept as doubles only.
_MOST_EXACT_CELLS = 10**5

# Sums of doubles are no closer to 1.
_ROUND_OFF = 1e-12

# Relative errors in a claimed ratio: of a law that is exact, and of one in rounded decimals.
_EXACT_CLAIM, _ROUNDED_CLAIM = 1e-12, 1e-9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChannelMatrix:
    """A local randomizer written out.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Labels of rows and columns; numbers from 1 where the file names none.
    rows : (k, m) array
        Pr[output | input], read-only; each row divided by its sum.
    exact : tuple of tuples of Fraction, or None
        The same exactly, if every row sums to exactly 1 and there are at most 1e5 entries.
    largest_correction : float
        How far from 1 the sum of a row was.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: NDArray[np.float64]
    exact: Exact | None
    largest_correction: float

    @property
    def caution(self) -> str | None:
        """What has to be said where rows had to be divided by their sums, or None."""
        if self.largest_correction <= _ROUND_OFF:
            return None
        return (
            f"Rows of the channel matrix were divided by their sums, off by up to "
            f"{self.largest_correction:.1e}: the guarantee is for the law after that; write "
            "fractions like 1/3 for an exact one."
        )

    def profile(self, *, claimed_epsilon0: SupportsFloat | None = None) -> LocalProfile:
        """Return what the accountant needs; see `channel_profile`.

        Parameters
        ----------
        claimed_epsilon0 : float, optional
            Checked by `require_claim`; the profile has the matrix's own loss all the same.

        Raises
        ------
        DataError
            If the claim is wrong.
        OutOfRegimeError
            If two inputs have no output in common.
        """
        if claimed_epsilon0 is not None:
            self.require_claim(claimed_epsilon0)
        return channel_profile(self.rows if self.exact is None else self.exact)

    def require_claim(self, epsilon0: SupportsFloat) -> None:
        """Raise unless the matrix is epsilon0-LDP as claimed.

        Parameters
        ----------
        epsilon0 : float
            The claimed local privacy loss in nats, >= 0.

        Raises
        ------
        DataError
            If a ratio of two entries of a column is above e^epsilon0, by more than one part in
            1e12 if the law is exact, else in 1e9; names the worst inputs and output.
        """
        claimed = require_non_negative("epsilon0", epsilon0)
        worst = worst_ratio(self.rows)
        found = math.log(worst.ratio) if worst.ratio < math.inf else math.inf
        tolerance = _ROUNDED_CLAIM if self.exact is None else _EXACT_CLAIM
        if found <= claimed + tolerance:
            return
        likely, unlikely = self.inputs[worst.likely], self.inputs[worst.unlikely]
        probabilities = self.rows[[worst.likely, worst.unlikely], worst.output]
        size = "is infinite" if math.isinf(found) else f"= e^{found:.9g}"
        raise DataError(
            f"the channel is not {claimed:g}-LDP as claimed: inputs {likely!r} and {unlikely!r}, "
            f"output {self.outputs[worst.output]!r}: ratio {probabilities[0]:.6g} / "
            f"{probabilities[1]:.6g} {size}; correct the matrix, or leave the claim out"
        )


def open_channel(path: str | PathLike[str]) -> ChannelMatrix:
    """Read a channel matrix from a file.

    Parameters
    ----------
    path : str or path-like
        ``.csv`` or ``.tsv``: text, decimals or fractions like 1/3, with or without a row of output
        labels and a column of input labels. ``.json``: ``{"matrix": [[...]], "inputs": [...],
        "outputs": [...]}``, labels optional, or the bare list of rows; fractions in quotes.
        ``.npy``: a two-dimensional array. ``.parquet``: a column for each output, and one of text
        for the labels of the inputs if it comes first. At most 200 inputs and 2e7 entries.

    Returns
    -------
    ChannelMatrix

    Raises
    ------
    DataError
        If the file cannot be read, or holds no channel: says where and why, in one line.

    Notes
    -----
    Rows of doubles and of decimals must sum to 1 within 1e-9, and are divided by their sums. Rows
    with a fraction must sum to 1 exactly.
    """
    location = Path(path)
    return matrix_of(read_cells(location), location.name)


def matrix_of(cells: Cells, origin: str) -> ChannelMatrix:
    """Return the checked matrix of what a file called ``origin`` holds."""
    if len(cells.rows) < 2:
        raise DataError(f"{origin} has one input: a randomizer needs two or more to tell apart")
    inputs = _labels(cells.inputs, len(cells.rows), f"inputs of {origin}")
    outputs = _labels(cells.outputs, len(cells.rows[0]), f"outputs of {origin}")
    keeps_exact = len(inputs) * len(outputs) <= _MOST_EXACT_CELLS
    rows = np.empty((len(inputs), len(outputs)))
    exact: list[tuple[Fraction, ...]] = []
    largest = 0.0
    for number, cell_row in enumerate(cells.rows):
        where = f"{origin}, row {inputs[number]!r}"
        entries = _entries(cell_row, where, outputs)
        total = _require_sum(entries, where, any("/" in str(cell) for cell in cell_row))
        rows[number] = np.array(entries, dtype=np.float64) / float(total)
        largest = max(largest, abs(float(total - 1)))
        if keeps_exact and total == 1 and not isinstance(entries, np.ndarray):
            exact.append(tuple(entries))
    rows.setflags(write=False)
    return ChannelMatrix(
        inputs=inputs,
        outputs=outputs,
        rows=rows,
        exact=tuple(exact) if len(exact) == len(inputs) else None,
        largest_correction=largest,
    )


def _labels(labels: tuple[str, ...] | None, count: int, what: str) -> tuple[str, ...]:
    """Return the labels, or numbers from 1; refused if they do not fit or stand twice."""
    if labels is None:
        return tuple(str(number + 1) for number in range(count))
    if len(labels) != count:
        raise DataError(f"{what}: {len(labels)} labels for {count}; give one for each")
    if "" in labels:
        raise DataError(f"{what}: label {labels.index('') + 1} is empty; name each")
    repeated, times = Counter(labels).most_common(1)[0]
    if times > 1:
        raise DataError(f"{what}: {repeated!r} stands {times} times; name each once")
    return labels


def _entries(
    cells: Sequence[str] | NDArray[np.float64], where: str, outputs: tuple[str, ...]
) -> list[Fraction] | NDArray[np.float64]:
    """Return the entries of a row, exact if they are text; refused unless all are >= 0."""
    if isinstance(cells, np.ndarray):
        usable = (cells >= 0.0) & (cells < math.inf)
        if usable.all():
            return cells
        column = int(np.argmin(usable))
        raise _no_probability(str(cells[column]), where, outputs[column])
    entries = []
    for column, cell in enumerate(cells):
        entry = parse_entry(cell)
        if entry is None or entry < 0:
            raise _no_probability(str(cell)[:40], where, outputs[column])
        entries.append(entry)
    return entries


def _no_probability(found: str, where: str, output: str) -> DataError:
    """Return the error for an entry that is none."""
    return DataError(
        f"{where}, column {output!r} holds {found!r}, which is no probability: give a decimal or "
        "a fraction like 1/3, 0 or more (a first row of labels needs an empty first cell)"
    )


def _require_sum(
    entries: list[Fraction] | NDArray[np.float64], where: str, has_fractions: bool
) -> Fraction | float:
    """Return the sum of a row, refused unless it is 1."""
    total: Fraction | float
    total = math.fsum(entries) if isinstance(entries, np.ndarray) else sum(entries, Fraction(0))
    if abs(float(total - 1)) <= (0.0 if has_fractions else SUM_TOLERANCE):
        return total
    wanted = "exactly 1, since it has fractions" if has_fractions else "1 within 1e-9"
    raise DataError(
        f"{where} sums to {float(total):.12g}, off by {float(total - 1):+.3g}: the probabilities "
        f"of all outputs must add up to {wanted}"
    )
