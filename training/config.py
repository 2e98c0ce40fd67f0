"""What an experiment is: every setting of a training run, declared once."""

import base64
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from segdec.config import Config, Fraction, InputConfig, NetworkConfig, OddSide
from segdec.encoders import SEGDECNET
from segdec.errors import ImageError
from segdec.images import DEFAULT_MAX_PIXELS, MAX_PIXEL_LIMIT, encode_png, read_mask

Count = Annotated[int, Field(gt=0)]
Steps = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]

MAY_CHANGE = "may change when a run is resumed"
T = TypeVar("T")
Changeable = Annotated[T, MAY_CHANGE]
"""Type of a setting that may change when a run is resumed: where it runs, where its data lie, what it writes.

Every other setting is part of what the result depends on, and stays as the run was started with it.
"""

PNG_BASE64 = "iVBORw0KGgo"
"""How the base64 of every PNG begins, and no path does."""

Strategy = Literal["auto", "single", "mirrored", "central-storage", "multi-worker", "parameter-server"]

EncoderTrainable = Literal["frozen", "top", "all"]

DEVICES = r"cpu:[1-9]\d*|gpu:\d+(,\d+)*"
"""How devices are named: a number of logical CPUs, or the numbers of GPUs."""


MaskValues = dict[str, Annotated[int, Field(ge=1, le=255)]]
"""Class → its value in a mask file."""


def check_distinct(values: MaskValues) -> MaskValues:
    """Returns values of classes, no two of which are the same; ValueError otherwise."""
    if len(set(values.values())) < len(values):
        raise ValueError(f"two classes have one value; expected one each: {values}")
    return values


class DataConfig(Config):
    """Which photographs a run sees."""

    layout: Changeable[str] = Field(
        "folder", description="how the files lie on disk; see python -m datasets inspect --help"
    )
    root: Changeable[str] = Field(
        "data", description="folder of the data set; of shards also a URL: gs://bucket/parts"
    )
    reviewed: Changeable[tuple[Path, ...]] = Field(
        (),
        description="folders that python -m api export-reviewed wrote; their photographs are added",
    )
    splits: Changeable[Path | None] = Field(None, description="file of lines 'train|val|test  name'")
    supervision: Changeable[Path | None] = Field(
        None,
        description="file of lines 'mask|box|label  name': how much of each annotation training may see; "
        "photographs that no line names keep all of theirs",
    )
    merge_defects: bool = Field(
        False, description="make one class, 'defect', of all classes of defects: the network says good or not"
    )
    mask_threshold: Annotated[int, Field(ge=0, le=254)] | None = Field(
        None,
        description="a mask pixel shows a defect where its value is above this; none = as the layout says, "
        "and a mask of more than two values is refused",
    )
    mask_values: Annotated[MaskValues, AfterValidator(check_distinct)] | None = Field(
        None,
        description="value of each class of defects in mask files whose values are classes; none = all of a "
        "mask is of its photograph's class",
    )
    max_pixels: Changeable[Annotated[int, Field(gt=0, le=MAX_PIXEL_LIMIT)]] = Field(
        DEFAULT_MAX_PIXELS,
        description="largest photograph, height × width; it is held in memory whole, also where the network "
        "sees tiles of it: a grey one takes 10 bytes a pixel to predict, 17 with mask_stride = 1",
    )
    allowed_leaks: Changeable[tuple[str, ...]] = Field(
        (),
        description="names of photographs or groups that may occur in two splits; of any other photograph an "
        "equal picture in another split is an error, a near twin a warning",
    )
    skip_broken: Changeable[bool] = Field(
        False, description="leave out what cannot be used, and list it in the run folder, instead of stopping"
    )
    cache_mb: Changeable[Steps] = Field(
        2048,
        description="decoded images of training and validation, and features of a frozen encoder, kept in "
        "memory by each process, MB; beyond it they go to cache_folder",
    )
    cache_folder: Changeable[Path | None] = Field(
        None,
        description="folder for what finds no room in memory, in a file that goes with the process; without "
        "it images are read, and features computed, again",
    )
    disk_cache_mb: Changeable[Steps] = Field(
        50_000, description="largest size of the file in cache_folder, MB"
    )
    checked_folder: Changeable[Path | None] = Field(
        None,
        description="folder for what was found when the files were checked: those that have not changed are "
        "not read again at the next start, of whatever run; none = .checked in the folder of all runs",
    )
    recheck: Changeable[bool] = Field(
        False, description="read all files at the start, also those that were checked and have not changed"
    )
    drop_remainder: Changeable[bool] = Field(
        False,
        description="leave out the images of each batch that do not divide among the replicas, instead of "
        "refusing the batch size",
    )
    decode_threads: Changeable[Count] = Field(
        2, description="threads that read and augment images, for each replica of a process"
    )


