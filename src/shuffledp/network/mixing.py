"""Anonymity of starting positions of a walk on a graph, for any number of rounds.

There are two kinds of bounds on positions, and the caller need not care which: exact laws of all
users' positions, which cost time, and spectral bounds, which cost none but need more rounds. From
bounds of either kind follow the anonymity of the worst-off user's report (`Hiding`), and its
guarantee.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import (
    Literal,
    Required,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    Unpack,
    get_args,
)
from weakref import WeakKeyDictionary

import numpy as np

from shuffledp.amplification.registry import account_epsilon, least_over
from shuffledp.collection.counting import Engine
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_finite
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress, no_progress
from shuffledp.network.graph import Graph
from shuffledp.network.positions import spectrum
from shuffledp.network.positions.bounds import (
    FEW_ROUNDINGS,
    PositionBounds,
    exact_position_bounds,
)
from shuffledp.network.positions.remote_users import FollowedLaws, remote_position_bounds
from shuffledp.network.positions.spectrum import DENSE_USERS, Spectrum
from shuffledp.network.privacy import (
    NETWORK_ASSUMPTIONS,
    WeightedWalk,
    Weights,
    network_walk_delta,
    network_walk_epsilon,
)
from shuffledp.network.walk import RandomWalk

ReportingProtocol = Literal["all", "single"]


class Terms(TypedDict, total=False):
    """Parameters of an account of an exchange, besides its rounds."""

    delta: Required[float]  # Central delta
    protocol: ReportingProtocol  # Whether holders hand in all reports, the default, or one
    num_dishonest: int  # Users whose reports hide nobody; by default none
    dummies: DummyLaw | None  # Dummies of each honest user; by default none


# Part of the claim if positions are not followed exactly.
_BY_EIGENVALUES = (
    "Positions are bounded by eigenvalues, whose certificate fails with probability 1e-12 at most "
    "over its fixed start vectors: the graph was not made with these in mind."
)

# A bound this near to a trusted shuffler's, relatively, is not worth a second one.
_NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Hiding:
    """Anonymity of the worst-off user's report, as bounds on all positions imply it."""

    bounds: PositionBounds

    @property
    def worst_user(self) -> int:
        """Node whose position reveals most, as far as the bounds show."""
        return int(np.argmax(self.bounds.high))

    @property
    def separation(self) -> float:
        """1 - the least of all ratios to the reference law, rounded up: 0 is perfectly mixed."""
        return min(max(1.0 - float(self.bounds.low.min()), 0.0), 1.0)

    @property
    def position_law(self) -> Floats:
        """Upper bound on the probability of each user to hold the report at the end."""
        return np.asarray(np.minimum(self.bounds.reference * self.bounds.high.max(), 1.0))

    @cached_property
    def overlaps(self) -> Floats:
        """Probabilities, by independent coins, that each other user's report hides any user's.

        It then does so at least as well as one in a uniform shuffle would; rounded down. For a
        victim v the overlap of user i is at least low_i / high_v (docs/results/network.md); the
        greatest high_v covers all victims. For any victim, the other users have all but one of the
        lows: leaving out the greatest covers that.
        """
        return _shares(self.bounds.low * ((1.0 - FEW_ROUNDINGS) / float(self.bounds.high.max())))

    def epsilon(
        self,
        profile: LocalProfile,
        *,
        known: float = math.inf,
        with_lower: bool = True,
        **terms: Unpack[Terms],
    ) -> Bound:
        """Bound the central epsilon for every user; see `NetworkMixing.epsilon`.

        An epsilon that is ``known`` to hold is not searched for again.
        """
        by_eigenvalues = () if self.bounds.method == "exact" else (_BY_EIGENVALUES,)
        bound = network_walk_epsilon(
            profile,
            overlaps=self.overlaps,
            position_law=self.position_law,
            with_lower=with_lower,
            **terms,
        ).assuming(*by_eigenvalues)
        if terms.get("dummies") is not None:
            # Dummies ignore the values: what holds without them holds with them.
            terms["dummies"] = None
            without = self.epsilon(profile, known=known, with_lower=False, **terms)
            return least_over([bound, without], bound.lower)
        weighed = Weighing(self.bounds, profile, terms).epsilon(min(bound.upper, known))
        return bound.at_most(weighed, method="network-walk/weighted")

    def meets(self, profile: LocalProfile, *, epsilon: float, **terms: Unpack[Terms]) -> bool:
        """Return True if a central target is proved for every user."""
        weighing = Weighing(self.bounds, profile, terms)
        if not weighing.unmet(weighing.users, epsilon).size:
            return True
        return (
            network_walk_delta(
                profile,
                epsilon=epsilon,
                overlaps=self.overlaps,
                position_law=self.position_law,
                **terms,
            )
            <= terms["delta"]
        )


