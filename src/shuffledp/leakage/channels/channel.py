"""``Channel``: the law of an observation for each secret, as a matrix whose rows sum to one.

Row x is the law of what the adversary sees where the secret is x. All that he can gain, for every
prior and every gain function, follows from this matrix, and nothing else about the system matters.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapters 4 (channels, hyper-distributions, reduction), 8 (parallel
composition, cascades) and 9 (refinement).

*Products of channel matrices: cascades, and two channels that look at the same secret.*

*``HyperDistribution``: the law of what the adversary believes after the observation.*
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.matrices import (
    REDUCTION_TOLERANCE,
    Labels,
    checked_labels,
    checked_matrix,
    frozen,
    frozen_sparse,
    is_exact_array,
    is_sparse_matrix,
    merged_columns,
    require_dense_size,
    require_stored_size,
    scaled_rows,
    to_floats,
    to_fractions,
)
from shuffledp.leakage.priors import checked_prior, is_exact_prior

if TYPE_CHECKING:
    from shuffledp.leakage.measures.refinement import Refinement


def _floats(matrix: Any) -> Any:
    """Return fractions as doubles, and everything else as it is."""
    return to_floats(matrix) if is_exact_array(matrix) else matrix


def exact_product(first: NDArray[np.object_], second: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the matrix product of fractions, computed with integers over common denominators."""
    left, row_scales = scaled_rows(first)
    right, column_scales = scaled_rows(second.T)
    product = left @ right.T
    table = np.empty(product.shape, dtype=np.object_)
    for row, scale in enumerate(row_scales):
        table[row] = [
            Fraction(entry, scale * other)
            for entry, other in zip(product[row], column_scales, strict=True)
        ]
    return table


def cascade_matrix(first: Any, second: Any) -> Any:
    """Return the product of two channel matrices whose shapes fit, read-only.

    Exact where both are, sparse where both are, else dense.
    """
    exact = is_exact_array(first) and is_exact_array(second)
    if is_sparse_matrix(first) and is_sparse_matrix(second):
        # Each stored entry (x, y) of the first meets all of row y of the second.
        require_stored_size(
            "the steps of the cascade", int(np.diff(second.indptr)[first.indices].sum())
        )
        return frozen_sparse(first @ second)
    require_dense_size("the cascade", first.shape[0], second.shape[1], exact=exact)
    if exact:
        return frozen(exact_product(first, second))
    product = _floats(first) @ _floats(second)
    return frozen(np.ascontiguousarray(product, dtype=np.float64))


def _parallel_sparse(first: Any, second: Any) -> Any:
    """Return all products of an entry of a row with one of the same row of the other matrix."""
    from scipy.sparse import csr_array

    mine, yours = np.diff(first.indptr), np.diff(second.indptr)
    per_row = mine.astype(np.int64) * yours
    total = int(per_row.sum())
    require_stored_size("the parallel composition", total)
    starts = np.concatenate(([0], np.cumsum(per_row)))
    rows = np.repeat(np.arange(len(per_row)), per_row)
    within = np.arange(total) - starts[rows]
    left = first.indptr[rows] + within // yours[rows]
    right = second.indptr[rows] + within % yours[rows]
    columns = first.indices[left].astype(np.int64) * second.shape[1] + second.indices[right]
    shape = (first.shape[0], first.shape[1] * second.shape[1])
    return csr_array((first.data[left] * second.data[right], columns, starts), shape=shape)


