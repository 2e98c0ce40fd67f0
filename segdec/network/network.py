"""The two-stage segmentation and decision network, built only from Keras layers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import keras
from keras import layers

from segdec.config import KERNEL, STRIDE, NetworkConfig
from segdec.encoders import JOINED_STRIDES, SEGDECNET
from segdec.network.convolution import convolution, make_initializer
from segdec.network.decoder import refine_mask
from segdec.network.encoder import BACKBONE, CropToStride, build_encoder
from segdec.network.layers import (
    DEFAULT_POLICY,
    BilinearUpsampling,
    ChannelMaximum,
    ComputePolicy,
    DefectAndClass,
    GradientGate,
    normalization,
    standardization,
)
from segdec.network.mask_prior import MaskPrior
from segdec.network.pooled_classes import DefectWeights, PooledClasses
from segdec.network.pooled_score import FeatureStatistics, PooledScore
from segdec.network.score_combination import Evidence, ScoreCombination
from segdec.network.surface_memory import MEMORY, build_memory, highest_logit, without_fold

Segmented = tuple[Any, Any, Any]
"""Features, coarse and final mask logits of a head."""

EVIDENCE = "evidence"
"""Name of the layer whose output is combined to one score."""

FEATURE_STATISTICS = "feature_statistics"
"""Name of the layer whose output is mapped to the pooled score."""

DEFECT_WEIGHTS = "defect_weights"
"""Name of the layer that weighs the encoder's features for the class of a defect."""

FEATURES = "features"
"""Name of the encoder's features among the outputs of the segmentation."""

PIXEL_SCALE = 1.0 / 255.0
"""Factor of the pixel values 0…255 before the first convolution."""


class FittedLayers(NamedTuple):
    """Layers whose weights are fitted after the training; None = the configuration needs none."""

    combination: ScoreCombination | None
    pooled_score: PooledScore | None
    pooled_classes: PooledClasses | None


