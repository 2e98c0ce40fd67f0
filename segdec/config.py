"""Configuration of a model: network, input, classes and thresholds."""

import reprlib
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from segdec.encoders import ENCODER_STRIDE, ENCODERS, SEGDECNET
from segdec.errors import ConfigError
from segdec.imaging.inspected_area import Mask, check_mask, check_polygon, draw_area, leaves_inspected_pixels
from segdec.runtime.identifiers import REVIEW, is_reserved_class
from segdec.runtime.suggestions import nearest_name

STRIDE = 8
"""Photograph pixels per coarse mask-logit pixel along each side: three 2×2 poolings."""

KERNEL = 5
"""Kernel size of all convolutions except the feature, the mask and the decoder's, as published."""

DECODER_KERNEL = 3
"""Kernel size of the decoder's convolutions."""

SMOOTHING = 3
"""Window size over which the features of an encoder are averaged."""

MAX_MEMORY = 8000
"""Maximum number of remembered patches: 4 MB of weights."""

MEMORY_FOLDS = 3
"""Number of folds of the photographs of a memory that is used without heads."""

GOOD = "good"
"""Name of class 0."""


def _check_odd(side: int) -> int:
    if side % 2 == 0:
        raise ValueError(f"{side} is even; expected an odd number")
    return side


def _check_among(*allowed: int) -> AfterValidator:
    """Like a Literal of numbers, but accepts text from the command line."""

    def check(value: int) -> int:
        if value not in allowed:
            raise ValueError(f"{value}; expected one of {', '.join(map(str, allowed))}")
        return value

    return AfterValidator(check)


def _check_encoder(name: str) -> str:
    known = (SEGDECNET, *ENCODERS)
    if name not in known:
        raise ValueError(f"unknown encoder {name!r}; expected one of {', '.join(known)}")
    return name


