import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from api.server import tls_arguments
from api.settings import Settings
from segdec.errors import ConfigError

# For tests only: self-signed for localhost, valid from 2020 to 2120; made with openssl req and openssl ca.
CERTIFICATES = Path(__file__).parent / "certificates"
CERTIFICATE, KEY = CERTIFICATES / "server.pem", CERTIFICATES / "server.key"


def settings(certificate: Path | None, key: Path | None) -> Settings:
    return Settings.model_validate({"model": "unused", "tls_certificate": certificate, "tls_key": key})


@contextmanager
def served(config: uvicorn.Config) -> Iterator[int]:
    """Serves in a thread; gives the port."""
    listening = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, *arguments: object, **words: object) -> None:
            await super().startup(*arguments, **words)
            listening.set()

    server = Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert listening.wait(timeout=30)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=30)


def test_without_a_certificate_http_is_served():
    assert tls_arguments(settings(None, None)) == {}


def test_https_is_served_with_the_certificate():
    app = FastAPI()
    app.add_api_route("/livez", lambda: "alive")
    config = uvicorn.Config(
        app, port=0, log_config=None, lifespan="off", **tls_arguments(settings(CERTIFICATE, KEY))
    )
    trusting = ssl.create_default_context(cafile=CERTIFICATE)
    with served(config) as port:
        assert httpx.get(f"https://127.0.0.1:{port}/livez", verify=trusting).json() == "alive"
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/livez")


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (CERTIFICATE, None, "Pass both --tls-certificate and --tls-key"),
        (None, KEY, "Pass both"),
        (CERTIFICATES / "absent.pem", KEY, "absent.pem: No such file"),
        (CERTIFICATE, CERTIFICATES / "absent.key", "absent.key: No such file"),
        (CERTIFICATES, KEY, "Cannot read .*certificates: Is a directory"),
        (CERTIFICATE, CERTIFICATES / "other.key", "other.key does not belong to the certificate"),
        (CERTIFICATE, CERTIFICATES / "locked.key", "asks for a password"),
        (KEY, KEY, "cannot be used"),
        (Path(__file__), KEY, "cannot be used"),
        (CERTIFICATE, Path(__file__), "cannot be used"),
    ],
)
def test_unusable_pair_is_refused_in_one_line(certificate, key, words):
    with pytest.raises(ConfigError, match=words) as caught:
        tls_arguments(settings(certificate, key))
    assert "\n" not in str(caught.value)
