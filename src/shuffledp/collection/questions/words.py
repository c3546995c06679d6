"""Any text: the shares of users with each word of a dictionary."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.randomizers import registry
from shuffledp.randomizers.keyed_hash import new_key, require_key
from shuffledp.randomizers.sketches import CountMeanSketch


@dataclass(frozen=True, slots=True, init=False)
class Words(question.Shares):
    """Each user has one text, any text; the shares of a dictionary's words are asked for.

    Parameters
    ----------
    dictionary : iterable of str
        The words to estimate, at least one, all different. Reports do not depend on it.
    key : bytes
        Public key of the hash functions, 16 bytes; by default a new one from the operating
        system, so that nobody could prepare words that collide before the task was announced.

    Raises
    ------
    DomainError
        If the dictionary is empty or repeats a word.
    """

    kind: ClassVar[str] = "words"
    reads: ClassVar[tuple[str, ...]] = ("missing",)
    no_values: ClassVar[tuple[str, ...]] = ()
    central_sensitivity: ClassVar[float] = 2.0  # replacing one word changes two counts by one
    expected_for: ClassVar[str] = "for a word that nobody has, where few have the same one"
    expected_spread: ClassVar[float] = 0.0

    dictionary: tuple[str, ...]
    key: bytes

    def __init__(self, dictionary: Iterable[object], *, key: bytes | None = None) -> None:
        spelt.require_list("dictionary", dictionary)
        words = spelt.checked_domain(dictionary, "dictionary")
        if not words:
            raise DomainError("dictionary is empty: list at least one word to ask for")
        object.__setattr__(self, "dictionary", words)
        if key is None:
            key = new_key(Entropy.from_operating_system())
        object.__setattr__(self, "key", require_key(key))

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> "Words":
        """Return the question that `to_json_dict` wrote."""
        return cls(labels, key=bytes.fromhex(particulars["key"]))

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of the dictionary."""
        return self.dictionary

    def candidates(self) -> question.Candidates:
        """Return all registered randomizers of texts, under this key."""
        return question.candidates_of(registry.STRING_RANDOMIZERS, key=self.key)

    def expected_error(
        self, randomizer: CountMeanSketch, num_users: int, dummies: question.Laws = ()
    ) -> float:
        """Return the standard error of the frequency of a rare word, collisions apart."""
        return question.error_at(randomizer, num_users, 0.0, dummies)

    def worst_report(self, randomizer: CountMeanSketch, place: int) -> NDArray[Any]:
        """Return a report that supports a word of the dictionary."""
        return randomizer.report_for(self.dictionary[place])

    def column(self, values: Iterable[object], *, missing: str = "error") -> columns.Column:
        """Return texts that are in memory as a checked column."""
        return self.read(tables.source_of_values("word", values), missing=missing)

    def read(self, source: tables.Source, **reading: Any) -> columns.Column:
        """Return a column of texts, checked; series of polars."""
        return columns.survey(
            source,
            {"text": spelt.present(source.label(), source.missing_texts(self.dictionary))},
            lambda batch: (batch["text"], batch["text"].is_null().to_numpy()),
            checked_for=self.checked_for,
            unless="words",
            **reading,
        )

    def value_of_one(self, answer: object) -> NDArray[np.object_]:
        """Return one user's text, shape (1,)."""
        return np.array([single.label_of_one(answer, self.dictionary)], dtype=object)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of texts has to be checked for: which usual texts for none are words."""
        return ("texts", tuple(text for text in spelt.MISSING_TEXTS if text in self.dictionary))

    def _asked(self) -> dict[str, Any]:
        """Return the words to estimate."""
        return {"dictionary": self.dictionary}

    def describe(self) -> str:
        """Return the number of words."""
        return f"any text, {len(self.dictionary)} words asked for"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and public key; the words stand apart, as ``domain``."""
        return {"kind": self.kind, "key": self.key.hex()}
