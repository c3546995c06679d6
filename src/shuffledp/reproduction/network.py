"""``shuffledp reproduce network``: the figures of "Network Shuffling".

Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via Random
Walks", SIGMOD 2022, arXiv:2204.03919.
"""

from shuffledp.reproduction.network_charts import NetworkFigure
from shuffledp.reproduction.network_epsilon0_figures import (
    graphs_figure,
    protocols_figure,
    stationary_figure,
)
from shuffledp.reproduction.network_mean_figure import mean_figure
from shuffledp.reproduction.network_rounds_figures import (
    real_graphs_figure,
    regular_graphs_figure,
)
from shuffledp.reproduction.paper import Paper

#: The figures of the paper.
NETWORK: Paper[NetworkFigure] = Paper(
    figures={
        "4": real_graphs_figure,
        "5": regular_graphs_figure,
        "6": graphs_figure,
        "7": protocols_figure,
        "8": stationary_figure,
        "9": mean_figure,
    },
    need_data=frozenset({"4", "6", "7", "9"}),
)
