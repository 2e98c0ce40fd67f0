"""A photograph, mask or manifest to be stored."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class NewFile:
    """A file to be stored.

    `format` is `jpeg`, `png`, … of a photograph, `png` of a mask, `jsonl` of a manifest; `width` and `height`
    are those of the upright picture, px. `thumbnail` is a JPEG of a photograph; None: it is made when it is
    needed.
    """

    data: bytes
    format: str
    width: int | None = None
    height: int | None = None
    thumbnail: bytes | None = None

    @cached_property
    def sha256(self) -> bytes:
        """Digest of the content, the name of the file in the store."""
        return hashlib.sha256(self.data).digest()

    @property
    def bytes(self) -> int:
        """Size of the content."""
        return len(self.data)
