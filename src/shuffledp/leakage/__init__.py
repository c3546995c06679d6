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
    from shuffledp.collection.source.prior_files import (
        PriorKnowledge,
        read_prior,
    )
    from shuffledp.leakage.account import (
        LeakageAccount,
    )
    from shuffledp.leakage.channels.builders import (
        permutation_channel,
        product_channel,
        randomizer_channel,
        reduced_product_channel,
        reduced_randomizer_channel,
        reduced_shuffle_channel,
        shuffle_channel,
        walk_channel,
    )
    from shuffledp.leakage.channels.channel import (
        Channel,
    )
    from shuffledp.leakage.channels.histogram_transitions import (
        histogram_probability,
    )
    from shuffledp.leakage.channels.hyper_distribution import (
        HyperDistribution,
    )
    from shuffledp.leakage.comparison import (
        compare_views,
    )
    from shuffledp.leakage.general.central import (
        vulnerability_from_curve,
        vulnerability_from_guarantee,
    )
    from shuffledp.leakage.general.crowd import (
        crowd_vulnerability_upper,
    )
    from shuffledp.leakage.general.weighted_positions import (
        positions_vulnerability,
    )
    from shuffledp.leakage.informed.blanket_vulnerability import (
        blanket_vulnerability_upper,
    )
    from shuffledp.leakage.informed.knowledge import (
        Knowledge,
        best_knowledge,
        worst_knowledge,
    )
    from shuffledp.leakage.informed.strong import (
        strong_vulnerability,
    )
    from shuffledp.leakage.loads.asymptotics import (
        asymptotic_excess,
        published_approximation,
    )
    from shuffledp.leakage.loads.exact import (
        exact_maximum_load,
    )
    from shuffledp.leakage.loads.maximum_load import (
        maximum_load,
        maximum_load_excess,
    )
    from shuffledp.leakage.loads.weighted import (
        weighted_maximum,
    )
    from shuffledp.leakage.measures.capacities import (
        additive_capacity,
        min_capacity_bits,
        multiplicative_capacity,
    )
    from shuffledp.leakage.measures.entropies import (
        conditional_guessing_entropy,
        conditional_shannon_entropy_bits,
        guessing_entropy,
        min_entropy_bits,
        min_entropy_leakage_bits,
        mutual_information_bits,
        shannon_entropy_bits,
    )
    from shuffledp.leakage.measures.gain_capacity import (
        gain_capacity,
    )
    from shuffledp.leakage.measures.gains import (
        GainFunction,
        distance_gain,
        identity_gain,
        matrix_gain,
        single_target_gain,
        tries_gain,
    )
    from shuffledp.leakage.measures.refinement import (
        Refinement,
        is_equivalent,
        refinement,
    )
    from shuffledp.leakage.measures.shannon_capacity import (
        shannon_capacity_bits,
    )
    from shuffledp.leakage.measures.vulnerability import (
        additive_leakage,
        best_guess,
        best_strategy,
        multiplicative_leakage,
        posterior_vulnerability,
        prior_vulnerability,
    )
    from shuffledp.leakage.of_collections import (
        account_leakage,
    )
    from shuffledp.leakage.shuffler_channels import (
        mallows_channel,
        network_channel,
        target_place_law,
    )
    from shuffledp.leakage.uninformed.closed_forms import (
        exact_shuffled_vulnerability,
        randomizer_vulnerability,
        shuffled_vulnerability,
        shuffler_vulnerability,
    )
    from shuffledp.leakage.uninformed.exchangeable import (
        exchangeable_vulnerability,
    )
    from shuffledp.leakage.uninformed.several_targets import (
        several_targets_vulnerability,
    )

