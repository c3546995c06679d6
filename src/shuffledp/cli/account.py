"""``shuffledp account``: central privacy of collections that run already or are planned."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli.options import JSON, LAW, cli, options, require_one_asked
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.accounting.account import Terms

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@cli.command(epilog="Example: shuffledp account --epsilon0 1 --num-users 10000 --delta 1e-6")
@options(
    f"""
    Reports:
    --epsilon0 FLOAT  Local epsilon of each report, in nats.
    --channel FILE  File with the channel matrix of a randomizer of your own, instead
        of --randomizer: rows are inputs, columns outputs. With --epsilon0 the matrix is checked
        against it.
    Users and rounds:
    --num-users N  Number of users in one shuffled batch.
    --honest-fraction FLOAT  Share of the users who are honest for certain; only these count.
        [default: 1.0]
    --rounds T  Number of batches about the same people.  [default: 1]
    --sampled M  Shuffle only M of the users in each round, drawn at random and in secret.
    --participation FLOAT  Probability with which each user takes part in a round, by a secret
        coin.  [default: 1.0]
    --schedule FILE  CSV file with a row for each kind of round, instead of all options of reports
        and rounds.
    --dummies LAW  The shuffler adds laplace:SCALE:HALF_WIDTH or gaussian:SCALE:HALF_WIDTH dummies
        of each report: then --num-users is 1 by default and only adds further honest users. Or each
        user sends poisson:MEAN of each report.
    {LAW}
    --method TEXT  Name of a bound that `shuffledp bounds` lists; an error outside its hypotheses.
        [default: best]
    --certify  Also prove the number in ball arithmetic, by an integral that shares no code with the
        accountant. For one batch; needs the extra 'certify'.
    {JSON}
    """,
    channel=_FILE,
    schedule=_FILE,
)
def account(*, certify: bool, **asked: Any) -> None:
    """Compute epsilon at a delta, or delta at an epsilon, of shuffled collections.

    Prints a proved upper bound. Without --randomizer it holds for every randomizer with that
    epsilon0; naming one gives a smaller bound.
    """
    from shuffledp.accounting.account import Terms
    from shuffledp.accounting.channel_files import open_channel
    from shuffledp.collection.cautions import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    terms = Terms(**asked)
    guarantee = terms.guarantee()
    proved = {"certificate": _certificate(terms, guarantee)} if certify else {}
    if terms.delta is not None:
        console.print_warnings(delta_cautions(terms.delta, guarantee.num_users))
    if asked["channel"] is not None and (caution := open_channel(asked["channel"]).caution):
        console.print_warnings([caution])
    if console.print_json(guarantee.to_json_dict() | proved):
        return
    console.print_facts(guarantee_facts(guarantee))
    console.print_list("assumptions", guarantee.bound.assumptions)
    for title, text in proved.items():
        console.print_paragraph(title, text)


def _certificate(terms: "Terms", guarantee: "sdp.Guarantee") -> str:
    """Return the certificate of the guarantee of a single batch."""
    from shuffledp.accounting.certification.certificate import certify
    from shuffledp.accounting.guarantees import single_batch

    profile, _ = single_batch(terms.releases(), "certify")
    return certify(profile, guarantee).statement
