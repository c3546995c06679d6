"""Made-up histories of many users, as a Parquet file: for demonstrations, tests and benchmarks."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.output import whole_file
from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.histories.history_scenarios import NEVER, Scenario, scenario_of
from shuffledp.monitoring.histories.history_times import MOST_PERIODS

if TYPE_CHECKING:
    import polars as pl

_USERS_A_CHUNK = 1 << 17  # fixed, so that a seeded file does not depend on the machine
_ROWS_A_FRAME = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedHistories:
    """What a file of made-up histories holds.

    Parameters
    ----------
    path : Path
        The file: columns ``user`` (from 1), ``time`` (periods from 1, or dates) and ``value``.
    scenario : str
        Name of the scenario.
    num_users, periods, num_rows : int
        Its size.
    max_changes : int
        The most changes of a user, but for those of ``num_overflowing``.
    num_overflowing : int
        Number of users that change more often than ``max_changes``.
    domain : tuple of str
        The possible values; empty for booleans.
    """

    path: Path
    scenario: str
    num_users: int
    periods: int
    num_rows: int
    max_changes: int
    num_overflowing: int
    domain: tuple[str, ...]


def generate_histories(  # noqa: PLR0913  # one keyword an option
    path: str | PathLike[str],
    *,
    num_users: int,
    periods: int,
    scenario: str = "outage",
    max_changes: int | None = None,
    overflow: float = 0.0,
    dense: bool = False,
    start: dt.date | None = None,
    seed: SupportsIndex | None = None,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> GeneratedHistories:
    """Write a table of histories: who has which value from which period on.

    Parameters
    ----------
    path : path
        The Parquet file to write.
    num_users : int
        At least 1.
    periods : int
        At least 1, at most 2^20.
    scenario : {"adoption", "travel", "outage", "versions"}
        What happens; see ``history_scenarios``.
    max_changes : int, optional
        The most changes of a user, counting the first value; further ones do not happen. By
        default what the scenario makes.
    overflow : float
        Share of users, in [0, 1], that change more often than ``max_changes``: about twice as
        often, at arbitrary times.
    dense : bool
        Write a row for each user and period, sorted by time; otherwise one for each user at
        period 1 and then one for each change, sorted by time.
    start : date, optional
        Write dates, one day a period, and this as the first; otherwise the numbers of periods.
    seed : int, optional
        For the same file each time.
    overwrite : bool
        Replace an existing file.
    on_progress : callable, optional
        Called with the stage, the users or rows done, and those in total.

    Returns
    -------
    GeneratedHistories
        What was written.

    Raises
    ------
    ParameterError
        If a number is out of range, or there is no such scenario.
    OutputError
        If the file exists, or cannot be written.

    Notes
    -----
    Every user has a row at period 1, since a user without any row is not in the table.

    Cost: 40 bytes of memory a change; about a second for a million users, and as much for each
    hundred million dense rows.
    """
    law = scenario_of(scenario)
    size = _Size.checked(num_users, periods, max_changes, overflow, law)
    target = Path(path)
    if target.suffix.lower() not in {".parquet", ".pq"}:
        raise ParameterError(f"path = {str(target)!r} does not end in .parquet: it will be Parquet")
    _require_free(target, overwrite=overwrite)
    report = on_progress or no_progress
    changes = _draw_changes(law, size, Entropy.choose(seed), report)
    frames = _dense_frames(changes, size, law) if dense else _event_frames(changes, law)
    num_rows = _write(frames, target, start, overwrite=overwrite, report=report)
    return GeneratedHistories(
        path=target,
        scenario=law.name,
        num_users=size.num_users,
        periods=size.periods,
        num_rows=num_rows,
        max_changes=size.max_changes,
        num_overflowing=size.num_overflowing,
        domain=law.domain,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """Checked numbers."""

    num_users: int
    periods: int
    max_changes: int
    num_overflowing: int

    @classmethod
    def checked(
        cls, num_users: int, periods: int, max_changes: int | None, overflow: float, law: Scenario
    ) -> "_Size":
        users = require_at_least("num_users", num_users, 1)
        length = require_at_least("periods", periods, 1)
        if users > NEVER or length > MOST_PERIODS:
            raise ParameterError(
                f"num_users = {users:,} and periods = {length:,}: at most {NEVER:,} users and "
                f"{MOST_PERIODS:,} periods can be written"
            )
        share = require_finite("overflow", overflow)
        if not 0.0 <= share <= 1.0:
            raise ParameterError(f"overflow = {share:g} is not in [0, 1]: it is a share of users")
        given = law.max_changes if max_changes is None else max_changes
        most = min(require_at_least("max_changes", given, 1), length)
        if share > 0.0 and most >= length:
            raise ParameterError(
                f"overflow = {share:g} with max_changes = {most} of {length} periods: nobody can "
                "change more often; give more periods or a smaller max_changes"
            )
        return cls(
            num_users=users,
            periods=length,
            max_changes=most,
            num_overflowing=round(share * users),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """All rows of the table of changes, sorted by period and user (from 0)."""

    users: NDArray[np.int32]
    periods: NDArray[np.int32]
    values: NDArray[np.int8]


def _draw_changes(law: Scenario, size: _Size, entropy: Entropy, report: Progress) -> _Changes:
    """Draw what happens to all users, chunk by chunk."""
    chunks = []
    for start in range(0, size.num_users, _USERS_A_CHUNK):
        count = min(_USERS_A_CHUNK, size.num_users - start)
        rng = entropy.spawn().generator()
        # Spread evenly over all users: user i is one where the rounded line i * share rises.
        edges = np.arange(start, start + count + 1) * size.num_overflowing // size.num_users
        is_over = np.diff(edges) > 0
        chunks.append(_chunk(law, size, rng, is_over, start))
        report("drawing histories", start + count, size.num_users)
    users, periods, values = (
        np.concatenate([chunk[column] for chunk in chunks]) for column in range(3)
    )
    order = np.argsort(periods, kind="stable")
    return _Changes(users=users[order], periods=periods[order], values=values[order])


def _chunk(
    law: Scenario,
    size: _Size,
    rng: np.random.Generator,
    is_over: NDArray[np.bool_],
    first_user: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
    """Return users, periods and values of the rows of some users."""
    times = law.draw(rng, is_over.size, size.periods)
    values = np.broadcast_to(_values_of_slots(law, times.shape[1]), times.shape)
    # Slots that do not happen take no place among the first max_changes.
    rank = np.cumsum(times != NEVER, axis=1)
    times = np.where(rank <= size.max_changes, times, NEVER)
    times[is_over] = NEVER
    parts = [_rows(times, values), _overflow_rows(law, size, rng, np.flatnonzero(is_over))]
    if law.is_boolean:  # false at period 1, for all who are not true by then
        begins_true = np.zeros(is_over.size, dtype=np.bool_)
        for users, periods, _ in parts:
            begins_true[users[periods == 1]] = True
        late = np.flatnonzero(~begins_true).astype(np.int32)
        parts.append((late, np.ones_like(late), np.zeros(late.size, dtype=np.int8)))
    users, periods, codes = (
        np.concatenate([part[column] for part in parts]) for column in (0, 1, 2)
    )
    order = np.argsort(users, kind="stable")
    return users[order] + np.int32(first_user), periods[order], codes[order]


def _values_of_slots(law: Scenario, num_slots: int) -> NDArray[np.int8]:
    """Return the value that each change leads to."""
    slots = np.arange(num_slots, dtype=np.int8)
    return (1 - slots % 2).astype(np.int8) if law.is_boolean else slots


def _rows(
    times: NDArray[np.int32], values: NDArray[np.int8]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
    """Return the changes that do happen, user by user."""
    users, slots = np.nonzero(times != NEVER)
    return users.astype(np.int32), times[users, slots], values[users, slots]


def _overflow_rows(
    law: Scenario, size: _Size, rng: np.random.Generator, users: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
    """Draw users that change more often than they should, at different periods."""
    count = min(2 * size.max_changes + 1, size.periods)
    free = np.sort(rng.integers(1, size.periods - count + 2, (users.size, count)), axis=1)
    times = (free + np.arange(count)).astype(np.int32)
    steps = np.arange(count)
    if law.is_boolean:
        values = np.broadcast_to(1 - steps % 2, times.shape).astype(np.int8)
    else:
        times[:, 0] = 1  # everybody begins with a value
        first = rng.integers(0, len(law.domain), (users.size, 1))
        values = ((first + steps) % len(law.domain)).astype(np.int8)
    row, periods, codes = _rows(times, values)
    return users.astype(np.int32)[row], periods, codes


def _event_frames(changes: _Changes, law: Scenario) -> Iterator["pl.DataFrame"]:
    """Yield the table of changes in pieces."""
    for start in range(0, changes.users.size, _ROWS_A_FRAME):
        piece = slice(start, start + _ROWS_A_FRAME)
        yield _frame(changes.users[piece], changes.periods[piece], changes.values[piece], law)


def _dense_frames(changes: _Changes, size: _Size, law: Scenario) -> Iterator["pl.DataFrame"]:
    """Yield a row for each user and period, some periods at a time."""
    users = np.arange(size.num_users, dtype=np.int32)
    now = np.zeros(size.num_users, dtype=np.int8)
    at_once = max(1, _ROWS_A_FRAME // size.num_users)
    edges = np.searchsorted(changes.periods, np.arange(1, size.periods + 2))
    for first in range(1, size.periods + 1, at_once):
        block = range(first, min(first + at_once, size.periods + 1))
        states = []
        for period in block:
            piece = slice(edges[period - 1], edges[period])
            now[changes.users[piece]] = changes.values[piece]
            states.append(now.copy())
        periods = np.repeat(np.asarray(block, dtype=np.int32), size.num_users)
        yield _frame(np.tile(users, len(block)), periods, np.concatenate(states), law)


def _frame(
    users: NDArray[np.int32], periods: NDArray[np.int32], codes: NDArray[np.int8], law: Scenario
) -> "pl.DataFrame":
    """Return rows as they are written."""
    import polars as pl

    if law.is_boolean:
        values = pl.Series("value", codes == 1)
    else:
        labels = pl.Series("value", law.domain, dtype=pl.String)
        values = labels.gather(codes.astype(np.uint32))
    return pl.DataFrame({"user": users + 1, "time": periods, "value": values})


def _require_free(target: Path, *, overwrite: bool) -> None:
    """Raise unless the file may be written."""
    if target.is_dir():
        raise OutputError(f"{target} is a folder: give the name of a file")
    if target.exists() and not overwrite:
        raise OutputError(f"{target} exists: choose another name, or pass overwrite (--overwrite)")


def _write(
    frames: Iterator["pl.DataFrame"],
    target: Path,
    start: dt.date | None,
    *,
    overwrite: bool,
    report: Progress,
) -> int:
    """Write frames to a file that appears complete or not at all; return the number of rows."""
    import polars as pl
    from polars.io.plugins import register_io_source

    first = _dated(next(frames), start)
    num_rows = 0

    def counted(*_: object) -> Iterator["pl.DataFrame"]:
        nonlocal num_rows
        frame: pl.DataFrame | None = first
        while frame is not None:
            num_rows += frame.height
            report("writing histories", num_rows, None)
            yield frame
            following = next(frames, None)
            frame = None if following is None else _dated(following, start)

    with whole_file(target) as partial:
        register_io_source(counted, schema=first.schema).sink_parquet(partial)
        _require_free(target, overwrite=overwrite)  # it may have appeared meanwhile
    report("writing histories", num_rows, num_rows)
    return num_rows


def _dated(frame: "pl.DataFrame", start: dt.date | None) -> "pl.DataFrame":
    """Return a frame with dates in place of periods, if there is a first date."""
    import polars as pl

    if start is None:
        return frame
    day = pl.lit(start) + pl.duration(days=pl.col("time") - 1)
    return frame.with_columns(day.cast(pl.Date).alias("time"))
