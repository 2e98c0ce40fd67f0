"""Runs one head of a network on cached features, to validate it during training."""

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.engines.tensorflow import default_batch_pixels, to_logits
from segdec.network.network import SegDecNet
from training.data.feature_cache import FEATURE_DTYPE, FeatureCache


class HeadEngine:
    """An engine for prepared images [B, h, w, C] of the training shape; see `segdec.engines.Engine`."""

    def __init__(self, network: SegDecNet, head: int, features: FeatureCache) -> None:
        model = network.single_head(head, encoded=True)
        shapes = features.shapes.items()
        signature = {name: tf.TensorSpec([None, *shape], FEATURE_DTYPE) for name, shape in shapes}
        self._infer = tf.function(lambda inputs: model(inputs, training=False), input_signature=[signature])
        self._features = features
        self.batch_pixels = default_batch_pixels()

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the head on the features of `images`."""
        found = [self._features.find(image) for image in images]
        inputs = {name: np.stack([each[name] for each in found]) for name in self._features.shapes}
        return to_logits(self._infer(inputs))
