"""The table of estimates as text, shared by the page, the notebook and the terminal."""

from dataclasses import dataclass

from shuffledp.collection.results import Result
from shuffledp.report.formatting import decimals_for, fixed, given, shown_label
from shuffledp.report.wording import main_estimates, wording


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """One estimate, every number formatted; ``count`` is empty where nothing is counted."""

    value: str
    count: str
    estimate: str
    standard_error: str
    population_standard_error: str
    interval: str

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns beside the label that there are."""
        return (*self.few_numbers[:-1], self.population_standard_error, self.interval)

    @property
    def few_numbers(self) -> tuple[str, ...]:
        """The same about these users only, for narrow tables."""
        counted = (self.count,) if self.count else ()
        return (*counted, self.estimate, self.standard_error, self.interval)


def estimate_headings(result: Result) -> EstimateRow:
    """Return the headings of the columns."""
    words = wording(result)
    kind = "simultaneous interval" if result.estimates.is_simultaneous else "interval"
    return EstimateRow(
        value=words.label,
        count="Estimated count" if "count" in result.estimates.columns() else "",
        estimate=words.estimate,
        standard_error="Standard error",
        population_standard_error="Population standard error",
        interval=f"{given(round(100.0 * result.estimates.confidence, 6))}% {kind}",
    )


def estimate_rows(result: Result) -> list[EstimateRow]:
    """Return a row for each estimate in the order of the question's labels.

    Every column has as many decimals as its smallest standard error deserves, so that no digit
    is shown which is only noise.
    """
    estimates, words = result.estimates, wording(result)
    errors = estimates.standard_error.tolist()
    decimals = decimals_for([words.unit * error for error in errors])
    count_decimals = decimals_for([result.num_users * error for error in errors])
    counts = estimates.columns().get("count")
    shown_counts = (
        [""] * len(errors)
        if counts is None
        else [fixed(count, count_decimals) for count in counts.tolist()]
    )
    columns = zip(
        result.domain,
        shown_counts,
        main_estimates(result),
        errors,
        estimates.population_standard_error.tolist(),
        estimates.lower.tolist(),
        estimates.upper.tolist(),
        strict=True,
    )
    return [
        EstimateRow(
            value=shown_label(value),
            count=count,
            estimate=words.format(estimate, decimals),
            standard_error=words.format(error, decimals),
            population_standard_error=words.format(of_population, decimals),
            interval=f"{words.format(lower, decimals)} to {words.format(upper, decimals)}",
        )
        for value, count, estimate, error, of_population, lower, upper in columns
    ]
