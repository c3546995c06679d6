"""``shuffledp demo``: collections on real surveys, with the true shares beside the estimates."""

from dataclasses import replace
from pathlib import Path

import click

import shuffledp as sdp
from shuffledp import report
from shuffledp.cli import console
from shuffledp.cli.options import OVERWRITE, SEED, cli, options
from shuffledp.collection.output import REPORT_FILE, results_folder, write_results
from shuffledp.collection.source.surveys import Survey, surveys
from shuffledp.report.formatting import percent
from shuffledp.report.wording import guarantee_facts, main_estimates, trust_facts


@cli.command()
@options(
    f"""
    --epsilon FLOAT  Central epsilon to meet, in nats.  [default: 1.0]
    --delta FLOAT    Central delta to meet.  [default: 1e-06]
    {SEED}
    --out PATH       New folder, with one folder a survey.  [default: demo-results]
    {OVERWRITE}
    """,
)
def demo(*, out: Path, epsilon: float, delta: float, seed: int | None, overwrite: bool) -> None:
    """Run two real surveys and print the true shares beside the estimates.

    Needs statsmodels: pip install 'shuffledp[datasets]'.
    """
    from shuffledp.collection.leakage import json_of_run

    done: list[tuple[Survey, sdp.Result]] = []
    with results_folder(out, overwrite=overwrite) as folder:
        for survey in surveys():
            question, num_users = sdp.Categories(survey.domain), len(survey.answers)
            plan = sdp.plan(question, num_users=num_users, epsilon=epsilon, delta=delta)
            about = sdp.collection.About(title=survey.title, question=survey.question)
            result = replace(sdp.run(plan, survey.answers, seed=seed), about=about)
            own = folder / survey.name
            own.mkdir()
            parameters = {"survey": survey.name}
            write_results(result, own, parameters=parameters, findings=json_of_run(result))
            done.append((survey, result))
    for asked, found in done:
        _print_survey(asked, found, out / asked.name)


def _print_survey(survey: Survey, result: "sdp.Result", folder: Path) -> None:
    """Print question, estimates beside the truth, privacy statement, and the report's path."""
    found, people = result.estimates, len(survey.answers)
    click.echo(f"{survey.title}\n{survey.question}\n")
    columns = main_estimates(result), found.lower.tolist(), found.upper.tolist()
    rows = [
        (
            answer,
            percent(survey.answers.count(answer) / people, 1),
            percent(estimate, 1),
            f"{percent(lower, 1)} to {percent(upper, 1)}",
        )
        for answer, estimate, lower, upper in zip(survey.domain, *columns, strict=True)
    ]
    console.print_table(
        ("answer", "true", "estimate", f"{percent(found.confidence, 0)} interval"), rows
    )
    click.echo()
    console.print_facts([*guarantee_facts(result.guarantee), *trust_facts(result)])
    for title, text in report.privacy_statement(result).paragraphs[:2]:
        click.echo()
        console.print_paragraph(title, text)
    click.echo(f"\nThe whole statement, with a chart: {folder / REPORT_FILE}\n")
    console.print_warnings(result.warnings)
