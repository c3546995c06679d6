"""``shuffledp reproduce leakage``: figures and tables on quantitative information flow.

Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative
Information Flow", CSF 2023, hal-04349295v1. Fig. 1, 8 and 9 draw relations between channels; those
are tested as properties (tests/leakage), not drawn.
"""

from typing import TypeAlias

from shuffledp.reproduction.leakage_approximation_figures import (
    noise_approximation_figure,
    shuffle_approximation_figure,
)
from shuffledp.reproduction.leakage_charts import LeakageFigure
from shuffledp.reproduction.leakage_knowledge_figure import knowledge_figure
from shuffledp.reproduction.leakage_tables import TABLES, LeakageTable, table_maker
from shuffledp.reproduction.leakage_users_figures import (
    binary_figure,
    five_values_figure,
    many_values_figure,
)
from shuffledp.reproduction.paper import Paper

Reproduced: TypeAlias = LeakageFigure | LeakageTable
"""A figure or a table of the paper."""

#: The computed figures, and the tables.
LEAKAGE: Paper[Reproduced] = Paper(
    figures={
        "2": binary_figure,
        "3": knowledge_figure,
        "4": five_values_figure,
        "5": many_values_figure,
        "6": shuffle_approximation_figure,
        "7": noise_approximation_figure,
        **{name: table_maker(name) for name in TABLES},
    },
    need_data=frozenset(),
)

#: Figures that are charts.
CHARTS = tuple(name for name in LEAKAGE.figures if name not in TABLES)
