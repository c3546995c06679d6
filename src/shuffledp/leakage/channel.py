"""Channels: the law of an observation for each secret, as a matrix, and its leakage.

A channel's rows sum to one. Numbers are checked on input, and stay exact where all are rational.

Row x is the law of the adversary's view where the secret is x. All that it can gain, for every
prior and every gain function, follows from this matrix. C is refined by D if no prior and no gain
function has a larger posterior vulnerability against D than against C, which holds exactly if D is
C followed by some channel W: see docs/results/leakage.md.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapters 4, 8 and 9; McIver, Morgan, Smith, Espinoza, Meinicke,
"Abstract Channels and Their Robust Information-Leakage Ordering", POST 2014.

*Vulnerability*: the expected gain of the best adversary before and after the output, for any goal.
A gain g(w, x) is the worth of the guess w where the secret is x, a table with a row for each guess.
V_g(prior) = max_w sum_x prior_x g(w, x) before, and V_g[prior > C] = sum_y max_w sum_x prior_x C_xy
g(w, x) after. Without a gain, guessing the secret, both are the chance to guess right.

*Accuracy.* With fractions throughout, exact. Otherwise nearest, in no direction: guessing the
secret is right to a relative 1e-14; other gains to (num_inputs + 50) u, u = 2^-53, where none is
negative, and to the same of the vulnerability for absolute gains where some are. Priors and rows
that sum to one only within 1e-9 add as much.

*Collections*: n users randomize, a shuffler hides the senders. A dataset is the tuple of the n
values, one of k for each user; channels from datasets have k^n rows in lexicographic order,
labelled with these tuples. Channels on histograms, tuples of k counts, are far smaller. The
shuffler commutes with any randomizer: proof in docs/results/leakage.md.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 1, 2, 7, 8, 10, 13 and 23.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from numbers import Rational, Real
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.reports import read_only

Truth = float | int | Fraction
Labels = tuple[Hashable, ...] | None

# A Fraction takes some 100 bytes: an array of this size about half a gigabyte. Doubles: 1.6 GB.
LARGEST_EXACT_CELLS = 4_000_000
LARGEST_DENSE_CELLS = 200_000_000

# Largest distance of a sum of doubles from one. A law that is off by t changes a vulnerability,
# where gains are non-negative, by a factor within 1 - t and 1 + t.
SUM_TOLERANCE = 1e-9


def is_exact_array(values: NDArray[Any]) -> bool:
    """Return True if ``values`` is an array of fractions, as `as_numbers` makes them."""
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
    # Python's own integers: NumPy's would overflow silently.
    exact[:] = [Fraction(int(entry.numerator), int(entry.denominator)) for entry in entries]
    return exact.reshape(array.shape)


def checked_labels(name: str, labels: Iterable[Hashable] | None, size: int) -> Labels:
    """Return labels as a tuple of distinct names, one for each of ``size``; None stays None."""
    if labels is None:
        return None
    names = tuple(labels)
    if not len(names) == len(set(names)) == size:
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

    Doubles must sum to one within 1e-9 and are not rescaled; with ``exact``, fractions stay exact.
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

    Doubles within rounding of 1/k count as 1/k; below that results for randomized response fail.
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
        Entry (x, y) is the probability of observation y where the secret is x. Where all entries
        are integers or fractions, the channel is exact: all that is made from it alone is exact
        too.
    inputs, outputs : iterable of hashable, optional
        Distinct labels of rows and of columns.

    Attributes
    ----------
    matrix : numpy.ndarray
        Read-only. float64 and contiguous by rows; or an object array of `fractions.Fraction`.
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
    Rows are rescaled in cascades of doubles only. A row of doubles that sums to 1 + t changes a
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
        """True if entries are fractions."""
        return is_exact_array(self.matrix)

    def to_dense(self) -> NDArray[np.float64]:
        """Return the matrix as float64; fractions as the nearest doubles."""
        dense: NDArray[np.float64] = self.matrix.astype(np.float64)
        return dense

    def __matmul__(self, other: "Channel") -> "Channel":
        """Return the cascade: this channel's output, observed through ``other``."""
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


def _require_same_labels(what: str, first: Labels, second: Labels) -> None:
    """Raise if both sides have labels and these differ; numbers of labels agree."""
    for index, (mine, yours) in enumerate(zip(first or (), second or (), strict=False)):
        if mine != yours:
            raise ParameterError(f"{what} differ: label {index} is {mine!r} there, {yours!r} here")


