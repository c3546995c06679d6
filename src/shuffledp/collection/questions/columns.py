"""Several columns of answers at once: shares in each, and cross-tables of pairs of columns."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import categories, question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.checks import set_fields
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.cross_tables import ColumnEstimates, Part, estimate_columns
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import simultaneous_confidence
from shuffledp.estimation.post_processing import clip
from shuffledp.randomizers.parts import AllParts, Parts, SampledParts

if TYPE_CHECKING:
    import polars as pl

#: Largest number of bins of all parts together, which noise and the size of tables grow with.
MOST_BINS = 100_000

CONSISTENT = "consistent"


@dataclass(frozen=True, slots=True, init=False)
class Columns(question.Shares):
    """Each user has one answer in each of several columns; shares and cross-tables are asked for.

    Parameters
    ----------
    domains : mapping of str to iterable
        The possible answers of each column by its name, at least two of each.
    pairs : "all", or iterable of (str, str), optional
        Pairs of columns whose cross-tables are asked for; none by default.

    Raises
    ------
    DomainError
        If a column has fewer than two answers, or an answer twice; if a name is no text, or there
        are too many cells.
    ParameterError
        If there is no column, or a pair is not two different columns, or is given twice.

    Notes
    -----
    Without dummies each user reports on one *part*, drawn in private: a pair's cell, or the answer
    in a column that is in no pair. With dummies each user reports on every part.

    Examples
    --------
    >>> asked = Columns({"age": ["young", "old"], "vote": ["yes", "no"]}, pairs="all")
    >>> asked.sizes, asked.labels[2], asked.labels[4]
    ((4,), 'vote=yes', 'age=young & vote=yes')
    """

    kind: ClassVar[str] = "columns"
    checked_by: ClassVar[tuple[str, ...]] = ("domains", "pairs")
    expected_for: ClassVar[str] = "root mean square over all bins"

    domains: tuple[tuple[str, tuple[str, ...]], ...]
    pairs: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]

    def __init__(self, domains: Any, *, pairs: str | Iterable[Iterable[str]] | None = None) -> None:
        if not isinstance(domains, Mapping) or not domains:
            raise ParameterError(
                f"domains = {domains!r} names no answers: give the possible ones of each column, "
                "such as {'age': ['young', 'old'], 'vote': ['yes', 'no']}"
            )
        spelt.require_text("name in domains", *domains)
        listed = {
            name: question.checked_answers(domain, f"domain of column {name!r}", "domains=...")
            for name, domain in domains.items()
        }
        chosen = _checked_pairs(listed, pairs)
        set_fields(self, domains=tuple(listed.items()), pairs=chosen)
        if (number := sum(self.sizes)) > MOST_BINS:
            raise DomainError(
                f"columns and pairs have {number:,} cells in all, above {MOST_BINS:,}: "
                f"{_pairs_that_do(listed, chosen)}; or group rare answers"
            )
        margins = [f"{name}={label}" for name, labels in listed.items() for label in labels]
        cells = [
            f"{one}={label} & {other}={each}"
            for one, other in chosen
            for label in listed[one]
            for each in listed[other]
        ]
        if repeated := [each for each, n in Counter([*margins, *cells]).items() if n > 1]:
            raise DomainError(
                f"{repeated[0]!r} would label two shares, since labels are written column=answer: "
                "rename a column or an answer that contains '=' or ' & '"
            )
        set_fields(self, labels=spelt.checked_domain((*margins, *cells), "labels"))

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> "Columns":
        """Return the question that `to_json_dict` wrote."""
        made = cls(dict(particulars["domains"]), pairs=particulars["pairs"])
        if made.labels != tuple(labels):
            raise DomainError("labels are not those of the columns and pairs: write them anew")
        return made

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(dict(self.domains))

    @property
    def num_margins(self) -> int:
        """Number of labels that are answers in one column; they come first."""
        return sum(len(labels) for _, labels in self.domains)

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """Columns of each part: columns that are in no pair, then the pairs."""
        paired = {name for pair in self.pairs for name in pair}
        return (*((name,) for name in self.table_columns if name not in paired), *self.pairs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each part."""
        size_of = {name: len(labels) for name, labels in self.domains}
        return tuple(int(np.prod([size_of[name] for name in part])) for part in self.parts)

    @property
    def no_values(self) -> NDArray[np.int64]:
        """Values of no users."""
        return np.empty((0, len(self.sizes)), dtype=np.int64)

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity: replacing one value changes two counts of each part by one."""
        return 2.0 * len(self.sizes)

    @property
    def expected_spread(self) -> float:
        """Variance of the share of a bin that one user in k_l has, averaged over all bins."""
        return sum(1.0 - 1.0 / size for size in self.sizes) / sum(self.sizes)

    def candidates(self) -> question.Candidates:
        """Return the randomizer that reports one part of the value, drawn at random."""
        return question.candidates_of(
            {SampledParts.prefix: SampledParts}, sizes=self.sizes, tied=self._tied
        )

    @property
    def _tied(self) -> tuple[int, ...]:
        """Pairs in which three rows do not all differ, if two of them differ in every part.

        A column of two answers tells one of three rows from the two others: a pair of such columns
        tells all of them apart unless both tell the same one, here the second.
        """
        told: dict[str, int] = {}
        for name, labels in self.domains:
            near = {told.get(each) for pair in self.pairs if name in pair for each in pair}
            if len(labels) == 2:
                told[name] = next((row for row in (0, 2) if row not in near), 1)
        same = (len({told.get(name, name) for name in part}) < len(part) for part in self.parts)
        return tuple(part for part, is_same in enumerate(same) if is_same)

    def dummy_candidates(self) -> question.Candidates:
        """Return the randomizer that reports every part."""
        return question.candidates_of({AllParts.prefix: AllParts}, sizes=self.sizes)

    def expected_error(
        self, randomizer: Parts, num_users: int, dummies: question.Laws = ()
    ) -> float:
        """Return the standard error of a share, root mean square over the bins of all parts.

        The variance is a concave function of the share, and the shares of a part sum to one: the
        variance at 1/k_l in every bin is an upper bound on its mean.
        """
        errors = (
            size * randomizer.bin_error(part, 1.0 / size, num_users, dummies) ** 2
            for part, size in enumerate(self.sizes)
        )
        return math.sqrt(sum(errors) / sum(self.sizes))

    def frequent_error(
        self,
        randomizer: Parts,
        num_users: int,
        frequency: float | None = None,
        dummies: question.Laws = (),
    ) -> float | None:
        """Return the largest standard error, over all parts, of a share of the given size.

        Over all sizes if None: the variance is concave, and evaluated at 101 of them.
        """
        shares = np.linspace(0.0, 1.0, 101).tolist() if frequency is None else [frequency]
        return max(
            randomizer.bin_error(part, share, num_users, dummies)
            for share in shares
            for part in range(len(self.sizes))
        )

    def column(self, values: Any, *, missing: str = "error") -> columns.Column:
        """Return columns in memory, by name in a mapping or data frame, checked."""
        if missing == "category":
            lacking = [n for n, labels in self.domains if columns.MISSING_LABEL not in labels]
            if lacking:
                raise DomainError(
                    "missing='category' counts rows without an answer as 'missing', which the "
                    f"domain of {lacking[0]!r} lacks: list it there, and plan again"
                )
        return question.Shares.column(self, values, missing=missing)

    def read(self, source: tables.Source) -> columns.Column:
        """Return columns of answers, checked; rows of codes, one for each part."""
        return _read(source, dict(self.domains), self.pairs)

    def value_of_one(self, answer: Any) -> NDArray[np.int64]:
        """Return the codes of one user's parts, shape (1, L).

        ``answer`` maps each column to its answer, or is a list of texts ``column=answer``.
        """
        if spelt.is_gap(answer):
            raise single.no_answer()
        if not isinstance(answer, Mapping):
            try:
                pairs = [text.partition("=") for text in tables.listed(answer) if text is not None]
            except (TypeError, AttributeError):
                raise DataError(
                    "the answers are of no columns: give a mapping, or texts like age=young"
                ) from None
            answer = {spelt.formed(name): text for name, _, text in pairs}
            if len(answer) < len(pairs):
                raise DataError("the answers name a column twice: give one answer of each")
        if answer.keys() != set(self.table_columns):
            raise DataError(
                f"the answers are not one of each of {', '.join(self.table_columns)}: give these"
            )
        codes = {}
        for name, domain in self.domains:
            place = single.place_of(single.label_of_one(answer[name], domain), domain)
            codes[name] = np.array([place], dtype=np.int64)
        return _rows(codes, self)

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for steps except consistent, which comes first, and clip."""
        if list(steps) not in ([], [CONSISTENT], ["clip"], [CONSISTENT, "clip"]):
            raise ParameterError(
                f"post-processing {', '.join(steps)} is not for columns: of these only consistent "
                "and clip apply, in this order"
            )

    def estimate(
        self, randomizer: Any, aggregate: Counts, options: question.EstimateOptions
    ) -> ColumnEstimates:
        """Return shares in each column, then in each pair's cells, and the pairs' associations."""
        self.require_post_processing(options.post_processing)
        confidence, size = options.confidence, len(self.labels)
        if options.simultaneous:
            confidence = simultaneous_confidence(confidence, size)
        found = randomizer.estimate(aggregate, confidence=confidence)
        parts = self._estimated_parts(randomizer, aggregate, found)
        is_consistent = CONSISTENT in options.post_processing
        estimates = replace(
            estimate_columns(found, parts, self.table_columns, is_consistent=is_consistent),
            confidence=options.confidence,
            is_simultaneous=options.simultaneous,
        )
        return clip(estimates) if "clip" in options.post_processing else estimates

    def _estimated_parts(
        self, randomizer: Parts, aggregate: Counts, found: FrequencyEstimates
    ) -> list[Part]:
        """Return the estimated frequencies of each part with the law of its reports."""
        domains, number = dict(self.domains), found.num_users
        is_sampled, parts = randomizer.is_sampled, []
        for place, (first, *rest) in enumerate(self.parts):
            bins = randomizer.part_slices[place]
            shape = len(domains[first]), len(domains[rest[0]]) if rest else 1
            laws = aggregate.dummies[place :: len(self.parts)]
            parts.append(
                Part(
                    names=(first, "".join(rest)),
                    frequency=found.frequency[bins].reshape(shape),
                    chances=randomizer.levels[place].support_probabilities,
                    num_reports=int(aggregate.support[bins].sum()) if is_sampled else number,
                    num_users=number,
                    dummy_variance=sum(law.variance for law in laws),
                    is_sampled=is_sampled,
                )
            )
        return parts

    def shift_by_one(
        self, randomizer: Parts, num_users: int, counts: Counts | None = None
    ) -> NDArray[np.float64]:
        """Return the largest change of each share; an upper bound for columns in several pairs.

        For sampled parts it is exact once the users of each part are counted; before, all parts are
        taken to have equally many users. The weights of the parts sum to one, so that a column
        changes by no more than in one of its parts.
        """
        each = randomizer.shift_by_one(num_users, counts)
        held = list(zip(self.parts, randomizer.part_slices, strict=True))
        margins = [
            max(each[bins.start] for names, bins in held if name in names)
            for name, labels in self.domains
            for _ in labels
        ]
        return np.concatenate([margins, *(each[bins] for names, bins in held if len(names) > 1)])

    def worst_report(self, randomizer: Parts, place: int) -> NDArray[Any]:
        """Return a user's reports that raise an estimate most: in each part with its column."""
        answers = [(n, code) for n, labels in self.domains for code in range(len(labels))]
        if place >= len(answers):  # cells come last, like the pairs
            return randomizer.report_for(randomizer.num_bins - len(self.labels) + place)
        name, code = answers[place]
        codes = {each: np.array([code if each == name else 0]) for each in self.table_columns}
        starts = np.array([bins.start for bins in randomizer.part_slices])
        bins = _rows(codes, self)[0] + starts
        if randomizer.is_sampled:
            bins = bins[[next(i for i, names in enumerate(self.parts) if name in names)]]
        report: NDArray[Any] = randomizer.report_columns().data[bins]
        return report

    def describe(self) -> str:
        """Return the number of columns, and of pairs if there are any."""
        counts = {"column": len(self.domains), "pair": len(self.pairs)}
        return ", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items() if n)

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, the answers of each column, and the pairs."""
        domains = [[name, list(labels)] for name, labels in self.domains]  # JSON may be sorted
        return {"kind": self.kind, "domains": domains, "pairs": [list(each) for each in self.pairs]}


@dataclass(frozen=True, slots=True)
class UnlistedColumns:
    """Columns of a table whose possible answers are read from it, with a caution."""

    table_columns: tuple[str, ...]
    pairs: str | tuple[tuple[str, str], ...] | None = None
    reads: ClassVar[tuple[str, ...]] = ("missing",)

    def __post_init__(self) -> None:
        _require_different(self.table_columns)

    def read(self, source: tables.Source) -> columns.Column:
        """Return columns of answers, checked for the question with the lists that were found."""
        listed = {
            name: categories.discovered(replace(source, names=(name,)))
            for name in self.table_columns
        }
        pairs = _checked_pairs(listed, self.pairs)
        column = _read(source, listed, pairs)
        caution = categories.WAS_READ.format("lists of answers were")
        return replace(column, cautions=(caution, *column.cautions))


def read_domains(path: str | PathLike[str], names: Sequence[str]) -> dict[str, list[object]]:
    """Return the possible answers of columns from a JSON file that lists them by column."""
    _require_different(names)
    try:
        written = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read the domains from {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict) or not all(isinstance(e, list) for e in written.values()):
        raise DataError(
            f'{path} is no JSON object with a list of answers for each column: write {{"age": '
            '["young", "old"], "vote": ["yes", "no"]}'
        )
    if lacking := [name for name in names if name not in written]:
        raise DataError(f"{path} lists no answers of column {lacking[0]!r}: add them")
    return {name: written[name] for name in names}


def _require_different(names: Sequence[str]) -> None:
    """Raise `ParameterError` if a column is named twice."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ParameterError(f"columns names {twice[0]!r} twice: name each column once")


