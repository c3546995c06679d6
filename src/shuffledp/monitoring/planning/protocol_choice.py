"""Which law of the signs has the smallest error at what is asked for."""

from dataclasses import dataclass

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.planning.plan_request import PlanRequest
from shuffledp.monitoring.privacy.calibration import LARGEST_EPSILON0
from shuffledp.monitoring.sign_laws.registry import SIGN_LAWS, sign_law

#: Lets the plan choose the law of the signs.
AUTO = "auto"

# The local loss at which two laws have the same gap is found this closely: 12 / 2^20.
_HALVINGS = 20

# Gaps that differ by less are taken to be the same.
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """A law of the signs that was considered.

    Parameters
    ----------
    protocol : str
        One of ``SIGN_LAWS``.
    epsilon0 : float
        At which it meets what was asked, in nats.
    gap : float
        The errors are in proportion to 1 / gap.
    """

    protocol: str
    epsilon0: float
    gap: float

    @classmethod
    def of(cls, design: MonitorDesign) -> "ProtocolChoice":
        """Return the law of a design."""
        return cls(protocol=design.protocol, epsilon0=design.epsilon0, gap=design.law.gap)


def designs_by_gap(request: PlanRequest, protocol: str | None) -> tuple[MonitorDesign, ...]:
    """Return the designs that were considered, the one with the smallest error first.

    Parameters
    ----------
    request : PlanRequest
        What is asked for.
    protocol : str or None
        One of ``SIGN_LAWS``; ``None`` or ``"auto"`` for all.

    Returns
    -------
    tuple of MonitorDesign
        At least one. Laws that cannot be used, or that have a larger error than another at the same
        central target, are left out.

    Raises
    ------
    ParameterError
        If no law can be used.

    Notes
    -----
    A law takes up to two seconds to meet a central target. One that would need more local loss than
    the target allows to come up to the best law so far is not tried: that takes 0.1 s.

    Examples
    --------
    >>> request = PlanRequest.checked(
    ...     periods=8, max_changes=4, num_users=100, delta=1e-6, epsilon0=1.0, epsilon=None,
    ...     domain=None, level_hidden=True)
    >>> [each.protocol for each in designs_by_gap(request, "auto")]
    ['predrawn-signs', 'sampled-change']
    """
    designs: list[MonitorDesign] = []
    refused: list[ParameterError] = []
    for name in SIGN_LAWS if protocol is None or protocol == AUTO else (protocol,):
        try:
            if designs and not _may_be_better(request, name, designs[0].law.gap):
                continue
            designs.append(request.design(name))
        except ParameterError as error:  # for example too many changes for drawn signs
            refused.append(error)
        designs.sort(key=lambda each: -each.law.gap)
    if not designs:
        raise refused[-1]
    return tuple(designs)


def reason_for(designs: tuple[MonitorDesign, ...], request: PlanRequest, asked: str | None) -> str:
    """Return why the first of the designs was taken, as a sentence.

    Parameters
    ----------
    designs : tuple of MonitorDesign
        Of `designs_by_gap`.
    request : PlanRequest
        What is asked for.
    asked : str or None
        The law that was asked for, if it was.

    Returns
    -------
    str
        With the factor between the errors of the first two, where it is known.
    """
    first = designs[0]
    if asked is not None and asked != AUTO:
        return f"{first.protocol} was asked for."
    if len(designs) > 1:
        factor, second = first.law.gap / designs[1].law.gap, designs[1].protocol
        if factor < 1.0 + _SAME:
            return f"{first.protocol} and {second} have the same error here."
        return f"{first.protocol} has the smallest error, {second} {factor:.3g} times it."
    if request.epsilon is not None and first.protocol == next(iter(SIGN_LAWS)):
        return f"{first.protocol} has the smallest error at this central guarantee."
    return f"{first.protocol} is the only one for {first.max_changes} changes."


def _may_be_better(request: PlanRequest, protocol: str, gap: float) -> bool:
    """Tell whether a law might reach a gap within what is asked for."""
    if request.epsilon is None:
        return True  # nothing has to be searched for: it is shown beside the best

    def reaches(epsilon0: float) -> bool:
        law = sign_law(protocol, max_changes=request.max_changes, epsilon0=epsilon0)
        return law.gap > gap

    low, high = 0.0, LARGEST_EPSILON0
    if not reaches(high):
        return False
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return request.can_meet(protocol, high)
