"""Encoders of a few thousand weights, which take the place of the pretrained ones in tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from segdec.encoders import ENCODERS

NAME, DEEPER, TRANSFORMER = "tiny", "tiny_mobilenet", "tiny_transformer"
MOBILENET = ENCODERS["mobilenet"]
TINY = replace(
    MOBILENET,
    application="TinyNet",
    layers={stride: f"conv_pw_{stride}_relu" for stride in (2, 4, 8, 16)},
    weights_file="tiny_no_top.h5",
    receptive_field=31,
    arguments={"width": 4},
)
"""A MobileNet of four blocks, one for each stride, with 4 channels after the first where that has 32."""

ROWS = {
    NAME: TINY,
    DEEPER: replace(
        MOBILENET,
        layers={**MOBILENET.layers, 16: "conv_pw_7_relu"},
        receptive_field=91,
        arguments={"alpha": 0.0625},
    ),
    TRANSFORMER: replace(
        ENCODERS["dinov2_small"], arguments={"width": 32, "depth": 2, "heads": 2, "grid": 5}, sha256="0" * 64
    ),
}
"""All of them. Features of `DEEPER` differ for different surfaces; building it takes twice as long."""


def register() -> None:
    """Makes them encoders, in this process."""
    import keras

    ENCODERS.update(ROWS)
    setattr(keras.applications, TINY.application, build_tiny)


@contextmanager
def registered() -> Iterator[str]:
    """Makes them encoders for a while; yields the name of the first in a configuration."""
    register()
    try:
        yield NAME
    finally:
        for name in ROWS:
            del ENCODERS[name]


def build_tiny(*, include_top: bool, weights: Path | None, input_shape: tuple[int | None, ...], width: int):
    """Builds [B, H, W, 3] → [B, ⌈H/32⌉, ⌈W/32⌉, 16 `width`], with the arguments of `keras.applications`."""
    import keras
    from keras import layers

    def convolved(kind, name, x, *arguments, **more):
        x = kind(*arguments, padding="same", use_bias=False, name=name, **more)(x)
        x = layers.BatchNormalization(name=f"{name}_bn")(x)
        return layers.ReLU(6.0, name=f"{name}_relu")(x)

    assert not include_top
    image = keras.Input(input_shape, name="image")
    x = convolved(layers.Conv2D, "conv_pw_2", image, width, 3, strides=2)
    for place, stride in enumerate((4, 8, 16, 32), start=1):
        x = convolved(layers.DepthwiseConv2D, f"conv_dw_{stride}", x, 3, strides=2)
        x = convolved(layers.Conv2D, f"conv_pw_{stride}", x, width * 2**place, 1)
    network = keras.Model(image, x, name="tiny")
    if weights:
        network.load_weights(weights)
    return network


def write_weights(path: Path, name: str = NAME) -> None:
    """Writes a weights file (`.weights.h5`) of a whole encoder, as Keras does.

    The weights are seeded, and the moving statistics those of noise, so that its features carry signals.
    """
    import keras

    from segdec.network.encoder import load_application

    keras.utils.set_random_seed(11)
    random, application = np.random.default_rng(11), load_application(ROWS[name])
    for layer in application.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
            layer.beta.assign(random.normal(0.5, 0.3, layer.beta.shape))
            layer.momentum = 0.0  # the moving statistics become those of the next batch
    application(random.uniform(-1, 1, (4, 64, 64, 3)).astype(np.float32), training=True)
    application.save_weights(path)


def load_encoder(network, path: Path) -> None:
    """Loads the encoder of a network from a file of `write_weights`."""
    from segdec.network.encoder import load_application

    application = load_application(ENCODERS[network.config.encoder])
    application.load_weights(path)
    for layer in network.backbone.layers:
        if layer.weights:
            layer.set_weights(application.get_layer(layer.name).get_weights())
