"""Answers only requests that name this service in their Host header."""

import re
import socket
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import MAX_INPUT, ProblemResponse
from api.http.middleware.http_middleware import HttpMiddleware
from api.http.settings import ServerSettings

ANY = "*"
PRIVATE = (".local", ".localhost", ".internal", ".home.arpa")
"""Endings that the public DNS never serves (RFC 6762, 6761, 8375, and ICANN's decision of 2024)."""
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@\[\]]*))(?::[0-9]*)?", re.ASCII)


class AllowedHostsMiddleware(HttpMiddleware):
    """Refuses requests for unknown host names, against DNS rebinding: the owner of a web site gives its name
    the address of this service, and the browser then lets the site's pages read all answers.

    The attack needs a name of the public DNS. So other hosts are accepted: addresses (health checks use those
    of containers), names without a dot or with a private ending (`host.docker.internal`), which only the
    local network knows, and a request without the header, which no browser sends.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        super().__init__(app)
        names = (socket.gethostname(), settings.host, *settings.allowed_hosts)
        self._names = frozenset(name.lower() for name in names)
        self._endings = (
            tuple(name.removeprefix(ANY) for name in self._names if name.startswith(ANY)) + PRIVATE
        )

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = Headers(scope=scope).getlist("host")
        unknown = next((host for host in hosts if not self._is_known(host)), None)
        if unknown is None:
            await self.app(scope, receive, send)
            return
        detail = (
            f"The host is {unknown[:MAX_INPUT]!r}. Expected an IP address, a name without a dot or ending "
            f"in {', '.join(PRIVATE)}, or one that the service was started with: --allowed-hosts NAME."
        )
        response = ProblemResponse(scope["state"]["request_id"], 400, "unknown_host", detail)
        await response(scope, receive, send)

    def _is_known(self, host: str) -> bool:
        match = HOST.fullmatch(host.lower())
        if match is None:
            return False
        name = match[1] or match[2].removesuffix(".")
        if match[2] is not None and "." not in name:
            return True
        return name in self._names or name.endswith(self._endings) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