def parallel_matrix(first: Any, second: Any) -> Any:
    """Return entry (x, (y, z)) = first (x, y) times second (x, z), read-only, for equal inputs.

    Exact where both are, sparse where both are, else dense.
    """
    if is_sparse_matrix(first) and is_sparse_matrix(second):
        return frozen_sparse(_parallel_sparse(first, second))
    exact = is_exact_array(first) and is_exact_array(second)
    num_outputs = first.shape[1] * second.shape[1]
    require_dense_size("the parallel composition", first.shape[0], num_outputs, exact=exact)
    left, right = (
        matrix.toarray() if is_sparse_matrix(matrix) else matrix if exact else _floats(matrix)
        for matrix in (first, second)
    )
    product = left[:, :, np.newaxis] * right[:, np.newaxis, :]
    return frozen(product.reshape(len(left), num_outputs))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Channel:
    """The law of an observation for each secret.

    Parameters
    ----------
    matrix : array_like, shape (num_inputs, num_outputs)
        Entry (x, y) is the probability of observation y where the secret is x. Nested sequences,
        arrays or SciPy sparse matrices. Where all entries are integers or fractions, the channel is
        exact: all that is made from it alone is exact too.
    inputs, outputs : iterable of hashable, optional
        Distinct labels of rows and of columns.

    Attributes
    ----------
    matrix : numpy.ndarray or scipy.sparse.csr_array
        Read-only. float64 and contiguous by rows; or sparse, float64; or an object array of
        `fractions.Fraction`.
    inputs, outputs : tuple or None
        The labels.

    Raises
    ------
    ParameterError
        If a row does not sum to one (fractions: exactly; doubles: within 1e-9; the message names
        the row, its label, its sum and by how much it is off), an entry is negative, NaN or no
        number, the matrix is empty, above 2e8 cells (sparse: stored entries; exact: 4e6), or labels
        are doubled or not one for each.

    Notes
    -----
    Rows are not rescaled. A row of doubles that sums to 1 + t changes a vulnerability by a factor
    of at most 1 + abs(t), in either direction.

    *Copies.* A float64 array, contiguous by rows, that nobody can write into (neither the array nor
    what it is a view of is writeable) is taken as it is. All else is copied, so that what a caller
    writes later does not change the channel. To save the copy of a large array, call its
    ``setflags(write=False)`` first.

    Equality compares labels and all entries, fractions with doubles as the nearest doubles.
    `is_close` compares matrices only.

    Examples
    --------
    >>> noise = Channel([[0.75, 0.25], [0.25, 0.75]], inputs="ab", outputs="ab")
    >>> noise
    Channel(2 x 2, dense)
    >>> (noise @ noise).matrix
    array([[0.625, 0.375],
           [0.375, 0.625]])
    """

    matrix: Any
    inputs: Labels = None
    outputs: Labels = None

    # So that ``array @ channel`` is refused and not taken apart by NumPy.
    __array_ufunc__: ClassVar[None] = None

    def __post_init__(self) -> None:
        matrix, inputs = checked_matrix(self.matrix, self.inputs)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "inputs", inputs)
        outputs = checked_labels("outputs", self.outputs, matrix.shape[1])
        object.__setattr__(self, "outputs", outputs)

    @classmethod
    def from_matrix(
        cls,
        matrix: object,
        *,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Self:
        """Return the channel with this matrix; see the class for what is taken and refused.

        Examples
        --------
        >>> from fractions import Fraction
        >>> Channel.from_matrix([[1, 0], [Fraction(1, 3), Fraction(2, 3)]])
        Channel(2 x 2, exact)
        """
        return cls(matrix, inputs, outputs)  # type: ignore[arg-type]  # labels become tuples

    @classmethod
    def from_trusted(cls, matrix: Any, *, inputs: Labels, outputs: Labels) -> Self:
        """Return a channel whose matrix was made from checked laws; nothing is checked or copied.

        For builders: rows within the tolerance of one may leave it in a product, so products must
        not be checked again. The matrix is of one of the three kinds and read-only (`frozen`,
        `frozen_sparse`), and labels are tuples, distinct and as many as needed.
        """
        channel = object.__new__(cls)
        object.__setattr__(channel, "matrix", matrix)
        object.__setattr__(channel, "inputs", inputs)
        object.__setattr__(channel, "outputs", outputs)
        return channel

    @property
    def num_inputs(self) -> int:
        """Number of secrets, rows of the matrix."""
        return int(self.matrix.shape[0])

    @property
    def num_outputs(self) -> int:
        """Number of observations, columns of the matrix."""
        return int(self.matrix.shape[1])

    @property
    def is_exact(self) -> bool:
        """Whether entries are fractions."""
        return is_exact_array(self.matrix)

    @property
    def is_sparse(self) -> bool:
        """Whether only positive entries are stored."""
        return is_sparse_matrix(self.matrix)

    def to_dense(self) -> NDArray[np.float64]:
        """Return the matrix as float64 of shape (num_inputs, num_outputs), read-only.

        Fractions are rounded to the nearest double. A dense matrix is not copied.

        Raises
        ------
        ParameterError
            If a sparse matrix has more than 2e8 cells.
        """
        dense: NDArray[np.float64] = self.matrix
        if self.is_sparse:
            require_dense_size("the dense matrix", self.num_inputs, self.num_outputs, exact=False)
            dense = self.matrix.toarray()
        elif self.is_exact:
            dense = to_floats(self.matrix)
        return frozen(dense)

    def to_float(self) -> "Channel":
        """Return the channel with fractions rounded to the nearest doubles; else itself."""
        if not self.is_exact:
            return self
        return Channel.from_trusted(self.to_dense(), inputs=self.inputs, outputs=self.outputs)

    def to_exact(self, *, rescale: bool = False) -> "Channel":
        """Return the channel with each double replaced by its exact binary value.

        Binary values rarely sum to exactly one: 0.9 and 0.1 do not. So rows that do not are refused
        unless ``rescale`` divides each row by its sum, which moves entries by a factor within 1e-9
        of one. Decimal numbers meant exactly are better given as fractions in the first place.

        Raises
        ------
        ParameterError
            If a row does not sum to exactly one and ``rescale`` is false, or there are more than
            4e6 cells.

        Examples
        --------
        >>> Channel([[0.75, 0.25]]).to_exact().matrix.tolist()
        [[Fraction(3, 4), Fraction(1, 4)]]
        """
        if self.is_exact:
            return self
        require_dense_size("the exact matrix", self.num_inputs, self.num_outputs, exact=True)
        table = to_fractions(self.to_dense())
        sums = table.sum(axis=1)
        if rescale:
            table = table / sums[:, np.newaxis]
        elif any(total != 1 for total in sums):
            row = next(row for row, total in enumerate(sums) if total != 1)
            raise ParameterError(
                f"row {row} of the channel has binary values that sum to 1 + "
                f"{float(sums[row] - 1):.3g}, not exactly 1: build the channel from fractions, or "
                "pass rescale=True to divide each row by its sum"
            )
        return Channel.from_trusted(frozen(table), inputs=self.inputs, outputs=self.outputs)

    def column_blocks(self, num_columns: int) -> Iterator[NDArray[np.float64]]:
        """Yield the matrix as float64 blocks of at most ``num_columns`` columns, in order.

        Parameters
        ----------
        num_columns : int
            Columns of a block, at least 1. All blocks have num_inputs rows.

        Yields
        ------
        numpy.ndarray
            Read-only; a view where the matrix is dense. Fractions are rounded to the nearest
            double. A sparse matrix is never made dense as a whole.

        Raises
        ------
        ParameterError
            If ``num_columns`` is no whole number >= 1.

        Examples
        --------
        >>> [block.shape for block in Channel([[0.5, 0.25, 0.25]]).column_blocks(2)]
        [(1, 2), (1, 1)]
        """
        width = require_at_least("num_columns", num_columns, 1)
        matrix = self.matrix.tocsc() if self.is_sparse else self.matrix
        return (
            _dense_block(matrix[:, start : start + width])
            for start in range(0, self.num_outputs, width)
        )

    def __matmul__(self, other: "Channel") -> "Channel":
        """Return the cascade: what is seen of this channel's output through ``other``.

        Exact where both are, sparse where both are, else dense. Sums of non-negative terms, so each
        double is good to a relative error of about num_outputs times 1e-16.

        Raises
        ------
        ParameterError
            If the outputs of this channel are not the inputs of ``other``: their numbers differ, or
            both have labels and these differ; or the product is too large.
        """
        if not isinstance(other, Channel):
            return NotImplemented
        if self.num_outputs != other.num_inputs:
            raise ParameterError(
                f"a channel with {self.num_outputs} outputs cannot be followed by one with "
                f"{other.num_inputs} inputs: the outputs of the first are the inputs of the second"
            )
        _require_same_labels(
            "the outputs of the first channel",
            self.outputs,
            "the inputs of the second",
            other.inputs,
        )
        product = cascade_matrix(self.matrix, other.matrix)
        return Channel.from_trusted(product, inputs=self.inputs, outputs=other.outputs)

    def parallel(self, other: "Channel") -> "Channel":
        """Return the channel that shows both outputs, drawn independently given the same secret.

        Output (y, z) is column y times ``other.num_outputs`` plus z, labelled with the pair where
        both channels have labels. Exact where both are, sparse where both are, else dense.

        Raises
        ------
        ParameterError
            If inputs differ in number, or in labels where both have them, or the result is too
            large.

        Examples
        --------
        >>> coin = Channel([[0.5, 0.5], [1.0, 0.0]])
        >>> coin.parallel(coin).matrix
        array([[0.25, 0.25, 0.25, 0.25],
               [1.  , 0.  , 0.  , 0.  ]])
        """
        require_same_inputs(self, other)
        outputs = None
        if self.outputs is not None and other.outputs is not None:
            outputs = tuple((y, z) for y in self.outputs for z in other.outputs)
        product = parallel_matrix(self.matrix, other.matrix)
        inputs = other.inputs if self.inputs is None else self.inputs
        return Channel.from_trusted(product, inputs=inputs, outputs=outputs)

    def reduce(self, *, tolerance: float = REDUCTION_TOLERANCE) -> "Channel":
        """Return the channel without zero columns and with proportional columns added together.

        Such columns tell the adversary the same, so the reduced channel is equivalent to this one:
        every vulnerability is the same. Two exact channels are equivalent if and only if their
        reduced matrices agree up to the order of columns.

        Parameters
        ----------
        tolerance : float, optional
            Doubles only: columns are merged if, after each is divided by its sum, entries agree to
            this relative error with those of one column of the group (zero only with zero). In
            [0, 1e-3].

        Returns
        -------
        Channel
            Columns in the order in which the first of each group stood, with the label of that one.
            This channel itself where there is nothing to do.

        Notes
        -----
        Merging columns that are not quite proportional loses information: for non-negative gains
        and any prior, vulnerabilities become smaller by a factor of at least 1 - 2 ``tolerance``.

        Cost is that of reading the matrix and sorting its columns; no column is compared with all
        others. Exact: that of a greatest common divisor per column.

        Examples
        --------
        >>> Channel([[0.5, 0.0, 0.5], [0.25, 0.5, 0.25]], outputs="abc").reduce()
        Channel(2 x 2, dense)
        """
        limit = require_non_negative("tolerance", tolerance)
        if limit > _LARGEST_TOLERANCE:
            raise ParameterError(
                f"tolerance = {tolerance} is above {_LARGEST_TOLERANCE}: merging columns that "
                "differ so much would hide leakage; try 1e-12"
            )
        merged = merged_columns(self.matrix, limit)
        if merged is None:
            return self
        matrix, first_columns = merged
        outputs = None if self.outputs is None else tuple(self.outputs[y] for y in first_columns)
        return Channel.from_trusted(matrix, inputs=self.inputs, outputs=outputs)

    def hyper(self, prior: ArrayLike | None = None) -> "HyperDistribution":
        """Return the law of the posterior: what the adversary believes after seeing the output.

        Parameters
        ----------
        prior : array_like, shape (num_inputs,), optional
            See `checked_prior`; uniform by default. The result is exact where prior and channel
            are.
        """
        return hyper_distribution(self, prior)

    def refined_by(self, other: "Channel", *, tolerance: float = 1e-9) -> "Refinement":
        """Say whether ``other`` is at least as secure as this channel, for all priors and gains.

        See `shuffledp.leakage.measures.refinement.refinement`.
        """
        from shuffledp.leakage.measures.refinement import refinement

        require_same_inputs(self, other)
        return refinement(self, other, tolerance=tolerance)

    def is_equivalent(self, other: "Channel") -> bool:
        """Say whether both channels leak the same, for all priors and gains.

        See `shuffledp.leakage.measures.refinement.is_equivalent`.
        """
        from shuffledp.leakage.measures.refinement import is_equivalent

        require_same_inputs(self, other)
        return bool(is_equivalent(self, other))

    def is_close(self, other: "Channel", *, tolerance: float = 1e-12) -> bool:
        """Say whether the matrices have one shape and entries that differ by ``tolerance`` at most.

        Labels are not compared. Two exact matrices are compared exactly where the tolerance is 0.
        """
        limit = require_non_negative("tolerance", tolerance)
        if self.matrix.shape != other.matrix.shape:
            return False
        if self.is_exact and other.is_exact:
            return bool(np.all(np.abs(self.matrix - other.matrix) <= limit))
        if self.is_sparse and other.is_sparse:
            return bool(abs(self.matrix - other.matrix).max() <= limit)
        width = max(1, _BLOCK_CELLS // self.num_inputs)
        return all(
            bool(np.all(np.abs(mine - yours) <= limit))
            for mine, yours in zip(
                self.column_blocks(width), other.column_blocks(width), strict=True
            )
        )

    def __eq__(self, other: object) -> bool:
        """Compare labels and all entries, fractions with doubles as the nearest doubles."""
        if not isinstance(other, Channel):
            return NotImplemented
        same_labels = self.inputs == other.inputs and self.outputs == other.outputs
        return same_labels and self.is_close(other, tolerance=0.0)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.inputs, self.outputs))

    def __repr__(self) -> str:
        kind = "exact" if self.is_exact else "sparse" if self.is_sparse else "dense"
        return f"Channel({self.num_inputs} x {self.num_outputs}, {kind})"


