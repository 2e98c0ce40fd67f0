"""The health check of the image asks the service as it was set: https, another port, behind keys."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from api.listener.health_check import address_of, make_parser
from api.settings import Settings, read_settings
from tests.api.live_server import served

ROOT = Path(__file__).parents[3]
CERTIFICATES = Path(__file__).parents[1] / "certificates"
TLS = {"tls_certificate": CERTIFICATES / "server.pem", "tls_key": CERTIFICATES / "server.key"}


def image_check(**settings: object) -> tuple[int, str]:
    """Runs the command of the Dockerfile, with settings in the environment; returns its code and words."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    (command,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", text, flags=re.MULTILINE)
    _, *words = json.loads(command)
    return check(words, **settings)


def check(words: Sequence[str], **settings: object) -> tuple[int, str]:
    """Runs Python with `words`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEGDEC_")}
    environment |= {f"SEGDEC_{name.upper()}": str(value) for name, value in settings.items()}
    environment |= {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("tls", [{}, TLS], ids=["http", "https"])
def test_running_service_is_healthy(make_app, tmp_path, tls):
    keys = tmp_path / "keys"
    keys.write_text(f"line-1:{'0' * 64}\n")
    with served(make_app(api_keys=keys, **tls)) as (_, port):
        assert image_check(port=port, host="0.0.0.0", api_keys=keys, **tls) == (0, "")


def test_draining_service_is_unhealthy_and_says_why(make_app):
    app = make_app(**TLS)
    with served(app) as (_, port):
        app.state.service.drain()
        code, said = image_check(port=port, **TLS)
        assert code == 1
        assert re.fullmatch(r"unhealthy: https://127.0.0.1:\d+/readyz answered 503: .*stopping.*\n", said)
        assert check(["-m", "api", "health", "--live"], port=port, **TLS) == (0, "")


def test_wrong_scheme_and_closed_port_are_unhealthy(make_app):
    with served(make_app()) as (_, port):
        code, said = image_check(port=port, **TLS)
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"unhealthy: https://127.0.0.1:{port}/readyz: ")
    assert "Connection refused" in image_check(port=port)[1]


@pytest.mark.parametrize("words", [["--prot", "1"], ["--port", "0"]])
def test_wrong_flag_is_unhealthy_in_one_line(words):
    """Docker reserves 2, with which other commands of this product end."""
    code, said = check(["-m", "api", "health", *words])
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("unhealthy: ")


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({"SEGDEC_PORT": "8443", "SEGDEC_HOST": "10.0.0.5", "SEGDEC_TLS_CERTIFICATE": "/tls/a.pem"}, []),
        ({"segdec_port": "8443"}, []),
        ({"SEGDEC_PORT": "", "SEGDEC_TLS_CERTIFICATE": ""}, []),
        ({"SEGDEC_PORT": "1"}, ["--port", "2", "--tls-certificate=/tls/a.pem"]),
        ({}, ["--host", "::", "--port=9"]),
    ],
)
def test_settings_are_those_of_the_service(environment, flags, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings: Settings = read_settings(["--model", "m", *flags])
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    expected = (settings.tls_certificate is not None, host, settings.port)
    assert address_of(make_parser().parse_args(flags)) == expected


def test_check_is_light():
    """It runs every few seconds: without the packages that take most of a second to import."""
    slow = "{'pydantic', 'numpy', 'fastapi', 'segdec.images'}"
    code = f"import sys; import api.__main__, api.listener.health_check; print({slow} & {{*sys.modules}})"
    assert check(["-c", code]) == (0, "set()\n")
