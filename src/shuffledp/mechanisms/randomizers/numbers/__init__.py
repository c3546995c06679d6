"""Local randomizers of numbers in a range, for estimating means.

Each value is first rounded to a grid without bias, and then goes through a law on that grid whose
probabilities are known exactly. `rounding` does the first step for all of them.
"""

from shuffledp.mechanisms.randomizers.numbers.accuracy import expected_standard_error
from shuffledp.mechanisms.randomizers.numbers.duchi import Duchi
from shuffledp.mechanisms.randomizers.numbers.hybrid import Hybrid
from shuffledp.mechanisms.randomizers.numbers.laplace import DiscreteLaplace
from shuffledp.mechanisms.randomizers.numbers.piecewise import Piecewise

__all__ = [
    "DiscreteLaplace",
    "Duchi",
    "Hybrid",
    "Piecewise",
    "expected_standard_error",
]
