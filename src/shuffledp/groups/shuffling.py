"""Shuffles within groups: reports of a run stay near their users; its rows, and facts about it.

*Preservation*, the share of a subset's reports that stays within the subset: a shuffle is (eta,
delta)-preserving for a set S of l users if, with probability at least 1 - delta, at least eta of
the rows of S hold reports of members of S.

It is simulated: the least share that stays in 59 draws of pi is a lower limit of eta for delta =
5 %, at 95 % confidence, whatever the law.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition A.4.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.collection.output import ROWS_STEM, harmless_text, writing
from shuffledp.collection.plan import Plan
from shuffledp.collection.report_files import COLUMN, to_frame
from shuffledp.collection.shuffling import Concealment, Stage
from shuffledp.collection.source.tables import open_source, reading
from shuffledp.collection.uniform_shuffler import InMemoryShuffle
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Reports
from shuffledp.groups import privacy
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.facts import (
    DisplacementFacts,
    GroupFacts,
    MallowsFacts,
    Reidentification,
    amplification_cautions,
)
from shuffledp.groups.grouping import GroupShuffler
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler, target_place_law
from shuffledp.groups.reference_orders import group_widths

# Rarer crowds than about this hardly change the success probability of guesses.
_RAREST_CROWD = 1e-6


# Subset sizes, such as of households, for which the report states Theorem 4.2.
_SUBSET_SIZES = (1, 2, 5)
# A share that stays in all of this many shuffles stays with 95 % confidence except with
# probability 5 %: 0.95^59 < 0.05.
_DRAWS = 59
# For more people simulated shuffles take too long for a report.
_MOST_SIMULATED = 300_000


class _InMemory(ABC):
    """Reports shuffled by a party that knows the owner of each report."""

    __slots__ = ()
    shuffler: GroupShuffler

    def stage(self, *, entropy: Entropy, **_: Any) -> Stage:
        """Return a shuffle in memory, which keeps reports in their order of arrival."""
        return InMemoryShuffle(self.shuffler, entropy)

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, **asked: Any
    ) -> Guarantee:
        """Return the central guarantee of the release."""
        if num_users != self.shuffler.num_users:
            raise DataError(
                f"{num_users:,} people answered and groups were formed of "
                f"{self.shuffler.num_users:,}: give every row an answer, or form groups of those "
                "who answered only"
            )
        bound = self._epsilon(profile, num_users=num_users, delta=delta, **asked)
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)

    def facts(
        self, profile: LocalProfile, _: Guarantee, *, entropy: Entropy, **__: Any
    ) -> GroupFacts | None:
        """Return the facts of a shuffler that knows its groups; privacy claims are rounded up.

        ``entropy`` is for simulated shuffles, none of which is released.
        """
        groups, alpha = self.shuffler.groups, self.shuffler.alpha
        if groups is None or alpha is None:
            return None
        sizes, many = groups.sizes, groups.num_users > _MOST_SIMULATED
        draws = [self.shuffler.draw(entropy) for _ in range(1 if many else _DRAWS)]
        largest = groups.group(int(np.argmax(sizes)))  # the first of several
        return self._facts(
            groups,
            draws,
            description=groups.description,
            num_groups=groups.num_groups,
            smallest_group=int(sizes.min()),
            median_group=int(np.median(sizes)),
            largest_group=int(sizes.max()),
            alpha=alpha,
            odds_factor=privacy.odds_factor(alpha),
            reidentification=_reidentification(groups, profile, alpha),
            preserved=0.0 if many else preserved_share(draws, largest),
        )

    def cautions(
        self, profile: LocalProfile, guarantee: Guarantee, facts: GroupFacts | None
    ) -> tuple[str, ...]:
        """Return warnings about the groups, and about a shuffle that hardly amplifies."""
        if self.shuffler.groups is None or facts is None:
            return ()
        hardly = amplification_cautions(guarantee, profile.epsilon0, facts)
        return (*self.shuffler.groups.cautions(), *hardly)

    def leakage(self) -> Concealment | None:
        """Return the laws that hide the least hidden report; None for a uniform shuffle."""
        return None if self.shuffler.theta == 0.0 else self._concealment()

    @abstractmethod
    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        """Return the bound on the central epsilon of the shuffle."""

    @abstractmethod
    def _facts(self, groups: Groups, draws: list[Integers], **common: Any) -> GroupFacts:
        """Return all facts: ``common`` ones, and ones that only this kind of shuffle has."""

    @abstractmethod
    def _concealment(self) -> Concealment:
        """Return the laws that hide the report of the least hidden person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShuffling(_InMemory):
    """Reports stay near their users: a Mallows permutation of a public reference order.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> from shuffledp.groups import MallowsShuffler, Groups
    >>> ages = list(range(20, 70))
    >>> groups = Groups.from_distance(ages, 2, metric="absolute")
    >>> shuffler = MallowsShuffler.for_groups(groups, 4.0)
    >>> plan = sdp.plan(
    ...     sdp.Categories(["yes", "no"]),
    ...     num_users=50,
    ...     epsilon0=2.0,
    ...     delta=1e-6,
    ...     shuffling=GroupShuffling(shuffler=shuffler),
    ... )
    >>> sdp.run(plan, ["yes", "no"] * 25, seed=1).shuffler
    'mallows'
    """

    name: ClassVar[str] = "mallows"
    remedy: ClassVar[str] = "lower alpha (which mixes reports more)"

    shuffler: MallowsShuffler

    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        theta, distance = self.shuffler.theta, self.shuffler.reference.distance
        return privacy.grouped_epsilon(profile, theta=theta, distance=distance, **asked)

    def _facts(self, groups: Groups, draws: list[Integers], **common: Any) -> MallowsFacts:
        reference = self.shuffler.reference
        return MallowsFacts(
            largest_width=int(group_widths(groups, reference.places).max()),
            rank_distance=reference.distance,
            reference_order=reference.name,
            sensitivity=reference.sensitivity,
            theta=self.shuffler.theta,
            mean_displacement=_mean_displacement(reference.places[:, None], draws),
            **common,
        )

    def _concealment(self) -> Concealment:
        # All places have the same spread under Hamming and Cayley; under Kendall the ends have the
        # least (docs/results/leakage.md).
        return Concealment(places=partial(target_place_law, self.shuffler.model))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisplacementShuffling(_InMemory):
    """Reports stay near their users: each lies at its user's public place plus noise.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> from shuffledp.groups import DisplacementShuffler, Groups
    >>> ages = list(range(20, 70))
    >>> groups = Groups.from_distance(ages, 2, metric="absolute")
    >>> shuffler = DisplacementShuffler.for_groups(groups, 4.0, coordinates=ages)
    >>> plan = sdp.plan(
    ...     sdp.Categories(["yes", "no"]),
    ...     num_users=50,
    ...     epsilon0=2.0,
    ...     delta=1e-6,
    ...     shuffling=DisplacementShuffling(shuffler=shuffler),
    ... )
    >>> sdp.run(plan, ["yes", "no"] * 25, seed=1).shuffler
    'displacement'
    """

    name: ClassVar[str] = "displacement"
    remedy: ClassVar[str] = "lower alpha (which adds more noise to places)"

    shuffler: DisplacementShuffler
    crowds: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowds", self.shuffler.crowds_lower())

    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        # For the user hidden by the fewest others.
        return privacy.displaced_epsilon(profile, expected_crowd=float(self.crowds.min()), **asked)

    def _facts(self, groups: Groups, draws: list[Integers], **common: Any) -> DisplacementFacts:
        places, crowds = self.shuffler.places, self.crowds
        return DisplacementFacts(
            unit=places.unit,
            reference_order=places.name,
            sensitivity=places.side * places.sensitivity(groups),
            theta=self.shuffler.theta / places.side,
            mean_displacement=places.side * _mean_displacement(places.cells, draws),
            expected_crowd=tuple(np.quantile(crowds, (0.0, 0.01, 0.5), method="lower").tolist()),
            **common,
        )

    def _concealment(self) -> Concealment:
        least = float(self.crowds.min())
        return Concealment(crowd=partial(privacy.crowd_with_mean, least, delta=_RAREST_CROWD))