def _read(
    source: tables.Source,
    listed: Mapping[str, tuple[str, ...]],
    pairs: tuple[tuple[str, str], ...],
) -> columns.Column:
    """Check columns of answers; rows of codes, int64, one for each part."""
    coded = {
        name: categories.coding(
            replace(source, names=(name,)), labels, where=f" of column {name!r}"
        )
        for name, labels in listed.items()
    }
    asked = Columns({name: each.labels for name, each in coded.items()}, pairs=pairs)

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        found = [each.decode(batch[name].to_numpy()) for name, each in coded.items()]
        codes = {name: each[0].astype(np.int64) for name, each in zip(coded, found, strict=True)}
        is_missing = np.any([each[1] for each in found], axis=0)
        return _rows(codes, asked), is_missing, *(each[2] for each in found)

    return columns.survey(
        source,
        {name: each.place for name, each in coded.items()},
        decode,
        *(each.fault for each in coded.values()),
        question=asked,
    )


def _rows(codes: Mapping[str, NDArray[np.int64]], asked: Columns) -> NDArray[np.int64]:
    """Return the codes of all parts, shape (n, L), made from the codes of all columns."""
    size_of = {name: len(labels) for name, labels in asked.domains}
    found = [
        codes[first] if not rest else codes[first] * size_of[rest[0]] + codes[rest[0]]
        for first, *rest in asked.parts
    ]
    return np.stack(found, axis=1)


