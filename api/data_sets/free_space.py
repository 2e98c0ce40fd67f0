"""How much data sets may still write to the disk of the record."""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

from api.errors import RequestError


@dataclass(frozen=True)
class FreeSpace:
    """The space of a disk, without the share that the record keeps free.

    Attributes:
        total: Bytes of the disk.
        free: Bytes of it that are free.
        share: Of the disk that stays free, 0…1: `record_free_share`.
    """

    total: int
    free: int
    share: float

    @classmethod
    def measure(cls, folder: Path, share: float) -> "FreeSpace":
        """Measures the disk of a folder."""
        usage = shutil.disk_usage(folder)
        return cls(usage.total, usage.free, share)

    @property
    def usable(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.free - math.ceil(self.share * self.total))

    def check(self, needed: int, what: str) -> None:
        """Raises a RequestError, 507, if fewer bytes may still be written; `what` needs them: `archive`."""
        if needed > self.usable:
            raise no_space(what, f"It needs {needed / 1e9:.3f} GB. {self}")

    def __str__(self) -> str:
        """A sentence for the user."""
        kept = f"{self.share * self.total / 1e9:.1f} GB, {self.share:.0%} of it, stay free for inspections"
        return f"The disk of the record has {self.free / 1e9:.1f} GB free; {kept} (record_free_share)."


def no_space(what: str, why: str) -> RequestError:
    """Returns the error for an archive or a photograph that the disk has no space for."""
    detail = f"The {what} cannot be stored. {why} Free space, or send fewer photographs at once."
    return RequestError(507, "no_space", detail, {"Connection": "close"})
