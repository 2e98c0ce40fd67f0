"""The configuration of an experiment: every setting of a training run, declared once."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from segdec.config import Config, Fraction, InputConfig, NetworkConfig, OddSide
from segdec.encoders import SEGDECNET
from segdec.errors import ImageError
from segdec.images import DEFAULT_MAX_PIXELS, MAX_PIXEL_LIMIT, encode_png, read_mask
from training.run_name import PATTERN, check_run_name

Count = Annotated[int, Field(gt=0)]
Steps = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]

MAY_CHANGE = "may change when a run is resumed"
T = TypeVar("T")
Changeable = Annotated[T, MAY_CHANGE]
"""Type of a setting that may change when a run is resumed; all others determine the result."""

PNG_BASE64 = "iVBORw0KGgo"
"""Prefix of the base64 of every PNG, which no path has."""

Strategy = Literal["auto", "single", "mirrored", "central-storage", "multi-worker", "parameter-server"]

CLUSTERED = ("multi-worker", "parameter-server")
"""Strategies of several processes."""

Sampling = Literal["alternate", "frequency", "shuffled"]

EncoderTrainable = Literal["frozen", "top", "all"]

DEVICES = r"cpu:[1-9]\d*|gpu:\d+(,\d+)*"
"""Devices: a number of logical CPUs, or indices of GPUs."""

MaskValues = dict[str, Annotated[int, Field(ge=1, le=255)]]


def check_distinct(values: MaskValues) -> MaskValues:
    """Returns the values; raises ValueError if two are equal."""
    if len(set(values.values())) < len(values):
        raise ValueError(f"two classes have the same value; expected different ones: {values}")
    return values


class DataConfig(Config):
    """The data of a run."""

    layout: Changeable[str] = Field(
        "folder", description="layout of the files: python -m datasets inspect --help"
    )
    root: Changeable[str] = Field(
        "data", description="folder of the data set; for shards also a URL: gs://bucket/parts"
    )
    reviewed: Changeable[tuple[Path, ...]] = Field(
        (), description="folders written by python -m api export-reviewed; their photographs are added"
    )
    test_root: Changeable[Path | None] = Field(
        None, description="separate folder of test photographs in the same layout"
    )
    splits: Changeable[Path | None] = Field(None, description="file of lines 'train|val|test  name'")
    supervision: Changeable[Path | None] = Field(
        None,
        description="file of lines 'mask|box|label  name': part of each annotation used in training; "
        "photographs that are not listed keep their annotations",
    )
    merge_defects: bool = Field(False, description="merge all defect classes into one, 'defect'")
    mask_threshold: Annotated[int, Field(ge=0, le=254)] | None = Field(
        None,
        description="pixels above it are defective; none = the layout's rule, for masks with two values only",
    )
    mask_values: Annotated[MaskValues, AfterValidator(check_distinct)] | None = Field(
        None, description="value of each defect class in mask files; none = that of the photograph"
    )
    invert_masks: bool | None = Field(
        None,
        description="whether mask files are above 0 where the photograph is good; none = no, but an error if "
        "most of them mark most of their photograph",
    )
    annotations_before_rotation: bool | None = Field(
        None,
        description="whether annotations were drawn on photographs without their EXIF rotation; none = no, "
        "but a warning if annotations do not show it",
    )
    annotator: str | None = Field(
        None,
        description="which of several annotations of one photograph counts: 'any', 'all', 'latest', or an "
        "annotator; none = they must agree whether it is good",
    )
    good_labels: tuple[str, ...] = Field(
        (), description="labels or folders of good photographs, for names that do not show it"
    )
    defect_labels: tuple[str, ...] = Field(
        (), description="labels that are classes of defects although they may mean good"
    )
    strict: bool = Field(
        False,
        description="shapes that cannot be used, and files with several pictures, are problems of their "
        "photographs",
    )
    max_pixels: Changeable[Annotated[int, Field(gt=0, le=MAX_PIXEL_LIMIT)]] = Field(
        DEFAULT_MAX_PIXELS,
        description="maximum height × width of a photograph. It is held in memory, also with tiles: "
        "prediction takes 10 bytes per grey pixel, 17 with mask_stride = 1",
    )
    allowed_leaks: Changeable[tuple[str, ...]] = Field(
        (),
        description="names of photographs or groups that may occur in two splits. For others a duplicate in "
        "another split is an error, a near duplicate a warning",
    )
    skip_broken: Changeable[bool] = Field(
        False, description="skip unusable photographs and list them in the run folder, instead of stopping"
    )
    cache_mb: Changeable[Steps] = Field(
        2048, description="memory of each process for images and features, MB; the rest goes to cache_folder"
    )
    cache_folder: Changeable[Path | None] = Field(
        None, description="folder for what exceeds cache_mb, in a file that disappears with the process"
    )
    disk_cache_mb: Changeable[Steps] = Field(50_000, description="size limit of the file in cache_folder, MB")
    checked_folder: Changeable[Path | None] = Field(
        None, description="folder for the results of file checks; none = .checked in the folder of all runs"
    )
    recheck: Changeable[bool] = Field(False, description="read all files at the start, also unchanged ones")
    drop_remainder: Changeable[bool] = Field(
        False,
        description="drop the remainder of a batch that the replicas do not divide, instead of an error",
    )
    decode_threads: Changeable[Count] = Field(2, description="threads per replica that read and augment")


class TargetConfig(Config):
    """Conversion of masks to targets of the segmentation network."""

    dilation_px: OddSide = Field(5, description="side of the dilation of each defect, px, odd; 1 = none")
    dilation_shape: Literal["diamond", "square"] = Field("diamond", description="shape of the dilation")
    dilation_at: Literal["input", "photograph"] = Field(
        "input", description="where masks are dilated: at the input, or before the photograph is scaled"
    )
    window_px: Count | None = Field(
        None,
        description="side of the window, input px, that targets and weights are averaged over; none = a cell",
    )
    window_border: Literal["cut", "reflect"] = Field(
        "cut", description="windows at the border: cut to the image, or on the reflected image"
    )
    positive_weight: Positive = Field(
        1.0,
        description="weight of a defective pixel's loss; background has 1. It is applied once: in the "
        "cross-entropy with weighting = uniform, in the pixel weights with distance",
    )
    weighting: Literal["uniform", "distance"] = Field(
        "uniform",
        description="distance: a defective pixel's weight rises with its depth up to positive_weight",
    )
    distance_power: Positive = Field(1.0, description="distance: exponent of the relative distance")

    @property
    def cross_entropy_weight(self) -> float:
        """Factor of a defective pixel's cross-entropy: 1 if the pixel weights include `positive_weight`."""
        return self.positive_weight if self.weighting == "uniform" else 1.0


