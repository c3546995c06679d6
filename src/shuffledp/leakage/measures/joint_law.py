"""The joint law of secret and output in pieces of bounded size."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.measures.guess_worths import column_width


class JointPiece(NamedTuple):
    """Some cells of the joint law; the three arrays broadcast against one another."""

    joint: NDArray[np.float64]
    """Pr[x, y]: a block of whole columns, or the positive cells of a sparse channel."""

    secret: NDArray[np.float64]
    """Pr[x] of each cell."""

    output: NDArray[np.float64]
    """Pr[y] of each cell."""


def joint_pieces(prior: NDArray[np.float64], channel: Channel) -> Iterator[JointPiece]:
    """Yield the joint law: blocks of columns, or all stored cells at once where it is sparse."""
    if channel.is_sparse:
        table = channel.matrix
        secret = np.repeat(prior, np.diff(table.indptr))
        joint = table.data * secret
        totals = np.bincount(table.indices, weights=joint, minlength=channel.num_outputs)
        yield JointPiece(joint, secret, totals[table.indices])
        return
    for block in channel.column_blocks(column_width(channel.num_inputs)):
        joint = prior[:, None] * block
        yield JointPiece(joint, prior[:, None], joint.sum(axis=0)[None, :])
