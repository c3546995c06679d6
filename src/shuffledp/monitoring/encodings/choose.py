"""Which encoding: from what a user's value is to the one with the smallest error."""

from collections.abc import Hashable, Iterable

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.encodings.attributes import AttributesEncoding
from shuffledp.monitoring.encodings.boolean import BooleanEncoding
from shuffledp.monitoring.encodings.encoding import Encoding
from shuffledp.monitoring.encodings.hadamard import HadamardEncoding
from shuffledp.monitoring.encodings.one_hot import OneHotEncoding

_ATTRIBUTES = "attributes:"

# One-hot columns multiply the variance by K, Hadamard columns by 4: equal at K = 4, where the
# estimates of the latter share all reports.
_FEWEST_FOR_HADAMARD = 4


def encoding_for(
    domain: Iterable[Hashable] | str | None = None, *, name: str | None = None
) -> Encoding:
    """Return the encoding for a kind of value.

    Parameters
    ----------
    domain : iterable, str or None
        ``None``: a state that is on or off. The values, in order: each user has one of them, or
        none. ``"attributes:m"``: each user has a set of the attributes 0 ... m - 1, m <= 62.
    name : str or None
        ``"one-hot"`` or ``"hadamard"`` for values, ``"attributes"`` for sets of the attributes
        given as ``domain``; ``None`` takes one-hot columns below four values and Hadamard columns
        from there on, whichever has the smaller error.

    Returns
    -------
    Encoding
        Frozen.

    Raises
    ------
    DomainError
        If the domain has fewer than two values or repeats one.
    ParameterError
        If ``name`` or the text of ``domain`` is unknown.

    Examples
    --------
    >>> encoding_for().name, encoding_for(["yes", "no"]).name, encoding_for(range(100)).name
    ('boolean', 'one-hot', 'hadamard')
    >>> encoding_for("attributes:8").num_columns
    8
    """
    if isinstance(domain, str):
        return _from_text(domain, name)
    if domain is None:
        if name not in (None, BooleanEncoding.name):
            raise ParameterError(f"encoding = {name!r} needs a domain: give the values to count")
        return BooleanEncoding()
    labels = tuple(domain)
    if name is None:
        name = OneHotEncoding.name if len(labels) < _FEWEST_FOR_HADAMARD else HadamardEncoding.name
    if name == OneHotEncoding.name:
        return OneHotEncoding(labels)
    if name == HadamardEncoding.name:
        return HadamardEncoding(labels)
    if name == AttributesEncoding.name:
        return AttributesEncoding(labels)
    raise ParameterError(
        f"encoding = {name!r} is not one of one-hot, hadamard, attributes for values of a domain: "
        "leave it out for the one with the smallest error"
    )


def _from_text(domain: str, name: str | None) -> Encoding:
    """Return the encoding that a text such as ``"attributes:8"`` names."""
    number = domain.removeprefix(_ATTRIBUTES)
    if number == domain or not (number.isascii() and number.isdecimal()):
        raise DomainError(
            f"domain = {domain!r} is a text: give a list of values, or 'attributes:m' for sets of "
            "m attributes"
        )
    if name not in (None, AttributesEncoding.name):
        raise ParameterError(
            f"encoding = {name!r} is not for domain = {domain!r}: leave the encoding out"
        )
    return AttributesEncoding.numbered(int(number))