# Module to the public names that it holds.
_HOMES = {
    "leakage.of_collections": ("account_leakage",),
    "leakage.of_results": ("RunLeakage", "of_run"),
    "collection.source.prior_files": (
        "PriorKnowledge",
        "read_prior",
    ),
    "leakage.shuffler_channels": (
        "mallows_channel",
        "network_channel",
        "target_place_law",
    ),
    "leakage.comparison": ("compare_views",),
    "leakage.account": ("LeakageAccount",),
    "leakage.channels.builders": (
        "permutation_channel",
        "product_channel",
        "randomizer_channel",
        "reduced_product_channel",
        "reduced_randomizer_channel",
        "reduced_shuffle_channel",
        "shuffle_channel",
        "walk_channel",
    ),
    "leakage.channels.channel": ("Channel",),
    "leakage.channels.histogram_transitions": ("histogram_probability",),
    "leakage.channels.hyper_distribution": ("HyperDistribution",),
    "leakage.general.central": (
        "vulnerability_from_curve",
        "vulnerability_from_guarantee",
    ),
    "leakage.general.crowd": ("crowd_vulnerability_upper",),
    "leakage.general.weighted_positions": ("positions_vulnerability",),
    "leakage.informed.blanket_vulnerability": ("blanket_vulnerability_upper",),
    "leakage.informed.knowledge": (
        "Knowledge",
        "best_knowledge",
        "worst_knowledge",
    ),
    "leakage.informed.strong": ("strong_vulnerability",),
    "leakage.loads.asymptotics": (
        "asymptotic_excess",
        "published_approximation",
    ),
    "leakage.loads.exact": ("exact_maximum_load",),
    "leakage.loads.maximum_load": (
        "maximum_load",
        "maximum_load_excess",
    ),
    "leakage.loads.weighted": ("weighted_maximum",),
    "leakage.measures.capacities": (
        "additive_capacity",
        "min_capacity_bits",
        "multiplicative_capacity",
    ),
    "leakage.measures.entropies": (
        "conditional_guessing_entropy",
        "conditional_shannon_entropy_bits",
        "guessing_entropy",
        "min_entropy_bits",
        "min_entropy_leakage_bits",
        "mutual_information_bits",
        "shannon_entropy_bits",
    ),
    "leakage.measures.gain_capacity": ("gain_capacity",),
    "leakage.measures.gains": (
        "GainFunction",
        "distance_gain",
        "identity_gain",
        "matrix_gain",
        "single_target_gain",
        "tries_gain",
    ),
    "leakage.measures.refinement": (
        "Refinement",
        "is_equivalent",
        "refinement",
    ),
    "leakage.measures.shannon_capacity": ("shannon_capacity_bits",),
    "leakage.measures.vulnerability": (
        "additive_leakage",
        "best_guess",
        "best_strategy",
        "multiplicative_leakage",
        "posterior_vulnerability",
        "prior_vulnerability",
    ),
    "leakage.uninformed.closed_forms": (
        "exact_shuffled_vulnerability",
        "randomizer_vulnerability",
        "shuffled_vulnerability",
        "shuffler_vulnerability",
    ),
    "leakage.uninformed.exchangeable": ("exchangeable_vulnerability",),
    "leakage.uninformed.several_targets": ("several_targets_vulnerability",),
}

__all__ = [
    "Channel",
    "GainFunction",
    "HyperDistribution",
    "Knowledge",
    "LeakageAccount",
    "PriorKnowledge",
    "Refinement",
    "account_leakage",
    "additive_capacity",
    "additive_leakage",
    "asymptotic_excess",
    "best_guess",
    "best_knowledge",
    "best_strategy",
    "blanket_vulnerability_upper",
    "compare_views",
    "conditional_guessing_entropy",
    "conditional_shannon_entropy_bits",
    "crowd_vulnerability_upper",
    "distance_gain",
    "exact_maximum_load",
    "exact_shuffled_vulnerability",
    "exchangeable_vulnerability",
    "gain_capacity",
    "guessing_entropy",
    "histogram_probability",
    "identity_gain",
    "is_equivalent",
    "mallows_channel",
    "matrix_gain",
    "maximum_load",
    "maximum_load_excess",
    "min_capacity_bits",
    "min_entropy_bits",
    "min_entropy_leakage_bits",
    "multiplicative_capacity",
    "multiplicative_leakage",
    "mutual_information_bits",
    "network_channel",
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
    "refinement",
    "several_targets_vulnerability",
    "shannon_capacity_bits",
    "shannon_entropy_bits",
    "shuffle_channel",
    "shuffled_vulnerability",
    "shuffler_vulnerability",
    "single_target_gain",
    "strong_vulnerability",
    "target_place_law",
    "tries_gain",
    "vulnerability_from_curve",
    "vulnerability_from_guarantee",
    "walk_channel",
    "weighted_maximum",
    "worst_knowledge",
]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    return _find(name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
