"""Section of the report about guesses: how often one person's answer is guessed right."""

from html import escape
from typing import TYPE_CHECKING

from shuffledp.report.leakage_wording import (
    SEEN,
    adversary_name,
    belief,
    blind_chance,
    chance,
)
from shuffledp.report.typesetting import typeset

if TYPE_CHECKING:
    from shuffledp.leakage.account import LeakageAccount
    from shuffledp.leakage.of_runs import RunLeakage

_READING = (
    "Epsilon limits how far the odds can move. This table says how often an adversary guesses one "
    "chosen person's answer right, in one try and at its best: before it sees anything, and after. "
    "Who sees reports and names sees a collection without a shuffler, and who sees shuffled true "
    "answers one without a randomizer."
)
#: What is seen, in the order of `SEEN`.
_HEADINGS = ("reports and names", "shuffled true answers", "this release")
_LIMITS = (
    "Chances are averages over answers drawn as the adversary believes: whoever gave a likely "
    "answer may be guessed right more often than somebody with a rare one. They are about one "
    "person, one try and this release: with several tries, other data about the person, or further "
    "releases, an adversary does better. And they hold for people whose answers do not depend on "
    "each other: what a group has in common is not hidden."
)


def leakage_section(leakage: "RunLeakage") -> str:
    """Return the table, how to read it, and what it does not say, as HTML.

    Parameters
    ----------
    leakage : RunLeakage
        Of one run.
    """
    notes = "".join(f"<p>{escape(note)}</p>" for note in leakage.notes)
    if not leakage.accounts:
        return notes
    return "".join(
        (
            f"<p>{typeset(_READING)}</p>",
            f"<p>{typeset(_in_words(leakage.accounts[0]))}</p>",
            _table(leakage.accounts),
            _sources(leakage.accounts),
            notes,
            f'<p class="soft">{typeset(_LIMITS)}</p>',
        )
    )


def _in_words(account: "LeakageAccount") -> str:
    """Say what the first row means."""
    after, before = chance(account, "both"), blind_chance(account)
    return (
        f"An adversary who {adversary_name(account)} and holds {belief(account)} guesses right "
        f"{after} of the time with this release, and {before} without it."
    )


def _table(accounts: "tuple[LeakageAccount, ...]") -> str:
    """Return a column for each adversary, a row for each thing to see."""
    names = "".join(f'<th scope="col">and {escape(_who(account))}</th>' for account in accounts)
    seen = (
        ("nothing", [blind_chance(account) for account in accounts]),
        *(
            (heading, [chance(account, name) for account in accounts])
            for heading, name in zip(_HEADINGS, SEEN, strict=True)
        ),
    )
    body = "".join(
        f'<tr><th scope="row">{heading}</th>'
        + "".join(f"<td>{_number(text)}</td>" for text in chances)
        + "</tr>"
        for heading, chances in seen
    )
    # Three narrow columns fit a phone. Words are not broken: with long numbers the table scrolls.
    return (
        '<div class="table" role="region" tabindex="0" aria-label="Chances of a right guess">'
        '<table style="overflow-wrap:break-word"><thead><tr>'
        f'<th scope="col">An adversary who sees</th>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _number(text: str) -> str:
    """Return a chance whose number is never broken, but for the words before it."""
    *words, number = escape(text).split(" ")
    return " ".join((*words, f'<span style="white-space:nowrap">{number}</span>'))


def _who(account: "LeakageAccount") -> str:
    """Name an adversary, and what it believes where that is not the same for all answers."""
    name = adversary_name(account)
    return name if account.has_uniform_prior else f"{name}; chosen prior"


def _sources(accounts: "tuple[LeakageAccount, ...]") -> str:
    """Return where the numbers of the last row come from."""
    facts = "".join(
        f"<div><dt>{escape(_who(account))}</dt>"
        f"<dd>{escape(account.both.method)}: {typeset(account.both.source)}</dd></div>"
        for account in accounts
    )
    said = dict.fromkeys(text for account in accounts for text in account.both.assumptions)
    items = "".join(f"<li>{typeset(text)}</li>" for text in said)
    return (
        f'<details><summary>How these were computed</summary><dl class="facts">{facts}</dl>'
        f'<p style="margin-top:0.9rem">They assume:</p><ul class="assumptions">{items}</ul>'
        "</details>"
    )
