"""All bounds side by side: rows of text for the terminal."""

from shuffledp.accounting.compare import BoundComparison, Scenario, Standing
from shuffledp.report.formatting import counted, given, rounded

_DIGITS = 6
_RATIO_DIGITS = 4

LOWER_END = "no analysis can go below"


def headings(comparison: BoundComparison) -> tuple[str, ...]:
    """Return the headings of `bound_rows`."""
    return ("bound", comparison.scenario.asked, "times the best", "exact", "proved")


def scenario_text(scenario: Scenario) -> str:
    """Name the subject of the bounds."""
    law = "any randomizer"
    if scenario.randomizer is not None:
        sizes = {"k": scenario.domain_size, "dimension": scenario.dimension}
        shown = (f" {name} = {size}," for name, size in sizes.items() if size is not None)
        law = f"{scenario.randomizer},{''.join(shown)}"
    return (
        f"{law} with epsilon0 = {given(scenario.epsilon0)}, {counted(scenario.num_users, 'user')}, "
        f"{_given_text(scenario)}"
    )


def _given_text(scenario: Scenario) -> str:
    """Name the given one of epsilon and delta."""
    return f"{'epsilon' if scenario.asked == 'delta' else 'delta'} = {given(scenario.given)}"


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
    return [
        (
            each.method.name,
            f"{number(each.value, up=True)}: {each.reason}"
            if each.standing is Standing.NO_GAIN
            else each.reason,
        )
        for each in comparison.bounds
        if each.standing is not Standing.BOUND
    ]


def number(value: float | None, *, up: bool) -> str:
    """Return a bound in six digits; nothing where there is none."""
    return "" if value is None else rounded(value, up=up, digits=_DIGITS)


def ratio_text(comparison: BoundComparison, value: float | None, *, up: bool) -> str:
    """Return the ratio of a value to the best bound as text; empty where undefined."""
    ratio = comparison.ratio(value)
    return "" if ratio is None else rounded(ratio, up=up, digits=_RATIO_DIGITS)
