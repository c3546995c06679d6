"""shuffledp: differential privacy in the shuffle model, from a question to a running collection.

>>> import shuffledp as sdp
>>> plan = sdp.plan(num_users=1000, domain=["yes", "no"], epsilon=1.0, delta=1e-6)
>>> result = plan.run(["yes"] * 300 + ["no"] * 700, seed=1)
>>> result.num_users
1000

Names below are loaded when they are first used, so that importing shuffledp stays quick.
"""

from typing import TYPE_CHECKING, Any

from shuffledp._version import __version__
from shuffledp.collection.results import register_renderer
from shuffledp.core.lazy_names import lazy_names
from shuffledp.interface import reports

if TYPE_CHECKING:
    from shuffledp.collection.datasets.answer_sets import open_answer_sets
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.datasets.limits import Ball, Range
    from shuffledp.collection.datasets.numbers import open_numbers
    from shuffledp.collection.datasets.tables import open_table
    from shuffledp.collection.datasets.words import open_words
    from shuffledp.collection.grouping import Grouping
    from shuffledp.collection.guarantees import account, guarantee_for
    from shuffledp.collection.leakage import account_leakage
    from shuffledp.collection.monitoring.plan import plan_monitoring
    from shuffledp.collection.monitoring.simulate import simulate_monitoring
    from shuffledp.collection.network_account import account_network
    from shuffledp.collection.network_mixing import NetworkMixing
    from shuffledp.collection.plan import Plan, plan_mean, plan_question, plan_vector_mean
    from shuffledp.collection.plan import make_plan as plan
    from shuffledp.collection.questions.answer_sets import AnswerSetQuestion
    from shuffledp.collection.questions.frequencies import FrequencyQuestion
    from shuffledp.collection.questions.mean import MeanQuestion
    from shuffledp.collection.questions.vector_mean import VectorMeanQuestion
    from shuffledp.collection.questions.words import WordQuestion
    from shuffledp.collection.report_files import open_reports, write_reports
    from shuffledp.collection.results import Guarantee, RunResult
    from shuffledp.core.bound import Bound
    from shuffledp.core.entropy import Entropy
    from shuffledp.core.errors import ShuffledpError
    from shuffledp.core.profile import LocalProfile
    from shuffledp.mechanisms.estimators.frequencies import estimate_frequencies
    from shuffledp.mechanisms.estimators.iterative_bayesian_update import iterative_bayesian_update
    from shuffledp.mechanisms.monitoring.client import MonitorClient
    from shuffledp.mechanisms.monitoring.server import MonitorServer
    from shuffledp.mechanisms.networks.graph import Graph
    from shuffledp.mechanisms.networks.random_walk import (
        RandomWalk,
        position_distribution,
        simulate_positions,
    )
    from shuffledp.mechanisms.permutations.cayley import CayleyMallows
    from shuffledp.mechanisms.permutations.groups.groups import Groups
    from shuffledp.mechanisms.permutations.hamming import HammingMallows
    from shuffledp.mechanisms.permutations.kendall import KendallMallows
    from shuffledp.mechanisms.permutations.reference_orders import (
        ReferenceOrder,
        choose_reference_order,
    )
    from shuffledp.mechanisms.randomizers.categories.hadamard_response import HadamardResponse
    from shuffledp.mechanisms.randomizers.categories.k_randomized_response import (
        KRandomizedResponse,
    )
    from shuffledp.mechanisms.randomizers.categories.local_hashing import (
        BinaryLocalHashing,
        OptimizedLocalHashing,
    )
    from shuffledp.mechanisms.randomizers.categories.optimized_unary import OptimizedUnaryEncoding
    from shuffledp.mechanisms.randomizers.categories.subset_selection import SubsetSelection
    from shuffledp.mechanisms.randomizers.categories.symmetric_unary import SymmetricUnaryEncoding
    from shuffledp.mechanisms.randomizers.category_randomizer import CategoryRandomizer
    from shuffledp.mechanisms.randomizers.mean_randomizer import MeanRandomizer
    from shuffledp.mechanisms.randomizers.numbers.duchi import Duchi
    from shuffledp.mechanisms.randomizers.numbers.hybrid import Hybrid
    from shuffledp.mechanisms.randomizers.numbers.laplace import DiscreteLaplace
    from shuffledp.mechanisms.randomizers.numbers.piecewise import Piecewise
    from shuffledp.mechanisms.randomizers.sets.sampled_answers import SampledAnswers
    from shuffledp.mechanisms.randomizers.sets.split_answers import SplitAnswers
    from shuffledp.mechanisms.randomizers.strings.count_mean_sketch import CountMeanSketch
    from shuffledp.mechanisms.randomizers.strings.hadamard_count_mean_sketch import (
        HadamardCountMeanSketch,
    )
    from shuffledp.mechanisms.randomizers.vectors.privunit import PrivUnit
    from shuffledp.mechanisms.randomizers.vectors.privunit_gaussian import PrivUnitGaussian
    from shuffledp.mechanisms.reports import Counts, Reports, Sums
    from shuffledp.mechanisms.shufflers.displacement import DisplacementShuffler
    from shuffledp.mechanisms.shufflers.mallows import MallowsShuffler
    from shuffledp.mechanisms.shufflers.network import NetworkShuffler
    from shuffledp.mechanisms.shufflers.uniform import UniformShuffler
    from shuffledp.privacy.accounting.calibration import largest_epsilon0, smallest_num_users
    from shuffledp.privacy.amplification.network_walk import (
        network_walk_delta,
        network_walk_epsilon,
    )
    from shuffledp.privacy.leakage.account import LeakageAccount
    from shuffledp.privacy.leakage.channels.channel import Channel

