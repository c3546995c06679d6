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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.matrices import (
    Labels,
    checked_labels,
    checked_matrix,
    is_exact_array,
    require_cells,
)


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
        the row and by how much it is off), an entry is negative, NaN or no number, the matrix is
        empty, above 2e8 cells (exact: 4e6), or labels are doubled or not one for each.

    Notes
    -----
    Rows are not rescaled but in cascades of doubles. A row of doubles that sums to 1 + t changes a
    vulnerability by a factor of at most 1 + abs(t), in either direction. The matrix is copied.

    Equality compares labels and all entries, fractions with doubles as the nearest doubles.

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
        matrix = checked_matrix(self.matrix)
        object.__setattr__(self, "matrix", matrix)
        for axis, name in enumerate(("inputs", "outputs")):
            labels = checked_labels(name, getattr(self, name), matrix.shape[axis])
            object.__setattr__(self, name, labels)

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
        """Return the matrix as float64; fractions as the nearest doubles."""
        dense: NDArray[np.float64] = self.matrix.astype(np.float64)
        return dense

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
            ("the outputs of the first channel", self.outputs),
            ("the inputs of the second", other.inputs),
        )
        exact = self.is_exact and other.is_exact
        require_cells("the cascade", self.num_inputs, other.num_outputs, exact=exact)
        if exact:
            return Channel(self.matrix @ other.matrix, self.inputs, other.outputs)
        product = self.to_dense() @ other.to_dense()
        # Sums within the tolerance may leave it in a product.
        product /= product.sum(axis=1, keepdims=True)
        return Channel(product, self.inputs, other.outputs)

    def reduce(self) -> "Channel":
        """Return the channel without zero columns and with proportional columns added together.

        Such columns tell the adversary the same, so the reduced channel is equivalent to this one:
        every vulnerability is the same. Two exact channels are equivalent if and only if their
        reduced matrices agree up to the order of columns. Columns of doubles are proportional if,
        divided by their sums, they agree to twelve decimals.

        Returns
        -------
        Channel
            Columns in the order in which the first of each group stood, with the label of that one.

        Examples
        --------
        >>> Channel([[0.5, 0.0, 0.5], [0.25, 0.5, 0.25]], outputs="abc").reduce()
        Channel(2 x 2, dense)
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, column in enumerate(self.matrix.T):
            total = column.sum()
            if total > 0:
                shape = column / total
                key = shape if self.is_exact else shape.round(_DECIMALS)
                groups.setdefault(tuple(key.tolist()), []).append(place)
        columns = [self.matrix[:, group].sum(axis=1) for group in groups.values()]
        outputs = self.outputs and tuple(self.outputs[group[0]] for group in groups.values())
        return Channel(np.stack(columns, axis=1), self.inputs, outputs)

    def __eq__(self, other: object) -> bool:
        """Compare labels and all entries, fractions with doubles as the nearest doubles."""
        if not isinstance(other, Channel):
            return NotImplemented
        if (self.inputs, self.outputs) != (other.inputs, other.outputs):
            return False
        if self.is_exact and other.is_exact:
            return np.array_equal(self.matrix, other.matrix)
        return np.array_equal(self.to_dense(), other.to_dense())

    __hash__ = None  # type: ignore[assignment]  # equal channels may differ in kind

    def __repr__(self) -> str:
        kind = "exact" if self.is_exact else "dense"
        return f"Channel({self.num_inputs} x {self.num_outputs}, {kind})"


# Decimals to which columns of doubles that are merged agree.
_DECIMALS = 12


def _require_same_labels(first: tuple[str, Labels], second: tuple[str, Labels]) -> None:
    """Raise if both sides have labels and these differ; numbers of labels agree."""
    for index, (mine, yours) in enumerate(zip(first[1] or (), second[1] or (), strict=False)):
        if mine != yours:
            raise ParameterError(
                f"{first[0]} are not {second[0]}: number {index} is {mine!r} there and {yours!r} "
                "here; use the same labels in the same order"
            )


def as_channel(channel: object) -> Channel:
    """Return ``channel`` itself if it is one, else the channel with this matrix, checked."""
    return channel if isinstance(channel, Channel) else Channel(channel)


# Coefficients of the program at most: 12 s at 216,000. The interior-point solver, which ends in a
# vertex too, because the simplex takes minutes there.
LARGEST_PROGRAM = 250_000

_FEASIBILITY = 1e-10


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
    if one.num_inputs != other.num_inputs:
        raise ParameterError(
            f"channels with {one.num_inputs} and {other.num_inputs} inputs have different "
            "secrets: they cannot be compared"
        )
    _require_same_labels(
        ("the inputs of the first channel", one.inputs), ("those of the second", other.inputs)
    )
    matrix, target = one.to_dense(), other.to_dense()
    apart = np.abs(matrix @ _closest(matrix, target) - target).sum(axis=1)
    return bool(apart.max() <= limit)


def _closest(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return W with rows of sum one, not to be trusted unchecked."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, kron, vstack

    (num_inputs, num_middle), num_last = first.shape, second.shape[1]
    coefficients = num_last * np.count_nonzero(first)
    if coefficients > LARGEST_PROGRAM:
        raise ParameterError(
            f"refinement of a {num_inputs} x {num_middle} channel by one with {num_last} outputs "
            f"needs a linear program with {coefficients} coefficients, above {LARGEST_PROGRAM}: "
            "reduce() both channels, or compare their vulnerabilities for the gains that matter"
        )
    # Variables: W by rows, then D - C W above and below 0, both by rows.
    cells, size = num_inputs * num_last, num_middle * num_last
    products = [kron(first, eye_array(num_last)), eye_array(cells), -eye_array(cells)]
    sums = [kron(eye_array(num_middle), np.ones((1, num_last))), np.zeros((num_middle, 2 * cells))]
    found = linprog(
        np.append(np.zeros(size), np.ones(2 * cells)),
        A_eq=vstack([hstack(products), hstack(sums)], format="csr"),
        b_eq=np.append(second.ravel(), np.ones(num_middle)),
        method="highs-ipm",
        options={f"{side}_feasibility_tolerance": _FEASIBILITY for side in ("primal", "dual")},
    )
    if not found.success:
        raise PrecisionError(f"the linear program of refinement was not solved: {found.message}")
    # Negative by the solver's tolerance at most.
    witness = np.maximum(found.x[:size], 0.0).reshape(num_middle, num_last)
    closest: NDArray[np.float64] = witness / witness.sum(axis=1, keepdims=True)
    return closest
