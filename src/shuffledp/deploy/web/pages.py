"""Shared parts of the pages: templates, files of the package, strict headers, and their visitors.

A page loads only files of this package from its own server: no code in the page, no cookie, no
third party. It may connect to the servers of its tasks alone. A page for the operator is for its
own machine alone, or needs a token.
"""

import hmac
import ipaddress
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers.settings import address_of
from shuffledp.report.page import templates

_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES: Final = {
    "survey.js": "static/survey.js",
    "shuffledp.js": "client/shuffledp.js",
    "shuffledp-hybrid.js": "client/shuffledp-hybrid.js",
    "console.js": "static/console.js",
    "pages.css": "static/pages.css",
    "report.css": "shuffledp.report:templates/report.css",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{}; "
    "img-src 'self' data:; connect-src 'self'{}; "
    "base-uri 'none'; form-action '{}'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}


@cache
def _templates() -> Environment:
    """Return the templates of pages and of reports; all values in them are escaped."""
    reports = templates()
    loaders = [PackageLoader("shuffledp.deploy.web"), reports.loader]
    return reports.overlay(loader=ChoiceLoader([each for each in loaders if each is not None]))


def page_of(
    template: str,
    facts: Mapping[str, object],
    *,
    servers: Iterable[str] = (),
    has_charts: bool = False,
    has_form: bool = False,
) -> Response:
    """Return a page, which may connect to its own server and to the servers of these URLs alone.

    Charts carry inline styles, which the policy then allows; inline scripts never.
    """
    html = _templates().get_template(template).render(**facts)
    origins = sorted({f" {each.scheme}://{each.netloc}" for each in map(urlsplit, servers)})
    styles, forms = " 'unsafe-inline'" * has_charts, "self" if has_form else "none"
    policy = _POLICY.format(styles, "".join(origins), forms)
    return HTMLResponse(html, headers=_HEADERS | {"content-security-policy": policy})


def pages_app(pages: Mapping[tuple[str, str], http.Endpoint]) -> Starlette:
    """Return an application of pages by method and path, and of the files that they load.

    Answers are compressed if the browser accepts that.
    """
    app = http.application({**pages, ("GET", "/static/{name}"): _static})
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    return app


def serve(app: ASGIApp, on_ready: Callable[[str], None], listen: str, path: str = "") -> None:
    """Serve pages at an address until told to end; ``on_ready`` gets the URL of the first."""
    listening = http.listen(*address_of(listen))
    on_ready(http.url_of(listening) + path)
    http.make_server(app).run([listening])


async def _static(request: Request) -> Response:
    """Return a file of the package."""
    name = request.path_params["name"]
    if name not in _FILES:
        raise HTTPException(404, f"there is no file {name!r}")
    package, _, path = _FILES[name].rpartition(":")
    data = (files(package or "shuffledp.deploy.web") / path).read_bytes()
    return Response(data, media_type=_KINDS[name.rpartition(".")[2]], headers=_HEADERS)


def language_of(request: Request, known: Iterable[str]) -> str:
    """Return the language given by ``?lang=``, or preferred by the browser: the first it names."""
    found = list(known)
    preferred = request.headers.get("accept-language", "").lower().split(",")
    wanted = [request.query_params.get("lang", ""), *(each.strip()[:2] for each in preferred)]
    return next((each for each in wanted if each in found), found[0])


# --------------------------------------------------------------------- visitors
def require_own_visitor(request: Request) -> None:
    """Raise unless a request comes from this machine.

    A page from elsewhere whose own name points to this machine is refused by that name.
    """
    client = request.client.host if request.client else ""
    if any(name.startswith(("forwarded", "x-forwarded")) for name in request.headers):
        raise HTTPException(403, "a proxy passed this on: this page needs a token there")
    asked = ""
    with suppress(ValueError):  # such as "["
        asked = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if not (_is_loopback(client) and (asked == "localhost" or _is_loopback(asked))):
        raise HTTPException(403, "this page is for its own machine alone, or needs a token")


def require_visitor(request: Request, token: str) -> None:
    """Raise for a request without the token, or without one unless it is from this machine."""
    if not token:
        require_own_visitor(request)
        return
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    try:
        given = b64decode(text).partition(b":")[2] if scheme.lower() == "basic" else b""
    except ValueError:
        given = b""
    if not hmac.compare_digest(given, token.encode()):
        challenge = {"www-authenticate": 'Basic realm="shuffledp console", charset="UTF-8"'}
        raise HTTPException(401, "this needs the console's token as the password", challenge)


def _is_loopback(host: str) -> bool:
    """Return True if an address is of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_this_machine(listen: str, reason: str, remedy: str = "") -> None:
    """Raise unless an address is of this machine alone."""
    if not _is_loopback(address_of(listen)[0]):
        raise ParameterError(
            f"listen = {listen!r} is not of this machine alone, and {reason}: {remedy}listen at "
            "127.0.0.1"
        )


def read_token(path: Path) -> str:
    """Read the token of a console from a file."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    if len(token) < 16:
        raise DataError(f"{path} has a token of {len(token)} characters: give 16 or more")
    return token
