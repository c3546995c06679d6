"""shuffledp: differential privacy in the shuffle model, from a question to a running collection.

>>> import shuffledp as sdp
>>> plan = sdp.plan(num_users=1000, domain=["yes", "no"], epsilon=1.0, delta=1e-6)
>>> result = plan.run(["yes"] * 300 + ["no"] * 700, seed=1)
>>> result.num_users
1000

Names below are loaded when they are first used, so that importing shuffledp stays quick.
"""

from typing import TYPE_CHECKING, Any

from shuffledp import report as reports
from shuffledp._version import __version__
from shuffledp.collection.results import register_renderer
from shuffledp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import largest_epsilon0, smallest_num_users
    from shuffledp.collection.guarantees import account, guarantee_for
    from shuffledp.collection.plan import Plan, plan_mean, plan_question, plan_vector_mean
    from shuffledp.collection.plan import make_plan as plan
    from shuffledp.collection.questions.answer_sets import AnswerSetQuestion
    from shuffledp.collection.questions.frequencies import FrequencyQuestion
    from shuffledp.collection.questions.mean import MeanQuestion
    from shuffledp.collection.questions.vector_mean import VectorMeanQuestion
    from shuffledp.collection.questions.words import WordQuestion
    from shuffledp.collection.report_files import open_reports, write_reports
    from shuffledp.collection.results import Guarantee, RunResult
    from shuffledp.collection.source.answer_sets import open_answer_sets
    from shuffledp.collection.source.limits import Ball, Range
    from shuffledp.collection.source.numbers import open_numbers
    from shuffledp.collection.source.schedules import read_schedule
    from shuffledp.collection.source.tables import open_table
    from shuffledp.collection.source.words import open_words
    from shuffledp.collection.uniform import UniformShuffler
    from shuffledp.core.bound import Bound
    from shuffledp.core.entropy import Entropy
    from shuffledp.core.errors import ShuffledpError
    from shuffledp.core.profile import LocalProfile
    from shuffledp.core.reports import Counts, Reports, Sums
    from shuffledp.estimation.frequencies import estimate_frequencies
    from shuffledp.estimation.iterative_bayesian_update import iterative_bayesian_update
    from shuffledp.groups.cayley import CayleyMallows
    from shuffledp.groups.displacement import DisplacementShuffler
    from shuffledp.groups.grouping import Grouping
    from shuffledp.groups.groups import Groups
    from shuffledp.groups.hamming import HammingMallows
    from shuffledp.groups.kendall import KendallMallows
    from shuffledp.groups.reference_orders import (
        ReferenceOrder,
        choose_reference_order,
    )
    from shuffledp.groups.shuffler import MallowsShuffler
    from shuffledp.leakage.account import LeakageAccount
    from shuffledp.leakage.channel import Channel
    from shuffledp.leakage.of_collections import account_leakage
    from shuffledp.monitoring.client import MonitorClient
    from shuffledp.monitoring.plan import plan_monitoring
    from shuffledp.monitoring.server import MonitorServer
    from shuffledp.monitoring.simulation import simulate_monitoring
    from shuffledp.network.account import account_network
    from shuffledp.network.graph import Graph
    from shuffledp.network.graph_files import read_graph
    from shuffledp.network.mixing import NetworkMixing
    from shuffledp.network.privacy import (
        network_walk_delta,
        network_walk_epsilon,
    )
    from shuffledp.network.shuffler import NetworkShuffler
    from shuffledp.network.walk import (
        RandomWalk,
        position_distribution,
        simulate_positions,
    )
    from shuffledp.randomizers.answer_sets import SampledAnswers, SplitAnswers
    from shuffledp.randomizers.base import CategoryRandomizer, MeanRandomizer
    from shuffledp.randomizers.duchi import Duchi
    from shuffledp.randomizers.hybrid import Hybrid
    from shuffledp.randomizers.k_randomized_response import (
        KRandomizedResponse,
    )
    from shuffledp.randomizers.laplace import DiscreteLaplace
    from shuffledp.randomizers.local_hashing import (
        BinaryLocalHashing,
        HadamardResponse,
        OptimizedLocalHashing,
    )
    from shuffledp.randomizers.piecewise import Piecewise
    from shuffledp.randomizers.privunit import PrivUnit, PrivUnitGaussian
    from shuffledp.randomizers.sketches import (
        CountMeanSketch,
        HadamardCountMeanSketch,
    )
    from shuffledp.randomizers.subset_selection import SubsetSelection
    from shuffledp.randomizers.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

# Module to the public names that it holds.
_HOMES = {
    "collection.source.answer_sets": ("open_answer_sets",),
    "collection.source.limits": (
        "Ball",
        "Range",
    ),
    "collection.source.numbers": ("open_numbers",),
    "collection.source.schedules": ("read_schedule",),
    "collection.source.tables": ("open_table",),
    "collection.source.words": ("open_words",),
    "groups.grouping": ("Grouping",),
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
    "estimation.frequencies": ("estimate_frequencies",),
    "estimation.iterative_bayesian_update": ("iterative_bayesian_update",),
    "groups.cayley": ("CayleyMallows",),
    "groups.groups": ("Groups",),
    "groups.hamming": ("HammingMallows",),
    "groups.kendall": ("KendallMallows",),
    "groups.reference_orders": (
        "ReferenceOrder",
        "choose_reference_order",
    ),
    "randomizers": (
        "BinaryLocalHashing",
        "CategoryRandomizer",
        "CountMeanSketch",
        "DiscreteLaplace",
        "Duchi",
        "HadamardCountMeanSketch",
        "HadamardResponse",
        "Hybrid",
        "KRandomizedResponse",
        "MeanRandomizer",
        "OptimizedLocalHashing",
        "OptimizedUnaryEncoding",
        "Piecewise",
        "PrivUnit",
        "PrivUnitGaussian",
        "SampledAnswers",
        "SplitAnswers",
        "SubsetSelection",
        "SymmetricUnaryEncoding",
    ),
    "core.reports": (
        "Counts",
        "Reports",
        "Sums",
    ),
    "groups.displacement": ("DisplacementShuffler",),
    "groups.shuffler": ("MallowsShuffler",),
    "collection.uniform": ("UniformShuffler",),
    "accounting.calibration": (
        "largest_epsilon0",
        "smallest_num_users",
    ),
    "network.graph_files": ("read_graph",),
    "leakage.of_collections": ("account_leakage",),
    "monitoring.plan": ("plan_monitoring",),
    "monitoring.simulation": ("simulate_monitoring",),
    "network.account": ("account_network",),
    "network.mixing": ("NetworkMixing",),
    "monitoring.client": ("MonitorClient",),
    "monitoring.server": ("MonitorServer",),
    "network.graph": ("Graph",),
    "network.walk": (
        "RandomWalk",
        "position_distribution",
        "simulate_positions",
    ),
    "network.shuffler": ("NetworkShuffler",),
    "network.privacy": (
        "network_walk_delta",
        "network_walk_epsilon",
    ),
    "leakage.account": ("LeakageAccount",),
    "leakage.channel": ("Channel",),
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
    "read_schedule",
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
