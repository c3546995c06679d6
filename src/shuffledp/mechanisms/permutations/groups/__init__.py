"""Groups of people, inside which their order is to be hidden."""

from shuffledp.mechanisms.permutations.groups.groups import Groups

__all__ = ["Groups"]