class TargetConfig(Config):
    """How a mask becomes what the segmentation network learns."""

    dilation_px: OddSide = Field(5, description="side of the shape that grows each defect, px, odd; 1 = none")
    dilation_shape: Literal["diamond", "square"] = Field("diamond", description="what grows each defect")
    dilation_at: Literal["input", "photograph"] = Field(
        "input",
        description="where defects grow, and in whose px: as the network sees them, or before the photograph "
        "is scaled",
    )
    window_px: Count | None = Field(
        None,
        description="side of the square, input px, whose defective share and mean weight a mask pixel has; "
        "none = its own cell",
    )
    window_border: Literal["cut", "reflect"] = Field(
        "cut", description="what a window sees beyond the image: nothing, or the image reflected"
    )
    positive_weight: Positive = Field(
        1.0,
        description="weight of a defect pixel's loss; background has 1. It counts once: in the cross-entropy "
        "with weighting = uniform, in the weights of the mask's pixels with distance",
    )
    weighting: Literal["uniform", "distance"] = Field(
        "uniform",
        description="distance: a defect pixel weighs more the deeper it lies within its defect, up to "
        "positive_weight in the middle",
    )
    distance_power: Positive = Field(1.0, description="distance: exponent of the relative depth")

    @property
    def cross_entropy_weight(self) -> float:
        """Factor of a defect pixel's cross-entropy: 1 if the weights of the pixels hold `positive_weight`."""
        return self.positive_weight if self.weighting == "uniform" else 1.0


class LossConfig(Config):
    """Terms of the segmentation loss beside the cross-entropy."""

    focal_gamma: NonNegative = Field(
        0.0,
        description="factor (1 − p)^gamma of a pixel's cross-entropy, p = probability of the truth; 0 = none",
    )
    dice_weight: NonNegative = Field(
        0.0, description="factor of the Dice loss of each image, added; 0 = none"
    )


class AugmentationConfig(Config):
    """Random changes of a training image; its mask stays in step."""

    flip_horizontal: bool = True
    flip_vertical: bool = True
    rotate: bool = Field(False, description="by a multiple of 90°; of 180° where the input is not square")
    shift: Fraction = Field(0.0, description="largest shift along each side, as a fraction of it")
    scale: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(0.0, description="largest relative change of size")
    brightness: Fraction = Field(0.0, description="largest shift, as a fraction of the full range")
    contrast: Fraction = Field(0.0, description="largest relative change around the image's mean")
    noise: Fraction = Field(
        0.0, description="largest standard deviation of added noise, as a fraction of the full range"
    )
    blur_px: NonNegative = Field(0.0, description="largest standard deviation of a Gaussian blur, px")
    synthetic: Fraction = Field(
        0.0,
        description="chance that a defective image's turn goes to a good one with a made-up defect "
        "(shuffled: that a good image gets one); above 0, good photographs alone can be learnt from",
    )
    feature_noise: Fraction = Field(
        0.0,
        description="chance that a made-up defect is noise in the features of a frozen encoder instead of a "
        "change of the photograph",
    )
    transplant: Fraction = Field(
        0.0,
        description="chance that a defective image's turn goes to a good one that gets its defect, cut out "
        "by its mask, turned, scaled and moved (shuffled: that a good image gets one of any)",
    )

    @property
    def only_flips(self) -> bool:
        """Whether an image is at most flipped, so that it has no more than `variants` forms.

        One that gets a defect is another image, and is not asked about.
        """
        allowed = {"flip_horizontal", "flip_vertical", "synthetic", "transplant", "feature_noise"}
        plain = AugmentationConfig().model_dump(exclude=allowed)
        return self.model_dump(exclude=allowed) == plain

    @property
    def variants(self) -> int:
        """How many forms an image has that is at most flipped."""
        return (1 + self.flip_horizontal) * (1 + self.flip_vertical)


