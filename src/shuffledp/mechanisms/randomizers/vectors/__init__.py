"""Local randomizers of vectors in a Euclidean ball: PrivUnit and its Gaussian relative."""

from shuffledp.mechanisms.randomizers.vectors.privunit import PrivUnit
from shuffledp.mechanisms.randomizers.vectors.privunit_gaussian import PrivUnitGaussian

__all__ = ["PrivUnit", "PrivUnitGaussian"]
