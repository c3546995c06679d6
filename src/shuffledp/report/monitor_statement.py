"""The privacy statement of a monitored statistic in plain words.

Read `shuffledp.report.statement` on why "the odds change by at most a factor, but for an
exception of probability delta" says exactly what (epsilon, delta) means.
"""

import math

from shuffledp.core.bound import Bound
from shuffledp.report.formatting import (
    best_guess,
    brief,
    odds_factor,
    one_in,
    rounded,
)
from shuffledp.report.monitor_view import MonitorView, counted

SEEDED = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private."
)

Paragraph = tuple[str, str]


def statement_paragraphs(view: MonitorView) -> list[Paragraph]:
    """Return titles and texts; every number is rounded to the safe side."""
    seeded = [("This was a simulation.", SEEDED)] if view.is_seeded else []
    known = [_known_truth(view)] if view.is_truth_known else []
    return [
        *seeded,
        _what_reports_reveal(view),
        _exception(view),
        _local(view),
        _whole_history(view),
        *known,
        _more_changes(view),
        (
            "What it does not promise.",
            "It does not hide what is true of a group: the estimates can tell something about a "
            "person through the people who resemble them. It does not hide that somebody takes "
            "part. And it covers these periods only: whoever is monitored again, or asked "
            "something else, spends more, and the losses add up.",
        ),
    ]


def statement_facts(view: MonitorView) -> list[tuple[str, str]]:
    """Return the central guarantee, how far it is from what is unavoidable, then the local one."""
    central, local = view.central, view.local
    unavoidable, gap = "not known", "not known"
    if central.lower is not None and central.gap is not None:
        unavoidable = f"epsilon >= {rounded(central.lower, up=False)}"
        gap = f"{100.0 * central.gap:.1f}%"
    return [
        ("Safe to publish", f"{safe_epsilon(central)} at delta = {brief(view.delta)}"),
        ("Proved unavoidable", unavoidable),
        ("Gap", gap),
        ("Method", central.method),
        ("Source", central.source),
        ("Local", f"epsilon0 <= {rounded(local.upper, up=True)}, {local.method}"),
        ("Source", local.source),
    ]


def safe_epsilon(bound: Bound) -> str:
    """Return what is safe to publish."""
    return f"epsilon <= {rounded(bound.upper, up=True)}"


def _what_reports_reveal(view: MonitorView) -> Paragraph:
    """Say what the central epsilon means for a whole history."""
    title = "What the reports reveal."
    levels = "" if view.is_level_hidden else ", and who reports at which level,"
    adversary = (
        f"An adversary who sees the shuffled reports of all {view.num_periods:,} periods{levels} "
        "and knows everybody else's history"
    )
    epsilon = view.central.upper
    if math.isinf(epsilon):
        return title, f"{adversary} may learn a person's history: no finite epsilon is proved."
    text = (
        f"{adversary} faces a limit on what it can learn about any one person. Whatever two "
        f"histories of at most {counted(view.max_changes, 'change')} it weighs against each "
        "other, all reports together change the odds between them by a factor of at most "
        f"{odds_factor(epsilon)}, which is e^epsilon for epsilon = {rounded(epsilon, up=True)}. If "
        "both seemed equally likely before, it guesses right with a chance of at most "
        f"{best_guess(epsilon, view.delta)}, where tossing a coin gives 50%."
    )
    return title, text + (" A factor this large protects little." if epsilon > 5.0 else "")


def _exception(view: MonitorView) -> Paragraph:
    """Say what delta means for one person and for anyone at all."""
    title, delta = "The exception.", view.delta
    if delta == 0.0 or view.central.upper >= view.local.upper:
        return title, (
            "There is none: what is claimed is the local guarantee, which holds without exception."
        )
    text = (
        f"For each person the limit may fail with a chance of at most delta = {brief(delta)}, that "
        f"is {one_in(delta)}. "
    )
    anyone = view.num_users * delta  # union bound over the users
    if anyone < 1.0:
        return title, text + f"That it fails for anyone at all has a chance below {one_in(anyone)}."
    return title, text + (
        f"With {view.num_users:,} users it may fail for somebody: ask for a delta far below "
        f"{rounded(1.0 / view.num_users, up=False, digits=2)}."
    )


def _local(view: MonitorView) -> Paragraph:
    """Say what is left if the shuffler is broken."""
    return "If the shuffler fails.", (
        "Every user randomized on the own device. Whoever sees all that one user ever sends, from "
        "the first period to the last, with the name on it, changes the odds by a factor of at "
        f"most {odds_factor(view.local.upper)} (epsilon0 = {rounded(view.local.upper, up=True)})."
    )


def _whole_history(view: MonitorView) -> Paragraph:
    """Say that nothing has to be multiplied by the number of periods."""
    return "What counts as one person's data.", (
        f"The whole history, over all {view.num_periods:,} periods. Both limits are for everything "
        "a person sends in that time; they are not to be multiplied by the number of periods."
    )


def _known_truth(view: MonitorView) -> Paragraph:
    """Say that the true counts are not part of what is released."""
    where = "tables and charts of this page" if len(view.periods) > 1 else "this page"
    return "What is not private here.", (
        f"The true counts in the {where}, and the number of ignored changes. A simulation has "
        "everybody's history at hand; a real server has not. Nothing above covers them: do not "
        "publish them."
    )


def _more_changes(view: MonitorView) -> Paragraph:
    """Say what becomes of changes beyond the limit."""
    title = f"Users who change more than {_times(view.max_changes)}."
    text = (
        "Their later changes are ignored on their own device, so their privacy is that of "
        "everybody else. The estimates miss these changes."
    )
    if not view.num_ignored_changes:
        return title, text + " In this run there were none."
    return title, text + (
        f" In this run that were {counted(view.num_ignored_changes, 'change')} of "
        f"{counted(view.num_users_with_ignored, 'user')}: the estimates are of the histories "
        "without them."
    )


def _times(number: int) -> str:
    """Return ``"once"`` or ``"4 times"``."""
    return "once" if number == 1 else f"{number:,} times"
