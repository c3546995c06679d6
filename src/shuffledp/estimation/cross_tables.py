"""Marginals and cross-tables of several columns: consistent with each other, and tested.

A part is a histogram of one column, or the cells of two columns' cross-table. Every estimate here
is a sum of the parts' frequencies with coefficients that do not depend on the answers, so that it
is unbiased and its standard error follows: docs/results/standard-errors.md.

*Standard errors.* Let the estimate be X = sum x_l . f^_l over parts l, such that the same sum over
the cells of any one user is 1 if the user is in a given cell of share f and 0 if not. Write pi_l =
q_l + (p_l - q_l) f_l and X_l = sum_c x_lc. Where users draw parts, n_l of them part l, the squared
error for a population is the sum of (x_l^2 . pi_l - (x_l . pi_l)^2)/(n_l (p_l - q_l)^2), about the
users less f (1 - f)/n. With all parts of each user it is, about the users, the sum of
[x_l^2 . pi_l - sum_c f_lc (q_l X_l + (p_l - q_l) x_lc)^2 + (v_l/n)(norm(x_l)^2 - X_l^2/k_l)]
/(n (p_l - q_l)^2), v_l being the variance of the dummies in a cell; for a population plus
f (1 - f)/n.

*Consistent tables.* A table is the sum of 1/k, of an effect of each column spread evenly over the
other one's answers, and of a rest, orthogonal to each other. Two tables that share a column a
disagree only on its effect, and a table of m cells for each answer of a has norm(r)^2/m in it. So
weighted least squares with the weight w_t for the cells of table t takes the mean of the marginals
with weights proportional to w_t/m_t, spreads each one's change evenly, and keeps the rest.

*Independence.* Cells of one part have the covariance D - n pi pi^T - v 1 1^T/k with D =
diag(n pi + v). On sums of zero the least of norm(D^(-1/2) n (p - q)(f^ - r c^T))^2 over marginals r
and c is Pearson's statistic, chi^2 with (k_a - 1)(k_b - 1) degrees of freedom in the limit; with
dummies the covariance is smaller by a matrix of rank one, so that the test is a little cautious.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import ShareLaw
from shuffledp.estimation.post_processing import nearest_with_sum

#: Least expected number of reports in each cell, dummies included, for a chi-square law.
LEAST_EXPECTED = 5.0

# Largest number of Gauss-Newton steps to the nearest independent table, and a negligible gain.
_STEPS, _NEGLIGIBLE = 20, 1e-6

# Below any share outside of a cell, but the round-off of all.
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Chi-square test of independence of two columns, in the population of the users.

    Parameters
    ----------
    first, second : str
        Names of the columns.
    chi_square : float
        Least weighted squared distance of the estimated cross-table from an independent one, in
        units of the variance of each cell due to sampling, noise and dummies together.
    degrees_of_freedom : int
        Degrees of freedom of its law under independence, (rows - 1) times (columns - 1).
    p_value : float or None
        Probability of this distance or a larger one under independence; None if fewer than 5
        reports are expected in some cell, where that law is not valid.
    """

    first: str
    second: str
    chi_square: float
    degrees_of_freedom: int
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnEstimates(FrequencyEstimates):
    """Estimates of columns and cross-tables, in the order of the question's labels.

    Parameters
    ----------
    associations : tuple of Association
        One for each requested pair of columns.
    is_bin : tuple of bool
        True for cells that users report on, False for sums over such cells.
    """

    associations: tuple[Association, ...] = ()
    is_bin: tuple[bool, ...] = ()

    @property
    def root_mean_square_error(self) -> float:
        """Root mean square of the standard errors of the cells that users report on, as planned."""
        return float((self.standard_error[list(self.is_bin)] ** 2).mean() ** 0.5)

    @property
    def findings(self) -> dict[str, object]:
        """Return the associations as JSON objects."""
        return {"associations": [asdict(each) for each in self.associations]}


# Weights of cells, of their rows and of their columns, elementwise.
Shares = tuple[Any, Any, Any]


