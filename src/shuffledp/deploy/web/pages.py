"""Shared parts of the pages: templates, files of the package, and strict headers.

A page loads only files of this package from its own server: no code in the page, no cookie, no
third party. It may connect to the servers of its tasks alone.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

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
