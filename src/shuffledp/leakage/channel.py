"""``Channel``: the law of an observation for each secret, as a matrix whose rows sum to one.

Row x is the law of what the adversary sees where the secret is x. All that he can gain, for every
prior and every gain function, follows from this matrix. C is refined by D if no prior and no gain
function has a larger posterior vulnerability against D than against C, which holds exactly if D is
C followed by some channel W: see docs/results/leakage-channels.md.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapters 4, 8 and 9; McIver, Morgan, Smith, Espinoza, Meinicke,
"Abstract Channels and Their Robust Information-Leakage Ordering", POST 2014.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_non_negative, require_positive
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.matrices import (
    REDUCTION_TOLERANCE,
    Labels,
    checked_labels,
    checked_matrix,
    frozen,
    is_exact_array,
    merged_columns,
    require_dense_size,
    scaled_rows,
    to_floats,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
    """Return the product of two channel matrices whose shapes fit, read-only."""
    exact = is_exact_array(first) and is_exact_array(second)
    require_dense_size("the cascade", first.shape[0], second.shape[1], exact=exact)
    if exact:
        return frozen(exact_product(first, second))
    product = _floats(first) @ _floats(second)
    return frozen(np.ascontiguousarray(product, dtype=np.float64))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Channel:
    """The law of an observation for each secret.

    Parameters
    ----------
    matrix : array_like, shape (num_inputs, num_outputs)
        Entry (x, y) is the probability of observation y where the secret is x. Nested sequences,
        arrays. Where all entries are integers or fractions, the channel is
        exact: all that is made from it alone is exact too.
    inputs, outputs : iterable of hashable, optional
        Distinct labels of rows and of columns.

    Attributes
    ----------
    matrix : numpy.ndarray
        Read-only. float64 and contiguous by rows; or an object array of
        `fractions.Fraction`.
    inputs, outputs : tuple or None
        The labels.

    Raises
    ------
    ParameterError
        If a row does not sum to one (fractions: exactly; doubles: within 1e-9; the message names
        the row, its label, its sum and by how much it is off), an entry is negative, NaN or no
        number, the matrix is empty, above 2e8 cells (exact: 4e6), or labels
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
    def from_trusted(cls, matrix: Any, *, inputs: Labels, outputs: Labels) -> Self:
        """Return a channel whose matrix was made from checked laws; nothing is checked or copied.

        Rows within the tolerance of one may leave it in a product, so products must not be checked
        again. The matrix is read-only and of one of the three kinds; labels are tuples.
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

    def to_dense(self) -> NDArray[np.float64]:
        """Return the matrix as float64, read-only; fractions as the nearest doubles."""
        return frozen(to_floats(self.matrix)) if self.is_exact else self.matrix

    def to_float(self) -> "Channel":
        """Return the channel with fractions rounded to the nearest doubles; else itself."""
        if not self.is_exact:
            return self
        return Channel.from_trusted(self.to_dense(), inputs=self.inputs, outputs=self.outputs)

    def __matmul__(self, other: "Channel") -> "Channel":
        """Return the cascade: what is seen of this channel's output through ``other``."""
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

    def is_close(self, other: "Channel", *, tolerance: float = 1e-12) -> bool:
        """Say whether the matrices have one shape and entries that differ by ``tolerance`` at most.

        Labels are not compared. Two exact matrices are compared exactly where the tolerance is 0.
        """
        limit = require_non_negative("tolerance", tolerance)
        if self.matrix.shape != other.matrix.shape:
            return False
        if self.is_exact and other.is_exact:
            return bool(np.all(np.abs(self.matrix - other.matrix) <= limit))
        return bool(np.all(np.abs(self.to_dense() - other.to_dense()) <= limit))

    def __eq__(self, other: object) -> bool:
        """Compare labels and all entries, fractions with doubles as the nearest doubles."""
        if not isinstance(other, Channel):
            return NotImplemented
        same_labels = self.inputs == other.inputs and self.outputs == other.outputs
        return same_labels and self.is_close(other, tolerance=0.0)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.inputs, self.outputs))

    def __repr__(self) -> str:
        kind = "exact" if self.is_exact else "dense"
        return f"Channel({self.num_inputs} x {self.num_outputs}, {kind})"


_LARGEST_TOLERANCE = 1e-3


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
    """Raise unless both channels have the same secrets; only then can they be compared."""
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
    return channel if isinstance(channel, Channel) else Channel(channel)