_LARGEST_TOLERANCE = 1e-3

_BLOCK_CELLS = 1 << 20


def _dense_block(block: Any) -> NDArray[np.float64]:
    """Return columns of any kind of matrix as read-only doubles."""
    if is_sparse_matrix(block):
        return frozen(block.toarray())
    return frozen(to_floats(block)) if is_exact_array(block) else block


def _require_same_labels(first: str, mine: Labels, second: str, yours: Labels) -> None:
    """Raise if both sides have labels and these differ; numbers of labels agree."""
    if mine is None or yours is None or mine == yours:
        return
    index = next(
        i for i, (left, right) in enumerate(zip(mine, yours, strict=True)) if left != right
    )
    raise ParameterError(
        f"{first} are not {second}: number {index} is {mine[index]!r} there and "
        f"{yours[index]!r} here; use the same labels in the same order"
    )


def require_same_inputs(first: Channel, second: Channel) -> None:
    """Raise unless both channels have the same secrets; only then can they be compared.

    Raises
    ------
    ParameterError
        If the numbers of inputs differ, or both channels have labels and these differ.
    """
    if first.num_inputs != second.num_inputs:
        raise ParameterError(
            f"channels with {first.num_inputs} and {second.num_inputs} inputs have different "
            "secrets: they can be neither compared nor combined"
        )
    _require_same_labels(
        "the inputs of the first channel", first.inputs, "those of the second", second.inputs
    )


