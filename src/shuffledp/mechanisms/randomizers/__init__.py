"""Local randomizers: each user's value goes in, a deniable report comes out.

One file a randomizer; `registry` has them all by name. Every law is exactly rational, of
denominator 2^64, and every randomizer accounts for exactly the law that it draws.
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
