"""Which share of the users has each word of a dictionary, where words come from an open domain."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from shuffledp.collection.questions.frequencies import (
    USELESS_STANDARD_ERROR,
    apply_post_processing,
    require_known_steps,
)
from shuffledp.collection.questions.question import (
    Candidates,
    EstimateOptions,
    candidates_of,
    require_list,
)
from shuffledp.collection.source.labels import checked_domain
from shuffledp.collection.source.words import WordColumn, words_from_values
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.reports import Counts
from shuffledp.estimation.frequencies import FrequencyEstimates, expected_standard_error
from shuffledp.randomizers.keyed_hash import new_key, require_key
from shuffledp.randomizers.registry import STRING_RANDOMIZERS
from shuffledp.randomizers.sketches import StringSketch


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuestion:
    """Each user has one text, any text; only those of a dictionary are asked for in the end.

    Parameters
    ----------
    dictionary : tuple of str
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

    dictionary: tuple[str, ...]
    key: bytes = field(default_factory=lambda: new_key(Entropy.from_operating_system()))

    def __post_init__(self) -> None:
        require_list("dictionary", self.dictionary)
        words = checked_domain(self.dictionary)
        if not words:
            raise DomainError("dictionary is empty: list at least one word to ask for")
        object.__setattr__(self, "dictionary", words)
        object.__setattr__(self, "key", require_key(self.key))

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of the dictionary."""
        return self.dictionary

    @property
    def useless_error(self) -> float:
        """A quarter: then a 95 % interval is wider than [0, 1]."""
        return USELESS_STANDARD_ERROR

    @property
    def central_sensitivity(self) -> float:
        """Replacing one word changes two counts by one."""
        return 2.0

    def candidates(self) -> Candidates:
        """Return all registered randomizers of texts, under this key."""
        return candidates_of(STRING_RANDOMIZERS, key=self.key)

    @property
    def expected_for(self) -> str:
        """What the expected error is averaged over, or which case it is."""
        return "for a word that nobody has, where few have the same one"

    @property
    def expected_spread(self) -> float:
        """None: nobody has the word."""
        return 0.0

    def expected_error(self, randomizer: StringSketch, num_users: int) -> float:
        """Return the standard error of the frequency of a rare word, collisions apart."""
        p, q = randomizer.support_probabilities
        if not p > q:
            return math.inf
        return expected_standard_error(
            support_probabilities=(p, q), num_users=num_users, frequency=0.0
        )

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` unless all steps are known."""
        require_known_steps(steps)

    def column(self, values: Iterable[object]) -> WordColumn:
        """Return texts that are in memory as a checked column."""
        return words_from_values(values)

    def require_column(self, column: object) -> None:
        """Raise `DomainError` unless the column holds texts."""
        if not isinstance(column, WordColumn):
            raise DomainError("the column was not opened as texts: use open_words")

    def estimate(
        self, randomizer: StringSketch, aggregate: Counts, options: EstimateOptions
    ) -> FrequencyEstimates:
        """Return the frequency of each word of the dictionary."""
        estimates = randomizer.estimate(
            aggregate,
            dictionary=self.dictionary,
            confidence=options.confidence,
            interval=options.interval,
            simultaneous=options.simultaneous,
        )
        return apply_post_processing(estimates, options.post_processing)

    def describe(self) -> str:
        """Return the number of words."""
        return f"any text, {len(self.dictionary)} words asked for"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and public key; the words stand apart, as ``domain``."""
        return {"kind": self.kind, "key": self.key.hex()}
