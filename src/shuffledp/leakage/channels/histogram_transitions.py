"""How probably k-ary randomized response turns one histogram into another.

Fix a dataset with histogram a; each user reports the true value with probability p and each other
value with probability r = (1 - p)/(k - 1), independently. What is the probability that the reports
have histogram b? It depends on the dataset through a alone.

*Two values.* If m of the a_0 users with value 0 report it, then b_0 - m of the a_1 others do:

    sum over m of C(a_0, m) C(a_1, b_0 - m) p^(m + a_1 - b_0 + m) (1 - p)^(a_0 - m + b_0 - m).

*Any k.* A report is kept with probability d = p - r >= 0 and else, with probability k r, is drawn
uniformly: both laws are the same. Let N_v of the a_v users with value v be kept, and let B = n -
sum N_v be the others. They report each sequence of values with probability k^-B, and must make up
the difference to b, which B!/prod (b_v - N_v)! sequences do. So

    sum over N of r^B B! prod over v of C(a_v, N_v) d^N_v / (b_v - N_v)!.

The product is a convolution: collect the sum over N with N_0 + ... + N_{k-1} = t by multiplying k
polynomials in one variable. Degrees are min(a_v, b_v), so this costs at most n^2 steps, where
contingency tables would take a number that grows exponentially in k^2. All terms are non-negative:
nothing cancels. ∎

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Lemma 30, eq. 25 and 28 (two values); ours
for any k.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.histograms import checked_histogram
from shuffledp.leakage.channels.responses import Truth, checked_truth

# Users up to which it takes some seconds: n steps for two values, n^2 for more; on doubles, and on
# integers of thousands of digits.
_MOST_USERS = 20_000
_MOST_USERS_EXACT = 1_000
_MOST_USERS_BINARY = 10_000_000
_MOST_USERS_BINARY_EXACT = 5_000


def _checked_pair(
    from_histogram: ArrayLike, to_histogram: ArrayLike
) -> tuple[list[int], list[int]]:
    """Return both histograms, or raise."""
    before = checked_histogram("from_histogram", from_histogram)
    after = checked_histogram("to_histogram", to_histogram)
    if len(before) != len(after):
        raise ParameterError(
            f"from_histogram has {len(before)} values and to_histogram {len(after)}: both are over "
            "the same values"
        )
    if sum(before) != sum(after):
        raise ParameterError(
            f"from_histogram has {sum(before)} users and to_histogram {sum(after)}: everyone "
            "reports once"
        )
    return before, after


def _require_few(num_users: int, num_values: int, *, exact: bool) -> None:
    """Refuse numbers of users for which it would take long."""
    if num_values == 2:
        most = _MOST_USERS_BINARY_EXACT if exact else _MOST_USERS_BINARY
    else:
        most = _MOST_USERS_EXACT if exact else _MOST_USERS
    if num_users > most:
        raise ParameterError(
            f"from_histogram has {num_users} users, above {most} for {num_values} values: use "
            "fewer users" + (", or a float for truth" if exact else "")
        )


def histogram_probability(
    from_histogram: ArrayLike, to_histogram: ArrayLike, truth: Truth
) -> float | Fraction:
    """Return the probability that everyone's randomized response has a given histogram.

    Parameters
    ----------
    from_histogram : array_like of int, shape (k,)
        Counts of the true values, k >= 2.
    to_histogram : array_like of int, shape (k,)
        Counts of the reports; of as many users.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        answer.

    Returns
    -------
    float or Fraction
        Of doubles, good to a relative error of about n (k + log n) times 1e-15, in either
        direction, and zero where the answer is below all doubles: see `log_histogram_probability`.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a histogram has a negative count, they differ in values or users, or n is above 20,000
        (exact: 1,000); for two values above 1e7 (exact: 5,000).

    Notes
    -----
    Cost O(n^2) for k >= 3 and O(n) for k = 2. Source: Lemma 30 of the module's source; the proof
    for any k is there.

    Examples
    --------
    >>> histogram_probability([2, 1], [2, 1], Fraction(3, 4))
    Fraction(33, 64)
    >>> histogram_probability([1, 1, 1], [1, 1, 1], Fraction(1, 3))
    Fraction(2, 9)
    """
    before, after = _checked_pair(from_histogram, to_histogram)
    probability = checked_truth(truth, len(before))
    _require_few(sum(before), len(before), exact=isinstance(probability, Fraction))
    if isinstance(probability, Fraction):
        if len(before) == 2:
            return _exact_binary(before, after, probability)
        return _exact_any(before, after, probability)
    return min(1.0, math.exp(_log_probability(before, after, probability)))


def log_histogram_probability(
    from_histogram: ArrayLike, to_histogram: ArrayLike, truth: Truth
) -> float:
    """Return the natural logarithm of `histogram_probability`, which may be below all doubles.

    Parameters
    ----------
    from_histogram, to_histogram, truth
        As there; fractions are rounded to doubles first.

    Returns
    -------
    float
        At most 0; -inf where the probability is 0. Good to an absolute error of about n (k + log n)
        times 1e-15.

    Examples
    --------
    >>> round(log_histogram_probability([9000, 0], [0, 9000], 0.75), 3)
    -12476.649
    """
    before, after = _checked_pair(from_histogram, to_histogram)
    probability = float(checked_truth(truth, len(before)))
    _require_few(sum(before), len(before), exact=False)
    return min(0.0, _log_probability(before, after, probability))


def _log_probability(before: list[int], after: list[int], truth: float) -> float:
    if len(before) == 2:
        return _log_binary(before, after, truth)
    return _log_any(before, after, truth)


def _exact_binary(before: list[int], after: list[int], truth: Fraction) -> Fraction:
    """Return eq. 25, in integers over one denominator."""
    (a, rest), (b, other) = before, after
    same, flipped, base = truth.numerator, truth.denominator - truth.numerator, truth.denominator
    total = sum(
        math.comb(a, m)
        * math.comb(rest, b - m)
        * same ** (2 * m + rest - b)
        * flipped ** (a + b - 2 * m)
        for m in range(max(a - other, 0), min(a, b) + 1)
    )
    return Fraction(total, base ** (a + rest))


def _exact_any(before: list[int], after: list[int], truth: Fraction) -> Fraction:
    """Return the sum for any k, in integers over one denominator.

    Terms are multiplied by prod b_v!, so that b_v!/(b_v - N)! is a whole number.
    """
    k, n = len(before), sum(before)
    base = truth.denominator * (k - 1)
    noise = truth.denominator - truth.numerator
    kept = k * truth.numerator - truth.denominator
    total = [1]
    for a, b in zip(before, after, strict=True):
        ways = [math.comb(a, m) * math.perm(b, m) * kept**m for m in range(min(a, b) + 1)]
        longer = [0] * (len(total) + len(ways) - 1)
        for i, left in enumerate(total):
            for j, right in enumerate(ways):
                longer[i + j] += left * right
        total = longer
    result = sum(ways * noise ** (n - t) * math.factorial(n - t) for t, ways in enumerate(total))
    return Fraction(result, base**n * math.prod(map(math.factorial, after)))


def _log_power(log_base: float, exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return logarithms of powers, where zero to the power of zero is one."""
    return np.where(exponents == 0, 0.0, log_base * np.maximum(exponents, 1))


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _log_choices(n: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0) - gammaln(chosen + 1.0) - gammaln(n - chosen + 1.0))


