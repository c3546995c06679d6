"""What the commands of a collection between peers share."""

from pathlib import Path

import click

from shuffledp.core.errors import MissingPackageError

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
