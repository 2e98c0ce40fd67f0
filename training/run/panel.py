"""Drawing of one image beside its true mask or target and its prediction, and sheets of such pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.sample import Sample
from segdec.images import resize_mask
from segdec.imaging.overlay import TRUTH, draw_caption, draw_overlay, draw_scores
from segdec.inference.postprocessing import Prediction

Picture = NDArray[np.uint8]
"""uint8 [H, W, 3], RGB."""

SIDE_PX = 480
"""Longest side of one part: larger images are shrunk to it, small ones enlarged by an integer factor."""

MIN_WIDTH_PX = 180
"""Minimum width of a part, so that its title is readable."""

WIDE = 1.8
"""Aspect ratio (width / height) from which the parts are stacked vertically."""

SHEET_WIDTH_PX = 1600
GAP_PX = 8
MARGIN_PX = 32
"""Between the pictures of a sheet."""

BACKGROUND = 24


def draw_picture(sample: Sample, prediction: Prediction, true_label: str) -> Picture:
    """Draws image, true mask and tinted mask scores, with name, labels, score and threshold below."""
    size = _part_size(*sample.image.shape[:2])
    image = np.asarray(_resize(sample.image, size), np.uint8).reshape(*size, -1)
    truth = None if sample.mask is None else resize_mask(sample.mask, *size)
    scores = np.asarray(_resize(prediction.mask_scores, size), np.float32)
    area = None if prediction.area is None else resize_mask(prediction.area, *size)
    unknown = sample.mask is None and sample.label != 0
    parts = {
        "photograph": draw_overlay(image, None, area=area),
        "true mask: unknown" if unknown else "true mask": draw_overlay(image, None, truth=truth),
        "predicted mask": draw_scores(image, scores, resize_mask(prediction.mask, *size)),
    }
    return _arrange(parts, _caption(prediction, sample.name, true_label))


def draw_example(
    name: str,
    image: NDArray[np.uint8],
    target: NDArray[np.float32],
    weight: NDArray[np.float32],
    prediction: Prediction,
    true_label: str,
) -> Picture:
    """Draws a network input, its target, its pixel weights if they differ, and the predicted mask.

    The image [h, w, C] is augmented. The target [h/s, w/s] is the defective fraction of each mask pixel; the
    weight of its loss [h/s, w/s] is 0 everywhere if the mask is unknown.
    """
    size = _part_size(*image.shape[:2])
    shown = np.asarray(_resize(image, size), np.uint8).reshape(*size, -1)
    share, scores = (np.asarray(_resize(map_, size), np.float32) for map_ in (target, prediction.mask_scores))
    marked = (share > 0).view(np.uint8)
    parts = {
        "network input": draw_overlay(shown, None),
        "target" if weight.any() else "target: unknown": draw_scores(shown, share, marked, color=TRUTH),
    }
    if weight.min() < weight.max():
        grey = np.rint(_resize(weight, size) * (255.0 / weight.max())).astype(np.uint8)
        parts[f"weight, 0 to {weight.max():.3g}"] = draw_overlay(grey[..., None], None)
    parts["predicted mask"] = draw_scores(shown, scores, resize_mask(prediction.mask, *size))
    return _arrange(parts, _caption(prediction, name, true_label))


def _arrange(parts: Mapping[str, Picture], caption: str) -> Picture:
    """Parts with titles, side by side or, if they are wide, stacked; above the caption."""
    titled = [_add_title(title, part) for title, part in parts.items()]
    height, width = next(iter(parts.values())).shape[:2]
    picture = _stack(titled) if width > WIDE * height else _line_up(titled)
    return np.vstack([picture, draw_caption(caption, picture.shape[1])])


def join_pictures(pictures: Sequence[Picture]) -> Picture:
    """Arranges pictures on one sheet, in rows of at most `SHEET_WIDTH_PX`."""
    rows: list[list[Picture]] = [[]]
    for picture in pictures:
        used = sum(other.shape[1] + MARGIN_PX for other in rows[-1])
        if rows[-1] and used + picture.shape[1] > SHEET_WIDTH_PX:
            rows.append([])
        rows[-1].append(picture)
    return _stack([_line_up(row, MARGIN_PX) for row in rows], MARGIN_PX)


def _caption(prediction: Prediction, name: str, true_label: str) -> str:
    verdict = "right" if prediction.label == true_label else "WRONG"
    return (
        f"{name}\ntrue {true_label} -> predicted {prediction.label} ({verdict})\n"
        f"score {prediction.score:.3f}, threshold {prediction.threshold:.3f}"
    )


def _part_size(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of an image of this size in the picture."""
    longest = max(height, width)
    factor = SIDE_PX / longest if longest > SIDE_PX else max(1, SIDE_PX // 2 // longest)
    return max(1, round(height * factor)), max(1, round(width * factor))


def _resize(image: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    method = cv2.INTER_AREA if image.shape[0] > size[0] else cv2.INTER_NEAREST_EXACT
    return np.asarray(cv2.resize(image, (size[1], size[0]), interpolation=method))


def _add_title(title: str, part: Picture) -> Picture:
    width = max(part.shape[1], MIN_WIDTH_PX)
    return np.vstack([draw_caption(title, width), _pad(part, part.shape[0], width)])


def _line_up(parts: Sequence[Picture], gap_px: int = GAP_PX) -> Picture:
    height = max(part.shape[0] for part in parts)
    spaced = [_pad(part, height, part.shape[1] + gap_px * (part is not parts[-1])) for part in parts]
    return np.hstack(spaced)


def _stack(parts: Sequence[Picture], gap_px: int = GAP_PX) -> Picture:
    width = max(part.shape[1] for part in parts)
    spaced = [_pad(part, part.shape[0] + gap_px * (part is not parts[-1]), width) for part in parts]
    return np.vstack(spaced)


def _pad(part: Picture, height: int, width: int) -> Picture:
    rows, columns = height - part.shape[0], width - part.shape[1]
    return np.pad(part, ((0, rows), (0, columns), (0, 0)), constant_values=BACKGROUND)
