"""The uninformed adversary: everybody's value uniform and independent, one target, one guess.

With k values, n users and k-ary randomized response of truth probability p, r = (1 - p)/(k - 1):

- nothing released: 1/k (Prop. 14);
- reports without a shuffle: p (Prop. 15); for any channel R and prior q: sum_y max_x q_x R_xy;
- a shuffle alone: V_S = E[largest of k counts of n] / n (Props. 16 and 20); for k = 2
  1/2 + 2^-n C(n - 1, floor((n - 1)/2)) (Theorem 17);
- both: V_NS = r + (p - r) V_S = 1/k + (k p - 1)/(k - 1) (V_S - 1/k) (Props. 18 and 21, Theorem 19,
  eq. 17).

*Two values.* With j = floor(n/2) Theorem 17 is V_S = 1/2 + C(2j, j) / 2^(2j+1): for odd n = 2j + 1
it is that as it stands, for even n = 2j use 2 C(2j - 1, j - 1) = C(2j, j). A user whose addition
makes n odd hides nobody.
For j > 64 the central coefficient comes from the series

    ln(C(2j, j) sqrt(pi j) / 4^j) = -1/(8j) + 1/(192 j^3) - 1/(640 j^5) + ...,

whose error is below the first term that is left out.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1.
"""

import math
from fractions import Fraction
from numbers import Rational
from typing import Any, SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_finite, require_non_negative
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.priors import checked_prior
from shuffledp.leakage.uninformed.multinomial_form import MOST_USERS, dense_channel

_ULP = math.ulp(1.0)

PAPER = (
    'Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of '
    'Quantitative Information Flow", CSF 2023, hal-04349295v1'
)
UNINFORMED = (
    "All users' values are independent and uniform, and the adversary knows no more.",
    "The adversary guesses one target's value once.",
)

# Up to here the central coefficient is an exact integer, beyond three terms give it to 1e-16.
_MOST_EXACT = 64

_MOST_EXACT_USERS = 100_000

# A probability that should be 1/k may have been rounded so far below.
_ROUNDED = 4.0 * _ULP


def truth_probability(epsilon0: SupportsFloat, num_values: SupportsIndex) -> float:
    """Return the truth probability p = e^epsilon0 / (e^epsilon0 + k - 1) of k-RR.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0.
    num_values : int
        k >= 2.

    Returns
    -------
    float
        In [1/k, 1], to two roundings.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Examples
    --------
    >>> round(truth_probability(math.log(3), 2), 12), truth_probability(0, 4)
    (0.75, 0.25)
    """
    epsilon = require_non_negative("epsilon0", epsilon0)
    values = require_at_least("num_values", num_values, 2)
    return 1.0 / (1.0 + (values - 1) * math.exp(-epsilon))


def prior_vulnerability(num_values: SupportsIndex) -> Bound:
    """Return the success of a blind guess, 1/k.

    Parameters
    ----------
    num_values : int
        k >= 2.

    Returns
    -------
    Bound
        To one rounding on either side.

    Raises
    ------
    ParameterError
        If ``num_values`` is below 2.

    Notes
    -----
    Source: Jurado et al. 2023, Prop. 14.

    Examples
    --------
    >>> prior_vulnerability(4)
    Bound(upper=0.25, lower=0.25, method='blind guess')
    """
    guess = 1.0 / require_at_least("num_values", num_values, 2)
    return _bound(_widened(guess, guess, 1.0), "blind guess", "Prop. 14", UNINFORMED)


def randomizer_vulnerability(channel: Any, prior: ArrayLike | None = None) -> Bound:
    """Return the adversary's success where the target's report is seen as it is.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        R, of the target's report; k >= 2.
    prior : array_like, shape (k,), optional
        q, of the target's value; uniform if not given.

    Returns
    -------
    Bound
        sum_y max_x q_x R_xy, to 8 roundings. For k-RR and the uniform prior that is p.

    Raises
    ------
    ParameterError
        If a law is none, or sizes do not fit.

    Notes
    -----
    O(k m). Source: Jurado et al. 2023, Prop. 15; the definition for other channels and priors.

    Examples
    --------
    >>> randomizer_vulnerability([[0.75, 0.25], [0.25, 0.75]])
    Bound(upper=0.75, lower=0.75, method='unshuffled')
    """
    rows = dense_channel(channel)
    weights = checked_prior(prior, len(rows))
    total = math.fsum((weights[:, None] * rows).max(axis=0)) / math.fsum(weights)
    assumptions = ("The adversary guesses one target's value once, and knows its prior law.",)
    return _bound(_widened(total, total, 8.0), "unshuffled", "Prop. 15", assumptions)


