"""Data of a finished collection: its `Guarantee`, its `Result`, and facts about its shuffle.

Data only: ``shuffledp.report`` decides how a result looks in a browser, a notebook or a terminal.
"""

import math
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from shuffledp.collection.liars import Attack, Influenced
from shuffledp.collection.questions.question import Estimates_co, Question
from shuffledp.collection.shuffling import UNIFORM, Releasing
from shuffledp.collection.source.weights import Weights
from shuffledp.core.bound import Guarantee, finite
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.shown import Frames, registered_renderer, rows_of

if TYPE_CHECKING:
    from shuffledp.collection.shuffling import ShuffleFacts, Shuffling
    from shuffledp.estimation.distributions import Estimate
    from shuffledp.randomizers.base import LocalRandomizer


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Title, question and organisation of a collection, for its report; empty fields are left out.

    Parameters
    ----------
    title : str
        Heading of the report.
    question : str
        The question in the words in which people were asked.
    column : str
        Name of the column that held the answers.
    organisation, contact : str
        Organisation that asked, and contact for questions about it.
    date : str
        Date of the collection, such as ``"2026-11-23"``.

    Examples
    --------
    >>> import tempfile
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     about = About(title="Smoking in our town", organisation="Town council")
    ...     "Town council" in result.report(f"{folder}/report.html", about=about).read_text()
    True
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


