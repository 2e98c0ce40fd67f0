import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from api.listener import tls_handshakes
from api.listener.server import tls_options
from api.settings import Settings
from segdec.errors import ConfigError
from tests.api.live_server import served

# For tests only: self-signed for localhost, valid from 2020 to 2120; made with openssl req and openssl ca.
CERTIFICATES = Path(__file__).parents[1] / "certificates"
CERTIFICATE, KEY = CERTIFICATES / "server.pem", CERTIFICATES / "server.key"


def settings(certificate: Path | None, key: Path | None) -> Settings:
    return Settings.model_validate({"model": "unused", "tls_certificate": certificate, "tls_key": key})


@pytest.fixture
def failed_handshake(monkeypatch) -> Callable[[], dict[str, str]]:
    """Returns the fields of the warning about a failed handshake, as soon as there is one."""
    logger, warned = Mock(), threading.Event()
    logger.warning.side_effect = lambda *_, **__: warned.set()
    monkeypatch.setattr(tls_handshakes, "logger", logger)

    def wait() -> dict[str, str]:
        assert warned.wait(timeout=60)
        (call,) = logger.warning.call_args_list
        return call.kwargs["extra"]

    return wait


def test_client_without_tls_is_logged_and_counted(make_app, failed_handshake):
    """Without the log line, nobody would notice a camera that still uses http."""
    app = make_app(tls_certificate=CERTIFICATE, tls_key=KEY)
    trusting = ssl.create_default_context(cafile=CERTIFICATE)
    with served(app) as (host, port):
        with socket.create_connection((host, port), timeout=30) as wire:
            wire.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: test\r\n\r\n")
            assert failed_handshake() == {"problem": "tls_handshake", "reason": "HTTP_REQUEST"}
        lines = httpx.get(f"https://{host}:{port}/metrics", verify=trusting).text.splitlines()
    assert 'segdec_problems_total{code="tls_handshake",key="",status=""} 1.0' in lines


def test_client_that_rejects_the_certificate_is_logged(make_app, failed_handshake):
    with served(make_app(tls_certificate=CERTIFICATE, tls_key=KEY)) as (host, port):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://{host}:{port}/livez", verify=ssl.create_default_context())
        assert "UNKNOWN_CA" in failed_handshake()["reason"]


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (CERTIFICATE, None, "Pass both --tls-certificate and --tls-key"),
        (CERTIFICATES / "absent.pem", KEY, "absent.pem: No such file"),
        (CERTIFICATES, KEY, "Cannot read .*certificates: Is a directory"),
        (CERTIFICATE, CERTIFICATES / "other.key", "other.key does not belong to the certificate"),
        (CERTIFICATE, CERTIFICATES / "locked.key", "has a password"),
        (KEY, KEY, "are invalid"),
    ],
)
def test_unusable_pair_is_refused_in_one_line(certificate, key, words):
    with pytest.raises(ConfigError, match=words) as caught:
        tls_options(settings(certificate, key))
    assert "\n" not in str(caught.value)


def test_a_connection_that_is_replaced_ends_before_its_client_has_closed_tls(make_app):
    app = make_app(tls_certificate=CERTIFICATE, tls_key=KEY, max_connections=1)
    trusting = ssl.create_default_context(cafile=CERTIFICATE)
    with (
        served(app) as address,
        socket.create_connection(address, timeout=20) as wire,
        trusting.wrap_socket(wire, server_hostname="localhost") as first,
        socket.create_connection(address, timeout=20) as other,
        trusting.wrap_socket(other, server_hostname="localhost"),
    ):
        assert b" 503 " in first.recv(2**16)
        while socket.socket.recv(first, 2**16):  # without an answer to the end of TLS
            pass