class ScheduleConfig(Config):
    """How the learning rate moves during a stage."""

    kind: Literal["constant", "poly", "staircase", "cosine", "piecewise"] = "constant"
    power: Positive = Field(0.9, description="poly: rate · (1 − step/steps)^power")
    decay_rate: Positive = Field(0.1, description="staircase: factor at each stair")
    decay_steps: Count = Field(1000, description="staircase: steps from stair to stair")
    boundaries: tuple[Count, ...] = Field(
        (), description="piecewise: last step of each piece but the last, ascending"
    )
    factors: tuple[Positive, ...] = Field((), description="piecewise: of the rate after each boundary")
    warmup_steps: Steps = Field(
        0, description="first steps, over which the rate rises linearly to where the schedule then is"
    )

    @model_validator(mode="after")
    def _check_pieces(self) -> Self:
        given = bool(self.boundaries or self.factors)
        if (self.kind == "piecewise") != given or len(self.boundaries) != len(self.factors):
            raise ValueError(
                f"kind={self.kind} with {len(self.boundaries)} boundaries and {len(self.factors)} factors; "
                "expected one factor for each boundary with piecewise, and none with another kind"
            )
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError(
                f"boundaries {list(self.boundaries)} do not ascend; expected each above the last"
            )
        return self


class StageConfig(Config):
    """One stage: its length, its optimiser and its losses."""

    steps: Steps = Field(0, description="optimiser steps; 0 leaves the stage out")
    optimizer: Literal["sgd", "adam", "adamw"] = Field(
        "adam", description="adamw is adam with the decoupled weight_decay, which is the default for all"
    )
    learning_rate: Positive = 1e-3
    momentum: Fraction = Field(0.9, description="sgd only")
    weight_decay: NonNegative = Field(
        0.0, description="of the kernels of convolutions and dense layers; norm scales and biases have none"
    )
    weight_decay_kind: Literal["decoupled", "l2"] = Field(
        "decoupled",
        description="decoupled: each step takes learning rate · weight_decay of a kernel away, whatever the "
        "optimiser does; l2: the loss counts weight_decay / 2 · the sum of the squares",
    )
    schedule: ScheduleConfig = ScheduleConfig()
    clip_norm: Positive | None = Field(
        None, description="largest norm of the global batch's gradient, all variables together"
    )
    accumulate: Count = Field(
        1, description="equal parts in which a step's images are taken to save memory; their gradients add up"
    )
    balance: Literal["fixed", "dynamic"] = Field(
        "fixed",
        description="dynamic: the segmentation loss counts λ and the decision loss 1 − λ, beside the weights "
        "below; λ falls from 1 to 0 over the stage",
    )
    segmentation_weight: NonNegative = Field(
        1.0, description="factor of the segmentation loss, where trained"
    )
    decision_weight: NonNegative = Field(1.0, description="factor of the decision loss, where trained")

    @model_validator(mode="after")
    def _check_weight_decay(self) -> Self:
        if self.optimizer == "adamw" and self.weight_decay_kind == "l2":
            raise ValueError(
                "optimizer=adamw with weight_decay_kind=l2; expected adam with it: adamw is adam with the "
                "decoupled decay"
            )
        return self


class StagesConfig(Config):
    """The stages, in the order in which they run."""

    segment: StageConfig = StageConfig()
    decision: StageConfig = StageConfig()
    joint: StageConfig = StageConfig()

    def __getitem__(self, name: str) -> StageConfig:
        """Returns the settings of the stage of this name."""
        settings: StageConfig = getattr(self, name)
        return settings

    @model_validator(mode="after")
    def _check_balance(self) -> Self:
        for name, stage in (("segment", self.segment), ("decision", self.decision)):
            if stage.balance == "dynamic":
                raise ValueError(
                    f"{name}.balance=dynamic, but this stage trains one loss alone; expected it with joint, "
                    "which trains both"
                )
        return self


class ThresholdConfig(Config):
    """What the limits of a trained model are chosen by; `training calibrate` chooses them anew."""

    miss_cost: Changeable[Annotated[float, Field(ge=1e-6, le=1e6)]] = Field(
        10.0, description="what a missed defect costs, in false alarms"
    )
    defect_rate: Changeable[Annotated[float, Field(gt=0.0, lt=1.0)] | None] = Field(
        None,
        description="share of defective photographs at the line, for which the score is a probability; "
        "none = that of the photographs that the limits are chosen on",
    )
    review: Changeable[bool] = Field(
        False,
        description="a second limit below which a photograph is good, so that those between the two are for "
        "somebody to look at",
    )
    missed_share: Changeable[Annotated[float, Field(gt=0.0, lt=1.0)]] = Field(
        0.05, description="review: largest share of the defective parts that may pass as good"
    )
    refused_share: Changeable[Annotated[float, Field(gt=0.0, lt=1.0)]] = Field(
        0.05,
        description="review, and a threshold from good photographs alone: largest share of the good parts "
        "that may be refused",
    )
    confidence: Changeable[Annotated[float, Field(ge=0.5, lt=1.0)]] = Field(
        0.95, description="with which the two shares are kept (exact binomial)"
    )


