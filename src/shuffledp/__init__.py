"""shuffledp: differential privacy in the shuffle model, from a question to a running collection.

>>> import shuffledp as sdp
>>> question = sdp.Categories(["yes", "no"])
>>> plan = sdp.plan(question, num_users=1000, epsilon=1.0, delta=1e-6)
>>> result = sdp.run(plan, ["yes"] * 300 + ["no"] * 700, seed=1)
>>> result.num_users
1000

Names that most programs need are here; others are in folders by capability: ``sdp.randomizers``,
``sdp.groups``, ``sdp.network``, ``sdp.monitoring``, ``sdp.leakage``, ``sdp.accounting``,
``sdp.collection`` (files and reports), ``sdp.deploy`` and ``sdp.estimation``. Names are loaded when
they are first used, so that importing stays quick; ``__init__.pyi`` lists them.
"""

from shuffledp.core.lazy import lazy_names
from shuffledp.core.shown import register_renderer

__getattr__, __dir__, __all__ = lazy_names(__name__)

# Results are data, and the report package displays them; here, above both, they are connected.
register_renderer("shuffledp.report")
