"""The command line: it parses, calls and prints. Everything it does is a few lines in Python."""

import sys
from collections.abc import Sequence


def start(arguments: Sequence[str] | None = None) -> int:
    """Run the program; Ctrl-C ends it without a traceback while it is still being imported."""
    try:
        from shuffledp.cli.main import main
        from shuffledp.core import progress
    except KeyboardInterrupt:
        return 130
    progress.is_brief = (sys.argv[1:] if arguments is None else arguments)[:1] == ["account"]
    return main(arguments)
