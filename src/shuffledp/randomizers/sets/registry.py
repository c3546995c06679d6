"""Randomizers of sets of answers by name: both strategies over each randomizer of one answer."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from shuffledp.randomizers.registry import RANDOMIZERS
from shuffledp.randomizers.sets.sampled_answers import SampledAnswers
from shuffledp.randomizers.sets.set_randomizer import SetRandomizer
from shuffledp.randomizers.sets.split_answers import SplitAnswers

#: Randomizers of a set of answers by name; each takes ``k``, ``max_answers`` and ``epsilon0``.
ANSWER_SET_RANDOMIZERS: Mapping[str, Callable[..., SetRandomizer]] = MappingProxyType(
    {
        f"{prefix}:{base_name}": partial(make, base_name=base_name)
        for prefix, make in (("sampled", SampledAnswers), ("split", SplitAnswers))
        for base_name in RANDOMIZERS
    }
)
