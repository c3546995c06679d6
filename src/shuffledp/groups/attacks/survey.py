"""Inputs of simulated attacks and models: a survey, and arrangements of its reports.

The adversary and the analyst of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of
Shuffling", ICLR 2022, arXiv:2106.06603v3, see the same releases.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.counting import Engine
from shuffledp.collection.source.tables import Source, open_source, reading
from shuffledp.collection.uniform_shuffler import Shuffler, UniformShuffler
from shuffledp.core.arrays import Booleans, Floats, Integers
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import BlockEntropy, Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.labels import holds_numbers, label_series
from shuffledp.groups.grouping import Grouping, OpenedGroups
from shuffledp.groups.groups import EARTH_RADIUS, Groups, points_of_people
from shuffledp.randomizers.checks import require_codes
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

if TYPE_CHECKING:
    import polars as pl

    from shuffledp.core.progress import Progress

RAW, WITHIN_GROUPS, UNIFORM = "raw", "within groups", "uniform"
"""Names of the three arrangements that are usually compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedArrangement:
    """Arrangement of the local reports before release; without a shuffler, none."""

    name: str
    shuffler: Shuffler | None = None

    def arranged(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the reports in the order of the release."""
        return reports if self.shuffler is None else self.shuffler.shuffle(reports, entropy)


class Traits(NamedTuple):
    """Traits of people: numbers over their range, or codes of categories."""

    values: Floats
    is_category: Booleans


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackedSurvey:
    """A survey whose collection is simulated, and the adversary's knowledge about people.

    ``codes`` are the true answers, in [0, k); ``neighbourhoods`` has everybody within the attack's
    radius of each person; ``privileged`` is further data that the adversary has; ``public`` values,
    measured by ``metric``, are for attacks and models that use them. Tables have one row a person,
    and one column or more.
    """

    codes: NDArray[Any]
    randomizer: KRandomizedResponse
    neighbourhoods: Groups
    privileged: Traits | None = None
    public: NDArray[Any] | None = None
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        codes = require_codes(np.asarray(self.codes), self.randomizer.domain_size)
        if self.neighbourhoods.num_users != codes.size:
            raise ParameterError(
                f"neighbourhoods are of {self.neighbourhoods.num_users} people and codes of "
                f"{codes.size}: give both in the order of the same rows"
            )
        object.__setattr__(self, "codes", codes)
        if self.public is not None:
            table = _finite_table("public", self.public, codes.size)
            object.__setattr__(self, "public", table)
        if self.privileged is not None:
            table = _finite_table("privileged", self.privileged.values, codes.size)
            object.__setattr__(self, "privileged", self.privileged._replace(values=table))

    @property
    def num_users(self) -> int:
        """Number of people."""
        return int(self.codes.size)

    @property
    def domain_size(self) -> int:
        """Number of possible answers."""
        return self.randomizer.domain_size

    def reports(self, entropy: Entropy) -> NDArray[Any]:
        """Return fresh local reports, one a person."""
        return self.randomizer.randomize(self.codes, entropy).data

    def require_public(self) -> NDArray[Any]:
        """Return the public values, or raise `ParameterError` if there are none."""
        if self.public is None:
            raise ParameterError(
                "public values are needed, and these groups come without coordinates: name public "
                "columns, public=[...], or choose another attack"
            )
        return self.public


def _finite_table(name: str, given: NDArray[Any], num_users: int) -> Floats:
    """Return public traits of people as a table of numbers, one row each."""
    table = np.array(given, dtype=np.float64, ndmin=1)
    table = table[:, None] if table.ndim == 1 else table
    if len(table) != num_users or table.ndim != 2 or not table.shape[1]:
        raise ParameterError(
            f"{name} has shape {table.shape} for {num_users} people: give one row a person, one "
            "column or more"
        )
    if not np.isfinite(table).all():
        raise ParameterError(f"{name} holds numbers that are not finite: fill them first")
    return table


def own_neighbourhoods(groups: Groups) -> Integers:
    """Return each person's group: the chosen one, else the largest, the last among equals."""
    if groups.group_of is not None:
        return groups.group_of
    own = np.full(groups.num_users, -1, dtype=np.int64)
    for group in np.argsort(groups.sizes, kind="stable"):
        own[groups.group(group)] = group
    if own.size and int(own.min()) < 0:
        raise DataError(
            f"person {int(np.argmin(own))} is in no group: put everybody into at least one"
        )
    return own


def euclidean_positions(coordinates: NDArray[Any], metric: str) -> Floats:
    """Return coordinates whose straight-line distance is the distance, or nearly.

    Points on the Earth become points in space, in kilometres: chords differ from distances along
    the surface by less than 0.1 % up to 1,000 km.
    """
    if metric != "haversine":
        return np.asarray(coordinates, dtype=np.float64)
    return EARTH_RADIUS / 1000.0 * points_of_people(coordinates, metric, len(coordinates))


def read_traits(path: str | PathLike[str], columns: Sequence[str], **ways: Any) -> Traits:
    """Read columns of numbers or of categories; two people are at most 1 apart in each.

    A column of which every value is a number counts as numbers. Source: Gower, "A general
    coefficient of similarity and some of its properties", Biometrics 27, 1971. ``ways`` of reading
    as in `open_column`.
    """
    source = open_source(path, *columns, **ways)
    if not columns:
        raise DataError(f"no column of {source.origin} is named: name at least one")
    with reading(source.origin):
        table, read = source.frame.select(columns).collect(), source.read_number()
    values, is_category = zip(*(_numbers(each, source, read) for each in table), strict=True)
    return Traits(np.stack(values, axis=1), np.array(is_category))


def _numbers(
    column: "pl.Series", source: Source, read: "Callable[[pl.Series], pl.Series]"
) -> tuple[Floats, bool]:
    """Return a column's numbers over their range, or codes of its categories."""

    def require(is_good: Booleans, lacking: str) -> None:
        if not is_good.all():
            raise DataError(
                f"column {column.name!r} of {source.origin} {lacking} in row "
                f"{int(is_good.argmin()) + 1:,}: fill it or leave the row out first"
            )

    text = label_series(column)
    has_value = text.is_not_null() & ~text.is_in(list(source.missing_texts())).fill_null(value=True)
    require(has_value.to_numpy(), "has no value")
    if not holds_numbers(column.dtype) or (numbers := read(column)).null_count():
        codes = np.unique(text.to_numpy(), return_inverse=True)[1]
        return codes.astype(np.float64).reshape(-1), True
    found = numbers.to_numpy().astype(np.float64)
    require(np.isfinite(found), "is not finite")
    spread = float(found.max() - found.min()) if found.size else 0.0
    return (found / spread if spread > 0.0 else found), False


OWN_REPORT = "own report"
"""Name of the guess that each person's answer is the report in their own place."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of a simulation for one arrangement of the reports: one number a trial.

    ``own_report`` is the same number for the guess that each person's answer is the report in
    their own place; empty if there is no such guess.
    """

    task: str
    measure: str
    arrangement: str
    trials: tuple[float, ...]
    own_report: tuple[float, ...] = ()

    @property
    def better(self) -> str:
        """Name of the guess with the larger mean, the task or ``"own report"``."""
        own = bool(self.own_report) and statistics.fmean(self.own_report) > self.mean
        return OWN_REPORT if own else self.task

    def of_better(self) -> "Measured":
        """Return the outcome of the better of two guesses, under its name."""
        if self.better == self.task:
            return self
        return replace(self, task=OWN_REPORT, trials=self.own_report, own_report=())

    @property
    def mean(self) -> float:
        """Mean over the trials."""
        return statistics.fmean(self.trials)

    @property
    def standard_deviation(self) -> float | None:
        """Sample standard deviation over the trials (divisor: trials - 1); None for one trial."""
        return statistics.stdev(self.trials) if len(self.trials) > 1 else None

    def to_json_dict(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return {
            "task": self.task,
            "measure": self.measure,
            "arrangement": self.arrangement,
            "mean": self.mean,
            "standard_deviation": self.standard_deviation,
            "num_trials": len(self.trials),
            "own_report": statistics.fmean(self.own_report) if self.own_report else None,
            "better": self.better if self.own_report else None,
            "trials": list(self.trials),
        }


def open_survey(
    table: str | PathLike[str],
    column: str,
    grouping: Grouping,
    *,
    epsilon0: float,
    attack_radius: str | None = None,
    public: Sequence[str] = (),
    privileged: Sequence[str] = (),
    on_progress: "Progress | None" = None,
    **ways: Any,
) -> tuple[AttackedSurvey, OpenedGroups]:
    """Read true answers, traits of people, and their groups.

    ``attack_radius`` is for neighbourhoods that differ from the groups; ``public`` columns of
    numbers stand in for the coordinates of the groups. ``ways`` of reading as in `open_column`.
    """
    from shuffledp.collection.questions import open_column

    path = Path(table)
    answers = open_column(path, column, on_progress=on_progress, **ways)
    opened = grouping.open(path, **ways)
    if on_progress is not None:
        on_progress("grouping", opened.num_users, opened.num_users)
    near = opened if attack_radius is None else grouping.within(attack_radius).open(path, **ways)
    seen, metric = opened.coordinates, grouping.metric_used
    if public:
        (seen, of_categories), metric = read_traits(path, public, **ways), "euclidean"
        if of_categories.any():
            raise DataError(
                f"column {public[int(of_categories.argmax())]!r} of {path.name} holds categories: "
                "public=[...] takes numbers only"
            )
    survey = AttackedSurvey(
        codes=np.concatenate(list(answers.blocks())),
        randomizer=KRandomizedResponse(domain_size=len(answers.question.labels), epsilon0=epsilon0),
        neighbourhoods=near.groups,
        privileged=read_traits(path, privileged, **ways) if privileged else None,
        public=seen,
        metric=metric,
    )
    return survey, opened


def usual_arrangements(shuffler: Shuffler) -> tuple[ComparedArrangement, ...]:
    """Return raw reports, a shuffle within groups, and a uniform shuffle."""
    return (
        ComparedArrangement(name=RAW),
        ComparedArrangement(name=WITHIN_GROUPS, shuffler=shuffler),
        ComparedArrangement(name=UNIFORM, shuffler=UniformShuffler()),
    )


#: Findings of a trial about an arrangement, by measure: the value of the attack, then the value
#: of the guess by own reports, if there is one.
Found = Mapping[str, tuple[float, ...]]


def simulate(
    task: tuple[str, str],
    trial: Callable[[Sequence[ComparedArrangement], Entropy], Iterable[Found]],
    arrangements: Sequence[ComparedArrangement],
    *,
    entropy: Entropy,
    num_trials: SupportsIndex = 10,
    engine: Engine = map,
    on_progress: "Progress | None" = None,
) -> tuple[Measured, ...]:
    """Return results of independent trials, each over all arrangements, run by an engine.

    ``task`` is its name, and the name of its progress. Each trial has its own random words, so that
    results do not depend on the engine.
    """
    number = require_at_least("num_trials", num_trials, 1)
    places = map(entropy.spawn().for_block, range(number))
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for done, looks in enumerate(engine(partial(_tried, trial, arrangements), places), 1):
        for arrangement, look in zip(arrangements, looks, strict=True):
            for measure, numbers in look.items():
                found.setdefault((measure, arrangement.name), []).append(numbers)
        if on_progress is not None:
            on_progress(task[1], done, number)
    return tuple(
        Measured(task[0], measure, arrangement, *zip(*numbers, strict=True))
        for (measure, arrangement), numbers in found.items()
    )


def _tried(trial: Any, arrangements: Any, place: BlockEntropy) -> list[Found]:
    """Return the findings of one trial."""
    return list(trial(arrangements, place.open()))
