"""Strings of open domains: randomizers that need no list of the possible values beforehand.

Two sketches, which hash strings to buckets under a public key. They differ from a
`CategoryRandomizer` in two ways: their values are strings, and an estimate is asked for a
dictionary of strings. Once the reports are in, any dictionary may be tried, and as many as one
likes: that is post-processing.
"""

from shuffledp.randomizers.strings.count_mean_sketch import CountMeanSketch
from shuffledp.randomizers.strings.hadamard_count_mean_sketch import (
    HadamardCountMeanSketch,
)
from shuffledp.randomizers.strings.keyed_hash import KEY_BYTES, digests_of, new_key
from shuffledp.randomizers.strings.sketch import StringSketch
from shuffledp.randomizers.strings.texts import LONGEST_TEXT_BYTES, Texts

__all__ = [
    "KEY_BYTES",
    "LONGEST_TEXT_BYTES",
    "CountMeanSketch",
    "HadamardCountMeanSketch",
    "StringSketch",
    "Texts",
    "digests_of",
    "new_key",
]