@keras.saving.register_keras_serializable(package="segdec")
class SegDecNet(keras.Model):
    """Segmentation network, and a decision network on its features and mask.

    The parts `segmentation` and `decisions` are separate models, so that a training stage can freeze one of
    them. With several `heads`, each has its own part of `segmentation` after the encoder and its own decision
    network; the outputs are means over the heads. Without heads, a memory of good surface gives both outputs:
    its logits are the mask, the highest of them the score; beside heads it is part of the score. Pixel values
    are 0…255; the first layer scales them. For a mask stride below 8, a decoder in `segmentation` refines the
    mask; the decision network uses the coarse mask, as published. With one mask per defect class, it uses the
    maximum logit of each pixel. With `pooled_classes`, the encoder's features determine the class of a
    defect, see `segdec.network.pooled_classes`; with `pooled_score` their statistics are part of the score,
    see `segdec.network.pooled_score`. `policy` is not saved with the configuration.

    Input shape:
        `[B, H, W, input_channels]`, H and W divisible by 8.

    Output shape:
        `{"mask_logits": [B, H/s, W/s, M], "class_logits": [B, num_classes]}`, float32; s is the mask
        stride, by default 8; M is 1, or with `mask_classes` the number of defect classes. With a memory also
        `surface` [B, D], the mean of the patches that it compares.

    Example:
        >>> network = SegDecNet(NetworkConfig(preset="compact"))
        >>> network(np.zeros((1, 64, 64, 1)))["mask_logits"].shape
        (1, 8, 8, 1)

    References:
        Tabernik et al., "Segmentation-based deep-learning approach for surface-defect detection", 2019.
        Božič et al., "Mixed supervision for surface-defect detection", 2021.
    """

    def __init__(self, config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY, **kwargs: Any) -> None:
        segmentation = build_segmentation(config, policy)
        decisions = [build_decision(config, policy, name) for name in _names("decision", config)]
        image = keras.Input((None, None, config.input_channels), name="image")
        fitted = _build_fitted_layers(config, folds=0 if policy.folded else config.folds)
        outputs = _outputs(segmentation(image), decisions, config, fitted)
        super().__init__(inputs=image, outputs=outputs, **kwargs)
        self.config, self.segmentation, self.decisions = config, segmentation, decisions
        self.combination, self.pooled_score, self.pooled_classes = fitted

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs both parts; raises ValueError if the height, the width or the channels are wrong."""
        check_input_shape(tuple(inputs.shape), self.config.input_channels)
        return super().call(inputs, training=training, mask=mask)

    @property
    def encoder(self) -> keras.Model | None:
        """The encoder; None for the published network."""
        return self.segmentation.get_layer("encoder") if self.config.encoder != SEGDECNET else None

    @property
    def backbone(self) -> keras.Model | None:
        """The network of `keras.applications` inside the encoder."""
        return self.encoder.get_layer(BACKBONE) if self.encoder is not None else None

    @property
    def heads(self) -> list[keras.Model]:
        """The parts from the encoder's features to the mask; none for the published network."""
        if self.config.encoder == SEGDECNET:
            return []
        return [self.segmentation.get_layer(name) for name in _names("head", self.config)]

    @property
    def memory(self) -> Any:
        """The memory of good surface, see `segdec.network.surface_memory`; None without one."""
        return self.segmentation.get_layer(MEMORY) if self.config.memory else None

    @property
    def fitted_layers(self) -> FittedLayers:
        """The layers whose weights are fitted after the training."""
        return FittedLayers(self.combination, self.pooled_score, self.pooled_classes)

    def segment(self, inputs: Any, training: bool) -> list[Segmented]:
        """Returns the outputs of each head for images, or for the encoder's features by name."""
        if isinstance(inputs, dict):
            return [head(inputs, training=training) for head in self.heads]
        segmented = self.segmentation(inputs, training=training)
        return [segmented[name] for name in _names("head", self.config)]

    def without_fold(self, fold: int, *, encoded: bool = False) -> keras.Model:
        """Returns a model with the same outputs, made of what was built without a fold (from 0).

        It shares the weights of the head that was trained without the fold, and of the memory and the maps of
        pooled features without its photographs. Its input is an image, or with `encoded` the encoder's
        features by name.
        """
        encoder = self.segmentation.get_layer("encoder")
        inputs = feature_inputs(encoder) if encoded else self.input
        features = inputs if encoded else encoder(inputs)
        segmented = {head.name: head(features) for head in self.heads[fold : fold + 1]}
        if self.memory is not None:
            segmented[MEMORY] = without_fold(self.memory, fold)(features)
        segmented[FEATURES] = features
        decisions = self.decisions[fold : fold + 1]
        outputs = _outputs(segmented, decisions, self.config, self.fitted_layers, without=fold)
        return keras.Model(inputs, outputs)

    def get_config(self) -> dict[str, Any]:
        return {"config": self.config.model_dump(mode="json"), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:  # noqa: ARG003
        return cls(**{**config, "config": NetworkConfig.model_validate(config["config"])})


def _names(part: str, config: NetworkConfig) -> list[str]:
    """The names of a part of each head."""
    return [part] if config.heads == 1 else [f"{part}_{number}" for number in range(1, config.heads + 1)]


def _outputs(
    segmented: Mapping[str, Any],
    decisions: Sequence[keras.Model],
    config: NetworkConfig,
    fitted: FittedLayers,
    without: int | None = None,
) -> dict[str, Any]:
    """Returns the means over the heads of mask logits and class logits; without heads those of the memory.

    `segmented` are the outputs of the segmentation by name. With a combination, the memory and the pooled
    score change the decision; `pooled_classes` changes the classes. Maps of pooled features are those without
    a fold if one is given.
    """
    memory_logits, surface = segmented.get(MEMORY, (None, None))
    if not config.heads:
        class_logits = highest_logit(memory_logits)
        return {"mask_logits": memory_logits, "class_logits": class_logits, "surface": surface}
    heads = outputs_of_heads(segmented)
    decided = [
        decide((features, coarse)) for decide, (features, coarse, _) in zip(decisions, heads, strict=True)
    ]
    masks = [mask_logits for _, _, mask_logits in heads]
    mask_logits = _mean(masks, "mean_mask")
    decision = _mean(decided, "mean_decision")
    exact = {"dtype": keras.config.floatx()}
    features = segmented.get(FEATURES)
    joined = [features[f"joined_{stride}"] for stride in JOINED_STRIDES] if features is not None else []
    if fitted.combination is not None:
        pooled = []
        if fitted.pooled_score is not None:
            statistics = FeatureStatistics(**exact, name=FEATURE_STATISTICS)(joined)
            pooled = [fitted.pooled_score(statistics, without=without)]
        evidence = Evidence(**exact, name=EVIDENCE)([[decision], [memory_logits], masks, pooled])
        decision = fitted.combination([decision, evidence])
    if fitted.pooled_classes is not None:
        weigh = DefectWeights(**exact, name=DEFECT_WEIGHTS)
        memory = [] if memory_logits is None else [memory_logits]
        weights = weigh([[coarse for _, coarse, _ in heads], memory])
        decision = fitted.pooled_classes([decision, weights, *joined], without=without)
    outputs = {"mask_logits": mask_logits, "class_logits": classify(decision, config)}
    return outputs if surface is None else {**outputs, "surface": surface}


def _build_fitted_layers(config: NetworkConfig, folds: int) -> FittedLayers:
    exact = {"dtype": keras.config.floatx()}
    combines = config.heads and config.memory
    return FittedLayers(
        ScoreCombination(**exact, name="score_combination") if combines else None,
        PooledScore(folds, **exact, name="pooled_score") if config.pooled_score else None,
        PooledClasses(folds, **exact, name="pooled_classes") if config.pools_classes else None,
    )


def outputs_of_heads(segmented: Mapping[str, Any]) -> list[Segmented]:
    """Returns those of the heads among the outputs of the segmentation by name."""
    return [one for name, one in segmented.items() if name not in (MEMORY, FEATURES)]


def _mean(logits: list[Any], name: str) -> Any:
    return logits[0] if len(logits) == 1 else layers.Average(dtype=keras.config.floatx(), name=name)(logits)


def classify(decided: Any, config: NetworkConfig) -> Any:
    """Returns the class logits [B, classes] from the last layer of a decision network.

    With several defect classes, whether there is a defect and of which class it is are separate outputs of
    that layer, so that classes that are hard to distinguish do not affect the score.
    """
    if config.num_classes == 2:
        return decided
    return DefectAndClass(dtype=keras.config.floatx(), name="defect_and_class")(decided)


def build_network(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> SegDecNet:
    """Creates the network of `config` with random weights."""
    return SegDecNet(config, policy, name="segdec")


def build_segmentation(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> keras.Model:
    """Builds a model: image [B, H, W, C] → `Segmented` by the name of the head, and the memory's outputs.

    Where features are pooled, also the encoder's features.

    The features are [B, H/8, W/8, F]. Coarse logits are [B, H/8, W/8, M], final ones [B, H/s, W/s, M]; they
    are the same if the stride s is 8. With an encoder, it and each head are separate models.
    """
    image = keras.Input((None, None, config.input_channels), name="image")
    if config.encoder != SEGDECNET:
        encoder = build_encoder(config, policy)
        parts = [build_head(encoder, config, policy, name) for name in _names("head", config)]
        if config.memory:
            parts.append(build_memory(feature_inputs(encoder), config, folded=policy.folded))
        features = encoder(image)
        outputs = {part.name: part(features) for part in parts}
        if config.pooled_score or config.pools_classes:
            outputs[FEATURES] = features
        return keras.Model(image, outputs, name="segmentation")
    x, skips = image, {}
    if not policy.folded:
        x = layers.Rescaling(PIXEL_SCALE, dtype=keras.config.floatx(), name="scale")(image)
    for block, widths in enumerate(config.segmentation_widths, start=1):
        for index, width in enumerate(widths, start=1):
            x = convolution(x, config, policy, width, KERNEL, f"segmentation_{block}_{index}")
        skips[2 ** (block - 1)] = x
        x = layers.MaxPooling2D(dtype=policy.dtype, name=f"segmentation_{block}_pool")(x)  # H/2, H/4, H/8
    return keras.Model(image, {"head": _masks(x, skips, config, policy)}, name="segmentation")


def feature_inputs(encoder: keras.Model) -> dict[str, Any]:
    """Returns inputs for the features of an encoder, by name."""
    return {
        name: keras.Input(one.shape[1:], dtype=one.dtype, name=name) for name, one in encoder.output.items()
    }


def build_head(
    encoder: keras.Model, config: NetworkConfig, policy: ComputePolicy, name: str = "head"
) -> keras.Model:
    """Builds a model: the encoder's features by name → the outputs of the published segmentation stage.

    A 1×1 convolution of the concatenated features is computed as a sum, one term per stride, which is faster
    because the coarse features are convolved before they are upsampled. If folded, the convolutions include
    the standardisation of their features, and the first one its offset.
    """
    dtype = policy.dtype
    offset = config.standardize_features and policy.folded
    features = feature_inputs(encoder)
    adapted = []
    for stride in JOINED_STRIDES:
        common = {"kernel_initializer": make_initializer(config), "dtype": dtype, "name": f"adapted_{stride}"}
        bias = offset and stride == JOINED_STRIDES[0]
        adapt = layers.Conv2D(config.adapter_width, 1, use_bias=bias, **common)
        x = features[f"joined_{stride}"]
        if config.standardize_features and not policy.folded:
            x = standardization(config, policy=policy, name=f"standardized_{stride}")(x)
        x = adapt(x)
        if stride > STRIDE:
            x = BilinearUpsampling(stride // STRIDE, dtype=dtype, name=f"enlarged_{stride}")(x)
            x = CropToStride(1, dtype=dtype, name=f"cut_{stride}")([x, features[f"joined_{STRIDE}"]])
        adapted.append(x)
    x = layers.Add(dtype=dtype, name="adapted")(adapted)
    x = normalization(config, policy=policy, name="adapted_norm")(x)
    x = layers.ReLU(dtype=dtype, name="adapted_relu")(x)
    skips = {stride: features[f"skip_{stride}"] for stride in (4, 2, 1) if f"skip_{stride}" in features}
    linear_logits = _linear_logits(features) if config.linear_mask else None
    return keras.Model(features, _masks(x, skips, config, policy, linear_logits), name=name)


def _linear_logits(features: Mapping[str, Any]) -> Any:
    """Returns the mask logits [B, H/8, W/8, 1] that are linear in the encoder's features.

    They are computed in float32, and no step trains them: `training.linear_mask` fits the weights.
    """
    exact = keras.config.floatx()
    parts: list[Any] = []
    for stride in JOINED_STRIDES:
        common = {"kernel_initializer": "zeros", "trainable": False, "dtype": exact}
        x = layers.Conv2D(1, 1, use_bias=not parts, name=f"linear_{stride}", **common)(
            features[f"joined_{stride}"]
        )
        if stride > STRIDE:
            x = BilinearUpsampling(stride // STRIDE, dtype=exact, name=f"linear_enlarged_{stride}")(x)
            x = CropToStride(1, dtype=exact, name=f"linear_cut_{stride}")([x, parts[0]])
        parts.append(x)
    return layers.Add(dtype=exact, name="linear_logits")(parts)


def _masks(
    x: Any, skips: Mapping[int, Any], config: NetworkConfig, policy: ComputePolicy, linear_logits: Any = None
) -> tuple[Any, Any, Any]:
    """Returns features, coarse and final mask logits from the tensor `x` at 1/8 of the image."""
    features = convolution(x, config, policy, config.feature_width, config.feature_kernel, "features")
    coarse_logits = _mask_head(features, config, policy)
    if linear_logits is not None:
        coarse_logits = layers.Add(dtype=keras.config.floatx(), name="coarse_logits")(
            [coarse_logits, linear_logits]
        )
    mask_logits = coarse_logits
    if config.mask_stride < STRIDE:
        mask_logits = refine_mask(coarse_logits, features, skips, config, policy)
    return features, coarse_logits, mask_logits


def build_decision(
    config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY, name: str = "decision"
) -> keras.Model:
    """Builds a model: features [B, h, w, F], mask logits [B, h, w, M] → input of `classify`, [B, classes]."""
    dtype, exact = policy.dtype, keras.config.floatx()
    half = keras.dtype_policies.get(dtype).compute_dtype
    features = keras.Input((None, None, config.feature_width), dtype=half, name="features")
    mask_logits = keras.Input((None, None, config.mask_channels), dtype=exact, name="mask_logits")
    volume, any_logits = features, mask_logits
    if config.mask_channels > 1:
        any_logits = ChannelMaximum(dtype=exact, name="any_defect")(mask_logits)
    mask = layers.Activation(config.mask_activation, dtype=exact, name="mask")(any_logits)
    if config.gradient_gate:
        volume = GradientGate(dtype=dtype, name="features_gate")(volume)
        mask = GradientGate(dtype=exact, name="mask_gate")(mask)
    x = layers.Concatenate(dtype=dtype, name="volume")([volume, mask])  # [B, h, w, F + 1]
    for index, width in enumerate(config.decision_widths, start=1):
        # "same" also works for small inputs.
        x = layers.MaxPooling2D(padding="same", dtype=dtype, name=f"decision_{index}_pool")(x)
        x = convolution(x, config, policy, width, KERNEL, f"decision_{index}")
    pooled = [
        layers.GlobalAveragePooling2D(dtype=exact, name="features_mean")(x),
        layers.GlobalMaxPooling2D(dtype=exact, name="features_max")(x),
        layers.GlobalAveragePooling2D(dtype=exact, name="mask_mean")(mask),
        layers.GlobalMaxPooling2D(dtype=exact, name="mask_max")(mask),
    ]
    vector = layers.Concatenate(dtype=exact, name="vector")(pooled)  # [B, 2 · last width + 2]
    initializers = {}
    if config.mask_prior:
        bounded = config.mask_activation == "sigmoid"
        even = 0.5 if bounded else 0.0  # activation of the logit 0
        prior = MaskPrior(config.mask_prior, even, alone=not bounded)
        initializers = {"kernel_initializer": prior, "bias_initializer": prior}
    class_logits = layers.Dense(config.num_classes, dtype=exact, name="class_logits", **initializers)(vector)
    return keras.Model((features, mask_logits), class_logits, name=name)


def check_input_shape(shape: tuple[int | None, ...], channels: int) -> None:
    """Raises ValueError if the rank, the sides or the channels are wrong; unknown sides pass."""
    if len(shape) != 4 or shape[3] != channels:
        raise ValueError(f"Wrong input shape {shape}. Expected [B, H, W, {channels}].")
    height, width = shape[1], shape[2]
    if (height or 0) % STRIDE or (width or 0) % STRIDE:
        padded = tuple(side if side is None else -(-side // STRIDE) * STRIDE for side in (height, width))
        raise ValueError(
            f"Wrong input shape height={height}, width={width}. "
            f"Expected both divisible by {STRIDE}. Consider padding to {padded}."
        )


def _mask_head(features: Any, config: NetworkConfig, policy: ComputePolicy) -> Any:
    """Applies the 1×1 convolution to mask logits, with a bias or a normalisation."""
    plain, exact = config.mask_normalization == "none", keras.config.floatx()
    name = "mask_logits" if plain else "mask_projection"
    initializer = "zeros" if config.linear_mask else make_initializer(config)
    common = {"kernel_initializer": initializer, "dtype": exact, "name": name}
    logits = layers.Conv2D(config.mask_channels, 1, use_bias=plain, **common)(features)
    if plain:
        return logits
    center, exactly = config.mask_normalization == "affine", replace(policy, dtype=exact)
    return normalization(config, center=center, policy=exactly, name="mask_logits")(logits)
