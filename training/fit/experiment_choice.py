"""Choice of the experiment from the profile of the data set; every setting has a reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from segdec.runtime.counts import count_of
from training.config import ExperimentConfig
from training.data.augmentation import rotations_keeping_size
from training.fit.dataset_profile import DatasetProfile, Orientation, ProfileOptions
from training.formatting import format_percent

ExperimentSettings = dict[str, Any]

FEW_DEFECTIVE, MANY_DEFECTIVE = 10, 100
"""Defective training images below which synthetic defects are added, and from which a decision network
without pretrained encoder needs no prior from the mask."""

MIN_DEFECT_PX = 5.0
"""Minimum side of the smallest defect in the input, px."""

DEFAULT_AREA = 512 * 512
"""Pixels of the input by default: two CPU cores train on them in minutes."""

MIN_AREA = 128 * 128
"""Minimum pixels of an input that is shrunk for speed, without an encoder."""

ENCODER_AREA = 256 * 256
"""Minimum pixels of an encoder's input, to which smaller images are enlarged."""

HEADS_AREA, HEADS_DEFECT_PX = 352 * 352, 12.0
"""Maximum pixels of an input for heads that are trained on an encoder's features, which overfit more pixels
and take longer; up to the default where the smallest defect would keep a smaller side, px."""

MAX_AREA = 4 * DEFAULT_AREA
"""Maximum pixels of the input; larger images are tiled, or shrunk if tiles are impossible."""

MIN_SHORT_SIDE = 128
"""Minimum of the short side of an input that is shrunk, px: thin photographs keep their defects."""

MIN_SIDE = 32
SIDES = 16
"""Sides of an input are multiples of this, the stride of the encoder's features."""

TILE, TILE_OVERLAP = 512, 64

BYTES_PER_PIXEL = 33
"""Size of the features of `resnet50`, the largest, and of a mask per pixel of an input."""

MEMORY_SHARE = 0.4
"""Share of the memory for cached features and images."""

SEED = 0

MEMORY, MEMORY_BESIDE_HEADS = 1000, 500
"""Patches of good surface that a network with an encoder and folds remembers."""

ROTATED_MEMORY, ROTATED_MEMORY_BESIDE_HEADS = 6000, 1500
"""The same for parts in any orientation."""

ENCODER_STAGE: ExperimentSettings = {
    "learning_rate": 2e-3,
    "weight_decay": 1e-3,
    "decision_weight": 0.3,
    "schedule": {"kind": "cosine"},
}
"""The stage of a network with a frozen encoder."""


@dataclass(frozen=True)
class ExperimentChoice:
    """The chosen experiment, without the lengths of its stages, and a sentence about each topic.

    Attributes:
        settings: Settings as in an experiment file.
        shares: Share of the steps of each stage.
        area: Pixels of the network's input.
        rotations: Number of rotations of a training photograph by right angles, with the one by 0°.
    """

    settings: ExperimentSettings
    reasons: Mapping[str, str]
    shares: dict[str, float]
    area: int
    rotations: int

    def config(self, steps: dict[str, int], **others: Any) -> ExperimentConfig:
        """Returns the experiment with these steps per stage."""
        own = self.settings["stages"].items()
        stages = {name: {**stage, "steps": steps.get(name, 0)} for name, stage in own}
        return ExperimentConfig(**{**self.settings, "stages": stages, **others})


@dataclass(frozen=True)
class Resources:
    """Resources of the training.

    Attributes:
        encoder_weights: `encoder_weights` of the experiment; None without an encoder.
        no_encoder: Why there is no encoder; otherwise empty.
        replicas: Replicas of the network, which divide the batch: one on each GPU.
    """

    encoder_weights: str | None
    no_encoder: str = ""
    memory_bytes: int = 8 << 30
    encoder: str = "mobilenet"
    replicas: int = 1


@dataclass(frozen=True)
class _Conditions:
    """What the choice depends on. Each of the `heads` is for a fold; without, there is only a memory."""

    profile: DatasetProfile
    resources: Resources
    training_defects: int
    validated: bool
    heads: int

    @property
    def masked(self) -> bool:
        """Whether any defect has a mask or a box."""
        return self.profile.masks + self.profile.boxes > 0

    @property
    def has_encoder(self) -> bool:
        """Whether the network has a pretrained encoder."""
        return self.resources.encoder_weights is not None

    @property
    def rotates(self) -> bool:
        """Whether photographs are rotated by right angles."""
        orientation = self.profile.orientation
        return orientation is Orientation.ARBITRARY or (
            orientation is Orientation.ISOTROPIC and self.heads > 0
        )


