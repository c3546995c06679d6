"""What is allowed in monitoring but should make a reader think twice, one sentence each."""

# With a larger standard error, relative to the users, a 95 % interval is wider than [0, 1].
_USELESS_SHARE = 0.25

# Beyond this local loss a report is as good as the truth.
_BARE = 10.0


def noise_cautions(worst_standard_error: float, num_users: int) -> tuple[str, ...]:
    """Return what to say where the noise drowns the counts.

    Examples
    --------
    >>> noise_cautions(3.0, 100)
    ()
    """
    if worst_standard_error <= _USELESS_SHARE * num_users:
        return ()
    return (
        f"The standard error reaches {worst_standard_error:,.0f} of {num_users:,} users, so that "
        "the noise drowns every count: ask for a larger epsilon0, fewer periods or changes, or "
        "more users.",
    )


def local_cautions(epsilon0: float) -> tuple[str, ...]:
    """Return what to say where a user's own reports are hardly private.

    Examples
    --------
    >>> local_cautions(2.0)
    ()
    """
    if epsilon0 <= _BARE:
        return ()
    return (
        f"epsilon0 = {epsilon0:.4g} hides next to nothing from whoever sees the reports before the "
        "shuffler: only the shuffler makes this private.",
    )


def limit_cautions(num_ignored: int, num_limited: int, max_changes: int) -> tuple[str, ...]:
    """Return what to say where changes were ignored.

    Examples
    --------
    >>> limit_cautions(0, 0, 4)
    ()
    """
    if not num_ignored:
        return ()
    return (
        f"Changes were ignored, {num_ignored:,} in all, of {num_limited:,} of the users, who had "
        f"used up their max_changes = {max_changes:,}: their last value that was followed is "
        "counted instead, so the estimates are biased by at most that many users. Their privacy "
        "is not affected.",
    )


def late_cautions(num_late: int, num_first: int) -> tuple[str, ...]:
    """Return what to say where users joined late.

    Examples
    --------
    >>> late_cautions(0, 100)
    ()
    """
    if not num_late:
        return ()
    return (
        f"Joined after the first period: {num_late:,} of the users. What newcomers report may give "
        f"away at which level, so the central guarantee counts on the {num_first:,} users of the "
        "first period only, and on those at one level.",
    )
