"""Channel matrices in files: rows inputs, columns outputs, entries Pr[output | input].

Text is read exactly, as fractions. If every row sums to exactly 1, the matrix *is* the law. Where
decimals were rounded, a row sums to 1 nearly, and is divided by its sum. The guarantee is then for
the divided law, which is not quite the intended one, and the file does not show how far off a
small entry is: `ChannelMatrix.caution` says so, and fractions like 1/3 avoid it.

The rules that recognize labels in the first row and the first column never take probabilities for
labels: a row that was left out as a header would make the channel look more private than it is.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.amplification import channel_rows
from shuffledp.amplification.channel_rows import MOST_CELLS, MOST_INPUTS
from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import DataError
from shuffledp.core.files import require_file, text_file
from shuffledp.core.labels import formed
from shuffledp.core.profile import LocalProfile

_DELIMITERS = {".csv": ",", ".tsv": "\t"}

# Decimals and fractions, bounded so that no text is costly to parse: exponents of up to three
# digits, and no entry of more than 400 characters.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?|[+-]?\d+\s*/\s*0*[1-9]\d*")
_LIKE_A_NUMBER = re.compile(r"|[+-]?(nan|inf|infinity)|[+-]?[\d.].*", re.IGNORECASE)
_LONGEST = 400


def parse_entry(text: object) -> Fraction | None:
    """Return the exact number that a cell holds, or None if it holds none."""
    if isinstance(text, str) and len(text) <= _LONGEST and _NUMBER.fullmatch(text):
        return Fraction(text.replace(" ", ""))
    return None


def require_size(num_inputs: int, num_outputs: int, origin: str) -> None:
    """Raise unless there is a matrix, and it is not too large."""
    if num_inputs == 0 or num_outputs == 0:
        raise DataError(f"{origin} is empty: give a row for each input, a column for each output")
    if num_inputs > MOST_INPUTS or num_inputs * num_outputs > MOST_CELLS:
        raise DataError(
            f"{origin} is too large: at most {MOST_INPUTS} inputs and {MOST_CELLS:.0e} entries"
        )


def _read_grid(path: Path) -> list[list[str]]:
    """Read the cells of CSV or TSV, empty lines left out."""
    require_file(path)
    delimiter = _DELIMITERS.get(path.suffix.lower())
    if delimiter is None:
        raise DataError(f"cannot read {path}: its name ends in none of {', '.join(_DELIMITERS)}")
    grid: list[list[str]] = []
    num_cells = 0
    with text_file(path, newline="") as file:
        for row in csv.reader(file, delimiter=delimiter, strict=True):
            if row:  # csv gives an empty list for an empty line
                grid.append([formed(cell) for cell in row])
                num_cells += len(row)
            if len(grid) > MOST_INPUTS + 1 or num_cells > 2 * MOST_CELLS:
                require_size(len(grid), max(num_cells // len(grid), 1), path.name)
    if not grid:
        raise DataError(f"{path.name} is empty: give a row for each input")
    return grid


def _parts(
    grid: list[list[str]], origin: str
) -> tuple[list[str] | None, list[str] | None, list[list[str]]]:
    """Separate labels of inputs and outputs from entries.

    Cells that do not look like numbers are labels; an empty corner means labels on both sides.
    """
    corner, *first = grid[0]
    # Unless it is empty, the corner is a label like the others: 0.5 may begin a row.
    named = grid[0] if corner or not first else first
    are_words = not any(_LIKE_A_NUMBER.fullmatch(cell) for cell in named)
    # An empty corner followed by probabilities begins a row whose label is missing.
    has_header = are_words or (corner == "" and all(cell.isdecimal() for cell in first))
    rows = grid[1:] if has_header else grid
    require_size(len(rows), len(rows[0]) if rows else 0, origin)
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"row {number + 1} of {origin} has {len(row)} cells, the first {len(rows[0])}: "
                "give all rows the same number"
            )
    inputs = outputs = None
    if (has_header and (corner == "" or len(grid[0]) == len(rows[0]) - 1)) or any(
        not _LIKE_A_NUMBER.fullmatch(row[0]) for row in rows
    ):
        inputs, rows = [row[0] for row in rows], [row[1:] for row in rows]
        require_size(len(rows), len(rows[0]), origin)
    if has_header:
        # The corner above the labels may be left out altogether.
        outputs = grid[0][len(grid[0]) > len(rows[0]) and inputs is not None :]
        if len(outputs) != len(rows[0]):
            raise DataError(
                f"{origin} names {len(outputs)} outputs and has {len(rows[0])} columns of entries: "
                "name each column once"
            )
    return inputs, outputs, rows


Exact: TypeAlias = tuple[tuple[Fraction, ...], ...]

# Exact laws of more entries are kept as doubles only.
_MOST_EXACT_CELLS = 10**5

# Sums of doubles are no closer to 1.
_ROUND_OFF = 1e-12

# Relative tolerance of a claimed ratio: for an exact law, and for rounded decimals.
_EXACT_CLAIM, _ROUNDED_CLAIM = 1e-12, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ChannelMatrix:
    """A local randomizer written out: Pr[output | input], each row divided by its sum.

    ``exact`` holds the same entries as fractions, if every row sums to exactly 1 and there are at
    most 1e5 entries; ``largest_correction`` is the largest distance of a row's sum from 1.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: NDArray[np.float64]
    exact: Exact | None
    largest_correction: float

    @property
    def caution(self) -> str | None:
        """Caution to publish where rows were divided by their sums, or None."""
        if self.largest_correction <= _ROUND_OFF:
            return None
        return (
            f"Rows of the channel matrix were divided by their sums, off by up to "
            f"{self.largest_correction:.1e}: the guarantee is for the law after that; write "
            "fractions like 1/3 for an exact one."
        )

    def profile(self, *, claimed_epsilon0: SupportsFloat | None = None) -> LocalProfile:
        """Return the profile of the matrix, with its own loss, after checking a claim."""
        if claimed_epsilon0 is not None:
            self.require_claim(claimed_epsilon0)
        return channel_rows.channel_profile(self.rows if self.exact is None else self.exact)

    def require_claim(self, epsilon0: SupportsFloat) -> None:
        """Raise `DataError` unless the matrix is epsilon0-LDP as claimed.

        Ratios may exceed e^epsilon0 by one part in 1e12 if the law is exact, else by one in 1e9.
        """
        claimed = require_non_negative("epsilon0", epsilon0)
        worst = channel_rows.worst_ratio(self.rows)
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
    """Read a channel matrix from a CSV or TSV file.

    Entries are decimals or fractions like 1/3, with or without a row of output labels and a column
    of input labels. Rows of decimals must sum to 1 within 1e-9, and are divided by their sums; rows
    with a fraction must sum to 1 exactly.
    """
    location = Path(path)
    origin = location.name
    row_labels, column_labels, cells = _parts(_read_grid(location), origin)
    if len(cells) < 2:
        raise DataError(f"{origin} has one input: a randomizer needs two or more to tell apart")
    inputs = _labels(row_labels, len(cells), f"inputs of {origin}")
    outputs = _labels(column_labels, len(cells[0]), f"outputs of {origin}")
    rows = np.empty((len(inputs), len(outputs)))
    exact: list[tuple[Fraction, ...]] = []
    largest = 0.0
    for number, cell_row in enumerate(cells):
        entries, excess = _entries(cell_row, f"{origin}, row {inputs[number]!r}", outputs)
        rows[number] = np.array(entries, dtype=np.float64) / float(excess + 1)
        largest = max(largest, abs(float(excess)))
        if excess == 0 and rows.size <= _MOST_EXACT_CELLS:
            exact.append(entries)
    rows.setflags(write=False)
    is_exact = len(exact) == len(inputs)
    return ChannelMatrix(inputs, outputs, rows, tuple(exact) if is_exact else None, largest)


