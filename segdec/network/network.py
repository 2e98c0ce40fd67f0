"""The two-stage segmentation and decision network, from Keras layers alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

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
    GradientGate,
    normalization,
)
from segdec.network.mask_prior import MaskPrior

PIXEL_SCALE = 1.0 / 255.0
"""What pixel values 0…255 are multiplied with before the first convolution."""


@keras.saving.register_keras_serializable(package="segdec")
class SegDecNet(keras.Model):
    """Segmentation network, and a decision network on its features and mask.

    The parts are models of their own, `segmentation` and `decision`, so that a training stage can
    hold one of them still. Pixel values are 0…255: the first layer scales them. Where the configuration
    asks for a mask finer than 1/8 of the image, a decoder, which belongs to `segmentation`, refines what
    comes out; the decision network sees the coarse mask, as published. Of several masks, one for each class
    of defects, it sees the largest logit of each pixel.

    Args:
        config: Shape of the network.
        policy: How it computes while it is trained. It is no part of the network's configuration.

    Input shape:
        `[B, H, W, input_channels]`, H and W divisible by 8.

    Output shape:
        `{"mask_logits": [B, H/s, W/s, M], "class_logits": [B, num_classes]}`, float32; s is the stride
        of the mask, 8 unless the configuration says otherwise, and M is 1, or with `mask_classes` the number
        of classes of defects.

    Example:
        >>> network = SegDecNet(NetworkConfig(preset="compact"))
        >>> network(np.zeros((1, 64, 64, 1)))["mask_logits"].shape
        (1, 8, 8, 1)

    References:
        Tabernik et al., "Segmentation-based deep-learning approach for surface-defect detection", 2019.
        Božič et al., "Mixed supervision for surface-defect detection", 2021.
    """

    def __init__(self, config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY, **kwargs: Any) -> None:
        # === Layers ===
        segmentation = build_segmentation(config, policy)
        decision = build_decision(config, policy)

        # === Functional Model ===
        image = keras.Input((None, None, config.input_channels), name="image")
        features, coarse_mask_logits, mask_logits = segmentation(image)
        class_logits = decision((features, coarse_mask_logits))
        outputs = {"mask_logits": mask_logits, "class_logits": class_logits}
        super().__init__(inputs=image, outputs=outputs, **kwargs)

        # === Config ===
        self.config = config
        self.segmentation = segmentation
        self.decision = decision

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs both parts on `inputs` [B, H, W, C].

        Raises:
            ValueError: If the height, the width or the channels do not fit the network.
        """
        check_input_shape(tuple(inputs.shape), self.config.input_channels)
        return super().call(inputs, training=training, mask=mask)

    @property
    def encoder(self) -> keras.Model | None:
        """What computes the features that the segmentation network stands on; None as published."""
        return self.segmentation.get_layer("encoder") if self.config.encoder != SEGDECNET else None

    @property
    def backbone(self) -> keras.Model | None:
        """The network of `keras.applications` within the encoder."""
        return self.encoder.get_layer(BACKBONE) if self.encoder is not None else None

    @property
    def head(self) -> keras.Model | None:
        """What makes the mask of the encoder's features, by their names; None as published."""
        return self.segmentation.get_layer("head") if self.config.encoder != SEGDECNET else None

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this network again."""
        return {"config": self.config.model_dump(mode="json"), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:  # noqa: ARG003
        """Makes a network from what `get_config` returned."""
        return cls(**{**config, "config": NetworkConfig.model_validate(config["config"])})


def build_network(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> SegDecNet:
    """Makes the network of `config` with freshly drawn weights."""
    return SegDecNet(config, policy, name="segdec")


def build_segmentation(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> keras.Model:
    """Builds image [B, H, W, C] → features [B, H/8, W/8, F], coarse [B, H/8, W/8, M] and final mask logits.

    The final ones [B, H/s, W/s, M] are the coarse ones where the stride s is 8. With an encoder the parts are
    models of their own, `encoder` and `head`.
    """
    image = keras.Input((None, None, config.input_channels), name="image")
    if config.encoder != SEGDECNET:
        encoder = build_encoder(config, policy)
        head = build_head(encoder, config, policy)
        return keras.Model(image, head(encoder(image)), name="segmentation")
    dtype = policy.dtype
    x = image
    if not policy.folded:
        x = layers.Rescaling(PIXEL_SCALE, dtype=keras.config.floatx(), name="scale")(image)
    skips: dict[int, Any] = {}
    for block, widths in enumerate(config.segmentation_widths, start=1):
        for index, width in enumerate(widths, start=1):
            x = convolution(x, config, policy, width, KERNEL, f"segmentation_{block}_{index}")
        skips[2 ** (block - 1)] = x
        x = layers.MaxPooling2D(dtype=dtype, name=f"segmentation_{block}_pool")(x)  # H/2, H/4, H/8
    return keras.Model(image, _masks(x, skips, config, policy), name="segmentation")


def build_head(
    encoder: keras.Model, config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY
) -> keras.Model:
    """Builds the encoder's features, by name → the same as the published segmentation stage.

    A 1×1 convolution of the joined features is the sum of one of each stride, which costs less: those of the
    coarse ones are taken before they are enlarged.
    """
    dtype = policy.dtype
    features = {
        name: keras.Input(one.shape[1:], dtype=one.dtype, name=name) for name, one in encoder.output.items()
    }
    adapted = []
    for stride in JOINED_STRIDES:
        adapt = layers.Conv2D(
            config.adapter_width,
            1,
            use_bias=False,
            kernel_initializer=make_initializer(config),
            dtype=dtype,
            name=f"adapted_{stride}",
        )
        x = adapt(features[f"joined_{stride}"])
        if stride > STRIDE:
            x = BilinearUpsampling(stride // STRIDE, dtype=dtype, name=f"enlarged_{stride}")(x)
            x = CropToStride(1, dtype=dtype, name=f"cut_{stride}")([x, features[f"joined_{STRIDE}"]])
        adapted.append(x)
    x = layers.Add(dtype=dtype, name="adapted")(adapted)
    x = layers.ReLU(dtype=dtype, name="adapted_relu")(
        normalization(config, policy=policy, name="adapted_norm")(x)
    )
    skips = {stride: features[f"skip_{stride}"] for stride in (4, 2, 1) if f"skip_{stride}" in features}
    return keras.Model(features, _masks(x, skips, config, policy), name="head")


def _masks(
    x: Any, skips: Mapping[int, Any], config: NetworkConfig, policy: ComputePolicy
) -> tuple[Any, Any, Any]:
    """The features, the coarse mask logits and the final ones, of what is seen at 1/8 of the image."""
    features = convolution(x, config, policy, config.feature_width, config.feature_kernel, "features")
    coarse_logits = mask_logits = _mask_head(features, config, policy)
    if config.mask_stride < STRIDE:
        mask_logits = refine_mask(coarse_logits, features, skips, config, policy)
    return features, coarse_logits, mask_logits


def build_decision(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> keras.Model:
    """Builds features [B, h, w, F] and mask logits [B, h, w, M] → class logits [B, classes]."""
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
        pool = layers.MaxPooling2D(padding="same", dtype=dtype, name=f"decision_{index}_pool")
        x = pool(x)  # "same" keeps small inputs alive
        x = convolution(x, config, policy, width, KERNEL, f"decision_{index}")
    pooled = [
        layers.GlobalAveragePooling2D(dtype=exact, name="features_mean")(x),
        layers.GlobalMaxPooling2D(dtype=exact, name="features_max")(x),
        layers.GlobalAveragePooling2D(dtype=exact, name="mask_mean")(mask),
        layers.GlobalMaxPooling2D(dtype=exact, name="mask_max")(mask),
    ]
    vector = layers.Concatenate(dtype=exact, name="vector")(pooled)  # [B, 2 · last width + 2]
    prior = _mask_prior(config)
    class_logits = layers.Dense(config.num_classes, dtype=exact, name="class_logits", **prior)(vector)
    return keras.Model((features, mask_logits), class_logits, name="decision")


def _mask_prior(config: NetworkConfig) -> dict[str, Any]:
    """The first weights of the last layer, where they start from the mask."""
    if not config.mask_prior:
        return {}
    bounded = config.mask_activation == "sigmoid"
    even = 0.5 if bounded else 0.0  # where the mask's logit is 0
    prior = MaskPrior(config.mask_prior, even, alone=not bounded)
    return {"kernel_initializer": prior, "bias_initializer": prior}


def check_input_shape(shape: tuple[int | None, ...], channels: int) -> None:
    """Refuses a known input shape that the network cannot take; unknown sides pass.

    Raises:
        ValueError: If the rank, the sides or the channels do not fit.
    """
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
    """1×1 convolution to the mask logits; its bias gives way to a normalisation where there is one."""
    plain, exact = config.mask_normalization == "none", keras.config.floatx()
    name = "mask_logits" if plain else "mask_projection"
    common = {"kernel_initializer": make_initializer(config), "dtype": exact, "name": name}
    logits = layers.Conv2D(config.mask_channels, 1, use_bias=plain, **common)(features)
    if plain:
        return logits
    center, exactly = config.mask_normalization == "affine", replace(policy, dtype=exact)
    return normalization(config, center=center, policy=exactly, name="mask_logits")(logits)
