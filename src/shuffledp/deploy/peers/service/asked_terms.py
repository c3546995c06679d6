"""What a collection asks, as JSON in its terms: the question, the randomizer and its epsilon0."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.collection.question import Question, chosen_candidates
from shuffledp.collection.questions import (
    AnswerSets,
    Categories,
    Mean,
    VectorMean,
    Words,
)
from shuffledp.core.checks import require_positive
from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.service.report_codec import ReportCodec
from shuffledp.randomizers.protocol import LocalRandomizer

_MOST_SHOWN = 20

# What values of the wrong kind, size or depth raise.
_FAULTS = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTerms:
    """A question, what each user runs on the answer, and how reports travel.

    Parameters
    ----------
    question : Question
        What is asked.
    randomizer : LocalRandomizer
        What each user runs, once.
    codec : ReportCodec
        Its reports as bytes.
    epsilon0 : float
        What was asked for in nats; the randomizer's own is at most that.
    text : str
        The question in words, as users are to read it.
    """

    question: Question
    randomizer: LocalRandomizer
    codec: ReportCodec
    epsilon0: float
    text: str = ""

    @classmethod
    def of(
        cls, question: Question, randomizer: str, epsilon0: float, text: str = ""
    ) -> "AskedTerms":
        """Return the terms of a question with a randomizer of that name.

        Parameters
        ----------
        question : Question
            What is asked.
        randomizer : str
            One of the question's ``candidates``.
        epsilon0 : float
            Local privacy loss in nats, > 0: with 0 reports would say nothing.
        text : str
            The question in words.

        Raises
        ------
        ParameterError
            If there is no such randomizer, or epsilon0 is out of range.
        """
        require_positive("epsilon0", epsilon0)
        made = chosen_candidates(question, randomizer)[randomizer](epsilon0)
        return cls(
            question=question,
            randomizer=made,
            codec=ReportCodec.of(made, _no_values(question)),
            epsilon0=float(epsilon0),
            text=text,
        )

    @property
    def law(self) -> bytes:
        """Digest of all that decides what a report says; reports of one law are alike."""
        return wire.digest(b"law", json.dumps(self.to_json_dict(), sort_keys=True).encode())

    @property
    def question_digest(self) -> bytes:
        """Digest of what is asked, whatever the order of the choices, the law and the spelling."""
        particulars = {
            name: value for name, value in self.question.to_json_dict().items() if name != "key"
        }
        words = " ".join(self.text.casefold().split())
        asked = [words, sorted(self.question.labels), particulars]
        return wire.digest(b"question", json.dumps(asked, sort_keys=True).encode())

    def facts(self) -> list[tuple[str, str]]:
        """Return the question, its choices and what a report tells, for the user to read.

        What the terms say stands in JSON strings, so that it cannot write to a terminal.
        """
        labels, particulars = self.question.labels, self.question.to_json_dict()
        shown = ", ".join(json.dumps(label) for label in labels[:_MOST_SHOWN])
        if len(labels) > _MOST_SHOWN:
            shown += f" and {len(labels) - _MOST_SHOWN:,} more"
        for name in ("low", "high", "norm_bound", "max_answers"):
            if name in particulars:
                shown += f"; {name} = {json.dumps(particulars[name])}"
        return [
            ("question", json.dumps(self.text)[:_LONGEST_TEXT] if self.text else "not in words"),
            ("choices", shown[:_LONGEST_TEXT]),
            ("your report", self._meaning()),
        ]

    def _meaning(self) -> str:
        """Return what epsilon0 means for somebody who answers."""
        loss = self.randomizer.epsilon0
        if self.randomizer.name == "k-rr":
            truth = 1.0 / (1.0 + (len(self.question.labels) - 1) * math.exp(-loss))
            return f"is the truth with probability {truth:.6g} (epsilon0 = {loss:.6g})"
        guess = 1.0 / (1.0 + math.exp(-loss))
        return (
            f"lets a guess between two answers be right with probability {guess:.6g} at most "
            f"(epsilon0 = {loss:.6g})"
        )

    def to_json_dict(self) -> dict[str, object]:
        """Return JSON values from which `from_json_dict` makes the same terms."""
        words = {"text": self.text} if self.text else {}
        return words | {
            "question": self.question.to_json_dict(),
            "labels": list(self.question.labels),
            "randomizer": self.randomizer.name,
            "epsilon0": self.epsilon0,
            "fingerprint": self.randomizer.fingerprint,
        }

    @classmethod
    def from_json_dict(cls, written: object) -> "AskedTerms":
        """Return the terms that were written.

        Parameters
        ----------
        written : object
            What `to_json_dict` returned, possibly through a file.

        Raises
        ------
        DataError
            If it is something else, or this version of shuffledp draws from another law.
        """
        try:
            asked = _from_json(written)
        except _FAULTS as error:
            reason = str(error) if isinstance(error, ShuffledpError) else repr(error)
            raise DataError(f"the terms ask no question that is known here: {reason}") from None
        if asked.randomizer.fingerprint != asked_fingerprint(written):
            raise DataError(
                f"the terms name the law {asked_fingerprint(written)!r} and this version of "
                f"shuffledp draws from {asked.randomizer.fingerprint!r}: use the version that "
                "prepared the collection"
            )
        return asked


def asked_fingerprint(written: Any) -> str:
    """Return the fingerprint that the terms name."""
    return str(written.get("fingerprint"))


def _from_json(written: Any) -> AskedTerms:
    """Return the terms; whatever is wrong with them raises some error."""
    particulars = written["question"]
    question = _QUESTIONS[particulars["kind"]](particulars, tuple(written["labels"]))
    text = written.get("text", "")
    if not isinstance(text, str):
        raise TypeError("text")
    return AskedTerms.of(question, written["randomizer"], written["epsilon0"], text)


_QUESTIONS: Mapping[str, Callable[[Any, tuple[str, ...]], Question]] = {
    Categories.kind: lambda _, labels: Categories(domain=labels),
    Words.kind: lambda said, labels: Words(dictionary=labels, key=bytes.fromhex(said["key"])),
    Mean.kind: lambda said, _: Mean(low=said["low"], high=said["high"], name=said["name"]),
    VectorMean.kind: lambda said, _: VectorMean(
        names=tuple(said["names"]), norm_bound=said["norm_bound"]
    ),
    AnswerSets.kind: lambda said, labels: AnswerSets(
        domain=labels, max_answers=said["max_answers"]
    ),
}


def _no_values(question: Question) -> Any:
    """Return an empty column of answers as the question's randomizers take them."""
    if isinstance(question, Words):
        return []
    if isinstance(question, Mean):
        return np.empty(0)
    if isinstance(question, VectorMean):
        return np.empty((0, len(question.names)))
    if isinstance(question, AnswerSets):
        return np.empty((0, question.max_answers), dtype=np.int64)
    return np.empty(0, dtype=np.int64)
