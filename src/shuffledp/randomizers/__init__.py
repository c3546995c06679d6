"""Local randomizers: each user's value goes in, a deniable report comes out.

A folder for each kind of value, in it one file a randomizer; `registry` has them by name. Laws are
exact: draws compare whole numbers, and every randomizer accounts for the very law that it draws.
(Vectors are the exception, and say so.) `contract` checks all of that, also of a randomizer of
one's own.
"""

from shuffledp.core.reports import Counts, Reports, Sums
from shuffledp.randomizers.categories.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.categories.optimized_unary import OptimizedUnaryEncoding
from shuffledp.randomizers.categories.symmetric_unary import SymmetricUnaryEncoding
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.protocol import Channel, LocalRandomizer
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

__all__ = [
    "RANDOMIZERS",
    "CategoryRandomizer",
    "Channel",
    "Counts",
    "KRandomizedResponse",
    "LocalRandomizer",
    "MeanRandomizer",
    "OptimizedUnaryEncoding",
    "Reports",
    "Sums",
    "SymmetricUnaryEncoding",
    "make_randomizer",
]
