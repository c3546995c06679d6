"""Every exception that shuffledp raises on purpose, and its warnings.

A message names the argument, the value, the allowed range and the next thing to try.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class ShuffledpError(Exception):
    """Base of all exceptions raised on purpose; catch it to catch them all."""


class ParameterError(ShuffledpError, ValueError):
    """An argument is outside its allowed range, whatever the data or the theorem."""


class OutOfRegimeError(ShuffledpError, ValueError):
    """A theorem was asked for outside its hypotheses; the message names the hypothesis."""


class PrecisionError(ShuffledpError, ArithmeticError):
    """Floating-point round-off dominates the answer, so there is no answer to give."""


class InfeasibleTargetError(ShuffledpError, ValueError):
    """No setting meets the target; the message names a number of users or an epsilon that would."""


class BudgetError(ShuffledpError, ValueError):
    """A privacy budget does not cover a request; the message states the remaining budget."""


class DataError(ShuffledpError, ValueError):
    """The data handed in cannot be used: missing column, empty file, unreadable format."""


class DomainError(DataError):
    """A value lies outside the declared domain, or the domain itself is unusable."""


class FingerprintError(ShuffledpError, ValueError):
    """Reports or counts of different randomizers, or of different parameters, were mixed."""


class OutputError(ShuffledpError, OSError):
    """Results cannot be written: the folder exists, the disk is full, no permission."""


class LowerEndWarning(UserWarning):
    """A lower end failed or crossed its upper end and was dropped; the upper end still holds."""


class NotKeptWarning(UserWarning):
    """Compiled code cannot be kept for the next process, which will have to compile again."""


class EmptyRowsWarning(UserWarning):
    """A table ends in a row without any value, which counts as a user."""


class ColumnOrderWarning(UserWarning):
    """Columns are read in an order that their names contradict."""


class PlanWarning(UserWarning):
    """The collection falls short of its plan; the guarantee is for the reports that arrived."""


class MissingPackageError(ShuffledpError, ModuleNotFoundError):
    """An optional package that this function needs is not installed; the message names it."""


@contextmanager
def telling(
    what: str,
    errors: tuple[type[Exception], ...] = (OSError,),
    *,
    kind: type[ShuffledpError] = OutputError,
) -> Iterator[None]:
    """Turn an error of the system, or of these types, into one line: what cannot be done."""
    try:
        yield
    except ShuffledpError:
        raise
    except errors as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise kind(f"cannot {what}: {reason or type(error).__name__}") from error


@contextmanager
def needing(package: str, purpose: str, requirement: str) -> Iterator[None]:
    """Raise `MissingPackageError` for an import that lacks a package: what to install for what."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        what = f"{purpose} needs {package}: run pip install '{requirement}'"
        raise MissingPackageError(what, name=package) from None
