"""Terms of a collection: its question as JSON, and randomized reports as bytes of one size.

Layout: docs/explanation/report-encoding.md; docs/reference_client.py makes the same bytes.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question_from_json
from shuffledp.collection.questions.question import Question, chosen_candidates
from shuffledp.collection.questions.rounds import Search
from shuffledp.core.bound import finite
from shuffledp.core.checks import require_positive
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.core.labels import require_text
from shuffledp.core.reports import Reports
from shuffledp.deploy import wire
from shuffledp.randomizers.base import LocalRandomizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCodec:
    """Encoding of one row of ``Reports.data`` in bytes: little-endian, in the row's order."""

    randomizer: LocalRandomizer
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]

    @classmethod
    def of(cls, randomizer: LocalRandomizer, no_values: Any) -> "ReportCodec":
        """Return the codec of a randomizer's reports, from an empty column of values."""
        data = randomizer.randomize(no_values, Entropy.from_seed(0)).data
        return cls(randomizer=randomizer, dtype=data.dtype, row_shape=data.shape[1:])

    @property
    def num_report_bytes(self) -> int:
        """Bytes of every report."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    def encode(self, reports: Reports) -> list[bytes]:
        """Return the bytes of each report, in their order."""
        data = reports.data
        is_ours = data.dtype == self.dtype and data.shape[1:] == self.row_shape
        if reports.fingerprint != self.randomizer.fingerprint or not is_ours:
            made = f"fingerprint {reports.fingerprint!r}, dtype {data.dtype}, rows {data.shape[1:]}"
            raise ParameterError(f"reports have {made}: pass those that {self.randomizer!r} made")
        flat = np.ascontiguousarray(data, dtype=self.dtype.newbyteorder("<"))
        return [row.tobytes() for row in flat.reshape(len(flat), *self.row_shape)]

    def decode(self, encoded: Sequence[bytes]) -> Reports:
        """Return the reports that bytes encode; nothing is checked but their size."""
        sizes = {len(each) for each in encoded} - {self.num_report_bytes}
        if sizes:
            size = f"reports of {self.randomizer.name} have {self.num_report_bytes}"
            raise ParameterError(f"a report of {min(sizes)} bytes: {size}")
        data: NDArray[Any] = np.frombuffer(b"".join(encoded), dtype=self.dtype.newbyteorder("<"))
        data = data.astype(self.dtype).reshape(len(encoded), *self.row_shape)
        return Reports(data=data, fingerprint=self.randomizer.fingerprint)

    def decode_valid(self, encoded: Sequence[bytes]) -> tuple[Reports, int]:
        """Return the reports that the randomizer could have made, and the number of other ones.

        Users are not trusted: one of them may send bytes that encode no report, and that must not
        keep the others' from being counted. Each invalid one costs some log2(n) aggregations.
        """
        valid = self._counted([each for each in encoded if len(each) == self.num_report_bytes])
        return self.decode(valid), len(encoded) - len(valid)

    def _counted(self, encoded: Sequence[bytes]) -> Sequence[bytes]:
        """Return the reports that can be aggregated, halving a list that cannot be."""
        try:
            self.randomizer.aggregate(self.decode(encoded))
        except ShuffledpError:
            if len(encoded) <= 1:
                return []
            middle = len(encoded) // 2
            return [*self._counted(encoded[:middle]), *self._counted(encoded[middle:])]
        return encoded


def json_bytes(value: object) -> bytes:
    """Return JSON text in its only canonical form, which is digested."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


#: Largest mean number of dummies of a device, which take 0.1 seconds to seal.
MOST_OWN_DUMMIES: Final = 1_000

_MOST_SHOWN = 20

