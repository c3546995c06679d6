"""What a collection returns: its `Guarantee`, its `Result`, and the facts about its shuffle.

This module holds data only. How a result looks in a browser, a notebook or a terminal is decided
in ``shuffledp.report``.
"""

import math
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.frames import Frames
from shuffledp.core.progress import logger
from shuffledp.core.shown import Shown, registered_renderer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from shuffledp.collection.arrangements import Order
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question
    from shuffledp.collection.source.prior_files import PriorKnowledge
    from shuffledp.estimation.frequencies import FrequencyEstimates
    from shuffledp.estimation.means import MeanEstimates
    from shuffledp.randomizers.base import LocalRandomizer

    Estimates_co = TypeVar(
        "Estimates_co",
        bound=FrequencyEstimates | MeanEstimates,
        covariant=True,
        default=FrequencyEstimates | MeanEstimates,
    )
else:
    from typing import TypeVar

    Estimates_co = TypeVar("Estimates_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Shown):
    """A central (epsilon, delta) guarantee: one of the two was given, the other was computed.

    Parameters
    ----------
    epsilon : Bound or float
        In nats; a `Bound` if it is the one that was computed.
    delta : Bound or float
        In [0, 1]; a `Bound` if it is the one that was computed.
    num_users : int
        Number of honest users whose reports are shuffled together; of the smallest batch, if there
        are several.
    rounds : int
        Number of batches about the same people.

    Raises
    ------
    ParameterError
        If not exactly one of ``epsilon`` and ``delta`` is a `Bound`, or a number is below 1.

    Examples
    --------
    >>> bound = Bound(lower=0.25, upper=0.5, method="pure", source="definition", assumptions=())
    >>> Guarantee(epsilon=bound, delta=1e-8, num_users=100).to_json_dict()["epsilon"]
    {'lower': 0.25, 'upper': 0.5}
    """

    epsilon: Bound | float
    delta: Bound | float
    num_users: int
    rounds: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, Bound) == isinstance(self.delta, Bound):
            raise ParameterError(
                f"epsilon = {self.epsilon!r} and delta = {self.delta!r}: give exactly one Bound"
            )
        require_at_least("num_users", self.num_users, 1)
        require_at_least("rounds", self.rounds, 1)

    @property
    def bound(self) -> Bound:
        """The one that was computed."""
        # __post_init__ made sure that delta is a Bound where epsilon is none.
        return self.epsilon if isinstance(self.epsilon, Bound) else self.delta  # type: ignore[return-value]

    @property
    def upper(self) -> float:
        """Upper end of the computed one, which is proved."""
        return self.bound.upper

    @property
    def lower(self) -> float | None:
        """Lower end of the computed one: what is proved to be unavoidable, if that is known."""
        return self.bound.lower

    @property
    def epsilon_upper(self) -> float:
        """Epsilon in nats: the proved upper bound, or as given."""
        return self.epsilon.upper if isinstance(self.epsilon, Bound) else self.epsilon

    @property
    def delta_upper(self) -> float:
        """Delta: the proved upper bound, or as given."""
        return self.delta.upper if isinstance(self.delta, Bound) else self.delta

    def to_json_dict(self) -> dict[str, object]:
        """Return what ``shuffledp account --json`` prints.

        Returns
        -------
        dict
            ``epsilon``, ``delta``, ``method``, ``source``, ``assumptions``, and ``rounds`` if
            there are several. The computed one of the first two is ``{"lower", "upper"}``, the
            given one a number. A ``lower`` of ``None`` means that nothing is known, an ``upper`` of
            ``None`` that no finite bound holds (JSON has no infinity).
        """
        return {
            "epsilon": _json_number(self.epsilon),
            "delta": _json_number(self.delta),
            "method": self.bound.method,
            "source": self.bound.source,
            "assumptions": list(self.bound.assumptions),
            **({"rounds": self.rounds} if self.rounds > 1 else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Who asked what, as a report shows it: what is empty is left out.

    Parameters
    ----------
    title : str
        Heading of the report.
    question : str
        The question in the words in which people were asked it.
    column : str
        Name of the column that held the answers.
    organisation, contact : str
        Who asked, and whom to ask about it.
    date : str
        Of the collection, such as ``"2026-11-23"``.
    """

    title: str = ""
    question: str = ""
    column: str = ""
    organisation: str = ""
    contact: str = ""
    date: str = ""

    def to_json_dict(self) -> dict[str, str]:
        """Return the fields that are not empty."""
        return {name: text for name, text in asdict(self).items() if text}


#: Where true answers were randomized; who held them, hence who is trusted, follows from it.
COLLECTED_BY = ("devices", "table", "simulation")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Result(Frames, Generic[Estimates_co]):
    """What one collection produced: estimates, the guarantee they came with, and how.

    It prints itself: a short text in a terminal, a table in a notebook, and with `report` a
    self-contained HTML file.

    Parameters
    ----------
    num_users : int
        Number of users, hence of reports.
    question : Question
        What was asked.
    randomizer : LocalRandomizer
        What each user ran on their own value.
    guarantee : Guarantee
        What holds for the shuffled reports of this run.
    estimates : FrequencyEstimates or MeanEstimates
        Unbiased estimates, one for each label of the question, in their order.
    collected_by : {"devices", "table", "simulation"}
        Where true answers were randomized: by each user's own device; by whoever holds all of them
        in a table, and is trusted with them; or with a seed, with which anybody can undo it, so
        that nothing protects the users.
    target_epsilon, target_delta : float
        What was asked for.
    shuffler : str
        Name of the shuffler, for example ``"uniform"``.
    warnings : tuple of str
        What the user should know before publishing, one sentence each.
    epsilon_by_num_users : tuple of (int, float)
        Upper bound on the central epsilon at the same delta if that many users had taken part.
    epsilon_by_honest_share : tuple of (float, float)
        The same if only this share of the users, in (0, 1], follows the protocol and keeps
        quiet about its reports.
    groups : GroupFacts, optional
        For a shuffle within groups: what it does and guarantees beyond the central epsilon.
    network : NetworkFacts, optional
        For a shuffle through a network: the graph, the walk, and how far it mixed.
    arrangement : Order, optional
        How the reports were shuffled, for what is computed of the result later, such as
        `shuffledp.leakage.of_runs.of_run`.
    seed : int, optional
        That of a simulation.
    prior : PriorKnowledge, optional
        What an adversary of interest takes to be likely, in the order of the answers.
    interval_about : {"respondents", "population"}
        Whose intervals tables and sentences show.
    about : About
        Who asked what, for the report.

    Raises
    ------
    ParameterError
        If question and estimates disagree on how many there are, or ``collected_by`` is unknown.
    """

    num_users: int
    question: "Question[Estimates_co]"
    randomizer: "LocalRandomizer"
    guarantee: Guarantee
    estimates: Estimates_co
    collected_by: str
    target_epsilon: float
    target_delta: float
    shuffler: str = "uniform"
    warnings: tuple[str, ...] = ()
    epsilon_by_num_users: tuple[tuple[int, float], ...] = ()
    epsilon_by_honest_share: tuple[tuple[float, float], ...] = ()
    groups: "GroupFacts | None" = None
    network: "NetworkFacts | None" = None
    arrangement: "Order | None" = None
    seed: int | None = None
    prior: "PriorKnowledge | None" = None
    interval_about: str = "respondents"
    about: About = About()

    def __post_init__(self) -> None:
        if len(self.domain) != (size := self.estimates.standard_error.size):
            raise ParameterError(f"there are {size} estimates and {len(self.domain)} labels")
        if self.collected_by not in COLLECTED_BY:
            known = ", ".join(COLLECTED_BY)
            raise ParameterError(f"collected_by = {self.collected_by!r} is not one of {known}")

    @property
    def is_simulation(self) -> bool:
        """Whether a seed was given."""
        return self.collected_by == "simulation"

    @property
    def central_model(self) -> "ModelComparison | None":
        """What the holder of a table, who is trusted anyway, could publish; else None."""
        if self.collected_by != "table":
            return None
        how: Any = {"error": self.root_mean_square_error, "num_users": self.num_users}
        return central_model(self.question, epsilon=self.guarantee.epsilon_upper, **how)

    @property
    def root_mean_square_error(self) -> float:
        """Root mean square of the standard errors about these users."""
        return float((self.estimates.standard_error**2).mean() ** 0.5)

    @property
    def domain(self) -> tuple[str, ...]:
        """What is estimated: the possible answers, or the names of the columns."""
        return self.question.labels

    @property
    def without_shuffler(self) -> "WithoutShuffler":
        """What protects a user from somebody who sees whose report is whose."""
        return without_shuffler(self.question, self.randomizer)

    def columns(self) -> dict[str, list[Any]]:
        """Return the estimates by column: ``value``, and those of ``estimates.columns()``."""
        values = self.estimates.columns().items()
        return {"value": list(self.domain)} | {name: each.tolist() for name, each in values}

    def to_json_dict(self) -> dict[str, object]:
        """Return what ``shuffledp run --json`` prints.

        Returns
        -------
        dict
            ``num_users``, ``randomizer``, ``epsilon0``, ``guarantee`` (as
            `Guarantee.to_json_dict`), ``estimates`` (one dict an answer or a column, in the order
            of the domain), and how to read them: ``question``, ``confidence``, ``simultaneous``,
            ``interval``, ``interval_about``, ``post_processing``, ``shuffler``, ``collected_by``,
            ``is_simulation``, ``warnings``; of a table also ``central_model``, with a shuffle
            within groups ``groups``, through a network ``network``. Plain Python values only.
        """
        estimates, columns, curator = self.estimates, self.columns(), self.central_model
        return {
            "num_users": self.num_users,
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "guarantee": self.guarantee.to_json_dict(),
            "estimates": [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ],
            "question": self.question.to_json_dict(),
            "confidence": estimates.confidence,
            "simultaneous": estimates.is_simultaneous,
            "interval": estimates.interval,
            "interval_about": self.interval_about,
            "post_processing": list(estimates.post_processing),
            "shuffler": self.shuffler,
            "collected_by": self.collected_by,
            "is_simulation": self.is_simulation,
            "warnings": list(self.warnings),
            "without_shuffler": asdict(self.without_shuffler),
            **({"central_model": asdict(curator)} if curator else {}),
            **({} if self.groups is None else {"groups": asdict(self.groups)}),
            **({} if self.network is None else {"network": asdict(self.network)}),
        }

    def report(self, path: str | PathLike[str], *, about: About | None = None) -> Path:
        """Write a self-contained HTML report, which opens with no network.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced in one step.
        about : About, optional
            Who asked what; by default what the result says.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        OutputError
            If the file cannot be written; then nothing is left behind.
        """
        subject = self if about is None else replace(self, about=about)
        return Path(registered_renderer().write_report(subject, path))

    def __str__(self) -> str:
        return registered_renderer().terminal_text(self)

    def __repr__(self) -> str:
        return (
            f"Result(num_users={self.num_users}, randomizer={self.randomizer.name!r}, "
            f"epsilon0={self.randomizer.epsilon0:.6g}, "
            f"epsilon={self.guarantee.epsilon_upper:.6g}, delta={self.guarantee.delta_upper:.6g}, "
            f"collected_by={self.collected_by!r})"
        )


def log_collection(what: str, subject: "Plan | Result", shuffler: str) -> None:
    """Tell the log what is collected from how many users, and how private that is about."""
    law, guarantee = subject.randomizer, subject.guarantee
    logger.info(
        f"{what}: {subject.num_users} users, {law.name} with epsilon0 = {law.epsilon0:.6g}, "
        f"{shuffler} shuffler: epsilon about {guarantee.epsilon_upper:.4g} at delta "
        f"{guarantee.delta_upper:.4g}"
    )


def _json_number(value: Bound | float) -> object:
    """Return a number as it is, and a bound as ``{"lower", "upper"}`` with ``None`` for inf."""
    if not isinstance(value, Bound):
        return value
    upper = None if math.isinf(value.upper) else value.upper
    return {"lower": value.lower, "upper": upper}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetPreservation:
    """A share ``eta`` or more of a subset's reports stays within it, but for a chance of ``delta``.

    ``confidence`` is that in simulated shuffles.
    """

    name: str
    size: int
    eta: float
    delta: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reidentification:
    """Theorem 4.2 for the smallest group, of ``group_size`` people, that protects somebody.

    ``most_probable`` is an upper bound on the probability that more than half of the rows which an
    adversary names for ``subset_size`` people are theirs.
    """

    subset_size: int
    group_size: int
    most_probable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Groups, reference order and guarantees of one shuffle within groups.

    Computed in `shuffledp.groups.run`.
    """

    description: str
    num_groups: int
    smallest_group: int
    median_group: int
    largest_group: int
    largest_width: int | None
    rank_distance: str | None
    reference_order: str
    sensitivity: float
    published_sensitivity: int | None
    orders_tried: tuple[tuple[str, int], ...]
    alpha: float
    theta: float
    mean_displacement: float
    odds_factor: float
    reidentification: tuple[Reidentification, ...]
    preservation: tuple[SubsetPreservation, ...]
    shuffler: str = "mallows"
    unit: str = "places"
    expected_crowd: tuple[float, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutShuffler:
    """What protects a user if the shuffler fails: of an adversary who sees whose report it is.

    ``odds`` is e^epsilon0, by which a report may change the odds between two answers;
    ``right_guess`` an upper bound on the chance to guess which of ``num_values`` equally likely
    values a user has. Of all rounds together.
    """

    epsilon0: float
    odds: float
    right_guess: float
    num_values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """What another trust model costs: its epsilon for the same error, its error at the same one."""

    epsilon_for_same_error: float
    standard_error_at_same_epsilon: float
    mechanism: str


def central_model(
    question: "Question", *, epsilon: float, error: float, num_users: int, rounds: int = 1
) -> ModelComparison:
    """Return what continuous Laplace noise on the totals of a trusted curator costs, at delta = 0.

    Replacing one value moves the totals by the sensitivity in all, which is the scale of the noise
    at epsilon = 1; the standard error of Laplace noise is sqrt(2) times its scale. Over several
    rounds epsilons add up, and each round gets an even share. Other mechanisms may err less.
    """
    sensitivity = question.central_sensitivity
    product = math.sqrt(2.0) * sensitivity * rounds / num_users
    return ModelComparison(
        epsilon_for_same_error=product / error if error else math.inf,
        standard_error_at_same_epsilon=product / epsilon if epsilon else math.inf,
        mechanism=f"Laplace noise of scale {sensitivity:.6g}/epsilon on each total of a trusted "
        "curator",
    )


# With more than that a guess is nearly certain, or odds change beyond what words can say.
_LARGE_EPSILON0, _LARGE_EPSILON = 8.0, 5.0

# Exact laws are written out for as many answers.
_MOST_WRITTEN_OUT = 8


def without_shuffler(
    question: "Question", randomizer: "LocalRandomizer", *, rounds: int = 1
) -> WithoutShuffler:
    """Return what protects a user if the shuffler fails.

    With the law P of one report and k equally likely values the best guess is right with
    probability sum_y max_x P(y | x) / k: exactly computed for k-RR, subset selection and few
    answers. Otherwise the bound of any (epsilon0, delta0)-LDP randomizer: where A_x are the reports
    on which x is guessed, P_x(A_x) <= e^epsilon0 P_z(A_x) + delta0 for each z != x; summed over all
    such pairs, the share c of right guesses has c (e^epsilon0 + k - 1) <= e^epsilon0 +
    (k - 1) delta0.
    """
    loss, profile = rounds * randomizer.epsilon0, randomizer.profile
    k = len(question.labels) if question.kind == "frequencies" else 2
    others = (k - 1) * math.exp(-loss)
    guess = (1.0 + rounds * profile.delta0 * others) / (1.0 + others)
    if rounds == 1 and question.kind == "frequencies":
        guess = min(guess, _right_guess(randomizer, k))
    return WithoutShuffler(
        epsilon0=loss,
        odds=math.exp(loss) if loss < 709.0 else math.inf,
        right_guess=min(1.0, guess * (1.0 + 1e-12)),
        num_values=k,
    )


def _right_guess(randomizer: Any, k: int) -> float:
    """Return the exact chance of the best guess among k answers, 1 where it is not known."""
    if randomizer.name in {"k-rr", "subset-selection"}:
        # The best guess is any of the answers that the report supports, always as many.
        own, other = randomizer.support_probabilities
        return float(own / (own + (k - 1) * other))
    if randomizer.profile.channel is None or k > _MOST_WRITTEN_OUT:
        return 1.0
    columns = zip(*randomizer.profile.channel(), strict=True)
    return float(sum(max(column) for column in columns) / k)


def plan_cautions(
    epsilon: float, delta: float, num_users: int, local: WithoutShuffler
) -> tuple[str, ...]:
    """Return warnings about promises that say little; none of them is refused."""
    found = []
    if epsilon > _LARGE_EPSILON:
        found.append(
            f"epsilon = {epsilon:.4g} is above {_LARGE_EPSILON:g}: the odds between two answers of "
            f"a user may change by a factor of {math.exp(min(epsilon, 709.0)):.3g}, which promises "
            "little; ask for a smaller one."
        )
    if local.epsilon0 > _LARGE_EPSILON0:
        found.append(
            f"epsilon0 = {local.epsilon0:.4g} is above {_LARGE_EPSILON0:g}: only the shuffler "
            "protects. Whoever sees a report with its sender's name guesses the answer right with "
            f"a chance of up to {100.0 * local.right_guess:.6g} %, among {local.num_values} "
            "equally likely ones; max_epsilon0 limits that."
        )
    return (*found, *delta_cautions(delta, num_users))


# A shuffle that leaves more than this share of epsilon0 hardly amplifies.
_HARDLY = 0.9


def delta_cautions(delta: float, num_users: int) -> tuple[str, ...]:
    """Return a warning unless ``delta < 1 / num_users``: else it permits publishing an answer."""
    if delta * num_users < 1.0:
        return ()
    return (
        f"delta = {delta:g} is not below 1/num_users = {1 / num_users:g}: publishing one user's "
        f"answer in the clear would meet it; ask for a far smaller one, such as "
        f"{0.001 / num_users:.0e}.",
    )


def amplification_cautions(
    guarantee: Guarantee, epsilon0: float, facts: GroupFacts
) -> tuple[str, ...]:
    """Return a warning if a shuffle within groups amplifies next to nothing.

    That is: epsilon is at least nine tenths of epsilon0, and more than twice the lower end (that of
    a uniform shuffle).
    """
    epsilon, lower = guarantee.epsilon_upper, guarantee.lower or 0.0
    if math.isinf(facts.alpha) or epsilon < _HARDLY * epsilon0 or lower > 0.5 * epsilon:
        return ()
    share = f"central epsilon is {epsilon:.3g}, and epsilon0 = {epsilon0:.3g}"
    if facts.rank_distance == "kendall":
        return (
            f"Kendall's distance gives next to no central amplification here: {share}. Within "
            "groups it promises alpha all the same. The displacement shuffler, or rank distance "
            "hamming or cayley, which does not keep reports near, may give a smaller epsilon.",
        )
    return (
        f"There is next to no central amplification here: {share}. Somebody has few others nearby "
        "to hide among; a smaller alpha moves reports farther.",
    )
