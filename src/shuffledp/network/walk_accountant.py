"""Anonymity of starting positions of a walk on a graph, for any number of rounds.

There are two kinds of bounds, and the caller need not care which: exact laws of all users'
positions, which cost time, and spectral bounds, which cost none but need more rounds.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, SupportsFloat, SupportsIndex, Unpack, get_args
from weakref import WeakKeyDictionary

import numpy as np

from shuffledp.amplification.registry import account_epsilon
from shuffledp.collection.counting import Engine
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_finite
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress, no_progress
from shuffledp.network.anonymity import Hiding, Terms
from shuffledp.network.graph import Graph
from shuffledp.network.positions import spectrum
from shuffledp.network.positions.bounds import PositionBounds, exact_position_bounds
from shuffledp.network.positions.remote_users import FollowedLaws, remote_position_bounds
from shuffledp.network.positions.spectrum import DENSE_USERS, Spectrum
from shuffledp.network.privacy import NETWORK_ASSUMPTIONS, network_walk_epsilon
from shuffledp.network.walk import RandomWalk

Positions = Literal["auto", "exact", "spectral"]

# Multiply-adds of an exact pass that is made without being asked for: some 20 seconds.
_UNASKED_WORK = 1e11

# Exact laws of more users than this take hours, on any graph.
_MOST_EXACT_USERS = 100_000

# Largest number of numbers in position bounds that are kept for all rounds of a search.
_MOST_KEPT_NUMBERS = 5e7

# Numbers in the position bounds of one user after one number of rounds.
_NUMBERS_A_USER = 160.0

# Most numbers of rounds after which laws are evaluated in one pass; each costs some rounds.
_MOST_STOPS = 12

# If eigenvalues leave more chi-square than this, relative to the target, rows are not tried.
_HOPELESS = 6.0

# Number of eigenpairs of slow graphs, and most users of these; used if half of the pairs leave
# every ratio open and all of them may not: a minute at most.
_MANY_PAIRS, _MOST_SUMMED_USERS, _ENOUGH = 128, 35_000, 7.0

# Two users only exchange their reports.
_FEWEST_USERS = 3

# Largest number of rounds of a search.
_MOST_ROUNDS = 10_000_000


@dataclass(eq=False)
class _Kept:
    """Facts of the walk of one laziness on a graph; it does not refer to the graph."""

    spectra: dict[int | None, Spectrum] = field(default_factory=dict)  # by number of pairs
    followed: FollowedLaws = field(default_factory=FollowedLaws)


# Kept for the life of the graph, so that a second account of it takes little.
_KEPT: WeakKeyDictionary[Graph, dict[float, _Kept]] = WeakKeyDictionary()


class NetworkMixing:
    """A connected graph with all facts that its walk's guarantees need, prepared once.

    Parameters
    ----------
    graph : Graph
        Connected, of at least 3 users, and not bipartite unless the walk is lazy.
    laziness : float
        Probability that a report stays where it is in a round, by a coin of its own; in [0, 1).
    positions : {"auto", "exact", "spectral"}
        Bounds on positions: by the exact laws of all users, by eigenvalues, or exactly if that
        takes some 20 seconds at most.
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.
    engine : callable, optional
        Runs the exact laws, by default two threads: ``map`` of
        `~shuffledp.engines.processes.Processes`. Numbers do not depend on it.

    Raises
    ------
    ParameterError
        If the graph is not such a graph; the message states a remedy.

    Notes
    -----
    The spectrum, and laws of the most remote users, are kept for the life of the graph, so that
    all accounts of one graph and laziness share them.

    Examples
    --------
    >>> from shuffledp.network import Graph
    >>> ring = Graph.from_edges([(user, (user + 1) % 5) for user in range(5)])
    >>> NetworkMixing(ring).graph.num_users
    5
    """

    def __init__(
        self,
        graph: Graph,
        *,
        laziness: SupportsFloat = 0.0,
        positions: Positions = "auto",
        on_progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> None:
        if positions not in get_args(Positions):
            raise ParameterError(f"positions = {positions!r} is not one of {get_args(Positions)}")
        self.walk = RandomWalk(graph, laziness=require_finite("laziness", laziness))
        kept = _KEPT.setdefault(graph, {})
        if self.walk.laziness not in kept:
            _require_mixing(graph, self.walk.laziness)
        self._kept = kept.setdefault(self.walk.laziness, _Kept())
        self.graph = graph
        self.positions: Positions = positions
        self._report, self._engine = on_progress or no_progress, engine
        self._exact: dict[int, PositionBounds] = {}
        self._remote: dict[int, PositionBounds] = {}
        self._proved: dict[object, float] = {}  # epsilon, by arguments of `fewest_rounds`

    @cached_property
    def expected_holders(self) -> int:
        """Number of users to expect with a report or more, once the walk has mixed."""
        users = self.graph.num_users
        return round(float((1.0 - (1.0 - self.graph.stationary_law()) ** users).sum()))

    @property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors, with certified bounds; computed at first use."""
        return self._spectrum_of("eigenvalues", None)

    def _spectrum_of(self, stage: str, num_pairs: int | None) -> Spectrum:
        """Return the spectrum with this number of eigenpairs."""
        if num_pairs not in self._kept.spectra:
            self._report(stage, 0, 1)
            self._kept.spectra[num_pairs] = spectrum.walk_spectrum(
                self.graph, laziness=self.walk.laziness, num_pairs=num_pairs
            )
            self._report(stage, 1, 1)
        return self._kept.spectra[num_pairs]

    def position_bounds(self, rounds: SupportsIndex) -> PositionBounds:
        """Return bounds on the position of every report after this number of rounds."""
        return self.position_bounds_at((rounds,))[0]

    def position_bounds_at(self, rounds: Iterable[SupportsIndex]) -> tuple[PositionBounds, ...]:
        """Return bounds for several numbers of rounds: exact laws take one pass for all of them."""
        numbers = [require_at_least("rounds", each, 0) for each in rounds]
        wanted = [each for each in dict.fromkeys(numbers) if each not in self._exact]
        if wanted and self._is_exact(max(wanted)):
            self._compute(wanted)
        return tuple(self._exact.get(each) or self._spectral(each) for each in numbers)

    def hiding(self, rounds: SupportsIndex) -> Hiding:
        """Return the anonymity of the worst-off user's report after this number of rounds."""
        return Hiding.of(self.position_bounds(rounds))

    def epsilon(
        self,
        profile: LocalProfile,
        *,
        rounds: SupportsIndex,
        with_lower: bool = True,
        **terms: Unpack[Terms],
    ) -> Bound:
        """Bound the central epsilon after this number of rounds, for every user.

        Parameters
        ----------
        profile : LocalProfile
            The randomizer's law.
        rounds : int
            Of the exchange, >= 0; after 0 rounds it is the local epsilon.
        with_lower : bool
            False saves the time for the lower end.
        **terms
            ``delta``, the central delta, in [0, 1); ``protocol``, "all" by default or
            "single": whether holders hand in all reports they hold, or one; ``num_dishonest``,
            users whose reports hide nobody, by default 0; ``dummies`` of each honest user.
        """
        if require_at_least("rounds", rounds, 0) == 0:  # no report has moved
            delta = terms["delta"]
            single = account_epsilon(profile, num_users=1, delta=delta, with_lower=with_lower)
            return replace(single, assumptions=NETWORK_ASSUMPTIONS)
        known = self._proved.get(_question(rounds, profile, terms), math.inf)
        hiding = self.hiding(rounds)
        return hiding.epsilon(profile, known=known, with_lower=with_lower, **terms)

    def fewest_rounds(
        self,
        profile: LocalProfile,
        *,
        within: float = 0.01,
        **terms: Unpack[Terms],
    ) -> int:
        """Return the fewest rounds proved to be nearly as private as the limit of many rounds.

        Parameters
        ----------
        profile, **terms
            As for `epsilon`.
        within : float
            Largest excess of epsilon over the limit, relative to it. For "all" the limit is a
            trusted shuffler's epsilon, for "single" the epsilon of endless rounds.

        Returns
        -------
        int
            The bounds get no worse with more rounds, so that bisection finds the smallest number.
            For all users, `epsilon` after these rounds is at most the epsilon proved here.

        Raises
        ------
        ParameterError
            If ``within`` is not above 0, or ``delta`` is 0: then there is no limit to approach.
        InfeasibleTargetError
            If ten million rounds are not enough.
        """
        if not (within > 0.0 and math.isfinite(within)):
            raise ParameterError(f"within = {within} is not in (0, inf): give for example 0.01")
        if require_delta(terms["delta"]) == 0.0:
            raise ParameterError("delta = 0: no number of rounds helps; give for example 1e-8")
        target = (1.0 + within) * self.limit(profile, with_lower=False, **terms).upper
        if target >= profile.epsilon0 and profile.delta0 <= terms["delta"]:
            return 0

        def is_enough(bounds: PositionBounds) -> bool:
            return Hiding.of(bounds).meets(profile, epsilon=target, **terms)

        def is_shown(rounds: int) -> bool:
            """Return True if eigenvalues and rows of remote users show ``rounds`` to be enough."""
            return self._may_be_enough(rounds, within) and is_enough(self._spectral(rounds))

        found = _fewest(is_shown)
        affordable = self._affordable_rounds() if self.positions == "auto" else 0
        if self._is_exact(found):
            found = self._fewest_exact(is_enough, found)
        elif 0 < affordable < found and self._may_be_enough(affordable, within):
            # Users may be hidden long before eigenvalues can show it.
            self._compute([affordable])
            if is_enough(self._exact[affordable]):
                found = self._fewest_exact(is_enough, affordable)
        self._proved[_question(found, profile, terms)] = target
        return found

    def _fewest_exact(self, is_enough: Callable[[PositionBounds], bool], most: int) -> int:
        """Return the fewest rounds by exact laws, which need at most ``most``.

        One pass if the bounds of all rounds can be kept, otherwise one for a grid, and one for the
        rounds between two of its points.
        """
        kept = most * _NUMBERS_A_USER * self.graph.num_users
        step = max(math.ceil(kept / _MOST_KEPT_NUMBERS), math.ceil(most / _MOST_STOPS))
        grid: list[int] = [*range(step, most, step), most]
        self._compute(grid)
        first = bisect_left(grid, True, key=lambda rounds: is_enough(self._exact[rounds]))
        if first == len(grid):  # the spectral bound was sharper at its own rounds
            return most
        # A grid of consecutive rounds has none between.
        between = range(grid[first - 1] + 1 if first else 1, grid[first])
        self._compute(between)
        later = bisect_left(between, True, key=lambda rounds: is_enough(self._exact[rounds]))
        return between[later] if later < len(between) else grid[first]

    def limit(
        self, profile: LocalProfile, *, with_lower: bool = True, **terms: Unpack[Terms]
    ) -> Bound:
        """Bound the central epsilon in the limit of endless rounds.

        For "all" it is a trusted shuffler's, for "single" it may be less.
        """
        return network_walk_epsilon(
            profile,
            overlaps=np.ones(self.graph.num_users - 1),
            position_law=self.graph.stationary_law(),
            with_lower=with_lower,
            **terms,
        )

    def _may_be_enough(self, rounds: int, within: float) -> bool:
        """Return False if eigenvalues alone rule it out, which saves the rows of remote users."""
        bounds = spectrum.spectral_position_bounds(self.spectrum, rounds)
        return float(bounds.chi_square.max()) <= _HOPELESS * max(within, 0.01)

    def _spectral(self, rounds: int) -> PositionBounds:
        """Return bounds by eigenvalues, and rows of the most remote users; kept between calls."""
        if rounds == 0:
            return spectrum.spectral_position_bounds(self.spectrum, rounds)
        if rounds not in self._remote:
            known, followed = self._spectrum_for(rounds), self._kept.followed
            self._remote[rounds] = remote_position_bounds(self.walk, known, rounds, followed)
        return self._remote[rounds]

    def _spectrum_for(self, rounds: int) -> Spectrum:
        """Return the spectrum, with more eigenpairs where this number of rounds needs them."""
        found, users = self.spectrum, self.graph.num_users
        is_slow = _MANY_PAIRS // 2 <= found.deflation.num_pairs < _MANY_PAIRS
        if not (is_slow and DENSE_USERS < users <= _MOST_SUMMED_USERS):
            return found
        # The pairs leave at most exp(largest - decay) of a ratio.
        decay = -rounds * math.log(found.remainder)
        largest = -math.log(found.stationary_law.min())
        if not 0.6 * largest <= decay <= largest + _ENOUGH:
            return found
        return self._spectrum_of("more eigenvalues", _MANY_PAIRS)

    def _is_exact(self, rounds: int) -> bool:
        """Return True if this number of rounds must be followed exactly."""
        users = self.graph.num_users
        if self.positions != "exact":
            return self.positions == "auto" and rounds <= self._affordable_rounds()
        if users > _MOST_EXACT_USERS:
            raise ParameterError(
                f"positions = 'exact' follows each of {users:,} users, and is for "
                f"{_MOST_EXACT_USERS:,} at most: use positions='spectral'"
            )
        return True

    def _affordable_rounds(self) -> int:
        """Return the largest number of rounds that all users are followed exactly by default."""
        if self.graph.num_users > _MOST_EXACT_USERS:
            return 0
        return int(_UNASKED_WORK / (2.0 * self.graph.num_edges * self.graph.num_users))

    def _compute(self, rounds: Sequence[int]) -> None:
        """Follow all users exactly, and keep their bounds after these rounds."""
        # If asked for, it may take hours; otherwise some seconds.
        hint = " (quicker: positions='spectral')" if self.positions == "exact" else ""
        found = exact_position_bounds(
            self.walk,
            rounds,
            on_progress=lambda stage, *n: self._report(stage + hint, *n),
            engine=self._engine,
        )
        self._exact.update({each.rounds: each for each in found})


