"""What the commands of a collection between peers share."""

from pathlib import Path

import click

from shuffledp.core.errors import MissingPackageError

_DIGEST_BYTES = 32

terms_argument = click.argument("terms", type=click.Path(path_type=Path))
graph_option = click.option(
    "--graph",
    type=click.Path(path_type=Path),
    required=True,
    help="File of edges: who passes reports on to whom.",
)
relay_option = click.option(
    "--relay", "url", required=True, metavar="URL", help="Where the relay is, as it printed."
)


def digest(text: str) -> bytes:
    """Return the digest that 64 hexadecimal digits spell.

    Examples
    --------
    >>> len(digest("0f" * 32))
    32
    """
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != _DIGEST_BYTES:
        raise click.BadParameter("a digest is 64 hexadecimal digits: give all of them")
    return value


def require_service() -> None:
    """Raise unless the packages of the extra ``service`` are installed."""
    try:
        import httpx
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name not in ("httpx", "starlette", "uvicorn"):
            raise
        raise MissingPackageError(
            "relays and peers need more packages: run pip install 'shuffledp[service]'",
            name=error.name,
        ) from None
    del httpx, starlette, uvicorn
