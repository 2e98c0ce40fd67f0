"""A data set for tests of the tables; its photographs were never sent to a service."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import Engine

from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.class_masks import make_class_mask
from api.data_sets.new_file import NewFile
from api.data_sets.photographs import AddedPhotograph, NewPhotograph, add_photograph
from api.data_sets.tables import data_set_files
from api.data_sets.versions import create_version, take_snapshot
from api.record.storage.pictures import PictureStore
from api.record.stored_files import store_with_rows
from segdec.annotation_content import AnnotationContent
from segdec.images import encode_png

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEIGHT, WIDTH = 32, 48
CLASSES = ["scratch", "dent"]
EVERY_FIELD = AnnotationContent(label="scratch", is_boxes=True)
"""Each field differs from its default; tests of all that stores or sends annotations compare them."""


def photograph_file(number: int) -> NewFile:
    """Returns a photograph of noise."""
    pixels = np.random.default_rng(number).integers(0, 256, (HEIGHT, WIDTH, 1), np.uint8)
    return NewFile(encode_png(pixels), "png", WIDTH, HEIGHT)


def mask_of(*boxes: tuple[int, int, int]) -> np.ndarray:
    """Returns a mask with squares of 4 px: (value, top, left) each."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    for value, top, left in boxes:
        mask[top : top + 4, left : left + 4] = value
    return mask


@dataclass(frozen=True)
class FilledDataSet:
    """The data set `id` with its database and its files."""

    engine: Engine
    stored: PictureStore
    id: int

    def add(self, number: int, **facts: str) -> AddedPhotograph:
        """Adds a photograph; its name is its number."""
        new = NewPhotograph(photograph_file(number), **{"name": str(number), **facts})
        return self.write(add_photograph, new, "Ada", NOW, files=[new.file])

    def annotate(
        self, photograph_id, label, mask=None, based_on=None, author="Ada", session=None, user=None, **content
    ):
        """Adds an annotation; returns its id."""
        file = None if mask is None else make_class_mask(mask, label, CLASSES)
        content = AnnotationContent(label=label, **content)
        new = NewAnnotation(content, file and file.sha256, "drawn", author, NOW)
        files = [] if file is None else [file]
        return self.write(annotate, photograph_id, new, based_on, session, user, files=files)

    def make_version(self, note=""):
        """Makes a version; returns its number."""
        snapshot = self.read(take_snapshot)
        return self.write(create_version, snapshot, note, "Ada", NOW, files=[snapshot.manifest])

    def write(self, change, *args, files=()):
        """Makes a change of this data set."""
        return store_with_rows(
            self.engine,
            self.stored,
            files,
            data_set_files,
            lambda connection: change(connection, self.id, *args),
        )

    def read(self, query, *args):
        """Runs a query about this data set."""
        with self.engine.connect() as connection:
            return query(connection, self.id, *args)
