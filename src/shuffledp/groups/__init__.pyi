from shuffledp.groups.arrangement import DisplacementArrangement as DisplacementArrangement
from shuffledp.groups.arrangement import GroupArrangement as GroupArrangement
from shuffledp.groups.cayley import CayleyMallows as CayleyMallows
from shuffledp.groups.displacement import DisplacementShuffler as DisplacementShuffler
from shuffledp.groups.grouping import Grouping as Grouping
from shuffledp.groups.groups import Groups as Groups
from shuffledp.groups.hamming import HammingMallows as HammingMallows
from shuffledp.groups.kendall import KendallMallows as KendallMallows
from shuffledp.groups.reference_orders import ReferenceOrder as ReferenceOrder
from shuffledp.groups.reference_orders import (
    choose_reference_order as choose_reference_order,
)
from shuffledp.groups.shuffler import MallowsShuffler as MallowsShuffler
