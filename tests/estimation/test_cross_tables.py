"""Marginals and cross-tables: exact variances, least squares, and tests of independence."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from shuffledp.core.entropy import Entropy
from shuffledp.estimation.cross_tables import (
    Form,
    Part,
    association,
    consistent_table,
    margin_of,
)
from shuffledp.estimation.post_processing import nearest_with_sum

# Probability that correct code fails this module, of two sets of p-values.
FALSE_POSITIVE_RATE = 1e-9


def chances(size, epsilon0):
    """Return the chances of k-RR."""
    rest = 1.0 / (math.exp(epsilon0) + size - 1.0)
    return (math.exp(epsilon0) * rest, rest) if math.isfinite(epsilon0) else (1.0, 0.0)


def drawn(rng, tables, num_users, *, epsilon0, dummy_variance=0.0, is_sampled=True):
    """Return parts as reports of random users would give them, of these true cross-tables."""
    found = []
    for names, table in tables.items():
        number = num_users // len(tables) if is_sampled else num_users
        p, q = chances(table.size, epsilon0)
        counts = rng.multinomial(number, (q + (p - q) * table).ravel()).astype(float)
        if dummy_variance:
            added = rng.normal(0.0, math.sqrt(dummy_variance), table.size)
            counts += added - added.mean()
        found.append(
            Part(
                names=names,
                frequency=((counts / number - q) / (p - q)).reshape(table.shape),
                chances=(p, q),
                num_reports=number,
                num_users=num_users,
                dummy_variance=dummy_variance,
                is_sampled=is_sampled,
            )
        )
    return found


def three_tables(rng):
    """Return the cross-tables of all pairs of three columns."""
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    return {
        pair: joint.sum(axis=3 - sum("abc".index(name) for name in pair))
        for pair in combinations("abc", 2)
    }


FORMS = [Form(cell=1.0), Form(row=1.0), Form(column=1.0), Form(1.0, -0.3, 0.2)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_sampled", [True, False])
def test_variances_are_those_of_the_covariance_matrix(form, is_sampled):
    rng = Entropy.from_seed(1).generator()
    tables = {("a", "b"): rng.dirichlet(np.ones(6)).reshape(2, 3)}
    (part,) = drawn(rng, tables, 500, epsilon0=1.5, dummy_variance=7.0, is_sampled=is_sampled)
    p, q = part.chances
    share = nearest_with_sum(part.frequency.ravel(), 1.0)
    law = q + (p - q) * share
    of_report = np.diag(law) - np.outer(law, law)
    if not is_sampled:  # of a user with each value, averaged
        rows = q + (p - q) * np.eye(6)
        of_report = sum(s * (np.diag(r) - np.outer(r, r)) for s, r in zip(share, rows, strict=True))
        of_report = of_report + 7.0 / part.num_users * (np.eye(6) - 1.0 / 6.0)
    for i in range(2):
        for j in range(3):
            at = np.zeros((2, 3))
            at[i, j] += form.cell
            at[i] += form.row
            at[:, j] += form.column
            exact = part.unit * at.ravel() @ of_report @ at.ravel()
            assert part.variance(form, part.shares)[i, j] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("is_sampled", [True, False])
def test_consistent_tables_are_the_weighted_least_squares(is_sampled):
    rng = Entropy.from_seed(2).generator()
    parts = drawn(rng, three_tables(rng), 900, epsilon0=3.0, is_sampled=is_sampled)
    tables = [consistent_table(parts, part).value for part in parts]
    for name in "abc":
        margin = margin_of(parts, name).value
        for part, table in zip(parts, tables, strict=True):
            if name in part.names:
                own = table.sum(axis=1 - part.names.index(name))
                np.testing.assert_allclose(own, margin, atol=1e-12)
    # All consistent changes of all tables at once: none is nearer.
    ends = np.cumsum([0] + [part.frequency.size for part in parts])
    rules = []
    for name in "abc":
        maps = []
        for part, start in zip(parts, ends, strict=False):
            if name in part.names:
                size = part.frequency.shape[part.names.index(name)]
                rows = np.zeros((size, ends[-1]))
                places = np.indices(part.frequency.shape)[part.names.index(name)].ravel()
                rows[places, start + np.arange(places.size)] = 1.0
                maps.append(rows)
        rules.append(maps[0] - maps[1])
    rules = np.concatenate(rules)
    own = np.concatenate([part.frequency.ravel() for part in parts])
    spread = np.concatenate([np.full(part.frequency.size, 1.0 / part.precision) for part in parts])
    gain = spread[:, None] * rules.T
    nearest = own - gain @ np.linalg.lstsq(rules @ gain, rules @ own, rcond=None)[0]
    np.testing.assert_allclose(np.concatenate([t.ravel() for t in tables]), nearest, atol=1e-10)


def test_errors_of_consistent_tables_are_smaller_and_true():
    rng, runs, found = Entropy.from_seed(3).generator(), 800, []
    truth = three_tables(rng)
    for _ in range(runs):
        # Users of each part are drawn from the population.
        parts = drawn(rng, truth, 6000, epsilon0=3.0)
        law = consistent_table(parts, parts[0])
        found.append((law.value, law.standard_error))
        assert (law.among(6000).standard_error < law.standard_error).all()
    values, errors = (np.array(each) for each in zip(*found, strict=True))
    ratio = values.std(axis=0) / errors.mean(axis=0)
    # The deviation of a standard deviation is 1 / sqrt(2 runs) of it; 8 of these.
    assert np.abs(ratio - 1.0).max() < 8.0 / math.sqrt(2 * runs)
    off = (values.mean(axis=0) - truth["a", "b"]) / errors.mean(axis=0)
    assert np.abs(off).max() < 8.0 / math.sqrt(runs)
    assert (errors.mean(axis=0) ** 2 < parts[0].variance(Form(cell=1.0), parts[0].shares)).all()


@pytest.mark.parametrize(
    ("num_users", "epsilon0", "dummy_variance", "is_sampled"),
    [(20_000, 4.0, 0.0, True), (20_000, math.inf, 300.0, False)],
)
def test_p_values_are_uniform_under_independence(num_users, epsilon0, dummy_variance, is_sampled):
    rng, found = Entropy.from_seed(4).generator(), []
    for _ in range(300):
        table = np.outer(rng.dirichlet(np.full(4, 3.0)), rng.dirichlet(np.full(5, 3.0)))
        (part,) = drawn(
            rng,
            {("a", "b"): table},
            num_users,
            epsilon0=epsilon0,
            dummy_variance=dummy_variance,
            is_sampled=is_sampled,
        )
        found.append(association(part).p_value)
    assert kstest(found, "uniform").pvalue > FALSE_POSITIVE_RATE / 2
    # As a test that says "independent" too often would have it.
    assert kstest(np.sqrt(found), "uniform").pvalue < 1e-4


def test_without_noise_it_is_pearsons_test():
    counts = np.array([[30, 10, 60], [50, 20, 30]])
    part = Part(
        names=("a", "b"), frequency=counts / 200, chances=(1.0, 0.0), num_reports=200, num_users=200
    )
    found = association(part)
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / 200
    pearson = ((counts - expected) ** 2 / expected).sum()
    assert found.chi_square == pytest.approx(pearson, rel=0.05)  # the nearest table is another
    assert found.degrees_of_freedom == 2
    assert found.p_value == pytest.approx(chi2.sf(found.chi_square, 2), rel=1e-9)


def test_a_cell_with_few_reports_has_no_p_value():
    part = Part(
        names=("a", "b"),
        frequency=np.array([[0.5, 0.01], [0.48, 0.01]]),
        chances=(1.0, 0.0),
        num_reports=100,
        num_users=100,
    )
    assert association(part).p_value is None
