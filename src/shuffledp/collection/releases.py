"""What a plan or a result adds to a budget: its release, for compositions and ledgers."""

from typing import Any

from shuffledp.collection.shuffling import UNIFORM
from shuffledp.composition.composition import Composable
from shuffledp.composition.release import ShuffledRelease, StatedRelease


class Releasing:
    """A plan or a result, as something that composes with other releases."""

    __slots__ = ()

    def release(self: Any) -> Composable:
        """Return the release, for ``+``, ``*`` and ledgers.

        A uniform shuffle keeps its law, so that it composes better than its epsilon and delta;
        rounds and other shuffles are what their guarantee states.

        Examples
        --------
        >>> import shuffledp as sdp
        >>> asked = sdp.Categories(["yes", "no"])
        >>> weekly = sdp.plan(asked, num_users=1000, epsilon=0.5, delta=1e-8).release()
        >>> 0.5 < (weekly * 4).epsilon(delta=1e-6).upper < 2.0
        True
        """
        guarantee, dummies = self.guarantee, self.dummies
        if self.shuffling != UNIFORM or len(dummies) > 1 or guarantee.rounds != 1:
            return StatedRelease(epsilon=guarantee.epsilon_upper, delta=guarantee.delta_upper)
        how: Any = {"dummies": dummies[0]} if dummies else {}
        users = guarantee.num_users if dummies else self.num_users
        return ShuffledRelease(profile=self.randomizer.profile, num_users=users, **how)
