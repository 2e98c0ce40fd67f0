"""Masks that reviewers corrected: parsed, and read with numbers of classes."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from api.http.json_files import decode_base64
from api.http.mask_encoding import replace_pixels
from api.record.inspection import Row
from segdec.config import GOOD
from segdec.images import decode_mask_values
from segdec.mask_decoding import unpack_mask
from segdec.runtime.identifiers import REVIEW, UNSURE
from segdec.schemas import MaskAnswer

NAME = "The mask"
DEFECT_VALUE = 255
MAX_MASK_CHARACTERS = 2**20
"""Length of the run lengths as JSON: hand-drawn masks need some thousand characters, noise one per pixel."""


def parse_corrected_mask(sent: str, row: Row, label: str) -> str:
    """Returns a mask by a reviewer (a PNG in base64) as JSON in the form of the predicted one. This is slow.

    Raises:
        RequestError: 400 if it is not base64, or not a mask of this photograph.
        ImageError: If the file is damaged or has more pixels than the photograph.
    """
    predicted = MaskAnswer.model_validate_json(row["mask"])
    classes = None if predicted.labels is None else range(1, len(predicted.labels))
    pixels = _decode(sent, predicted.height, predicted.width, classes)
    _check_values(pixels, predicted)
    if label != UNSURE and (label == GOOD) == bool(pixels.any()):
        shows = "has defect pixels" if label == GOOD else "has no defect pixel"
        raise _bad_mask(f"{shows}, but the label is '{label}'. Expected mask and label to agree.")
    mask = replace_pixels(predicted, pixels).model_dump_json()
    if len(mask) > MAX_MASK_CHARACTERS:
        raise _bad_mask(
            f"takes {len(mask)} characters. Expected at most {MAX_MASK_CHARACTERS}: smooth its outlines."
        )
    return mask


def _decode(sent: str, height: int, width: int, classes: range | None) -> NDArray[np.uint8]:
    data = decode_base64(sent, NAME)
    pixels = decode_mask_values(data, NAME, max_pixels=height * width, classes=classes)
    if pixels.shape != (height, width):
        raise _bad_mask(f"is {pixels.shape[1]} × {pixels.shape[0]} px. Expected {width} × {height}.")
    return pixels


def _check_values(pixels: NDArray[np.uint8], predicted: MaskAnswer) -> None:
    if predicted.labels is None:
        wrong = pixels[(pixels != 0) & (pixels != DEFECT_VALUE)]
        expected = f"0 for good pixels and {DEFECT_VALUE} for defects"
    else:
        wrong = pixels[pixels >= len(predicted.labels)]
        expected = f"the index of each pixel's class in {', '.join(predicted.labels)}"
    if wrong.size:
        raise _bad_mask(f"has the value {wrong[0]}. Expected {expected}.")


def number_classes(row: Row, numbers: Mapping[str, int]) -> NDArray[np.uint8] | None:
    """Returns the mask by a reviewer, uint8 [H, W], with the number of each defect pixel's class.

    None if the reviewer drew no mask, or there is no defect. Pixels whose class has no number get that of
    the reviewed label.
    """
    if row["reviewed_mask"] is None or row["reviewed_label"] == GOOD:
        return None
    mask = MaskAnswer.model_validate_json(row["reviewed_mask"])
    pixels = unpack_mask(mask)
    if not pixels.any():
        return None
    own = numbers[row["reviewed_label"]]
    values = np.full(256, own, np.uint8)
    values[0] = 0
    for value, name in enumerate(mask.labels or ()):
        values[value] = numbers.get(name, own) if value else 0
    return values[pixels]


def may_be_tolerated(row: Row) -> bool:
    """Returns whether a part that a reviewer calls good may show a defect that its inspection plan allows.

    Such a photograph is no example of a good surface.
    """
    was_found = row["model_label"] not in (None, GOOD)
    return was_found and row["label"] in (GOOD, REVIEW) and row["reviewed_label"] == GOOD


def _bad_mask(what: str) -> RequestError:
    return RequestError(400, "bad_mask", f"{NAME} {what}")
