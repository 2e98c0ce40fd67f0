"""What a model is: its network, its input, its classes and its thresholds."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from segdec.errors import ConfigError
from segdec.suggestions import nearest

STRIDE = 8
"""Photograph pixels per mask-logit pixel along each side: three 2×2 poolings."""


def _check_odd(side: int) -> int:
    if side % 2 == 0:
        raise ValueError(f"{side} is even; expected an odd number, which has a middle")
    return side


OddSide = Annotated[int, Field(gt=0), AfterValidator(_check_odd)]
Width = Annotated[int, Field(gt=0)]
Side = Annotated[int, Field(gt=0, multiple_of=STRIDE)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


class Config(BaseModel):
    """Base of all configuration: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NetworkConfig(Config):
    """Shape of a SegDecNet.

    `preset` names the published variant that fills every field not given
    (`seed`, `jim2019`, `comind2021`, `compact`).
    """

    preset: str = Field("seed", description="variant that fills the fields not given")
    input_channels: Literal[1, 3] = Field(1, description="1 = grey, 3 = colour (RGB)")
    num_classes: int = Field(2, ge=2, description="classes, `good` included")
    segmentation_widths: tuple[tuple[Width, ...], tuple[Width, ...], tuple[Width, ...]] = Field(
        ((32, 32), (64, 64, 64), (64, 64, 64, 64)),
        description="channels of each 5×5 convolution; each block ends in a 2×2 max-pool",
    )
    feature_width: Width = Field(1024, description="channels of the feature convolution")
    feature_kernel: OddSide = Field(15, description="side of the feature kernel, odd")
    decision_widths: tuple[Width, ...] = Field(
        (8, 16, 32), description="channels of each decision convolution"
    )
    normalization: Literal["batch", "instance", "feature"] = Field(
        "batch", description="after each convolution"
    )
    batch_norm_momentum: Fraction = Field(0.9, description="of the moving statistics; batch only")
    mask_normalization: Literal["none", "scale", "affine"] = Field("none", description="of the mask logits")
    mask_activation: Literal["sigmoid", "relu", "linear"] = Field(
        "sigmoid", description="of the mask on its way into the decision network"
    )
    gradient_gate: bool = Field(
        False, description="stop gradients from the decision to the segmentation network"
    )
    initializer: Literal["glorot_uniform", "glorot_normal", "normal_0.01"] = Field(
        "glorot_uniform", description="of the convolution kernels"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        preset = values.get("preset", "seed")
        if preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
        return {**PRESETS[preset], **values}


PRESETS: dict[str, dict[str, Any]] = {
    "seed": {},
    "jim2019": {
        "normalization": "instance",
        "mask_normalization": "affine",
        "mask_activation": "relu",
        "initializer": "normal_0.01",
    },
    "comind2021": {
        "segmentation_widths": ((32,), (64, 64, 64), (64, 64, 64, 64)),
        "normalization": "feature",
        "mask_normalization": "scale",
        "mask_activation": "linear",
        "gradient_gate": True,
        "initializer": "glorot_normal",
    },
    "compact": {
        "segmentation_widths": ((16, 16), (32, 32, 32), (32, 32, 32, 32)),
        "feature_width": 128,
        "feature_kernel": 9,
    },
}


class InputConfig(Config):
    """How a photograph becomes the network's input.

    `resize` scales to `height` × `width`; `native` keeps the size and pads right and bottom to
    multiples of 8. The mask always comes back at the size of the photograph.
    """

    policy: Literal["resize", "native"] = Field("native", description="resize to height × width, or pad")
    height: Side | None = Field(None, description="rows of the input, px; resize only")
    width: Side | None = Field(None, description="columns of the input, px; resize only")
    convert_color: bool = Field(
        False, description="reduce a colour photograph to grey for a grey model instead of refusing it"
    )
    white_level: int | None = Field(
        None,
        ge=256,
        le=65535,
        description="value of a 16-bit photograph that becomes 255, brighter ones are clipped (4095 for "
        "12-bit data); none = 65535, and a photograph that would be nearly black is refused",
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        sized = (self.height is not None, self.width is not None)
        if self.policy == "resize" and not all(sized):
            raise ValueError("policy 'resize' needs both height and width")
        if self.policy == "native" and any(sized):
            raise ValueError(
                "policy 'native' takes the photograph's size; remove height and width or use 'resize'"
            )
        return self


class Thresholds(Config):
    """Decision limits, chosen on validation images.

    The label is `good` when the image score is below `score`; a pixel belongs to a defect when its
    mask score is at or above `mask`.
    """

    score: Fraction = 0.5
    mask: Fraction = 0.5


class ModelConfig(Config):
    """Everything that inference needs to know beside the weights. Class 0 is the good one."""

    network: NetworkConfig
    input: InputConfig
    classes: Annotated[tuple[str, ...], Field(min_length=2)]
    thresholds: Thresholds = Thresholds()

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        if len(self.classes) != self.network.num_classes:
            raise ValueError(
                f"{len(self.classes)} classes {self.classes} for a network of {self.network.num_classes}; "
                f"expected the same number: set network.num_classes to {len(self.classes)}"
            )
        return self


def explain(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Turns a validation error into one readable line a field; an unknown key names the nearest known one."""
    return ConfigError("\n".join(_explain_one(dict(detail), model) for detail in error.errors()))


def _explain_one(detail: dict[str, Any], model: type[BaseModel]) -> str:
    path = [str(part) for part in detail["loc"]]
    where = ".".join(path) or model.__name__
    if detail["type"] != "extra_forbidden":
        return f"{where}: {detail['msg']} (got {detail['input']!r})"
    return f"{where}: unknown key. Did you mean '{nearest_key(where, model)}'?"


def nearest_key(name: str, model: type[BaseModel]) -> str:
    """The dotted field name of `model` that looks most like `name`."""
    return nearest(name, known_keys(model))


def known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all fields of `model`, nested models included."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += known_keys(field.annotation, f"{prefix}{name}.")
    return keys
