"""A photograph, mask or manifest to be stored."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class NewContent:
    """Bytes to be stored under their digest."""

    data: bytes

    @cached_property
    def sha256(self) -> bytes:
        """Digest of the content, its name in the store."""
        return hashlib.sha256(self.data).digest()

    @property
    def bytes(self) -> int:
        """Size of the content."""
        return len(self.data)


@dataclass(frozen=True)
class NewFile(NewContent):
    """A file to be stored.

    `format` is `jpeg`, `png`, … of a photograph, `png` of a mask, `jsonl` of a manifest; `width` and `height`
    are those of the upright picture, px. `thumbnail` is a JPEG of a photograph; None: it is made when it is
    needed.
    """

    format: str
    width: int | None = None
    height: int | None = None
    thumbnail: bytes | None = None