def _question(rounds: SupportsIndex, profile: LocalProfile, terms: Terms) -> object:
    """Return a key of all that epsilon depends on besides the walk."""
    rows = None if profile.channel is None else np.asarray(profile.channel(), np.float64).tobytes()
    asked = terms["delta"], terms.get("protocol", "all"), terms.get("num_dishonest", 0)
    return int(rounds), profile, rows, asked, terms.get("dummies")


def _require_mixing(graph: Graph, laziness: float) -> None:
    """Raise unless the walk forgets its starting position."""
    if graph.num_users < _FEWEST_USERS:
        raise ParameterError(
            f"the graph has {graph.num_users} users: at least {_FEWEST_USERS} must take part, or "
            "reports go to and fro between the same two"
        )
    if graph.num_isolated:
        raise ParameterError(
            f"{graph.num_isolated:,} of {graph.num_users:,} users have no neighbour, the first is "
            f"{graph.name_of(int(graph.degrees.argmin()))}, so their reports cannot move: take the "
            "largest component, or leave them out"
        )
    if graph.num_components > 1:
        raise ParameterError(
            f"the graph has {graph.num_components:,} components, and reports stay within theirs: "
            "account for each component, or take the largest"
        )
    if laziness == 0.0 and graph.is_bipartite():
        raise ParameterError(
            "the graph is bipartite: reports go to and fro between its two sides and never mix; "
            "let each stay with some chance in each round, for example laziness=0.2"
        )


def _fewest(is_enough: Callable[[int], bool]) -> int:
    """Return the fewest rounds that are enough, if more rounds are never worse."""
    high = 1
    while not is_enough(high):
        if high > _MOST_ROUNDS:
            raise InfeasibleTargetError(
                f"no {_MOST_ROUNDS:,} rounds are proved to be enough on this graph, which hardly "
                "mixes: allow a larger within=..., or add edges"
            )
        high *= 2
    numbers = range(high // 2 + 1, high + 1)
    return numbers[min(bisect_left(numbers, True, key=is_enough), len(numbers) - 1)]
