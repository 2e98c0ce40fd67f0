"""`python -m api health`: asks the service of this machine whether it is ready, as it was set to listen.

For the image's HEALTHCHECK and for probes that run a command. It runs every few seconds, so it reads the
three settings that it needs by itself, without the packages that `api.settings` imports.
"""

import argparse
import http.client
import json
import os
import ssl
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

TIMEOUT_S = 4.0
UNHEALTHY = 1
"""The only exit code but 0 that Docker knows."""
SELF = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Addresses that stand for all of a machine, and where it then answers itself."""

Address = tuple[bool, str, int]
"""Whether it is https, host, port."""


def print_health(words: Sequence[str]) -> int:
    """Asks, and says in one line what is wrong; for the command line.

    Args:
        words: Flags: `--live` asks `/livez` instead of `/readyz`; `--host`, `--port` and `--tls-certificate`
            are the service's, and win over those of the container's first process and the environment.

    Returns:
        The exit code: 0 if the service is healthy, else 1. `--help` lists the flags.
    """
    if "--help" in words or "-h" in words:
        _parser().print_help()
        return 0
    path = "/livez" if "--live" in words else "/readyz"
    flags = [word for word in words if word != "--live"]
    try:
        _refuse_unknown(flags)
        address = address_of([*flags_of_service(Path("/proc/1/cmdline")), *flags])
        reason = ask(address, path)
    except ValueError as error:
        reason = str(error)
    if reason:
        print(f"unhealthy: {' '.join(reason.split())}")
    return UNHEALTHY if reason else 0


def address_of(flags: Sequence[str]) -> Address:
    """Returns where the service listens by its flags, else by the environment, else by default.

    Raises:
        ValueError: If a value cannot be used.
    """
    found, _ = _parser().parse_known_args(flags)
    if not found.port.isdecimal() or not 0 < int(found.port) < 2**16:
        raise ValueError(f"port {found.port!r}; expected the number that the service listens on, 1 to 65535.")
    return bool(found.tls_certificate), SELF.get(found.host, found.host), int(found.port)


def flags_of_service(command_line: Path) -> list[str]:
    """Returns the flags with which a container's first process was started, if it is the service.

    `docker run segdec --port 9000` adds them to its command, and to no variable.

    Args:
        command_line: That of the process, its words ended by zero bytes.
    """
    try:
        words = command_line.read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return []
    starts = [index + 2 for index, pair in enumerate(pairwise(words)) if pair == ("-m", "api")]
    flags = words[starts[0] :] if starts else []
    return flags if not flags or flags[0].startswith("-") else []  # else it is another command


def ask(address: Address, path: str) -> str:
    """Asks the service for `path`; returns what is wrong, or nothing.

    Its certificate is not verified: it names the host that others know, and this asks the machine itself.
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
        return "that is not the inspection service"


def _parser() -> "_Parser":
    variables = {name.upper(): value for name, value in os.environ.items() if value}
    parser = _Parser(
        "python -m api health",
        description="Ask the service of this machine whether it is ready: 0 if it is, else 1 and a line why.",
        epilog="Without flags it is asked as it was set: by the container's first process, or by SEGDEC_….",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--live", action="store_true", help="ask /livez in place of /readyz")
    parser.add_argument(
        "--host", default=variables.get("SEGDEC_HOST", "127.0.0.1"), help="default: %(default)s"
    )
    parser.add_argument("--port", default=variables.get("SEGDEC_PORT", "8000"), help="default: %(default)s")
    parser.add_argument(
        "--tls-certificate",
        default=variables.get("SEGDEC_TLS_CERTIFICATE"),
        metavar="FILE",
        help="that of a service with https, which is then asked by https; it is not read",
    )
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _refuse_unknown(flags: Sequence[str]) -> None:
    """Refuses flags other than the service's own three; what its first process has may be more."""
    known = ("--host", "--port", "--tls-certificate")
    for flag in flags:
        if flag.startswith("-") and flag.split("=")[0] not in known:
            raise ValueError(f"unknown flag {flag}; expected --live, {', '.join(known)}.")