def _labels(labels: list[str] | None, count: int, what: str) -> tuple[str, ...]:
    """Return the labels, or numbers from 1; refuse empty and repeated labels."""
    if labels is None:
        return tuple(str(number + 1) for number in range(count))
    if "" in labels:
        raise DataError(f"{what}: label {labels.index('') + 1} is empty; name each")
    repeated, times = Counter(labels).most_common(1)[0]
    if times > 1:
        raise DataError(f"{what}: {repeated!r} stands {times} times; name each once")
    return tuple(labels)


def _entries(
    cells: Sequence[str], where: str, outputs: tuple[str, ...]
) -> tuple[tuple[Fraction, ...], Fraction]:
    """Return the exact entries of a row, all >= 0, and the excess of their sum over 1."""
    entries = []
    for column, cell in enumerate(cells):
        entry = parse_entry(cell)
        least, most = channel_rows.SMALLEST_ENTRY, 1 + channel_rows.SUM_TOLERANCE
        if entry is None or not (entry == 0 or least <= entry <= most):
            raise DataError(
                f"{where}, column {outputs[column]!r} holds {cell[:40]!r}, which is no "
                "probability: give a decimal or a fraction like 1/3, 0 or from 1e-280 to 1 (a "
                "first row of labels needs an empty first cell)"
            )
        entries.append(entry)
    excess = sum(entries, Fraction(-1))
    has_fractions = any("/" in cell for cell in cells)
    if abs(float(excess)) > (0.0 if has_fractions else channel_rows.SUM_TOLERANCE):
        wanted = "exactly 1, since it has fractions" if has_fractions else "1 within 1e-9"
        raise DataError(
            f"{where} sums to {float(excess + 1):.12g}, off by {float(excess):+.3g}: the "
            f"probabilities of all outputs must add up to {wanted} (labels that are numbers need "
            "a first row of labels with an empty first cell)"
        )
    return tuple(entries), excess