def shuffler_vulnerability(num_users: SupportsIndex, num_values: SupportsIndex) -> Bound:
    """Return the adversary's success where true values are shuffled.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    num_values : int
        k >= 2.

    Returns
    -------
    Bound
        V_S: 1/2 + 2^-n C(n - 1, floor((n - 1)/2)) for k = 2, else the expected largest count over
        n. Outwards by a few roundings of V_S - 1/k for k = 2, else by the error budget of
        `shuffledp.leakage.loads.maximum_load.maximum_load`.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Notes
    -----
    O(1) for k = 2. Source: Jurado et al. 2023, Theorem 17 and Prop. 20.

    Examples
    --------
    >>> shuffler_vulnerability(200, 2)
    Bound(upper=0.52817424, lower=0.52817424, method='closed form')
    """
    return shuffled_vulnerability(num_users, num_values, 1)


def shuffled_vulnerability(
    num_users: SupportsIndex, num_values: SupportsIndex, truth: SupportsFloat
) -> Bound:
    """Return the adversary's success where reports of k-RR are shuffled.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e15, the target included.
    num_values : int
        k >= 2.
    truth : float or Fraction
        p, the probability that a report is true, in [1/k, 1].

    Returns
    -------
    Bound
        V_NS = 1/k + (k p - 1)/(k - 1) (V_S - 1/k), outwards like `shuffler_vulnerability` and by a
        few roundings more.

    Raises
    ------
    ParameterError
        If a number is out of range.
    OutOfRegimeError
        If ``truth`` is below 1/k: the best guess would not be the most frequent report.

    Notes
    -----
    O(1) for k = 2. Source: Jurado et al. 2023, Theorem 19 and eq. 17.

    Examples
    --------
    >>> shuffled_vulnerability(200, 2, 0.9)
    Bound(upper=0.522539392, lower=0.522539392, method='closed form')
    """
    users, values = _sizes(num_users, num_values)
    kept = _kept(truth, values)
    gain = _gain_by_shuffled_values(users, values)
    found = _widened(
        1.0 / values + kept * gain.lower, min(1.0 / values + kept * gain.upper, 1.0), 8.0
    )
    if values == 2:
        return _bound(found, "closed form", "Theorems 17 and 19", UNINFORMED)
    return _bound(found, "maximum load", "Prop. 21, eq. 17", UNINFORMED)


def exact_shuffled_vulnerability(
    num_users: SupportsIndex, num_values: SupportsIndex, truth: Rational | int
) -> Fraction:
    """Return what `shuffled_vulnerability` encloses, as a fraction.

    Parameters
    ----------
    num_users : int
        n >= 1; up to 100 000 for k = 2, else up to what `exact_maximum_load` takes, about 500.
    num_values : int
        k >= 2.
    truth : Fraction or int
        p in [1/k, 1]; 1 for a shuffle alone.

    Returns
    -------
    Fraction
        V_NS, exactly.

    Raises
    ------
    ParameterError
        If a number is out of range, ``truth`` is a float, or n is too large.
    OutOfRegimeError
        If ``truth`` is below 1/k.

    Notes
    -----
    Source: Jurado et al. 2023, Theorems 17 and 19, eq. 17.

    Examples
    --------
    >>> exact_shuffled_vulnerability(3, 2, Fraction(3, 4))
    Fraction(5, 8)
    """
    users, values = _sizes(num_users, num_values)
    if not isinstance(truth, Rational):
        raise ParameterError(f"truth = {truth!r} is not exact: give a Fraction")
    share = Fraction(int(truth.numerator), int(truth.denominator))
    _kept(share, values)
    false = (1 - share) / (values - 1)
    return false + (share - false) * _exact_load(users, values) / users


def _exact_load(num_users: int, num_values: int) -> Fraction:
    """Return the expected largest count."""
    if num_values == 2:
        if num_users > _MOST_EXACT_USERS:
            raise ParameterError(
                f"num_users = {num_users} is above {_MOST_EXACT_USERS}, and the fraction has as "
                "many digits: use shuffled_vulnerability"
            )
        half = num_users // 2
        return num_users * (
            Fraction(1, 2) + Fraction(math.comb(2 * half, half), 2 ** (2 * half + 1))
        )
    from shuffledp.leakage.loads.exact import exact_maximum_load

    return exact_maximum_load(num_users, num_values)


