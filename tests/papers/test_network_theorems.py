"""The theorems of Liew et al. written anew, what their proofs say by enumeration, and where false.

What is printed is false at finitely many rounds, and for empty answers: counterexamples.
"""

import itertools
import math

import numpy as np
import pytest

from network_theorems import all_epsilon, largest_collision, single_epsilon, thinned_epsilon
from oracles import enumeration
from shuffledp import Entropy, LocalProfile
from shuffledp.network import network_walk_epsilon


def theorem_5_3(epsilon0, n, collision, *, delta1, delta2, power):
    """As in the paper, written anew."""
    c = math.exp(power * epsilon0) * (math.exp(epsilon0) - 1.0)
    r = math.sqrt(1 / n + (1 - 1 / n) * collision) + math.sqrt(math.log(1 / delta2) / n)
    return c * c * r * r / 2 + c * r * math.sqrt(2 * math.log(1 / delta1))


def test_theorem_5_3():
    for epsilon0, n, gamma in ((0.1, 1000, 1.0), (1.0, 22_470, 4.0), (2.0, 10**6, 20.0)):
        found = all_epsilon(epsilon0, num_users=n, collision=gamma / n, delta=2e-6)
        expected = theorem_5_3(epsilon0, n, gamma / n, delta1=1e-6, delta2=1e-6, power=2.0)
        assert found == pytest.approx(expected, rel=1e-9)
        ours = network_walk_epsilon(
            LocalProfile(epsilon0=epsilon0), overlaps=np.ones(n - 1), delta=2e-6
        )
        assert ours.upper < found


def test_theorem_5_5():
    for epsilon0, collision in ((0.1, 1e-3), (1.0, 1e-5), (2.0, 1.0)):
        found = single_epsilon(epsilon0, collision=collision, delta=1e-6)
        c = math.exp(epsilon0) * (math.exp(epsilon0) - 1.0)
        expected = c * c * collision / 2 + c * math.sqrt(2 * collision * math.log(1e6))
        assert found == pytest.approx(expected, rel=1e-9)


def test_after_finitely_many_rounds():
    # With overlaps of one it is Theorem 5.3, but for a few users; with smaller ones that of a
    # smaller crowd.
    asked = {"collision": 1e-3, "delta": 3e-6}
    whole = thinned_epsilon(1.0, overlaps=np.ones(999), **asked)
    stationary = all_epsilon(1.0, num_users=1000, collision=1e-3, delta=2e-6)
    assert stationary < whole < 1.02 * stationary
    half = thinned_epsilon(1.0, overlaps=np.full(999, 0.5), **asked)
    smaller = all_epsilon(1.0, num_users=500, collision=1e-3, delta=2e-6)
    assert smaller < half < 1.5 * smaller
    assert thinned_epsilon(1.0, overlaps=np.zeros(999), **asked) > 1.0


# ---------------------------------------------------------------- the proofs, by enumeration


def test_the_ratio_lemma():
    generator = Entropy.from_seed(5).generator()
    for _ in range(2000):
        p = math.exp(generator.uniform(0.0, 3.0))
        t = generator.uniform(0.0, 1.0)
        s, other = generator.uniform(0.0, t), generator.uniform(0.0, t)
        a = p ** generator.uniform(-1.0, 1.0)
        b = min(max(a * p ** generator.uniform(-1.0, 1.0), 1.0 / p), p)
        ratio = (1.0 + s * (a - 1.0)) / (1.0 + other * (b - 1.0))
        assert ratio <= (1.0 + t * (p - 1.0)) * (1.0 + 1e-12)


def composed_delta(steps, epsilon):
    """Delta of randomized responses with these losses: an upper bound of all that compose so."""
    losses = {0.0: 1.0}
    for step in steps:
        keep = 1.0 / (1.0 + math.exp(-step))
        grown = {}
        for loss, mass in losses.items():
            for sign, chance in ((1.0, keep), (-1.0, 1.0 - keep)):
                key = round(loss + sign * step, 12)
                grown[key] = grown.get(key, 0.0) + mass * chance
        losses = grown
    return sum(mass * max(1.0 - math.exp(epsilon - loss), 0.0) for loss, mass in losses.items())


