"""Files that are on disk when a function returns, not on their way there."""

import os
import sys
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Force a renaming to disk, where folders can be opened for that."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
