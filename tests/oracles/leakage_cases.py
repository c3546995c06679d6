"""Random priors, channels and gains, in fractions with small denominators; zeros are common."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

SIZES = st.integers(1, 4)


def laws(size):
    """A law over so many values."""
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    return weights.map(lambda found: [Fraction(weight, sum(found)) for weight in found])


def matrices(num_rows, num_columns):
    """A channel matrix, as lists."""
    return st.lists(laws(num_columns), min_size=num_rows, max_size=num_rows)


def tables(num_inputs):
    """A table of gains that are not negative."""
    rows = st.lists(st.integers(0, 5), min_size=num_inputs, max_size=num_inputs)
    return st.lists(rows, min_size=1, max_size=4)


@st.composite
def cases(draw):
    """A prior, a channel matrix and a table of gains that fit together."""
    num_inputs, num_outputs = draw(SIZES), draw(SIZES)
    return (
        draw(laws(num_inputs)),
        draw(matrices(num_inputs, num_outputs)),
        draw(tables(num_inputs)),
    )


@st.composite
def cascades(draw):
    """A prior, a channel, a channel that follows it, and gains."""
    prior, matrix, table = draw(cases())
    return prior, matrix, draw(matrices(len(matrix[0]), draw(SIZES))), table


def floats(matrix):
    """The same in double precision."""
    return np.array(matrix, dtype=float)


def by_definition(prior, matrix, table):
    """sum_y max_w sum_x prior_x C_xy g(w, x), term by term."""
    return sum(
        max(
            sum(p * row[y] * g for p, row, g in zip(prior, matrix, gains, strict=True))
            for gains in table
        )
        for y in range(len(matrix[0]))
    )
