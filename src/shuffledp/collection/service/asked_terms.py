"""What a collection asks, as JSON in its terms: the question, the randomizer and its epsilon0."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.collection.questions.answer_sets import AnswerSetQuestion
from shuffledp.collection.questions.frequencies import FrequencyQuestion
from shuffledp.collection.questions.mean import MeanQuestion
from shuffledp.collection.questions.question import Question, chosen_candidates
from shuffledp.collection.questions.vector_mean import VectorMeanQuestion
from shuffledp.collection.questions.words import WordQuestion
from shuffledp.collection.service.report_codec import ReportCodec
from shuffledp.core.checks import require_positive
from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.mechanisms.randomizers.protocol import LocalRandomizer


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
    """

    question: Question
    randomizer: LocalRandomizer
    codec: ReportCodec
    epsilon0: float

    @classmethod
    def of(cls, question: Question, randomizer: str, epsilon0: float) -> "AskedTerms":
        """Return the terms of a question with a randomizer of that name.

        Parameters
        ----------
        question : Question
            What is asked.
        randomizer : str
            One of the question's ``candidates``.
        epsilon0 : float
            Local privacy loss in nats, > 0: with 0 reports would say nothing.

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
        )

    def to_json_dict(self) -> dict[str, object]:
        """Return JSON values from which `from_json_dict` makes the same terms."""
        return {
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
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
    return AskedTerms.of(question, written["randomizer"], written["epsilon0"])


_QUESTIONS: Mapping[str, Callable[[Any, tuple[str, ...]], Question]] = {
    FrequencyQuestion.kind: lambda _, labels: FrequencyQuestion(domain=labels),
    WordQuestion.kind: lambda said, labels: WordQuestion(
        dictionary=labels, key=bytes.fromhex(said["key"])
    ),
    MeanQuestion.kind: lambda said, _: MeanQuestion(
        low=said["low"], high=said["high"], name=said["name"]
    ),
    VectorMeanQuestion.kind: lambda said, _: VectorMeanQuestion(
        names=tuple(said["names"]), norm_bound=said["norm_bound"]
    ),
    AnswerSetQuestion.kind: lambda said, labels: AnswerSetQuestion(
        domain=labels, max_answers=said["max_answers"]
    ),
}


def _no_values(question: Question) -> Any:
    """Return an empty column of answers as the question's randomizers take them."""
    if isinstance(question, WordQuestion):
        return []
    if isinstance(question, MeanQuestion):
        return np.empty(0)
    if isinstance(question, VectorMeanQuestion):
        return np.empty((0, len(question.names)))
    if isinstance(question, AnswerSetQuestion):
        return np.empty((0, question.max_answers), dtype=np.int64)
    return np.empty(0, dtype=np.int64)
