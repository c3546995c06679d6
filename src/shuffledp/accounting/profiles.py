"""Local profiles by the name of a randomizer, and schedules of many releases.

A schedule is a CSV file in which each row is a kind of release and its number of repetitions.

===============  ======================================================================
column           meaning
===============  ======================================================================
epsilon0         local privacy loss in nats; with num_users a shuffled release
num_users        honest users in the batch
rounds           number of times, 1 if there is no such column or the field is empty
randomizer, k    name of the randomizer and its number of answers; empty for any
sampled_from     number of honest users that the num_users are drawn from
participation    chance that each user takes part
dummies          law of the reports that belong to nobody, such as laplace:2.025:27
epsilon, delta   a release with a stated guarantee instead, with no epsilon0
===============  ======================================================================
"""

import csv
from collections.abc import Mapping
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from shuffledp.composition.composition import Composition, Release
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.checks import require_at_least
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.core.files import text_file
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# The accountant needs only epsilon0 of these, and the number of answers of k-RR.
_NAMED_FAMILIES = {*RandomizerFamily} - {RandomizerFamily.ANY, RandomizerFamily.OTHER}


def named_profile(
    randomizer: str | None = None, *, epsilon0: Any, domain_size: Any = None, dimension: Any = None
) -> LocalProfile:
    """Return the profile of a randomizer of this library; None for any epsilon0-LDP randomizer.

    Its epsilon0 is the loss of the law that is drawn, at most the given one. ``domain_size`` is
    needed for all randomizers of categories but the unary encodings, ``dimension`` for vectors.
    """
    if randomizer is None and domain_size is None and dimension is None:
        return LocalProfile(epsilon0=epsilon0)
    from shuffledp.randomizers import base, registry

    name = randomizer or ""
    numbers, vectors = registry.NUMBER_RANDOMIZERS, registry.VECTOR_RANDOMIZERS
    accounted = (*registry.RANDOMIZERS, *numbers, *vectors)
    if randomizer is not None and name not in accounted:
        raise ParameterError(
            f"randomizer = {randomizer!r} is not one of {', '.join(accounted)}; for any other one "
            "leave it out, which is safe"
        )
    why = "without a randomizer" if randomizer is None else f"for {randomizer}"
    sizes = {"domain_size": domain_size, "dimension": dimension}
    needed = {"domain_size": name in registry.RANDOMIZERS, "dimension": name in vectors}
    for argument, value in sizes.items():
        if value is not None and not needed[argument]:
            raise ParameterError(f"{argument} = {value} makes no difference {why}: leave it out")
        if value is None and needed[argument] and name not in _NAMED_FAMILIES:
            raise ParameterError(f"{argument} is needed {why}")
    if name in _NAMED_FAMILIES:
        family = RandomizerFamily(name)
        return LocalProfile(epsilon0=epsilon0, family=family, domain_size=domain_size)
    law: base.LocalRandomizer
    if needed["domain_size"]:
        law = registry.make_randomizer(name, domain_size=domain_size, epsilon0=float(epsilon0))
    elif needed["dimension"]:
        law = vectors[name](dimension=dimension, norm_bound=1.0, epsilon0=epsilon0)
    else:  # the law depends on the value's place within its limits, not on the limits
        law = numbers[name](low=-1.0, high=1.0, epsilon0=epsilon0)
    return law.profile


def _whole(text: str) -> int:
    """Return a whole number; 1e6 and 1_000_000 are fine, 0.5 is not."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


# Possible columns, columns of whole numbers, and columns of a stated guarantee.
_STATED = ("epsilon", "delta")
_DRAWN = ("sampled_from", "participation", "dummies")
_SHUFFLED = ("epsilon0", "num_users", "randomizer", "k", *_DRAWN)
_COLUMNS = (*_SHUFFLED, "rounds", *_STATED)
_WHOLE = ("num_users", "k", "sampled_from", "rounds")

# No plan has more kinds of releases; a longer file is no schedule.
_MOST_ROWS = 10_000


def read_schedule(path: str | PathLike[str]) -> Composition:
    r"""Read a schedule of releases about the same people.

    Parameters
    ----------
    path : str or path-like
        A CSV file in UTF-8 with a header; see the table above.

    Returns
    -------
    Composition
        All rows. Equal releases are added up.

    Raises
    ------
    DataError
        If the file cannot be read, or a field cannot be used; the message names line and column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rounds.csv")
    ...     _ = path.write_text("epsilon0,num_users,rounds\n1.0,10000,30\n")
    ...     print(f"{read_schedule(path).epsilon(1e-6).upper:.3f}")
    0.267
    """
    location = Path(path)
    with text_file(location, newline="") as file:
        return _schedule(csv.DictReader(file, restkey=""), location.name)


def _schedule(reader: "csv.DictReader[str]", origin: str) -> Composition:
    """Return the composition of all rows."""
    names = reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    if wrong := [name for name in names if name not in _COLUMNS or names.count(name) > 1]:
        raise DataError(
            f"{origin}, line 1: {wrong[0]!r} stands twice, or is not one of the columns "
            f"{', '.join(_COLUMNS)}"
        )
    parts = []
    for row in islice(reader, _MOST_ROWS + 1):
        where = f"{origin}, line {reader.line_num}"
        if "" in row:
            raise DataError(f"{where} has more fields than the header has columns")
        fields = {name: value.strip() for name, value in row.items() if value and value.strip()}
        parts.append(_part(fields, where))
    if not 1 <= len(parts) <= _MOST_ROWS:
        found = f"more than {_MOST_ROWS} rows" if parts else "no rows"
        raise DataError(f"{origin} has {found} below a header such as epsilon0,num_users")
    try:
        return Composition(parts)
    except ShuffledpError as error:
        raise DataError(f"{origin}: {error}") from None


def _part(texts: Mapping[str, str], where: str) -> tuple[Release, int]:
    """Return the release of one row and the number of times that it takes place."""
    fields: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            parse = _whole if name in _WHOLE else float
            fields[name] = text if name in ("randomizer", "dummies") else parse(text)
        except ValueError:
            kind = "whole number" if name in _WHOLE else "number"
            raise DataError(f"{where}, column {name}: {text!r} is no {kind}") from None
    rounds = fields.pop("rounds", 1)
    stated = [name for name in _STATED if name in fields]
    shuffled = [name for name in _SHUFFLED if name in fields]
    if stated and shuffled:
        raise DataError(
            f"{where}: {stated[0]} states a guarantee, so {shuffled[0]} has to be left out"
        )
    for name in ("epsilon",) if stated else ("epsilon0", "num_users"):
        if name not in fields:
            raise DataError(f"{where}, column {name}: the field is empty, and it is needed here")
    if "k" in fields and "randomizer" not in fields:
        raise DataError(f"{where}, column k: k = {fields['k']} needs a randomizer")
    release: Release
    try:
        if stated:
            release = StatedRelease(**{"delta": 0.0, **fields})
        else:
            law = named_profile(
                fields.pop("randomizer", None),
                epsilon0=fields.pop("epsilon0"),
                domain_size=fields.pop("k", None),
            )
            if "dummies" in fields:
                fields["dummies"] = DummyLaw.from_text(fields["dummies"])
            release = ShuffledRelease(profile=law, **fields)
        return release, require_at_least("rounds", rounds, 0)
    except ShuffledpError as error:
        raise DataError(f"{where}: {error}") from None