def rows_writer(
    table: str | PathLike[str],
    folder: Path,
    *,
    column: str,
    public: tuple[str, ...],
    setting: Plan,
    **ways: Any,
) -> Callable[[Iterator[Reports]], None]:
    """Return a function that writes reports, in the order of the rows, beside public columns.

    To ``rows.csv`` or ``rows.parquet`` in ``folder``: the table's own format, but Parquet if a
    report is a list. Nothing else of the table is written; the column of true answers is refused.
    ``ways`` of reading the table as in `open_column`.
    """
    import polars as pl

    path = Path(table)
    if column in public:
        raise ParameterError(
            f"keep = {column!r} is the column of answers, which is private: name public columns "
            "only"
        )
    frame = open_source(path, *public, **ways).frame.select(public)
    labels = setting.question.labels if setting.randomizer.name == "k-rr" else None

    def write(stream: Iterator[Reports]) -> None:
        reports = pl.concat([to_frame(each, labels=labels) for each in stream])
        rows = reports.rename({COLUMN: column})
        if public:
            with reading(path.name):
                kept = frame.collect()
            if kept.height != rows.height:
                raise DataError(
                    f"{path.name} changed while it was being read: run again when nothing writes "
                    "to it"
                )
            rows = kept.hstack(rows)
        with writing(folder):
            if path.suffix.lower() in {".parquet", ".pq"} or rows.dtypes[-1].is_nested():
                rows.write_parquet(folder / f"{ROWS_STEM}.parquet")
            else:
                texts = pl.selectors.string() | pl.selectors.enum()
                rows.with_columns(harmless_text(texts)).write_csv(folder / f"{ROWS_STEM}.csv")

    return write


def _mean_displacement(places: Integers, draws: list[Integers]) -> float:
    """Return the mean displacement of a report in these draws."""
    moved = [places - places[draw] for draw in draws]
    return float(np.mean([np.sqrt((each * each).sum(axis=1)).mean() for each in moved]))


def _reidentification(
    groups: Groups, profile: LocalProfile, alpha: float
) -> tuple[Reidentification, ...]:
    """Return Theorem 4.2 for the people hidden among the fewest; empty if it does not apply.

    Its proof needs a randomizer whose likelihood ratios never exceed e^epsilon0.
    """
    if profile.delta0 > 0.0:
        return ()
    group_size = int(groups.size_protecting().min())
    return tuple(
        Reidentification(
            subset_size=size,
            group_size=group_size,
            most_probable=privacy.reidentification_bound(
                group_size=group_size, subset_size=size, epsilon0=profile.epsilon0, alpha=alpha
            ),
        )
        for size in _SUBSET_SIZES
        if 2 * size <= group_size
    )


def preserved_share(draws: Iterable[Integers], places: ArrayLike) -> float:
    """Return the least share of a subset's reports that stayed within it in any of these draws.

    A lower limit, for every law: of 59 draws, at least this share stays with a probability of 95 %,
    at 95 % confidence.
    """
    subset = np.asarray(places)
    stayed = min(int(np.isin(draw[subset], subset).sum()) for draw in draws)
    share = stayed / subset.size
    # Read as the printed decimal, it must not require more members than have stayed.
    is_above = Fraction(repr(share)) * subset.size > stayed
    return math.nextafter(share, 0.0) if is_above else share
