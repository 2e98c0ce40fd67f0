"""`python -m api health`: checks whether the service on this machine is ready.

For the HEALTHCHECK of the image and for probes that run a command. It runs every few seconds, so it reads the
three settings that it needs without the packages that `api.settings` imports.
"""

import argparse
import http.client
import json
import os
import re
import ssl
from collections.abc import Sequence
from typing import NoReturn

TIMEOUT_S = 4.0
UNHEALTHY = 1
"""The only exit code other than 0 that Docker accepts."""
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Address of all interfaces → address of the service on this machine."""

Address = tuple[bool, str, int]
"""Whether it is https, host, port."""


def print_health(arguments: Sequence[str]) -> int:
    """Checks the service, prints one line if it is not healthy, and returns the exit code, 0 or 1."""
    try:
        options = make_parser().parse_args(arguments)
        reason = check(address_of(options), "/livez" if options.live else "/readyz")
    except ValueError as error:
        reason = str(error)
    if reason:
        print(f"unhealthy: {' '.join(reason.split())}")
    return UNHEALTHY if reason else 0


def address_of(options: argparse.Namespace) -> Address:
    if not re.fullmatch("[0-9]{1,5}", options.port) or not 0 < int(options.port) < 2**16:
        raise ValueError(f"port {options.port!r}; expected the port of the service, 1 to 65535.")
    return bool(options.tls_certificate), LOOPBACK.get(options.host, options.host), int(options.port)


def check(address: Address, path: str) -> str:
    """Requests `path`; returns what is wrong, or an empty string.

    It does not verify the certificate, because the certificate has the public host name, and the check
    connects to the local address.
    """
    secure, host, port = address
    url = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}{path}"
    connection = _connect(address)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {getattr(error, 'strerror', None) or error or type(error).__name__}"
    finally:
        connection.close()
    return "" if answer.status == http.client.OK else f"{url} answered {answer.status}: {_detail(body)}"


def _connect(address: Address) -> http.client.HTTPConnection:
    secure, host, port = address
    if not secure:
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)


def _detail(body: bytes) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return "it is not the inspection service"


def make_parser() -> "_Parser":
    """Returns the parser of the flags, whose defaults come from the environment; errors are `ValueError`."""
    variables = {name.upper(): value for name, value in os.environ.items() if value}
    parser = _Parser(
        "python -m api health",
        description="Check whether the service on this machine is ready: exit with 0, or with 1 and a line.",
        epilog="The defaults come from the variables SEGDEC_HOST, SEGDEC_PORT and SEGDEC_TLS_CERTIFICATE.",
        allow_abbrev=False,
    )
    parser.add_argument("--live", action="store_true", help="request /livez instead of /readyz")
    parser.add_argument(
        "--host", default=variables.get("SEGDEC_HOST", "127.0.0.1"), help="default: %(default)s"
    )
    parser.add_argument("--port", default=variables.get("SEGDEC_PORT", "8000"), help="default: %(default)s")
    parser.add_argument(
        "--tls-certificate",
        default=variables.get("SEGDEC_TLS_CERTIFICATE"),
        metavar="FILE",
        help="certificate of a service with https; requests https and does not read the file",
    )
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)
