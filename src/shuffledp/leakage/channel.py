"""``Channel``: the law of an observation for each secret, as a matrix whose rows sum to one.

Numbers are checked as they are taken, and stay exact where all are rational.

Row x is the law of the adversary's view where the secret is x. All that it can gain, for every
prior and every gain function, follows from this matrix. C is refined by D if no prior and no gain
function has a larger posterior vulnerability against D than against C, which holds exactly if D is
C followed by some channel W: see docs/results/leakage-channels.md.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapters 4, 8 and 9; McIver, Morgan, Smith, Espinoza, Meinicke,
"Abstract Channels and Their Robust Information-Leakage Ordering", POST 2014.
"""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_finite, require_positive
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.reports import read_only

Truth = float | int | Fraction
Labels = tuple[Hashable, ...] | None

# A Fraction takes some 100 bytes: an array of this size about half a gigabyte. Doubles: 1.6 GB.
LARGEST_EXACT_CELLS = 4_000_000
LARGEST_DENSE_CELLS = 200_000_000

# How far a sum of doubles may be from one. A law that is off by t changes what is computed from it,
# where gains are non-negative, by a factor within 1 - t and 1 + t.
SUM_TOLERANCE = 1e-9


def is_exact_array(values: NDArray[Any]) -> bool:
    """Whether ``values`` is an array of fractions, as `as_numbers` makes them."""
    return values.dtype == np.object_


def require_cells(what: str, num_inputs: int, num_outputs: int, *, exact: bool) -> None:
    """Refuse matrices beyond 2e8 doubles, or 4e6 fractions, before they are made."""
    limit = LARGEST_EXACT_CELLS if exact else LARGEST_DENSE_CELLS
    if num_inputs * num_outputs > limit:
        raise ParameterError(
            f"{what} would have {num_inputs} x {num_outputs} = {num_inputs * num_outputs} "
            f"{'exact fractions' if exact else 'cells'}, above {limit}: use floats or closed forms"
        )


