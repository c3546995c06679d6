"""What is asked, as options of the command line: one of five kinds of question.

A domain of answers is the default; ``--mean``, ``--vector``, ``--dictionary`` and ``--max-answers``
stand for the other four.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.options import PATH, added, answer_list, whole_number

if TYPE_CHECKING:
    from shuffledp.collection.question import Question
    from shuffledp.collection.source.columns import Column
    from shuffledp.core.progress import Progress


def number_range(text: str) -> tuple[float, float]:
    """Return the two limits of a range, such as ``0, 120``."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not two numbers with a comma between them; write it like 0,120"
        ) from None
    return low, high


question_options = added(
    (
        click.option("--domain", type=answer_list, metavar="A,B,...", help="The possible answers."),
        click.option(
            "--domain-file", type=PATH, help="The possible answers, one a line, in a text file."
        ),
        click.option("--mean", is_flag=True, help="Estimate the mean of a number; needs --range."),
        click.option(
            "--range",
            "limits",
            type=number_range,
            metavar="LOW,HIGH",
            help="Limits of the number, for --mean.",
        ),
        click.option(
            "--vector",
            type=answer_list,
            metavar="A,B,...",
            help="Estimate the mean of a vector, of these coordinates; needs --norm.",
        ),
        click.option("--norm", type=float, metavar="X", help="Largest Euclidean norm of a vector."),
        click.option(
            "--dictionary",
            type=PATH,
            help="Values are any texts; estimate the words of this file, one a line.",
        ),
        click.option(
            "--max-answers",
            type=whole_number,
            metavar="S",
            help="Users may give up to S of the answers, rather than exactly one.",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The values of `question_options`, checked against each other."""

    domain: tuple[str, ...] | None
    domain_file: Path | None
    mean: bool
    limits: tuple[float, float] | None
    vector: tuple[str, ...] | None
    norm: float | None
    dictionary: Path | None
    max_answers: int | None

    def __post_init__(self) -> None:
        special = {
            "--mean": self.mean,
            "--vector": self.vector is not None,
            "--dictionary": self.dictionary is not None,
            "--max-answers": self.max_answers is not None,
        }
        named = [name for name, is_given in special.items() if is_given]
        if len(named) > 1:
            raise click.UsageError(f"{' and '.join(named)} ask different questions: give one")
        if self.domain is not None and self.domain_file is not None:
            raise click.UsageError("give --domain or --domain-file, not both")
        if self.has_domain and named and named != ["--max-answers"]:
            raise click.UsageError(f"{named[0]} needs no --domain")
        if self.mean != (self.limits is not None):
            raise click.UsageError("--mean and --range go together, as in --mean --range 0,120")
        if (self.vector is None) != (self.norm is None):
            raise click.UsageError("--vector and --norm go together, as in --vector x,y --norm 1")
        if self.max_answers is not None and not self.has_domain:
            raise click.UsageError("--max-answers needs --domain or --domain-file")

    @property
    def has_domain(self) -> bool:
        """Whether possible answers were listed."""
        return self.domain is not None or self.domain_file is not None

    @property
    def is_given(self) -> bool:
        """Whether anything is asked."""
        return self.has_domain or not self.is_about_answers

    @property
    def is_discovering(self) -> bool:
        """Whether the possible answers are those that stand in the table."""
        return self.is_about_answers and not self.has_domain

    @property
    def is_about_answers(self) -> bool:
        """Whether each user has exactly one of a list of answers, the default question."""
        return not (
            self.mean
            or self.vector is not None
            or self.dictionary is not None
            or self.max_answers is not None
        )

    def question(self, *, name: str = "mean", seed: int | None = None) -> "Question | None":
        """Return the question, or None where its answers were not listed.

        A simulation gets the public key of hash functions from its seed, too.
        """
        from shuffledp.collection.questions import (
            AnswerSets,
            Categories,
            Mean,
            VectorMean,
            Words,
        )
        from shuffledp.collection.source.tables import read_domain

        if self.limits is not None:
            low, high = self.limits
            return Mean(low=low, high=high, name=name)
        if self.vector is not None and self.norm is not None:
            return VectorMean(names=self.vector, norm_bound=self.norm)
        if self.dictionary is not None:
            words = read_domain(self.dictionary)
            return Words(dictionary=words, **({} if seed is None else {"key": _key(seed)}))
        if self.domain_file is not None:
            domain: tuple[str, ...] | None = read_domain(self.domain_file)
        else:
            domain = self.domain
        if domain is None:
            return None
        if self.max_answers is not None:
            return AnswerSets(domain=domain, max_answers=self.max_answers)
        return Categories(domain=domain)

    def open(
        self,
        table: Path,
        column: str | None,
        reading: dict[str, Any],
        *,
        seed: int | None = None,
        on_progress: "Progress | None" = None,
    ) -> "tuple[Question, Column]":
        """Return the question and the column of a table that answers it, checked."""
        from shuffledp.collection.questions import Categories
        from shuffledp.collection.source.columns import open_column

        if (column is None) != (self.vector is not None):
            raise click.UsageError("give --column, or the columns of a vector with --vector")
        question = self.question(name=column or "mean", seed=seed)
        values = open_column(table, column, question, on_progress=on_progress, **reading)
        if question is None or self.is_about_answers:
            return Categories(values.domain), values  # which reading may have added to
        return question, values


def _key(seed: int) -> bytes:
    """Return a public key for a simulation, from a stream that draws nothing else."""
    from shuffledp.core.entropy import Entropy
    from shuffledp.randomizers.keyed_hash import new_key

    return new_key(Entropy.from_seed(seed).spawn().spawn())
