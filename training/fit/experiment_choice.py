"""What to train, chosen by facts: every setting with its reason, in words. A pure function."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from training.config import ExperimentConfig
from training.fit.dataset_profile import DatasetProfile, ReadOptions
from training.formatting import count_of, format_percent

Settings = dict[str, Any]

FEW_DEFECTIVE, MANY_DEFECTIVE = 10, 100
"""Defective training photographs below which made-up defects are added, and from which on the decision
needs no prior from the mask."""

MIN_DEFECT_PX = 5.0
"""Side that the smallest defect keeps in the input, px."""

DEFAULT_AREA = 512 * 512
"""Pixels of the input where nothing asks for more: what two CPU cores train on in minutes."""

MIN_AREA = 128 * 128
"""Pixels below which an input is not made for the sake of speed."""

ENCODER_AREA = 256 * 256
"""Pixels of the input to which smaller photographs are enlarged for an encoder: it was trained on such sizes,
and its features are too coarse for what is smaller."""

MAX_AREA = 4 * DEFAULT_AREA
"""Pixels of the input above which the network sees tiles, or what is scaled down where there can be none."""

MIN_SIDE = 32
SIDES = 16
"""Sides of an input are multiples of it: the stride of the encoder's features."""

TILE, TILE_OVERLAP = 512, 64

BYTES_A_PIXEL = 17
"""Features of `mobilenet` and a mask, for each pixel of an input."""

MEMORY_SHARE = 0.4
"""Of the machine's memory that kept features and images may take."""

SEED = 0


@dataclass(frozen=True)
class Reason:
    """Why something is as it is: what it is about, and a sentence."""

    topic: str
    text: str


@dataclass(frozen=True)
class ExperimentChoice:
    """What to train but for its length, and why.

    Attributes:
        settings: Of the experiment, as an experiment file holds them.
        reasons: In the order in which they are read.
        shares: By stage: its part of the steps.
        area: Pixels of the network's input.
    """

    settings: Settings
    reasons: tuple[Reason, ...]
    shares: dict[str, float]
    area: int

    def config(self, steps: dict[str, int], **others: Any) -> ExperimentConfig:
        """Returns the experiment with stages of these steps."""
        stages = {
            name: {**stage, "steps": steps.get(name, 0)} for name, stage in self.settings["stages"].items()
        }
        return ExperimentConfig(**{**self.settings, "stages": stages, **others})


@dataclass(frozen=True)
class Resources:
    """What there is to train with.

    Attributes:
        encoder_weights: As those of an experiment; None = there are none.
        no_encoder: Why there are none; empty where there are.
        memory_bytes: What the process may take.
    """

    encoder_weights: str | None
    no_encoder: str = ""
    memory_bytes: int = 8 << 30


def choose_experiment(
    profile: DatasetProfile,
    defective: tuple[int, ...],
    forms: int,
    resources: Resources,
    default_area: int = DEFAULT_AREA,
) -> ExperimentChoice:
    """Chooses all settings but the length of the stages.

    Args:
        survey: The facts, of the annotations those of the photographs that train.
        defective: Defective photographs in train, val and test.
        forms: Training photographs.
        means: What there is to train with.
        usual: Pixels of the input where nothing asks for more.
    """
    learnt = defective[0]
    masked = profile.masks + profile.boxes > 0
    reasons, augmentation = _regime(profile, learnt, masked=masked, evaluated=defective[1] > 0)
    made_up = bool(augmentation)
    has_encoder = resources.encoder_weights is not None
    network, why = _network(learnt, resources)
    size, why_size = _input(profile, default_area, masked=masked, made_up=made_up, has_encoder=has_encoder)
    channels, why_colour = _colour(profile)
    if channels == 1 and profile.stored_in_colour:
        size["convert_color"] = True
    network["input_channels"] = channels
    stages, shares, why_stages = _stages(has_encoder=has_encoder, places=masked or made_up)
    if "segment" not in shares:
        network["gradient_gate"] = False
    if not has_encoder:
        augmentation |= {"brightness": 0.1, "contrast": 0.3}
    area = (size.get("height") or profile.height) * (size.get("width") or profile.width)
    if not has_encoder:
        network["mask_stride"] = 2 if area <= 256 * 256 else 4
    settings: Settings = {
        "seed": SEED,
        "batch_size": 4,
        "ema_decay": 0.99,
        "checkpoint_every": 1000,
        "network": network,
        "input": size,
        "data": {
            "layout": profile.layout,
            "root": profile.root,
            "cache_mb": _cache_mb(area, forms, resources),
        },
        "target": {"dilation_px": 3, "positive_weight": 3.0},
        "augmentation": augmentation,
        "stages": stages,
    }
    if profile.merged:
        settings["data"]["merge_defects"] = True
    data, white_level = _reading(profile.read_options)
    settings["data"] |= data
    settings["input"] |= white_level
    if resources.encoder_weights is not None:
        settings["encoder_weights"] = resources.encoder_weights
    told = [
        reasons,
        Reason("network", why),
        Reason("input", why_size),
        Reason("colour", why_colour),
        Reason("changes", _changes(augmentation, has_encoder=has_encoder)),
        Reason("stages", why_stages),
    ]
    return ExperimentChoice(settings, tuple(told), shares, area)


