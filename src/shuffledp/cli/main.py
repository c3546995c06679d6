"""The command group, and the one place where errors become a line on stderr and an exit code.

Exit codes: 0 success, also if results are written but cannot be printed; 1 a server's
background work failed; 2 refused or failed; 130 Ctrl-C; 141 the reader of stdout is gone;
143 SIGTERM.
"""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from shuffledp.cli import console
from shuffledp.cli.console import say
from shuffledp.cli.options import cli
from shuffledp.core import errors, progress

REFUSED = 2
FAILED = 1
INTERRUPTED = 128 + signal.SIGINT
UNREAD = 128 + 13  # SIGPIPE, which Windows lacks
TERMINATED = 128 + signal.SIGTERM
_PRINTED = (
    errors.ColumnOrderWarning,
    errors.EmptyRowsWarning,
    errors.LowerEndWarning,
    errors.NotKeptWarning,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default the process's arguments.

    Returns
    -------
    int
        The exit code. An error is printed as one line on stderr, without a traceback.
    """
    previous = signal.signal(signal.SIGTERM, _terminate)
    gc.set_threshold(200_000, 50, 100)  # importing makes many objects and no garbage
    progress.compiling[:] = [_say_compiling]
    console.prepare_stdout()
    try:
        with _warnings_printed():
            status = cli.main(args=arguments, prog_name="shuffledp", standalone_mode=False)
        sys.stdout.flush()  # a full disk behind `> file` must not go unnoticed
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            return FAILED
        return _unprinted(UNREAD) if leaving.code == 1 else TERMINATED  # 1: click, closed pipe
    except (click.ClickException, errors.ShuffledpError, OSError) as error:
        return _failed(error)
    finally:
        signal.signal(signal.SIGTERM, previous)
    return int(status or 0)


def _failed(error: Exception) -> int:
    """Print the error on one line of stderr, and return the exit code."""
    message = str(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(message)
        return 0
    if isinstance(error, OSError) and not isinstance(error, errors.ShuffledpError):
        _abandon_stdout()
        if isinstance(error, BrokenPipeError) or console.published:
            return _unprinted(UNREAD)
        message = f"{error.filename or 'cannot write output'}: {error.strerror or error}"
    elif isinstance(error, click.ClickException):
        message = error.format_message()
    if isinstance(error, click.UsageError):
        where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
        message = message.rstrip(".") + where
    say("error", message)
    return REFUSED


def _unprinted(status: int) -> int:
    """Return the exit code after failed output: 0 if the results themselves are complete."""
    if console.published:
        say("warning", f"the results in {console.published[-1]} are complete, but not printed")
    return 0 if console.published else status


@contextmanager
def _warnings_printed() -> Iterator[None]:
    """Print warnings of `_PRINTED` on one line of stderr, without the place in the code."""
    with warnings.catch_warnings():
        for each in _PRINTED:
            warnings.simplefilter("default", each)
        warnings.simplefilter("ignore", errors.PlanWarning)  # shown among the result's warnings
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, _PRINTED):
                say("warning", str(message))
            else:
                shown(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _say_compiling() -> None:
    """Explain in a terminal why the first call takes longer."""
    if sys.stderr.isatty():
        click.echo("compiling, once: this takes some seconds", err=True)


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing unwritable output again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Leave through all clean-up code, as Ctrl-C does."""
    sys.exit(TERMINATED)
