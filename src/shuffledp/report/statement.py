"""Privacy statement in plain words: every sentence is a theorem, only without its symbols.

(epsilon, delta)-indistinguishability of two laws is equivalent to this: each can be replaced, with
an error of probability at most delta, by one of a pair for which every likelihood ratio is at most
e^epsilon (Dwork and Roth 2014, Lemma 3.17). So "at most a factor as probable, plus delta" is exact,
while "the limit on the odds fails with a chance of at most delta" would be stronger than the proved
statement. The paragraphs are in ``templates/statement.txt``.
"""

from dataclasses import dataclass

from shuffledp.collection.dummies import protect_alone
from shuffledp.collection.result import Result
from shuffledp.core.shown import LATEX
from shuffledp.report import dummies, wording
from shuffledp.report.page import Paragraph, paragraphs

SEEDED = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private."
)
SIMULATION_WARNING = f"{SEEDED} Run again without a seed to collect for real."


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Privacy statement for readers without mathematics.

    Parameters
    ----------
    headline : str
        The guarantee on one line.
    paragraphs : tuple of (str, str)
        A short title and its text.
    facts : tuple of (str, str)
        Name and value: the upper bound first, then its gap to the proved lower bound.
    """

    headline: str
    paragraphs: tuple[Paragraph, ...]
    facts: tuple[tuple[str, str], ...]

    def to_markdown(self) -> str:
        """Return the statement alone in Markdown."""
        head, texts, facts = self._escaped(_MARKDOWN)
        listed = "\n".join(f"- **{name}**: {text}" for name, text in facts)
        return "\n\n".join([head, *(f"**{title}** {text}" for title, text in texts), listed]) + "\n"

    def to_latex(self) -> str:
        """Return the statement alone in LaTeX."""
        head, texts, facts = self._escaped(LATEX)
        items = [rf"\item[{name}] {text}" for name, text in facts]
        listed = "\n".join([r"\begin{description}", *items, r"\end{description}"])
        parts = [head, *(rf"\paragraph{{{title}}} {text}" for title, text in texts), listed]
        return "\n\n".join(parts) + "\n"

    def _escaped(self, table: dict[int, str]) -> tuple[str, list[Paragraph], list[Paragraph]]:
        """Return headline, paragraphs and facts with special characters escaped."""

        def escaped(pairs: tuple[Paragraph, ...]) -> list[Paragraph]:
            return [(name.translate(table), text.translate(table)) for name, text in pairs]

        return self.headline.translate(table), escaped(self.paragraphs), escaped(self.facts)


_MARKDOWN = str.maketrans({"<": "&lt;", ">": "&gt;"} | {each: rf"\{each}" for each in r"\`*_[]#|"})


def privacy_statement(result: Result) -> Statement:
    """Return the statement of a run; numbers are rounded to the safe side.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> isinstance(privacy_statement(result), Statement)
    True
    >>> print(privacy_statement(result).headline)
    epsilon <= 1.607 at delta <= 1e-6 for each of 100 users
    >>> privacy_statement(result).to_markdown().splitlines()[0]
    'epsilon &lt;= 1.607 at delta &lt;= 1e-6 for each of 100 users'
    """
    guarantee, is_for_any = result.guarantee, protect_alone(result.dummies)
    facts = wording.guarantee_facts(guarantee, is_for_any=is_for_any)
    texts = paragraphs(
        "statement.txt",
        result=result,
        guarantee=guarantee,
        num_users=_num_covered(result),
        is_for_any=is_for_any,
        shuffle=wording.words_of_result(result),
        wording=wording,
        dummies=dummies,
    )
    return Statement(
        headline=headline(result),
        paragraphs=texts,
        facts=tuple((name.capitalize(), text) for name, text in facts),
    )


def headline(result: Result) -> str:
    """Return the guarantee of a run on one line."""
    return f"{wording.guarantee_text(result.guarantee)} for each of {_num_covered(result):,} users"


def _num_covered(result: Result) -> int:
    """Return the number of users whom the guarantee covers."""
    is_for_any = protect_alone(result.dummies)
    return result.num_users if is_for_any else result.guarantee.num_users


def meets_target(result: Result) -> bool:
    """Return True if the guarantee of the run meets the target."""
    return (
        result.guarantee.epsilon_upper <= result.target_epsilon
        and result.guarantee.delta_upper <= result.target_delta
    )
