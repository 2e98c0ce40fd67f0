"""Writes the results of many photographs to Parquet files, from which an interrupted inspection resumes."""

import io
import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np

from segdec.command_line.inspection_loop import NOT_INSPECTED
from segdec.command_line.inspectors import InspectedFile, MaskedPhotograph
from segdec.errors import ConfigError, ImageError, MissingExtraError
from segdec.imaging.run_lengths import encode_run_lengths
from segdec.runtime.files import write_bytes_atomic

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("pyarrow", "batch") from error

ROWS_PER_FILE = 4096
MAX_FILE_AGE_S = 60.0
"""A file is written when it has this many rows or is this old. A crash loses at most one file."""

MODEL = b"segdec.model"

SCHEMA = pa.schema(
    [
        pa.field("image", pa.string(), nullable=False),
        ("label", pa.string()),
        ("score", pa.float32()),
        ("threshold", pa.float32()),
        ("regions", pa.int32()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("mask", pa.string()),
        ("integrity", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
        ("review_threshold", pa.float32()),
        ("region_labels", pa.list_(pa.string())),
        ("class_masks", pa.map_(pa.string(), pa.string())),
        ("model_label", pa.string()),
        ("severity", pa.string()),
        ("reason", pa.string()),
    ]
)
"""One row per photograph: its path, and either `error` or prediction and size.

`mask` has the `counts` of COCO run lengths, whose `size` is [height, width]; null if no pixel is defective.
`review_threshold` is null without a review range. `region_labels` (the class of each region) and
`class_masks` (the `counts` of each class) are null for a model with one mask for all classes. `model_label`,
`severity` and `reason` are null without an inspection plan."""


class ResultFolder:
    """Writes results to Parquet files; several processes may write to one folder.

    Files are written atomically. Leaving the `with` block writes the remaining rows, also after an error.
    `model` is everything that the results depend on; all files of a folder must agree. `read`: whether to
    read existing results.

    Raises:
        ConfigError: If the folder cannot be created or read, or its files come from another model.

    Attributes:
        done: Paths of the photographs that already have a row.
        not_inspected: Paths in `done` whose row has an error.
        counts: Photographs that this process added, by label; `NOT_INSPECTED` for errors.
    """

    def __init__(self, folder: Path, model: Mapping[str, Any], *, read: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        self.folder = folder
        self._schema = SCHEMA.with_metadata({MODEL: json.dumps(model, sort_keys=True).encode()})
        self._rows: list[dict[str, Any]] = []
        self._since = time.monotonic()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            parts = sorted(folder.glob("*.parquet")) if read else []
            rows = [row for part in parts for row in self._read(part)]
        except OSError as error:
            raise ConfigError(f"--results {folder} cannot be used: {error.strerror or error}.") from error
        self.done = frozenset(path for path, _ in rows)
        self.not_inspected = frozenset(path for path, reason in rows if reason is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._write()

    def add_inspected(self, file: InspectedFile) -> None:
        """Adds the row of a photograph that was inspected."""
        mask = None if file.pictures is None else file.pictures.mask
        height, width = (None, None) if mask is None else mask.shape
        self._add(
            file.label,
            image=str(file.path),
            label=file.label,
            score=file.score,
            threshold=file.threshold,
            review_threshold=file.review_threshold,
            regions=len(file.region_labels),
            region_labels=list(file.region_labels) if any(file.region_labels) else None,
            class_masks=None if file.pictures is None else _class_masks(file.pictures),
            height=height,
            width=width,
            mask=encode_run_lengths(mask) if mask is not None and mask.any() else None,
            integrity=file.integrity,
            warnings=file.warnings,
            model_label=None if file.severity is None else file.model_label,
            severity=file.severity,
            reason=file.reason or None,
        )

    def add_failure(self, path: Path, error: ImageError) -> None:
        """Adds the row of a photograph that could not be inspected, with the reason."""
        self._add(NOT_INSPECTED, image=str(path), error=str(error))

    def _add(self, kind: str, **row: Any) -> None:
        self.counts[kind] += 1
        self._rows.append(row)
        if len(self._rows) >= ROWS_PER_FILE or time.monotonic() - self._since >= MAX_FILE_AGE_S:
            self._write()

    def _write(self) -> None:
        if self._rows:
            file = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(self._rows, schema=self._schema), file)
            write_bytes_atomic(self.folder / f"part-{uuid4().hex}.parquet", file.getvalue())
        self._rows, self._since = [], time.monotonic()

    def _read(self, part: Path) -> list[tuple[str, str | None]]:
        """Reads the paths of an existing file, each with its error or None."""
        try:
            table = pq.read_table(part, columns=["image", "error"])
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise ConfigError(
                f"{part} is not a result file ({error}). Expected a folder with result files only; choose "
                "another one, or remove the file to inspect its photographs again."
            ) from error
        written = (table.schema.metadata or {}).get(MODEL, b"{}")
        if written != self._schema.metadata[MODEL]:
            raise ConfigError(
                f"{part} was written with {_describe(written)}, but this inspection uses "
                f"{_describe(self._schema.metadata[MODEL])}. Expected one model per folder; choose another."
            )
        return list(zip(*(table.column(name).to_pylist() for name in ("image", "error")), strict=True))


def _class_masks(pictures: MaskedPhotograph) -> dict[str, str] | None:
    if pictures.class_mask is None:
        return None
    parts = {name: pictures.class_mask == number for number, name in enumerate(pictures.classes) if number}
    return {name: encode_run_lengths(part.view(np.uint8)) for name, part in parts.items() if part.any()}


def _describe(model: bytes) -> str:
    return ", ".join(f"{name} {value}" for name, value in json.loads(model).items()) or "no model"
