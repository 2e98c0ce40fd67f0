"""Outputs of the parts of a network that were built without a fold, for the examples of this fold."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from segdec.network.network import SegDecNet
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.data.feature_cache import FEATURE_DTYPE
from training.surface_patches import Encode

EXAMPLES_AT_ONCE = 8
"""Examples whose features are in memory together."""


def fold_outputs(
    network: SegDecNet,
    examples: ExampleSource,
    encode: Encode,
    indices: Sequence[int],
    select: Callable[[keras.Model], dict[str, Any]],
) -> Iterator[tuple[int, Arrays]]:
    """Yields the index of each of these examples that has a fold, with its outputs and features by name.

    `select` returns outputs of a model of `SegDecNet.without_fold`. Outputs and features of an example have
    no axis for the batch.
    """
    for fold in range(network.config.folds):
        model = network.without_fold(fold, encoded=True)
        part = keras.Model(model.input, select(model))
        signature = {name: tf.TensorSpec(one.shape, FEATURE_DTYPE) for name, one in model.input.items()}
        call = tf.function(
            lambda inputs, part=part: part(inputs, training=False), input_signature=[signature]
        )
        own = [index for index in indices if examples.fold(index) == fold + 1]
        for batch in (
            own[start : start + EXAMPLES_AT_ONCE] for start in range(0, len(own), EXAMPLES_AT_ONCE)
        ):
            features = [encode(examples[index].image) for index in batch]
            outputs = call({name: np.stack([each[name] for each in features]) for name in signature})
            for row, (index, each) in enumerate(zip(batch, features, strict=True)):
                yield index, {**each, **{name: one[row].numpy() for name, one in outputs.items()}}
