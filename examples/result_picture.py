"""Draws test photographs with their true and predicted masks.

    python -m datasets toy data/metal --surface metal --size 256 --count 200
    python -m training fit data/metal --minutes 5 --name metal
    python -m examples.result_picture docs/result.jpg models/metal data/metal models/wood data/wood

The photographs are selected automatically, the same number of each set: defective ones at equal distances in
the order of defect size, then the first good one.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import Sample
from segdec.errors import DatasetError
from segdec.images import resize_mask
from segdec.imaging.overlay import BAR, TEXT, draw_overlay, write_text
from segdec.inference.postprocessing import Prediction
from segdec.predictor import Predictor
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_bytes_atomic

Picture = NDArray[np.uint8]
"""uint8 [H, W, 3], RGB."""

COLUMNS = 6
SIDE_PX = 384
GAP_PX = 8
CHARACTER_PX = 32
"""Height of a capital character."""

JPEG_QUALITY = 80


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the picture as JPEG."""
    parser = argparse.ArgumentParser(description="Draws photographs, true masks and predicted masks.")
    parser.add_argument("out", type=Path, help="output, a .jpg file")
    text = "exported models and toy sets"
    parser.add_argument("sets", type=Path, nargs="+", metavar="MODEL DATA", help=text)
    options = parser.parse_args(arguments)
    models, folders = options.sets[::2], options.sets[1::2]
    if len(models) != len(folders):
        parser.error(f"{options.sets[-1]} has no data set. Expected MODEL DATA [MODEL DATA …].")
    with clean_exit():
        samples, predictions = [], []
        for model, folder in zip(models, folders, strict=True):
            test = [read(item) for item in load_dataset("toy", folder).of_split("test")]
            samples += (chosen := choose(test, COLUMNS // len(models) - 1))
            predictions += Predictor.load(model).predict([sample.image for sample in chosen])
        picture = draw(samples, predictions)
        jpeg = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1]
        write_bytes_atomic(options.out, jpeg.tobytes())


def choose(samples: Sequence[Sample], number: int) -> list[Sample]:
    """Selects `number` defective samples by size, and a good one.

    Raises:
        DatasetError: If there are too few.
    """
    good = [sample for sample in samples if sample.label == 0]
    defective = sorted((sample for sample in samples if sample.label), key=_defect_px)
    if not good or len(defective) < number:
        raise DatasetError(
            f"{len(good)} good and {len(defective)} defective photographs in the split 'test'. Expected one "
            f"and {number}. Write a larger set with `python -m datasets toy`."
        )
    places = [(2 * n + 1) * len(defective) // (2 * number) for n in range(number)]
    return [*(defective[place] for place in places), good[0]]


def draw(samples: Sequence[Sample], predictions: Sequence[Prediction]) -> Picture:
    """Draws a column for each photograph: photograph, true mask, predicted mask, label and score."""
    images = [_enlarge(sample.image) for sample in samples]
    truths, masks = [_square(sample.mask) for sample in samples], [_square(one.mask) for one in predictions]
    rows = {
        "photograph": [draw_overlay(image, None) for image in images],
        "true mask": [
            draw_overlay(image, None, truth=mask) for image, mask in zip(images, truths, strict=True)
        ],
        "predicted mask, label and score": list(map(draw_overlay, images, masks)),
    }
    verdicts = [_write(f"{answer.label} {answer.score:.2f}", SIDE_PX) for answer in predictions]
    lines = {title: _line_up(row) for title, row in rows.items()}
    titled = [part for title, line in lines.items() for part in (_write(title, line.shape[1]), line)]
    return np.vstack([*titled, _line_up(verdicts)])


def _defect_px(sample: Sample) -> int:
    return 0 if sample.mask is None else int(np.count_nonzero(sample.mask))


def _square(mask: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    return None if mask is None else resize_mask(mask, SIDE_PX, SIDE_PX)


def _enlarge(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A square of `SIDE_PX`, uint8 [S, S, C]."""
    enlarged = cv2.resize(image, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC)
    return np.asarray(enlarged, np.uint8).reshape(SIDE_PX, SIDE_PX, -1)


def _line_up(parts: Sequence[Picture]) -> Picture:
    gap = np.full((parts[0].shape[0], GAP_PX, 3), BAR, np.uint8)
    return np.hstack([piece for part in parts for piece in (gap, part)][1:])


def _write(text: str, width: int) -> Picture:
    """Returns a bar with large text: pages show the picture at half its size."""
    bar = np.full((2 * CHARACTER_PX, width, 3), BAR, np.uint8)
    write_text(bar, text, (CHARACTER_PX // 2, 3 * CHARACTER_PX // 2), CHARACTER_PX, TEXT)
    return bar


if __name__ == "__main__":
    main()
