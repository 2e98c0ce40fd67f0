"""Pictures of the report: images with truth and prediction, shrunk and embedded as JPEG."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.sample import DataSetItem, Sample
from segdec.images import resize_mask
from segdec.imaging.overlay import PREDICTED, draw_overlay
from segdec.inference.postprocessing import Prediction
from training.metrics.evaluation import Parts
from training.metrics.photograph_results import PhotographResult

ReadAndPredict = Callable[[str], tuple[Sample, Prediction]]
"""Returns an image and its prediction for the name of an item."""

JPEG = (
    cv2.IMWRITE_JPEG_QUALITY,
    82,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,  # chroma subsampling would blur the outlines
)

SMALL_REGION_PX = 12
"""A region that is smaller than this on its picture gets a frame at a distance of `FRAME_PX`."""

FRAME_PX = 5
MAX_FRAMES = 8

WIDE, TALL = 3.0, 0.67
"""Aspect ratio (width / height) from which pictures are stacked, and below which all are in one row."""


@dataclass(frozen=True)
class CardPicture:
    """One picture of a card: its JPEG as a data URI, and its size in px."""

    caption: str
    source: str
    width: int
    height: int


@dataclass(frozen=True)
class Card:
    """One image of the gallery; `size` is that of the image as text, `shape` is `wide`, `tall` or `square`.

    `unmasked` is the kind of annotation (box, label) if the defect pixels are unknown; otherwise empty.
    """

    result: PhotographResult
    shape: str
    size: str
    unmasked: str
    pictures: tuple[CardPicture, ...]


def draw_card(result: PhotographResult, sample: Sample, prediction: Prediction, side_px: int) -> Card:
    """Draws a card with pictures of at most `side_px`."""
    height, width = sample.image.shape[:2]
    shape = "wide" if width > WIDE * height else "square"
    if width < TALL * height:
        shape = "tall"
    kind = {"mask": "no mask", "box": "boxes only", "label": "label only"}[sample.supervision]
    unmasked = f"{kind}, not counted for pixels" if result.pixels is None else ""
    pictures = _draw_pictures(sample, prediction, side_px)
    return Card(result, shape, f"{width} × {height} px", unmasked, pictures)


def _draw_pictures(sample: Sample, prediction: Prediction, side_px: int) -> tuple[CardPicture, ...]:
    # Shrunk before drawing, so that outlines keep their width.
    image = shrink(sample.image, side_px)
    mask = shrink_mask(prediction.mask, side_px)
    truth, area = (
        None if one is None else shrink_mask(one, side_px) for one in (sample.mask, prediction.area)
    )
    scores = np.round(np.clip(shrink(prediction.mask_scores, side_px), 0, 1) * 255).astype(np.uint8)
    marked = truth is not None and truth.any()
    truth_name = "truth (boxes)" if sample.supervision == "box" else "truth"
    pictures = [
        ("image", image),
        (truth_name, draw_overlay(image, None, truth=truth, area=area)) if marked else None,
        ("prediction", frame_small_regions(draw_overlay(image, mask, area=area), prediction)),
        ("mask scores", scores),
    ]
    return tuple(_make_picture(*picture) for picture in pictures if picture)


def _make_picture(caption: str, image: NDArray[np.uint8]) -> CardPicture:
    """A picture [H, W], [H, W, 1] or [H, W, 3] RGB as JPEG."""
    height, width = image.shape[:2]
    pixels = image[..., ::-1] if image.ndim == 3 else image
    _, data = cv2.imencode(".jpg", np.ascontiguousarray(pixels), JPEG)
    encoded = base64.b64encode(data.tobytes()).decode("ascii")
    return CardPicture(caption, f"data:image/jpeg;base64,{encoded}", width, height)


def frame_small_regions(picture: NDArray[np.uint8], prediction: Prediction) -> NDArray[np.uint8]:
    """Draws a frame around each small region on a shrunk picture [h, w, 3], up to `MAX_FRAMES` regions."""
    factor = picture.shape[0] / prediction.mask.shape[0]
    framed = np.ascontiguousarray(picture)
    for region in prediction.regions if len(prediction.regions) <= MAX_FRAMES else ():
        x, y, width, height = (round(side * factor) for side in region.bbox)
        if max(width, height) < SMALL_REGION_PX:
            corners = (x - FRAME_PX, y - FRAME_PX), (x + width + FRAME_PX, y + height + FRAME_PX)
            cv2.rectangle(framed, *corners, color=PREDICTED, thickness=1)
    return framed


def shrink(image: NDArray[Any], side_px: int) -> NDArray[Any]:
    """Shrinks [H, W] or [H, W, C] by averaging until the long side is at most `side_px`."""
    height, width = _shrunk_size(image, side_px)
    if (height, width) == image.shape[:2]:
        return image
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(small).reshape(height, width, *image.shape[2:])


def shrink_mask(mask: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    """Shrinks a mask [H, W]; a pixel with any defect stays defect, so that fine defects remain visible."""
    return resize_mask(mask, *_shrunk_size(mask, side_px))


def _shrunk_size(image: NDArray[Any], side_px: int) -> tuple[int, int]:
    height, width = image.shape[:2]
    factor = min(1.0, side_px / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def read_and_predict(parts: Parts, read: Callable[[DataSetItem], Sample]) -> ReadAndPredict:
    """Returns a function that reads one of the items and predicts it with its predictor."""
    by_name = {item.name: (predictor, item) for predictor, items in parts for item in items}

    def show(name: str) -> tuple[Sample, Prediction]:
        predictor, item = by_name[name]
        sample = read(item)
        return sample, predictor.predict([sample.image])[0]

    return show
