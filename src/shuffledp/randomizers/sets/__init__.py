"""Sets of answers: several categories a user, through a randomizer of one category."""

from shuffledp.randomizers.sets.answers import NO_ANSWER, pad_answers
from shuffledp.randomizers.sets.sampled_answers import SampledAnswers
from shuffledp.randomizers.sets.set_randomizer import SetRandomizer
from shuffledp.randomizers.sets.split_answers import SplitAnswers

__all__ = ["NO_ANSWER", "SampledAnswers", "SetRandomizer", "SplitAnswers", "pad_answers"]