#: Places where true answers were randomized; the party that held them must be trusted.
COLLECTED_BY = ("devices", "table", "simulation")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Result(Frames, Influenced, Releasing, Generic[Estimates_co]):
    """Result of one collection: estimates, their guarantee, and the way they were made.

    It prints itself: a short text in a terminal, a table in a notebook, and with `report` a
    self-contained HTML file.

    Parameters
    ----------
    num_users : int
        Number of users, and of reports without the dummies.
    question : Question
        The question.
    randomizer : LocalRandomizer
        The local randomizer that each user applied to their own value.
    guarantee : Guarantee
        Guarantee of the shuffled reports of this run; with a shuffler's dummies for any number of
        users, whatever other users send.
    estimates : FrequencyEstimates or MeanEstimates
        Unbiased estimates, one for each label of the question, in their order.
    collected_by : {"devices", "table", "simulation"}
        Place where true answers were randomized: each user's own device; the holder of a table of
        all answers, who is trusted with them; or a simulation with a seed, which anybody can undo,
        so that nothing protects the users.
    target_epsilon, target_delta : float
        The central target.
    warnings : tuple of str
        Warnings for the user before publishing, one sentence each.
    facts : GroupFacts or NetworkFacts, optional
        Facts about a shuffle within groups or through a network; None for a uniform one.
    shuffling : Shuffling
        The shuffle of the reports; uniform by default.
    seed : int, optional
        Seed of a simulation.
    dummies : tuple of DummyLaw
        Laws of the dummies, reports of no user that were shuffled with the users' reports.
    num_dummies : int
        Total number of dummies, which is public.
    without_dummies : Guarantee, optional
        Guarantee if the reports were shuffled without dummies; None also for reports without local
        noise, which then nothing hides.
    interval_about : {"respondents", "population"}
        Target of the intervals in tables and sentences.
    about : About
        Title, question and organisation, for the report.
    weights : Weights, optional
        Public weights by which ``num_users`` of all users were drawn.
    dishonest : int, optional
        Number of dishonest users that statements about them assume; None: one of 100.
    attack : Attack, optional
        Attack by these users that the run simulated.
    shift_by_one : array, optional
        Largest change of each estimate by one user; None: that of the question.

    Raises
    ------
    ParameterError
        If question and estimates differ in number, or ``collected_by`` is unknown.
    """

    num_users: int
    question: Question[Estimates_co]
    randomizer: "LocalRandomizer"
    guarantee: Guarantee
    estimates: Estimates_co
    collected_by: str
    target_epsilon: float
    target_delta: float
    warnings: tuple[str, ...] = ()
    facts: "ShuffleFacts | None" = None
    shuffling: "Shuffling" = UNIFORM
    seed: int | None = None
    dummies: tuple[DummyLaw, ...] = ()
    num_dummies: int = 0
    without_dummies: Guarantee | None = None
    interval_about: str = "respondents"
    about: About = About()
    dishonest: int | None = None
    attack: Attack | None = None
    shift_by_one: Any = None
    weights: Weights | None = None

    def __post_init__(self) -> None:
        if len(self.domain) != (size := self.estimates.standard_error.size):
            raise ParameterError(f"there are {size} estimates and {len(self.domain)} labels")
        if self.collected_by not in COLLECTED_BY:
            known = ", ".join(COLLECTED_BY)
            raise ParameterError(f"collected_by = {self.collected_by!r} is not one of {known}")

    @property
    def shuffler(self) -> str:
        """Name of the shuffle, for example ``"uniform"``."""
        return self.shuffling.name

    @property
    def is_simulation(self) -> bool:
        """True if a seed was given."""
        return self.collected_by == "simulation"

    @property
    def central_model(self) -> "ModelComparison | None":
        """Errors and epsilon of the trusted holder of a table in the central model; else None."""
        if self.collected_by != "table":
            return None
        return central_model(
            self.question,
            epsilon=self.guarantee.epsilon_upper,
            error=self.root_mean_square_error,
            num_users=self.num_users,
        )

    def _shift_by_one(self) -> Any:
        """Return the largest change of each estimate by one user, given the reports received."""
        if self.shift_by_one is None:
            return self.question.shift_by_one(self.randomizer, self.num_users)
        return self.shift_by_one

    @property
    def num_shuffled(self) -> int:
        """Number of shuffled reports: of each user one for each law and round, and the dummies."""
        asked: Any = self.question
        if asked.has_rounds and asked.search is None:  # the rounds that took place
            found: Any = self.estimates
            return self.num_dummies + int(sum(each.num_users for each in found.discovery.rounds))
        return self.num_users * max(len(self.dummies), 1) * self.rounds + self.num_dummies

    @property
    def rounds(self) -> int:
        """Number of rounds, of this one collection, in which each user sent reports."""
        return self.guarantee.rounds

    @property
    def root_mean_square_error(self) -> float:
        """Root mean square of the standard errors about these users, as a plan expects them."""
        return self.estimates.root_mean_square_error

    def columns(self) -> dict[str, list[Any]]:
        """Return the estimates by column: ``value``, and the columns of ``estimates``."""
        values = self.estimates.columns().items()
        return {"value": list(self.domain)} | {name: each.tolist() for name, each in values}

    def to_json_dict(self) -> dict[str, object]:
        """Return the JSON object of ``shuffledp run --json``.

        Returns
        -------
        dict
            ``num_users``, ``randomizer``, ``epsilon0``, ``guarantee`` (as
            `Guarantee.to_json_dict`), ``estimates`` (one dict an answer or a column, in the order
            of the domain), and their context: ``question``, ``confidence``, ``simultaneous``,
            ``interval``, ``interval_about``, ``post_processing``, ``shuffler``, ``collected_by``,
            ``is_simulation``, ``warnings``; for a table also ``central_model``, for a shuffle
            within groups ``groups``, through a network ``network``; with ``weights`` facts about
            them; with dummies their laws, ``num_dummies`` and the guarantee ``without_dummies``;
            further estimates, such as ``associations``. Plain Python values only; None in
            the place of infinities.
        """
        estimates, columns, curator = self.estimates, self.columns(), self.central_model
        facts: Any = self.facts
        quantiles = [{"quantile": each} | found._asdict() for each, found in self.quantiles]
        return {
            "num_users": self.num_users,
            "randomizer": self.randomizer.name,
            "epsilon0": finite(self.randomizer.epsilon0),
            "guarantee": self.guarantee.to_json_dict(),
            "estimates": list(rows_of(columns)),
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
            "without_shuffler": self.without_shuffler.to_json_dict(),
            **({"weights": self.weights.to_json_dict()} if self.weights else {}),
            **self._dishonest_json(),
            **finite(dict(getattr(estimates, "findings", {}))),
            **({"quantiles": quantiles} if quantiles else {}),
            **self._dummies_json(),
            **({"central_model": finite(asdict(curator))} if curator else {}),
            **({} if facts is None else {facts.kind: asdict(facts)}),
        }

    @property
    def quantiles(self) -> "tuple[tuple[float, Estimate], ...]":
        """Quantiles that the question names, with their estimates; only for distributions."""
        asked = getattr(self.question, "quantiles", ())
        if not asked:
            return ()
        estimates: Any = self.estimates
        found = estimates.quantiles(*asked, about=self.interval_about)
        return tuple(zip(asked, found, strict=True))

    def _dummies_json(self) -> dict[str, object]:
        """Return the entry about dummies, empty if there are none."""
        if not self.dummies:
            return {}
        return {
            "dummies": [str(law) for law in self.dummies],
            "num_dummies": self.num_dummies,
            "without_dummies": self.without_dummies and self.without_dummies.to_json_dict(),
        }

    def report(self, path: str | PathLike[str], *, about: About | None = None) -> Path:
        """Write a self-contained HTML report, which opens without a network.

        Parameters
        ----------
        path : str or path-like
            Path of the report; an existing file is replaced in one step.
        about : About, optional
            Title, question and organisation; by default those that the result has.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        OutputError
            If the file cannot be written; no file is then left behind.
        """
        subject = self if about is None else replace(self, about=about)
        return Path(registered_renderer().write_report(subject, path))

    def __str__(self) -> str:
        return str(registered_renderer().terminal_text(self))

    def __repr__(self) -> str:
        return (
            f"Result(num_users={self.num_users}, randomizer={self.randomizer.name!r}, "
            f"epsilon0={finite(self.randomizer.epsilon0)!r:.8}, "
            f"epsilon={self.guarantee.epsilon_upper:.6g}, delta={self.guarantee.delta_upper:.6g}, "
            f"collected_by={self.collected_by!r})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """Cost of another trust model: epsilon for the same error, and error at the same epsilon."""

    epsilon_for_same_error: float
    standard_error_at_same_epsilon: float
    mechanism: str


def central_model(
    question: Question,
    *,
    epsilon: float,
    error: float,
    num_users: int,
    rounds: int = 1,
    is_least: bool = False,
) -> ModelComparison:
    """Return the error of continuous Laplace noise on a trusted curator's totals, at delta = 0.

    Replacing one value moves the totals by the sensitivity in all, which is the scale of the noise
    at epsilon = 1; the standard error of Laplace noise is sqrt(2) times its scale. Over several
    rounds epsilons add up, and each round gets an even share. Other mechanisms may err less.

    With ``is_least`` discrete noise, if one of k answers is asked for: the excess of the totals
    over n is subtracted evenly, which leaves 1 - 1/k of the variance; for k = 2 there is one
    total. Discrete Laplace noise of scale b has the variance 1 / (2 sinh^2(1 / (2 b))).
    """
    k, scale = len(question.labels), question.central_sensitivity
    if is_least and question.has_one_label:
        scale, share = (1.0, 1.0) if k == 2 else (scale, 1.0 - 1.0 / k)
        deviation = math.sqrt(0.5 * share)  # times 1 / sinh(epsilon / (2 scale))
        spread = math.sinh(min(0.5 * (epsilon / rounds) / scale, 700.0))
        loss = (
            2.0 * scale * rounds * math.asinh(deviation / (error * num_users))
            if error
            else math.inf
        )
        return ModelComparison(
            epsilon_for_same_error=loss,
            standard_error_at_same_epsilon=deviation / spread / num_users if spread else math.inf,
            mechanism=f"discrete Laplace noise of scale {scale:g}/epsilon on the totals of a "
            "trusted curator, less what is known to be wrong with their sum",
        )
    product = math.sqrt(2.0) * scale * rounds / num_users
    return ModelComparison(
        epsilon_for_same_error=product / error if error else math.inf,
        standard_error_at_same_epsilon=product / epsilon if epsilon else math.inf,
        mechanism=question.central_noise.format(f"Laplace noise of scale {scale:.6g}/epsilon"),
    )
