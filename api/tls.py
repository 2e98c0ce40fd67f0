"""The certificate for https."""

import ssl
from pathlib import Path
from typing import Any

from api.settings import Settings
from segdec.errors import ConfigError


def tls_arguments(settings: Settings) -> dict[str, Any]:
    """What `uvicorn.Config` needs to serve https; nothing when no certificate is set.

    Raises:
        ConfigError: If only one of certificate and key is set, one cannot be read, or they do not belong
            together.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise ConfigError("https needs a certificate and its key. Pass both --tls-certificate and --tls-key.")
    for path in (certificate, key):
        _check_readable(path)
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        raise ConfigError(_explain(error, certificate, key)) from error
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}


def _check_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}. Expected a PEM file.") from error


def _refuse_password() -> str:
    raise ConfigError(
        "The TLS key asks for a password. Expected one without: openssl pkey -in KEY -out NEW_KEY"
    )


def _explain(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"The TLS key {key} does not belong to the certificate {certificate}. Pass the pair."
    return (
        f"The TLS certificate {certificate} and key {key} cannot be used ({error.reason or 'no PEM'}). "
        "Expected PEM files: the certificate with its chain, and its private key."
    )
