"""Quantitative information flow: what an adversary can guess about one person, exactly.

>>> from fractions import Fraction
>>> from shuffledp import leakage
>>> noise = leakage.randomizer_channel(3, 2, Fraction(3, 4))  # three people, two answers
>>> released = noise @ leakage.reduced_shuffle_channel(3, 2, exact=True)
>>> target = leakage.single_target_gain(released.inputs)  # the first person's answer
>>> leakage.posterior_vulnerability(None, released, target)  # all answers equally likely
Fraction(5, 8)

Small mechanisms are `Channel` matrices, with any goal and any prior; `account_leakage` and the
functions beside it are for collections of any size. Docs: guides/leakage.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from typing import TYPE_CHECKING, Any

from shuffledp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from shuffledp.collection.source.prior_files import PriorKnowledge, read_prior
    from shuffledp.leakage.account import LeakageAccount
    from shuffledp.leakage.any_shuffler import (
        crowd_vulnerability_upper,
        positions_vulnerability,
        target_place_law,
        vulnerability_from_guarantee,
    )
    from shuffledp.leakage.blanket import blanket_vulnerability_upper
    from shuffledp.leakage.builders import (
        permutation_channel,
        product_channel,
        randomizer_channel,
        reduced_product_channel,
        reduced_randomizer_channel,
        reduced_shuffle_channel,
        shuffle_channel,
        walk_channel,
    )
    from shuffledp.leakage.channel import Channel, HyperDistribution, is_equivalent, is_refined_by
    from shuffledp.leakage.fullest_bin import (
        asymptotic_excess,
        exact_maximum_load,
        maximum_load,
        maximum_load_excess,
        published_approximation,
    )
    from shuffledp.leakage.knowledge import Knowledge, extreme_knowledge
    from shuffledp.leakage.measures import (
        GainFunction,
        additive_leakage,
        best_strategy,
        identity_gain,
        matrix_gain,
        min_capacity_bits,
        multiplicative_leakage,
        posterior_vulnerability,
        prior_vulnerability,
        single_target_gain,
        tries_gain,
    )
    from shuffledp.leakage.of_collections import account_leakage
    from shuffledp.leakage.of_runs import RunLeakage, of_run
    from shuffledp.leakage.several_targets import several_targets_vulnerability
    from shuffledp.leakage.strong import strong_vulnerability
    from shuffledp.leakage.uninformed import (
        exact_shuffled_vulnerability,
        exchangeable_vulnerability,
        randomizer_vulnerability,
        shuffled_vulnerability,
        shuffler_vulnerability,
    )
    from shuffledp.leakage.weighted_loads import weighted_maximum

_HOMES = {
    "collection.source.prior_files": ("PriorKnowledge", "read_prior"),
    "leakage.account": ("LeakageAccount",),
    "leakage.any_shuffler": (
        "crowd_vulnerability_upper",
        "positions_vulnerability",
        "target_place_law",
        "vulnerability_from_guarantee",
    ),
    "leakage.blanket": ("blanket_vulnerability_upper",),
    "leakage.builders": (
        "permutation_channel",
        "product_channel",
        "randomizer_channel",
        "reduced_product_channel",
        "reduced_randomizer_channel",
        "reduced_shuffle_channel",
        "shuffle_channel",
        "walk_channel",
    ),
    "leakage.channel": ("Channel", "HyperDistribution", "is_equivalent", "is_refined_by"),
    "leakage.fullest_bin": (
        "asymptotic_excess",
        "exact_maximum_load",
        "maximum_load",
        "maximum_load_excess",
        "published_approximation",
    ),
    "leakage.knowledge": ("Knowledge", "extreme_knowledge"),
    "leakage.measures": (
        "GainFunction",
        "additive_leakage",
        "best_strategy",
        "identity_gain",
        "matrix_gain",
        "min_capacity_bits",
        "multiplicative_leakage",
        "posterior_vulnerability",
        "prior_vulnerability",
        "single_target_gain",
        "tries_gain",
    ),
    "leakage.of_collections": ("account_leakage",),
    "leakage.of_runs": ("RunLeakage", "of_run"),
    "leakage.several_targets": ("several_targets_vulnerability",),
    "leakage.strong": ("strong_vulnerability",),
    "leakage.uninformed": (
        "exact_shuffled_vulnerability",
        "exchangeable_vulnerability",
        "randomizer_vulnerability",
        "shuffled_vulnerability",
        "shuffler_vulnerability",
    ),
    "leakage.weighted_loads": ("weighted_maximum",),
}

__all__ = [
    "Channel",
    "GainFunction",
    "HyperDistribution",
    "Knowledge",
    "LeakageAccount",
    "PriorKnowledge",
    "RunLeakage",
    "account_leakage",
    "additive_leakage",
    "asymptotic_excess",
    "best_strategy",
    "blanket_vulnerability_upper",
    "crowd_vulnerability_upper",
    "exact_maximum_load",
    "exact_shuffled_vulnerability",
    "exchangeable_vulnerability",
    "extreme_knowledge",
    "identity_gain",
    "is_equivalent",
    "is_refined_by",
    "matrix_gain",
    "maximum_load",
    "maximum_load_excess",
    "min_capacity_bits",
    "multiplicative_leakage",
    "of_run",
    "permutation_channel",
    "positions_vulnerability",
    "posterior_vulnerability",
    "prior_vulnerability",
    "product_channel",
    "published_approximation",
    "randomizer_channel",
    "randomizer_vulnerability",
    "read_prior",
    "reduced_product_channel",
    "reduced_randomizer_channel",
    "reduced_shuffle_channel",
    "several_targets_vulnerability",
    "shuffle_channel",
    "shuffled_vulnerability",
    "shuffler_vulnerability",
    "single_target_gain",
    "strong_vulnerability",
    "target_place_law",
    "tries_gain",
    "vulnerability_from_guarantee",
    "walk_channel",
    "weighted_maximum",
]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    return _find(name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
