"""A comparison of bounds as rows of text, shared by the terminal and the page."""

from shuffledp.collection.bounds import BoundComparison, Scenario, Standing
from shuffledp.report.formatting import given, rounded

_DIGITS = 6
_RATIO_DIGITS = 4

LOWER_END = "no analysis can go below"


def headings(comparison: BoundComparison) -> tuple[str, ...]:
    """Return the headings of `bound_rows`."""
    return ("bound", comparison.scenario.asked, "times the best", "exact", "proved")


def scenario_text(scenario: Scenario) -> str:
    """Say what the bounds are about.

    Examples
    --------
    >>> scenario_text(Scenario(epsilon0=1.0, num_users=10_000, delta=1e-6))
    'any randomizer with epsilon0 = 1, 10,000 users, delta = 1e-6'
    """
    given_name = "epsilon" if scenario.asked == "delta" else "delta"
    return (
        f"{randomizer_text(scenario)} with epsilon0 = {given(scenario.epsilon0)}, "
        f"{users_text(scenario.num_users)}, {given_name} = {given(scenario.given)}"
    )


def users_text(num_users: int) -> str:
    """Return a number of users in words."""
    return "1 user" if num_users == 1 else f"{num_users:,} users"


def randomizer_text(scenario: Scenario) -> str:
    """Name the randomizer with its parameters."""
    if scenario.randomizer is None:
        return "any randomizer"
    parameters = "".join(
        f", {name} = {value}"
        for name, value in (("k", scenario.k), ("dimension", scenario.dimension))
        if value is not None
    )
    return f"{scenario.randomizer}{parameters},"


def bound_rows(comparison: BoundComparison) -> list[tuple[str, ...]]:
    """Return the useful bounds, smallest first, rounded up; then the lower end, rounded down."""
    rows: list[tuple[str, ...]] = [
        (
            each.method.name,
            number(each.value, up=True),
            ratio_text(comparison, each.value, up=True),
            "yes" if each.method.is_exact else "no",
            "here" if each.method.proved_here else "source",
        )
        for each in comparison.useful
    ]
    lower = comparison.lower
    if lower is not None:
        ratio = ratio_text(comparison, lower, up=False)
        rows.append((LOWER_END, number(lower, up=False), ratio, "", ""))
    return rows


def missing_rows(comparison: BoundComparison) -> list[tuple[str, str]]:
    """Return every other method, and why it says nothing here."""
    rows = []
    for each in comparison.bounds:
        if each.standing is Standing.NO_GAIN:
            value = number(each.value, up=True)
            rows.append((each.method.name, f"{value}: {each.reason}"))
        elif each.standing is not Standing.BOUND:
            rows.append((each.method.name, each.reason))
    return rows


def number(value: float | None, *, up: bool) -> str:
    """Return a bound in six digits; nothing where there is none."""
    return "" if value is None else rounded(value, up=up, digits=_DIGITS)


def ratio_text(comparison: BoundComparison, value: float | None, *, up: bool) -> str:
    """Return how many times the best bound a value is; nothing where that says nothing."""
    ratio = comparison.ratio(value)
    return "" if ratio is None else rounded(ratio, up=up, digits=_RATIO_DIGITS)


def gap_text(lower: float | None, upper: float) -> str:
    """Return the relative distance of two ends, rounded up to two digits.

    Examples
    --------
    >>> gap_text(0.0379980, 0.0432062), gap_text(0.0, 0.0), gap_text(None, 1.0)
    ('0.13', '0', 'not known')
    """
    if lower is None:
        return "not known"
    gap = (upper - lower) / upper if upper > 0.0 else 0.0
    # Less is the accuracy of a computation, which need not be the same everywhere.
    return "below 1e-6" if 0.0 < gap < 1e-6 else rounded(gap, up=True, digits=2)
