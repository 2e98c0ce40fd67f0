"""The client of a service that the command line uses, and its API key."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from segdec.errors import ConfigError, ServiceError

if TYPE_CHECKING:
    from segdec.client import Client

KEY_VARIABLE = "SEGDEC_API_KEY"
UNAUTHORIZED = 401


@contextmanager
def explain_key_errors(url: str, file: Path | None, key: str | None) -> Iterator[None]:
    """Within the block, an error 401 of the service becomes a message about the command line's options."""
    try:
        yield
    except ServiceError as error:
        if error.status != UNAUTHORIZED:
            raise
        detail = f"{url} requires an API key. Pass it with --api-key-file FILE."
        if key is not None:
            source = file or f"${KEY_VARIABLE}"
            detail = f"{url} rejects the key in {source}. Check it, or ask the operator of the service."
        raise ServiceError(
            detail, code=error.code, status=error.status, request_id=error.request_id
        ) from error


@contextmanager
def open_client(url: str, key_file: Path | None) -> Iterator["Client"]:
    """Opens the client of a service with the key in `key_file`, else in the environment; errors as
    `read_key`.
    """
    from segdec.client import Client

    key = read_key(key_file)
    with explain_key_errors(url, key_file, key), Client(url, api_key=key) as client:
        yield client


def read_key(file: Path | None) -> str | None:
    """Returns the API key in `file`, else in the environment, else None; raises `ConfigError`."""
    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(
            f"--api-key-file {file} cannot be read: {reason}. Expected a file with only the key."
        ) from error
