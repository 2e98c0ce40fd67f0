"""Runs the part of a network that was built without a fold on cached features."""

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.engines.tensorflow import default_batch_pixels, to_logits
from segdec.network.network import SegDecNet
from training.data.feature_cache import FEATURE_DTYPE, FeatureCache


class FoldEngine:
    """An engine for prepared images [B, h, w, C] of the training shape; see `segdec.engines.Engine`."""

    def __init__(self, network: SegDecNet, fold: int, features: FeatureCache) -> None:
        model = network.without_fold(fold, encoded=True)
        shapes = features.shapes.items()
        signature = {name: tf.TensorSpec([None, *shape], FEATURE_DTYPE) for name, shape in shapes}
        self._infer = tf.function(lambda inputs: model(inputs, training=False), input_signature=[signature])
        self._features = features
        self.batch_pixels = default_batch_pixels()

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Returns the logits from the features of `images`."""
        features = [self._features.find(image) for image in images]
        inputs = {name: np.stack([each[name] for each in features]) for name in self._features.shapes}
        return to_logits(self._infer(inputs))
