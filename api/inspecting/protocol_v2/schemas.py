"""JSON of the Open Inference Protocol v2: requests and answers.

Unknown members and parameters are ignored, as the protocol demands.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(max_length=256)]
Size = Annotated[int, Field(ge=0, lt=2**63)]


class ProtocolModel(BaseModel):
    """Base of everything in the protocol; a number must not be sent as text."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        """Drops the nulls that some clients send for optional members."""
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if value is not None}


# === Request ===


class InputParameters(ProtocolModel):
    """How the data of an input is sent."""

    binary_data_size: Size | None = Field(None, description="bytes of this input after the JSON part")
    shared_memory_region: str | None = Field(None, description="not supported")


class InferInput(ProtocolModel):
    """An input tensor: its data is in `data` or, as `binary_data_size` bytes, after the JSON part."""

    name: Name = Field(description="image or pixels")
    shape: list[Size] = Field(max_length=8, description="image: [n]; pixels: [n, H, W, C], C is 1 or 3 (RGB)")
    datatype: Name = Field(description="image: BYTES; pixels: UINT8")
    parameters: InputParameters = InputParameters()
    data: list[Any] | None = Field(
        None, description="image: base64 of each encoded photograph; pixels: 0…255, flat or nested"
    )


class OutputParameters(ProtocolModel):
    """How the data of an output is sent."""

    binary_data: bool | None = Field(None, description="after the JSON part; default: binary_data_output")
    classification: int | None = Field(None, description="not supported; request probabilities")
    shared_memory_region: str | None = Field(None, description="not supported")


class RequestedOutput(ProtocolModel):
    """A requested output tensor."""

    name: Name = Field(
        description="label, score, threshold, review_threshold, probabilities, mask or class_mask"
    )
    parameters: OutputParameters = OutputParameters()


class InferParameters(ProtocolModel):
    """Settings of a request."""

    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        None,
        description="image score from which a photograph is a defect, without a band for review; default: "
        "the model's own",
    )
    timeout: Size | None = Field(
        None, description="microseconds after which waiting photographs are abandoned; 0: none"
    )
    binary_data_output: bool = Field(False, description="answer every output after the JSON part")


class InferRequest(ProtocolModel):
    """The JSON part of an inference request."""

    id: Name | None = Field(None, description="is repeated in the answer")
    inputs: list[InferInput] = Field(max_length=16, description="exactly one of image and pixels")
    outputs: list[RequestedOutput] | None = Field(None, max_length=16, description="default: all of them")
    parameters: InferParameters = InferParameters()


# === Answers ===


class InferOutput(ProtocolModel):
    """An output tensor."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, str | int] | None = Field(
        None, description="binary_data_size, or content_type base64 where data is base64"
    )
    data: list[str] | list[float] | None = Field(None, description="row by row; absent when it is binary")


class InferAnswer(ProtocolModel):
    """The JSON part of an inference answer."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferOutput]


class TensorMetadata(ProtocolModel):
    """An input or output of a model."""

    name: str
    datatype: str
    shape: list[int] = Field(description="-1: any size")
    parameters: dict[str, str] | None = None


class ModelParameters(ProtocolModel):
    """Facts about a model beyond the protocol."""

    version: str = Field(description="the version that is described")
    aliases: list[str] = Field(description="its aliases, for example stable or canary")
    classes: list[str] = Field(description="in the order of probabilities, the good one first")
    threshold: float = Field(description="image score from which a photograph is a defect")
    review_threshold: float | None = Field(
        None,
        description="image score from which the verdict is `review`; absent if the model has no such verdict",
    )


class ModelMetadata(ProtocolModel):
    """A model as the protocol describes it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: ModelParameters


class ServerMetadata(ProtocolModel):
    """The server and its extensions of the protocol."""

    name: str
    version: str
    extensions: list[str]


class ServerLive(ProtocolModel):
    """Whether the process answers."""

    live: bool


class ServerReady(ProtocolModel):
    """Whether requests are answered."""

    ready: bool


class ModelReady(ProtocolModel):
    """Whether a model answers requests."""

    name: str
    ready: bool


class IndexEntry(ProtocolModel):
    """A version of a model in the repository's index."""

    name: str
    version: str
    state: str
    reason: str