def as_channel(channel: object) -> Channel:
    """Return ``channel`` itself if it is one, else the channel with this matrix, checked."""
    return channel if isinstance(channel, Channel) else Channel.from_matrix(channel)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HyperDistribution:
    """Distinct posterior laws of the secret, and how probable each is.

    Made by `Channel.hyper`.

    Parameters
    ----------
    outer : numpy.ndarray, shape (num_posteriors,)
        Positive probabilities of the posteriors; read-only.
    inners : numpy.ndarray, shape (num_posteriors, num_inputs)
        Row i is the posterior law that the adversary has with probability ``outer[i]``; read-only.

    Notes
    -----
    Both are float64, or both object, of `fractions.Fraction`. Any vulnerability of the channel
    under this prior is the sum of ``outer[i]`` times the vulnerability of row i.
    """

    outer: NDArray[Any]
    inners: NDArray[Any]

    @property
    def num_posteriors(self) -> int:
        """Number of distinct posteriors."""
        return len(self.outer)

    @property
    def is_exact(self) -> bool:
        """Whether probabilities are fractions."""
        return is_exact_array(self.outer)

    @property
    def prior(self) -> NDArray[Any]:
        """The mean of the posteriors, which is the prior."""
        return frozen(self.outer @ self.inners)

    def __repr__(self) -> str:
        return f"HyperDistribution({self.num_posteriors} posteriors over {self.inners.shape[1]})"


