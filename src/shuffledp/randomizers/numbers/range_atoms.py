"""Atoms of the piecewise mechanism, of Duchi's, and of a public choice between the two.

The blanket of `Piecewise` and why the ends of the range are its worst pair are in its profile. Here
is also the explicit data: what all *other* users hold, a grid point i of 0, ..., m, such that their
reports hide the pair of ends the least.

*Piecewise.* Under i the W outputs of its window have probability H / 2^64, the m others T / 2^64.
Outputs that tell the ends apart are those of the two end windows, which do not overlap as W <= m.
chi^2 = sum (R_0 - R_m)^2 / R_i counts each of them as (H - T)^2 over T or over H, so that the best
i has the window that overlaps those two the least: i = W if m >= 2 W, and then not at all; else the
overlap is 2 W - m for all i in [m - W, W].

*Public choice.* If a coin that does not look at the value chooses between two mechanisms, and the
report says which, the blanket is that of either mechanism times the probability of its choice:
the infimum over inputs is taken report by report. Where one pair of inputs is worst for both in
convex order, it is the worst for the mixture, too.
"""

from collections.abc import Iterable
from fractions import Fraction

from shuffledp.core.exact_atoms import ExactAtom
from shuffledp.core.profile import BlanketAtom
from shuffledp.randomizers.thresholds import WORD_VALUES

Atoms = list[ExactAtom]


def bit_blanket(threshold: int) -> Atoms:
    """Return the blanket of `Duchi`: that of randomized response of a bit.

    Examples
    --------
    >>> [tuple(map(str, atom)) for atom in bit_blanket(2**62)]
    [('1/4', '3', '1'), ('1/4', '1', '3')]
    """
    wrong = Fraction(threshold, WORD_VALUES)
    ratio = (1 - wrong) / wrong
    return [(wrong, ratio, 1), (wrong, 1, ratio)]


def bit_attack(threshold: int, position: Fraction) -> Atoms:
    """Return the ratios of both ends' bits to that of a value in between, for `Duchi`.

    Parameters
    ----------
    threshold : int
        T: a bit is wrong with probability exactly T / 2^64.
    position : Fraction
        Where the value lies, from 0 at the lower end to 1 at the upper one.

    Examples
    --------
    >>> [tuple(map(str, atom)) for atom in bit_attack(2**62, Fraction(1, 2))]
    [('1/2', '3/2', '1/2'), ('1/2', '1/2', '3/2')]
    """
    wrong = Fraction(threshold, WORD_VALUES)
    lower_end, upper_end = (1 - wrong, wrong), (wrong, 1 - wrong)
    atoms: Atoms = []
    for first, second in zip(lower_end, upper_end, strict=True):
        mass = (1 - position) * first + position * second
        atoms.append((mass, first / mass, second / mass))
    return atoms


def window_blanket(num_steps: int, window: int, threshold: int, ratio: Fraction) -> Atoms:
    """Return the blanket of `Piecewise` for the ends of the range.

    Parameters
    ----------
    num_steps, window, threshold : int
        m, W and T.
    ratio : Fraction
        H / T.

    Examples
    --------
    >>> [tuple(map(str, atom)) for atom in window_blanket(3, 1, 2**61, Fraction(5))]
    [('1/8', '5', '1'), ('1/8', '1', '5'), ('1/4', '1', '1')]
    """
    each = Fraction(threshold, WORD_VALUES)
    return [
        (window * each, ratio, 1),
        (window * each, 1, ratio),
        ((num_steps - window) * each, 1, 1),
    ]


def window_attack(
    num_steps: int, window: int, threshold: int, ratio: Fraction, *, point: int
) -> Atoms:
    """Return the ratios of both ends' reports to those of a grid point, for `Piecewise`.

    Parameters
    ----------
    num_steps, window, threshold, ratio
        As for `window_blanket`.
    point : int
        What all others hold: 0, or a point from min(W, m - W) to max(W, m - W).

    Examples
    --------
    >>> atoms = window_attack(3, 1, 2**61, Fraction(5), point=1)
    >>> [tuple(map(str, atom)) for atom in atoms if atom[0] > 0]
    [('1/8', '5', '1'), ('1/8', '1', '5'), ('1/8', '1', '1'), ('5/8', '1/5', '1/5')]
    """
    with_lower = max(0, window - point)
    with_upper = max(0, point + window - num_steps)
    alone = window - with_lower - with_upper
    light = Fraction(threshold, WORD_VALUES)
    heavy, low = light * ratio, 1 / ratio
    return [
        ((window - with_lower) * light, ratio, 1),
        ((window - with_upper) * light, 1, ratio),
        ((num_steps - 2 * window + with_lower + with_upper) * light, 1, 1),
        (with_lower * heavy, 1, low),
        (with_upper * heavy, low, 1),
        (alone * heavy, low, low),
    ]


def best_point(num_steps: int, window: int) -> int:
    """Return the least grid point whose window overlaps those of the ends the least.

    Examples
    --------
    >>> best_point(696, 256), best_point(300, 256), best_point(256, 256)
    (256, 44, 0)
    """
    return min(window, num_steps - window)


def chosen(share: Fraction, atoms: Atoms) -> Atoms:
    """Return the atoms of a mechanism that is used with probability ``share``, publicly.

    Examples
    --------
    >>> [tuple(map(str, atom)) for atom in chosen(Fraction(1, 2), bit_blanket(2**62))]
    [('1/8', '3', '1'), ('1/8', '1', '3')]
    """
    return [(share * mass, ratio0, ratio1) for mass, ratio0, ratio1 in atoms]


def separation(atoms: Iterable[BlanketAtom]) -> float:
    """Return chi^2 = E (r0 - r1)^2, by which a large crowd loses privacy; to double precision.

    Examples
    --------
    >>> separation((BlanketAtom(mass=0.5, ratio0=3.0, ratio1=1.0),))
    2.0
    """
    return sum(atom.mass * (atom.ratio0 - atom.ratio1) ** 2 for atom in atoms)
