"""A change of a file beside the versions of a model that is not written yet."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from api.errors import RequestError
from segdec.errors import ArtifactError
from segdec.runtime.files import write_bytes_atomic, write_text_atomic

Entry = TypeVar("Entry")
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""Digest of a file, in hex."""


def read_if_exists(path: Path) -> bytes | None:
    """Returns the content of a file; None if it does not exist.

    Raises:
        ArtifactError: If it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be read ({error.strerror}). Expected JSON that the service may read: check its "
            "permissions."
        ) from error


def parse_versions(
    adapter: TypeAdapter[dict[str, Entry]], path: Path, content: bytes | None, expected: str
) -> dict[str, Entry]:
    """Parses version → entry from the content of the JSON file `path`; None is a missing file.

    Raises:
        ArtifactError: If it is damaged; the message ends with `expected`.
    """
    if content is None:
        return {}
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        raise damaged_file(path, error, expected) from error


def damaged_file(path: Path, error: ValidationError, expected: str) -> ArtifactError:
    """Returns the error for a file whose content is not valid; the message ends with `expected`."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return ArtifactError(f"{path} cannot be read ({place}{': ' if place else ''}{first['msg']}). {expected}")


@dataclass(frozen=True)
class FileUpdate(ABC):
    """A change of a file that is not written yet; `content` is that of the old file, None if there was none.

    Attributes:
        kind: What the file has, `aliases` or `thresholds`.
    """

    kind: ClassVar[str]
    path: Path
    content: bytes | None

    @property
    @abstractmethod
    def text(self) -> str:
        """The new content."""

    @property
    @abstractmethod
    def states(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The values before and after the change, for the audit log."""

    @property
    @abstractmethod
    def required(self) -> set[str]:
        """The aliases whose versions must be usable after the change."""

    def check_writable(self) -> None:
        """Raises a RequestError, 409, if the folder is read-only: early, before a model is loaded."""
        if not os.access(self.path.parent, os.W_OK):
            raise self._not_writable("it is read-only")

    def write(self) -> None:
        """Writes the new content.

        Raises:
            RequestError: 409 if it cannot be written, or the file has changed meanwhile.
        """
        if read_if_exists(self.path) != self.content:
            raise RequestError(
                409,
                f"{self.kind}_changed",
                f"{self.path} changed meanwhile. Check it and send the request again.",
            )
        try:
            write_text_atomic(self.path, self.text)
        except OSError as error:
            raise self._not_writable(str(error.strerror)) from error

    def undo(self) -> None:
        """Restores the content before `write`.

        Raises:
            OSError: If it cannot be written.
        """
        if self.content is None:
            self.path.unlink(missing_ok=True)
        else:
            write_bytes_atomic(self.path, self.content)

    def _not_writable(self, why: str) -> RequestError:
        detail = (
            f"{self.path} cannot be written: {why}. Change it at the source of the folder, then reload: POST "
            "/v1/admin/models/NAME/reload."
        )
        return RequestError(409, f"{self.kind}_fixed", detail)
