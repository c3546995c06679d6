"""What every law of the signs offers to clients, servers and the accountant."""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.monitoring_profile import MonitoringProfile

LawKind = Literal["sampled-change", "predrawn"]


class SignLaw(Protocol):
    """How a client hides its changes at the level that it drew."""

    @property
    def name(self) -> str:
        """Name, as in ``SIGN_LAWS``."""
        ...

    @property
    def kind(self) -> LawKind:
        """What a key means.

        ``"predrawn"``: bit j - 1 is set if the j-th nonzero increment at the client's level is
        reported with its sign turned. ``"sampled-change"``: the number, from 1, of the only
        change that counts.
        """
        ...

    @property
    def max_changes(self) -> int:
        """How many changes of the value are followed, k."""
        ...

    @property
    def epsilon0(self) -> float:
        """Local privacy loss, in nats, of everything that a user ever reports; rounded up.

        Of the exact law that is drawn.
        """
        ...

    @property
    def gap(self) -> float:
        """Mean of a report divided by the increment that it is about; to the nearest float."""
        ...

    @property
    def pair_correlation(self) -> float:
        """r_2, the mean of the product of two signs; to the nearest float."""
        ...

    @property
    def flip_threshold(self) -> int:
        """What turns the sign of the change that counts, when it is reported.

        A uniform 64-bit word below T turns it: probability exactly T / 2^64. 0 for pre-drawn
        signs, which nothing turns again.
        """
        ...

    @property
    def identity(self) -> str:
        """Names the exact law; part of a design's fingerprint."""
        ...

    def profile(self, *, num_levels: int, alternating: bool) -> MonitoringProfile:
        """Return what the accountant needs.

        Parameters
        ----------
        num_levels : int
            Levels of the tree.
        alternating : bool
            Whether increments alternate and begin with +; see `MonitoringProfile`.
        """
        ...

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return what clients draw once, secret and independent.

        Parameters
        ----------
        entropy : Entropy
            Source of all randomness.
        size : int
            Number of clients, >= 0.

        Returns
        -------
        ndarray of uint64, shape (size,)
            One key a client; see ``kind``.
        """
        ...
