"""Priors in files: the adversary's belief before any release, and known counts of values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from shuffledp.accounting.channel_files import parse_entry
from shuffledp.core.errors import DataError
from shuffledp.core.files import text_file
from shuffledp.core.labels import formed

# Sums of probabilities that were written as decimals are no closer to 1.
_SUM_TOLERANCE = Fraction(1, 10**9)

_MOST_VALUES = 10**6

_FORMS = (
    "give a list of probabilities, an object of value and probability, or "
    '{"prior": ..., "known": ...}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorKnowledge:
    """Prior of an adversary on everybody's value, and its knowledge of some values.

    Parameters
    ----------
    prior : tuple of float
        Probability of each value, for the person and independently for everybody that the
        adversary does not know; sums to 1.
    values : tuple of str or None
        Name of each value, where they were named.
    known : tuple of int or None
        Number of the others that it knows to have each value; None if it knows nobody's.

    Examples
    --------
    >>> from shuffledp.leakage import account_leakage
    >>> weather = PriorKnowledge(prior=(0.25, 0.75), values=("wet", "dry"))
    >>> found = account_leakage(num_users=9, domain_size=2, epsilon0=1.0, prior=weather.prior)
    >>> found.both.upper >= 0.75
    True
    """

    prior: tuple[float, ...]
    values: tuple[str, ...] | None = None
    known: tuple[int, ...] | None = None


def read_prior(path: str | PathLike[str]) -> PriorKnowledge:
    """Read a prior from a JSON file.

    Parameters
    ----------
    path : str or path-like
        A list of probabilities; or an object of value and probability; or an object with ``prior``
        in either form and, if the adversary knows the values of some others, ``known``: the number
        with each value, in the same form. Values that ``known`` does not name have none.
        Probabilities are numbers, or fractions in quotes such as ``"1/3"``.

    Returns
    -------
    PriorKnowledge
        Its probabilities are divided by their sum.

    Raises
    ------
    DataError
        If the file cannot be read, or is no prior; the message states where and why.

    Notes
    -----
    Numbers are read exactly, and must sum to 1 within 1e-9.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "prior.json")
    ...     _ = path.write_text('{"yes": "1/4", "no": "3/4"}')
    ...     read_prior(path)
    PriorKnowledge(prior=(0.25, 0.75), values=('yes', 'no'), known=None)
    """
    location = Path(path)
    origin = location.name
    content, known = _json(location), None
    if isinstance(content, dict) and isinstance(content.get("prior"), list | dict):
        if unknown := [key for key in content if key not in {"prior", "known"}]:
            raise DataError(f"{origin} has {unknown[0]!r} beside the prior: {_FORMS}")
        content, known = content["prior"], content.get("known")
    values, prior = _prior(content, origin)
    if known is not None:
        known = _known(known, values, len(prior), origin)
    return PriorKnowledge(prior=prior, values=values, known=known)


def _json(path: Path) -> Any:
    """Return the content of a JSON file, numbers as fractions; duplicate keys are refused."""

    def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = {formed(name): entry for name, entry in pairs}
        if len(found) < len(pairs):
            raise DataError(f"{path.name} names a value twice: name each value once")
        return found

    with text_file(path) as file:
        text = file.read()
    try:
        return json.loads(
            text,
            parse_float=parse_entry,
            parse_int=parse_entry,
            parse_constant=lambda _: None,
            object_pairs_hook=unrepeated,
        )
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"cannot read {path.name}: it is no JSON ({reason})") from None


def _prior(content: Any, origin: str) -> tuple[tuple[str, ...] | None, tuple[float, ...]]:
    """Return the names of the values, and the probabilities."""
    if not isinstance(content, list | dict):
        raise DataError(f"{origin} holds no prior: {_FORMS}")
    names = tuple(content) if isinstance(content, dict) else None
    entries = list(content.values()) if isinstance(content, dict) else content
    if not 2 <= len(entries) <= _MOST_VALUES:
        raise DataError(
            f"{origin} has {len(entries)} values, which is not in [2, {_MOST_VALUES:.0e}]: with "
            "fewer than two there is nothing to guess"
        )
    exact = []
    for place, entry in enumerate(entries):
        number = parse_entry(entry) if isinstance(entry, str) else entry
        if not isinstance(number, Fraction) or not 0 <= number <= 1 + _SUM_TOLERANCE:
            raise DataError(
                f"{origin}, value {place if names is None else repr(names[place])} is no "
                'probability: give a number from 0 to 1, or a fraction in quotes like "1/3"'
            )
        exact.append(number)
    total = sum(exact, Fraction(0))
    if abs(total - 1) > _SUM_TOLERANCE:
        raise DataError(
            f"the prior in {origin} sums to {float(total):.12g}, off by {float(total - 1):+.3g}: "
            'its probabilities must add up to 1 within 1e-9; fractions may be written as "1/3"'
        )
    return names, tuple(float(entry / total) for entry in exact)


def _known(
    content: Any, values: tuple[str, ...] | None, num_values: int, origin: str
) -> tuple[int, ...]:
    """Return the number of others known to have each value."""
    if isinstance(content, Mapping) and set(content) <= set(values or ()):
        content = [content.get(name, Fraction(0)) for name in values or ()]
    if not isinstance(content, list) or len(content) != num_values:
        raise DataError(
            f'{origin}: "known" is no list of {num_values} counts, nor an object that names values'
        )
    if any(not isinstance(n, Fraction) or n < 0 or n.denominator != 1 for n in content):
        raise DataError(f'{origin}: "known" has what is no count of users: give whole numbers >= 0')
    return tuple(map(int, content))