def _reading(read_options: ReadOptions) -> tuple[Settings, Settings]:
    """What the user said, as settings of `data` and of `input`; what was not said is left out."""
    said = {
        name: value for name, value in asdict(read_options).items() if value != getattr(ReadOptions(), name)
    }
    white_level = {"white_level": said.pop("white_level")} if "white_level" in said else {}
    return said, white_level


def _regime(
    profile: DatasetProfile, learnt: int, *, masked: bool, evaluated: bool
) -> tuple[Reason, Settings]:
    """How many defects there are to learn from, and what stands in for those that are missing."""
    shown = f"{count_of(learnt, 'defective photograph')} to learn from, {_annotation(profile)}"
    if not learnt:
        text = (
            "no defect to learn from: every other photograph gets a made-up one (augmentation.synthetic 0.5)"
        )
        return Reason("regime", f"good alone: {text}"), {"synthetic": 0.5}
    if (
        learnt < FEW_DEFECTIVE or not evaluated
    ):  # without a defect in validation weights are chosen by made-up ones
        why = "few" if learnt < FEW_DEFECTIVE else "some, but no defect to validate by"
        if profile.masks:
            text = "made-up and transplanted defects are added (augmentation.synthetic 0.25, transplant 0.25)"
            return Reason("regime", f"{why}: {shown}, so {text}"), {"synthetic": 0.25, "transplant": 0.25}
        text = "made-up defects are added (augmentation.synthetic 0.25)"
        return Reason("regime", f"{why}: {shown}, so {text}"), {"synthetic": 0.25}
    if not masked:
        return Reason("regime", f"labels: {shown}: the mask is learnt from these alone"), {}
    if learnt < MANY_DEFECTIVE:
        return Reason("regime", f"some: {shown}: enough without made-up ones"), {}
    return Reason("regime", f"many: {shown}: the decision is learnt without a prior from the mask"), {}


def _annotation(profile: DatasetProfile) -> str:
    """How the defects of the training photographs are known."""
    kinds = {"with masks": profile.masks, "with boxes": profile.boxes, "with labels alone": profile.labels}
    known = {kind: number for kind, number in kinds.items() if number}
    if len(known) == 1:
        return next(iter(known))
    return ", ".join(f"{number} {kind}" for kind, number in known.items())


def _network(learnt: int, resources: Resources) -> tuple[Settings, str]:
    if resources.encoder_weights is not None:
        source = (
            "of ImageNet" if resources.encoder_weights == "imagenet" else f"of {resources.encoder_weights}"
        )
        prior = {"mask_prior": 0.0} if learnt >= MANY_DEFECTIVE else {}
        text = f"mobilenet: an encoder that has seen a million photographs, its weights {source}, held still"
        return {"preset": "mobilenet", **prior}, text
    network: Settings = {"preset": "compact", "normalization": "instance", "gradient_gate": True}
    if learnt < MANY_DEFECTIVE:
        network["mask_prior"] = 3.0
    return network, f"compact, from random weights: {resources.no_encoder}"


def _colour(profile: DatasetProfile) -> tuple[int, str]:
    if profile.coloured:
        return 3, "colours differ: the network sees them (network.input_channels 3)"
    if profile.stored_in_colour:
        return 1, "grey, though stored in colour: one channel"
    return 1, "grey: one channel"


