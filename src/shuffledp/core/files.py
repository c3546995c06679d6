"""Files that are on disk when a function returns, not on their way there."""

import os
import sys
from pathlib import Path

from shuffledp.core.errors import DataError


def sync_folder(folder: Path) -> None:
    """Force a renaming to disk, where folders can be opened for that."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_file(path: Path) -> None:
    """Raise `DataError` unless there is a file of that name."""
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        raise DataError(f"cannot read {path}: {reason}")