def step_losses(shares, p, first):
    """ln(1 + t (p - 1)) of the proofs, for shares in descending order."""
    done, steps = 0.0, []
    for share in sorted(shares, reverse=True):
        t = min(first * share / (1.0 - done + done / p), 1.0)
        steps.append(math.log1p(t * (p - 1.0)))
        done += share
    return steps


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 2.0])
def test_blocks_of_theorem_5_3_by_enumeration(epsilon0):
    # Given how many reports each place has, the exact divergence over all data is below the
    # composition of the steps in the proof, and their squares below the constant of the theorem.
    p = math.exp(epsilon0)
    channel = np.array(enumeration.randomized_response(2, p))
    for sizes in ((3, 1), (2, 2), (2, 1, 1), (4,), (1, 1, 1, 1)):
        n = sum(sizes)
        steps = step_losses([size / n for size in sizes], p, p)
        squares = sum((size / n) ** 2 for size in sizes)
        assert sum(step**2 for step in steps) <= p**3 * (p - 1.0) ** 2 * squares
        rows = {}
        for data in itertools.product((0, 1), repeat=n):
            law = {}
            for order in itertools.permutations(data):
                for said in itertools.product((0, 1), repeat=n):
                    chance = math.prod(channel[x][y] for x, y in zip(order, said, strict=True))
                    ends = list(itertools.accumulate(sizes, initial=0))
                    view = tuple(sum(said[a:b]) for a, b in itertools.pairwise(ends))
                    law[view] = law.get(view, 0.0) + chance / math.factorial(n)
            rows[data] = law
        for epsilon in (0.0, 0.3 * epsilon0, 0.8 * epsilon0):
            bound = composed_delta(steps, epsilon)
            for data, law in rows.items():
                other = rows[(1 - data[0], *data[1:])]
                truth = sum(max(law[v] - math.exp(epsilon) * other[v], 0.0) for v in law)
                assert truth <= bound + 1e-12


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 2.0])
def test_replacement_of_theorem_5_5_by_enumeration(epsilon0):
    # Reports of known values, one of which is replaced by the victim's with known chances.
    p = math.exp(epsilon0)
    channel = np.array(enumeration.randomized_response(2, p))
    for chances in ((0.5, 0.3, 0.2), (0.4, 0.1, 0.1), (1.0, 0.0, 0.0), (0.25, 0.25, 0.25)):
        steps = step_losses(chances, p, 1.0)
        squares = sum(chance**2 for chance in chances)
        assert sum(step**2 for step in steps) <= p * (p - 1.0) ** 2 * squares * (1.0 + 1e-12)
        for others in itertools.product((0, 1), repeat=3):
            laws = []
            for value in (0, 1):
                law = np.zeros((2, 2, 2))
                for place, chance in ((None, 1.0 - sum(chances)), *enumerate(chances)):
                    shown = [channel[value if j == place else z] for j, z in enumerate(others)]
                    law += chance * np.einsum("i,j,k->ijk", *shown)
                laws.append(law)
            for epsilon in (0.0, 0.3 * epsilon0, 0.8 * epsilon0):
                for first, second in (laws, laws[::-1]):
                    truth = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
                    assert truth <= composed_delta(steps, epsilon) + 1e-12


def test_theorem_5_5_is_false_for_empty_answers():
    # A victim whose report may be at a hundred places where nobody else's can be: it is seen.
    epsilon0, collision, delta = 0.1, 0.01, 1e-6
    stated = single_epsilon(epsilon0, collision=collision, delta=delta)
    assert stated < 0.7 * epsilon0
    p = math.exp(epsilon0)
    truth = (p - math.exp(stated)) / (p + 1.0)
    assert truth > 1000.0 * delta


# ---------------------------------------------------------------- collisions


