from shuffledp.estimation.frequencies import FrequencyEstimates as FrequencyEstimates
from shuffledp.estimation.frequencies import estimate_frequencies as estimate_frequencies
from shuffledp.estimation.frequencies import expected_standard_error as expected_standard_error
from shuffledp.estimation.means import MeanEstimates as MeanEstimates
from shuffledp.estimation.post_processing import POST_PROCESSING as POST_PROCESSING
from shuffledp.estimation.post_processing import clip as clip
from shuffledp.estimation.post_processing import norm_sub as norm_sub
