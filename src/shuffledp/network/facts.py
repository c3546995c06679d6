"""Facts of an exchange of reports along a graph."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """Graph, walk and mixing of one exchange of reports. Computed in `shuffledp.network.run`.

    Epsilons are proved upper bounds; the spectral gap is rounded down and the separation up.
    ``most_by_rounds`` is for 99 % of the users.
    """

    graph: str
    num_users: int
    num_edges: int
    fewest_neighbours: int
    most_neighbours: int
    num_self_loops: int
    num_duplicates: int
    irregularity: float
    rounds: int
    are_rounds_chosen: bool
    protocol: str
    laziness: float
    spectral_gap: float
    separation: float
    worst_user: str
    method: str
    uniform_epsilon: float
    published_epsilon: float | None
    epsilon_by_rounds: tuple[tuple[int, float], ...]
    most_held: float
    num_released: int
    num_dummies: int
    most_by_rounds: tuple[tuple[int, float], ...] = ()
