from shuffledp.collection.source.prior_files import PriorKnowledge as PriorKnowledge
from shuffledp.collection.source.prior_files import read_prior as read_prior
from shuffledp.leakage.account import LeakageAccount as LeakageAccount
from shuffledp.leakage.channels.builders import permutation_channel as permutation_channel
from shuffledp.leakage.channels.builders import product_channel as product_channel
from shuffledp.leakage.channels.builders import randomizer_channel as randomizer_channel
from shuffledp.leakage.channels.builders import reduced_product_channel as reduced_product_channel
from shuffledp.leakage.channels.builders import (
    reduced_randomizer_channel as reduced_randomizer_channel,
)
from shuffledp.leakage.channels.builders import reduced_shuffle_channel as reduced_shuffle_channel
from shuffledp.leakage.channels.builders import shuffle_channel as shuffle_channel
from shuffledp.leakage.channels.builders import walk_channel as walk_channel
from shuffledp.leakage.channels.channel import Channel as Channel
from shuffledp.leakage.channels.channel import HyperDistribution as HyperDistribution
from shuffledp.leakage.comparison import compare_views as compare_views
from shuffledp.leakage.general.central import crowd_vulnerability_upper as crowd_vulnerability_upper
from shuffledp.leakage.general.central import vulnerability_from_curve as vulnerability_from_curve
from shuffledp.leakage.general.central import (
    vulnerability_from_guarantee as vulnerability_from_guarantee,
)
from shuffledp.leakage.general.weighted_positions import (
    positions_vulnerability as positions_vulnerability,
)
from shuffledp.leakage.informed.blanket_vulnerability import (
    blanket_vulnerability_upper as blanket_vulnerability_upper,
)
from shuffledp.leakage.informed.knowledge import Knowledge as Knowledge
from shuffledp.leakage.informed.knowledge import best_knowledge as best_knowledge
from shuffledp.leakage.informed.knowledge import worst_knowledge as worst_knowledge
from shuffledp.leakage.informed.strong import strong_vulnerability as strong_vulnerability
from shuffledp.leakage.loads.maximum_load import asymptotic_excess as asymptotic_excess
from shuffledp.leakage.loads.maximum_load import exact_maximum_load as exact_maximum_load
from shuffledp.leakage.loads.maximum_load import maximum_load as maximum_load
from shuffledp.leakage.loads.maximum_load import maximum_load_excess as maximum_load_excess
from shuffledp.leakage.loads.maximum_load import published_approximation as published_approximation
from shuffledp.leakage.loads.weighted import weighted_maximum as weighted_maximum
from shuffledp.leakage.measures.entropies import (
    conditional_guessing_entropy as conditional_guessing_entropy,
)
from shuffledp.leakage.measures.entropies import (
    conditional_shannon_entropy_bits as conditional_shannon_entropy_bits,
)
from shuffledp.leakage.measures.entropies import guessing_entropy as guessing_entropy
from shuffledp.leakage.measures.entropies import min_entropy_bits as min_entropy_bits
from shuffledp.leakage.measures.entropies import (
    min_entropy_leakage_bits as min_entropy_leakage_bits,
)
from shuffledp.leakage.measures.entropies import mutual_information_bits as mutual_information_bits
from shuffledp.leakage.measures.entropies import shannon_entropy_bits as shannon_entropy_bits
from shuffledp.leakage.measures.gains import GainFunction as GainFunction
from shuffledp.leakage.measures.gains import distance_gain as distance_gain
from shuffledp.leakage.measures.gains import identity_gain as identity_gain
from shuffledp.leakage.measures.gains import matrix_gain as matrix_gain
from shuffledp.leakage.measures.gains import single_target_gain as single_target_gain
from shuffledp.leakage.measures.gains import tries_gain as tries_gain
from shuffledp.leakage.measures.refinement import Refinement as Refinement
from shuffledp.leakage.measures.refinement import is_equivalent as is_equivalent
from shuffledp.leakage.measures.refinement import refinement as refinement
from shuffledp.leakage.measures.vulnerability import additive_capacity as additive_capacity
from shuffledp.leakage.measures.vulnerability import additive_leakage as additive_leakage
from shuffledp.leakage.measures.vulnerability import best_guess as best_guess
from shuffledp.leakage.measures.vulnerability import best_strategy as best_strategy
from shuffledp.leakage.measures.vulnerability import min_capacity_bits as min_capacity_bits
from shuffledp.leakage.measures.vulnerability import (
    multiplicative_capacity as multiplicative_capacity,
)
from shuffledp.leakage.measures.vulnerability import (
    multiplicative_leakage as multiplicative_leakage,
)
from shuffledp.leakage.measures.vulnerability import (
    posterior_vulnerability as posterior_vulnerability,
)
from shuffledp.leakage.measures.vulnerability import prior_vulnerability as prior_vulnerability
from shuffledp.leakage.of_collections import account_leakage as account_leakage
from shuffledp.leakage.of_results import RunLeakage as RunLeakage
from shuffledp.leakage.of_results import of_run as of_run
from shuffledp.leakage.shuffler_channels import mallows_channel as mallows_channel
from shuffledp.leakage.shuffler_channels import network_channel as network_channel
from shuffledp.leakage.shuffler_channels import target_place_law as target_place_law
from shuffledp.leakage.uninformed.closed_forms import (
    exact_shuffled_vulnerability as exact_shuffled_vulnerability,
)
from shuffledp.leakage.uninformed.closed_forms import (
    randomizer_vulnerability as randomizer_vulnerability,
)
from shuffledp.leakage.uninformed.closed_forms import (
    shuffled_vulnerability as shuffled_vulnerability,
)
from shuffledp.leakage.uninformed.closed_forms import (
    shuffler_vulnerability as shuffler_vulnerability,
)
from shuffledp.leakage.uninformed.exchangeable import (
    exchangeable_vulnerability as exchangeable_vulnerability,
)
from shuffledp.leakage.uninformed.several_targets import (
    several_targets_vulnerability as several_targets_vulnerability,
)
