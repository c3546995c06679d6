"""Local randomizers: each user's value goes in, a deniable report comes out.

A folder for each kind of value, in it one file a randomizer; `registry` has them by name. Laws are
exact: draws compare whole numbers, and every randomizer accounts for the very law that it draws.
(Vectors are the exception, and say so.) `contract` checks all of that, also of a randomizer of
one's own.
"""

from shuffledp.mechanisms.randomizers.categories.k_randomized_response import KRandomizedResponse
from shuffledp.mechanisms.randomizers.categories.optimized_unary import OptimizedUnaryEncoding
from shuffledp.mechanisms.randomizers.categories.symmetric_unary import SymmetricUnaryEncoding
from shuffledp.mechanisms.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.mechanisms.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.mechanisms.randomizers.protocol import Channel, LocalRandomizer
from shuffledp.mechanisms.randomizers.registry import RANDOMIZERS, make_randomizer
from shuffledp.mechanisms.reports import Counts, Reports, Sums

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
