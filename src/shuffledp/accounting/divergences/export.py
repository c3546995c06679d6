"""A privacy loss as an object of Google's dp-accounting, for who composes with it."""

from importlib import import_module
from typing import Any

from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss
from shuffledp.core.errors import ParameterError


def to_dp_accounting(loss: PrivacyLoss, backward: PrivacyLoss | None = None) -> Any:
    """Return an upper privacy loss as dp-accounting's ``PrivacyLossDistribution``.

    Parameters
    ----------
    loss : PrivacyLoss
        An upper law of P against Q.
    backward : PrivacyLoss, optional
        An upper law of Q against P on the same lattice; by default ``loss`` dominates both orders,
        as the laws of guarantees do.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic one. What dp-accounting composes from it is subject to that package's own
        round-off.

    Raises
    ------
    ModuleNotFoundError
        If dp-accounting is not installed.
    ParameterError
        If a law is a lower one, or the two have different lattices.
    """
    for law in (loss, backward or loss):
        if not law.is_upper:
            raise ParameterError("a lower law is no guarantee: export the upper one")
        if law.interval != loss.interval:
            raise ParameterError("the two laws have different intervals: compose them alike")
    try:
        probabilities = import_module("dp_accounting.pld.pld_pmf")
        distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "dp-accounting is not installed: pip install dp-accounting"
        ) from error

    def converted(law: PrivacyLoss) -> Any:
        return probabilities.DensePLDPmf(
            law.interval, law.first, law.masses.copy(), law.infinite_mass, True
        )

    if backward is None:
        return distributions.PrivacyLossDistribution(converted(loss))
    return distributions.PrivacyLossDistribution(converted(loss), converted(backward))