class LossConfig(Config):
    """Terms of the segmentation loss in addition to the cross-entropy."""

    focal_gamma: NonNegative = Field(
        0.0, description="factor (1 − p)^gamma of the cross-entropy, p = probability of the truth; 0 = none"
    )
    dice_weight: NonNegative = Field(0.0, description="weight of the Dice loss of each image; 0 = none")


class AugmentationConfig(Config):
    """Random changes of training images and their masks."""

    flip_horizontal: bool = True
    flip_vertical: bool = True
    rotate: bool = Field(False, description="rotation by a multiple of 90°, or 180° if not square")
    shift: Fraction = Field(0.0, description="maximum shift along each side, as a fraction of it")
    scale: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(0.0, description="maximum relative change of size")
    brightness: Fraction = Field(0.0, description="maximum shift, as a fraction of the full range")
    contrast: Fraction = Field(0.0, description="maximum relative change around the image's mean")
    noise: Fraction = Field(0.0, description="maximum standard deviation of added noise, of the full range")
    blur_px: NonNegative = Field(0.0, description="maximum standard deviation of a Gaussian blur, px")
    synthetic: Fraction = Field(
        0.0,
        description="probability that a good image with a synthetic defect replaces a defective one "
        "(shuffled: that a good image gets one); above 0, defective photographs are optional",
    )
    feature_noise: Fraction = Field(
        0.0, description="probability that a synthetic defect is noise in the features of a frozen encoder"
    )
    transplant: Fraction = Field(
        0.0,
        description="probability that a defective image is replaced by a good one with its defect, "
        "rotated, scaled and moved (shuffled: that a good image gets such a defect)",
    )

    @property
    def only_flips_and_rotations(self) -> bool:
        """Whether images without an added defect are only flipped and rotated."""
        allowed = {"flip_horizontal", "flip_vertical", "rotate", "synthetic", "transplant", "feature_noise"}
        return self.model_dump(exclude=allowed) == AugmentationConfig().model_dump(exclude=allowed)


