"""How much data sets may still write to the disk of the record."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from api.errors import RequestError
from api.record.storage.pictures import FREE_SHARE_FACTOR, Space


@dataclass(frozen=True)
class FreeSpace:
    """The space of a disk, without the part that data sets leave free.

    `share` is the setting `record_free_share`, 0…1.
    """

    disk: Space
    share: float

    @classmethod
    def measure(cls, folder: Path, share: float) -> "FreeSpace":
        """Measures the disk of a folder."""
        usage = shutil.disk_usage(folder)
        return cls(Space(usage.total, usage.free), share)

    @property
    def usable(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.disk.free - self.disk.reserve(self.share))

    def check(self, needed: int, what: str) -> None:
        """Raises a RequestError, 507, if fewer bytes may still be written; `what` needs them: `archive`."""
        if needed > self.usable:
            raise no_space(what, f"{needed / 1e9:.3f} GB are needed. {self}")

    @property
    def free_gb(self) -> float:
        """Free space, in gigabytes with one decimal."""
        return round(self.disk.free / 1e9, 1)

    @property
    def reserved_gb(self) -> float:
        """Space that data sets leave free, in gigabytes with one decimal."""
        return round(self.disk.reserve(self.share) / 1e9, 1)

    def __str__(self) -> str:
        """A sentence for the user."""
        share = f"{100 * FREE_SHARE_FACTOR * self.share:.3g}%"
        kept = f"{self.reserved_gb:.1f} GB, {share} of it, stay free for inspections"
        free = f"{self.free_gb:.1f} GB free"
        return f"The disk of the record has {free}; {kept} (half of record_free_share)."


def no_space(what: str, why: str) -> RequestError:
    """Returns the error for an archive or for photographs that the disk has no space for."""
    detail = f"The {what} cannot be stored. {why} Free space, or send fewer photographs at once."
    return RequestError(507, "no_space", detail, {"Connection": "close"})
