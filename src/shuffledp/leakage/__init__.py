"""Quantitative information flow: success probabilities of adversaries who guess one person's value.

>>> from fractions import Fraction
>>> from shuffledp import leakage
>>> noise = leakage.randomizer_channel(3, 2, Fraction(3, 4))  # three people, two answers
>>> released = noise @ leakage.reduced_shuffle_channel(3, 2)
>>> target = leakage.single_target_gain(released.inputs)  # the first person's answer
>>> leakage.posterior_vulnerability(None, released, target)  # all answers equally likely
Fraction(5, 8)

Small mechanisms are `Channel` matrices, with any goal and any prior; `account_leakage` and the
functions beside it are for collections of any size. Docs: guides/leakage.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
