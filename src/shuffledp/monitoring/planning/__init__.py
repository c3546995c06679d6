"""How well a changing statistic will be known, and what else would do."""
