"""Settings of inspections: photographs that are accepted, and their order in the engine."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from api.models.settings import ModelSettings
from api.record.settings import RecordSettings
from segdec.artifact import UnlikeAction
from segdec.errors import ConfigError
from segdec.runtime.threads import available_cores


def _cores_but_one() -> int:
    return min(max(available_cores() - 1, 1), 8)


class InspectionSettings(RecordSettings, ModelSettings):
    """Settings of inspections."""

    max_pixels: PositiveInt = 2**24
    """largest photograph, height × width; smaller if the model, measured when it is loaded, would need more
    memory than available"""
    max_side: PositiveInt = 2**14
    """longest side of a photograph, px"""
    accept_webp: bool = False
    """accept WebP files; they are rejected otherwise, because their damage is not detected: a file that is
    half zeros may be answered as good"""
    unlike_training: UnlikeAction = "reject"
    """whether a photograph that certainly shows something else than those of the training (black, out of
    focus, another product) is rejected, or inspected with a warning as one that is only unlike them; with the
    warning it is for review instead of good; a model without limits accepts any photograph"""
    max_batch_files: PositiveInt = 64
    """maximum number of photographs in a batch request"""
    queue_size: NonNegativeInt = 32
    """photographs that may wait while others run; more get a 503"""
    batch_sizes: tuple[Annotated[int, Field(gt=0)], ...] = Field((1, 2, 4, 8), min_length=1)
    """numbers of photographs that the network processes together"""
    batch_wait_ms: NonNegativeFloat = 0.0
    """milliseconds to wait for a batch to fill; above 0, every answer is slower"""
    engine_timeout_s: PositiveFloat = 120.0
    """seconds that a batch in the engine, or a photograph in an image thread, may take; after that the
    service is stalled and rejects photographs until the step ends; a step of loading a model may take five
    times as long"""
    engine_lost_s: PositiveFloat = 300.0
    """seconds after which a hanging step makes /livez fail, so that the process is replaced; a minute later
    the process exits with code 70"""
    image_threads: PositiveInt = Field(default_factory=_cores_but_one)
    """threads that decode photographs and encode masks, and threads of SAM; default: cores − 1, at most 8"""

    def check(self) -> None:
        super().check()
        if self.deadline_ms > 1000 * self.engine_timeout_s:
            raise ConfigError(
                f"--deadline-ms {self.deadline_ms:g} is longer than --engine-timeout-s "
                f"{self.engine_timeout_s:g}: the engine would be stalled before the deadline. "
                f"Raise --engine-timeout-s to {self.deadline_ms / 1000:g} or more."
            )
        if self.engine_lost_s < self.engine_timeout_s:
            raise ConfigError(
                f"--engine-lost-s {self.engine_lost_s:g} is shorter than --engine-timeout-s "
                f"{self.engine_timeout_s:g}. Expected at least as long."
            )