def hyper_distribution(channel: "Channel", prior: ArrayLike | None) -> HyperDistribution:
    """Return the law of the posterior for a channel and a prior; see `Channel.hyper`.

    Parameters
    ----------
    channel : Channel
        From secrets to observations.
    prior : array_like, shape (num_inputs,), or None
        Law of the secret; None for the uniform one.

    Returns
    -------
    HyperDistribution
        Exact where both are. Posteriors in the order in which they first appear among the outputs;
        equal ones are merged (doubles: equal to a relative error of 1e-12 in each entry).

    Raises
    ------
    ParameterError
        If the prior is no law over the channel's inputs, or the posteriors have more than 2e8
        entries.

    Notes
    -----
    Where the prior is positive, posteriors are equal if and only if columns are proportional, so
    merging is that of columns of these rows. Cost linear in the matrix, but for sorting columns.

    Examples
    --------
    >>> from shuffledp.leakage.channels.channel import Channel
    >>> hyper = Channel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]).hyper([0.5, 0.5])
    >>> hyper.outer
    array([0.5 , 0.25, 0.25])
    >>> hyper.inners
    array([[0.5, 0.5],
           [1. , 0. ],
           [0. , 1. ]])
    """
    exact = channel.is_exact and is_exact_prior(prior)
    law = checked_prior(prior, channel.num_inputs, exact=exact)
    support = np.flatnonzero(law > 0)
    matrix: Any = channel.matrix if exact or channel.is_sparse else channel.to_dense()
    if len(support) < channel.num_inputs:
        matrix = matrix[support]
    merged = merged_columns(matrix, REDUCTION_TOLERANCE)
    if merged is not None:
        matrix = merged[0]
    require_dense_size("the posteriors", matrix.shape[1], channel.num_inputs, exact=exact)
    table = matrix.toarray() if channel.is_sparse else matrix
    joint = table.T * law[support]
    outer = joint.sum(axis=1)
    seen = outer > 0  # what falls below all doubles has no posterior
    inners = np.full((np.count_nonzero(seen), channel.num_inputs), Fraction(0) if exact else 0.0)
    inners[:, support] = joint[seen] / outer[seen, np.newaxis]
    return HyperDistribution(frozen(outer[seen]), frozen(inners))
