"""Report of a diverged step: the error, and the images of the step as PNG files."""

from pathlib import Path

import cv2
import numpy as np

from segdec.errors import RunError
from segdec.images import write_png
from training.data.array_cache import Arrays
from training.data.input_pipeline import InputPipeline
from training.run.meter import NonFiniteError


def write_nan_report(
    error: NonFiniteError, pipeline: InputPipeline, stage_index: int, folder: Path, *, writes: bool
) -> RunError:
    """Returns the error with the images of its step, and writes these to `folder` if this process writes."""
    names, batch = pipeline.global_batch(stage_index, error.step)
    place = f"the network inputs are in '{folder}'"
    try:
        if writes:
            write_batch(folder, names, batch)
    except OSError as failure:
        place = f"writing the network inputs to '{folder}' failed: {failure.strerror}"
    return RunError(f"{error} The batch held the images {', '.join(names)}; {place}.")


def write_batch(folder: Path, names: list[str], batch: Arrays) -> None:
    """Writes `image` [B, h, w, C], 0…255, and `target` [B, h/s, w/s, M], 0…1, of a batch as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for row, name in enumerate(names):
        image, target = batch["image"][row], batch["target"][row].max(axis=-1)
        stem = f"{row:03d}_{name.replace('/', '_')}"
        write_png(folder / f"{stem}.png", np.rint(np.nan_to_num(image)).clip(0, 255).astype(np.uint8))
        size = image.shape[1], image.shape[0]
        cells = cv2.resize(target, size, interpolation=cv2.INTER_NEAREST)
        write_png(folder / f"{stem}_target.png", np.rint(255 * cells).astype(np.uint8))