def as_numbers(name: str, values: object, num_dimensions: int) -> NDArray[Any]:
    """Return ``values`` as an array of doubles, or of fractions where all entries are rational."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{name} has rows of different lengths: give a full table") from None
    if array.ndim != num_dimensions:
        raise ParameterError(f"{name} has {array.ndim} dimensions: give {num_dimensions}")
    if array.size == 0:
        raise ParameterError(f"{name} is empty, of shape {array.shape}: give at least one number")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    require_cells(name, array.size, 1, exact=True)
    entries = array.ravel().tolist()
    if not all(isinstance(entry, Real) for entry in entries):
        raise ParameterError(f"{name} has an entry that is not a number: give real numbers")
    if not all(isinstance(entry, Rational) for entry in entries):
        return np.array([float(entry) for entry in entries]).reshape(array.shape)
    exact = np.empty(array.size, dtype=np.object_)
    # Python's own integers: NumPy's would overflow without a word.
    exact[:] = [Fraction(int(entry.numerator), int(entry.denominator)) for entry in entries]
    return exact.reshape(array.shape)


def checked_labels(name: str, labels: Iterable[Hashable] | None, size: int) -> Labels:
    """Return labels as a tuple of distinct names, one for each of ``size``; None stays None."""
    names = None if labels is None else tuple(labels)
    if names is not None and (len(names) != size or len(set(names)) < size):
        raise ParameterError(
            f"{name} has {len(names)} labels, {len(set(names))} of them different: give {size}"
        )
    return names


def check_law(name: str, law: NDArray[Any]) -> None:
    """Raise unless entries are non-negative and sum to one."""
    least = int(law.argmin())  # the first NaN, where there is one
    if not law[least] >= 0:
        raise ParameterError(
            f"{name}[{least}] = {law[least]} is not in [0, 1]: probabilities are non-negative"
        )
    with np.errstate(over="ignore"):
        total = law.sum()
    if is_exact_array(law):
        if total != 1:
            raise ParameterError(
                f"{name} sums to {total}, not 1, off by {total - 1}: divide it by its sum"
            )
    elif not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ParameterError(
            f"{name} sums to {total:.12g}, not 1, off by {total - 1.0:.3g}, more than "
            f"{SUM_TOLERANCE:g}: divide it by its sum"
        )


def checked_matrix(matrix: object) -> NDArray[Any]:
    """Return a read-only copy of a channel matrix, whose rows are laws; else raise."""
    array = as_numbers("the channel matrix", matrix, 2)
    require_cells("the channel", *array.shape, exact=is_exact_array(array))
    with np.errstate(over="ignore"):
        is_off = abs(array.sum(axis=1) - 1) > (0 if is_exact_array(array) else SUM_TOLERANCE)
    for row in np.flatnonzero(is_off | ~(array >= 0).all(axis=1))[:1].tolist():
        check_law(f"row {row} of the channel", array[row])
    return read_only(array.copy(order="C"))


def float_channel(channel: Any) -> NDArray[np.float64]:
    """Return the matrix of a `Channel` or array_like as doubles."""
    return as_channel(channel).to_dense()


def uniform_prior(size: int) -> NDArray[np.float64]:
    """Return the uniform law on ``size`` secrets."""
    return np.full(size, 1.0 / size)


def checked_prior(prior: ArrayLike | None, num_inputs: int, *, exact: bool = False) -> NDArray[Any]:
    """Return ``prior``, or the uniform law for None, as a read-only law over the secrets, or raise.

    Doubles must sum to one within 1e-9 and are not rescaled; with ``exact``, fractions stay what
    they are.
    """
    if prior is None:
        return np.full(num_inputs, Fraction(1, num_inputs)) if exact else uniform_prior(num_inputs)
    law = as_numbers("prior", prior, 1)
    if len(law) != num_inputs:
        raise ParameterError(
            f"prior has {len(law)} entries, not {num_inputs}: give one probability for each input"
        )
    check_law("prior", law)
    return read_only(law.copy() if exact else law.astype(np.float64))


def checked_truth(truth: Truth, domain_size: int) -> float | Fraction:
    """Return the probability of a true report, exact where it is an integer or a fraction.

    Of doubles, those within rounding of 1/k count as 1/k; below that results for randomized
    response fail.
    """
    k = require_at_least("domain_size", domain_size, 2)
    number: float | Fraction
    if isinstance(truth, Rational):
        number = Fraction(int(truth.numerator), int(truth.denominator))
        least: float | Fraction = Fraction(1, k)
    else:
        number, least = require_finite("truth (p)", truth), (1.0 - 4.0 * math.ulp(1.0)) / k
    if not 0 <= number <= 1:
        raise ParameterError(
            f"truth (p) = {truth} is not in [1/k, 1]: it is a probability; try 0.75"
        )
    if number < least:
        remedy = "use the channel matrix instead"
        if k == 2:
            remedy = f"p = {float(1 - number):.6g} is the same randomizer with its reports swapped"
        raise OutOfRegimeError(
            f"truth (p) = {truth} is below 1/k = {1.0 / k:.6g}: the formulas hold where the truth "
            f"is at least as likely as any other report (p >= 1/k); {remedy}"
        )
    return number


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
                f"{self.num_outputs} outputs cannot be followed by {other.num_inputs} inputs"
            )
        both = "outputs of the first channel and inputs of the second"
        _require_same_labels(both, self.outputs, other.inputs)
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


def _require_same_labels(what: str, first: Labels, second: Labels) -> None:
    """Raise if both sides have labels and these differ; numbers of labels agree."""
    for index, (mine, yours) in enumerate(zip(first or (), second or (), strict=False)):
        if mine != yours:
            raise ParameterError(f"{what} differ: label {index} is {mine!r} there, {yours!r} here")


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
            f"channels with {one.num_inputs} and {other.num_inputs} inputs have different secrets"
        )
    _require_same_labels("inputs of both channels", one.inputs, other.inputs)
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
            "reduce() both, or compare vulnerabilities"
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