class ScheduleConfig(Config):
    """Learning-rate schedule of a stage."""

    kind: Literal["constant", "poly", "staircase", "cosine", "piecewise"] = "constant"
    power: Positive = Field(0.9, description="poly: rate · (1 − step/steps)^power")
    decay_rate: Positive = Field(0.1, description="staircase: factor of each stair")
    decay_steps: Count = Field(1000, description="staircase: steps per stair")
    boundaries: tuple[Count, ...] = Field((), description="piecewise: last steps of the pieces, ascending")
    factors: tuple[Positive, ...] = Field((), description="piecewise: factor of the rate after each boundary")
    warmup_steps: Steps = Field(0, description="first steps, in which the rate rises linearly")

    @model_validator(mode="after")
    def _check_pieces(self) -> Self:
        given = bool(self.boundaries or self.factors)
        if (self.kind == "piecewise") != given or len(self.boundaries) != len(self.factors):
            raise ValueError(
                f"kind={self.kind} with {len(self.boundaries)} boundaries and {len(self.factors)} factors; "
                "expected one factor per boundary with piecewise, and none with another kind"
            )
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError(f"boundaries {list(self.boundaries)} do not ascend; expected ascending steps")
        return self


class StageConfig(Config):
    """One stage: its length, its optimiser and its losses."""

    steps: Steps = Field(0, description="optimiser steps; 0 skips the stage")
    optimizer: Literal["sgd", "adam", "adamw"] = Field(
        "adam", description="adamw = adam with decoupled weight_decay, the default for all optimisers"
    )
    learning_rate: Positive = 1e-3
    momentum: Fraction = Field(0.9, description="sgd only")
    weight_decay: NonNegative = Field(
        0.0, description="weight decay of convolution and dense kernels, not of norm scales and biases"
    )
    weight_decay_kind: Literal["decoupled", "l2"] = Field(
        "decoupled",
        description="decoupled: each step subtracts learning rate · weight_decay · kernel; l2: the loss "
        "includes weight_decay / 2 · the sum of squares",
    )
    schedule: ScheduleConfig = ScheduleConfig()
    clip_norm: Positive | None = Field(None, description="maximum norm of the global batch's gradient")
    accumulate: Count = Field(
        1, description="number of equal parts of a step's images, to save memory; their gradients are added"
    )
    balance: Literal["fixed", "dynamic"] = Field(
        "fixed",
        description="dynamic: factors λ of the segmentation loss and 1 − λ of the decision loss, in addition "
        "to the weights below; λ falls from 1 to 0 over the stage",
    )
    segmentation_weight: NonNegative = Field(1.0, description="factor of the segmentation loss, if trained")
    decision_weight: NonNegative = Field(1.0, description="factor of the decision loss, if trained")

    @model_validator(mode="after")
    def _check_weight_decay(self) -> Self:
        if self.optimizer == "adamw" and self.weight_decay_kind == "l2":
            raise ValueError(
                "optimizer=adamw with weight_decay_kind=l2; expected adam: adamw is adam with decoupled decay"
            )
        return self