def approximate_shuffled_vulnerability(
    num_users: SupportsIndex,
    num_values: SupportsIndex,
    truth: SupportsFloat = 1.0,
    *,
    published: bool = False,
) -> float:
    """Return the large-crowd form of V_NS; an approximation, not a bound.

    Parameters
    ----------
    num_users : int
        n >= 1.
    num_values : int
        k >= 2.
    truth : float or Fraction
        p in [1/k, 1].
    published : bool, optional
        Return the paper's 1/k + (k p - 1)/(k - 1) sqrt(ln k / (k n)), eq. 16 with the constant that
        its Figs. 6 and 7 take, 1. The true constant is mu_k / sqrt(ln k): 0.68 for k = 2, below 1
        up to k = 8, above from k = 9 on, and sqrt(2) in the limit.

    Returns
    -------
    float
        By default 1/k + (k p - 1)/(k - 1) e/n with the two terms of
        `shuffledp.leakage.loads.asymptotics.asymptotic_excess` for e, whose leading
        term is mu_k sqrt(n/k), mu_k the mean of the largest of k standard normal numbers.

    Raises
    ------
    ParameterError
        If a number is out of range.
    OutOfRegimeError
        If ``truth`` is below 1/k.

    Notes
    -----
    Source: Jurado et al. 2023, Theorem 22, has the order; the constant is ours.

    Examples
    --------
    >>> round(approximate_shuffled_vulnerability(100, 3, published=True), 4)
    0.3938
    """
    users, values = _sizes(num_users, num_values)
    kept = _kept(truth, values)
    if published:
        return 1.0 / values + kept * math.sqrt(math.log(values) / (values * users))
    from shuffledp.leakage.loads.asymptotics import asymptotic_excess

    return 1.0 / values + kept * asymptotic_excess(users, values) / users


def _sizes(num_users: SupportsIndex, num_values: SupportsIndex) -> tuple[int, int]:
    """Return both as plain whole numbers in range."""
    users = require_at_least("num_users", num_users, 1)
    if users > MOST_USERS:
        raise ParameterError(f"num_users = {users} is above {MOST_USERS:.0e}: give at most that")
    return users, require_at_least("num_values", num_values, 2)


def _kept(truth: SupportsFloat, num_values: int) -> float:
    """Return (k p - 1)/(k - 1), the share of an advantage that k-RR leaves, or raise.

    Its absolute error is some roundings of p, which are as many of V_NS >= p (V_S - 1/k) at most.
    """
    if isinstance(truth, Rational):
        exact = Fraction(int(truth.numerator), int(truth.denominator))
        share, kept = float(exact), float((exact * num_values - 1) / (num_values - 1))
    else:
        share = require_finite("truth", truth)
        kept = (share * num_values - 1.0) / (num_values - 1)
    if not 0.0 <= share <= 1.0:
        raise ParameterError(f"truth = {truth} is not in [1/k, 1]: it is a probability")
    if kept * (num_values - 1) < -_ROUNDED:
        raise OutOfRegimeError(
            f"truth = {truth} is below 1/num_values = {1.0 / num_values:.6g}: the formulas need "
            "p >= 1/k, a report that is true at least as often as any one lie; for another channel "
            "use exchangeable_vulnerability"
        )
    return max(kept, 0.0)


def _gain_by_shuffled_values(num_users: int, num_values: int) -> Enclosure:
    """Enclose V_S - 1/k."""
    if num_users == 1:
        gain = 1.0 - 1.0 / num_values
        return _widened(gain, gain, 2.0)
    if num_values == 2:
        gain = 0.5 * _central(num_users // 2)
        return _widened(gain, gain, 16.0)
    from shuffledp.leakage.loads.maximum_load import maximum_load_excess

    excess = maximum_load_excess(num_users, num_values)
    return _widened(excess.lower / num_users, excess.upper / num_users, 2.0)


def _central(half: int) -> float:
    """Return C(2j, j) / 4^j for j >= 1, to 8 roundings."""
    if half <= _MOST_EXACT:
        return math.comb(2 * half, half) / (1 << (2 * half))
    square = float(half) * half
    exponent = (-1.0 / 8.0 + (1.0 / 192.0 - 1.0 / (640.0 * square)) / square) / half
    return math.exp(exponent) / math.sqrt(math.pi * half)


def _widened(lower: float, upper: float, roundings: float) -> Enclosure:
    """Return the ends of a positive number, each moved outwards by so many roundings."""
    return Enclosure(lower * (1.0 - roundings * _ULP), upper * (1.0 + roundings * _ULP))


def _bound(found: Enclosure, method: str, where: str, assumptions: tuple[str, ...]) -> Bound:
    """Return the claim; a probability is at most 1."""
    return Bound(
        lower=min(found.lower, 1.0),
        upper=min(found.upper, 1.0),
        method=method,
        source=f"{PAPER}, {where}",
        assumptions=assumptions,
    )
