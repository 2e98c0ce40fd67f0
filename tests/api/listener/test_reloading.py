"""SIGHUP reloads keys and certificate; invalid files change nothing. Models: see `test_reload`."""

import logging
import shutil
import signal
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from api.accounts.keys import make_key
from api.listener.reloading import Reloader
from tests.api.conftest import PNG, ServiceClient
from tests.api.listener.test_tls import CERTIFICATES

OLD, NEW = make_key("old"), make_key("new")


def status(client: ServiceClient, key: tuple[str, str], part: bytes) -> int:
    return client.post("/v1/predict", content=part, headers={**PNG, "X-API-Key": key[0]}).status_code


def reload(client: ServiceClient) -> None:
    async def read_again() -> None:
        await Reloader(client.app, None).reload()

    client.run(read_again)


@pytest.fixture
def log_lines(caplog) -> Callable[[], list[tuple[str, str]]]:
    """Returns level and text of the log lines of reloads."""
    caplog.set_level(logging.INFO, logger="api.listener.reloading")

    def read() -> list[tuple[str, str]]:
        records = [record for record in caplog.records if record.name == "api.listener.reloading"]
        return [(record.levelname, record.getMessage()) for record in records]

    return read


# === Keys ===


@pytest.mark.parametrize("content", ["no line of a key file", None])
def test_only_valid_key_files_replace_the_keys(serve, make_app, part, tmp_path, log_lines, content):
    keys = tmp_path / "keys.txt"
    keys.write_text(OLD[1])
    with serve(make_app(api_keys=keys)) as client:
        keys.unlink() if content is None else keys.write_text(content)
        reload(client)
        assert (status(client, OLD, part), status(client, NEW, part)) == (200, 401)
        keys.write_text(NEW[1])
        reload(client)
        assert (status(client, OLD, part), status(client, NEW, part)) == (401, 200)
    (level, line), reloaded = log_lines()
    assert reloaded == ("INFO", "SIGHUP: keys reloaded")
    assert level == "ERROR"
    assert line.startswith("SIGHUP: keys unchanged: ")
    assert "keys.txt" in line


def test_review_keys_alone_are_reloaded(serve, make_app, tmp_path, log_lines):
    keys = tmp_path / "keys.txt"
    keys.write_text(OLD[1])
    with serve(make_app(review_keys=keys)) as client:
        reload(client)
    assert log_lines() == [("INFO", "SIGHUP: keys reloaded")]


# === The signal ===


def place_pair(folder: Path, certificate: str, key: str) -> None:
    shutil.copy(CERTIFICATES / f"{certificate}.pem", folder / "tls.crt")
    shutil.copy(CERTIFICATES / f"{key}.key", folder / "tls.key")


def shown(address: tuple[str, int]) -> str:
    """The name of the certificate that a new connection gets."""
    got = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(address))
    certificates = {name: (CERTIFICATES / f"{name}.pem").read_text() for name in ("server", "other")}
    (name,) = [name for name, text in certificates.items() if ssl.PEM_cert_to_DER_cert(text) == got]
    return name


@pytest.mark.slow
def test_signal_reloads_keys_and_certificate(start_stubbed, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text(OLD[1])
    place_pair(tmp_path, "server", "server")
    pair = ("--tls-certificate", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    stubbed = start_stubbed("--api-keys", str(keys), *pair)
    assert shown(stubbed.address) == "server"

    place_pair(tmp_path, "other", "server")
    stubbed.process.send_signal(signal.SIGHUP)
    stubbed.wait_for_log("SIGHUP: certificate unchanged: The TLS key ")
    assert shown(stubbed.address) == "server"

    place_pair(tmp_path, "other", "other")
    stubbed.process.send_signal(signal.SIGHUP)
    stubbed.wait_for_log("SIGHUP: certificate reloaded")
    assert shown(stubbed.address) == "other"

    stubbed.process.send_signal(signal.SIGTERM)
    assert stubbed.process.wait(timeout=60) == 0
    assert stubbed.log.read_text().count("SIGHUP: keys reloaded") == 2
