"""shuffledp: differential privacy in the shuffle model, from a question to a running collection.

>>> import shuffledp as sdp
>>> plan = sdp.plan(num_users=1000, domain=["yes", "no"], epsilon=1.0, delta=1e-6)
>>> result = plan.run(["yes"] * 300 + ["no"] * 700, seed=1)
>>> result.num_users
1000

Names below are loaded when they are first used, so that importing shuffledp stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shuffledp._version import __version__
from shuffledp.collection.results import register_renderer
from shuffledp.interface import reports

if TYPE_CHECKING:
    from shuffledp.collection.datasets.tables import open_table
    from shuffledp.collection.guarantees import account, guarantee_for
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.plan import make_plan as plan
    from shuffledp.collection.results import Guarantee, RunResult
    from shuffledp.core.bound import Bound
    from shuffledp.core.entropy import Entropy
    from shuffledp.core.errors import ShuffledpError
    from shuffledp.core.profile import LocalProfile
    from shuffledp.mechanisms.estimators.frequencies import estimate_frequencies
    from shuffledp.mechanisms.randomizers.k_randomized_response import KRandomizedResponse
    from shuffledp.mechanisms.randomizers.optimized_unary import OptimizedUnaryEncoding
    from shuffledp.mechanisms.randomizers.symmetric_unary import SymmetricUnaryEncoding
    from shuffledp.mechanisms.shufflers.uniform import UniformShuffler
    from shuffledp.privacy.accounting.calibration import largest_epsilon0, smallest_num_users

# Public name to the module that holds it, and its name there.
_HOMES = {
    "Bound": ("core.bound", "Bound"),
    "Entropy": ("core.entropy", "Entropy"),
    "Guarantee": ("collection.results", "Guarantee"),
    "KRandomizedResponse": ("mechanisms.randomizers.k_randomized_response", "KRandomizedResponse"),
    "LocalProfile": ("core.profile", "LocalProfile"),
    "OptimizedUnaryEncoding": ("mechanisms.randomizers.optimized_unary", "OptimizedUnaryEncoding"),
    "Plan": ("collection.plan", "Plan"),
    "RunResult": ("collection.results", "RunResult"),
    "ShuffledpError": ("core.errors", "ShuffledpError"),
    "SymmetricUnaryEncoding": ("mechanisms.randomizers.symmetric_unary", "SymmetricUnaryEncoding"),
    "UniformShuffler": ("mechanisms.shufflers.uniform", "UniformShuffler"),
    "account": ("collection.guarantees", "account"),
    "estimate_frequencies": ("mechanisms.estimators.frequencies", "estimate_frequencies"),
    "guarantee_for": ("collection.guarantees", "guarantee_for"),
    "largest_epsilon0": ("privacy.accounting.calibration", "largest_epsilon0"),
    "open_table": ("collection.datasets.tables", "open_table"),
    "plan": ("collection.plan", "make_plan"),
    "smallest_num_users": ("privacy.accounting.calibration", "smallest_num_users"),
}

__all__ = [
    "Bound",
    "Entropy",
    "Guarantee",
    "KRandomizedResponse",
    "LocalProfile",
    "OptimizedUnaryEncoding",
    "Plan",
    "RunResult",
    "ShuffledpError",
    "SymmetricUnaryEncoding",
    "UniformShuffler",
    "__version__",
    "account",
    "estimate_frequencies",
    "guarantee_for",
    "largest_epsilon0",
    "open_table",
    "plan",
    "smallest_num_users",
]

# Collections know data, reports know how to show them; here, above both, they meet.
register_renderer(reports)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
