"""Connection settings of a client: address, key, timeout, trusted certificates."""

import ssl
from pathlib import Path
from typing import Any

import httpx

from segdec import __version__
from segdec.errors import ConfigError


def connection_options(
    url: str, api_key: str | None, timeout_s: float, verify: bool | Path
) -> dict[str, Any]:
    """Checks the arguments of `segdec.client.Client` and returns those of `httpx.Client`.

    Raises:
        ConfigError: If the address, the key or the certificate file is invalid.
    """
    headers = {"User-Agent": f"segdec/{__version__}"}
    if api_key is not None:
        if not api_key or not all("!" <= character <= "~" for character in api_key):
            raise ConfigError(
                "The API key is empty or has spaces or non-ASCII characters. Expected one word of ASCII."
            )
        headers["Authorization"] = f"Bearer {api_key}"
    trusted = _trust(verify) if isinstance(verify, Path) else verify
    return {"base_url": _address(url), "headers": headers, "timeout": timeout_s, "verify": trusted}


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"'{url}' is not a URL ({error}). Expected one like http://host:8000.") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise ConfigError(f"'{url}' is not the URL of a service. Expected one like http://host:8000.")
    return address


def _trust(file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # a broken certificate is an OSError too
        raise ConfigError(
            f"{file} cannot be read as a certificate ({error.strerror or error}). Expected a PEM file."
        ) from error