class ExperimentConfig(BaseSettings):
    """A training run. Values come from the experiment file; flags of the same names override it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_exit_on_error=False,
        cli_prog_name="python -m training run EXPERIMENT.toml",
    )

    name: Changeable[Annotated[str, Field(pattern=r"^\w[\w.-]*$")]] = Field(
        "run", description="folder of the run below --runs"
    )
    runs: Changeable[Path] = Field(Path("runs"), description="folder that holds all runs")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0, description="decides weights, order of images and augmentation"
    )
    strategy: Changeable[Strategy] = Field(
        "auto",
        description="one device; a copy of the weights on each of several; weights on the CPU, towers on "
        "several devices; several machines in step; several machines, each at its own pace; auto = what "
        "TF_CONFIG asks for, else mirrored where there are several GPUs or devices are named",
    )
    devices: Changeable[Annotated[str, Field(pattern=f"^({DEVICES})$")] | None] = Field(
        None, description="cpu:4 = four logical CPU devices, gpu:0,1 = these GPUs; default: what is there"
    )
    cluster_timeout_s: Changeable[Positive] = Field(
        600.0, description="how long to wait for the other processes of TF_CONFIG at the start, s"
    )
    sampling: Literal["alternate", "frequency", "shuffled"] = Field(
        "alternate",
        description="good and defective images in turn, each gone through whole before one comes again; the "
        "same, with as many good ones as there are defective drawn at a time, rather those that had fewer "
        "turns; all images in one order",
    )
    batch_size: Count = Field(
        2, description="images a step, over all replicas; with parameter servers, of one worker"
    )
    precision: Literal["float32", "tf32", "mixed_bfloat16", "mixed_float16"] = Field(
        "float32",
        description="of the training network; weights, losses and what is exported are float32. tf32 = "
        "products of 10 bits, on GPUs; mixed_float16 scales the loss and skips steps that overflow",
    )
    deterministic: bool = Field(
        True,
        description="the same seed gives the same bits on GPUs too, at some cost of speed; CPUs always do so",
    )
    synchronized_batch_norm: bool = Field(
        False,
        description="batch normalisation by the statistics of all replicas' images, so that their number "
        "does not change the result (with accumulate: of all replicas' parts); False = of each replica's own",
    )
    ema_decay: Fraction = Field(0.99, description="of the averaged weights that are validated and exported")
    validate_every: Count = Field(100, description="steps between validations")
    checkpoint_every: Changeable[Count] = Field(100, description="steps between checkpoints")
    checkpoint_minutes: Changeable[NonNegative] = Field(
        10.0, description="a checkpoint at the latest after so many minutes; 0 = by steps alone"
    )
    keep_checkpoints: Changeable[Count] = Field(
        2, description="newest checkpoints that stay, each with the best weights"
    )
    log_every: Changeable[Count] = Field(10, description="steps between records in log.jsonl")
    tracking: Changeable[Literal["none", "mlflow"]] = Field(
        "none",
        description="where else the log goes; mlflow: as MLFLOW_TRACKING_URI and its like say",
    )
    encoder_weights: Changeable[str] = Field(
        "imagenet",
        description="what the encoder begins with: imagenet = what keras.applications loads, of its cache or "
        "downloaded; a weights file that Keras wrote (.h5); none = drawn at random. Not with segdecnet",
    )
    encoder_trainable: EncoderTrainable = Field(
        "frozen",
        description="what of the encoder is trained: nothing; what lies behind its features of stride 8; all",
    )
    encoder_learning_rate: Positive = Field(
        0.1, description="factor of the stage's learning rate for what of the encoder is trained"
    )
    initial_weights: Changeable[Path | None] = Field(
        None,
        description="what the whole network begins with: network.weights.h5 of a finished run with the same "
        "network, none of whose training photographs may be validated or tested on; none = as "
        "encoder_weights says, the rest drawn at random",
    )
    initial_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None, description="SHA-256 of initial_weights; of a run it is filled in"
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
        """Leaves the experiment file alone as a source: a variable called SEED must not steer a run."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _read_interest_mask(cls, values: Any) -> Any:
        given = values.get("input") if isinstance(values, dict) else None
        if not isinstance(given, dict) or not (named := given.get("interest_mask")):
            return values
        if str(named).startswith(PNG_BASE64):
            return values
        try:
            mask = encode_png(read_mask(Path(str(named))))
        except ImageError as error:
            raise ValueError(f"input.interest_mask: {error}") from error
        return {**values, "input": {**given, "interest_mask": base64.b64encode(mask).decode("ascii")}}

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        if not any(stage.steps for stage in (self.stages.segment, self.stages.decision, self.stages.joint)):
            raise ValueError(
                "no stage has steps; expected at least one of stages.{segment,decision,joint}.steps"
            )
        return self

    @model_validator(mode="after")
    def _check_encoder(self) -> Self:
        if self.has_encoder and self.encoder_weights == "none" and self.encoder_trainable != "all":
            raise ValueError(
                f"encoder_weights=none with encoder_trainable={self.encoder_trainable}, so that random "
                "weights would stay; expected encoder_trainable=all, or encoder_weights=imagenet or a file"
            )
        return self

    @model_validator(mode="after")
    def _check_batch_norm(self) -> Self:
        if self.synchronized_batch_norm and self.network.normalization != "batch":
            raise ValueError(
                f"synchronized_batch_norm with network.normalization={self.network.normalization}; "
                "expected it with batch alone: the others take the statistics of each image"
            )
        return self

    @model_validator(mode="after")
    def _check_dilation(self) -> Self:
        if self.target.dilation_at == "photograph" and self.input.policy == "tile":
            raise ValueError(
                "target.dilation_at=photograph with input.policy=tile, which would make the tiles beside a "
                "defect defective; expected dilation_at=input: tiles have the photograph's scale anyhow"
            )
        return self

    @model_validator(mode="after")
    def _check_given_defects(self) -> Self:
        given = self.augmentation.synthetic or self.augmentation.transplant
        if given and self.input.policy == "letterbox":
            raise ValueError(
                "augmentation.synthetic or transplant with input.policy=letterbox, whose padding would get "
                "defects, too; expected the policy resize, native or tile"
            )
        return self

    @model_validator(mode="after")
    def _check_feature_noise(self) -> Self:
        if self.augmentation.feature_noise and not (self.caches_features and self.augmentation.synthetic):
            raise ValueError(
                "augmentation.feature_noise without features to put it in, or without made-up defects; "
                "expected network.encoder with encoder_trainable=frozen, no augmentation of photographs but "
                "flips, and augmentation.synthetic above 0"
            )
        return self

    @property
    def has_encoder(self) -> bool:
        """Whether the network stands on a network of `keras.applications`."""
        return self.network.encoder != SEGDECNET

    @property
    def balanced(self) -> bool:
        """Whether the network is trained on as many defective as good images."""
        return self.sampling != "shuffled"

    @property
    def trains_decision(self) -> bool:
        """Whether a stage that has steps trains the decision network."""
        return bool(self.stages.decision.steps or self.stages.joint.steps)

    @property
    def caches_features(self) -> bool:
        """Whether training begins with the encoder's features, computed once for each form of an image."""
        return self.has_encoder and self.encoder_trainable == "frozen" and self.augmentation.only_flips

    @property
    def folder(self) -> Path:
        """Where the run lies."""
        return self.runs / self.name

    def local_copy(self, folder: Path, splits: Path) -> Self:
        """Returns the same experiment in a folder of its own, on other splits, in this process alone."""
        clustered = self.strategy in ("multi-worker", "parameter-server")
        return self.model_copy(
            update={
                "runs": folder.parent,
                "name": folder.name,
                "data": self.data.model_copy(
                    update={"splits": splits, "checked_folder": self.checked_folder}
                ),
                "strategy": "auto" if clustered else self.strategy,
                "tracking": "none",
            }
        )

    @property
    def checked_folder(self) -> Path:
        """Where it is kept what was found when files were checked."""
        return self.data.checked_folder or self.runs / ".checked"

    def flatten(self) -> dict[str, Any]:
        """Returns all settings by their dotted names, such as `data.root`, as JSON holds them."""
        return _flatten(self.model_dump(mode="json"))


def differing_settings(
    one: ExperimentConfig, other: ExperimentConfig, ignored: Collection[str] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """Yields name and both values of what is neither equal, nor changeable, nor ignored; the preset first."""
    these, those = one.flatten(), other.flatten()
    compared = (these.keys() | those.keys()) - changeable_settings() - set(ignored)
    for name in sorted(compared, key=lambda name: (name != "network.preset", name)):  # it says most
        if these.get(name) != those.get(name):
            yield name, these.get(name), those.get(name)


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
        flat.update(
            _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return flat