class Form(NamedTuple):
    """Coefficients: ``cell`` of one cell, plus ``row`` of its row and ``column`` of its column."""

    cell: float = 0.0
    row: float = 0.0
    column: float = 0.0

    def moments(self, shares: Shares) -> tuple[Any, Any]:
        """Return the first and second moment for weights of a cell, its row and its column."""
        cell, row, column = shares
        squares = self.row**2, self.column**2
        first = self.cell * cell + self.row * row + self.column * column
        second = (sum(self) ** 2 - sum(squares)) * cell + squares[0] * row
        return first, second + squares[1] * column

    @property
    def span(self) -> float:
        """Largest difference of two coefficients."""
        return max(sum(self), self.row, self.column, 0.0) - min(self.row, self.column, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Estimated frequencies of one part, (rows, columns), and the law of its reports.

    One column is a table of one column; ``names[1]`` is then empty. ``dummy_variance`` is the
    variance of the number of dummies in a cell, given their total number. With ``is_sampled`` each
    user answers one part at random, and no user answers two; otherwise each user answers all.
    """

    names: tuple[str, str]
    frequency: Floats
    chances: tuple[float, float]
    num_reports: int
    num_users: int
    dummy_variance: float = 0.0
    is_sampled: bool = True

    @property
    def unit(self) -> float:
        """Variance of a frequency for each unit of variance of one report's support."""
        p, q = self.chances
        return 1.0 / (self.num_reports * (p - q) ** 2)

    @property
    def shares(self) -> Shares:
        """Nearest possible table of frequencies, with its rows and columns."""
        table = nearest_with_sum(self.frequency.ravel(), 1.0).reshape(self.frequency.shape)
        return table, table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)

    def variance(self, form: Form, shares: Shares) -> Floats:
        """Return the variance of a form at cells: of sampled users, or given their values.

        ``shares`` are those of the users in the cell, its row and its column.
        """
        (p, q), sizes = self.chances, (1, *self.frequency.shape[::-1])
        reported: Any = [size * q + (p - q) * f for size, f in zip(sizes, shares, strict=True)]
        first, second = form.moments(tuple(reported))
        if self.is_sampled:
            return np.asarray(self.unit * (second - first**2))
        (total, added), (own, squared) = form.moments(sizes), form.moments(shares)
        fixed = second - (q * total) ** 2 - 2.0 * q * (p - q) * total * own - (p - q) ** 2 * squared
        added -= total**2 / self.frequency.size
        return np.asarray(self.unit * (fixed + self.dummy_variance * added / self.num_users))

    def law(self, form: Form, inside: Shares, outside: Shares) -> Floats:
        """Return constant, linear and square part of a variance, and its step; see `ShareLaw`.

        Users in the share f are distributed like ``inside``, the others like ``outside``.
        """
        none, half, full = (
            self.variance(
                form, tuple(b + f * (a - b) for a, b in zip(inside, outside, strict=True))
            )
            for f in (0.0, 0.5, 1.0)
        )
        square = 2.0 * (none + full - 2.0 * half)
        step = form.span * math.sqrt(self.unit / self.num_reports)
        return np.array([none, full - none - square, square, np.full_like(none, step)])

    def margin_law(self, name: str, weight: float, outside: Any) -> Floats:
        """Return `law` of its weighted `margin`, in which others have the share ``outside``."""
        if self.names[0] == name:
            return self.law(Form(row=weight), (0.0, 1.0, 0.0), (0.0, outside, 0.0))
        return self.law(Form(column=weight), (0.0, 0.0, 1.0), (0.0, 0.0, outside))

    @property
    def precision(self) -> float:
        """Relative inverse variance of a cell, as if all cells had equally many users.

        Each part is expected to have the same number of users.
        """
        (p, q), share = self.chances, 1.0 / self.frequency.size
        chance = q + (p - q) * share
        return (p - q) ** 2 / (chance * (1.0 - chance) + self.dummy_variance / self.num_users)

    def margin(self, name: str) -> Floats:
        """Return the frequencies of one of its columns."""
        margin: Floats = self.frequency.sum(axis=1 - self.names.index(name))
        return margin


def shares_of(parts: Sequence[Part], name: str) -> list[tuple[Part, float]]:
    """Return the parts with a column, and the weight of each in the estimate of its marginal.

    Least squares over all cells, each in units of its variance: a row of m cells has m times it.
    """
    held = [part for part in parts if name in part.names]
    weights = [part.precision * part.frequency.shape[part.names.index(name)] for part in held]
    weights = [weight / part.frequency.size for part, weight in zip(held, weights, strict=True)]
    return [(part, weight / sum(weights)) for part, weight in zip(held, weights, strict=True)]


def _share_law(part: Part, value: Floats, laws: Sequence[Floats]) -> ShareLaw:
    """Return the law of a sum over parts with these laws, about a population.

    The variances given the users differ from it by their sampling, f (1 - f) / n, which sampled
    parts contain: for each user the form is 1 or 0, like the indicator of the cell.
    """
    sampling = 0.0 if part.is_sampled else 1.0 / part.num_users
    constant, linear, square = np.sum([law[:3] for law in laws], axis=0)
    step = np.max([law[3] for law in laws], axis=0)
    return ShareLaw(value, constant, linear + sampling, square - sampling, step)


def margin_of(parts: Sequence[Part], name: str) -> ShareLaw:
    """Return the frequencies of a column from all parts that hold it."""
    held = shares_of(parts, name)
    value = np.sum([weight * part.margin(name) for part, weight in held], axis=0)
    laws = [part.margin_law(name, weight, np.zeros_like(value)) for part, weight in held]
    return _share_law(held[0][0], value, laws)


