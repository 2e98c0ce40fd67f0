"""Names annotation formats that cannot be read, so that a message can say what to export instead."""

import re
from pathlib import Path
from typing import Any

TEXT_SUFFIXES = frozenset({".csv", ".manifest", ".ndjson", ".pbtxt"})
"""Types of files whose beginning is compared."""

HEAD_BYTES = 4096

_SIGNATURES: tuple[tuple[type, tuple[str, ...], str], ...] = (
    (dict, ("_via_settings",), "a VGG VIA project"),
    (dict, ("_via_img_metadata",), "a VGG VIA project"),
    (dict, ("objects", "size", "tags"), "an annotation of Supervisely"),
    (dict, ("classes", "tags", "projectType"), "the project of Supervisely"),
    (dict, ("item", "annotations"), "an annotation of V7 Darwin"),
    (dict, ("items", "categories", "info"), "a data set of Datumaro"),
    (dict, ("instances", "metadata"), "an annotation of SuperAnnotate"),
    (dict, ("label_classes", "images"), "a project of Hasty"),
    (dict, ("openlabel",), "an annotation in OpenLABEL"),
    (list, ("data_row",), "an export of Labelbox"),
    (list, ("Labeled Data",), "an export of Labelbox"),
    (list, ("annotation_id", "annotator"), "an export of Label Studio as JSON-MIN"),
    (list, ("image", "annotations"), "an annotation of CreateML"),
    (list, ("image_id", "category_id", "score"), "a list of predictions in COCO's format"),
    (str, ("region_shape_attributes",), "an export of VGG VIA"),
    (str, ("annotation_id", "annotator"), "an export of Label Studio as CSV"),
    (str, ("filename", "class", "xmin", "ymax"), "a table of boxes for TensorFlow"),
    (str, ("source-ref",), "a manifest of Amazon SageMaker or Lookout for Vision"),
    (str, ("data_row",), "an export of Labelbox"),
    (str, ("item", "name:", "id:"), "a label map of TFRecords"),
)
"""Type of the content, keys or words that it holds (for a list, its first entry), and name."""

_DOTA_ROW = re.compile(r"^(-?[\d.]+[ \t]+){8}[^\s\d.-]\S*([ \t]+\d)?\s*$", re.MULTILINE)
"""Four corners, px, and the name of the class."""


def read_head(path: Path) -> str:
    """Returns the beginning of a text; OSError if the file cannot be read."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES).decode(errors="replace")


def check_readable(path: Path, content: Any) -> None:
    """Raises ValueError with the name of the format if a file cannot be read.

    `content` is parsed JSON, or text.
    """
    known_kind = None
    if path.suffix.lower() == ".txt":
        known_kind = "an annotation of DOTA" if _DOTA_ROW.search(content[:HEAD_BYTES]) else None
    elif path.suffix.lower() in {".json", *TEXT_SUFFIXES}:
        known_kind = _by_keys(content) or _by_entries(content)
    if known_kind is not None:
        wanted = "the format 'JSON'" if "Label Studio" in known_kind else "COCO instances"
        raise ValueError(
            f"the file is {known_kind}, which cannot be read. Export {wanted} instead, or remove the file"
        )


def _by_keys(content: Any) -> str | None:
    holder = content[0] if isinstance(content, list) and content else content
    if not isinstance(holder, dict | str):
        return None
    matching = (
        name
        for kind, keys, name in _SIGNATURES
        if isinstance(content, kind) and all(key in holder for key in keys)
    )
    return next(matching, None)


def _by_entries(content: Any) -> str | None:
    """The name of a format that only differs from others by the keys of its entries."""
    if not isinstance(content, dict):
        return None
    first = next(iter(content.values()), None)
    if isinstance(first, dict) and {"filename", "regions"} <= first.keys():
        return "an export of VGG VIA"
    entries = content.get("annotations")
    entry = entries[0] if isinstance(entries, list) and entries else None
    return "COCO panoptic" if isinstance(entry, dict) and "segments_info" in entry else None
