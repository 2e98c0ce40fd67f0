"""Encodes masks in the form that a request asks for."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from segdec.config import ModelConfig
from segdec.images import encode_png
from segdec.imaging.polygons import trace_outlines
from segdec.imaging.run_lengths import encode_run_lengths
from segdec.inference.postprocessing import Prediction
from segdec.mask_decoding import unpack_mask
from segdec.schemas import MaskAnswer, MaskForm, MaskSpace, PolygonAnswer, RunLengths

MaskData = str | RunLengths | list[PolygonAnswer] | dict[str, RunLengths]


CLASS_FORMS = ("classes", "class_rle")


def check_mask_form(form: MaskForm, config: ModelConfig) -> None:
    """Checks that a model can answer with a mask form; called before the photograph is read.

    Raises:
        RequestError: 400 if the form has pixel classes and the model has one mask for all classes.
    """
    if form in CLASS_FORMS and not config.network.mask_classes:
        raise _no_mask_classes(f"mask={form}")


def check_has_classes(asked: str, stored: MaskAnswer) -> None:
    """Checks that a mask has pixel classes; `asked` is the form as the request names it.

    Raises:
        RequestError: 400.
    """
    if stored.labels is None:
        raise _no_mask_classes(asked)


def _no_mask_classes(asked: str) -> RequestError:
    detail = (
        f"{asked} needs a class for each pixel, but the model has one mask for all classes. Expected "
        "'png', 'rle', 'polygon', 'scores' or 'none', or a model trained with network.mask_classes."
    )
    return RequestError(400, "no_mask_classes", detail)


def encode_mask(prediction: Prediction, form: MaskForm, space: MaskSpace) -> MaskAnswer | None:
    """Encodes the mask [H, W] as `form`, on the photograph's pixels or the network's grid."""
    if form == "none":
        return None
    mask, scores = select_space(prediction, space)
    height, width = mask.shape
    if form in CLASS_FORMS:
        labels = list(prediction.probabilities)
        data = _encode_classes(form, select_classes(prediction, space), labels)
    else:
        labels, data = None, _encode_pixels(form, mask, scores)
    return MaskAnswer(
        encoding=form,
        width=width,
        height=height,
        space=space,
        threshold=prediction.mask_threshold,
        data=data,
        labels=labels,
    )


def encode_empty_mask(config: ModelConfig, height: int, width: int) -> MaskAnswer:
    """Returns run lengths [H, W] without a defect, in the form of the model's masks."""
    empty = np.zeros((height, width), np.uint8)
    classes = list(config.classes) if config.network.mask_classes else None
    return MaskAnswer(
        encoding="rle" if classes is None else "class_rle",
        width=width,
        height=height,
        space="input",
        threshold=config.thresholds.mask,
        data=_encode_pixels("rle", empty, empty) if classes is None else {},
        labels=classes,
    )


def convert_mask(stored: MaskAnswer, form: MaskForm) -> MaskAnswer | None:
    """Converts a stored mask to another form.

    Args:
        stored: Run lengths on the photograph's pixels.
        form: Any form except `scores`: run lengths contain no scores.

    Raises:
        RequestError: 400 if the form needs pixel classes and `stored` has none.
    """
    if form == "none":
        return None
    pixels, labels = unpack_mask(stored), stored.labels
    if form in CLASS_FORMS:
        check_has_classes(f"mask={form}", stored)
        data = _encode_classes(form, pixels, labels or [])
    else:
        mask = np.where(pixels > 0, np.uint8(255), np.uint8(0))
        labels, data = None, _encode_pixels(form, mask, mask.astype(np.float32))
    return stored.model_copy(update={"encoding": form, "data": data, "labels": labels})


def replace_pixels(stored: MaskAnswer, pixels: NDArray[np.uint8]) -> MaskAnswer:
    """Returns `stored` with the mask `pixels` [H, W] instead of its own, with classes if it has classes."""
    data: MaskData
    if stored.labels is None:
        data = _encode_pixels("rle", pixels, pixels)
    else:
        data = _encode_classes("class_rle", pixels, stored.labels)
    return stored.model_copy(update={"data": data})


def encode_mask_file(prediction: Prediction, form: MaskForm, space: MaskSpace) -> bytes:
    """Encodes the mask as a grey PNG file.

    Values: 0 and 255; with the form `scores` the mask scores × 255; with `classes` the index of the class.
    """
    if form == "classes":
        return encode_png(select_classes(prediction, space))
    mask, scores = select_space(prediction, space)
    return encode_png(scale_scores(scores) if form == "scores" else mask)


def select_space(prediction: Prediction, space: MaskSpace) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns mask and mask scores [H, W] on the photograph's pixels (`input`) or the network's (`model`)."""
    if space == "input":
        return prediction.mask, prediction.mask_scores
    scores = prediction.grid_scores
    return np.where(scores >= prediction.mask_threshold, np.uint8(255), np.uint8(0)), scores


def select_classes(prediction: Prediction, space: MaskSpace) -> NDArray[np.uint8]:
    """Returns the class of each pixel [H, W], 0 without a defect; for models with a mask for each class."""
    if space == "input":
        return np.asarray(prediction.class_mask)
    mask, _ = select_space(prediction, space)
    return np.where(mask > 0, np.asarray(prediction.grid_classes), np.uint8(0))


def scale_scores(scores: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Converts scores 0…1 to 0…255, rounded."""
    return np.rint(scores * 255).astype(np.uint8)


def _encode_pixels(form: MaskForm, mask: NDArray[np.uint8], scores: NDArray[Any]) -> MaskData:
    if form == "rle":
        return RunLengths(size=mask.shape, counts=encode_run_lengths(mask))
    if form == "polygon":
        return outline_parts(mask)
    return _base64_png(scale_scores(scores) if form == "scores" else mask)


def _encode_classes(form: MaskForm, classes: NDArray[np.uint8], labels: Sequence[str]) -> MaskData:
    if form == "classes":
        return _base64_png(classes)
    parts = {name: (classes == number).view(np.uint8) for number, name in enumerate(labels) if number}
    return {
        name: RunLengths(size=part.shape, counts=encode_run_lengths(part))
        for name, part in parts.items()
        if part.any()
    }


def _base64_png(pixels: NDArray[np.uint8]) -> str:
    return base64.b64encode(encode_png(pixels)).decode("ascii")


def outline_parts(mask: NDArray[np.uint8]) -> list[PolygonAnswer]:
    """Returns the outline and the holes of each connected part of a mask [H, W]."""
    return [
        PolygonAnswer(outer=list(outer), holes=list(map(list, holes)))
        for outer, holes in trace_outlines(mask)
    ]