def as_channel(channel: object) -> Channel:
    """Return ``channel`` itself if it is one, else the channel with this matrix, checked."""
    return channel if isinstance(channel, Channel) else Channel(channel)


# Most coefficients of the program: 12 s at 216,000. An interior-point method, which ends in a
# vertex too, solves it, because the simplex method takes minutes there.
LARGEST_PROGRAM = 250_000

_FEASIBILITY = 1e-10

# Largest distance of a row of C W from the row of D, in the sum of absolute differences.
_LARGEST_DISTANCE = 1e-9


def is_refined_by(first: Channel | ArrayLike, second: Channel | ArrayLike) -> bool:
    """Return True if ``first`` is refined by ``second``, which then leaks no more.

    Parameters
    ----------
    first, second : Channel or array_like
        C and D, with the same inputs. Fractions are rounded to doubles.

    Returns
    -------
    bool
        If true, a channel W was found and checked: no row of C W is farther than 1e-9 from the row
        of D, in the sum of absolute differences. So gains in [0, 1] give D at most 5e-10 more than
        C, whatever the prior. If false, none was found.

    Raises
    ------
    ParameterError
        If the inputs differ, a matrix is no channel, or the linear program has more than 250,000
        coefficients.
    PrecisionError
        If the solver fails.

    Notes
    -----
    A linear program with k m + 2 n m variables for C of shape n x k and D of shape n x m: 2 s at
    n = k = m = 40. Adding proportional columns together first changes no vulnerability.

    Source: Jurado et al. 2023, Theorem 4; docs/results/leakage.md.

    Examples
    --------
    More noise is safer; less is not.

    >>> little, much = [[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]
    >>> is_refined_by(little, much), is_refined_by(much, little)
    (True, False)
    """
    one, other = as_channel(first), as_channel(second)
    if one.num_inputs != other.num_inputs:
        raise ParameterError(
            f"channels with {one.num_inputs} and {other.num_inputs} inputs have different secrets"
        )
    _require_same_labels("inputs of both channels", one.inputs, other.inputs)
    matrix, target = one.to_dense(), other.to_dense()
    apart = np.abs(matrix @ _closest(matrix, target) - target).sum(axis=1)
    return bool(apart.max() <= _LARGEST_DISTANCE)


