"""What a request may ask for, beside its photograph."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from segdec.schemas import MaskForm, MaskSpace
from segdec.suggestions import nearest


class PredictParameters(BaseModel):
    """Query of a prediction."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | SkipJsonSchema[None] = Field(
        None, description="image score from which a photograph is a defect; default: the model's own"
    )
    mask: MaskForm = Field("png", description="form of the mask in the answer")
    space: MaskSpace = Field(
        "input",
        description="the photograph's pixels, or the network's own grid (1/8 of its input, or as fine as the "
        "model's `mask_stride` says)",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_nearest(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name not in cls.model_fields:
                meant = nearest(name, cls.model_fields)
                raise ValueError(f"unknown parameter '{name}'; did you mean '{meant}'?")
        return values