OddSide = Annotated[int, Field(gt=0), AfterValidator(_check_odd)]
Width = Annotated[int, Field(gt=0)]
Side = Annotated[int, Field(gt=0, le=2**15, multiple_of=STRIDE)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
RelativePolygon = Annotated[tuple[tuple[float, float], ...], AfterValidator(check_polygon)]
"""Corners (x, y) in fractions of a photograph's width and height, from the upper left corner."""


class Config(BaseModel):
    """Base of all configuration: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NetworkConfig(Config):
    """Shape of a SegDecNet.

    `preset` names the published variant whose values fill the fields that are not given
    (`seed`, `jim2019`, `comind2021`, `compact`), or `mobilenet`, which has a pretrained encoder.
    """

    preset: str = Field("seed", description="variant that fills the fields not given")
    input_channels: Annotated[int, _check_among(1, 3)] = Field(1, description="1 = grey, 3 = colour (RGB)")
    num_classes: int = Field(2, ge=2, description="classes, `good` included")
    encoder: Annotated[str, AfterValidator(_check_encoder)] = Field(
        SEGDECNET,
        description="encoder of the segmentation network: segdecnet = its own convolutions, as published, or "
        f"a pretrained network: {', '.join(ENCODERS)}",
    )
    heads: int = Field(
        1,
        ge=0,
        le=10,
        description="heads on the features of a frozen encoder, each trained without one fold of the "
        "photographs; their logits are averaged; 0 = the memory alone",
    )
    standardize_features: bool = Field(
        False, description="give each channel of an encoder's features mean 0 and deviation 1 before the head"
    )
    linear_mask: bool = Field(
        False,
        description="add to the mask logits of each head a linear map of the encoder's features, which is "
        "fitted to the training masks before the first step",
    )
    adapter_width: Width = Field(64, description="channels of an encoder's features after they are combined")
    segmentation_widths: tuple[tuple[Width, ...], tuple[Width, ...], tuple[Width, ...]] = Field(
        ((32, 32), (64, 64, 64), (64, 64, 64, 64)),
        description="channels of each 5×5 convolution; each block ends in a 2×2 max-pool; segdecnet only",
    )
    feature_width: Width = Field(1024, description="channels of the feature convolution")
    feature_kernel: OddSide = Field(15, description="side of the feature kernel, odd")
    decision_widths: tuple[Width, ...] = Field(
        (8, 16, 32), description="channels of each decision convolution"
    )
    normalization: Literal["batch", "instance", "feature"] = Field(
        "batch", description="normalisation after each convolution"
    )
    batch_norm_momentum: Fraction = Field(0.9, description="momentum of the moving statistics; batch only")
    mask_normalization: Literal["none", "scale", "affine"] = Field(
        "none", description="normalisation of the mask logits"
    )
    mask_activation: Literal["sigmoid", "relu", "linear"] = Field(
        "sigmoid", description="activation of the mask at the input of the decision network"
    )
    mask_stride: Annotated[int, _check_among(1, 2, 4, 8)] = Field(
        STRIDE, description="input px per mask px along each side; below 8 a decoder refines the mask"
    )
    decoder_widths: tuple[Width, Width, Width] = Field(
        (64, 32, 16), description="channels of the decoder at 1/4, 1/2 and full resolution, as far as needed"
    )
    mask_classes: bool = Field(
        False, description="one mask per defect class, so that each region has a class; else one mask for all"
    )
    gradient_gate: bool = Field(False, description="stop gradients from decision to segmentation")
    mask_prior: Annotated[float, Field(ge=0.0)] = Field(
        0.0,
        description="initial weight of the mask's maximum in the class logits, so that the decision starts "
        "from the mask (with mask_activation linear, from it alone); 0 = random, as published",
    )
    initializer: Literal["glorot_uniform", "glorot_normal", "normal_0.01"] = Field(
        "glorot_uniform", description="initializer of the convolution kernels"
    )
    memory: int = Field(
        0,
        ge=0,
        le=MAX_MEMORY,
        description="patches of good surface that the network remembers; the distance to the nearest one is "
        "part of the score, and without heads also the mask, so that nothing is trained; 0 = none",
    )
    pooled_score: bool = Field(
        False,
        description="combine the scores of heads and memory with that of a linear map of mean and deviation "
        "of the encoder's features, fitted after the training; needs two heads or more and a memory",
    )
    pooled_classes: bool = Field(
        False,
        description="take the class of a defect from the encoder's features where the defect is, by linear "
        "discriminant analysis after the training, unless the decision network's classes are better out of "
        "fold; needs two heads or more",
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

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.heads > 1 and self.encoder == SEGDECNET:
            raise ValueError(
                f"heads={self.heads} needs an encoder, whose features they share; set encoder, or heads=1"
            )
        if not self.heads and not self.memory:
            raise ValueError("heads=0 without memory; expected one of them above 0")
        if self.linear_mask and (
            self.encoder == SEGDECNET or self.mask_channels > 1 or self.mask_normalization != "none"
        ):
            raise ValueError(
                "linear_mask needs an encoder, one mask for all classes and mask_normalization none; set "
                "these, or linear_mask=false"
            )
        return self

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        if self.memory and self.encoder == SEGDECNET:
            raise ValueError(
                f"memory={self.memory} needs an encoder, whose features it compares; set encoder, or memory=0"
            )
        if self.memory and self.heads == 1:
            raise ValueError(
                f"memory={self.memory} with heads=1; expected heads=0 for the memory alone, or two or more, "
                "each trained without one fold: the scores of their folds show how to combine both"
            )
        if self.pooled_score and not (self.heads and self.memory):
            raise ValueError(
                f"pooled_score with heads={self.heads} and memory={self.memory}; expected two heads or more "
                "and a memory, whose scores it is combined with: set both, or pooled_score=false"
            )
        if self.pooled_classes and self.heads < 2:
            raise ValueError(
                f"pooled_classes with heads={self.heads}; expected two heads or more, each trained without "
                "one fold, on which the classes are compared: set heads, or pooled_classes=false"
            )
        fixed = {"mask_stride": STRIDE, "mask_classes": False, "num_classes": 2}
        wrong = [f"{name}={getattr(self, name)}" for name in fixed if getattr(self, name) != fixed[name]]
        if not self.heads and wrong:
            raise ValueError(
                f"heads=0 with {', '.join(wrong)}; expected the default: a memory of good surface has one "
                f"mask of stride {STRIDE} and distinguishes no classes of defects"
            )
        return self

    @property
    def folds(self) -> int:
        """Number of folds of the photographs, each of which is scored without it; 1 without folds."""
        return self.heads or MEMORY_FOLDS

    @property
    def pools_classes(self) -> bool:
        """Whether features are pooled for the class of a defect; not with one class of defects."""
        return self.pooled_classes and self.num_classes > 2

    @property
    def mask_channels(self) -> int:
        """Number of masks: one per defect class, or one for all."""
        return self.num_classes - 1 if self.mask_classes else 1

    @property
    def coarsest_stride(self) -> int:
        """Photograph pixels per pixel of the coarsest features that a mask logit depends on."""
        return STRIDE if self.encoder == SEGDECNET else ENCODER_STRIDE

    @property
    def has_global_context(self) -> bool:
        """Whether a mask logit depends on the whole image, by normalisation or the encoder."""
        return self.normalization != "batch" or (
            self.encoder != SEGDECNET and ENCODERS[self.encoder].has_global_context
        )

    @property
    def receptive_field(self) -> int:
        """Side, px, of the square around a cell of 8 × 8 px that determines the mask in the cell.

        With `has_global_context` it also depends on statistics of the whole image.
        """
        margin = 0  # mask or decoder pixels beyond the cell on each side
        for _ in range((STRIDE // self.mask_stride).bit_length() - 1):
            margin = -(-(margin + DECODER_KERNEL // 2 + 1) // 2)  # convolution, then interpolation to half
        kernel = self.feature_kernel if self.heads else 2 * SMOOTHING - 1  # the memory smooths its map twice
        side = 1 + 2 * margin + kernel - 1
        if self.encoder != SEGDECNET:
            offset = 2 * ENCODER_STRIDE - STRIDE  # a cell is off the centre of a coarse one, and between two
            shift = ENCODER_STRIDE - 1  # strided convolutions are asymmetric by one pixel at each scale
            smoothed = (SMOOTHING - 1) * ENCODER_STRIDE + ENCODERS[self.encoder].receptive_field
            return (side - 1) * STRIDE + offset + shift + smoothed
        for widths in reversed(self.segmentation_widths):
            side = 2 * side + (KERNEL - 1) * len(widths)
        return side


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
    "mobilenet": {
        "encoder": "mobilenet",
        "feature_width": 64,
        "feature_kernel": 3,
        "mask_activation": "linear",
        "mask_prior": 0.5,
        "gradient_gate": True,
    },
}


class InputConfig(Config):
    """Conversion of a photograph to the network's input.

    `resize` scales to `height` × `width`; `letterbox` keeps the aspect ratio and pads the rest; `native`
    keeps the size and pads right and bottom to multiples of 8; `tile` keeps the size and splits the
    photograph into overlapping tiles of `height` × `width`. The mask always has the size of the photograph.
    """

    policy: Literal["resize", "letterbox", "native", "tile"] = Field(
        "native", description="scale to height × width, scale with padding, pad only, or split into tiles"
    )
    height: Side | None = Field(None, description="rows of the input or of a tile, px; not with native")
    width: Side | None = Field(None, description="columns of the input or of a tile, px; not with native")
    overlap_px: Annotated[int, Field(ge=0, multiple_of=STRIDE)] | None = Field(
        None, description="overlap of neighbouring tiles, px; none = the network's receptive field"
    )
    convert_color: bool = Field(
        False, description="convert a colour photograph to grey for a grey model instead of rejecting it"
    )
    white_level: int | None = Field(
        None,
        ge=256,
        le=65535,
        description="value of a 16-bit photograph that becomes 255, brighter ones are clipped (4095 for "
        "12-bit data); none = 65535, and a photograph that would be nearly black is rejected",
    )
    regions_of_interest: tuple[RelativePolygon, ...] = Field(
        (), description="inspected polygons of corners [x, y], fractions of width and height; none = all"
    )
    ignored_areas: tuple[RelativePolygon, ...] = Field((), description="polygons that are not inspected")
    interest_mask: Annotated[str, AfterValidator(check_mask)] | None = Field(
        None,
        description="path of a PNG (stored as base64) that is 0 where the photograph is not inspected; it is "
        "stretched to the photograph",
    )

    def inspected_area(self, height: int, width: int) -> Mask | None:
        """Returns the inspected area of a photograph, uint8 [height, width], 255 inside; None = all of it."""
        return draw_area(self.regions_of_interest, self.ignored_areas, self.interest_mask, height, width)

    @property
    def is_partial(self) -> bool:
        """Whether parts of the photograph are not inspected."""
        return bool(self.regions_of_interest or self.ignored_areas or self.interest_mask is not None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not leaves_inspected_pixels(self.regions_of_interest, self.ignored_areas, self.interest_mask):
            raise ValueError(
                "regions_of_interest, ignored_areas and interest_mask leave nothing to inspect; expected a "
                "part of the photograph inside the regions and the mask that is not ignored"
            )
        sized = (self.height is not None, self.width is not None)
        if self.policy != "native" and not all(sized):
            raise ValueError(f"policy '{self.policy}' needs both height and width")
        if self.policy == "native" and any(sized):
            raise ValueError("policy 'native' uses the photograph's size; remove height and width")
        if self.overlap_px is not None and self.policy != "tile":
            raise ValueError(f"overlap_px is for policy 'tile', not '{self.policy}'; remove it")
        return self

    @property
    def size(self) -> tuple[int, int]:
        """Height and width, px; raises ValueError with the policy `native`, which has no size."""
        if self.height is None or self.width is None:
            raise ValueError(f"The policy '{self.policy}' has no size. Expected another policy.")
        return self.height, self.width


class Calibration(Config):
    """Calibration of the image score to a probability (Platt 1999).

    The score is 1 / (1 + exp(−(slope · x + intercept))), where x is the network's log-odds of a defect.
    """

    slope: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0
    intercept: Annotated[float, Field(ge=-1000.0, le=1000.0)] = 0.0
    defect_rate: Annotated[float, Field(gt=0.0, lt=1.0)] | None = Field(
        None, description="share of defective parts for which the score is calibrated; none = not calibrated"
    )


class Thresholds(Config):
    """Decision thresholds, chosen on validation images.

    The label is `good` below `score`; if `review` is set, it is `review` from `review` up to `score`. A pixel
    belongs to a defect if its mask score is at or above `mask`, which `mask_share` raises, and `refine_mask`
    changes the scores, both only where the label is not `good` and the model has one mask for all classes.
    """

    score: Fraction = 0.5
    mask: Fraction = 0.5
    mask_share: Fraction = Field(
        0.0,
        description="share of the way from `mask` to the highest mask score of a photograph, in log-odds, by "
        "which `mask` is raised for it",
    )
    refine_mask: bool = Field(
        False, description="whether mask scores around a region are refined by the pixels of the photograph"
    )
    review: Fraction | None = Field(
        None, description="image score from which a person must check the photograph; none = no review"
    )

    @property
    def lowest(self) -> float:
        """Image score below which a photograph is good."""
        return self.score if self.review is None else self.review

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.review is not None and self.review >= self.score:
            raise ValueError(f"review={self.review} is not below score={self.score}; expected a lower one")
        return self


class EncoderWeights(Config):
    """Origin of the initial weights of a network's encoder."""

    encoder: str = Field(description="name in `segdec.encoders`")
    weights: str = Field(description="imagenet, as keras.applications loads them, or the name of a file")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of the weights file")
    licence: str | None = Field(None, description="of the weights, if known")
    trainable: Literal["frozen", "top", "all"] = Field(description="part that training may have changed")


MAX_FACTOR = 1e6
Factor = Annotated[float, Field(gt=0.0, le=MAX_FACTOR)]


class SizeErrors(Config):
    """How much the true sizes of defects may differ from the measured ones.

    The true size is at least the first number times that of the defect's mask, and at most the second number
    times that of the pixels which may belong to it (`segdec.plan.defects`). Measured on photographs that were
    not used to train the network that predicted them.
    """

    length: tuple[Factor, Factor]
    width: tuple[Factor, Factor]
    area: tuple[Factor, Factor]
    defects: Annotated[int, Field(ge=1)] = Field(description="number of defects that were compared")


class ModelConfig(Config):
    """Everything that inference needs except the weights. Class 0 is good."""

    network: NetworkConfig
    input: InputConfig
    classes: Annotated[tuple[str, ...], Field(min_length=2)]
    calibration: Calibration = Calibration()
    thresholds: Thresholds = Thresholds()
    size_errors: SizeErrors | None = Field(
        None, description="errors of measured sizes; absent: not compared with masks"
    )

    def with_mask_refinement(self, mask_share: float, *, refine: bool) -> Self:
        """Returns the configuration with other `mask_share` and `refine_mask`."""
        changes = {"mask_share": mask_share, "refine_mask": refine}
        return self.model_copy(update={"thresholds": self.thresholds.model_copy(update=changes)})

    @property
    def labels(self) -> tuple[str, ...]:
        """Possible labels of a photograph: the classes, and `review` if it has a threshold."""
        return self.classes if self.thresholds.review is None else (*self.classes, REVIEW)

    @property
    def tile_overlap(self) -> int:
        """Minimum overlap of neighbouring tiles, px: `overlap_px`, else the receptive field."""
        overlap, reason = self.input.overlap_px, "overlap_px"
        if overlap is None:
            overlap = -(-self.network.receptive_field // STRIDE) * STRIDE
            reason = "the network's receptive field"
        height, width = self.input.size
        if overlap >= min(height, width):
            raise ValueError(
                f"tiles of {height} × {width} px cannot overlap by {overlap} px ({reason}); expected less "
                "than a tile's side: set larger input.height and input.width or a smaller input.overlap_px"
            )
        return overlap

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.input.policy == "tile":
            _ = self.tile_overlap  # raises if tiles are too small
        if len(self.classes) != self.network.num_classes:
            raise ValueError(
                f"{len(self.classes)} classes {self.classes} for a network of {self.network.num_classes}; "
                f"expected the same number: set network.num_classes to {len(self.classes)}"
            )
        if self.network.mask_classes and len(self.classes) == 2:
            raise ValueError(
                f"network.mask_classes with only one defect class, '{self.classes[1]}'; expected two or "
                "more: set network.mask_classes to false, or name the defect classes in the data set (and "
                "remove data.merge_defects)"
            )
        for name in filter(is_reserved_class, self.classes):
            raise ValueError(f"a class has the name '{name}', which is reserved; rename it in the data set")
        return self


_SHORT = reprlib.Repr()  # of values of any depth and length
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = 20
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 200


def config_error(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Converts a validation error to one line per field; suggests a known key for an unknown one."""
    lines = []
    for detail in error.errors():
        loc, message = detail["loc"], detail["msg"].removeprefix("Value error, ")
        where = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in ".".join(map(str, loc)))
        if not where:  # the error concerns the whole configuration
            lines.append(f"{model.__name__}: {message}")
        elif detail["type"] == "extra_forbidden":
            siblings = _model_at(loc[:-1], model).model_fields
            known = [".".join(map(str, (*loc[:-1], name))) for name in siblings]
            lines.append(f"{where}: unknown key. Did you mean '{nearest_name(where, known + _keys(model))}'?")
        elif isinstance(detail["input"], dict | list | tuple):  # the message names what matters
            lines.append(f"{where}: {message}")
        else:
            lines.append(f"{where}: {message}{_describe_value(detail['input'])}")
    return ConfigError("\n".join(lines))


def _describe_value(value: Any) -> str:
    try:
        return f" (got {_SHORT.repr(value):.200})"
    except ValueError:  # a number of more than 4300 digits
        return ""


def nearest_key(name: str, model: type[BaseModel]) -> str:
    """Returns the dotted field name of `model` that is most similar to `name`."""
    return nearest_name(name, _keys(model))


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _keys(field.annotation, f"{prefix}{name}.")
    return keys


def _model_at(place: tuple[int | str, ...], model: type[BaseModel]) -> type[BaseModel]:
    """Returns the model of the value at `place`, which may be in dictionaries and tuples."""
    annotation: Any = model
    for key in place:
        options = get_args(annotation) or (annotation,)
        found = next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)
        if found is not None and key in found.model_fields:
            annotation = found.model_fields[str(key)].annotation
        elif get_origin(annotation) is dict:
            annotation = options[1]
        elif get_origin(annotation) is tuple:
            annotation = options[0]
    options = get_args(annotation) or (annotation,)
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), model)
