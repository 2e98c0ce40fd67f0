"""A prediction's mask in the form that was asked for."""

import base64
from collections import defaultdict
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.images import encode_png
from segdec.postprocessing import Prediction
from segdec.run_lengths import pack_mask
from segdec.schemas import MaskAnswer, MaskForm, MaskSpace, PolygonAnswer, RunLengths


def encode_mask(prediction: Prediction, form: MaskForm, space: MaskSpace) -> MaskAnswer | None:
    """Encodes the mask [H, W] as `form`, on the photograph's pixels or the network's grid; or nothing."""
    if form == "none":
        return None
    mask, scores = select_space(prediction, space)
    height, width = mask.shape
    return MaskAnswer(
        encoding=form,
        width=width,
        height=height,
        space=space,
        threshold=prediction.mask_threshold,
        data=ENCODERS[form](mask, scores),
    )


def encode_mask_file(prediction: Prediction, form: MaskForm, space: MaskSpace) -> bytes:
    """Encodes the mask as a grey PNG file: 0 and 255, or with the form `scores` the mask scores × 255."""
    mask, scores = select_space(prediction, space)
    return encode_png(scale_scores(scores) if form == "scores" else mask)


def select_space(prediction: Prediction, space: MaskSpace) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns mask and mask scores [H, W] of the photograph's size (`input`) or the network's (`model`)."""
    if space == "input":
        return prediction.mask, prediction.mask_scores
    scores = prediction.grid_scores
    return np.where(scores >= prediction.mask_threshold, np.uint8(255), np.uint8(0)), scores


def scale_scores(scores: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Turns scores 0…1 into 0…255, rounded."""
    return np.rint(scores * 255).astype(np.uint8)


def _png(mask: NDArray[np.uint8], scores: NDArray[np.float32]) -> str:  # noqa: ARG001
    return base64.b64encode(encode_png(mask)).decode("ascii")


def _scores(mask: NDArray[np.uint8], scores: NDArray[np.float32]) -> str:  # noqa: ARG001
    return base64.b64encode(encode_png(scale_scores(scores))).decode("ascii")


def _run_lengths(mask: NDArray[np.uint8], scores: NDArray[np.float32]) -> RunLengths:  # noqa: ARG001
    return RunLengths(size=mask.shape, counts=pack_mask(mask))


def _polygons(mask: NDArray[np.uint8], scores: NDArray[np.float32]) -> list[PolygonAnswer]:  # noqa: ARG001
    return trace(mask)


def trace(mask: NDArray[np.uint8]) -> list[PolygonAnswer]:
    """Returns the contours of each connected part of a mask [H, W]."""
    contours, found = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    if found is None:
        return []
    rings = [[(int(x), int(y)) for x, y in contour[:, 0]] for contour in contours]
    holes: defaultdict[int, list[list[tuple[int, int]]]] = defaultdict(list)
    for ring, links in zip(rings, found[0], strict=True):
        holes[int(links[3])].append(ring)  # the contour around it; −1 for an outer one
    outer = [number for number, links in enumerate(found[0]) if links[3] < 0]
    return [PolygonAnswer(outer=rings[number], holes=holes[number]) for number in outer]


ENCODERS: dict[
    str, Callable[[NDArray[np.uint8], NDArray[np.float32]], str | RunLengths | list[PolygonAnswer]]
] = {
    "png": _png,
    "rle": _run_lengths,
    "polygon": _polygons,
    "scores": _scores,
}
