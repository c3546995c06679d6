"""Success probabilities of adversaries in words, for the terminal and for the report.

Known probabilities are rounded to nearest and upper ends up, so that no reader sees a smaller
probability than was computed; see `shuffledp.leakage.account.percentages`.
"""

import math
from typing import TYPE_CHECKING, Any

from shuffledp.leakage.account import LeakageAccount, describe_counts, percentages
from shuffledp.report.formatting import rounded
from shuffledp.report.page import rendered_rows

if TYPE_CHECKING:
    from shuffledp.collection.leakage import RunLeakage

#: Adversary's view with each of the three mechanisms, in the order of `CHANNELS`.
SEEN = {
    "randomizer": "every report with its name",
    "shuffler": "all true answers, shuffled",
    "both": "all reports, shuffled",
}

#: The same as headings of columns in the report.
_HEADINGS = ("reports and names", "shuffled true answers", "this release")

# A smaller difference of probabilities may be round-off.
_NEGLIGIBLE = 1e-12

# Ends that differ by less than this share of the last digit shown differ by round-off.
_ROUND_OFF = 0.01


def chance(account: LeakageAccount, channel: str, unit: str = "%") -> str:
    """Return the success probability as text, such as ``"52.25%"`` or ``"at most 60%"``."""
    bound = account.bound(channel)
    after, before, is_known = percentages(account.prior, bound)
    if bound.upper - account.prior <= _NEGLIGIBLE:
        return f"{before}{unit}"
    return f"{'' if is_known else 'at most '}{after}{unit}"


def blind_chance(account: LeakageAccount, unit: str = "%") -> str:
    """Return the success probability of a blind guess as text."""
    return f"{percentages(account.prior, account.both)[1]}{unit}"


def gained(account: LeakageAccount, channel: str) -> tuple[str, str]:
    """Return the additive and the multiplicative leakage as text, rounded up."""
    upper, lower = account.additive(channel), account.bound(channel).lower
    if upper <= _NEGLIGIBLE:
        return "0", "1"
    least = None if lower is None else max(lower - account.prior, 0.0)
    more = upper / account.prior
    least_more = None if least is None else least / account.prior
    if more < 1e-3:
        return _ends(least, upper), _ends(least_more, more, before="1 + ")
    return _ends(least, upper), _ends(None if least_more is None else 1.0 + least_more, 1.0 + more)


def _ends(lower: float | None, upper: float, *, before: str = "") -> str:
    """Return the upper end, rounded up, with "at most" unless it is known to these digits."""
    # A hair less, so that 0.3 reads 0.3000 and not 0.3001.
    shown = rounded(upper * (1.0 - _NEGLIGIBLE), up=True)
    last_digit = 10.0 ** (math.floor(math.log10(upper)) - 3)
    is_known = lower is not None and (
        upper - lower <= _ROUND_OFF * last_digit
        or rounded(lower * (1.0 - _NEGLIGIBLE), up=True) == shown
    )
    return f"{'' if is_known else 'at most '}{before}{shown}"


def adversary_name(account: LeakageAccount) -> str:
    """Return the adversary as a heading."""
    others = account.num_users - 1
    if account.adversary == "uninformed":
        return "knows nobody's answer"
    if account.adversary == "strong":
        return "knows everybody else's answer"
    return f"knows {others - account.num_unknown:,} of the {others:,} other answers"


def belief(account: LeakageAccount) -> str:
    """Return the adversary's prior in words."""
    if account.has_uniform_prior:
        return f"all {account.domain_size:,} answers equally likely"
    return "answers as likely as the chosen prior says"


def account_rows(account: LeakageAccount) -> list[tuple[str, str, str, str]]:
    """Return rows for a table: adversary's view, success probability, and both leakages."""
    rows = [(SEEN[name], chance(account, name, " %"), *gained(account, name)) for name in SEEN]
    return [("nothing", blind_chance(account, " %"), "0", "1"), *rows]


def account_facts(account: LeakageAccount) -> list[tuple[str, str]]:
    """Return names and values of the assumptions behind the probabilities."""
    counts = "" if account.knowledge is None else describe_counts(account.knowledge)
    return rendered_rows(
        "leakage-rows.txt",
        account=account,
        adversary=adversary_name(account),
        belief=belief(account),
        counts=counts,
    )


def leakage_facts(leakage: "RunLeakage | None") -> dict[str, Any]:
    """Return the values of ``leakage.html``: a column for each adversary, a row for each view."""
    if leakage is None or not leakage.accounts:
        return {"leakage": leakage}
    accounts, first = leakage.accounts, leakage.accounts[0]
    seen = {"nothing": [blind_chance(account) for account in accounts]}
    for name, heading in zip(SEEN, _HEADINGS, strict=True):
        seen[heading] = [chance(account, name) for account in accounts]
    assumptions = dict.fromkeys(text for each in accounts for text in each.both.assumptions)
    names = [*map(adversary_name, accounts)]
    return {
        "leakage": leakage,
        "leakage_words": (
            f"An adversary who {adversary_name(first)} and holds {belief(first)} guesses right "
            f"{chance(first, 'both')} of the time with this release, and {blind_chance(first)} "
            "without it."
        ),
        "adversaries": names,
        # Lines break in the words, never in the number after them.
        "chances": [(heading, [_split(text) for text in texts]) for heading, texts in seen.items()],
        "computations": [
            (name, f"{account.both.method}: {account.both.source}")
            for name, account in zip(names, accounts, strict=True)
        ],
        "leakage_assumptions": list(assumptions),
    }


def _split(text: str) -> tuple[str, str]:
    """Return the words before a number, with the space after them, and the number."""
    words, space, number = text.rpartition(" ")
    return words + space, number


def run_line(leakage: "RunLeakage") -> str:
    """Return the leakage of a run on one line; empty if none is known."""
    chances = {account.adversary: account for account in leakage.accounts}
    if "uninformed" not in chances:
        return ""
    account = chances["uninformed"]
    line = f"{chance(account, 'both')} right instead of {blind_chance(account)}"
    if "strong" in chances:
        line += f"; knowing all other answers, {chance(chances['strong'], 'both')}"
    return line
