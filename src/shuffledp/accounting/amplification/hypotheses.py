"""Hypotheses that several results share, as the sentences that ``violated_hypothesis`` returns."""

from shuffledp.core.profile import LocalProfile

# In doubt about the last digits of a hypothesis, it is taken to fail.
HAIR = 1.0 + 1e-14


def pure_violation(profile: LocalProfile) -> str | None:
    """Return the hypothesis that a result on pure epsilon0-LDP needs, or None where it holds.

    Examples
    --------
    >>> pure_violation(LocalProfile(epsilon0=1.0)) is None
    True
    >>> pure_violation(LocalProfile(epsilon0=1.0, delta0=1e-9))
    "delta0 = 0 (pure epsilon0-LDP; 'approximate-local' is for delta0 > 0)"
    """
    if profile.delta0 == 0.0:
        return None
    return "delta0 = 0 (pure epsilon0-LDP; 'approximate-local' is for delta0 > 0)"
