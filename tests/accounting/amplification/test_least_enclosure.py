import pytest

from shuffledp.accounting.amplification.families import clone_law
from shuffledp.accounting.amplification.symmetric_blanket import least_enclosure
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

LAWS = [clone_law(1.0), clone_law(2.0)]
FOUND = Enclosure(0.1, 0.2)


def losing(*lost):
    """An evaluation that is lost in round-off at the calls of these numbers."""
    calls = iter(range(9))

    def enclose(_blanket):
        if next(calls) in lost:
            raise PrecisionError("round-off")
        return FOUND

    return enclose


@pytest.mark.parametrize("lost", [(), (0,), (1,)])
def test_one_law_lost_in_round_off_leaves_the_other(lost):
    assert least_enclosure(LAWS, 10, losing(*lost)) == FOUND


def test_all_lost_is_an_error():
    with pytest.raises(PrecisionError, match="round-off"):
        least_enclosure(LAWS, 10, losing(0, 1))


def test_the_smallest_upper_end_counts():
    ends = iter([Enclosure(0.1, 0.3), Enclosure(0.0, 0.2)])
    assert least_enclosure(LAWS, 10, lambda _blanket: next(ends)).upper == 0.2
