"""Command line, which parses, calls and prints; a few lines of Python do the same."""

from collections.abc import Sequence


def start(arguments: Sequence[str] | None = None) -> int:
    """Run the program; Ctrl-C ends it without a traceback while it is still being imported."""
    try:
        from shuffledp.cli.main import main
    except KeyboardInterrupt:
        return 130
    return main(arguments)