# Module to the public names that it holds.
_HOMES = {
    "collection.datasets.answer_sets": ("open_answer_sets",),
    "collection.datasets.limits": (
        "Ball",
        "Range",
    ),
    "collection.datasets.numbers": ("open_numbers",),
    "collection.datasets.tables": ("open_table",),
    "collection.datasets.words": ("open_words",),
    "collection.grouping": ("Grouping",),
    "collection.guarantees": (
        "account",
        "guarantee_for",
    ),
    "collection.plan": (
        "Plan",
        "plan",
        "plan_mean",
        "plan_question",
        "plan_vector_mean",
    ),
    "collection.questions.answer_sets": ("AnswerSetQuestion",),
    "collection.questions.frequencies": ("FrequencyQuestion",),
    "collection.questions.mean": ("MeanQuestion",),
    "collection.questions.vector_mean": ("VectorMeanQuestion",),
    "collection.questions.words": ("WordQuestion",),
    "collection.report_files": (
        "open_reports",
        "write_reports",
    ),
    "collection.results": (
        "Guarantee",
        "RunResult",
    ),
    "core.bound": ("Bound",),
    "core.entropy": ("Entropy",),
    "core.errors": ("ShuffledpError",),
    "core.profile": ("LocalProfile",),
    "mechanisms.estimators.frequencies": ("estimate_frequencies",),
    "mechanisms.estimators.iterative_bayesian_update": ("iterative_bayesian_update",),
    "mechanisms.permutations.cayley": ("CayleyMallows",),
    "mechanisms.permutations.groups.groups": ("Groups",),
    "mechanisms.permutations.hamming": ("HammingMallows",),
    "mechanisms.permutations.kendall": ("KendallMallows",),
    "mechanisms.permutations.reference_orders": (
        "ReferenceOrder",
        "choose_reference_order",
    ),
    "mechanisms.randomizers.category_randomizer": ("CategoryRandomizer",),
    "mechanisms.randomizers.categories.hadamard_response": ("HadamardResponse",),
    "mechanisms.randomizers.categories.k_randomized_response": ("KRandomizedResponse",),
    "mechanisms.randomizers.categories.local_hashing": (
        "BinaryLocalHashing",
        "OptimizedLocalHashing",
    ),
    "mechanisms.randomizers.mean_randomizer": ("MeanRandomizer",),
    "mechanisms.randomizers.numbers.duchi": ("Duchi",),
    "mechanisms.randomizers.numbers.hybrid": ("Hybrid",),
    "mechanisms.randomizers.numbers.laplace": ("DiscreteLaplace",),
    "mechanisms.randomizers.numbers.piecewise": ("Piecewise",),
    "mechanisms.randomizers.categories.optimized_unary": ("OptimizedUnaryEncoding",),
    "mechanisms.randomizers.sets.sampled_answers": ("SampledAnswers",),
    "mechanisms.randomizers.sets.split_answers": ("SplitAnswers",),
    "mechanisms.randomizers.strings.count_mean_sketch": ("CountMeanSketch",),
    "mechanisms.randomizers.strings.hadamard_count_mean_sketch": ("HadamardCountMeanSketch",),
    "mechanisms.randomizers.categories.subset_selection": ("SubsetSelection",),
    "mechanisms.randomizers.categories.symmetric_unary": ("SymmetricUnaryEncoding",),
    "mechanisms.randomizers.vectors.privunit": ("PrivUnit",),
    "mechanisms.randomizers.vectors.privunit_gaussian": ("PrivUnitGaussian",),
    "mechanisms.reports": (
        "Counts",
        "Reports",
        "Sums",
    ),
    "mechanisms.shufflers.displacement": ("DisplacementShuffler",),
    "mechanisms.shufflers.mallows": ("MallowsShuffler",),
    "mechanisms.shufflers.uniform": ("UniformShuffler",),
    "privacy.accounting.calibration": (
        "largest_epsilon0",
        "smallest_num_users",
    ),
    "collection.datasets.graph_files": ("read_graph",),
    "collection.leakage": ("account_leakage",),
    "collection.monitoring.plan": ("plan_monitoring",),
    "collection.monitoring.simulate": ("simulate_monitoring",),
    "collection.network_account": ("account_network",),
    "collection.network_mixing": ("NetworkMixing",),
    "mechanisms.monitoring.client": ("MonitorClient",),
    "mechanisms.monitoring.server": ("MonitorServer",),
    "mechanisms.networks.graph": ("Graph",),
    "mechanisms.networks.random_walk": (
        "RandomWalk",
        "position_distribution",
        "simulate_positions",
    ),
    "mechanisms.shufflers.network": ("NetworkShuffler",),
    "privacy.amplification.network_walk": (
        "network_walk_delta",
        "network_walk_epsilon",
    ),
    "privacy.leakage.account": ("LeakageAccount",),
    "privacy.leakage.channels.channel": ("Channel",),
}