def _log_binary(before: list[int], after: list[int], truth: float) -> float:
    """Return the logarithm of eq. 25."""
    (a, rest), (b, other) = before, after
    m = np.arange(max(a - other, 0), min(a, b) + 1)
    flips = a + b - 2 * m
    terms = (
        _log_choices(a, m)
        + _log_choices(rest, b - m)
        + _log_power(math.log(truth), a + rest - flips)
        + _log_power(_log(1.0 - truth), flips)
    )
    return float(np.logaddexp.reduce(terms))


def _log_any(before: list[int], after: list[int], truth: float) -> float:
    """Return the logarithm of the sum for any k."""
    from scipy.special import gammaln

    k, n = len(before), sum(before)
    log_kept = _log(max(k * truth - 1.0, 0.0) / (k - 1))
    total = np.zeros(1)
    for a, b in zip(before, after, strict=True):
        m = np.arange(min(a, b) + 1)
        terms = _log_choices(a, m) + _log_power(log_kept, m) - gammaln(b - m + 1.0)
        total = _log_convolution(total, terms)
    noisy = n - np.arange(len(total))
    log_noise = _log_power(_log((1.0 - truth) / (k - 1)), noisy)
    return float(np.logaddexp.reduce(total + log_noise + gammaln(noisy + 1.0)))


def _log_convolution(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the product of two polynomials, given logarithms of coefficients."""
    shorter, longer = sorted((first, second), key=len)
    result = np.full(len(first) + len(second) - 1, -np.inf)
    for shift, term in enumerate(shorter.tolist()):
        part = result[shift : shift + len(longer)]
        np.logaddexp(part, longer + term, out=part)
    return result
