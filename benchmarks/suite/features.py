"""Features of a frozen pretrained encoder, for the baselines."""

from collections.abc import Callable, Iterator, Sequence

import cv2
import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from datasets.reading import read
from datasets.sample import DataSetItem, Sample
from segdec.encoders import ENCODERS, JOINED_STRIDES
from segdec.errors import ConfigError
from training.config import ExperimentConfig
from training.optimization.pretrained import load_pretrained

Floats = NDArray[np.float32]
Encode = Callable[[Floats], list[tf.Tensor]]
"""RGB images [B, H, W, 3], 0…255 → features of strides 4, 8 and 16."""

SIZES = {"aliens": (256, 368), "capsule": (320, 320), "dagm_class1": (512, 512), "kolektorsdd": (640, 256)}
"""Height and width to which the photographs of a set are scaled, px; `DEFAULT_SIZE` for other sets."""

DEFAULT_SIZE = (256, 256)
BATCH = 4


def load_encoder(name: str, weights: str) -> Encode:
    """Loads an encoder with its weights.

    Raises:
        ConfigError: If the weights are missing or do not fit.
    """
    network = {"preset": "mobilenet", "encoder": name}
    stages = {"joint": {"steps": 1}}
    pretrained = load_pretrained(ExperimentConfig(encoder_weights=weights, network=network, stages=stages))
    if pretrained is None:
        raise ConfigError(f"The baselines need a pretrained encoder, not --encoder-weights {weights}.")
    row, whole = ENCODERS[name], pretrained.application
    taps = keras.Model(whole.input, [whole.get_layer(row.layers[s]).output for s in JOINED_STRIDES])
    mean, deviation = np.array(row.mean, np.float32), np.array(row.deviation, np.float32)

    def encode(images: Floats) -> list[tf.Tensor]:
        pixels = (images - mean) / deviation
        features: list[tf.Tensor] = taps(pixels[..., ::-1] if row.blue_first else pixels, training=False)
        return features

    return encode


def read_batches(
    items: Sequence[DataSetItem], size: tuple[int, int]
) -> Iterator[tuple[Floats, list[Sample]]]:
    """Yields batches of images [B, height, width, 3], 0…255, with their samples at full size."""
    for start in range(0, len(items), BATCH):
        samples = [read(item) for item in items[start : start + BATCH]]
        yield np.stack([_scaled(sample.image, size) for sample in samples]), samples


def _scaled(image: NDArray[np.uint8], size: tuple[int, int]) -> Floats:
    scaled = cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)
    return np.asarray(np.broadcast_to(scaled.reshape(*size, -1), (*size, 3)), np.float32)
