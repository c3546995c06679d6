"""Privacy statement in plain words: every sentence is a theorem, only without its symbols.

(epsilon, delta)-indistinguishability of two laws is equivalent to this: each can be replaced, with
an error of probability at most delta, by one of a pair for which every likelihood ratio is at most
e^epsilon (Dwork and Roth 2014, Lemma 3.17). So "at most a factor as probable, plus delta" is exact,
while "the limit on the odds fails with a chance of at most delta" would be stronger than the proved
statement.
"""

import math
from dataclasses import dataclass

from shuffledp.collection.dummies import protect_alone
from shuffledp.collection.result import Result
from shuffledp.core.bound import Guarantee
from shuffledp.core.frames import LATEX
from shuffledp.report import dummies, wording
from shuffledp.report.formatting import best_guess, odds_factor, one_in, rounded
from shuffledp.report.shuffles import ShuffleWords, words_of_result

Paragraph = tuple[str, str]  # a short title and its text

SIMULATION_WARNING = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private. Run again without a seed to collect for real."
)


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
    guarantee, shuffle = result.guarantee, words_of_result(result)
    is_for_any = protect_alone(result.dummies)
    num_users = result.num_users if is_for_any else guarantee.num_users
    paragraphs = [
        _what_reports_reveal(result, shuffle),
        *shuffle.paragraphs,
        *dummies.paragraphs(result),
        exception_paragraph(
            guarantee.delta_upper,
            wording.upper_text(guarantee.delta),
            num_users,
            without="delta = 0, so the limit always holds.",
        ),
        _certainty(guarantee, is_for_any=is_for_any),
        _without_shuffler(result, shuffle),
        _true_answers(result),
        (
            "What it does not promise.",
            "It does not hide what is true of a group: the estimates can tell something about a "
            "person through the people who resemble them, whether or not that person took part. "
            "And it covers this one release: every further collection from the same people adds "
            "to epsilon.",
        ),
    ]
    facts = wording.guarantee_facts(guarantee, is_for_any=is_for_any)
    if result.is_simulation:
        paragraphs.insert(0, ("This was a simulation.", _SIMULATION_NOTE))
    return Statement(
        headline=f"{wording.guarantee_text(guarantee)} for each of {num_users:,} users",
        paragraphs=tuple(paragraphs),
        facts=tuple((name.capitalize(), text) for name, text in facts),
    )


def meets_target(result: Result) -> bool:
    """Return True if the guarantee of the run meets the target."""
    return (
        result.guarantee.epsilon_upper <= result.target_epsilon
        and result.guarantee.delta_upper <= result.target_delta
    )


_SIMULATION_NOTE = (
    "Its seed can replay every random choice, so it protects nobody. What follows holds for the "
    "same run without a seed."
)


def _what_reports_reveal(result: Result, shuffle: ShuffleWords) -> Paragraph:
    """Explain epsilon as a change of odds and as a guess."""
    guarantee, title = result.guarantee, "What the reports reveal."
    epsilon, delta = guarantee.epsilon_upper, guarantee.delta_upper
    seen = shuffle.seen or f"all {result.num_shuffled:,} shuffled reports"
    adversary = f"An adversary who sees {seen} and knows everyone else's answer"
    if math.isinf(epsilon):
        return title, f"{adversary} may learn a person's answer: no finite epsilon is proved."
    text = limit_text(
        f"{adversary} faces a limit on what it can learn about any one person. Whatever two "
        "answers it weighs against each other, the reports change",
        "both answers",
        epsilon=epsilon,
        delta=delta,
        shown=wording.upper_text(guarantee.epsilon),
    )
    if not protect_alone(result.dummies) and guarantee.num_users != result.num_users:
        text += f" Of these users, {guarantee.num_users:,} are counted on to be honest."
    return title, text


def limit_text(start: str, both: str, *, epsilon: float, delta: float, shown: str) -> str:
    """Explain epsilon as a change of odds and as a guess."""
    return (
        f"{start} the odds between them by a factor of at most {odds_factor(epsilon)}, which is "
        f"e^epsilon for epsilon = {shown}. If {both} seemed equally likely before, it guesses "
        f"right with a chance of at most {best_guess(epsilon, delta)}, where tossing a coin gives "
        "50%."
    ) + (" A factor this large protects little." if epsilon > 5.0 else "")


def exception_paragraph(delta: float, shown: str, num_users: int, *, without: str) -> Paragraph:
    """Explain delta for one person and for any of the users; at 0 there is no exception."""
    title = "The exception."
    if delta == 0.0:
        return title, f"There is none: {without}"
    text = (
        "Whatever the reports may show is at most that factor as probable under one value of a "
        f"person as under another, plus delta = {shown}, that is {one_in(delta)}. That is also the "
        "largest chance that they give a person's value away for certain. "
    )
    anyone = num_users * delta  # union bound over the users
    if anyone < 1.0:
        return (
            title,
            f"{text}That they do so for anyone at all has a chance below {one_in(anyone)}.",
        )
    return title, text + (
        f"With {num_users:,} users they may do so for somebody: ask for a delta far below "
        f"{rounded(1.0 / num_users, up=False, digits=2)}."
    )


def _certainty(guarantee: Guarantee, *, is_for_any: bool) -> Paragraph:
    """State the gap between the upper bound and the proved lower bound."""
    which = wording.WHATEVER if is_for_any else ""
    title = "How sharp this is."
    bound, name = guarantee.bound, wording.computed_name(guarantee)
    text = f"{name} = {rounded(bound.upper, up=True)} is a proved upper bound."
    if bound.lower is None or bound.gap is None:
        return title, f"{text} How much smaller the true {name} is, is not known."
    return title, (
        f"{text} No analysis of this collection can show less than "
        f"{rounded(bound.lower, up=False)}{which}; the gap between them is "
        f"{wording.gap_percent(bound.gap)}."
    )


def _without_shuffler(result: Result, shuffle: ShuffleWords) -> Paragraph:
    """State the local guarantee, which remains if the shuffler fails."""
    profile = result.randomizer.profile
    if math.isinf(profile.epsilon0):
        text = f"Answers were not randomized: {wording.TOGETHER}, and nothing would protect it."
        return shuffle.failure[0], text
    odds, guess = wording.local_limits(profile, rounds=result.rounds)
    loss = wording.local_loss(profile, rounds=result.rounds)
    exception = ""
    if profile.delta0 != 0.0:
        exception = f", but for delta0 = {rounded(profile.delta0, up=True)}"
    title, before = shuffle.failure
    return title, (
        f"Each answer was randomized {before}, with {loss}. That part needs no "
        "shuffler: an adversary who knows whose report is whose changes the odds by a factor of "
        f"at most {odds}{exception}. Between two answers that seemed equally likely it guesses "
        f"right with a chance of at most {guess}."
    )


def _true_answers(result: Result) -> Paragraph:
    """Name the holders of true answers, and the error of a trusted curator."""
    held, *errors = wording.trust_facts(result)
    text = f"They were {held[1]}."
    for _, error in errors:
        text += (
            " What is promised here is about everybody else, who sees no more than the shuffled "
            f"reports. A curator who is trusted as far could publish estimates with {error}."
        )
    return "Who held true answers.", text