def _input(
    profile: DatasetProfile, default_area: int, *, masked: bool, made_up: bool, has_encoder: bool
) -> tuple[Settings, str]:
    """Policy and size, so that the smallest defect keeps five pixels."""
    height, width = profile.height, profile.width
    area, smallest = height * width, profile.smallest_px
    needed = min(1.0, MIN_DEFECT_PX / smallest) if smallest else 0.0
    most = max(1.0, math.sqrt(ENCODER_AREA / area)) if has_encoder else 1.0
    scale = max(needed, min(most, math.sqrt(default_area / area)))
    if scale**2 * area > MAX_AREA and masked and not profile.labels:  # of tiles each needs its mask
        text = (
            f"tiles of {TILE} × {TILE} px: scaled down to one input, the smallest defect ({smallest:.0f} px "
            f"across) would keep fewer than {MIN_DEFECT_PX:.0f} px"
        )
        return {"policy": "tile", "height": TILE, "width": TILE, "overlap_px": TILE_OVERLAP}, text
    scale = min(scale, math.sqrt(MAX_AREA / area))
    kept = _kept(smallest, scale)
    if default_area < DEFAULT_AREA and scale < 1.0:
        kept += "; smaller than usual, since time is short"
    if scale > 1.0:
        kept += "; enlarged, since the encoder was trained on photographs of this size"
    if profile.one_size and scale == 1.0:
        return {"policy": "native"}, f"native, {width} × {height} px: all have one size, small enough{kept}"
    rows, columns = (max(MIN_SIDE, SIDES * math.ceil(scale * side / SIDES)) for side in (height, width))
    policy = "resize" if profile.one_shape or made_up else "letterbox"
    why = {
        True: "all have about the same proportions",
        False: "proportions differ, and made-up defects must not lie on padding",
    }[profile.one_shape]
    if policy == "letterbox":
        why = "proportions differ and are kept"
    return {
        "policy": policy,
        "height": rows,
        "width": columns,
    }, f"{policy} to {columns} × {rows} px: {why}{kept}"


def _kept(smallest: float | None, scale: float) -> str:
    if smallest is None:
        return "; no mask tells how small defects are"
    kept = f"; the smallest defect, {smallest:.0f} px across, keeps {smallest * scale:.0f}"
    if smallest * scale < MIN_DEFECT_PX - 0.5:
        kept += f", fewer than {MIN_DEFECT_PX:.0f}: such small ones may go unseen"
    return kept


def _changes(augmentation: Settings, *, has_encoder: bool) -> str:
    given = "; ".join(
        f"{name} {augmentation[name]}" for name in ("synthetic", "transplant") if name in augmentation
    )
    also = f", and defects are given ({given})" if given else ""
    if has_encoder:
        return f"flips alone, so that the encoder's features are computed once{also}"
    return f"flips, brightness and contrast: a network from random weights needs variety{also}"


def _stages(*, has_encoder: bool, places: bool) -> tuple[Settings, dict[str, float], str]:
    """Settings and share of the steps of each stage; those of the experiments that were measured."""
    rates = (3e-3, 3e-4, 1.5e-4) if has_encoder else (1e-3, 1e-3, 5e-4)
    names = ("segment", "decision", "joint")
    schedule = {"kind": "poly"}
    if not places:
        stages = {"joint": {"learning_rate": rates[0] / 2, "schedule": schedule}}
        return (
            stages,
            {"joint": 1.0},
            "joint alone: there is no mask or box that the stage segment could learn from",
        )
    parts = (0.6, 0.2, 0.2) if has_encoder else (0.6, 0.15, 0.25)
    stages = {
        name: {"learning_rate": rate, "schedule": schedule} for name, rate in zip(names, rates, strict=True)
    }
    shares = dict(zip(names, parts, strict=True))
    told = ", ".join(f"{name} {format_percent(share)}" for name, share in shares.items())
    return stages, shares, f"{told} of the planned steps; the rate falls to 0 at the end of each"


def _cache_mb(area: int, forms: int, resources: Resources) -> int:
    """Room for the features of all photographs in all their four forms, as far as there is memory."""
    needed = 4 * forms * area * BYTES_A_PIXEL / 1e6 + 1024
    return int(min(needed, MEMORY_SHARE * resources.memory_bytes / 1e6))
