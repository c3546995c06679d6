from shuffledp.collection.source.prior_files import PriorKnowledge as PriorKnowledge
from shuffledp.collection.source.prior_files import read_prior as read_prior
from shuffledp.leakage.account import LeakageAccount as LeakageAccount
from shuffledp.leakage.any_shuffler import crowd_vulnerability_upper as crowd_vulnerability_upper
from shuffledp.leakage.any_shuffler import positions_vulnerability as positions_vulnerability
from shuffledp.leakage.any_shuffler import target_place_law as target_place_law
from shuffledp.leakage.any_shuffler import (
    vulnerability_from_guarantee as vulnerability_from_guarantee,
)
from shuffledp.leakage.blanket import blanket_vulnerability_upper as blanket_vulnerability_upper
from shuffledp.leakage.builders import permutation_channel as permutation_channel
from shuffledp.leakage.builders import product_channel as product_channel
from shuffledp.leakage.builders import randomizer_channel as randomizer_channel
from shuffledp.leakage.builders import reduced_product_channel as reduced_product_channel
from shuffledp.leakage.builders import reduced_randomizer_channel as reduced_randomizer_channel
from shuffledp.leakage.builders import reduced_shuffle_channel as reduced_shuffle_channel
from shuffledp.leakage.builders import shuffle_channel as shuffle_channel
from shuffledp.leakage.builders import walk_channel as walk_channel
from shuffledp.leakage.channel import Channel as Channel
from shuffledp.leakage.channel import HyperDistribution as HyperDistribution
from shuffledp.leakage.channel import is_equivalent as is_equivalent
from shuffledp.leakage.channel import is_refined_by as is_refined_by
from shuffledp.leakage.fullest_bin import asymptotic_excess as asymptotic_excess
from shuffledp.leakage.fullest_bin import exact_maximum_load as exact_maximum_load
from shuffledp.leakage.fullest_bin import maximum_load as maximum_load
from shuffledp.leakage.fullest_bin import maximum_load_excess as maximum_load_excess
from shuffledp.leakage.fullest_bin import published_approximation as published_approximation
from shuffledp.leakage.knowledge import Knowledge as Knowledge
from shuffledp.leakage.knowledge import extreme_knowledge as extreme_knowledge
from shuffledp.leakage.measures import GainFunction as GainFunction
from shuffledp.leakage.measures import additive_leakage as additive_leakage
from shuffledp.leakage.measures import best_strategy as best_strategy
from shuffledp.leakage.measures import identity_gain as identity_gain
from shuffledp.leakage.measures import matrix_gain as matrix_gain
from shuffledp.leakage.measures import min_capacity_bits as min_capacity_bits
from shuffledp.leakage.measures import multiplicative_leakage as multiplicative_leakage
from shuffledp.leakage.measures import posterior_vulnerability as posterior_vulnerability
from shuffledp.leakage.measures import prior_vulnerability as prior_vulnerability
from shuffledp.leakage.measures import single_target_gain as single_target_gain
from shuffledp.leakage.measures import tries_gain as tries_gain
from shuffledp.leakage.of_collections import account_leakage as account_leakage
from shuffledp.leakage.of_runs import RunLeakage as RunLeakage
from shuffledp.leakage.of_runs import of_run as of_run
from shuffledp.leakage.several_targets import (
    several_targets_vulnerability as several_targets_vulnerability,
)
from shuffledp.leakage.strong import strong_vulnerability as strong_vulnerability
from shuffledp.leakage.uninformed import (
    exact_shuffled_vulnerability as exact_shuffled_vulnerability,
)
from shuffledp.leakage.uninformed import exchangeable_vulnerability as exchangeable_vulnerability
from shuffledp.leakage.uninformed import randomizer_vulnerability as randomizer_vulnerability
from shuffledp.leakage.uninformed import shuffled_vulnerability as shuffled_vulnerability
from shuffledp.leakage.uninformed import shuffler_vulnerability as shuffler_vulnerability
from shuffledp.leakage.weighted_loads import weighted_maximum as weighted_maximum
