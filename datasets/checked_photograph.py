"""Photographs that have been checked."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from datasets.exif_rotation import Evidence
from datasets.sample import Dataset, DataSetItem, LazyItems


@dataclass(frozen=True)
class CheckedPhotograph:
    """A usable photograph and the result of its check.

    Attributes:
        item: The item, with shape and digests.
        height: Pixels.
        width: Pixels.
        channels: 1 (grey) or 3 (colour).
        defect_px: Number of defective mask pixels; None if the files were not read.
        digest: SHA-256 of size and pixels, equal for equal pictures in any file format; the SHA-256 of the
            file if it was not read.
        webp: Whether the file is WebP, which does not show damage; False if it was not read.
        thumbnail: From `datasets.near_duplicates.normalized_thumbnail`; None if the file was not read.
        bit_depth: Bits per channel of the file; None if it was not read.
        blank: Whether all colours of its palette are the same.
        several_pictures: Whether its file or a mask file has several pictures.
        rotation: What shows whether its annotation was drawn before its EXIF rotation.
    """

    item: DataSetItem
    height: int
    width: int
    channels: int
    defect_px: int | None
    digest: str
    webp: bool = False
    thumbnail: bytes | None = None
    bit_depth: int | None = None
    blank: bool = False
    several_pictures: bool = False
    rotation: Evidence = Evidence.NOT_NEEDED


@dataclass(frozen=True)
class CheckedDataset:
    """A data set whose broken items have become problems, and its checked photographs."""

    dataset: Dataset
    photographs: Sequence[CheckedPhotograph]


class UnreadPhotographs(Sequence[CheckedPhotograph]):
    """Packed photographs that are not read: created on access from the index of their shards."""

    def __init__(self, items: LazyItems) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> CheckedPhotograph: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CheckedPhotograph, ...]: ...

    def __getitem__(self, index: int | slice) -> CheckedPhotograph | tuple[CheckedPhotograph, ...]:
        if isinstance(index, slice):
            return tuple(map(unread, self._items[index]))
        return unread(self._items[index])

    def duplicates(self) -> list[tuple[CheckedPhotograph, ...]]:
        """Returns the result of `find_duplicates`, from the digests of the files."""
        return [tuple(self[index] for index in same) for same in self._items.equal_files()]


def unread(item: DataSetItem) -> CheckedPhotograph:
    """Returns a packed photograph that is not read; ValueError if the index has no shape or no digests."""
    if item.shape is None or not item.digests:
        raise ValueError(f"The index has no shape or no digests for {item.name}; expected both.")
    return CheckedPhotograph(item, *item.shape, defect_px=None, digest=item.digests[0])


def is_flat(photograph: CheckedPhotograph) -> bool:
    """Returns whether the photograph shows one colour and nothing else."""
    return photograph.thumbnail is not None and not photograph.blank and not photograph.thumbnail.strip(b"\0")


def find_duplicates(photographs: Sequence[CheckedPhotograph]) -> list[tuple[CheckedPhotograph, ...]]:
    """Returns one tuple for each picture that occurs more than once."""
    if isinstance(photographs, UnreadPhotographs):
        return photographs.duplicates()
    same: dict[str, list[CheckedPhotograph]] = defaultdict(list)
    for photograph in photographs:
        same[photograph.digest].append(photograph)
    return [tuple(equal) for equal in same.values() if len(equal) > 1]
