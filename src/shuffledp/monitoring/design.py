"""``MonitorDesign``: what clients and server of a longitudinal collection agree on."""

import hashlib
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import MonitoringProfile
from shuffledp.monitoring.encodings import BooleanEncoding, Encoding
from shuffledp.monitoring.signs import SignLaw, sign_law
from shuffledp.monitoring.tree import PeriodTree

_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorDesign:
    """Periods, changes, privacy and encoding of a longitudinal collection.

    Parameters
    ----------
    periods : int
        d, at least 1: fixed when the collection starts.
    max_changes : int
        k, in [1, periods]: changes of a user's value that are followed. The first value counts
        as a change unless it is the value that stands for nothing (0 for booleans).
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports. The attribute of the
        same name is the loss of the law that is drawn, rounded up, which is at most that.
    protocol : str
        Law of the signs, one of ``SIGN_LAWS``.
    encoding : Encoding, optional
        How a value becomes bits; booleans where none is given.

    Attributes
    ----------
    tree : PeriodTree
        The dyadic tree over the periods.
    law : SignLaw
        The law of the signs.

    Raises
    ------
    ParameterError
        If a number is out of range, or so small an ``epsilon0`` that reports would say nothing.

    Examples
    --------
    >>> design = MonitorDesign(periods=8, max_changes=1, epsilon0=1.0986122886681098)  # ln 3
    >>> round(design.scale, 9)  # 4 levels, a sign is right with probability 3/4
    8.0
    """

    periods: int
    max_changes: int
    epsilon0: float
    protocol: str = "predrawn-signs"
    encoding: Encoding = None  # type: ignore[assignment]  # never None once made
    tree: PeriodTree = field(init=False, repr=False, compare=False)
    law: SignLaw = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        tree = PeriodTree(periods=self.periods)
        law = sign_law(self.protocol, max_changes=self.max_changes, epsilon0=self.epsilon0)
        if law.max_changes > tree.periods:
            raise ParameterError(
                f"max_changes = {law.max_changes} is above periods = {tree.periods}: a value "
                f"changes at most once a period; give max_changes = {tree.periods} or less"
            )
        if not law.gap > 0.0:
            raise ParameterError(
                f"epsilon0 = {self.epsilon0} lets reports say nothing about the values: give a "
                "larger one, for example 1"
            )
        set_field("periods", tree.periods)
        set_field("max_changes", law.max_changes)
        set_field("epsilon0", law.epsilon0)
        set_field("tree", tree)
        set_field("law", law)
        if cast("Encoding | None", self.encoding) is None:
            set_field("encoding", BooleanEncoding())

    @property
    def num_levels(self) -> int:
        """Levels of the tree, L, of which a client draws one."""
        return self.tree.num_levels

    @property
    def scale(self) -> float:
        """L / gap: a node's sum of signs times this is unbiased for the sum of the increments.

        Rounded to the nearest float.
        """
        return self.tree.num_levels / self.law.gap

    @property
    def profile(self) -> MonitoringProfile:
        """What the accountant needs."""
        return self.law.profile(
            num_levels=self.tree.num_levels, alternating=self.encoding.alternating
        )

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that name all that client and server must agree on.

        Returns
        -------
        str
            A prefix of SHA-256 of periods, exact law of the signs, and encoding, the labels of its
            values included: who numbers them otherwise would count wrong changes.
        """
        stated = (
            f"shuffledp monitoring/{self.tree.periods}/{self.law.identity}"
            f"/{self.encoding.fingerprint}"
        )
        return hashlib.sha256(stated.encode()).hexdigest()[:_FINGERPRINT_DIGITS]
