"""An encoder of a few thousand weights, which takes the place of the pretrained ones in tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from segdec.encoders import ENCODERS

NAME, TRANSFORMER = "tiny", "tiny_transformer"
MOBILENET = ENCODERS["mobilenet"]
TINY = replace(
    MOBILENET,
    layers={**MOBILENET.layers, 16: "conv_pw_7_relu"},
    weights_file="mobilenet_tiny_no_top.h5",
    receptive_field=91,
    arguments={"alpha": 0.0625},
)
"""A MobileNet with two channels where the published one has 32, cut after seven blocks of eleven."""

TINY_TRANSFORMER = replace(
    ENCODERS["dinov2_small"], arguments={"width": 32, "depth": 2, "heads": 2, "grid": 5}, sha256="0" * 64
)


def register() -> None:
    """Makes them encoders, in this process."""
    ENCODERS.update({NAME: TINY, TRANSFORMER: TINY_TRANSFORMER})


@contextmanager
def registered() -> Iterator[str]:
    """Makes them encoders for a while; yields the name of the first in a configuration."""
    register()
    try:
        yield NAME
    finally:
        del ENCODERS[NAME], ENCODERS[TRANSFORMER]


def write_weights(path: Path) -> None:
    """Writes a weights file (`.weights.h5`) of all of it, as Keras does.

    The weights are seeded, and the moving statistics those of noise, so that its features carry signals.
    """
    import keras

    from segdec.network.encoder import load_application

    keras.utils.set_random_seed(11)
    random, application = np.random.default_rng(11), load_application(TINY)
    for layer in application.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
            layer.beta.assign(random.normal(0.5, 0.3, layer.beta.shape))
            layer.momentum = 0.0  # the moving statistics become those of the next batch
    application(random.uniform(-1, 1, (4, 64, 64, 3)).astype(np.float32), training=True)
    application.save_weights(path)
