from shuffledp.core.reports import Counts as Counts
from shuffledp.core.reports import Reports as Reports
from shuffledp.core.reports import Sums as Sums
from shuffledp.randomizers.categories.hadamard_response import HadamardResponse as HadamardResponse
from shuffledp.randomizers.categories.k_randomized_response import (
    KRandomizedResponse as KRandomizedResponse,
)
from shuffledp.randomizers.categories.local_hashing import BinaryLocalHashing as BinaryLocalHashing
from shuffledp.randomizers.categories.local_hashing import (
    OptimizedLocalHashing as OptimizedLocalHashing,
)
from shuffledp.randomizers.categories.optimized_unary import (
    OptimizedUnaryEncoding as OptimizedUnaryEncoding,
)
from shuffledp.randomizers.categories.subset_selection import SubsetSelection as SubsetSelection
from shuffledp.randomizers.categories.symmetric_unary import (
    SymmetricUnaryEncoding as SymmetricUnaryEncoding,
)
from shuffledp.randomizers.category_randomizer import CategoryRandomizer as CategoryRandomizer
from shuffledp.randomizers.mean_randomizer import MeanRandomizer as MeanRandomizer
from shuffledp.randomizers.numbers.duchi import Duchi as Duchi
from shuffledp.randomizers.numbers.hybrid import Hybrid as Hybrid
from shuffledp.randomizers.numbers.laplace import DiscreteLaplace as DiscreteLaplace
from shuffledp.randomizers.numbers.piecewise import Piecewise as Piecewise
from shuffledp.randomizers.protocol import Channel as Channel
from shuffledp.randomizers.protocol import LocalRandomizer as LocalRandomizer
from shuffledp.randomizers.registry import RANDOMIZERS as RANDOMIZERS
from shuffledp.randomizers.registry import make_randomizer as make_randomizer
from shuffledp.randomizers.sets.sampled_answers import SampledAnswers as SampledAnswers
from shuffledp.randomizers.sets.split_answers import SplitAnswers as SplitAnswers
from shuffledp.randomizers.strings.count_mean_sketch import CountMeanSketch as CountMeanSketch
from shuffledp.randomizers.strings.hadamard_count_mean_sketch import (
    HadamardCountMeanSketch as HadamardCountMeanSketch,
)
from shuffledp.randomizers.vectors.privunit import PrivUnit as PrivUnit
from shuffledp.randomizers.vectors.privunit_gaussian import PrivUnitGaussian as PrivUnitGaussian
