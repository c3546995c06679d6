"""The table of estimates as text, shared by the page, the notebook and the terminal."""

from dataclasses import dataclass

from shuffledp.collection.results import RunResult
from shuffledp.interface.reports.formatting import decimals_for, fixed, given, percent, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """One answer with its estimate, every number formatted."""

    value: str
    count: str
    frequency: str
    standard_error: str
    interval: str


def estimate_headings(result: RunResult) -> EstimateRow:
    """Return the headings of the columns."""
    return EstimateRow(
        value="Answer",
        count="Estimated count",
        frequency="Frequency",
        standard_error="Standard error",
        interval=f"{given(round(100.0 * result.estimates.confidence, 6))}% interval",
    )


def estimate_rows(result: RunResult) -> list[EstimateRow]:
    """Return a row for each answer in the order of the domain.

    Every column has as many decimals as its smallest standard error deserves, so that no digit
    is shown which is only noise.
    """
    estimates = result.estimates
    errors = estimates.standard_error.tolist()
    decimals = decimals_for([100.0 * error for error in errors])
    count_decimals = decimals_for([result.num_users * error for error in errors])
    columns = zip(
        result.domain,
        estimates.count.tolist(),
        estimates.frequency.tolist(),
        errors,
        estimates.lower.tolist(),
        estimates.upper.tolist(),
        strict=True,
    )
    return [
        EstimateRow(
            value=visible(value),
            count=fixed(count, count_decimals),
            frequency=percent(frequency, decimals),
            standard_error=percent(error, decimals),
            interval=f"{percent(lower, decimals)} to {percent(upper, decimals)}",
        )
        for value, count, frequency, error, lower, upper in columns
    ]
