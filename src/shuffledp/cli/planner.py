"""``shuffledp planner``: ``plan`` as a page."""

from shuffledp.cli.options import cli, options, require_service
from shuffledp.cli.serve import say_url


@cli.command(epilog="Example: shuffledp planner")
@options(
    """
    --listen ADDRESS:PORT  Where the page is, on this machine.  [default: 127.0.0.1:8401]
    """
)
def planner(*, listen: str) -> None:
    """Serve a page that plans a collection as its form is filled in; prints its URL.

    It draws the expected error against epsilon, the cap on epsilon0 and the number of people, and
    ends in the file of `shuffledp plan --out`.
    """
    require_service()
    from shuffledp.deploy.web.planner import serve_planner

    serve_planner(say_url, listen=listen)
