"""The TLS certificate of the service."""

import ssl
from pathlib import Path
from typing import Any

from api.settings import Settings
from segdec.errors import ConfigError


def tls_options(settings: Settings) -> dict[str, Any]:
    """Returns the arguments of `uvicorn.Config` for https; none if no certificate is set.

    Raises:
        ConfigError: If only one of certificate and key is set, one cannot be read, or they do not belong
            together.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise ConfigError("https needs a certificate and its key. Pass both --tls-certificate and --tls-key.")
    load_certificate(certificate, key, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}


def load_certificate(certificate: Path, key: Path, context: ssl.SSLContext) -> None:
    """Loads PEM files of a certificate chain and its key into `context`, which must not be used after an
    error.

    Raises:
        ConfigError: If one of the files cannot be read, or they do not belong together.
    """
    for path in (certificate, key):
        _check_readable(path)
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except OSError as error:
        raise ConfigError(_explain(error, certificate, key)) from error


def _check_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}. Expected a PEM file.") from error


def _refuse_password() -> str:
    raise ConfigError(
        "The TLS key has a password. Expected a key without one: openssl pkey -in KEY -out NEW_KEY"
    )


def _explain(error: OSError, certificate: Path, key: Path) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return f"The TLS key {key} does not belong to the certificate {certificate}. Pass the pair."
    return (
        f"The TLS certificate {certificate} and key {key} are invalid ({reason or 'not PEM'}). "
        "Expected PEM files: the certificate with its chain, and its private key."
    )
