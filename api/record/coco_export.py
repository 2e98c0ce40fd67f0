"""Photographs with their masks as a ZIP file in the COCO format, streamed.

inspections.zip
├── images/17.jpeg       of inspection 17, as it was sent
└── annotations.json     categories, and a mask for each region; a review replaces the prediction
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from api.record.coco_regions import find_regions
from api.record.filters import Filters
from api.record.inspection import Row
from api.record.queries import LISTED_COLUMNS
from api.record.search import NOT_DEFECTIVE, inspection_pages
from api.record.storage.pictures import PictureStore
from api.record.tables import inspections
from api.record.zip_stream import ZipStream
from segdec.mask_decoding import unpack_mask
from segdec.runtime.identifiers import UNSURE
from segdec.schemas import MaskAnswer

ROWS = 50
"""Inspections per query, with their masks."""
MAX_PHOTOGRAPHS = 20_000
"""Photographs in a file, the newest ones: their annotations are in memory until the end."""


FACTS = ("station", "part_id", "label", "score", "reviewed_label", "reviewer")
"""Columns that an image has besides the fields of the format."""


def export_coco(engine: Engine, pictures: PictureStore, filters: Filters) -> Iterator[bytes]:
    """Yields the file in pieces; inspections whose photograph is gone are ignored.

    Raises:
        SQLAlchemyError: If the database does not answer.
        OSError: If a photograph cannot be read.
    """
    stream, annotations = ZipStream(), _Annotations()
    for row in _rows(engine, filters):
        picture = pictures.get(bytes(row["picture"])) if row["picture_state"] == "kept" else None
        if picture is None:
            continue
        stream.add(annotations.add(row), picture)
        yield stream.take()
        if len(annotations.images) == MAX_PHOTOGRAPHS:
            break
    stream.add_text("annotations.json", json.dumps(annotations.content()))
    stream.close()
    yield stream.take()


def _rows(engine: Engine, filters: Filters) -> Iterator[Row]:
    columns = [*LISTED_COLUMNS, inspections.c.mask]
    for rows in inspection_pages(engine, replace(filters, with_picture=True), columns, ROWS):
        yield from rows


class _Annotations:
    """The content of `annotations.json`."""

    def __init__(self) -> None:
        self.images: list[Mapping[str, Any]] = []
        self._regions: list[dict[str, Any]] = []
        self._categories: dict[str, int] = {}

    def add(self, row: Row) -> str:
        """Adds an inspection; returns the name of its photograph."""
        label, mask = row["reviewed_label"] or row["label"], _mask(row)
        name = f"images/{row['id']}.{row['picture_format']}"
        facts = {name: row[name] for name in FACTS}
        self.images.append(
            {
                "id": row["id"],
                "file_name": name,
                "width": mask.width,
                "height": mask.height,
                "date_captured": row["inspected_at"].isoformat(),
                **facts,
            }
        )
        if label not in (*NOT_DEFECTIVE, UNSURE):
            pixels, names = unpack_mask(mask), dict(enumerate(mask.labels or ()))
            if row["reviewed_mask"] is None and label != row["label"]:  # the predicted classes are wrong
                pixels, names = np.minimum(pixels, 1), {}
            self._add_regions(row["id"], label, pixels, names)
        return name

    def _add_regions(
        self, record_id: int, label: str, pixels: NDArray[np.uint8], names: Mapping[int, str]
    ) -> None:
        for value in np.unique(pixels[pixels > 0]).tolist():
            category = self._category(names.get(value, label))
            for region in find_regions(pixels == value):
                number = len(self._regions) + 1
                self._regions.append({"id": number, "image_id": record_id, "category_id": category, **region})

    def _category(self, name: str) -> int:
        return self._categories.setdefault(name, len(self._categories) + 1)

    def content(self) -> dict[str, Any]:
        categories = [{"id": number, "name": name} for name, number in self._categories.items()]
        return {"images": self.images, "annotations": self._regions, "categories": categories}


def _mask(row: Row) -> MaskAnswer:
    return MaskAnswer.model_validate_json(row["reviewed_mask"] or row["mask"])
