"""Local randomizers: each user's value goes in, a deniable report comes out.

One file a family; `registry` has them by name. Laws are exact: draws compare whole numbers, and
every randomizer accounts for the very law that it draws. (Vectors are the exception, and say so.)
`shuffledp.testing` checks all of that, also of a randomizer of one's own.
"""

from shuffledp.core.reports import Counts, Reports, Sums
from shuffledp.randomizers.answer_sets import (
    ANSWER_SET_RANDOMIZERS,
    SampledAnswers,
    SetRandomizer,
    SplitAnswers,
    pad_answers,
)
from shuffledp.randomizers.base import (
    CategoryRandomizer,
    Channel,
    LocalRandomizer,
    MeanRandomizer,
)
from shuffledp.randomizers.duchi import Duchi
from shuffledp.randomizers.hybrid import Hybrid
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.keyed_hash import LONGEST_TEXT_BYTES, Texts, digests_of, new_key
from shuffledp.randomizers.laplace import DiscreteLaplace
from shuffledp.randomizers.local_hashing import (
    BinaryLocalHashing,
    HadamardResponse,
    OptimizedLocalHashing,
)
from shuffledp.randomizers.number_randomizer import expected_standard_error
from shuffledp.randomizers.piecewise import Piecewise
from shuffledp.randomizers.privunit import PrivUnit, PrivUnitGaussian
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    STRING_RANDOMIZERS,
    VECTOR_RANDOMIZERS,
    make_randomizer,
)
from shuffledp.randomizers.sketches import CountMeanSketch, HadamardCountMeanSketch, StringSketch
from shuffledp.randomizers.subset_selection import SubsetSelection
from shuffledp.randomizers.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

__all__ = [
    "ANSWER_SET_RANDOMIZERS",
    "LONGEST_TEXT_BYTES",
    "NUMBER_RANDOMIZERS",
    "RANDOMIZERS",
    "STRING_RANDOMIZERS",
    "VECTOR_RANDOMIZERS",
    "BinaryLocalHashing",
    "CategoryRandomizer",
    "Channel",
    "CountMeanSketch",
    "Counts",
    "DiscreteLaplace",
    "Duchi",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "Hybrid",
    "KRandomizedResponse",
    "LocalRandomizer",
    "MeanRandomizer",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "Piecewise",
    "PrivUnit",
    "PrivUnitGaussian",
    "Reports",
    "SampledAnswers",
    "SetRandomizer",
    "SplitAnswers",
    "StringSketch",
    "SubsetSelection",
    "Sums",
    "SymmetricUnaryEncoding",
    "Texts",
    "digests_of",
    "expected_standard_error",
    "make_randomizer",
    "new_key",
    "pad_answers",
]