class StagesConfig(Config):
    """The stages in their order."""

    segment: StageConfig = StageConfig()
    decision: StageConfig = StageConfig()
    joint: StageConfig = StageConfig()

    def __getitem__(self, name: str) -> StageConfig:
        """Returns the settings of the stage of this name."""
        settings: StageConfig = getattr(self, name)
        return settings

    @property
    def steps(self) -> dict[str, int]:
        """Steps of each stage that is trained."""
        return {name: settings.steps for name, settings in self if settings.steps}

    @model_validator(mode="after")
    def _check_balance(self) -> Self:
        for name in ("segment", "decision"):
            if self[name].balance == "dynamic":
                raise ValueError(
                    f"{name}.balance=dynamic, but this stage trains one loss; expected it for joint"
                )
        return self


class ThresholdConfig(Config):
    """How the thresholds of a trained model are chosen; `training calibrate` chooses them again."""

    miss_cost: Changeable[Annotated[float, Field(ge=1e-6, le=1e6)]] = Field(
        10.0, description="cost of a missed defect, in false alarms"
    )
    defect_rate: Changeable[Share | None] = Field(
        None,
        description="share of defective photographs in production, for which the score is a probability; "
        "none = that of the photographs used for the thresholds",
    )
    score: Changeable[Share | None] = Field(
        None, description="threshold of the score itself, instead of the one that miss_cost chooses"
    )
    review: Changeable[bool] = Field(
        False, description="choose a second, lower threshold; photographs between the two are for review"
    )
    max_rejected: Changeable[Annotated[float, Field(ge=0, le=1)]] = Field(
        0.05,
        description="if a single threshold would reject a larger share of the good parts, photographs "
        "between two thresholds are for review: 1 % of the good parts are rejected and 1 % of the "
        "defective ones missed; 1 = never. Without effect if miss_cost, score or review are set",
    )
    missed_share: Changeable[Share] = Field(
        0.05, description="review: maximum share of the defective parts that pass as good"
    )
    refused_share: Changeable[Share] = Field(
        0.05,
        description="review, or no defective photograph: maximum share of rejected good parts; with fewer "
        "than 15 defective ones: the least share that is rejected",
    )
    confidence: Changeable[Annotated[float, Field(ge=0.5, lt=1.0)]] = Field(
        0.95, description="confidence of both shares (exact binomial)"
    )