# Coefficients of the program at most: 12 s at 216,000. The interior-point solver, which ends in a
# vertex too, because the simplex takes minutes there.
LARGEST_PROGRAM = 250_000

_FEASIBILITY = 1e-10

# Entries of W that are not 0; number and relative accuracy of the last steps towards it.
_POSITIVE, _STEPS, _STEP = 1e-9, 3, 1e-12


def is_refined_by(
    first: Channel | ArrayLike, second: Channel | ArrayLike, *, tolerance: float = 1e-9
) -> bool:
    """Decide whether ``first`` is refined by ``second``: whether the second leaks no more.

    Parameters
    ----------
    first, second : Channel or array_like
        C and D, with the same inputs. Fractions are rounded to doubles.
    tolerance : float
        How far the rows of C W may be from those of D, in the sum of absolute differences, W being
        the best post-processing of C.

    Returns
    -------
    bool
        If true, W was found and checked: gains in [0, 1] give D at most half of the tolerance more
        than C, whatever the prior. If false, none was found.

    Raises
    ------
    ParameterError
        If the inputs differ, a matrix is no channel, the tolerance is not positive, or the linear
        program has more than 250,000 coefficients.
    PrecisionError
        If the solver fails.

    Notes
    -----
    A linear program with k m + 2 n m variables for C of shape n x k and D of shape n x m: 2 s at
    n = k = m = 40. Channels with many outputs are best reduced first.

    Source: Jurado et al. 2023, Theorem 4; docs/results/leakage-channels.md.

    Examples
    --------
    More noise is safer; less is not.

    >>> little, much = [[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]
    >>> is_refined_by(little, much), is_refined_by(much, little)
    (True, False)
    """
    limit = require_positive("tolerance", tolerance)
    one, other = as_channel(first), as_channel(second)
    require_same_inputs(one, other)
    matrix, target = one.to_dense(), other.to_dense()
    apart = np.abs(matrix @ _closest(matrix, target) - target).sum(axis=1)
    return bool(apart.max() <= limit)


def _closest(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return W with rows of sum one, not to be trusted unchecked."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, kron, vstack

    num_inputs, num_middle = first.shape
    num_last = second.shape[1]
    coefficients = num_last * np.count_nonzero(first)
    if coefficients > LARGEST_PROGRAM:
        raise ParameterError(
            f"refinement of a {num_inputs} x {num_middle} channel by one with {num_last} outputs "
            f"needs a linear program with {coefficients} coefficients, above {LARGEST_PROGRAM}: "
            "reduce() both channels, or compare their vulnerabilities for the gains that matter"
        )
    # Variables: W by rows, then D - C W above and below 0, both by rows.
    cells = num_inputs * num_last
    rows_of_one = kron(eye_array(num_middle), np.ones((1, num_last)))
    constraints = vstack(
        [
            hstack([kron(first, eye_array(num_last)), eye_array(cells), -eye_array(cells)]),
            hstack([rows_of_one, np.zeros((num_middle, 2 * cells))]),
        ],
        format="csr",
    )
    targets = np.append(second.ravel(), np.ones(num_middle))
    found = linprog(
        np.append(np.zeros(num_middle * num_last), np.ones(2 * cells)),
        A_eq=constraints,
        b_eq=targets,
        method="highs-ipm",
        options={
            "primal_feasibility_tolerance": _FEASIBILITY,
            "dual_feasibility_tolerance": _FEASIBILITY,
        },
    )
    if not found.success:
        raise PrecisionError(f"the linear program of refinement was not solved: {found.message}")
    size = num_middle * num_last
    entries = _polished(constraints[:, :size], targets, found.x[:size])
    witness = entries.reshape(num_middle, num_last)
    closest: NDArray[np.float64] = witness / witness.sum(axis=1, keepdims=True)
    return closest


def _polished(
    constraints: "csr_array", targets: NDArray[np.float64], entries: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return W after steps that take the solver's own tolerance out of it."""
    from scipy.sparse.linalg import lsqr

    places = np.flatnonzero(entries > _POSITIVE)
    polished = np.zeros_like(entries)
    polished[places] = entries[places]
    active = constraints.tocsc()[:, places]
    for _ in range(_STEPS):
        missing = targets - active @ polished[places]
        polished[places] += lsqr(active, missing, atol=_STEP, btol=_STEP)[0]
    better = np.linalg.norm(targets - active @ polished[places])
    worse = np.linalg.norm(targets - constraints @ entries)
    return np.maximum(polished if better < worse else entries, 0.0)