# Relative accuracy with which the worst of many users is found.
_SLACK = 1e-5

# A smaller gain is not worth the search, a tenth of a second an evaluation.
_WORTH = 0.995

# Number of evaluations of delta after which the remaining users are accounted for together.
_MOST_EVALUATIONS = 40

# A group that misses a target is split: one part in this number is examined apart.
_PART = 4


@dataclass(eq=False)
class Weighing:
    """The weighted blanket of users' positions relative to one law Q."""

    bounds: PositionBounds
    profile: LocalProfile
    terms: Terms

    @cached_property
    def walk(self) -> WeightedWalk:
        """The blanket, with the overlaps of all users but one with Q, rounded down."""
        overlaps = _shares(self.bounds.low * (1.0 - FEW_ROUNDINGS))
        delta, dishonest = self.terms["delta"], self.terms.get("num_dishonest", 0)
        return WeightedWalk(self.profile, overlaps, delta=delta, num_dishonest=dishonest)

    @property
    def users(self) -> Integers:
        """All users, those whose position reveals most first."""
        return np.argsort(-1.0 - self.bounds.chi_square, kind="stable")

    def epsilon(self, enough: float) -> float:
        """Return an epsilon that holds for every user; or ``enough``, which is known to hold.

        It is ``enough`` if a trusted shuffler's epsilon is hardly less. The most exposed user is
        accounted for alone, and then any users who need more.
        """
        delta, users = self.terms["delta"], self.users
        count = max(users.size - self.terms.get("num_dishonest", 0), 1)
        limit = account_epsilon(self.profile, num_users=count, delta=delta, with_lower=False).upper
        if not delta > 0.0 or enough <= (1.0 + _NEAR) * limit:
            return enough
        worst, group = 0.0, users[:1]
        if not self.is_met(group, _WORTH * enough):
            return enough
        while group.size and worst < _WORTH * enough:
            worst = max(worst, self.walk.epsilon(Weights(*self.bounds.weights(group)), delta))
            group = self.unmet(users[1:], (1.0 + _SLACK) * worst)
        return enough if group.size else min((1.0 + _SLACK) * worst, enough)

    def is_met(self, users: Integers, epsilon: float) -> bool:
        """Return True if a target is proved for all these users."""
        return self.walk.delta(Weights(*self.bounds.weights(users)), epsilon) <= self.terms["delta"]

    def unmet(self, users: Integers, epsilon: float) -> Integers:
        """Return some of the users, most exposed first, for whom a target is not proved.

        A bound for weights that dominate a group's weights holds for each member; groups that miss
        the target are split, until there is one user, or too many evaluations were made.
        """
        pending, left = [users[1:], users[:1]], _MOST_EVALUATIONS
        while pending:
            group = pending.pop()
            left -= 1
            if not group.size or self.is_met(group, epsilon):
                continue
            if group.size == 1:
                return group
            if left <= 0:
                return np.concatenate([group, *pending])
            part = max(group.size // _PART, 1)
            pending += [group[part:], group[:part]]
        return np.empty(0, np.int64)


def _shares(low: Floats) -> Floats:
    """Return lower bounds as probabilities, ascending, without the greatest."""
    return np.sort(np.clip(low, 0.0, 1.0))[:-1]


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
        return Hiding(self.position_bounds(rounds))

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
            return Hiding(bounds).meets(profile, epsilon=target, **terms)

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
