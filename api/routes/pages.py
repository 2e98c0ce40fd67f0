"""The pages at `/` and `/line` and the API pages at `/docs`: whole from this host, without internet."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from api.settings import Settings

STATIC = Path(__file__).parents[1] / "static"

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
"""What a page may load: its own files, and pictures that it made itself."""

HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Asked again each time, answered 304: after an update no page runs with the scripts of the last one.
    "Cache-Control": "no-cache",
}


class PageFiles(StaticFiles):
    """A folder, served with the headers of the pages."""

    def file_response(self, *args: Any, **words: Any) -> Response:
        """Returns the response for one file."""
        response = super().file_response(*args, **words)
        response.headers.update(HEADERS)
        return response


def add_pages(app: FastAPI, settings: Settings) -> None:
    """Serves the API pages at `/docs` and, if the settings say so, the page at `/` with its files.

    Where a record is kept, there is the one at `/line` too. None of it needs an API key: pages ask for one if
    the service does.
    """
    swagger = Path(str(files("fastapi_offline"))) / "static"
    routes = [_page("/docs", "docs"), _folder("/docs/swagger", swagger), _folder("/docs", STATIC / "docs")]
    if settings.page:
        if settings.record != "off":
            routes += [_page("/line", "line"), _folder("/static/line", STATIC / "line")]
        routes += [_page("/", "page"), _folder("/static", STATIC / "page")]
    app.router.routes.extend(routes)


def _page(path: str, name: str) -> Route:
    async def respond(request: Request) -> Response:  # noqa: ARG001
        return FileResponse(STATIC / name / "index.html", headers=HEADERS)

    return Route(path, respond, include_in_schema=False)


def _folder(path: str, folder: Path) -> Mount:
    return Mount(path, PageFiles(directory=folder))
