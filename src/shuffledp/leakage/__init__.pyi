from shuffledp.leakage.account import LeakageAccount as LeakageAccount
from shuffledp.leakage.account import account_leakage as account_leakage
from shuffledp.leakage.any_shuffler import positions_vulnerability as positions_vulnerability
from shuffledp.leakage.any_shuffler import (
    vulnerability_from_guarantee as vulnerability_from_guarantee,
)
from shuffledp.leakage.channel import Channel as Channel
from shuffledp.leakage.channel import is_refined_by as is_refined_by
from shuffledp.leakage.channel import min_capacity_bits as min_capacity_bits
from shuffledp.leakage.channel import posterior_vulnerability as posterior_vulnerability
from shuffledp.leakage.channel import prior_vulnerability as prior_vulnerability
from shuffledp.leakage.channel import randomizer_channel as randomizer_channel
from shuffledp.leakage.channel import (
    reduced_randomizer_channel as reduced_randomizer_channel,
)
from shuffledp.leakage.channel import reduced_shuffle_channel as reduced_shuffle_channel
from shuffledp.leakage.channel import shuffle_channel as shuffle_channel
from shuffledp.leakage.channel import single_target_gain as single_target_gain
from shuffledp.leakage.counts.fullest_bin import maximum_load_excess as maximum_load_excess
from shuffledp.leakage.priors import PriorKnowledge as PriorKnowledge
from shuffledp.leakage.priors import read_prior as read_prior
from shuffledp.leakage.strong import strong_vulnerability as strong_vulnerability
from shuffledp.leakage.uninformed import exchangeable_vulnerability as exchangeable_vulnerability
from shuffledp.leakage.uninformed import shuffled_vulnerability as shuffled_vulnerability
