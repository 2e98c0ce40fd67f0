"""Pictures in an S3-compatible object store, each named by the SHA-256 of its bytes.

The mark of a picture is an empty object, written before it; services share one mark per picture.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from api.record.storage.pictures import MARKS_FOLDER, STORE_ID
from segdec.errors import ConfigError

CONNECT_S = 3
ATTEMPT_S = 8
RETRY_S = 2
"""Seconds after which no retry starts. A request with all its attempts takes at most ten seconds. During this
time the transaction in PostgreSQL stays open.
"""
URL = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[\w!.*'()/-]*))?", re.ASCII
)
DIGEST = re.compile(r"[0-9a-f]{64}")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


class ObjectPictures:
    """Pictures as objects of a bucket; several services may share it.

    The environment configures store, region and credentials: `AWS_ENDPOINT_URL` (http is allowed),
    `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, and other variables of obstore.

    Args:
        url: s3://BUCKET/PREFIX of an existing bucket. The constructor sends no request.

    Raises:
        ConfigError: If the URL has another form, or the environment is invalid.
    """

    def __init__(self, url: str) -> None:
        self.location = url.rstrip("/")
        named = URL.fullmatch(self.location)
        if named is None:
            raise ConfigError(f"--record-pictures '{url}' cannot be used. Expected s3://BUCKET/PREFIX.")
        endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
        try:
            self._store = S3Store(
                named["bucket"],
                prefix=named["prefix"] or None,
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "connect_timeout": timedelta(seconds=CONNECT_S),
                    "timeout": timedelta(seconds=ATTEMPT_S),
                },
                retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=RETRY_S)},
            )
        except (BaseError, ValueError) as error:
            raise ConfigError(f"The store of {url} cannot be used: {_first_line(error)}.") from error

    def read_id(self) -> str | None:
        """Reads the id; a missing bucket is an error."""
        with self._request():
            stored = self._get(STORE_ID)
            if stored is None:
                next(iter(self._store.list(MARKS_FOLDER)), None)  # fails without the bucket, unlike `get`
            return None if stored is None else stored.decode("ascii", "replace").strip()

    def write_id(self, store_id: str) -> None:
        """Stores the id if no other service has stored one."""
        with self._request():
            self._store.put(STORE_ID, store_id.encode(), mode="create")

    def put(self, sha256: bytes, data: bytes) -> None:
        """Writes the mark, then the picture. An existing picture is equal and stays."""
        with self._request():
            self._store.put(_mark(sha256), b"")
            with suppress(AlreadyExistsError):
                self._store.put(_path(sha256), data, mode="create", use_multipart=False)

    def clear_marks(self, *digests: bytes) -> None:
        self._remove([_mark(sha256) for sha256 in digests])

    def marked(self) -> Iterator[bytes]:
        with self._request():
            for listed in self._store.list(MARKS_FOLDER):
                names = (entry["path"].rpartition("/")[2] for entry in listed)
                yield from (bytes.fromhex(name) for name in names if DIGEST.fullmatch(name))

    def is_empty(self) -> bool:
        with self._request():
            names = (entry["path"].rpartition("/") for listed in self._store.list() for entry in listed)
            return not any(DIGEST.fullmatch(name) and folder != MARKS_FOLDER for folder, _, name in names)

    def get(self, sha256: bytes) -> bytes | None:
        with self._request():
            return self._get(_path(sha256))

    def contains(self, sha256: bytes) -> bool:
        with self._request():
            try:
                self._store.head(_path(sha256))
            except FileNotFoundError:
                return False
            return True

    def delete(self, *digests: bytes) -> None:
        """Deletes the objects and then their marks, in one request."""
        self._remove([name(sha256) for name in (_path, _mark) for sha256 in digests])

    def space(self) -> None:
        """Returns None: the space is unlimited."""

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def _remove(self, paths: list[str]) -> None:
        if paths:
            with self._request():
                self._store.delete(paths)

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Converts errors to ConnectionError: they concern the whole store, not one picture."""
        try:
            yield
        except (BaseError, OSError) as error:
            raise ConnectionError(f"{self.location}: {_first_line(error)}") from error


def _path(sha256: bytes) -> str:
    name = sha256.hex()
    return f"{name[:2]}/{name}"


def _mark(sha256: bytes) -> str:
    return f"{MARKS_FOLDER}/{sha256.hex()}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