# Exceptions raised by values of the wrong kind, size or depth.
_FAULTS = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_LONGEST_TEXT = 1000
_INTEGERS = ("threshold", "num_buckets", "subset_size", "num_steps", "window", "num_hashes")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTerms:
    """A question, the randomizer of each user, and the encoding of reports; see `of`.

    Parameters
    ----------
    question : Question
        The question that is asked.
    randomizer : LocalRandomizer
        The randomizer that each user runs, once.
    codec : ReportCodec
        Its reports as bytes.
    epsilon0 : float
        Local epsilon that was asked for, in nats; the randomizer's own is at most this. ``inf``
        for answers without noise, which only dummies hide.
    text : str
        The question in words, as users read it.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> asked = AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0, "Have you tried it?")
    >>> asked.codec.num_report_bytes
    1
    >>> print(*asked.facts()[2])
    your report is the truth with probability 0.880797 (epsilon0 = 2)
    """

    question: Question
    randomizer: LocalRandomizer
    codec: ReportCodec
    epsilon0: float
    text: str = ""

    @classmethod
    def of(
        cls,
        question: Question,
        randomizer: str,
        epsilon0: float,
        text: str = "",
        *,
        no_local_noise: bool = False,
    ) -> Self:
        """Return the terms of a question with one of its ``candidates``; epsilon0 > 0.

        With ``no_local_noise`` it may be infinite: then a report of ``k-rr`` is the answer itself.
        """
        if question.has_rounds and (getattr(question, "search", None) is None or question.labels):
            raise ParameterError(
                f"question = {question.kind}: devices answer one of its rounds at a time; give "
                "search=..., which says of which"
            )
        if not (no_local_noise and epsilon0 == math.inf):
            require_positive("epsilon0", epsilon0)
        require_text("text of the question", text)
        made = chosen_candidates(question, randomizer)[randomizer](epsilon0)
        codec, loss = ReportCodec.of(made, question.no_values), float(epsilon0)
        return cls(question=question, randomizer=made, codec=codec, epsilon0=loss, text=text)

    @property
    def search(self) -> Search | None:
        """State of the search that asks one of its rounds; None for other questions."""
        return getattr(self.question, "search", None)

    @property
    def rounds(self) -> int:
        """Number of rounds in which each device sends a report, for a search with dummies."""
        return self.question.num_rounds if self.search and self.search.is_for_all else 1

    @property
    def num_answers(self) -> int:
        """Number of possible answers, each of which has dummies."""
        law: Any = self.randomizer
        return int(law.domain_size) if self.search else len(self.question.labels)

    def require_dummies(self, law: DummyLaw, most: float = math.inf, whose: str = "device") -> None:
        """Raise unless reports are the possible answers, and dummies at most ``most`` in mean."""
        if self.randomizer.name != "k-rr":
            raise ParameterError(
                f"dummies = {law} do not go with {self.randomizer.name}: take the randomizer k-rr, "
                "whose reports are the possible answers, or leave dummies out"
            )
        if (number := self.num_answers * law.mean) > most:
            raise ParameterError(
                f"dummies = {law} are {number:,.0f} a {whose} for {self.num_answers:,} answers, "
                f"above {most:,}: ask for fewer answers (group the rare ones), promise a larger "
                "epsilon, which needs fewer dummies, or leave dummies out"
            )

    def dummies(self, law: DummyLaw, entropy: Entropy) -> list[bytes]:
        """Return the dummies of one user, their number drawn for each possible answer."""
        self.require_dummies(law)
        answers = np.arange(self.num_answers, dtype=self.codec.dtype)
        data = answers.repeat(law.draw(len(answers), entropy))
        return self.codec.encode(Reports(data=data, fingerprint=self.randomizer.fingerprint))

    @property
    def law(self) -> bytes:
        """Digest of all that determines a report's distribution; reports of one law are alike."""
        return wire.digest(b"law", json.dumps(self.to_json_dict(), sort_keys=True).encode())

    @property
    def integers(self) -> bytes:
        """JSON of the integers of the law, in hexadecimal, for clients that do not compute them."""
        base = getattr(self.randomizer, "base", self.randomizer)
        law = getattr(base, "law", base)  # piecewise keeps its integers together
        found = {name: getattr(law, name, None) for name in _INTEGERS}
        written = {name: f"{each:x}" for name, each in found.items() if isinstance(each, int)}
        return json.dumps(written).encode()

    @property
    def question_digest(self) -> bytes:
        """Digest of the question, whatever the order of the choices, the law and the spelling."""
        words = " ".join(self.text.casefold().split())
        asked = [words, sorted(self.question.labels), self.question.to_json_dict()]
        return wire.digest(b"question", json.dumps(asked, sort_keys=True).encode())

    def facts(self) -> list[tuple[str, str]]:
        """Return the question, its choices and the meaning of a report, for the user to read.

        Texts from the terms stand in JSON strings, so that they cannot control a terminal.
        """
        labels, particulars = self.question.labels, self.question.to_json_dict()
        shown = ", ".join(json.dumps(label) for label in labels[:_MOST_SHOWN])
        if len(labels) > _MOST_SHOWN:
            shown += f" and {len(labels) - _MOST_SHOWN:,} more"
        numbers = (each for each in particulars.items() if isinstance(each[1], int | float))
        shown += "".join(f"; {name} = {json.dumps(number)}" for name, number in numbers)
        shown = self.question.describe() if self.search else shown
        return [
            ("question", json.dumps(self.text)[:_LONGEST_TEXT] if self.text else "not in words"),
            ("choices", shown[:_LONGEST_TEXT]),
            ("your report", self._meaning()),
        ]

    def _meaning(self) -> str:
        """Return the meaning of epsilon0 for a participant."""
        loss = self.randomizer.epsilon0
        if math.isinf(loss):
            return "is your answer, without noise: shuffler and analyst together would see it"
        guess = 1.0 / (1.0 + math.exp(-loss))
        where = ""
        if self.rounds > 1:
            where = f"in each of {self.rounds} rounds "
        elif self.search:
            where = "in one round, drawn in secret, and says nothing in the others, "
        said = f"lets a guess between two answers be right with probability {guess:.6g} at most"
        if self.randomizer.name == "k-rr":
            truth = 1.0 / (1.0 + (self.num_answers - 1) * math.exp(-loss))
            said = f"is the truth with probability {truth:.6g}"
        return f"{where}{said} (epsilon0 = {loss:.6g})"

    def to_json_dict(self) -> dict[str, object]:
        """Return JSON values from which `from_json_dict` makes the same terms."""
        words = {"text": self.text} if self.text else {}
        return words | {
            "question": self.question.to_json_dict(),
            "labels": list(self.question.labels),
            "randomizer": self.randomizer.name,
            "epsilon0": finite(self.epsilon0),
            "fingerprint": self.randomizer.fingerprint,
        }

    def to_json(self) -> bytes:
        """Return the terms as JSON text, in canonical form."""
        return json_bytes(self.to_json_dict())

    @classmethod
    def from_json_dict(cls, written: Any) -> "AskedTerms":
        """Return the terms that `to_json_dict` wrote; raise for other ones, or another law."""
        try:
            text = written.get("text", "")
            if not isinstance(text, str):
                raise TypeError("text")  # reported below, as all other faults
            question = question_from_json(written["question"], tuple(written["labels"]))
            loss = written["epsilon0"]
            asked = cls.of(
                question,
                written["randomizer"],
                math.inf if loss is None else loss,
                text,
                no_local_noise=loss is None,
            )
        except _FAULTS as error:
            reason = str(error) if isinstance(error, ShuffledpError) else repr(error)
            raise DataError(f"the terms ask no question that is known here: {reason}") from None
        for ours, theirs in zip(question.labels, written["labels"], strict=False):
            if ours != theirs:  # no text of a user is normalized to such a label
                raise DataError(
                    f"the terms have the label {theirs!a}, and text becomes {ours!a}: "
                    "write labels composed (Unicode NFC), with plain spaces, none at the ends, and "
                    "no invisible characters"
                )
        if asked.randomizer.fingerprint != (said := written.get("fingerprint")):
            ours = f"this version of shuffledp draws from {asked.randomizer.fingerprint!r}"
            remedy = "use the version that prepared the collection"
            raise DataError(f"the terms name the law {said!r} and {ours}: {remedy}")
        return asked
