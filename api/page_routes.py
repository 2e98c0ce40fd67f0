"""The pages for people, and the API pages at `/docs`; they work without internet."""

from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from api.http.page_list import (
    API,
    GROUPS,
    INSPECTION,
    LABEL,
    MODELS,
    NOT_FOUND,
    PART,
    RECORD_PAGES,
    PageEntry,
)
from api.messages import catalogues
from api.roles import RANKS, Role
from api.service import Service
from api.settings import Settings
from segdec.encoders import COMPARED

STATIC = Path(__file__).parent / "static"

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'self'; "
    "form-action 'none'; frame-ancestors 'self'"
)
"""What a page may load: files of this host, and images that its scripts make."""

HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    # Revalidated each time (304): after an update no page uses the scripts of the last version.
    "Cache-Control": "no-cache",
}

HEADER, BODY = "<!-- header -->\n", "<!-- body -->\n"
"""What begins a page's additions to the header and its body; before them are its additions to the head."""

ZONE = "<!-- zone -->"
"""Placeholder for the time zone of the plant."""

ZONE_AND_ACCOUNT = (
    f'<span id="zone" data-zone="{ZONE}" title="Time zone of the plant">'
    f'<span>Times:</span> <span translate="no">{ZONE}</span></span>'
    '<span id="account"></span><script type="module" src="static/shared/account.js"></script>'
)
"""The zone of all times on the page, and who is logged in; beside the links if a record is kept."""


PAGES, LINK_TO_PAGES = "<!-- pages -->", '<p><a href="./">Pages of the service</a></p>'
"""Placeholder on the API pages for the link to the pages for people, and the link."""

ENCODERS = "<!-- encoders -->"
"""Placeholder for the encoders that a training can be given."""


class PageFiles(StaticFiles):
    """A folder, served with the headers of the pages."""

    def file_response(self, *args: Any, **words: Any) -> Response:
        response = super().file_response(*args, **words)
        response.headers.update(HEADERS)
        return response


def add_pages(app: FastAPI, settings: Settings) -> None:
    """Serves the API pages at `/docs` and, if the settings say so, the pages for people with their files.
    None of it needs an API key: a page asks the user for one.
    """
    swagger = Path(str(files("fastapi_offline"))) / "static"
    api_page = (STATIC / "docs/index.html").read_text("utf-8")
    routes = [
        _page(API, api_page.replace(PAGES, LINK_TO_PAGES if settings.page else ""), settings),
        *(_folder("/docs/swagger", swagger), _folder("/docs", STATIC / "docs")),
    ]
    if settings.page:
        if settings.record == "off":
            pages = served = [INSPECTION, MODELS]
        else:
            pages = list(RECORD_PAGES)
            served = [*pages, PART, LABEL]
        of_record = "" if settings.record == "off" else ZONE_AND_ACCOUNT
        routes += [_page(page, render(page, [*pages, API], of_record), settings) for page in served]
        app.state.not_found_page = _not_found_page(render(NOT_FOUND, [*pages, API], of_record), settings)
        folders = ["shared", "vendor", *(page.folder for page in served)]
        routes += [_folder(f"/static/{name}", STATIC / name) for name in folders]
        routes.append(_folder("/static/languages", catalogues.FOLDER))
    app.router.routes.extend(routes)


def _page(page: PageEntry, text: str, settings: Settings) -> Route:
    async def respond(request: Request) -> Response:
        return _answer(text, request, settings)

    return Route(page.path, respond, include_in_schema=False)


def _not_found_page(text: str, settings: Settings) -> Callable[[Request], Response]:
    """Returns a function that answers a request for an unknown address."""

    def respond(request: Request) -> Response:
        base = f'<base href="{"../" * (request.url.path.count("/") - 1)}">'
        answer = _answer(text.replace("<title>", f"{base}<title>", 1), request, settings)
        answer.status_code = 404
        return answer

    return respond


def _answer(text: str, request: Request, settings: Settings) -> Response:
    service: Service | None = request.app.state.service
    # The zone can be changed.
    current = settings if service is None else service.inspection.record_settings
    return HTMLResponse(text.replace(ZONE, escape(current.record_zone)), headers=HEADERS)


def render(page: PageEntry, pages: Iterable[PageEntry], of_record: str = "") -> str:
    """Returns a page in English, from `template.html`, with links to `pages` and `of_record` beside them; its
    script `language.js` translates it.
    """
    additions, _, body = (STATIC / page.folder / "index.html").read_text("utf-8").partition(BODY)
    head, _, controls = additions.partition(HEADER)
    linked = set(pages)
    groups = "".join(
        _group(name, [other for other in group if other in linked], page) for name, group in GROUPS.items()
    )
    links = groups + _language_select() + of_record
    above = "../" * (page.path.count("/") - 1)
    base = f'<base href="{above}">' if above else ""
    template = Template((STATIC / "template.html").read_text("utf-8"))
    encoders = "".join(f"<option>{name}</option>" for name in COMPARED)
    body = body.replace(ENCODERS, encoders)
    parts = {"base": base, "head": head, "controls": controls, "links": links, "body": body}
    return template.substitute(name=page.name, **parts)


def _language_select() -> str:
    options = (
        f'<option value="{escape(code)}" lang="{escape(code)}">{escape(catalogue.name)}</option>'
        for code, catalogue in catalogues.read_catalogues().items()
    )
    return f'<select id="language" aria-label="Language" translate="no">{"".join(options)}</select>'


def _group(name: str, pages: list[PageEntry], present: PageEntry) -> str:
    """Returns links to pages that belong together; users who need none of them do not see its name."""
    if not pages:
        return ""
    roles: list[Role] = [page.role or "anyone" for page in pages]
    lowest = min(roles, key=RANKS.__getitem__)
    links = "".join(_link(page, present) for page in pages)
    title = f'<span aria-hidden="true">{name}</span>'
    return f'<div role="group" aria-label="{name}"{_needs(lowest)}>{title}{links}</div>'


def _link(page: PageEntry, present: PageEntry) -> str:
    """Returns a relative link, which also works below the path prefix of a proxy."""
    current = "page" if page == present else "true" if page.path == present.parent else ""
    here = f" aria-current={current}" if current else ""
    return f'<a href=".{page.path}"{here}{_needs(page.role)}>{page.name}</a>'


def _needs(role: Role | None) -> str:
    return f" data-needs={role}" if role not in (None, "anyone") else ""


def _folder(path: str, folder: Path) -> Mount:
    return Mount(path, PageFiles(directory=folder))
