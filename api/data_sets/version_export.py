"""Versions of a data set as ZIP files, streamed: a folder of the layout `manifest`, or the COCO format.

version.zip
├── photographs/0a1b….png    as they were sent, each named by its SHA-256
├── masks/2c3d….png          values are classes, 255 is an ignored area; not with COCO
├── classes.txt              in the order of the values, sometimes below `good`; not with COCO
├── manifest.jsonl           not with COCO
└── annotations.json         only with COCO
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from api.data_sets.class_masks import IGNORED, NAME
from api.data_sets.names import IGNORE
from api.data_sets.versions import Entry, ExportedVersion, list_files, read_content, read_manifest
from api.errors import RequestError
from api.record.coco_regions import find_regions
from api.record.record_files import get_file
from api.record.storage.pictures import PictureStore
from api.record.zip_stream import ZipStream
from segdec.config import GOOD
from segdec.images import MAX_PIXEL_LIMIT, decode_mask_values
from segdec.runtime.class_list import format_class_list

VersionFormat = Literal["folder", "coco"]
CLASSES_FILE, MANIFEST_FILE = "classes.txt", "manifest.jsonl"


def export_version(
    version: ExportedVersion, file_format: VersionFormat, pictures: PictureStore
) -> Iterator[bytes]:
    """Yields the ZIP file in pieces.

    Raises:
        RequestError: 404 `file_lost` if a file is missing or damaged; the ZIP file is then incomplete.
        OSError: If the store does not answer.
    """
    stream, manifest = ZipStream(), _get_checked(pictures, version.digest)
    pieces = _folder if file_format == "folder" else _coco
    for _ in pieces(stream, version, manifest, pictures):
        yield stream.take()
    stream.close()
    yield stream.take()


def _folder(
    stream: ZipStream, version: ExportedVersion, manifest: bytes, pictures: PictureStore
) -> Iterator[None]:
    stream.add_text(CLASSES_FILE, format_class_list(version.classes))
    stream.add_text(MANIFEST_FILE, manifest.decode())
    written = set()
    for entry in read_manifest(manifest):
        for path, sha256 in list_files(entry):
            if path not in written:  # several photographs may have the same mask
                stream.add(path, _get_checked(pictures, sha256))
                written.add(path)
        yield


def _get_checked(pictures: PictureStore, sha256: bytes) -> bytes:
    data = get_file(pictures, sha256)
    if hashlib.sha256(data).digest() != sha256:
        raise RequestError(404, "file_lost", f"The file {sha256.hex()} is damaged. Restore it from a backup.")
    return data


# === COCO ===


def _coco(
    stream: ZipStream, version: ExportedVersion, manifest: bytes, pictures: PictureStore
) -> Iterator[None]:
    annotations = _CocoAnnotations(version)
    for entry in read_manifest(manifest):
        (path, sha256), *masks = list_files(entry)
        if not masks and entry["label"] != GOOD:
            annotations.left_out += 1
            continue
        mask = _get_checked(pictures, masks[0][1]) if masks else None
        annotations.add(entry, sha256, mask)
        stream.add(path, _get_checked(pictures, sha256))
        yield
    stream.add_text("annotations.json", json.dumps(annotations.content(), ensure_ascii=False))


class _CocoAnnotations:
    """The content of `annotations.json`.

    Ignored areas have a category of their own. Defects whose place is unknown are left out: without a region
    the photograph would be good.
    """

    def __init__(self, version: ExportedVersion) -> None:
        self.left_out = 0
        self._version = version
        self._categories = dict(enumerate(version.classes, 1))
        self._images: list[dict[str, Any]] = []
        self._regions: list[dict[str, Any]] = []

    def add(self, entry: Entry, sha256: bytes, mask: bytes | None) -> None:
        """Adds a photograph; `mask` is the file with its mask."""
        number = len(self._images) + 1
        height, width = self._version.sizes[sha256]
        facts = {"name": entry["name"], "label": entry["label"], "group": entry.get("group")}
        facts |= {"split": entry["split"]} if "split" in entry else {}
        size = {"width": width, "height": height}
        self._images.append({"id": number, "file_name": entry["image"], **size, **facts})
        if mask is not None:
            values = [*self._categories, IGNORED]
            pixels = decode_mask_values(mask, NAME, max_pixels=MAX_PIXEL_LIMIT, classes=values)
            self._add_regions(number, pixels, is_boxes=read_content(entry).is_boxes)

    def _add_regions(self, image_id: int, pixels: NDArray[np.uint8], *, is_boxes: bool) -> None:
        for value in np.unique(pixels[pixels > 0]).tolist():
            if value == IGNORED:
                self._categories.setdefault(IGNORED, IGNORE)
            for region in find_regions(pixels == value):
                if is_boxes:
                    del region["segmentation"]
                number = len(self._regions) + 1
                self._regions.append({"id": number, "image_id": image_id, "category_id": value, **region})

    def content(self) -> dict[str, Any]:
        """Returns the whole file."""
        categories = [{"id": number, "name": name} for number, name in self._categories.items()]
        description = f"{self.left_out} photographs with a class but without a mask are left out"
        return {
            "info": {"description": description},
            "images": self._images,
            "annotations": self._regions,
            "categories": categories,
        }
