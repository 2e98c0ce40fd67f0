"""Finds further pictures in an image file: pages, animations, and the pictures of an MPO file.

Cameras and scanners add smaller copies of the picture, depth maps and gain maps; these do not count.

Reference:
    CIPA DC-007, Multi-Picture Format, section 5.2.3.3 (types of pictures).
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from segdec.imaging import jpeg_scans
from segdec.imaging.tiff_directory import REDUCED, REDUCED_OR_MASK, Tag, directories, entries

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Size = tuple[int, int]

MAX_PICTURES = 100
"""Pictures of an MPO file whose sizes are read."""

MAX_ENTRIES = 100
"""Entries of a directory that are read. They are in the order of their tags, the size among the first."""

THUMBNAIL = "Large Thumbnail"
"""Start of Pillow's names of the types of thumbnails in MPO files."""

_INDEX_START = re.compile(rb"\xff\xe2..MPF\0", re.DOTALL)
"""Start of the segment with the index of an MPO file; offsets of pictures count from its end."""


def has_further_pictures(picture: "Picture", data: bytes) -> bool:
    """Returns whether the file `data` has another picture than the first one, whose header is `picture`.

    Thumbnails, masks of transparency and pictures of at most half the width and height do not count. An
    animated PNG is recognised by its chunks (`segdec.imaging.png_chunks`).
    """
    if picture.format == "TIFF":
        sizes = _sizes_of_pages(data)
        first = next(sizes, (0, 0))
    elif picture.format == "MPO":
        first, sizes = picture.size, _sizes_in_mpo(picture, data)
    else:
        return bool(getattr(picture, "is_animated", False))
    return any(not _is_smaller_copy(size, first) for size in sizes)


def _is_smaller_copy(size: Size, first: Size) -> bool:
    return all(2 * side <= whole + 1 for side, whole in zip(size, first, strict=True))


def _sizes_of_pages(data: bytes) -> Iterator[Size]:
    """Width and height of the pages of a TIFF file; (0, 0) for a smaller copy or a mask."""
    for start in directories(data):
        values = {entry.tag: entry.value for entry in islice(entries(data, start), MAX_ENTRIES)}
        is_reduced = values.get(Tag.NEW_SUBFILE_TYPE, 0) & REDUCED_OR_MASK
        is_reduced = is_reduced or values.get(Tag.SUBFILE_TYPE, 0) == REDUCED
        yield (0, 0) if is_reduced else (values.get(Tag.WIDTH, 0), values.get(Tag.HEIGHT, 0))


def _sizes_in_mpo(picture: "Picture", data: bytes) -> Iterator[Size]:
    """Width and height of the further pictures of an MPO file; those that cannot be read are left out."""
    index = _INDEX_START.search(data)
    for entry in picture.mpinfo[0xB002][1:MAX_PICTURES]:  # type: ignore[attr-defined]
        if index is None or entry["Attribute"]["MPType"].startswith(THUMBNAIL):
            continue
        start = index.end() + entry["DataOffset"]
        if size := jpeg_scans.read_size(data[start : start + entry["Size"]]):
            yield size
