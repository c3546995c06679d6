"""The Mallows models by the name of their distance."""

from typing import SupportsFloat, SupportsIndex

from shuffledp.core.errors import ParameterError
from shuffledp.groups.cayley import CayleyMallows
from shuffledp.groups.hamming import HammingMallows
from shuffledp.groups.kendall import KendallMallows
from shuffledp.groups.permutations import MallowsModel

__all__ = ["MALLOWS_MODELS", "MallowsModel", "mallows_model"]

#: Every model, by the name of its distance.
MALLOWS_MODELS: dict[str, type[KendallMallows | HammingMallows | CayleyMallows]] = {
    model.distance: model for model in (KendallMallows, HammingMallows, CayleyMallows)
}


def mallows_model(distance: str, num_items: SupportsIndex, theta: SupportsFloat) -> MallowsModel:
    """Return the Mallows model of a distance, the law proportional to exp(-theta distance).

    Examples
    --------
    >>> mallows_model("kendall", 3, 0.0)
    KendallMallows(num_items=3, theta=0.0)
    """
    model = MALLOWS_MODELS.get(distance)
    if model is None:
        raise ParameterError(
            f"distance = {distance!r} has no Mallows model: choose one of {list(MALLOWS_MODELS)}"
        )
    return model(num_items=num_items, theta=theta)  # type: ignore[arg-type]
