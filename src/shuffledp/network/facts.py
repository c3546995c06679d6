"""Facts of an exchange of reports along a graph."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """Graph, walk and mixing of one exchange of reports. Computed in `shuffledp.network.run`.

    Epsilons are proved upper bounds; the spectral gap is rounded down and the separation up.
    """

    kind: ClassVar[str] = "network"

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
    most_held: float
    num_released: int
    num_dummies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFacts(NetworkFacts):
    """Facts of an exchange that took place, beyond the facts of a simulated one.

    Its users are the registered users, of whom ``num_dishonest`` are assumed to hide nobody.
    ``overload`` is an upper bound on the probability, taken off delta, that a user ever held more
    reports than messages.
    """

    num_invited: int
    num_handed_in: int
    num_absences: int
    num_dishonest: int
    is_traffic_even: bool
    overload: float