def _closest(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a candidate for W, with rows of sum one, which the caller must check."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, kron, vstack

    (num_inputs, num_middle), num_last = first.shape, second.shape[1]
    coefficients = num_last * np.count_nonzero(first)
    if coefficients > LARGEST_PROGRAM:
        raise ParameterError(
            f"refinement of a {num_inputs} x {num_middle} channel by one with {num_last} outputs "
            f"needs a linear program with {coefficients} coefficients, above {LARGEST_PROGRAM}: "
            "add proportional columns together, or compare vulnerabilities"
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


def single_target_gain(inputs: Sequence[Sequence[Hashable]] | None) -> NDArray[np.int64]:
    """Return the gain of guessing the first person's value: 1 if right, else 0.

    Parameters
    ----------
    inputs : sequence of sequences
        Each value of the secret, as the tuple of everybody's values: ``channel.inputs``.

    Returns
    -------
    ndarray of int64, shape (num_answers, num_inputs)
        A row for each answer, in the order in which they appear.

    Raises
    ------
    ParameterError
        If there are no inputs.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 13.

    Examples
    --------
    >>> single_target_gain([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")])
    array([[1, 1, 0, 0],
           [0, 0, 1, 1]])
    """
    if not inputs:
        raise ParameterError("inputs is empty: give what everybody said, as tuples")
    said = [values[0] for values in inputs]
    return np.array([[int(each == guess) for each in said] for guess in dict.fromkeys(said)])


def _checked_gain(gain: ArrayLike, num_inputs: int) -> NDArray[Any]:
    """Return a checked table of gains, in which some guess has no negative gain."""
    table = as_numbers("gain", gain, 2)
    if table.shape[1] != num_inputs:
        raise ParameterError(
            f"gain has {table.shape[1]} inputs, the channel {num_inputs}: give a column for each"
        )
    if not all(map(math.isfinite, table.ravel().tolist())):
        raise ParameterError("gain has an entry that is not finite: give finite gains")
    if not np.all(table >= 0, axis=1).any():
        raise ParameterError(
            "gain has a negative entry in every row: add a guess worth 0 (not to play)"
        )
    return table


def prior_vulnerability(prior: ArrayLike | None, gain: ArrayLike | None = None) -> float | Fraction:
    """Return the expected gain of the best guess before any output is seen.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law, for which ``gain`` must be given.
    gain
        As for `posterior_vulnerability`.

    Returns
    -------
    float or Fraction
        A Fraction where prior and gains are exact. Nearest; see the module.

    Raises
    ------
    ParameterError
        If the prior is no law, or for another number of inputs than the gain.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 1.

    Examples
    --------
    >>> prior_vulnerability([0.5, 0.25, 0.25])
    0.5
    >>> prior_vulnerability([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
    Fraction(1, 2)
    """
    if gain is not None:
        size = as_numbers("gain", gain, 2).shape[1]
    elif prior is not None:
        size = np.size(prior)
    else:
        raise ParameterError("prior and gain are both missing: the number of inputs is unknown")
    # A channel with one output, which carries no information.
    blind = Channel(np.ones((size, 1), dtype=np.int64))
    return posterior_vulnerability(prior, blind, gain)


def posterior_vulnerability(
    prior: ArrayLike | None,
    channel: Channel | ArrayLike,
    gain: ArrayLike | None = None,
) -> float | Fraction:
    """Return the expected gain of the best guess once the output is seen.

    The additive leakage is this less `prior_vulnerability`, the multiplicative one their ratio.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.
    gain : (num_guesses, num_inputs) array_like, optional
        Gain of each guess for each secret, finite; by default 1 for the secret itself. Where
        some are negative, one guess at least must be worth 0 or more for each secret, such as not
        to play: then no vulnerability is negative.

    Returns
    -------
    float or Fraction
        A Fraction where all three are exact. Nearest; see the module.

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, a gain has no guess without risk, or the numbers
        of inputs differ.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 2.

    Examples
    --------
    >>> posterior_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.75
    """
    seen = as_channel(channel)
    parts = [checked_prior(prior, seen.num_inputs, exact=True), seen.matrix]
    if gain is not None:
        parts.append(_checked_gain(gain, seen.num_inputs))
    exact = all(map(is_exact_array, parts))
    law, matrix, *table = parts if exact else [part.astype(np.float64) for part in parts]
    worths = law[:, None] * matrix
    if table:
        worths = table[0] @ worths
    best = worths.max(axis=0)
    return Fraction(best.sum()) if exact else max(math.fsum(best), 0.0)


def min_capacity_bits(channel: Channel | ArrayLike) -> float:
    """Return log2 of the largest factor by which the output can raise any vulnerability, in bits.

    Parameters
    ----------
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float
        log2 sum_y max_x C_xy, in [0, log2 min(num_inputs, num_outputs)]: no prior and no gain that
        is not negative leaks more. Nearest.

    Raises
    ------
    ParameterError
        If the matrix is no channel.

    Notes
    -----
    Attained by guessing the secret under the uniform prior. Source: Alvim, Chatzikokolakis,
    Palamidessi, Smith, "Measuring Information Leakage Using Generalized Gain Functions", CSF 2012,
    the "Miracle" theorem; docs/results/leakage.md.

    Examples
    --------
    >>> min_capacity_bits([[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    return max(math.log2(math.fsum(as_channel(channel).matrix.max(axis=0))), 0.0)


_Table = list[tuple[int, ...]]


def datasets(num_users: SupportsIndex, domain_size: SupportsIndex) -> _Table:
    """Return all k^n datasets from (0, ..., 0) on, or refuse."""
    n = require_at_least("num_users", num_users, 1)
    k = require_at_least("domain_size", domain_size, 2)
    # Beyond 40 users there are too many in any case: their number is not computed.
    require_cells("the channel from datasets", k ** min(n, 40), 1, exact=True)
    return list(product(range(k), repeat=n))


def _histograms(table: _Table, domain_size: int) -> _Table:
    """Return the histogram of each dataset."""
    return [tuple(map(values.count, range(domain_size))) for values in table]


def product_channel(num_users: int, randomizer: Channel) -> Channel:
    """Return N for any randomizer: each user reports through it, independently."""
    inputs, outputs = (datasets(num_users, size) for size in randomizer.matrix.shape)
    exact = randomizer.is_exact
    require_cells("the channel from datasets", len(inputs), len(outputs), exact=exact)
    matrix = reduce(np.kron, [randomizer.matrix] * num_users)
    return Channel(matrix, tuple(inputs), tuple(outputs))


def reduced_product_channel(num_users: int, randomizer: Channel) -> Channel:
    """Return N^r for any randomizer: histograms of values to histograms of reports.

    All datasets of one histogram lead to the same law, so that one row of N S^r is enough, and the
    uniform prior of Definition 23 plays no part.
    """
    of_rows = _histograms(datasets(num_users, randomizer.num_inputs), randomizer.num_inputs)
    firsts = {histogram: row for row, histogram in reversed([*enumerate(of_rows)])}
    inputs, full = tuple(sorted(firsts)), product_channel(num_users, randomizer)
    chosen = Channel(full.matrix[[firsts[each] for each in inputs]], inputs, full.outputs)
    return chosen @ reduced_shuffle_channel(num_users, randomizer.num_outputs)


def _response(domain_size: int, truth: Truth) -> Channel:
    """Return k-ary randomized response of one user: truth on the diagonal, else (1 - p)/(k - 1)."""
    probability = checked_truth(truth, domain_size)
    matrix = np.full((domain_size, domain_size), (1 - probability) / (domain_size - 1))
    np.fill_diagonal(matrix, probability)
    return Channel(matrix)


def randomizer_channel(num_users: int, domain_size: int, truth: Truth) -> Channel:
    """Return N for k-ary randomized response (Definition 10).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        channel.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If p is no probability, or there are more than 2e8 cells (exact: 4e6).

    Examples
    --------
    >>> randomizer_channel(1, 2, 0.75).matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return product_channel(num_users, _response(domain_size, truth))


def shuffle_channel(num_users: int, domain_size: int) -> Channel:
    """Return S: the values in an order drawn uniformly (Definition 7).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets, exact.

    Raises
    ------
    ParameterError
        If there are more than 4e6 cells.

    Examples
    --------
    >>> shuffle_channel(2, 2).to_dense()
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    table = datasets(num_users, domain_size)
    require_cells("the channel from datasets", len(table), len(table), exact=True)
    of_rows = _histograms(table, domain_size)
    sizes = Counter(of_rows)
    matrix = [[Fraction(one == other, sizes[one]) for other in of_rows] for one in of_rows]
    return Channel(matrix, tuple(table), tuple(table))


def reduced_shuffle_channel(num_users: int, domain_size: int) -> Channel:
    """Return S^r: the histogram of the dataset, and nothing else (Definition 8).

    Equivalent to `shuffle_channel`: there, columns of one histogram are equal (Prop. 9).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.

    Returns
    -------
    Channel
        k^n datasets to histograms, exact.

    Raises
    ------
    ParameterError
        If there are more than 4e6 cells.

    Examples
    --------
    >>> channel = reduced_shuffle_channel(2, 2)
    >>> channel.outputs
    ((0, 2), (1, 1), (2, 0))
    >>> channel.to_dense()[1]
    array([0., 1., 0.])
    """
    table = datasets(num_users, domain_size)
    of_rows = _histograms(table, domain_size)
    columns = sorted(set(of_rows))
    require_cells("the channel to histograms", len(table), len(columns), exact=True)
    matrix = [[int(each == column) for column in columns] for each in of_rows]
    return Channel(matrix, tuple(table), tuple(columns))


def reduced_randomizer_channel(num_users: int, domain_size: int, truth: Truth) -> Channel:
    """Return N^r for k-ary randomized response (Definition 23), histograms to histograms.

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        channel.

    Returns
    -------
    Channel
        Sizes are limited as for `randomizer_channel`, from which it is made.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If p is no probability, or the channel is too large.

    Examples
    --------
    >>> channel = reduced_randomizer_channel(3, 2, Fraction(3, 4))
    >>> channel.inputs[1], channel.matrix[1].tolist()
    ((1, 2), [Fraction(9, 64), Fraction(33, 64), Fraction(19, 64), Fraction(3, 64)])
    """
    return reduced_product_channel(num_users, _response(domain_size, truth))
