"""Running a collection whose reports are shuffled within groups, and the facts about it."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.collection.output import ROWS_STEM, harmless_text, writing
from shuffledp.collection.plan import Plan
from shuffledp.collection.report_files import COLUMN, to_frame
from shuffledp.collection.source.tables import open_source, reading
from shuffledp.core.arrays import Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.facts import (
    DisplacementFacts,
    GroupFacts,
    MallowsFacts,
    Reidentification,
    SubsetPreservation,
)
from shuffledp.groups.grouping import GroupShuffler
from shuffledp.groups.groups import Groups
from shuffledp.groups.preservation import preserved_share
from shuffledp.groups.privacy.reidentification import odds_factor, reidentification_bound
from shuffledp.groups.reference_orders import group_widths, paper_sensitivity
from shuffledp.groups.shuffler import MallowsShuffler

if TYPE_CHECKING:
    from shuffledp.core.profile import LocalProfile

# Sizes of households, say, for which the report gives Theorem 4.2.
_SUBSET_SIZES = (1, 2, 5)
# That many shuffles, in all of which a share stays, show with 95 % confidence that it stays but
# for a chance of 5 %: 0.95^59 < 0.05.
_DRAWS = 59
_LIMITS = {"delta": 0.05, "confidence": 0.95}
# Simulated shuffles of more people than this take longer than their report is worth.
_MOST_SIMULATED = 300_000


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

    To ``rows.csv`` or ``rows.parquet`` in ``folder``: the table's own format, but Parquet where a
    report is a list. Nothing else of the table is written; the answers' column, which would be
    published as it is, is refused. ``ways`` of reading the table as in `open_column`.
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


def group_facts(
    shuffler: GroupShuffler, *, profile: "LocalProfile", entropy: Entropy
) -> GroupFacts:
    """Facts of a report on a shuffle within groups; privacy claims are rounded up.

    The shuffler is one of `for_groups`; ``entropy`` is for simulated shuffles, none of which is
    released.
    """
    groups, alpha = shuffler.groups, shuffler.alpha
    assert groups is not None and alpha is not None  # noqa: S101, PT018  # narrows the types
    sizes = groups.sizes
    many = shuffler.num_users > _MOST_SIMULATED
    draws = [shuffler.draw(entropy) for _ in range(1 if many else _DRAWS)]
    kind: type[GroupFacts] = MallowsFacts
    if isinstance(shuffler, DisplacementShuffler):
        kind, particular = DisplacementFacts, _displacement_facts(shuffler, groups, draws)
    else:
        particular = _mallows_facts(shuffler, groups, draws)
    preservation: tuple[SubsetPreservation, ...] = ()
    if not many:
        largest = groups.group(int(np.argmax(sizes)))  # the first of several
        eta = preserved_share(draws, largest, **_LIMITS)
        named = SubsetPreservation(name="the largest group", size=largest.size, eta=eta, **_LIMITS)
        preservation = (named,)
    return kind(
        description=groups.description,
        num_groups=groups.num_groups,
        smallest_group=int(sizes.min()),
        median_group=int(np.median(sizes)),
        largest_group=int(sizes.max()),
        alpha=alpha,
        odds_factor=odds_factor(alpha),
        reidentification=_reidentification(groups, profile, alpha),
        preservation=preservation,
        **particular,
    )


def _mallows_facts(
    shuffler: MallowsShuffler, groups: Groups, draws: list[Integers]
) -> dict[str, Any]:
    """Return the facts that only a Mallows model has."""
    reference = shuffler.reference
    published = None
    if reference.distance == "kendall":
        published = paper_sensitivity(groups, reference.places)
    return {
        "largest_width": int(group_widths(groups, reference.places).max()),
        "rank_distance": reference.distance,
        "reference_order": reference.name,
        "sensitivity": reference.sensitivity,
        "published_sensitivity": published,
        "orders_tried": reference.tried,
        "theta": shuffler.theta,
        "mean_displacement": _mean_displacement(reference.places[:, None], draws),
    }


def _displacement_facts(
    shuffler: DisplacementShuffler, groups: Groups, draws: list[Integers]
) -> dict[str, Any]:
    """Return the facts that only noise on places has, in the unit of the places."""
    places, crowds = shuffler.places, shuffler.crowds_lower()
    return {
        "unit": places.unit,
        "reference_order": places.name,
        "sensitivity": places.side * places.sensitivity(groups),
        "theta": shuffler.theta / places.side,
        "mean_displacement": places.side * _mean_displacement(places.cells, draws),
        "expected_crowd": tuple(np.quantile(crowds, (0.0, 0.01, 0.5), method="lower").tolist()),
    }


def _mean_displacement(places: Integers, draws: list[Integers]) -> float:
    """Mean displacement of a report in these draws."""
    moved = [places - places[draw] for draw in draws]
    return float(np.mean([np.sqrt((each * each).sum(axis=1)).mean() for each in moved]))


def _reidentification(
    groups: Groups, profile: "LocalProfile", alpha: float
) -> tuple[Reidentification, ...]:
    """Return Theorem 4.2 for those who hide among the fewest, and nothing where it is silent.

    Its proof needs a randomizer whose ratios never exceed e^epsilon0.
    """
    if profile.delta0 > 0.0:
        return ()
    group_size = int(groups.size_protecting().min())
    return tuple(
        Reidentification(
            subset_size=size,
            group_size=group_size,
            most_probable=reidentification_bound(
                group_size=group_size, subset_size=size, epsilon0=profile.epsilon0, alpha=alpha
            ),
        )
        for size in _SUBSET_SIZES
        if 2 * size <= group_size
    )
