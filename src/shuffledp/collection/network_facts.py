"""What a report says about a shuffle through a network; data only, computed by ``network_run``."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """Graph, walk and mixing of one exchange of reports.

    Parameters
    ----------
    graph : str
        Name of the graph.
    num_users, num_edges : int
        Its users, and pairs of them who pass reports to each other.
    fewest_neighbours, most_neighbours : int
        Smallest and largest degree.
    num_self_loops, num_duplicates : int
        Edges of the file that were left out.
    irregularity : float
        Gamma, the number of users times the sum of squares of the stationary law; 1 where all have
        equally many neighbours.
    rounds : int
        How often every report is passed on.
    are_rounds_chosen : bool
        Whether they were chosen to come close to endless rounds, rather than given.
    protocol : str
        ``"all"`` or ``"single"``.
    laziness : float
        Chance that a report rests for a round, in [0, 1).
    spectral_gap : float
        1 - lambda of the walk, rounded down.
    separation : float
        How far the law of a report's holder may be from its limit, rounded up: it is below its
        limit by at most this share anywhere, for any user's report.
    worst_user : str
        Whose report is hidden least.
    method : str
        How laws of holders were bounded.
    uniform_epsilon : float
        Safe epsilon of a uniform shuffle of the same reports, by a shuffler whom all trust.
    published_epsilon : float or None
        By the theorem of Liew et al. in its corrected form; None where it says no more than that
        reports are randomized.
    epsilon_by_rounds : tuple of (int, float)
        Safe epsilon after fewer rounds, and after all.
    most_by_rounds : tuple of (int, float)
        The same for 99 % of the users; empty where it was not computed.
    most_held : float
        Reports that the user with most neighbours holds on average, in the limit of many rounds.
    num_released, num_dummies : int
        Reports that were handed in, and users who held none and sent a dummy instead.
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

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)
