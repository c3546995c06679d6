"""Made-up tables of histories, one row a change, for tests and benchmarks of monitoring."""

import itertools

import numpy as np
import polars as pl

from shuffledp.core.entropy import Entropy


def outage(num_users, periods, *, max_changes=4, seed=1):
    """Booleans: people switch on; in the middle a third lose it within two periods, for a while."""
    rng = Entropy.from_seed(seed).generator()
    centre, event = periods / 4, periods // 2 + 1
    start = np.maximum(rng.normal(centre, periods / 8, num_users).astype(np.int64), 1)
    start[rng.random(num_users) < 0.2] = periods + 1
    end = start + rng.geometric(1 / periods, num_users)
    off = event + rng.integers(0, 2, num_users)
    back = off + rng.geometric(min(15 / periods, 1.0), num_users)
    is_hit = (start < event) & (end > event + 1) & (rng.random(num_users) < 1 / 3)
    returns = is_hit & (back < end)
    times = np.full((num_users, 4), periods + 1)
    times[:, 0], times[:, 1] = start, np.where(is_hit, off, end)
    times[returns, 2], times[returns, 3] = back[returns], end[returns]
    users, slots = np.nonzero(times[:, :max_changes] <= periods)
    late = np.flatnonzero(start > 1)
    return pl.DataFrame(
        {
            "user": 1 + np.concatenate([late, users]),
            "time": np.concatenate([np.ones_like(late), times[users, slots]]),
            "value": np.concatenate([np.zeros(late.size, dtype=bool), slots % 2 == 0]),
        }
    ).sort("time", "user", maintain_order=True)


def versions(num_users, periods, labels, *, seed=1):
    """One of several versions, released one after the other and installed sooner or later."""
    rng = Entropy.from_seed(seed).generator()
    releases = np.arange(len(labels)) * periods // len(labels)
    waits = rng.geometric(min(2 * len(labels) / periods, 1.0), (num_users, len(labels)))
    times = releases + waits
    times[:, 0] = 1
    newer = np.minimum.accumulate(times[:, ::-1], axis=1)[:, ::-1]
    is_used = times <= periods
    is_used[:, :-1] &= times[:, :-1] < newer[:, 1:]
    users, slots = np.nonzero(is_used)
    table = {"user": 1 + users, "time": times[users, slots], "value": np.array(labels)[slots]}
    return pl.DataFrame(table).sort("time", "user")


def dense(events, periods):
    """Yield for each period a row for each user: the same histories as tables sorted by time."""
    users = np.arange(1, events["user"].max() + 1)
    now = np.zeros(users.size, dtype=np.bool_)
    told = events.sort("time")
    edges = np.searchsorted(told["time"].to_numpy(), np.arange(1, periods + 2))
    for time, (start, end) in enumerate(itertools.pairwise(edges), 1):
        changes = told[int(start) : int(end)]
        now[changes["user"].to_numpy() - 1] = changes["value"].to_numpy()
        yield pl.DataFrame({"user": users, "time": np.full(users.size, time), "value": now.copy()})
