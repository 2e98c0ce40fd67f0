"""Inspected photograph → answer."""

import time
from dataclasses import dataclass
from urllib.parse import quote

from api.inspection import Inspected
from api.mask_encoding import answer_mask, draw_mask
from api.schemas import PredictParameters
from segdec.postprocessing import Prediction
from segdec.schemas import Answer, Decision, RegionAnswer, Timing

HEADER = "X-Segdec-"


@dataclass(frozen=True)
class MaskFile:
    """A mask as PNG file, with what else there is to say as headers."""

    content: bytes
    headers: dict[str, str]


def make_answer(inspected: Inspected, request_id: str, parameters: PredictParameters, begun: float) -> Answer:
    """The whole answer; slow for a large mask, so not for the event loop.

    Args:
        inspected: The photograph with its prediction.
        request_id: The answer's id.
        parameters: What was asked for.
        begun: When the request began, `time.perf_counter`.
    """
    prediction = inspected.prediction
    mask = answer_mask(prediction, parameters.mask, parameters.space)
    regions = [RegionAnswer.model_validate(region, from_attributes=True) for region in prediction.regions]
    return Answer(
        id=request_id,
        model=inspected.model,
        image=inspected.image,
        decision=decide(prediction),
        mask=mask,
        regions=regions,
        timing_ms=_timing(inspected, begun),
        batch_size=inspected.batch_size,
        warnings=list(inspected.warnings),
    )


def make_mask_file(inspected: Inspected, parameters: PredictParameters) -> MaskFile:
    """The mask itself, for `Accept: image/png`; text in its headers is percent-encoded UTF-8."""
    prediction, model = inspected.prediction, inspected.model
    facts = {
        "Label": quote(prediction.label),
        "Score": repr(prediction.score),
        "Threshold": repr(prediction.threshold),
        "Model": quote(model.name),
        "Version": quote(model.version),
        "Warnings": quote("; ".join(inspected.warnings)),
    }
    content = draw_mask(prediction, parameters.mask, parameters.space)
    return MaskFile(content, {HEADER + name: value for name, value in facts.items() if value})


def decide(prediction: Prediction) -> Decision:
    """The verdict of a prediction."""
    return Decision(
        label=prediction.label,
        score=prediction.score,
        threshold=prediction.threshold,
        probabilities=prediction.probabilities,
    )


def _timing(inspected: Inspected, begun: float) -> Timing:
    ended = time.perf_counter()
    return Timing(
        queue=round(inspected.queue_ms, 3),
        decode=round(inspected.decode_ms, 3),
        infer=round(inspected.infer_ms, 3),
        encode=round((ended - inspected.finishing) * 1000, 3),
        total=round((ended - begun) * 1000, 3),
    )
