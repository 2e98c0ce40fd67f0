"""The two-stage segmentation and decision network, from Keras layers alone."""

from typing import Any, Self

import keras
from keras import layers

from segdec.config import STRIDE, NetworkConfig
from segdec.layers import GradientGate, normalization

KERNEL = 5
"""Side of every convolution except the feature and the mask one, as published."""


@keras.saving.register_keras_serializable(package="segdec")
class SegDecNet(keras.Model):
    """Segmentation network, and a decision network on its features and mask.

    The parts are models of their own, `segmentation` and `decision`, so that a training stage can
    hold one of them still. Pixel values are 0…255: the first layer scales them.

    Args:
        config: Shape of the network.

    Input shape:
        `[B, H, W, input_channels]`, H and W divisible by 8.

    Output shape:
        `{"mask_logits": [B, H/8, W/8, 1], "class_logits": [B, num_classes]}`, float32.

    Example:
        >>> network = SegDecNet(NetworkConfig(preset="compact"))
        >>> network(np.zeros((1, 64, 64, 1)))["mask_logits"].shape
        (1, 8, 8, 1)

    References:
        Tabernik et al., "Segmentation-based deep-learning approach for surface-defect detection", 2019.
        Božič et al., "Mixed supervision for surface-defect detection", 2021.
    """

    def __init__(self, config: NetworkConfig, **kwargs: Any) -> None:
        # === Layers ===
        segmentation = build_segmentation(config)
        decision = build_decision(config)

        # === Functional Model ===
        image = keras.Input((None, None, config.input_channels), name="image")
        features, mask_logits = segmentation(image)
        class_logits = decision((features, mask_logits))
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

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this network again."""
        return {"config": self.config.model_dump(mode="json"), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:  # noqa: ARG003
        """Makes a network from what `get_config` returned."""
        return cls(**{**config, "config": NetworkConfig.model_validate(config["config"])})


def build_network(config: NetworkConfig) -> SegDecNet:
    """Makes the network of `config` with freshly drawn weights."""
    return SegDecNet(config, name="segdec")


def build_segmentation(config: NetworkConfig) -> keras.Model:
    """Image [B, H, W, C] → features [B, H/8, W/8, F] and mask logits [B, H/8, W/8, 1]."""
    image = keras.Input((None, None, config.input_channels), name="image")
    x = layers.Rescaling(1.0 / 255.0, name="scale")(image)
    for block, widths in enumerate(config.segmentation_widths, start=1):
        for index, width in enumerate(widths, start=1):
            x = _convolution(x, config, width, KERNEL, f"segmentation_{block}_{index}")
        x = layers.MaxPooling2D(name=f"segmentation_{block}_pool")(x)  # H/2, H/4, H/8
    features = _convolution(x, config, config.feature_width, config.feature_kernel, "features")
    mask_logits = _mask_head(features, config)
    return keras.Model(image, (features, mask_logits), name="segmentation")


def build_decision(config: NetworkConfig) -> keras.Model:
    """Features [B, h, w, F] and mask logits [B, h, w, 1] → class logits [B, classes]."""
    features = keras.Input((None, None, config.feature_width), name="features")
    mask_logits = keras.Input((None, None, 1), name="mask_logits", dtype=keras.config.floatx())
    volume, mask = features, layers.Activation(config.mask_activation, name="mask")(mask_logits)
    if config.gradient_gate:
        volume, mask = GradientGate(name="features_gate")(volume), GradientGate(name="mask_gate")(mask)
    x = layers.Concatenate(name="volume")([volume, mask])  # [B, h, w, F + 1]
    for index, width in enumerate(config.decision_widths, start=1):
        x = layers.MaxPooling2D(padding="same", name=f"decision_{index}_pool")(
            x
        )  # "same" keeps small inputs alive
        x = _convolution(x, config, width, KERNEL, f"decision_{index}")
    pooled = [
        layers.GlobalAveragePooling2D(name="features_mean")(x),
        layers.GlobalMaxPooling2D(name="features_max")(x),
        layers.GlobalAveragePooling2D(name="mask_mean")(mask),
        layers.GlobalMaxPooling2D(name="mask_max")(mask),
    ]
    vector = layers.Concatenate(name="vector")(pooled)  # [B, 2 · last width + 2]
    class_logits = layers.Dense(config.num_classes, dtype=keras.config.floatx(), name="class_logits")(vector)
    return keras.Model((features, mask_logits), class_logits, name="decision")


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


def _convolution(x: Any, config: NetworkConfig, width: int, kernel: int, name: str) -> Any:
    """Convolution without bias, normalisation, ReLU."""
    initializer = _initializer(config)
    x = layers.Conv2D(
        width, kernel, padding="same", use_bias=False, kernel_initializer=initializer, name=name
    )(x)
    x = normalization(config, name=f"{name}_norm")(x)
    return layers.ReLU(name=f"{name}_relu")(x)


def _mask_head(features: Any, config: NetworkConfig) -> Any:
    """1×1 convolution to the mask logits; its bias gives way to a normalisation where there is one."""
    plain = config.mask_normalization == "none"
    name = "mask_logits" if plain else "mask_projection"
    logits = layers.Conv2D(
        1, 1, use_bias=plain, kernel_initializer=_initializer(config), dtype=keras.config.floatx(), name=name
    )(features)
    if plain:
        return logits
    center = config.mask_normalization == "affine"
    return normalization(config, center=center, dtype=keras.config.floatx(), name="mask_logits")(logits)


def _initializer(config: NetworkConfig) -> keras.initializers.Initializer | str:
    if config.initializer == "normal_0.01":
        return keras.initializers.RandomNormal(stddev=0.01)
    return config.initializer
