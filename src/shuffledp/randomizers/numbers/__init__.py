"""Local randomizers of numbers in a range, for estimating means.

Each value is first rounded to a grid without bias, and then goes through a law on that grid whose
probabilities are known exactly. `rounding` does the first step for all of them.
"""

from shuffledp.randomizers.numbers.accuracy import expected_standard_error
from shuffledp.randomizers.numbers.duchi import Duchi
from shuffledp.randomizers.numbers.hybrid import Hybrid
from shuffledp.randomizers.numbers.laplace import DiscreteLaplace
from shuffledp.randomizers.numbers.piecewise import Piecewise

__all__ = [
    "DiscreteLaplace",
    "Duchi",
    "Hybrid",
    "Piecewise",
    "expected_standard_error",
]
