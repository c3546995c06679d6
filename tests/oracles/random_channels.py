"""Random exact channels, small."""

from fractions import Fraction

from hypothesis import strategies as st

from shuffledp.leakage.channel import Channel


@st.composite
def laws(draw, size):
    """Draw an exact law on ``size`` outcomes; zeros are frequent."""
    weights = draw(
        st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(lambda row: sum(row) > 0)
    )
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def channels(draw, num_inputs=None, num_outputs=None, *, most=4):
    """Draw an exact channel without labels."""
    rows = num_inputs or draw(st.integers(1, most))
    columns = num_outputs or draw(st.integers(1, most))
    return Channel([draw(laws(columns)) for _ in range(rows)])
