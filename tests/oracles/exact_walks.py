"""Position laws of random walks in exact fractions, from the definition: for a handful of users."""

from fractions import Fraction
from itertools import combinations

import numpy as np

from shuffledp.network.graph import Graph
from shuffledp.network.walk import RandomWalk

#: Small graphs of every kind: regular, irregular, bipartite, in pieces, with isolated users.
SHAPES = {
    "one": ([], 1),
    "nobody knows anybody": ([], 3),
    "pair": ([(0, 1)], 2),
    "path": ([(0, 1), (1, 2), (2, 3)], 4),
    "triangle": ([(0, 1), (1, 2), (0, 2)], 3),
    "pendant triangle": ([(0, 1), (1, 2), (0, 2), (2, 3)], 4),
    "star and edge": ([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)], 5),
    "complete and pendant": ([*combinations(range(4), 2), (3, 4)], 5),
    "five-cycle": ([(i, (i + 1) % 5) for i in range(5)], 5),
    "two pieces": ([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], 6),
    "triangle and two alone": ([(0, 1), (1, 2), (0, 2)], 5),
}


def shape(name: str) -> Graph:
    """Return one of `SHAPES`."""
    edges, num_users = SHAPES[name]
    return Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2), num_users=num_users)


def all_graphs(num_users: int) -> list[Graph]:
    """Return all labelled graphs on a few users."""
    pairs = list(combinations(range(num_users), 2))
    return [
        Graph.from_edges(
            np.array([p for i, p in enumerate(pairs) if mask >> i & 1], dtype=np.int64).reshape(
                -1, 2
            ),
            num_users=num_users,
        )
        for mask in range(1 << len(pairs))
    ]


def far_walk() -> tuple[RandomWalk, int]:
    """Return a walk, and rounds after which some probabilities are below 1e-280."""
    path = Graph.from_edges(np.array([(i, i + 1) for i in range(18)]))
    return RandomWalk(path, laziness=1.0 - 2.0**-53), 18


def small_walks() -> dict[str, RandomWalk]:
    """Return walks of every kind, known for three rounds or more."""
    walks = {name: RandomWalk(shape(name)) for name in SHAPES}
    walks |= {
        f"lazy {name}": RandomWalk(shape(name), laziness=0.3)
        for name in ("pair", "path", "star and edge", "two pieces")
    }
    five = [shape(name) for name in ("star and edge", "complete and pendant", "five-cycle")]
    away = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=bool)
    walks["absences"] = RandomWalk(five[0], absences=away)
    walks["absences, lazy"] = RandomWalk(five[1], absences=away, laziness=0.1)
    return walks


def exact_laws(walk: RandomWalk, rounds: int) -> list[list[Fraction]]:
    """Return P[i][j]: report i is with user j after some rounds."""
    users = range(walk.num_users)
    laws = [[Fraction(int(i == j)) for j in users] for i in users]
    lazy = Fraction(walk.laziness)
    for r in range(rounds):
        graph = walk.graph
        moved = []
        for law in laws:
            new = [Fraction(0)] * walk.num_users
            for k in (user for user in users if law[user]):
                around = graph.neighbours[graph.starts[k] : graph.starts[k + 1]].tolist()
                away = bool(walk.absences) and bool(walk.absences[r][k])
                stay = Fraction(1) if away or not around else lazy
                new[k] += stay * law[k]
                for j in around:
                    new[j] += (1 - stay) / len(around) * law[k]
            moved.append(new)
        laws = moved
    return laws