class ExperimentConfig(BaseSettings):
    """A training run, from an experiment file and flags of the same names, which override it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_exit_on_error=False,
        cli_prog_name="python -m training run EXPERIMENT.toml",
    )

    name: Changeable[Annotated[str, Field(pattern=PATTERN), AfterValidator(check_run_name)]] = Field(
        "run", description="name of the run's folder in --runs"
    )
    runs: Changeable[Path] = Field(Path("runs"), description="folder of all runs")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0, description="seed of weights, order and augmentation"
    )
    strategy: Changeable[Strategy] = Field(
        "auto",
        description="single: one device; mirrored: weights on each of several devices; central-storage: "
        "weights on the CPU, a copy of the computation on each of several devices; multi-worker: several "
        "machines, synchronous; parameter-server: several machines, asynchronous; auto: as TF_CONFIG "
        "requires, otherwise mirrored with several GPUs or if devices are set",
    )
    devices: Changeable[Annotated[str, Field(pattern=f"^({DEVICES})$")] | None] = Field(
        None, description="cpu:4 = four logical CPU devices, gpu:0,1 = these GPUs; none = all available"
    )
    cluster_timeout_s: Changeable[Positive] = Field(
        600.0, description="time to wait for the other processes of TF_CONFIG, s"
    )
    sampling: Sampling = Field(
        "alternate",
        description="alternate: good and defective images alternate, each kind without replacement; "
        "frequency: the same, but per round as many good ones as there are defective, preferring those "
        "drawn less often; shuffled: regardless of the class",
    )
    batch_size: Count = Field(
        2, description="images per step over all replicas; with parameter servers, of one worker"
    )
    precision: Literal["float32", "tf32", "mixed_bfloat16", "mixed_float16"] = Field(
        "float32",
        description="precision of the training network; weights, losses and exports are float32. tf32: "
        "products with 10 bits on GPUs; mixed_float16 scales the loss and skips steps that overflow",
    )
    deterministic: bool = Field(
        True, description="bit-identical results for the same seed on GPUs, at some cost of speed"
    )
    synchronized_batch_norm: bool = Field(
        False,
        description="batch normalisation uses the images of all replicas, so that the number of replicas "
        "does not change the result (with accumulate: their current parts); False: each replica's images",
    )
    ema_decay: Fraction = Field(0.99, description="decay of the averaged weights, which are exported")
    validate_every: Count = Field(100, description="steps between validations")
    checkpoint_every: Changeable[Count] = Field(100, description="steps between checkpoints")
    checkpoint_minutes: Changeable[NonNegative] = Field(
        10.0, description="maximum minutes between checkpoints; 0 = no limit"
    )
    keep_checkpoints: Changeable[Count] = Field(2, description="number of checkpoints that are retained")
    log_every: Changeable[Count] = Field(10, description="steps between records in log.jsonl")
    tracking: Changeable[Literal["none", "mlflow"]] = Field(
        "none", description="additional log; mlflow: configured by MLFLOW_TRACKING_URI and similar variables"
    )
    encoder_weights: Changeable[str] = Field(
        "imagenet",
        description="initial weights of the encoder: imagenet = those of keras.applications, from its cache "
        "or downloaded; a Keras weights file (.h5); none = random. Not used with segdecnet",
    )
    encoder_trainable: EncoderTrainable = Field(
        "frozen", description="trained layers of the encoder: none; those after its features of stride 8; all"
    )
    encoder_learning_rate: Positive = Field(0.1, description="factor of the learning rate of the encoder")
    initial_weights: Changeable[Path | None] = Field(
        None,
        description="initial weights of the network: network.weights.h5 of a finished run with the same "
        "network, whose training photographs must not be in validation or test; none = encoder_weights "
        "and random",
    )
    initial_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None, description="SHA-256 of initial_weights; set by the run"
    )
    network: NetworkConfig = NetworkConfig()
    input: InputConfig = InputConfig()
    data: DataConfig = DataConfig()
    target: TargetConfig = TargetConfig()
    loss: LossConfig = LossConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    stages: StagesConfig = StagesConfig()
    threshold: ThresholdConfig = ThresholdConfig()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Disables environment variables as a source: a variable SEED must not change a run."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _read_interest_mask(cls, values: Any) -> Any:
        section = values.get("input") if isinstance(values, dict) else None
        if not isinstance(section, dict) or not section.get("interest_mask"):
            return values
        path = str(section["interest_mask"])
        if path.startswith(PNG_BASE64):
            return values
        try:
            mask = encode_png(read_mask(Path(path)))
        except ImageError as error:
            raise ValueError(f"input.interest_mask: {error}") from error
        return {**values, "input": {**section, "interest_mask": base64.b64encode(mask).decode("ascii")}}

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        weights_kept = self.has_encoder and self.encoder_weights == "none" and self.encoder_trainable != "all"
        added = self.augmentation.synthetic or self.augmentation.transplant
        noise_without = not (self.caches_features and self.augmentation.synthetic)
        rules = (
            (
                self.network.heads > 0 and not any(stage.steps for _, stage in self.stages),
                "no stage has steps; expected at least one of stages.{segment,decision,joint}.steps",
            ),
            (
                not self.network.heads and any(stage.steps for _, stage in self.stages),
                "network.heads=0 and stages with steps; expected heads to train, or no steps: a memory has "
                "no trained weights",
            ),
            (
                weights_kept,
                f"encoder_weights=none with encoder_trainable={self.encoder_trainable} would keep random "
                "weights; expected encoder_trainable=all, or encoder_weights=imagenet or a file",
            ),
            (
                self.network.heads != 1 and self.encoder_trainable != "frozen",
                f"network.heads={self.network.heads} with encoder_trainable={self.encoder_trainable} would "
                "train the encoder on the photographs of every fold; expected encoder_trainable=frozen",
            ),
            (
                self.synchronized_batch_norm and self.network.normalization != "batch",
                f"synchronized_batch_norm with network.normalization={self.network.normalization}; expected "
                "it with batch only: the others use the statistics of each image",
            ),
            (
                self.target.dilation_at == "photograph" and self.input.policy == "tile",
                "target.dilation_at=photograph with input.policy=tile would make neighbouring tiles "
                "defective; expected dilation_at=input: tiles have the photograph's scale",
            ),
            (
                added and self.input.policy == "letterbox",
                "augmentation.synthetic or transplant with input.policy=letterbox would add defects to its "
                "padding; expected the policy resize, native or tile",
            ),
            (
                self.augmentation.feature_noise and noise_without,
                "augmentation.feature_noise without cached features or synthetic defects; expected "
                "network.encoder with encoder_trainable=frozen, no other augmentation but flips and "
                "rotations, and augmentation.synthetic above 0",
            ),
            (
                self.network.linear_mask and not self.caches_features,
                "network.linear_mask without cached features; expected network.encoder with "
                "encoder_trainable=frozen, and no other augmentation but flips and rotations",
            ),
        )
        for wrong, message in rules:
            if wrong:
                raise ValueError(message)
        return self

    @property
    def has_encoder(self) -> bool:
        """Whether the network has an encoder of `keras.applications`."""
        return self.network.encoder != SEGDECNET

    @property
    def balanced(self) -> bool:
        """Whether training uses as many defective as good images."""
        return self.sampling != "shuffled"

    @property
    def trains_decision(self) -> bool:
        """Whether a stage that has steps trains the decision network."""
        return bool(self.stages.decision.steps or self.stages.joint.steps)

    @property
    def caches_features(self) -> bool:
        """Whether training uses cached features of a frozen encoder."""
        frozen = self.has_encoder and self.encoder_trainable == "frozen"
        return frozen and (self.augmentation.only_flips_and_rotations or not self.network.heads)

    @property
    def validation_split(self) -> Literal["train", "val"]:
        """The split on which thresholds are chosen: train if each photograph is scored without its fold."""
        return "val" if self.network.folds == 1 else "train"

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return self.runs / self.name

    def local_copy(self, folder: Path, splits: Path) -> Self:
        """Returns the experiment with another folder and splits, for a single process."""
        data = self.data.model_copy(update={"splits": splits, "checked_folder": self.checked_folder})
        changes = {"runs": folder.parent, "name": folder.name, "data": data, "tracking": "none"}
        if self.strategy in CLUSTERED:
            changes["strategy"] = "auto"
        return self.model_copy(update=changes)

    @property
    def checked_folder(self) -> Path:
        """Folder of the results of file checks."""
        return self.data.checked_folder or self.runs / ".checked"

    def flatten(self) -> dict[str, Any]:
        """Returns all settings as JSON values by their dotted names, such as `data.root`."""
        return _flatten(self.model_dump(mode="json"))


def differing_settings(one: ExperimentConfig, other: ExperimentConfig) -> Iterator[tuple[str, Any, Any]]:
    """Yields name and both values of different settings, except changeable ones; preset first."""
    first, second = one.flatten(), other.flatten()
    compared = (first.keys() | second.keys()) - changeable_settings()
    for name in sorted(compared, key=lambda name: (name != "network.preset", name)):
        if first.get(name) != second.get(name):
            yield name, first.get(name), second.get(name)


def changeable_settings(model: type[BaseModel] = ExperimentConfig, prefix: str = "") -> frozenset[str]:
    """Returns the dotted names of the settings that are declared `Changeable`."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        if MAY_CHANGE in field.metadata:
            names.add(prefix + name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= changeable_settings(field.annotation, f"{prefix}{name}.")
    return frozenset(names)


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
