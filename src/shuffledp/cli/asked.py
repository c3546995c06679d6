"""What is asked, as options of the command line: one of five kinds of question.

A domain of answers is the default; ``--mean``, ``--vector``, ``--dictionary`` and ``--max-answers``
stand for the other four.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli.options import taken

if TYPE_CHECKING:
    from shuffledp.collection.question import Question
    from shuffledp.collection.source.columns import Column

QUESTION = """
    --domain A,B,...      The possible answers.
    --domain-file PATH    The possible answers, one a line, in a text file.
    --mean                Estimate the mean of a number; needs --range.
    limits=--range LOW,HIGH  Limits of the number, for --mean.
    --vector A,B,...      Estimate the mean of a vector, of these coordinates; needs --norm.
    --norm X              Largest Euclidean norm of a vector.
    --dictionary PATH     Values are any texts; estimate the words of this file, one a line.
    --max-answers S       Users may give up to S of the answers, rather than exactly one.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The values of `QUESTION`, checked against each other."""

    domain: tuple[str, ...] | None
    domain_file: Path | None
    mean: bool
    limits: tuple[float, float] | None
    vector: tuple[str, ...] | None
    norm: float | None
    dictionary: Path | None
    max_answers: int | None

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Asked":
        """Take the options of a question out of all of them."""
        return cls(**taken(options, *(field.name for field in fields(cls))))

    def __post_init__(self) -> None:
        special = ("mean", "vector", "dictionary", "max_answers")
        given = [name for name in special if getattr(self, name) not in (None, False)]
        named = [f"--{name.replace('_', '-')}" for name in given]
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
    def is_about_answers(self) -> bool:
        """Whether each user has exactly one of a list of answers, the default question."""
        others = (self.vector, self.dictionary, self.max_answers)
        return not self.mean and others == (None, None, None)

    @property
    def is_given(self) -> bool:
        """Whether anything is asked."""
        return self.has_domain or not self.is_about_answers

    def question(self, *, name: str = "mean", seed: int | None = None) -> "Question | None":
        """Return the question, or None where its answers were not listed.

        A simulation gets the public key of hash functions from its seed, too.
        """
        from shuffledp.collection import questions
        from shuffledp.core.labels import read_domain

        if self.limits is not None:
            low, high = self.limits
            return questions.Mean(low=low, high=high, name=name)
        if self.vector is not None and self.norm is not None:
            return questions.VectorMean(names=self.vector, norm_bound=self.norm)
        if self.dictionary is not None:
            key = {} if seed is None else {"key": _key(seed)}
            return questions.Words(dictionary=read_domain(self.dictionary), **key)
        domain = self.domain if self.domain_file is None else read_domain(self.domain_file)
        if domain is None:
            return None
        if self.max_answers is not None:
            return questions.AnswerSets(domain=domain, max_answers=self.max_answers)
        return questions.Categories(domain=domain)

    def terms(self, randomizer: str | None, epsilon0: float, text: str) -> "sdp.deploy.AskedTerms":
        """Return the question of a collection yet to come, with its randomizer."""
        question = self.question()
        if question is None:
            raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
        name = randomizer or next(iter(question.candidates()))
        return sdp.deploy.AskedTerms.of(question, name, epsilon0, text)

    def open(
        self, table: Path, column: str | None, seed: int | None, **reading: Any
    ) -> "tuple[Question, Column]":
        """Return the question and the column of a table that answers it, checked."""
        if (column is None) != (self.vector is not None):
            raise click.UsageError("give --column, or the columns of a vector with --vector")
        question = self.question(name=column or "mean", seed=seed)
        values = sdp.collection.open_column(table, column, question, **reading)
        if question is None or self.is_about_answers:
            return sdp.Categories(values.domain), values  # which reading may have added to
        return question, values


def _key(seed: int) -> bytes:
    """Return a public key for a simulation, from a stream that draws nothing else."""
    from shuffledp.randomizers.keyed_hash import new_key

    return new_key(sdp.Entropy.from_seed(seed).spawn().spawn())