def choose_experiment(
    profile: DatasetProfile,
    defective: tuple[int, ...],
    images: int,
    resources: Resources,
    default_area: int = DEFAULT_AREA,
    *,
    heads: int = 1,
) -> ExperimentChoice:
    """Chooses all settings except the lengths of the stages.

    `profile` has the annotation counts of the `images` training images; `defective` has the numbers of
    defective images in train, val and test. `heads` is the number of heads, each for a fold; without heads
    the network has only a memory of good surface.
    """
    known = _Conditions(profile, resources, defective[0], heads > 1 or defective[1] > 0, heads)
    regime, added_defects = _data_regime(known)
    size, why_size = _input(known, default_area, synthetic=bool(added_defects))
    height, width = size.get("height") or profile.height, size.get("width") or profile.width
    rotations = len(rotations_keeping_size((height, width))) if known.rotates else 1
    augmentation = added_defects | ({"rotate": True} if known.rotates else {})
    if not known.has_encoder:
        augmentation |= {"brightness": 0.1, "contrast": 0.3}
    stages, shares, why_stages = _stages(known, synthetic=bool(added_defects))
    network, why_network = _network(known)
    if "segment" not in shares:  # the decision trains the segmentation network too
        network["gradient_gate"] = False
    if not known.has_encoder:
        network["mask_stride"] = 2 if height * width <= 256 * 256 else 4
    network["input_channels"], why_colour = _colour(profile)
    reasons = {
        "regime": regime,
        "network": why_network,
        "input": why_size,
        "colour": why_colour,
        "changes": _describe_augmentation(augmentation, known),
        "stages": why_stages,
    }
    cache_mb = _cache_mb(height * width, images * rotations, resources)
    settings = {
        **_fixed_settings(known),
        "network": network,
        "input": size | _input_options(profile, network["input_channels"]),
        "data": _data(profile, cache_mb),
        "augmentation": augmentation,
        "stages": stages,
    }
    return ExperimentChoice(settings, reasons, shares, height * width, rotations)


def _fixed_settings(known: _Conditions) -> ExperimentSettings:
    weights = known.resources.encoder_weights
    return {
        "seed": SEED,
        "batch_size": _round_up(8 if known.has_encoder else 4, known.resources.replicas),
        "ema_decay": 0.99,
        "checkpoint_every": 1000,
        "target": {"dilation_px": 3, "positive_weight": 3.0},
        **({} if weights is None else {"encoder_weights": weights}),
    }


def _data(profile: DatasetProfile, cache_mb: int) -> ExperimentSettings:
    given = {
        option.name: value
        for option in fields(ProfileOptions)
        if option.name != "white_level" and (value := getattr(profile.options, option.name)) != option.default
    }
    merged = {"merge_defects": True} if profile.merged else {}
    return {"layout": profile.layout, "root": profile.root, "cache_mb": cache_mb, **merged, **given}


def _input_options(profile: DatasetProfile, channels: int) -> ExperimentSettings:
    white_level = profile.options.white_level
    return {
        **({"convert_color": True} if channels == 1 and profile.stored_in_colour else {}),
        **({} if white_level is None else {"white_level": white_level}),
    }


def _round_up(number: int, step: int) -> int:
    return math.ceil(number / step) * step


def _data_regime(known: _Conditions) -> tuple[str, ExperimentSettings]:
    """The amount of training defects, and the synthetic defects that are added."""
    profile, training_defects = known.profile, known.training_defects
    if not known.heads:
        text = "parts that differ from remembered good surface are defective"
        return f"good only: no defects in train: {text}", {}
    shown = f"{count_of(training_defects, 'defective photograph')} in train, {_annotation(profile)}"
    if not training_defects:
        text = "no defects in train: half of the photographs get a synthetic one (augmentation.synthetic 0.5)"
        return f"good only: {text}", {"synthetic": 0.5}
    if training_defects < FEW_DEFECTIVE or not known.validated:  # synthetic defects then select the weights
        why = "few" if training_defects < FEW_DEFECTIVE else "some, but no defect to validate"
        if profile.masks:
            text = "synthetic and transplanted ones are added (augmentation.synthetic 0.25, transplant 0.25)"
            return f"{why}: {shown}; {text}", {"synthetic": 0.25, "transplant": 0.25}
        text = "synthetic defects are added (augmentation.synthetic 0.25)"
        return f"{why}: {shown}; {text}", {"synthetic": 0.25}
    if not known.masked:
        return f"labels: {shown}: the mask is trained with labels only", {}
    number = "some" if training_defects < MANY_DEFECTIVE else "many"
    return f"{number}: {shown}: enough without synthetic ones", {}


