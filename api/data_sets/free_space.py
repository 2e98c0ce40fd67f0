"""How much an import may still write to the disk of the record."""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path


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

    def __str__(self) -> str:
        """A sentence for the user."""
        kept = f"{self.share * self.total / 1e9:.1f} GB, {self.share:.0%} of it, stay free for inspections"
        return f"The disk of the record has {self.free / 1e9:.1f} GB free; {kept} (record_free_share)."
