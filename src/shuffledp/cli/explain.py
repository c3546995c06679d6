"""``shuffledp explain``: notice, privacy label or registry entry of a collection."""

from pathlib import Path

import click

from shuffledp.cli.options import ABOUT, PATH, cli, options
from shuffledp.collection.output import whole_file


@cli.command(epilog="Example: shuffledp explain results --as notice --out notice.md")
@click.argument("results", type=PATH)
@options(
    """
    Output:
    form=--as [notice|label|registry]  Notice for participants or privacy label, in Markdown, or
        entry for the public registry of deployments, in YAML.  [required]
    --out FILE  File to write instead of printing.
    --collected-by [devices|table]  For a plan: where answers will be randomized, on users' devices
        or by the holder of a table. A privacy.json that states otherwise is refused.
    """,
    ABOUT,
)
def explain(
    *, results: Path, form: str, out: Path | None, collected_by: str | None, **about: str
) -> None:
    """Write a notice, a privacy label or a registry entry for RESULTS.

    RESULTS is a folder of `shuffledp run --out`, its privacy.json, or before a collection a file of
    `shuffledp plan --out`. TO BE FILLED IN marks facts that only you know; the options of the
    report state some of them.
    """
    from shuffledp.report.explain import FORMS, read_record

    given = {name: text for name, text in about.items() if text}
    text = FORMS[form](read_record(results, collected_by=collected_by, about=given))
    if out is None:
        click.echo(text, nl=False)
        return
    with whole_file(out) as partial:
        partial.write_text(text, encoding="utf-8")
    click.echo(f"wrote {out}")