def _annotation(profile: DatasetProfile) -> str:
    """The kinds of annotation of the defective training images."""
    kinds = {"with masks": profile.masks, "with boxes": profile.boxes, "with labels only": profile.labels}
    known = {kind: number for kind, number in kinds.items() if number}
    if len(known) == 1:
        return next(iter(known))
    return ", ".join(f"{number} {kind}" for kind, number in known.items())


def _network(known: _Conditions) -> tuple[ExperimentSettings, str]:
    network: ExperimentSettings
    resources, heads = known.resources, known.heads
    memory = MEMORY_BESIDE_HEADS if heads else MEMORY
    if known.profile.orientation is Orientation.ARBITRARY:
        memory = ROTATED_MEMORY_BESIDE_HEADS if heads else ROTATED_MEMORY
    if resources.encoder_weights is not None:
        source = "ImageNet" if resources.encoder_weights == "imagenet" else resources.encoder_weights
        text = f"{resources.encoder}: a pretrained, frozen encoder with weights of {source}"
        network = {"preset": "mobilenet", "encoder": resources.encoder}
        if not heads:
            text += f", with a memory of good surface (network.memory {memory})"
            return {**network, "heads": 0, "memory": memory}, text
        network["standardize_features"] = True
        if heads > 1:
            network |= {"heads": heads, "memory": memory}
            text += f", with {heads} heads, which are averaged, and a memory of good surface"
            text += f" (network.memory {memory}), which also finds unknown kinds of defects"
        if heads > 1 and known.training_defects >= FEW_DEFECTIVE:
            network["pooled_score"] = True
            text += "; the score includes a linear map of the features of the whole photograph "
            text += "(network.pooled_score)"
        if heads > 1 and len(known.profile.classes) > 2:
            network["pooled_classes"] = True
            text += "; the class of a defect comes from the encoder's features (network.pooled_classes)"
        if known.masked and known.training_defects >= FEW_DEFECTIVE:
            network["linear_mask"] = True
            text += "; masks begin as a linear map of the encoder's features (network.linear_mask)"
        return network, text
    network = {"preset": "compact", "normalization": "instance", "gradient_gate": True}
    if known.training_defects < MANY_DEFECTIVE:
        network["mask_prior"] = 3.0
    return network, f"compact, from random weights: {resources.no_encoder}"


def _colour(profile: DatasetProfile) -> tuple[int, str]:
    if profile.coloured:
        return 3, "colour: the network gets three channels (network.input_channels 3)"
    if profile.stored_in_colour:
        return 1, "grey, though stored in colour: one channel"
    return 1, "grey: one channel"


