"""Local randomizers: each user's value goes in, a deniable report comes out.

One file a randomizer; `registry` has them all by name. Every law is exactly rational, of
denominator 2^64, and every randomizer accounts for exactly the law that it draws.
"""

from shuffledp.mechanisms.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.mechanisms.randomizers.optimized_unary import OptimizedUnaryEncoding
from shuffledp.mechanisms.randomizers.protocol import Channel, Counts, LocalRandomizer, Reports
from shuffledp.mechanisms.randomizers.registry import RANDOMIZERS, make_randomizer
from shuffledp.mechanisms.randomizers.symmetric_unary import SymmetricUnaryEncoding

__all__ = [
    "RANDOMIZERS",
    "Channel",
    "Counts",
    "KRandomizedResponse",
    "LocalRandomizer",
    "OptimizedUnaryEncoding",
    "Reports",
    "SymmetricUnaryEncoding",
    "make_randomizer",
]
