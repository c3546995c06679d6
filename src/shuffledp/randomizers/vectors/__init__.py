"""Local randomizers of vectors in a Euclidean ball: PrivUnit and its Gaussian relative."""

from shuffledp.randomizers.vectors.privunit import PrivUnit
from shuffledp.randomizers.vectors.privunit_gaussian import PrivUnitGaussian

__all__ = ["PrivUnit", "PrivUnitGaussian"]
