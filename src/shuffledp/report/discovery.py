"""Words about texts that nobody listed: rounds, shares that are found, and false reports."""

from collections.abc import Mapping
from typing import Any

from shuffledp.report.formatting import given, rounded

_LIMIT = "with probability 0.95 at least"
# Only the result of a search that is over knows whether its rounds had room for all.
_UNLESS = ", unless too many prefixes have more"


def rows(findings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and texts of facts about a search for texts; empty for other questions."""
    if (found := findings.get("discovery")) is None:
        return []
    rounds = found["rounds"]
    users, bins = ([each[name] for each in rounds] for name in ("num_users", "num_bins"))
    share, false = found["found_share"], given(100.0 * found["false_probability"])
    numbers = " to ".join(f"{each:,}" for each in sorted({min(users), max(users)}))
    said = "no text is found with probability 0.95, whatever its share"
    if share <= 1.0:
        percent = rounded(100.0 * share, up=True)
        said = f"each text that {percent}% of the users have, {_LIMIT}"
        if not any(each["num_left"] for each in rounds):  # a plan
            said += _UNLESS
    if left := found.get("left"):  # a search among devices
        return [
            ("rounds", f"{len(rounds)} done, of {numbers} users and up to {max(bins):,} bins each"),
            ("left", f"{len(left):,} prefixes, some of which nobody may have; not yet texts"),
            ("next round", "shuffledp task next makes its task from this result"),
        ]
    return [
        ("rounds", f"{len(rounds)}, of {numbers} users and up to {max(bins):,} bins each"),
        ("found", said),
        ("false texts", f"any text that nobody has is reported with probability {false}% at most"),
    ]


def dishonest_rows(found: Mapping[str, Any], number: int, estimates: Any) -> list[tuple[str, str]]:
    """Return names and texts of effects of dishonest users; without estimates, of a plan."""
    forced = f"{found['forced_by']:,} can have a text of theirs found, {_LIMIT}"
    hidden = f"{number:,} can keep any text from being found"
    if (share := found["found_share"]) is not None:
        percent = rounded(100.0 * share, up=True)
        hidden = f"despite {number:,} a text that {percent}% of the users have is found, {_LIMIT}"
        if estimates is None or estimates.discovery.left:
            hidden += _UNLESS
    return [("forced texts", forced), ("hidden texts", hidden)]