def _checked_pairs(
    listed: Mapping[str, Any], pairs: str | Iterable[Iterable[str]] | None
) -> tuple[tuple[str, str], ...]:
    """Return the pairs, two different columns each."""
    if pairs == "all":
        return tuple(combinations(listed, 2))
    if isinstance(pairs, str):
        raise ParameterError(f"pairs = {pairs!r}: give 'all', or pairs like [('age', 'vote')]")
    chosen: list[tuple[str, str]] = []
    for pair in pairs or ():
        names = tuple(pair)
        if len(set(names)) != 2 or len(names) != 2 or not listed.keys() >= set(names):
            known = ", ".join(listed)
            raise ParameterError(f"pairs has {names}: give two different ones of {known}")
        if {frozenset(names)} & {frozenset(each) for each in chosen}:
            raise ParameterError(f"pairs has {names[0]} and {names[1]} twice: give each pair once")
        chosen.append((names[0], names[1]))
    return tuple(chosen)


def _pairs_that_do(listed: Mapping[str, Any], pairs: Iterable[tuple[str, str]]) -> str:
    """Return advice: the pairs with the fewest cells, up to the limit."""
    by_size = sorted(pairs, key=lambda pair: len(listed[pair[0]]) * len(listed[pair[1]]))
    left, found = MOST_BINS - sum(map(len, listed.values())), []
    for pair in by_size:
        left -= len(listed[pair[0]]) * len(listed[pair[1]])
        if left < 0:
            break
        found.append(pair)
    return f"pairs = {_spelt(found)} would do" if found else "ask for no pairs"


def _spelt(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs as the command line takes them, at most ten."""
    shown = ",".join(":".join(pair) for pair in pairs[:10])
    return shown + ",..." * (len(pairs) > 10)
