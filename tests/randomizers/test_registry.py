import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.randomizers import RANDOMIZERS, make_randomizer
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)


def test_categories_by_name():
    assert list(RANDOMIZERS) == [
        "k-rr",
        "symmetric-unary",
        "optimized-unary",
        "optimized-local-hashing",
        "hadamard-response",
        "subset-selection",
    ]
    for name in RANDOMIZERS:
        randomizer = make_randomizer(name, domain_size=4, epsilon0=1.0)
        assert (randomizer.name, randomizer.domain_size, randomizer.epsilon0) == (
            name,
            4,
            pytest.approx(1.0),
        )


def test_numbers_and_vectors_by_name():
    assert list(NUMBER_RANDOMIZERS) == ["duchi", "piecewise"]
    assert list(VECTOR_RANDOMIZERS) == ["privunit"]
    for name, make in NUMBER_RANDOMIZERS.items():
        assert make(low=0.0, high=2.0, epsilon0=1.0).name == name
    for name, make in VECTOR_RANDOMIZERS.items():
        assert make(dimension=3, norm_bound=2.0, epsilon0=1.0).name == name


def test_sets_by_name():
    assert len(ANSWER_SET_RANDOMIZERS) == 2 * len(RANDOMIZERS)
    for name, make in ANSWER_SET_RANDOMIZERS.items():
        randomizer = make(domain_size=5, max_answers=2, epsilon0=1.0)
        assert randomizer.name == name
        assert randomizer.epsilon0 <= 1.0


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [("krr", "k-rr"), ("K-RR", "k-rr"), ("optimised-unary", "optimized-unary"), ("", "")],
)
def test_an_unknown_name_suggests_the_nearest(misspelt, nearest):
    with pytest.raises(ParameterError, match=f"did you mean '{nearest}"):
        make_randomizer(misspelt, domain_size=4, epsilon0=1.0)


def test_randomizers_print_as_they_are_made():
    assert (
        repr(make_randomizer("k-rr", domain_size=4, epsilon0=1.0))
        == "KRandomizedResponse(domain_size=4, epsilon0=1.0)"
    )


@pytest.mark.parametrize("k", [0, 1, 2.5, "3"])
def test_k_is_checked(k):
    with pytest.raises(ParameterError, match="domain_size = "):
        make_randomizer("k-rr", domain_size=k, epsilon0=1.0)
