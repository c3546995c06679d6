"""Groups of people, inside which their order is to be hidden."""

from shuffledp.groups.formation.groups import Groups

__all__ = ["Groups"]