def walk(adjacency):
    """Law, walk matrix and second eigenvalue of a small graph."""
    degrees = adjacency.sum(axis=1)
    step = adjacency / degrees[:, None]
    law = degrees / degrees.sum()
    root = np.sqrt(law)
    values = np.linalg.eigvalsh(root[:, None] * step / root[None, :])
    return law, step, sorted(np.abs(values))[-2]


def collision_bound(law, start, rate, rounds):
    """The bound of docs/results/network.md on the collision probability, on all graphs."""
    mine, squares, decay = law[start], (law**2).sum(), rate**rounds
    spread = (law * (law - squares) ** 2).sum()
    tail = decay**2 * (law.max() / mine) * (1.0 - mine)
    return squares + 2.0 * decay * np.sqrt((1.0 / mine - 1.0) * spread) + tail


def test_collisions_on_irregular_graphs():
    generator = Entropy.from_seed(2).generator()
    for _ in range(20):
        upper = np.triu(generator.random((7, 7)) < 0.5, 1)
        upper[0, 1:] = True  # connected, and the star's triangles make it no bipartite graph
        upper[1, 2] = True
        law, step, rate = walk((upper | upper.T).astype(float))
        laws = np.eye(7)
        for rounds in range(12):
            for start in range(7):
                found = collision_bound(law, start, rate * (1 + 1e-12), rounds)
                squares = (laws[start] ** 2).sum()
                assert squares <= found * (1.0 + 1e-12)
                chi_square = (laws[start] ** 2 / law).sum() - 1.0
                assert squares <= largest_collision(law, np.array([chi_square])) * (1.0 + 1e-12)
            laws = laws @ step


def test_equation_7_on_regular_graphs():
    cycle = np.zeros((7, 7))
    for i in range(7):
        cycle[i, (i + 1) % 7] = cycle[i, (i - 1) % 7] = cycle[i, (i + 3) % 7] = 1.0
        cycle[i, (i - 3) % 7] = 1.0
    law, step, rate = walk(cycle)
    laws = np.eye(7)
    for rounds in range(12):
        found = (law**2).sum() + rate ** (2 * rounds)
        assert (laws[0] ** 2).sum() <= found * (1.0 + 1e-10)
        laws = laws @ step


def test_equation_7_and_theorem_5_3_are_false_on_a_clique_with_a_pendant():
    # n users who all know each other, and one more who hangs on the first of them. One round.
    n, epsilon0, delta = 10**6, 0.1, 2e-6
    # Pendant, its neighbour, and the n - 1 others, which are alike: an equitable partition. The
    # eigenvectors that it misses live on the others, and have the eigenvalue -1/(n - 1).
    edges = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, n - 1.0], [0.0, 1.0, n - 2.0]])
    degrees = np.array([1.0, n, n - 1.0])
    values = np.linalg.eigvals(edges / degrees[:, None]).real
    rate = max(sorted(np.abs(values))[-2], 1.0 / (n - 1.0))
    assert rate == pytest.approx(1e-3, rel=0.01)
    law = np.concatenate([[1.0, n], np.full(n - 1, n - 1.0)])
    law /= law.sum()
    stated = float((law**2).sum()) + rate**2  # equation 7
    assert stated < 3e-6
    printed = all_epsilon(
        epsilon0,
        num_users=n + 1,
        collision=stated,
        delta=delta,
    )
    assert printed < 0.04 * epsilon0
    # The attack: everybody else's value is 0; look whether the neighbour hands in one report, a 1.
    # His other visitors are Bin(n - 1, 1/(n - 1)), and his own report has left.
    alone = math.exp((n - 1) * math.log1p(-1.0 / (n - 1)))
    p = math.exp(epsilon0)
    truth = alone * (p - math.exp(printed)) / (p + 1.0)
    assert truth > 5000.0 * delta
    # What is proved does not say so.
    assert collision_bound(law, 0, rate, 1) >= 1.0
    proved = thinned_epsilon(epsilon0, overlaps=np.full(n, 1e-6), collision=1.0, delta=delta)
    assert proved > epsilon0
