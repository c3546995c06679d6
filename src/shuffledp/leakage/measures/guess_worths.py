"""What each guess is worth jointly with each output: sum_x prior_x C_xy g(w, x).

The matrix of these numbers has a row a guess, or a class of guesses, and a column an output. It is
made in blocks of columns of bounded size, so that a channel of hundreds of megabytes needs no
second one of its size. The best guess of an output is then the largest entry of its column; with
several tries, the sum of the largest ones.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.channels.rationals import is_exact_array, to_floats
from shuffledp.leakage.measures.gains import GainFunction
from shuffledp.leakage.priors import checked_prior, is_exact_prior

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Cells of a block: 16 MB of doubles.
BLOCK_CELLS = 1 << 21

# Columns whose running results stay in a fast cache.
_TILE = 4096


def joined(
    prior: ArrayLike | None, channel: Channel, *, gain: GainFunction | None = None
) -> tuple[NDArray[Any], Channel]:
    """Return the checked prior and the channel, both exact if all that is given is, else floats.

    Raises
    ------
    ParameterError
        If prior or gain are for another number of inputs, or the prior is no law.
    """
    if gain is not None and gain.num_inputs != channel.num_inputs:
        raise ParameterError(
            f"gain has {gain.num_inputs} inputs, the channel {channel.num_inputs}: give a gain "
            "function for the channel's inputs"
        )
    exact = channel.is_exact and is_exact_prior(prior) and (gain is None or gain.is_exact)
    law = checked_prior(prior, channel.num_inputs, exact=exact)
    return law, channel if exact else channel.to_float()


def column_width(num_rows: int) -> int:
    """Return how many columns of so many rows make a block."""
    return max(1, BLOCK_CELLS // num_rows)


def worth_blocks(
    prior: NDArray[Any], channel: Channel, gain: GainFunction
) -> Iterator[NDArray[Any]]:
    """Yield the worths of guesses (classes of guesses) with the outputs, in blocks of columns.

    ``prior`` and ``channel`` are as `joined` returns them.
    """
    if channel.is_exact:
        yield _exact_worths(prior, channel.matrix, gain)
    elif gain.classes is None:
        yield from _table_worths(prior, channel, gain.matrix)
    elif channel.is_sparse:
        for block in channel.column_blocks(column_width(channel.num_inputs)):
            yield _class_worths(prior, gain.classes, block, len(gain.guesses))
    else:
        width = column_width(len(gain.guesses))
        for first in range(0, channel.num_outputs, width):
            part = slice(first, min(first + width, channel.num_outputs))
            yield _class_worths(prior, gain.classes, channel.matrix, len(gain.guesses), part)


def _exact_worths(
    prior: NDArray[Any], matrix: NDArray[Any], gain: GainFunction
) -> NDArray[np.object_]:
    """Return all of them in Fractions."""
    joint = prior[:, None] * matrix
    if gain.classes is None:
        return np.asarray(gain.matrix @ joint)
    totals = np.zeros((len(gain.guesses), matrix.shape[1]), dtype=np.object_)
    np.add.at(totals, gain.classes, joint)
    return totals


def _table_worths(
    prior: NDArray[np.float64], channel: Channel, table: NDArray[Any]
) -> Iterator[NDArray[np.float64]]:
    """Yield them by products of matrices."""
    weights = (to_floats(table) if is_exact_array(table) else table) * prior
    matrix = channel.matrix.tocsc() if channel.is_sparse else channel.matrix
    width = column_width(len(weights))
    for first in range(0, channel.num_outputs, width):
        yield np.asarray(weights @ matrix[:, first : first + width])


def _class_worths(
    prior: NDArray[np.float64],
    classes: NDArray[np.int64],
    matrix: NDArray[np.float64],
    num_classes: int,
    part: slice | None = None,
) -> NDArray[np.float64]:
    """Return the chance of each class jointly with each output of a slice of columns."""
    from shuffledp.leakage.measures.vulnerability_kernels import class_totals

    first, last = (0, matrix.shape[1]) if part is None else (part.start, part.stop)
    totals = np.empty((num_classes, last - first))
    # Read-only and writeable arrays would compile the loop twice.
    matrix = np.ascontiguousarray(matrix).view()
    matrix.setflags(write=False)
    class_totals(prior, classes, matrix, first, last, totals)
    return totals


def sum_of_best(worths: NDArray[Any], tries: int) -> Any:
    """Return the sum over columns of the largest entries, ``tries`` of each."""
    if tries >= len(worths):
        best = worths.sum(axis=0)
    elif tries == 1:
        best = worths.max(axis=0)
    elif worths.dtype == np.object_:
        best = np.sort(worths, axis=0)[-tries:].sum(axis=0)
    else:
        best = np.partition(worths, len(worths) - tries, axis=0)[-tries:].sum(axis=0)
    return best.sum()


def right_in_one_dense(prior: NDArray[np.float64], matrix: NDArray[np.float64]) -> Iterator[float]:
    """Yield the sums over slices of columns of max_x prior_x matrix_xy."""
    from shuffledp.leakage.measures.vulnerability_kernels import largest_joint

    num_outputs = matrix.shape[1]
    largest = np.empty(min(_TILE, num_outputs))
    for first in range(0, num_outputs, _TILE):
        last = min(first + _TILE, num_outputs)
        largest_joint(prior, matrix, first, last, largest)
        yield float(largest[: last - first].sum())


def right_sparse(
    prior: NDArray[np.float64], matrix: "csr_array", gain: GainFunction
) -> Iterator[float]:
    """Yield the sum over columns of a sparse channel of the chances of the best classes."""
    from scipy.sparse import csr_array

    inputs = np.arange(len(prior))
    members = csr_array((prior, (gain.classes, inputs)), shape=(len(gain.guesses), len(prior)))
    joint = (members @ matrix).tocsc()
    if gain.tries == 1:
        yield float(joint.max(axis=0).sum())
        return
    columns = np.repeat(np.arange(joint.shape[1]), np.diff(joint.indptr))
    order = np.lexsort((-joint.data, columns))  # each column from its largest entry down
    rank = np.arange(len(order)) - joint.indptr[columns]
    yield float(joint.data[order][rank < gain.tries].sum())
