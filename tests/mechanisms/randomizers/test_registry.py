import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.mechanisms.randomizers import RANDOMIZERS, make_randomizer


def test_names_are_those_of_the_classes():
    assert set(RANDOMIZERS) == {"k-rr", "symmetric-unary", "optimized-unary"}
    for name in RANDOMIZERS:
        randomizer = make_randomizer(name, k=4, epsilon0=1.0)
        assert isinstance(randomizer, RANDOMIZERS[name])
        assert randomizer.name == name


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [("krr", "k-rr"), ("K-RR", "k-rr"), ("optimised-unary", "optimized-unary"), ("", "")],
)
def test_an_unknown_name_suggests_the_nearest(misspelt, nearest):
    with pytest.raises(ParameterError, match=f"did you mean '{nearest}"):
        make_randomizer(misspelt, k=4, epsilon0=1.0)


def test_randomizers_print_as_they_are_made():
    assert (
        repr(make_randomizer("k-rr", k=4, epsilon0=1.0)) == "KRandomizedResponse(k=4, epsilon0=1.0)"
    )
