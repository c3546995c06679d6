"""Files that appear whole or not at all."""

import os
from os import PathLike
from pathlib import Path
from uuid import uuid4

from shuffledp.core.errors import OutputError


def write_text_atomically(path: str | PathLike[str], text: str) -> Path:
    """Write a UTF-8 text file beside its place and move it there in one step.

    Parameters
    ----------
    path : str or path-like
        An existing file is replaced; whoever reads it sees the old or the new text, whole.
    text : str
        Line ends are written as they are.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OutputError
        If the folder is missing, the disk full, or the permission lacking. Nothing is left
        behind then, nor after Ctrl-C.
    """
    path = Path(path)
    part = path.with_name(f".shuffledp-{uuid4().hex}.part")
    try:
        with part.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a full disk must fail here, not after the move
        part.replace(path)
    except OSError as error:
        raise OutputError(
            f"path = {str(path)!r} cannot be written ({error.strerror or error}): "
            "choose another place, or make room"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path
