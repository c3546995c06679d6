"""``shuffledp reproduce mallows``: the figures of "Privacy Implications of Shuffling".

Meehan, Roy Chowdhury, Chaudhuri, Jha, ICLR 2022, arXiv:2106.06603v3.
"""

from shuffledp.reproduction.adult_figure import adult_figure
from shuffledp.reproduction.crescents_figures import accuracy_figure, map_figure
from shuffledp.reproduction.figure_data import FigureData
from shuffledp.reproduction.paper import Paper
from shuffledp.reproduction.preservation_figure import preservation_figure
from shuffledp.reproduction.twitch_figure import twitch_figure

#: The figures of the paper.
MALLOWS: Paper[FigureData] = Paper(
    figures={
        "1": map_figure,
        "4": twitch_figure,
        "5": accuracy_figure,
        "7": preservation_figure,
        "8": adult_figure,
    },
    need_data=frozenset({"4", "8"}),
)
