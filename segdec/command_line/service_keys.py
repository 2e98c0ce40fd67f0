"""The API key that the command line gives a service."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from segdec.errors import ConfigError, ServiceError

KEY_VARIABLE = "SEGDEC_API_KEY"
UNAUTHORIZED = 401


@contextmanager
def explain_key_errors(url: str, file: Path | None, key: str | None) -> Iterator[None]:
    """Within the block, a service that wants another key is answered in words of the command line."""
    try:
        yield
    except ServiceError as error:
        if error.status != UNAUTHORIZED:
            raise
        detail = f"{url} asks for an API key. Give it with --api-key-file FILE."
        if key is not None:
            source = file or f"${KEY_VARIABLE}"
            detail = f"{url} does not know the key in {source}. Check it, or ask whoever runs the service."
        raise ServiceError(
            detail, code=error.code, status=error.status, request_id=error.request_id
        ) from error


def read_key(file: Path | None) -> str | None:
    """Returns the API key in `file`, else in the environment, else None.

    Raises:
        ConfigError: If the file cannot be read, or holds no key.
    """
    from segdec.client.connection import is_valid_api_key

    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    key = _read_key_file(file)
    if not is_valid_api_key(key):
        raise ConfigError(
            f"--api-key-file {file} holds no usable key: it is empty, or has several words or letters beyond "
            "ASCII. Expected the key alone."
        )
    return key


def _read_key_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"--api-key-file {file} cannot be read: {reason}. Expected a file that holds the key alone."
        ) from error