def _input(known: _Conditions, default_area: int, *, synthetic: bool) -> tuple[ExperimentSettings, str]:
    """Policy and size of the input, so that the smallest defect keeps `MIN_DEFECT_PX`."""
    profile = known.profile
    trains_heads = known.has_encoder and known.heads > 0
    height, width = profile.height, profile.width
    area, smallest = height * width, profile.smallest_px
    needed = min(1.0, MIN_DEFECT_PX / smallest) if smallest else 0.0
    highest = max(1.0, math.sqrt(ENCODER_AREA / area)) if known.has_encoder else 1.0
    allowed = float(default_area)
    if trains_heads:
        sufficient = area * (HEADS_DEFECT_PX / smallest) ** 2 if smallest else 0.0
        allowed = min(default_area, max(HEADS_AREA, sufficient))
    scale = max(needed, min(highest, math.sqrt(allowed / area)))
    if scale**2 * area > MAX_AREA and known.masked and not profile.labels:  # each tile needs its mask
        text = (
            f"tiles of {TILE} × {TILE} px: in one shrunk input, the smallest defect ({smallest:.0f} px "
            f"across) would keep fewer than {MIN_DEFECT_PX:.0f} px"
        )
        return {"policy": "tile", "height": TILE, "width": TILE, "overlap_px": TILE_OVERLAP}, text
    shortest = min(1.0, MIN_SHORT_SIDE / min(height, width))
    is_thin = scale < shortest
    scale = min(max(scale, shortest), math.sqrt(MAX_AREA / area))
    notes = _describe_scale(smallest, scale)
    if is_thin:
        notes += f"; not smaller, since the short side would have fewer than {MIN_SHORT_SIDE} px"
    elif default_area < DEFAULT_AREA and allowed == default_area and scale < 1.0:
        notes += "; smaller than usual, since there is little time"
    elif allowed < default_area and scale < 1.0:
        notes += "; small, since more pixels take longer and are overfitted"
    if scale > 1.0:
        notes += "; enlarged, since the encoder was trained on photographs of this size"
    if profile.one_size and scale == 1.0:
        return {"policy": "native"}, f"native, {width} × {height} px: all have the same size{notes}"
    rows, columns = (max(MIN_SIDE, SIDES * math.ceil(scale * side / SIDES)) for side in (height, width))
    policy, why = "letterbox", "aspect ratios differ and are kept"
    if profile.one_shape or synthetic:
        policy, why = "resize", "all have about the same aspect ratio"
    if synthetic and not profile.one_shape:
        why = "aspect ratios differ, and synthetic defects must not be placed on padding"
    elif trains_heads and not profile.one_shape:
        policy, why = "resize", "aspect ratios differ, but an encoder finds less on padded photographs"
    size = {"policy": policy, "height": rows, "width": columns}
    return size, f"{policy} to {columns} × {rows} px: {why}{notes}"


def _describe_scale(smallest: float | None, scale: float) -> str:
    if smallest is None:
        return "; without masks, the size of defects is unknown"
    text = f"; the smallest defect, {smallest:.0f} px across, keeps {smallest * scale:.0f}"
    if smallest * scale < MIN_DEFECT_PX - 0.5:
        text += f", fewer than {MIN_DEFECT_PX:.0f}: such small defects may be missed"
    return text


def _describe_augmentation(augmentation: ExperimentSettings, known: _Conditions) -> str:
    rotated = f"rotations by right angles, since good photographs {known.profile.orientation.value}"
    if not known.heads:
        return f"{rotated} (augmentation.rotate)" if known.rotates else "none"
    kinds = [f"{name} {augmentation[name]}" for name in ("synthetic", "transplant") if name in augmentation]
    also = f", and defects are added ({'; '.join(kinds)})" if kinds else ""
    if known.has_encoder and known.rotates:
        return f"flips, and {rotated} (augmentation.rotate){also}"
    if known.has_encoder:
        return f"only flips, so that encoder features are computed once{also}"
    return f"flips, brightness and contrast: a network from random weights needs variety{also}"


def _stages(known: _Conditions, *, synthetic: bool) -> tuple[ExperimentSettings, dict[str, float], str]:
    """Settings of each stage, its share of the steps, and the reason."""
    if not known.heads:
        return {}, {}, "none: the memory is built from the photographs, without training"
    if known.has_encoder:
        stages = {"joint": ENCODER_STAGE}
        return stages, {"joint": 1.0}, "joint only: with a frozen encoder, both networks train together"
    schedule = {"kind": "poly"}
    if not (known.masked or synthetic):
        stages = {"joint": {"learning_rate": 5e-4, "schedule": schedule}}
        return stages, {"joint": 1.0}, "joint only: the stage segment needs masks or boxes"
    shares = {"segment": 0.6, "decision": 0.15, "joint": 0.25}
    rates = {"segment": 1e-3, "decision": 1e-3, "joint": 5e-4}
    stages = {name: {"learning_rate": rate, "schedule": schedule} for name, rate in rates.items()}
    listed = ", ".join(f"{name} {format_percent(share)}" for name, share in shares.items())
    return stages, shares, f"{listed} of the planned steps; the learning rate of each falls to 0"


def _cache_mb(area: int, images: int, resources: Resources) -> int:
    """Size of the cache for the features of all images, up to the memory limit."""
    needed = images * area * BYTES_PER_PIXEL / 1e6 + 1024
    return int(min(needed, MEMORY_SHARE * resources.memory_bytes / 1e6))
