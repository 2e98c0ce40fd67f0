"""Prediction → answer."""

import base64
import time
from dataclasses import asdict, dataclass

from api.inference import Inferred
from api.schemas import (
    Answer,
    Decision,
    ImageFacts,
    MaskAnswer,
    ModelIdentity,
    PredictParameters,
    RegionAnswer,
    Timing,
)
from segdec.images import Photograph, encode_png
from segdec.postprocessing import Prediction


@dataclass(frozen=True)
class Answered:
    """Everything that one answer is made from; times are seconds of `time.perf_counter`."""

    request_id: str
    model: ModelIdentity
    parameters: PredictParameters
    photograph: Photograph
    inferred: Inferred
    begun: float
    decode_ms: float

    def encode(self) -> bytes:
        """The answer as JSON; slow for a large mask, so not for the event loop."""
        encoding = time.perf_counter()
        prediction = self.inferred.prediction
        mask = encode_mask(prediction) if self.parameters.mask == "png" else None
        regions = [RegionAnswer.model_validate(asdict(region)) for region in prediction.regions]
        return (
            Answer(
                id=self.request_id,
                model=self.model,
                image=describe_image(self.photograph),
                decision=decide(prediction),
                mask=mask,
                regions=regions,
                timing_ms=self._timing(encoding),
                batch_size=self.inferred.batch_size,
                warnings=list(self.photograph.warnings),
            )
            .model_dump_json()
            .encode()
        )

    def _timing(self, encoding: float) -> Timing:
        ended = time.perf_counter()
        return Timing(
            queue=round(self.inferred.queue_ms, 3),
            decode=round(self.decode_ms, 3),
            infer=round(self.inferred.infer_ms, 3),
            encode=round((ended - encoding) * 1000, 3),
            total=round((ended - self.begun) * 1000, 3),
        )


def encode_mask(prediction: Prediction) -> MaskAnswer:
    """The mask [H, W] of the photograph's size, as base64 PNG."""
    height, width = prediction.mask.shape
    return MaskAnswer(
        encoding="png",
        width=width,
        height=height,
        space="input",
        threshold=prediction.mask_threshold,
        data=base64.b64encode(encode_png(prediction.mask)).decode("ascii"),
    )


def describe_image(photograph: Photograph) -> ImageFacts:
    """Size, depth and format of the photograph as decoded."""
    height, width = photograph.pixels.shape[:2]
    return ImageFacts(width=width, height=height, bit_depth=photograph.bit_depth, format=photograph.format)


def decide(prediction: Prediction) -> Decision:
    """The verdict of a prediction."""
    return Decision(
        label=prediction.label,
        score=prediction.score,
        threshold=prediction.threshold,
        probabilities=prediction.probabilities,
    )
