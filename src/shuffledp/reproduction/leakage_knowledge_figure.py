"""Fig. 3 of Jurado et al.: what who knows all others guesses, over what the others hold."""

from dataclasses import replace

from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.poisson_binomial import poisson_binomial_law
from shuffledp.leakage.informed.strong import strong_vulnerability
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    line_of_bounds,
)
from shuffledp.reproduction.settings import Settings

_NUM_OTHERS = 200
_TRUTHS = (1.0, 0.9, 0.8, 0.7, 0.6)
# What the text gives at p = 0.8, over the share of a's.
_DETAIL = 0.8
_PRINTED = {0.0: "0.52111", 50.0: "0.52116"}

_CAPTION = """\
Fig. 3. Probability that a strong adversary, who knows the values of 200 users, guesses the value
of the 201st in one try, over the share of a's among the 200; k = 2 values, uniform prior on the
one. Solid: k-RR and shuffle (NS), which is the shuffle alone (S) at p = 1. Dotted: k-RR alone (N).
The right chart is ours: p = 0.8 close up. Knowledge matters in the fifth digit, and by jumps: the
vulnerability depends on how close the mean number of a's among the reports of the 200 others
comes to a whole number. Corrected: {correction}."""

_CORRECTION = """\
Eq. (10) is evaluated as (1/2) sum_y max_x NS[x, y]; it is printed with max over y inside the sum
over x, which would be {printed:.4f} at p = 0.8 and 50 %, below a blind guess"""


def knowledge_figure(settings: Settings, _entropy: Entropy) -> LeakageFigure:
    """Compute Fig. 3.

    Parameters
    ----------
    settings : Settings
        How many points to compute.
    _entropy : Entropy
        Not used: nothing is random here.

    Returns
    -------
    LeakageFigure
        The paper's chart, and a close-up.
    """
    counts = range(0, _NUM_OTHERS + 1, 50 if settings.quick else 1)
    shares = [100.0 * count / _NUM_OTHERS for count in counts]
    lines: list[Line] = []
    detail: list[Line] = []
    for index, truth in enumerate(_TRUTHS):
        bounds = [_vulnerability(count, truth) for count in counts]
        name = f"p = {truth:g}"
        lines.append(line_of_bounds(Seen.BOTH, name, shares, bounds))
        lines.append(Line(seen=Seen.RANDOMIZER, variant=name, y=(truth,)))
        if truth == _DETAIL:
            detail.append(replace(lines[-2], printed=_PRINTED, is_scattered=True))
        settings.progress("figure 3: truth probabilities", index + 1, len(_TRUTHS))
    chart = Chart(
        name="a",
        title="strong adversary, k = 2, n = 201",
        x_label="a's among the 200 others (%)",
        y_label="probability of a right guess",
        lines=tuple(lines),
        y_limits=(0.5, 1.02),
    )
    close = replace(chart, name="b", title="p = 0.8 close up", lines=tuple(detail), y_limits=None)
    correction = " ".join(_CORRECTION.format(printed=printed_equation(100, _DETAIL)).split())
    return LeakageFigure(
        name="3",
        caption=_CAPTION.format(correction=correction),
        charts=(chart, close),
        correction=correction,
    )


def _vulnerability(num_a: int, truth: float) -> Bound:
    """Return what who knows so many a's among the others guesses."""
    return strong_vulnerability(truth, (num_a, _NUM_OTHERS - num_a))


def printed_equation(num_a: int, truth: float) -> float:
    """Return what Eq. (10) would give as it is printed: the means of the rows' largest entries.

    Parameters
    ----------
    num_a : int
        How many of the 200 others are known to hold a, in [0, 200].
    truth : float
        Truth probability p, in [1/2, 1].

    Returns
    -------
    float
        No vulnerability: it falls below the blind guess 1/2.

    Examples
    --------
    >>> printed_equation(100, 1.0)
    1.0
    """
    says_a = [[truth] * own + [1.0 - truth] * (_NUM_OTHERS + 1 - own) for own in (num_a, num_a + 1)]
    return sum(float(poisson_binomial_law(each)[0].max()) for each in says_a) / 2.0