__all__ = [
    "AnswerSetQuestion",
    "Ball",
    "BinaryLocalHashing",
    "Bound",
    "CategoryRandomizer",
    "CayleyMallows",
    "Channel",
    "CountMeanSketch",
    "Counts",
    "DiscreteLaplace",
    "DisplacementShuffler",
    "Duchi",
    "Entropy",
    "FrequencyQuestion",
    "Graph",
    "Grouping",
    "Groups",
    "Guarantee",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HammingMallows",
    "Hybrid",
    "KRandomizedResponse",
    "KendallMallows",
    "LeakageAccount",
    "LocalProfile",
    "MallowsShuffler",
    "MeanQuestion",
    "MeanRandomizer",
    "MonitorClient",
    "MonitorServer",
    "NetworkMixing",
    "NetworkShuffler",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "Piecewise",
    "Plan",
    "PrivUnit",
    "PrivUnitGaussian",
    "RandomWalk",
    "Range",
    "ReferenceOrder",
    "Reports",
    "RunResult",
    "SampledAnswers",
    "ShuffledpError",
    "SplitAnswers",
    "SubsetSelection",
    "Sums",
    "SymmetricUnaryEncoding",
    "UniformShuffler",
    "VectorMeanQuestion",
    "WordQuestion",
    "__version__",
    "account",
    "account_leakage",
    "account_network",
    "choose_reference_order",
    "estimate_frequencies",
    "guarantee_for",
    "iterative_bayesian_update",
    "largest_epsilon0",
    "network_walk_delta",
    "network_walk_epsilon",
    "open_answer_sets",
    "open_numbers",
    "open_reports",
    "open_table",
    "open_words",
    "plan",
    "plan_mean",
    "plan_monitoring",
    "plan_question",
    "plan_vector_mean",
    "position_distribution",
    "read_graph",
    "simulate_monitoring",
    "simulate_positions",
    "smallest_num_users",
    "write_reports",
]

# Collections know data, reports know how to show them; here, above both, they meet.
register_renderer(reports)

# A module of that name is there already.
_find = lazy_names(__name__, _HOMES, names_at_home={"plan": "make_plan"})


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    return _find(name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