def consistent_table(parts: Sequence[Part], part: Part) -> ShareLaw:
    """Return a cross-table with the marginals of `margin_of`.

    All of them together are the nearest such tables in weighted least squares: two tables can
    disagree only on their columns' marginals, which are orthogonal to all else in each table.
    """
    frequency, form, laws = part.frequency, {"cell": 1.0}, []
    own, *margins = part.shares
    rest = np.maximum(1.0 - own, _NOTHING)
    for axis, kind in enumerate(("row", "column")):
        name, size = part.names[axis], part.frequency.shape[1 - axis]
        change = (margin_of(parts, name).value - part.margin(name)) / size
        frequency = frequency + np.expand_dims(change, 1 - axis)
        for other, weight in shares_of(parts, name):
            if other is part:
                form[kind] = (weight - 1.0) / size
                continue
            margin = other.shares[1 + other.names.index(name)].ravel()
            away = np.maximum(np.expand_dims(margin, 1 - axis) - own, 0.0) / rest
            laws.append(other.margin_law(name, weight / size, away))
    away = (np.zeros_like(own), *((margin - own) / rest for margin in margins))
    laws.append(part.law(Form(**form), (1.0, 1.0, 1.0), away))
    return _share_law(part, frequency, laws)


def association(part: Part) -> Association:
    """Return the chi-square test of independence of a cross-table's columns.

    The weighted squared distance from the nearest independent table, found by Gauss-Newton steps
    from the product of the marginals. Each cell's variance is taken there. With dummies it is a
    little too large, because their total number is known.
    """
    from scipy.linalg import block_diag
    from scipy.special import gammaincc

    (p, q), table = part.chances, part.frequency
    ways = [nearest_with_sum(table.sum(axis=1 - axis), 1.0) for axis in (0, 1)]
    expected = part.num_reports * (q + (p - q) * np.outer(*ways)) + part.dummy_variance
    weights = (part.num_reports * (p - q)) ** 2 / np.maximum(expected, 1e-300)
    # Changes of either marginal that keep its sum.
    free = [np.eye(way.size)[:, :-1] - np.eye(way.size)[:, -1:] for way in ways]
    basis = block_diag(*free)
    is_known = float(expected.min()) >= LEAST_EXPECTED
    for _ in range(_STEPS if is_known else 0):
        pull = weights * (table - np.outer(*ways))
        mixed = weights * np.outer(*ways)
        curvature = np.block(
            [
                [np.diag(weights @ ways[1] ** 2), mixed],
                [mixed.T, np.diag(ways[0] ** 2 @ weights)],
            ]
        )
        slope = np.concatenate([pull @ ways[1], ways[0] @ pull])
        change = basis @ np.linalg.solve(basis.T @ curvature @ basis, basis.T @ slope)
        ways = [ways[0] + change[: ways[0].size], ways[1] + change[ways[0].size :]]
        if float(slope @ change) < _NEGLIGIBLE:
            break
    chi_square = float((weights * (table - np.outer(*ways)) ** 2).sum())
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return Association(
        first=part.names[0],
        second=part.names[1],
        chi_square=chi_square,
        degrees_of_freedom=freedom,
        p_value=float(gammaincc(0.5 * freedom, 0.5 * chi_square)) if is_known else None,
    )


def estimate_columns(
    found: FrequencyEstimates, parts: Sequence[Part], names: Sequence[str], *, is_consistent: bool
) -> ColumnEstimates:
    """Return estimates of each column, then of each pair's cells, and associations of the pairs.

    ``found`` has the bins of all parts, each with an interval. Sums over cells, and consistent
    tables, have intervals of `ShareLaw`, of the same confidence, as the kind of interval states.
    """
    ends = np.cumsum([part.frequency.size for part in parts])
    of_bins = {
        part.names: {
            name: getattr(found, name)[end - part.frequency.size : end] for name in _FIELDS
        }
        for part, end in zip(parts, ends, strict=True)
    }
    quantile, pairs = found.quantile, [part for part in parts if part.names[1]]

    def scored(law: ShareLaw) -> dict[str, Any]:
        own = law.among(found.num_users)
        errors = own.standard_error, law.standard_error
        arrays = (law.value, *errors, *own.interval(quantile))
        return dict(zip(_FIELDS, map(np.ravel, arrays), strict=True))

    columns = [of_bins.get((name, "")) or scored(margin_of(parts, name)) for name in names]
    for part in pairs:
        made = scored(consistent_table(parts, part)) if is_consistent else None
        columns.append(made or of_bins[part.names])
    arrays: Any = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    are_bins = [*((name, "") in of_bins for name in names), *(True for _ in pairs)]
    sizes = [each["frequency"].size for each in columns]
    kind = "wilson, score for sums" if pairs else "wilson"
    if is_consistent and len(pairs) == len(parts):
        kind = "score"
    return ColumnEstimates(
        **arrays,
        count=arrays["frequency"] * found.num_users,
        num_users=found.num_users,
        confidence=found.confidence,
        interval=kind,
        post_processing=("consistent",) if is_consistent else (),
        associations=tuple(map(association, pairs)),
        is_bin=tuple(np.repeat(are_bins, sizes).tolist()),
    )


_FIELDS = ("frequency", "standard_error", "population_standard_error", "lower", "upper")
