"""A mask as a person has mended it: from the file that was sent to what the record keeps."""

import base64
import json

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from api.inspection.mask_encoding import replace_pixels
from api.records.inspection import Row
from api.records.review.reviews import UNSURE
from segdec.config import GOOD
from segdec.images import MASK_WHITE_LEVEL, decode_mask_values
from segdec.schemas import Answer, MaskAnswer

NAME = "The mask"
MAX_MASK_CHARACTERS = 2**20
"""Of its run lengths: masks that people draw take some thousands, noise takes as many as it has pixels."""


def parse_corrected_mask(sent: str, row: Row, label: str) -> str:
    """Returns the JSON of a mask in the form of the predicted one that is kept; slow for a large one.

    Args:
        sent: A file in base64.
        row: Of the inspection, with its predicted mask.
        label: What the person says that the photograph shows.

    Raises:
        RequestError: 400 if it is no base64, or cannot be a mask of this photograph.
        ImageError: If it is no whole picture, or has more pixels than the photograph.
    """
    size = Answer.model_validate({**json.loads(row["answer"]), "mask": None}).image
    pixels = _decode(sent, size.height, size.width)
    kept = MaskAnswer.model_validate_json(row["mask"])
    _check_values(pixels, kept)
    if label != UNSURE and (label == GOOD) == bool(pixels.any()):
        shows = "has defect pixels" if label == GOOD else "has no defect pixel"
        raise _refuse(f"{shows}, and the label is '{label}'. Expected both to say the same.")
    told = replace_pixels(kept, pixels).model_dump_json()
    if len(told) > MAX_MASK_CHARACTERS:
        raise _refuse(
            f"takes {len(told)} letters. Expected at most {MAX_MASK_CHARACTERS}: smoother outlines."
        )
    return told


def _decode(sent: str, height: int, width: int) -> NDArray[np.uint8]:
    try:
        data = base64.b64decode(sent, validate=True)
    except ValueError as error:
        raise RequestError(
            400, "bad_base64", f"{NAME} is no base64 ({error}). Encode the PNG file, without line breaks."
        ) from error
    pixels = decode_mask_values(data, NAME, max_pixels=height * width)
    if pixels.shape != (height, width):
        raise _refuse(f"is {pixels.shape[1]} × {pixels.shape[0]} px. Expected {width} × {height}.")
    return pixels


def _check_values(pixels: NDArray[np.uint8], kept: MaskAnswer) -> None:
    if kept.labels is None:
        wrong = pixels[(pixels != 0) & (pixels != MASK_WHITE_LEVEL)]
        expected = f"0 where the part is good and {MASK_WHITE_LEVEL} where there is a defect"
    else:
        wrong = pixels[pixels >= len(kept.labels)]
        expected = f"the place of each pixel's class in {', '.join(kept.labels)}, from 0 on"
    if wrong.size:
        raise _refuse(f"holds the value {wrong[0]}. Expected {expected}.")


def _refuse(what: str) -> RequestError:
    return RequestError(400, "bad_mask", f"{NAME} {what}")
